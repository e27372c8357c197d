//! A fleet as in its file: traffic in buckets of equal lengths, and offers of systems with prices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::limits::{ARRIVAL, AVAILABLE, BUCKETS, ISL, Limit, OFFERS, OSL, RATE, REQUESTS, USD_PER_HOUR};
use super::objective::{LatencyLimits, is_zero};
use super::price::PriceBasis;

/// A fleet file. Absent fields have defaults, which the result lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetFile {
    /// The model of buckets without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Traffic.
    pub buckets: Vec<TrafficBucket>,
    /// Offers of systems.
    pub offers: Vec<PricedOffer>,
    /// Latency SLOs of every request.
    pub limits: LatencyLimits,
}

/// Requests of equal lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficBucket {
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Requests per second.
    pub rate: f64,
    /// Cached prompt tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prefix: u64,
    /// The model of these requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Payment terms of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PricingTerms {
    /// On demand, by the hour.
    OnDemand,
    /// Reserved, by the hour for a long term.
    Reserved,
    /// Spot, by the hour with preemption.
    Spot,
    /// Bought: purchase price over the amortization period, and electricity.
    Owned,
}

impl PricingTerms {
    pub fn name(self) -> &'static str {
        match self {
            PricingTerms::OnDemand => "on-demand",
            PricingTerms::Reserved => "reserved",
            PricingTerms::Spot => "spot",
            PricingTerms::Owned => "owned",
        }
    }

    pub fn basis(self) -> PriceBasis {
        match self {
            PricingTerms::OnDemand | PricingTerms::Reserved | PricingTerms::Spot => PriceBasis::Rented,
            PricingTerms::Owned => PriceBasis::Owned,
        }
    }
}

/// A system on offer, at one price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PricedOffer {
    /// The system, in the syntax of `--hardware`.
    pub hardware: String,
    /// Payment terms; on the price basis of all offers if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<PricingTerms>,
    /// USD per hour of the whole system; the catalogue's price if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_hour: Option<f64>,
    /// Number of available systems; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<u64>,
}

impl FleetFile {
    /// Checks the constraints that the types do not express.
    pub fn check(&self) -> Result<(), Error> {
        BUCKETS.check_whole("buckets", self.buckets.len() as u64)?;
        OFFERS.check_whole("offers", self.offers.len() as u64)?;
        self.limits.check()?;
        for (at, bucket) in self.buckets.iter().enumerate() {
            let key = |name: &str| format!("buckets[{at}].{name}");
            ISL.check_whole(&key("isl"), bucket.isl)?;
            OSL.check_whole(&key("osl"), bucket.osl)?;
            RATE.check(&key("rate"), bucket.rate)?;
            if bucket.prefix >= bucket.isl {
                let fix = "a request has at least one token of its own";
                let found = bucket.prefix.to_string();
                return Err(Error::new(key("prefix"), found, "fewer than the prompt has", fix));
            }
        }
        for (at, offer) in self.offers.iter().enumerate() {
            let key = |name: &str| format!("offers[{at}].{name}");
            offer.usd_per_hour.map_or(Ok(()), |usd| USD_PER_HOUR.check(&key("usd_per_hour"), usd))?;
            offer.available.map_or(Ok(()), |number| AVAILABLE.check_whole(&key("available"), number))?;
        }
        Ok(())
    }
}

/// A request of a trace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct TracedRequest {
    /// Arrival time, in seconds.
    pub arrival: f64,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Identities of the prompt's pieces of [`CONTENT_TOKENS`] tokens, where the trace has them: equal ones after equal
    /// ones are equal tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<u64>,
}

impl TracedRequest {
    /// Whether its time and its lengths are within their limits.
    ///
    /// # Errors
    /// One is not.
    pub fn check(&self) -> Result<(), Error> {
        let numbers = [
            ("arrival", &ARRIVAL, self.arrival),
            ("isl", &ISL, self.isl as f64),
            ("osl", &OSL, self.osl as f64),
        ];
        let within = |(key, limit, value): (&str, &Limit, f64)| limit.check(key, value);
        let found = numbers.into_iter().try_for_each(within);
        found.map_err(|fault| Error { fix: "remove such requests".into(), ..fault })
    }
}

