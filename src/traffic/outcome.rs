//! The results of a run: its requests, one by one and as distributions.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::engine::EngineRequest;
use crate::spec::objective::LatencyLimits;

/// The life of one request, in seconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestRecord {
    /// Its number, in order of arrival.
    pub id: u64,
    pub arrived_s: f64,
    /// When its first step began.
    pub admitted_s: f64,
    pub first_token_s: f64,
    pub last_token_s: f64,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens of its output.
    pub output: u32,
    /// Tokens of its prompt that were in the cache when it was admitted first.
    pub cached_tokens: u32,
    /// Of these, those that came from host memory, and from the store behind it.
    pub host_tokens: u32,
    pub store_tokens: u32,
    /// Time from the start of their load to its end.
    pub load_s: f64,
    pub preemptions: u32,
    /// Time in the queue after a preemption.
    pub preempted_s: f64,
    /// Time from the end of its prefill until a worker that decodes has its cache.
    pub transfer_s: f64,
    /// How often it was lost with a replica that failed, and sent again.
    pub retries: u32,
    /// Whether it arrived while a replica that had failed was starting again.
    pub in_recovery: bool,
}

impl RequestRecord {
    /// A request that has just arrived.
    pub fn arrived(request: &EngineRequest, time_s: f64) -> RequestRecord {
        RequestRecord {
            id: request.id,
            arrived_s: time_s,
            admitted_s: time_s,
            first_token_s: time_s,
            last_token_s: time_s,
            prompt: request.prompt,
            output: request.output,
            cached_tokens: 0,
            host_tokens: 0,
            store_tokens: 0,
            load_s: 0.0,
            preemptions: 0,
            preempted_s: 0.0,
            transfer_s: 0.0,
            retries: 0,
            in_recovery: false,
        }
    }

    /// The same request as its client sees it: a front end has it for `front_end_s` seconds before the scheduler.
    pub fn at_client(self, front_end_s: f64) -> RequestRecord {
        RequestRecord {
            admitted_s: self.admitted_s + front_end_s,
            first_token_s: self.first_token_s + front_end_s,
            last_token_s: self.last_token_s + front_end_s,
            ..self
        }
    }

    /// Time to first token.
    pub fn ttft_s(&self) -> f64 {
        self.first_token_s - self.arrived_s
    }

    /// Mean time per output token after the first; `None` of a single token.
    pub fn tpot_s(&self) -> Option<f64> {
        (self.output > 1).then(|| (self.last_token_s - self.first_token_s) / f64::from(self.output - 1))
    }

    /// End-to-end time.
    pub fn e2e_s(&self) -> f64 {
        self.last_token_s - self.arrived_s
    }

    /// Whether it is within all of these limits.
    pub fn is_within(&self, limits: &LatencyLimits) -> bool {
        let holds = |seconds: f64, limit: Option<f64>| limit.is_none_or(|most| seconds <= most);
        holds(self.ttft_s(), limits.ttft)
            && holds(self.tpot_s().unwrap_or(0.0), limits.tpot)
            && holds(self.e2e_s(), limits.e2e)
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    Answered,
    /// No cache holds it, or it got an error in place of an answer.
    Refused,
    /// Its client gave it up.
    GivenUp,
    /// It was lost in more faults than the router sends it again for.
    Failed,
}

impl RequestOutcome {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            RequestOutcome::Answered => "answered",
            RequestOutcome::Refused => "refused",
            RequestOutcome::GivenUp => "given_up",
            RequestOutcome::Failed => "failed",
        }
    }
}

/// The state of a run at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelinePoint {
    /// Seconds from the start of the run.
    pub time_s: f64,
    /// Requests that run, over all replicas.
    pub running: u64,
    /// Requests that wait.
    pub waiting: u64,
    /// Share of the KV cache in use, over all replicas.
    pub kv_used: f64,
    /// Output tokens so far.
    pub output_tokens: u64,
    /// Replicas that serve; absent where their number does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
}

/// The states of a run, at least this often and at most twice as often.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTimeline {
    points: Vec<TimelinePoint>,
    every_s: f64,
}

/// Points of a timeline, at most.
const MOST_POINTS: usize = 400;

