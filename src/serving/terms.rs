//! What is asked of every request, what devices cost, and what one instance is loaded with.

use super::economy::{Bill, PowerDraw};
use super::tail::Tail;
use crate::quantity::count::{Count, Origin};
use crate::quantity::datum::Datum;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::COUNT;
use crate::spec::percentile::Percentile;

/// What is asked of every request, and what devices cost.
#[derive(Clone, Debug)]
pub struct WorkloadTerms<T> {
    /// Prompt tokens.
    pub isl: T,
    /// Output tokens.
    pub osl: T,
    /// Prompt tokens that are cached already.
    pub prefix: T,
    /// Power of a device, where known.
    pub draw: Option<PowerDraw<T>>,
    /// How a device is paid for, where known.
    pub bill: Option<Bill<T>>,
    /// Rate of the link to host memory, where there is one.
    pub host_link: Option<T>,
    /// Probability that a token guessed ahead is accepted, those before it given.
    pub acceptance: Option<T>,
    /// Which part of the requests latencies are told of, where these come at random.
    pub tail: Option<Tail<T>>,
}

/// The lengths of a request, as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Prompt tokens that are cached already.
    pub prefix: u64,
}

/// Terms that do not depend on a reading: lengths and data.
#[derive(Clone, Debug)]
pub struct WorkloadInputs {
    /// The lengths.
    pub lengths: Lengths,
    /// Power of a device.
    pub draw: Option<PowerDraw<Datum>>,
    /// How a device is paid for.
    pub bill: Option<Bill<Datum>>,
    /// Rate of the link to host memory.
    pub host_link: Option<Datum>,
    /// Images of a request and the tokens of each, which are among those of the prompt.
    pub images: Option<(Count, Count)>,
    /// Probability that a token guessed ahead is accepted.
    pub acceptance: Option<Datum>,
    /// Which part of the requests latencies are told of, where these come at random.
    pub tail: Option<Percentile>,
}

impl WorkloadInputs {
    /// Requests of these lengths and nothing else.
    pub fn of(lengths: Lengths) -> WorkloadInputs {
        WorkloadInputs {
            lengths,
            draw: None,
            bill: None,
            host_link: None,
            images: None,
            acceptance: None,
            tail: None,
        }
    }

    /// Tokens of the prompt: those of the text, and those of the images.
    fn prompt<R: Reading>(&self, read: &R) -> Qty<R::N> {
        let text = |value| read.count(Count { value, symbol: "isl", origin: Origin::Workload("isl") });
        let Some((images, each)) = self.images else { return text(self.lengths.isl) };
        let seen = images.value.saturating_mul(each.value);
        let written = text(self.lengths.isl.saturating_sub(seen));
        (written + read.count(images) * read.count(each)).is(&PROMPT)
    }

    /// The terms in a reading.
    pub fn read<R: Reading>(&self, read: &R) -> WorkloadTerms<Qty<R::N>> {
        let count = |symbol, value| read.count(Count { value, symbol, origin: Origin::Workload(symbol) });
        WorkloadTerms {
            isl: self.prompt(read),
            osl: count("osl", self.lengths.osl),
            prefix: count("prefix", self.lengths.prefix),
            draw: self.draw.as_ref().map(|draw| draw.map(|datum| read.datum(datum))),
            bill: self.bill.as_ref().map(|bill| bill.read(read)),
            host_link: self.host_link.as_ref().map(|datum| read.datum(datum)),
            acceptance: self.acceptance.as_ref().map(|datum| read.datum(datum)),
            tail: self.tail.map(|percentile| {
                let part = Datum::stated("percentile", percentile.part(), COUNT, "workload: percentile");
                Tail { percentile, part: read.datum(&part) }
            }),
        }
    }
}

/// What is kept in host memory where the device is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OffloadTarget {
    /// Nothing.
    Nothing,
    /// Whole layers' weights: read over the host link at every step.
    Layers,
    /// Routed experts: those touched are read over the host link.
    Experts,
    /// Keys and values: read over the host link at every decode step.
    Kv,
}

/// The load of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceLoad {
    /// Requests in flight of one instance.
    pub concurrency: u64,
    /// What does not fit on the devices, if anything.
    pub offload: OffloadTarget,
}

/// How much traffic there is.
#[derive(Clone, Copy, Debug)]
pub enum Demand<T> {
    /// As much as the deployment takes: every slot is filled again at once.
    Free,
    /// So many requests in flight over the whole deployment.
    InFlight(T),
    /// So many requests per second.
    Rate(T),
}

crate::formulas! {
    PROMPT {
        symbol: "prompt_tokens",
        unit: COUNT,
        why: "every image takes its place in the prompt as the tokens that its encoder yields",
        cite: "Liu et al. 2023 (LLaVA), 4.1",
    }
}
