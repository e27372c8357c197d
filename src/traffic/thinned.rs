//! The requests that some replicas of many get from a router whose choice does not depend on their state.
//!
//! Each of these replicas has the arrivals that it has in a run of all of them: of random routing, every arrival is kept
//! with the same probability, so that Poisson arrivals stay Poisson arrivals.

use std::collections::HashMap;

use fastrand::Rng;

use super::content::mixed;
use super::router::RoutePolicy;
use super::source::{Arrival, Arrivals, DrawnTraffic};

/// A router over equal replicas, and those of them that are simulated.
#[derive(Debug)]
pub struct ReplicaSample {
    policy: RoutePolicy,
    seed: u64,
    replicas: u64,
    /// Place in the sample, by number of the replica.
    places: HashMap<u64, usize>,
}

impl ReplicaSample {
    /// `chosen` of `replicas` replicas, drawn without replacement by the seed of their router.
    pub fn new(policy: RoutePolicy, seed: u64, replicas: u64, chosen: usize) -> ReplicaSample {
        let mut numbers: Vec<u64> = (0..replicas).collect();
        let rng = &mut Rng::with_seed(mixed(seed, 12));
        let chosen = chosen.min(numbers.len());
        for place in 0..chosen {
            let other = rng.usize(place..numbers.len());
            numbers.swap(place, other);
        }
        numbers.truncate(chosen);
        // In their order, so that a sample of all is all.
        numbers.sort_unstable();
        let places = numbers.into_iter().enumerate().map(|(place, number)| (number, place)).collect();
        ReplicaSample { policy, seed, replicas, places }
    }

    /// The place in the sample of the replica that a request goes to, the `sent`th of the router. Engines are numbered
    /// so that each replica has one before any has its second.
    fn place(&self, sent: u64, ids: [u64; 2]) -> Option<usize> {
        let engine = self.policy.engine_number(self.seed, sent, ids)?;
        self.places.get(&(engine % self.replicas.max(1))).copied()
    }

    /// The drawn requests of each replica of the sample. Only single requests that come at a rate are split by a router
    /// alone: others also wait for answers.
    pub fn drawn(&self, traffic: &DrawnTraffic) -> Vec<Vec<Arrival>> {
        let mut split = vec![vec![]; self.places.len()];
        let Arrivals::Rate { per_s, variation } = traffic.arrivals else { return split };
        let mut time_s = 0.0;
        for number in 0..traffic.requests {
            time_s += traffic.gap_s(number, per_s, variation);
            if let Some(place) = self.place(number, [number, number]) {
                split[place].push(Arrival { time_s, request: traffic.request(number) });
            }
        }
        split
    }

    /// The requests of a trace that each replica of the sample gets.
    pub fn listed(&self, arrivals: Vec<Arrival>) -> Vec<Vec<Arrival>> {
        let mut split = vec![vec![]; self.places.len()];
        for (sent, arrival) in (0..).zip(arrivals) {
            if let Some(place) = self.place(sent, [arrival.request.id, arrival.request.session]) {
                split[place].push(arrival);
            }
        }
        split
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::source::{LengthDistribution, RequestSource};

    fn traffic(distinct_prompts: u64) -> DrawnTraffic {
        DrawnTraffic {
            arrivals: Arrivals::Rate { per_s: 8.0, variation: 1.0 },
            requests: 2000,
            prompt: LengthDistribution::LogNormal { mean: 500.0, variation: 0.8 },
            output: LengthDistribution::Fixed(10),
            prefix: 0,
            prefix_groups: 1,
            distinct_prompts,
            sessions: None,
            seed: 7,
        }
    }

    #[test]
    fn the_parts_of_all_replicas_are_the_whole() {
        for policy in [RoutePolicy::Random, RoutePolicy::RoundRobin, RoutePolicy::Session] {
            let mut source = RequestSource::new(traffic(9));
            let whole: Vec<Arrival> = std::iter::from_fn(|| source.take()).collect();
            let all = ReplicaSample::new(policy, 3, 16, 16);
            let mut parts = all.drawn(&traffic(9)).concat();
            parts.sort_by_key(|arrival| arrival.request.id);
            assert_eq!(parts, whole);
            assert_eq!(all.listed(whole), all.drawn(&traffic(9)));
        }
    }

    #[test]
    fn a_replica_has_the_same_requests_in_every_sample() {
        for policy in [RoutePolicy::Random, RoutePolicy::RoundRobin, RoutePolicy::Session] {
            let all = ReplicaSample::new(policy, 3, 16, 16).drawn(&traffic(0));
            let some = ReplicaSample::new(policy, 3, 16, 5).drawn(&traffic(0));
            assert_eq!(some.len(), 5);
            assert!(some.iter().all(|one| all.contains(one)));
            // About a sixteenth each; equal parts in turn.
            let counts: Vec<usize> = some.iter().map(Vec::len).collect();
            let bounds = if policy == RoutePolicy::RoundRobin { 125..=125 } else { 80..=170 };
            assert!(counts.iter().all(|count| bounds.contains(count)), "{counts:?}");
        }
    }
}
