//! Inputs of an evaluation: the workload, the cost of devices, and the load of one instance.

use super::economy::{Bill, Facility, PowerDraw};
use super::tail::Tail;
use crate::quantity::count::{Count, Origin};
use crate::quantity::datum::Datum;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::COUNT;
use crate::spec::offload::Offload;
use crate::spec::percentile::Percentile;

/// The workload and the cost of devices, in one reading.
#[derive(Clone, Debug)]
pub struct WorkloadTerms<T> {
    /// Prompt tokens.
    pub isl: T,
    /// Output tokens.
    pub osl: T,
    /// Prompt tokens that are in the prefix cache.
    pub prefix: T,
    /// The prefixes that the runtime stores once for all their requests, if it does.
    pub shared: Option<SharedPrefixes<T>>,
    /// The longest request that the server takes, where it is stated.
    pub longest: Option<LongestRequest<T>>,
    /// Power of a device, where known.
    pub power_draw: Option<PowerDraw<T>>,
    /// Payment model of a device, where known.
    pub bill: Option<Bill<T>>,
    /// Power on top of that of a device, where known.
    pub facility: Option<Facility<T>>,
    /// Time of a day in which the hardware serves, where known.
    pub serving_time: Option<T>,
    /// Bandwidth of the link to host memory, where there is one.
    pub host_link: Option<T>,
    /// Acceptance rate of a draft token, given that all earlier ones were accepted.
    pub acceptance: Option<T>,
    /// Percentile of the latencies, under random arrivals.
    pub tail: Option<Tail<T>>,
}

/// The longest request that a server takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongestRequest<T> {
    /// Its tokens, prompt and output.
    pub tokens: T,
    /// Whether the cache of every request is allocated for that length; else the cache holds one at least.
    pub every_slot: bool,
}

/// Prompt prefixes that several requests have in common.
#[derive(Clone, Copy, Debug)]
pub struct SharedPrefixes<T> {
    pub tokens: T,
    /// Different ones.
    pub groups: T,
}

/// The lengths of a request, as integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Prompt tokens that are in the prefix cache.
    pub prefix: u64,
}

/// Terms that do not depend on a reading: lengths and data.
#[derive(Clone, Debug, Default)]
pub struct WorkloadInputs {
    pub lengths: Lengths,
    /// Different prefixes, where the runtime stores each once for all its requests.
    pub shared_prefixes: Option<u64>,
    /// The longest request that the server takes, where it is stated.
    pub longest: Option<LongestRequest<u64>>,
    /// Power of a device.
    pub power_draw: Option<PowerDraw<Datum>>,
    /// Payment model of a device.
    pub bill: Option<Bill<Datum>>,
    /// Power on top of that of a device.
    pub facility: Option<Facility<Datum>>,
    /// Time of a day in which the hardware serves.
    pub serving_time: Option<Datum>,
    /// Bandwidth of the link to host memory.
    pub host_link: Option<Datum>,
    /// Images per request, and tokens per image; the tokens are part of the prompt.
    pub images: Option<(Count, Count)>,
    /// Acceptance rate of a draft token.
    pub acceptance: Option<Datum>,
    /// Percentile of the latencies, under random arrivals.
    pub tail: Option<Percentile>,
}

impl WorkloadInputs {
    /// Requests of these lengths, without further terms.
    pub fn of(lengths: Lengths) -> WorkloadInputs {
        WorkloadInputs { lengths, ..WorkloadInputs::default() }
    }

    /// Prompt tokens: text tokens and image tokens.
    fn prompt<R: Reading>(&self, read: &R) -> Qty<R::N> {
        let text = |value| read.count(Count { value, symbol: "isl", origin: Origin::Workload("isl") });
        let Some((images, each)) = self.images else { return text(self.lengths.isl) };
        let seen = images.value.saturating_mul(each.value);
        let written = text(self.lengths.isl.saturating_sub(seen));
        read.result_of("workload", || (written + read.count(images) * read.count(each)).is(&PROMPT))
    }

    pub fn read<R: Reading>(&self, read: &R) -> WorkloadTerms<Qty<R::N>> {
        let count = |symbol, value| read.count(Count { value, symbol, origin: Origin::Workload(symbol) });
        let prefix = count("prefix", self.lengths.prefix);
        WorkloadTerms {
            isl: self.prompt(read),
            osl: count("osl", self.lengths.osl),
            prefix,
            shared: self
                .shared_prefixes
                .filter(|_| prefix.exceeds(Qty::from(0.0)))
                .map(|groups| SharedPrefixes { tokens: prefix, groups: count("prefix_groups", groups) }),
            longest: self.longest.map(|LongestRequest { tokens, every_slot }| LongestRequest {
                tokens: count("max_model_len", tokens),
                every_slot,
            }),
            power_draw: self.power_draw.as_ref().map(|draw| draw.map(|datum| read.datum(datum))),
            bill: self.bill.as_ref().map(|bill| bill.read(read)),
            facility: self.facility.as_ref().map(|of| of.map(|datum| read.datum(datum))),
            serving_time: self.serving_time.as_ref().map(|datum| read.datum(datum)),
            host_link: self.host_link.as_ref().map(|datum| read.datum(datum)),
            acceptance: self.acceptance.as_ref().map(|datum| read.datum(datum)),
            tail: self.tail.map(|percentile| {
                let part = Datum::stated("percentile", percentile.part(), COUNT, "workload: percentile");
                let deviations = Datum::stated("deviations", percentile.deviations(), COUNT, QUANTILE);
                Tail { percentile, part: read.datum(&part), deviations: read.datum(&deviations) }
            }),
        }
    }
}

/// Source of the quantiles.
const QUANTILE: &str =
    "standard normal quantile of the percentile: NIST/SEMATECH, e-Handbook of Statistical Methods, 1.3.6.7.1";

/// The load of one replica or worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceLoad {
    /// Concurrency per replica or worker.
    pub concurrency: u64,
    /// The offloaded data, if any.
    pub offload: Offload,
}

/// The traffic: as it is stated, or in a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand<C, R = C> {
    /// Saturation: every free slot is filled at once.
    Free,
    /// A fixed concurrency over the whole deployment.
    InFlight(C),
    /// A request rate, in requests per second.
    Rate(R),
}

crate::formulas! {
    PROMPT {
        symbol: "prompt_tokens",
        unit: COUNT,
        why: "an encoded image takes its number of tokens in the prompt",
        cite: "Liu et al. 2023 (LLaVA), 4.1",
    }
}
