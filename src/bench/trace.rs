//! A trace whose requests are sent at their times, each with its own lengths.

use std::ops::Range;

use crate::request::bundle::sha256;
use crate::request::simulate::SimulatedTraffic;
use crate::spec::error::Error;
use crate::spec::fleet::{TracedRequest, sending_times};
use crate::spec::run::RunTrace;
use crate::spec::scenario::Scenario;

/// A trace that a load sends.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchTrace {
    /// Its requests in the order of their times, and its speed.
    traffic: SimulatedTraffic,
    /// When each is sent, in seconds from the start of the run.
    times_s: Vec<f64>,
    /// The part of it that a record keeps.
    pub(super) described: RunTrace,
}

impl BenchTrace {
    /// The requests that were read from the text of a trace, `speed_up` times as fast.
    pub fn of(text: &str, mut requests: Vec<TracedRequest>, speed_up: f64) -> BenchTrace {
        // Requests of one time keep the order of the file.
        requests.sort_by(|one, other| one.arrival.total_cmp(&other.arrival));
        let times_s: Vec<f64> = sending_times(&requests, speed_up).collect();
        let described = RunTrace {
            sha256: sha256(text),
            requests: requests.len() as u64,
            speed_up,
            seconds: times_s.last().copied().unwrap_or(0.0),
        };
        let traffic =
            SimulatedTraffic { trace: requests, speed_up: Some(speed_up), ..SimulatedTraffic::default() };
        BenchTrace { traffic, times_s, described }
    }

    /// Checks that it has requests after a warm-up.
    ///
    /// # Errors
    /// It has none.
    pub fn check(&self, warm_up: Option<u64>) -> Result<(), Error> {
        if !self.counted(warm_up, None).is_empty() {
            return Ok(());
        }
        let found = format!("{} requests, of a {}", warm_up.unwrap_or(0), self.described.words());
        let fix = "lower --warm-up, or give a longer trace";
        Err(Error::new("warm-up", found, "fewer requests than the trace has", fix))
    }

    /// A request by its place in the order of times.
    pub(super) fn request(&self, number: u64) -> Option<&TracedRequest> {
        self.traffic.trace.get(usize::try_from(number).ok()?)
    }

    /// The numbers of its requests with their times, in seconds from the start of the run.
    pub(super) fn times(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        (0..).zip(self.times_s.iter().copied())
    }

    /// The numbers of the requests that count: all, or as many as stated after those of the warm-up.
    pub(super) fn counted(&self, warm_up: Option<u64>, requests: Option<u64>) -> Range<u64> {
        let all = self.described.requests;
        let first = warm_up.unwrap_or(0).min(all);
        first..requests.map_or(all, |requests| first.saturating_add(requests).min(all))
    }

    /// Seconds until the last of the counted requests is sent.
    pub(super) fn seconds(&self, counted: &Range<u64>) -> f64 {
        let last = counted.end.checked_sub(1).and_then(|last| usize::try_from(last).ok());
        last.and_then(|last| self.times_s.get(last)).copied().unwrap_or(0.0)
    }

    /// Its mean lengths, and the mean rate of its requests.
    pub(super) fn means(&self) -> Scenario {
        self.traffic.described(&Scenario::default())
    }

    /// The most tokens of a prompt and its answer.
    pub(super) fn longest(&self) -> Option<u64> {
        self.traffic.trace.iter().map(|request| request.isl.saturating_add(request.osl)).max()
    }

    /// Two lengths of prompts by which a server shows how it counts tokens: the shortest, and the mean.
    pub(super) fn probed_lengths(&self) -> Vec<u64> {
        let least = self.traffic.trace.iter().map(|request| request.isl).min();
        let mut lengths: Vec<u64> = least.into_iter().chain(self.means().isl).collect();
        lengths.dedup();
        lengths
    }

    /// The requests until the last counted one, as `simulate` sends them.
    pub(super) fn simulated(&self, counted: &Range<u64>) -> SimulatedTraffic {
        let sent = usize::try_from(counted.end).unwrap_or(usize::MAX).min(self.traffic.trace.len());
        SimulatedTraffic {
            trace: self.traffic.trace[..sent].to_vec(),
            speed_up: self.traffic.speed_up,
            warm_up: Some(counted.start),
            ..SimulatedTraffic::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(random: &mut fastrand::Rng) -> (Vec<TracedRequest>, f64) {
        let request = |random: &mut fastrand::Rng| TracedRequest {
            arrival: f64::from(random.i32(-5000..5000)) / 16.0,
            isl: random.u64(1..5000),
            osl: random.u64(1..500),
            content: vec![],
        };
        let requests = (0..random.usize(2..60)).map(|_| request(random)).collect();
        (requests, 0.25 * f64::from(random.u32(1..40)))
    }

    /// Whatever the order of the file: requests are sent in the order of their times, with their own lengths, the gaps
    /// divided by the speed; and the counted ones are within the trace.
    #[test]
    fn requests_are_sent_in_the_order_of_their_times() {
        let mut rng = fastrand::Rng::with_seed(11);
        for _ in 0..300 {
            let (requests, speed) = random(&mut rng);
            let trace = BenchTrace::of("x", requests.clone(), speed);
            let sent: Vec<(u64, f64)> = trace.times().collect();
            assert_eq!(sent.len(), requests.len());
            assert_eq!(sent[0], (0, 0.0));
            let first = requests.iter().map(|one| one.arrival).fold(f64::INFINITY, f64::min);
            for (number, time_s) in &sent {
                let one = trace.request(*number).unwrap();
                assert_eq!(*time_s, (one.arrival - first) / speed);
            }
            assert!(sent.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            let sorted = |of: fn(&TracedRequest) -> u64, requests: &[TracedRequest]| {
                let mut all: Vec<u64> = requests.iter().map(of).collect();
                all.sort_unstable();
                all
            };
            for of in [(|one| one.isl) as fn(&TracedRequest) -> u64, |one| one.osl] {
                assert_eq!(sorted(of, &trace.traffic.trace), sorted(of, &requests));
            }
            let all = requests.len() as u64;
            let (warm_up, count) = (rng.u64(0..2 * all), rng.u64(1..2 * all));
            let counted = trace.counted(Some(warm_up), Some(count));
            assert!(counted.end <= all && counted.start == warm_up.min(all), "{counted:?} of {all}");
            assert_eq!(counted.end - counted.start, count.min(all - counted.start));
            assert_eq!(trace.counted(None, None), 0..all);
            assert_eq!(trace.check(Some(warm_up)).is_ok(), warm_up < all);
            let simulated = trace.simulated(&counted);
            assert_eq!((simulated.trace.len() as u64, simulated.warm_up), (counted.end, Some(counted.start)));
            assert!(trace.seconds(&counted) <= trace.described.seconds);
        }
    }

    #[test]
    fn a_trace_is_named_by_its_text() {
        let rows = vec![TracedRequest { arrival: 1.0, isl: 10, osl: 2, content: vec![] }; 2];
        let [one, other] = ["a", "b"].map(|text| BenchTrace::of(text, rows.clone(), 1.0).described);
        assert!(one.sha256.len() == 64 && one.sha256 != other.sha256, "{one:?}");
        assert_eq!(BenchTrace::of("a", rows, 1.0).probed_lengths(), [10]);
    }
}