impl RunTimeline {
    /// Whether a point at `time_s` is due.
    pub fn is_due(&self, time_s: f64) -> bool {
        self.points.last().is_none_or(|last| time_s >= last.time_s + self.every_s)
    }

    /// Adds a point; where there are many, every second one goes.
    pub fn add(&mut self, point: TimelinePoint) {
        self.points.push(point);
        if self.points.len() < MOST_POINTS {
            return;
        }
        let mut even = false;
        self.points.retain(|_| {
            even = !even;
            even
        });
        self.every_s = point.time_s / (MOST_POINTS / 2) as f64;
    }

    /// Its points, in order.
    pub fn points(&self) -> &[TimelinePoint] {
        &self.points
    }
}

/// Values by size: mean and percentiles of as many as there are, in constant memory.
///
/// Buckets grow by 0.1 %, so that a percentile is right within half of that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// From the lowest bucket with a value to the highest, and the number of the lowest.
    buckets: VecDeque<u64>,
    lowest: i32,
    count: u64,
    sum: f64,
}

/// Buckets of a factor of e.
const RESOLUTION: f64 = 1000.0;

/// The bucket of a value.
fn bucket_of(value: f64) -> i32 {
    libm::round(libm::log(value.max(1e-9)) * RESOLUTION) as i32
}

impl Distribution {
    /// Counts `value` this often.
    pub fn add(&mut self, value: f64, times: u64) {
        if times == 0 {
            return;
        }
        *self.bucket(bucket_of(value)) += times;
        self.count += times;
        self.sum += value * times as f64;
    }

    /// A bucket, with all between it and those that are there.
    fn bucket(&mut self, bucket: i32) -> &mut u64 {
        if self.buckets.is_empty() {
            self.lowest = bucket;
        }
        while bucket < self.lowest {
            self.buckets.push_front(0);
            self.lowest -= 1;
        }
        let place = (bucket - self.lowest) as usize;
        if place >= self.buckets.len() {
            self.buckets.resize(place + 1, 0);
        }
        &mut self.buckets[place]
    }

    /// Counts all values of another one too.
    pub fn add_all(&mut self, other: &Distribution) {
        (other.lowest..).zip(&other.buckets).for_each(|(bucket, times)| *self.bucket(bucket) += times);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Values that are not above `value`, within the width of a bucket.
    pub fn at_most(&self, value: f64) -> u64 {
        let most = bucket_of(value);
        (self.lowest..)
            .zip(&self.buckets)
            .take_while(|(bucket, _)| *bucket <= most)
            .map(|(_, times)| times)
            .sum()
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The value that the fraction `part` does not exceed; `None` of nothing.
    pub fn percentile(&self, part: f64) -> Option<f64> {
        let rank = libm::ceil(part * self.count as f64).max(1.0) as u64;
        let mut seen = 0;
        for (bucket, times) in (self.lowest..).zip(&self.buckets) {
            seen += times;
            if seen >= rank {
                return Some(libm::exp(f64::from(bucket) / RESOLUTION));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_end_is_in_the_times_to_tokens_and_not_between_them() {
        let request = EngineRequest::new(0, vec![], 10, 5);
        let (admitted_s, first_token_s, last_token_s) = (1.25, 1.5, 3.5);
        let arrived = RequestRecord::arrived(&request, 1.0);
        let one = RequestRecord { admitted_s, first_token_s, last_token_s, ..arrived };
        let seen = one.at_client(0.25);
        assert_eq!((seen.ttft_s(), seen.e2e_s(), seen.tpot_s()), (0.75, 2.75, Some(0.5)));
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let mut all = Distribution::default();
        let values: Vec<f64> = (1..=1000).map(|value| f64::from(value) * 0.37).collect();
        values.iter().for_each(|value| all.add(*value, 1));
        for (part, place) in [(0.5, 499), (0.9, 899), (0.99, 989), (1.0, 999)] {
            let found = all.percentile(part).unwrap();
            assert!((found / values[place] - 1.0).abs() < 6e-4, "{part}: {found} for {}", values[place]);
        }
        assert_eq!(all.count(), 1000);
        assert!((all.mean().unwrap() / (0.37 * 500.5) - 1.0).abs() < 1e-12);
        assert_eq!(Distribution::default().percentile(0.5), None);
    }
}
