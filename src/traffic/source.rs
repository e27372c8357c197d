//! Where requests come from: arrivals, lengths, and the tokens that they share.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fastrand::Rng;

use super::content::{TokenRun, mixed};
use super::engine::EngineRequest;
use crate::spec::limits::ISL;

/// When requests arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Gaps of a gamma distribution with this mean rate and coefficient of variation: 1 for Poisson arrivals, 0 for even
    /// gaps.
    Rate { per_s: f64, variation: f64 },
    /// This many clients, each of which sends its next request when it has the last answer.
    Clients(u64),
}

/// Lengths of prompts or outputs.
#[derive(Clone, Debug, PartialEq)]
pub enum LengthDistribution {
    /// All equal.
    Fixed(u32),
    /// Uniform between these, both included.
    Uniform(u32, u32),
    /// Log-normal with this mean and coefficient of variation, at least 1.
    LogNormal { mean: f64, variation: f64 },
}

/// The longest drawn length: the limit of stated ones.
const MOST_TOKENS: f64 = ISL.most;

impl LengthDistribution {
    fn draw(&self, rng: &mut Rng) -> u32 {
        match *self {
            LengthDistribution::Fixed(tokens) => tokens,
            LengthDistribution::Uniform(least, most) => rng.u32(least..=most.max(least)),
            LengthDistribution::LogNormal { mean, variation } => {
                let spread = libm::log(1.0 + variation * variation);
                let normal = normal(rng);
                let drawn = libm::exp(libm::log(mean) - spread / 2.0 + libm::sqrt(spread) * normal);
                drawn.round().clamp(1.0, MOST_TOKENS) as u32
            }
        }
    }
}

/// A standard normal number: Box and Muller 1958.
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.f64()));
    radius * libm::cos(2.0 * std::f64::consts::PI * rng.f64())
}

/// A gamma number of this shape and mean 1: Marsaglia and Tsang 2000.
fn gamma(rng: &mut Rng, shape: f64) -> f64 {
    if shape < 1.0 {
        let boost = libm::pow(1.0 - rng.f64(), 1.0 / shape);
        return gamma(rng, shape + 1.0) * (shape + 1.0) * boost / shape;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(rng);
        let v = libm::pow(1.0 + c * x, 3.0);
        if v > 0.0 && libm::log(1.0 - rng.f64()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v / shape;
        }
    }
}

/// Requests drawn from distributions.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnTraffic {
    pub arrivals: Arrivals,
    /// Requests in total.
    pub requests: u64,
    pub prompt: LengthDistribution,
    pub output: LengthDistribution,
    /// Tokens at the start of each prompt that it shares with those of its group.
    pub prefix: u32,
    /// Different prefixes.
    pub prefix_groups: u64,
    /// Different prompts, where the same ones come again and again; 0 where all differ.
    pub distinct_prompts: u64,
    pub seed: u64,
}

/// A request with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Seconds from the start of the run.
    pub time_s: f64,
    pub request: EngineRequest,
}

impl DrawnTraffic {
    /// A generator of its own for each request and use, so that the same request comes whatever happens to the others.
    fn rng(&self, number: u64, use_of: u64) -> Rng {
        Rng::with_seed(mixed(mixed(self.seed, number), use_of))
    }

    /// The request of this number.
    fn request(&self, number: u64) -> EngineRequest {
        let distinct = if self.distinct_prompts == 0 { number } else { number % self.distinct_prompts };
        let mut rng = self.rng(distinct, 1);
        let prompt = self.prompt.draw(&mut rng).max(1);
        let output = self.output.draw(&mut self.rng(number, 2)).max(1);
        let prefix = self.prefix.min(prompt);
        let group = mixed(distinct, 3) % self.prefix_groups.max(1);
        let run = |id, tokens| TokenRun { id, tokens };
        let runs = vec![
            run(mixed(4, group), prefix),
            run(mixed(5, distinct), prompt - prefix),
            run(mixed(6, number), output),
        ];
        EngineRequest::new(number, runs, prompt, output)
    }

    /// The time from the arrival before to that of this number.
    fn gap_s(&self, number: u64, per_s: f64, variation: f64) -> f64 {
        let rng = &mut self.rng(number, 0);
        if variation == 0.0 {
            return 1.0 / per_s;
        }
        if variation == 1.0 {
            return -libm::log(1.0 - rng.f64()) / per_s;
        }
        gamma(rng, 1.0 / (variation * variation)) / per_s
    }
}

/// Requests that are to come, in order of their times.
pub struct RequestSource {
    traffic: DrawnTraffic,
    /// Requests drawn so far.
    drawn: u64,
    clock_s: f64,
    /// Seconds from an answer to the next request of its client.
    pause_s: f64,
    coming: BinaryHeap<Coming>,
}

struct Coming(Arrival);