/// When the requests of a trace are sent, in seconds and in its order: the first at once, all `speed` times as fast.
pub fn sending_times(trace: &[TracedRequest], speed: f64) -> impl Iterator<Item = f64> + '_ {
    let first = trace.iter().map(|request| request.arrival).fold(f64::INFINITY, f64::min);
    trace.iter().map(move |request| (request.arrival - first) / speed)
}

/// Tokens of a piece of a prompt with an identity, in traces of Mooncake.
pub const CONTENT_TOKENS: u32 = 512;

/// Buckets of a trace: lengths are rounded up to powers of two, so that no request is underestimated; arrivals are
/// spread evenly between the first and the last.
///
/// # Errors
/// Fewer than two distinct arrival times, or a length is 0.
pub fn buckets(trace: &[TracedRequest]) -> Result<Vec<TrafficBucket>, Error> {
    REQUESTS.check_whole("rows", trace.len() as u64)?;
    let mut counts: std::collections::BTreeMap<(u64, u64), u64> = std::collections::BTreeMap::new();
    for request in trace {
        request.check()?;
        let up = |tokens: u64, limit: &Limit| tokens.next_power_of_two().min(limit.most_whole());
        *counts.entry((up(request.isl, &ISL), up(request.osl, &OSL))).or_default() += 1;
    }
    let arrivals = trace.iter().map(|request| request.arrival);
    let (first, last) = arrivals.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), t| (a.min(t), b.max(t)));
    let span = last - first;
    // A span of less than a nanosecond is a rounding error, not a duration.
    if !(span.is_finite() && span > 1e-9) {
        let found = format!("{} requests at a single time", trace.len());
        return Err(Error::new("arrival", found, "requests at two or more times", "use a longer trace"));
    }
    // The last request ends the time span of the others.
    let rate = |count: u64| count as f64 / span * (trace.len() - 1) as f64 / trace.len() as f64;
    Ok(counts
        .into_iter()
        .map(|((isl, osl), count)| TrafficBucket { isl, osl, rate: rate(count), prefix: 0, model: None })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_becomes_buckets_that_hold_its_lengths_and_its_rate() {
        let request = |arrival: f64, isl: u64, osl: u64| TracedRequest {
            arrival,
            isl,
            osl,
            ..TracedRequest::default()
        };
        let trace = [request(0.0, 1000, 100), request(1.0, 900, 128), request(4.0, 20, 7)];
        let found = buckets(&trace).unwrap();
        let lengths: Vec<(u64, u64)> = found.iter().map(|bucket| (bucket.isl, bucket.osl)).collect();
        assert_eq!(lengths, [(32, 8), (1024, 128)]);
        let all: f64 = found.iter().map(|bucket| bucket.rate).sum();
        assert!((all - 0.5).abs() < 1e-12, "two requests follow the first within 4 s");
        assert!(buckets(&trace[..1]).is_err());
        assert!(buckets(&[request(0.0, 0, 1), request(1.0, 1, 1)]).unwrap_err().key == "isl");
    }

    #[test]
    fn a_faulty_fleet_names_the_key() {
        let bucket = TrafficBucket { isl: 8, osl: 8, rate: 1.0, prefix: 0, model: None };
        let wrong = [
            TrafficBucket { rate: -1.0, ..bucket.clone() },
            TrafficBucket { isl: 0, ..bucket.clone() },
            TrafficBucket { prefix: 8, ..bucket.clone() },
        ];
        for (wrong, key) in wrong.into_iter().zip(["rate", "isl", "prefix"]) {
            let file = FleetFile { buckets: vec![bucket.clone(), wrong], ..FleetFile::default() };
            assert_eq!(file.check().unwrap_err().key, format!("buckets[1].{key}"));
        }
    }
}