impl PartialEq for Coming {
    fn eq(&self, other: &Coming) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Coming {}
impl PartialOrd for Coming {
    fn partial_cmp(&self, other: &Coming) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Coming {
    /// The earliest is the greatest, as a heap gives the greatest first.
    fn cmp(&self, other: &Coming) -> Ordering {
        let times = other.0.time_s.total_cmp(&self.0.time_s);
        times.then(other.0.request.id.cmp(&self.0.request.id))
    }
}

impl RequestSource {
    /// The requests of `traffic`.
    pub fn new(traffic: DrawnTraffic) -> RequestSource {
        let mut source =
            RequestSource { traffic, drawn: 0, clock_s: 0.0, pause_s: 0.0, coming: BinaryHeap::new() };
        let first = match source.traffic.arrivals {
            Arrivals::Rate { .. } => 1,
            Arrivals::Clients(clients) => clients,
        };
        (0..first).for_each(|_| source.draw(0.0));
        source
    }

    /// The same, where a client's next request reaches the scheduler `pause_s` seconds after the answer before.
    #[must_use]
    pub fn pausing(self, pause_s: f64) -> RequestSource {
        RequestSource { pause_s, ..self }
    }

    /// When the next request arrives, if one does.
    pub fn next_s(&self) -> Option<f64> {
        self.coming.peek().map(|coming| coming.0.time_s)
    }

    /// The next request.
    pub fn take(&mut self) -> Option<Arrival> {
        let arrival = self.coming.pop()?.0;
        if let Arrivals::Rate { .. } = self.traffic.arrivals {
            self.draw(arrival.time_s);
        }
        Some(arrival)
    }

    /// A request was answered.
    pub fn answered(&mut self, time_s: f64) {
        if let Arrivals::Clients(_) = self.traffic.arrivals {
            self.draw(time_s + self.pause_s);
        }
    }

    fn draw(&mut self, now: f64) {
        if self.drawn == self.traffic.requests {
            return;
        }
        let number = self.drawn;
        self.drawn += 1;
        let time_s = match self.traffic.arrivals {
            Arrivals::Rate { per_s, variation } => {
                self.clock_s += self.traffic.gap_s(number, per_s, variation);
                self.clock_s
            }
            Arrivals::Clients(_) => now,
        };
        self.coming.push(Coming(Arrival { time_s, request: self.traffic.request(number) }));
    }
}

/// Requests with stated times, in order.
pub fn replayed(arrivals: Vec<Arrival>) -> RequestSource {
    let traffic = DrawnTraffic {
        arrivals: Arrivals::Clients(0),
        requests: 0,
        prompt: LengthDistribution::Fixed(1),
        output: LengthDistribution::Fixed(1),
        prefix: 0,
        prefix_groups: 1,
        distinct_prompts: 0,
        seed: 0,
    };
    let mut source = RequestSource::new(traffic);
    source.coming.extend(arrivals.into_iter().map(Coming));
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(variation: f64) -> Vec<f64> {
        let traffic = DrawnTraffic {
            arrivals: Arrivals::Rate { per_s: 4.0, variation },
            requests: 20_000,
            prompt: LengthDistribution::LogNormal { mean: 500.0, variation: 0.8 },
            output: LengthDistribution::Fixed(10),
            prefix: 0,
            prefix_groups: 1,
            distinct_prompts: 0,
            seed: 7,
        };
        let mut source = RequestSource::new(traffic);
        let mut before = 0.0;
        std::iter::from_fn(|| source.take())
            .map(|arrival| arrival.time_s - std::mem::replace(&mut before, arrival.time_s))
            .collect()
    }

    #[test]
    fn gaps_have_their_mean_and_variation() {
        for variation in [0.0, 0.5, 1.0, 2.0] {
            let gaps = gaps(variation);
            assert_eq!(gaps.len(), 20_000);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
            assert!((mean * 4.0 - 1.0).abs() < 0.04, "{variation}: mean {mean}");
            assert!(
                (variance.sqrt() / mean - variation).abs() < 0.06,
                "{variation}: {}",
                variance.sqrt() / mean
            );
        }
    }

    #[test]
    fn a_client_pauses_after_an_answer() {
        let traffic = DrawnTraffic {
            arrivals: Arrivals::Clients(1),
            requests: 2,
            prompt: LengthDistribution::Fixed(5),
            output: LengthDistribution::Fixed(5),
            prefix: 0,
            prefix_groups: 1,
            distinct_prompts: 0,
            seed: 7,
        };
        let mut source = RequestSource::new(traffic).pausing(0.5);
        assert_eq!(source.take().map(|arrival| arrival.time_s), Some(0.0));
        source.answered(2.0);
        assert_eq!(source.next_s(), Some(2.5));
    }

    #[test]
    fn lengths_have_their_mean_and_variation() {
        let lengths = LengthDistribution::LogNormal { mean: 500.0, variation: 0.8 };
        let rng = &mut Rng::with_seed(3);
        let drawn: Vec<f64> = (0..40_000).map(|_| f64::from(lengths.draw(rng))).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / drawn.len() as f64;
        assert!((mean / 500.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 0.8).abs() < 0.05, "{}", variance.sqrt() / mean);
    }
}
