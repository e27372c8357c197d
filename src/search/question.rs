//! What is asked, put together once: the model, the machine in every format pair, the terms, the aims.

use std::cmp::Ordering;

use super::capacity::DeviceCapacity;
use super::family::StrategyFamily;
use super::front_sampling::FrontSampling;
use super::point::{Idle, Point, compare, place};
use crate::cost::machine::Machine;
use crate::cost::memory::Footprint;
use crate::graph::model::ModelGraph;
use crate::graph::tensor::Role;
use crate::plan::group::{TierShape, tiers};
use crate::plan::infeasible::Infeasible;
use crate::plan::legal::LegalLimits;
use crate::plan::shard::ROLES;
use crate::quantity::datum::Datum;
use crate::quantity::num::Qty;
use crate::quantity::read::{Plain, Reading};
use crate::serving::economy::Bill;
use crate::serving::evaluate::Evaluation;
use crate::serving::terms::{Demand, Lengths, OffloadTarget, WorkloadInputs, WorkloadTerms};
use crate::spec::cluster::Cluster;
use crate::spec::format::NumberFormat;
use crate::spec::nearness::{Interval, PredictionIntervals};
use crate::spec::objective::{LatencyLimits, Metric, ObjectiveTerm};
use crate::spec::percentile::{Confidence, Percentile};
use crate::spec::runtime::{MemoryQuantiles, Runtime};

/// Weights and cache in certain formats, on the machine that computes them.
#[derive(Clone, Debug)]
pub struct Formats {
    /// Id of the weight format.
    pub weights: String,
    /// Id of the KV format.
    pub kv: String,
    /// Block of the weight format's scales, which shards may not cut.
    pub block: Option<u64>,
    /// Its figures, with their sources.
    pub machine: Machine<Datum>,
    /// How far off predictions may be.
    pub sure: Option<PredictionIntervals>,
    /// How far off what is held beside the cache may be, where that was measured.
    pub beside: Option<MemoryQuantiles>,
    plain: Machine<Qty<f64>>,
}

impl Formats {
    /// p10, p50 and p90 of the bytes that a device holds, where it was measured how far predictions are off: the cache
    /// is what it is, all beside it may be more or less.
    pub fn held(&self, memory: &Footprint<Qty<f64>>) -> Option<[f64; 3]> {
        let (cache, beside) = (memory.kv.value(), memory.total.value() - memory.kv.value());
        self.beside.as_ref().map(|known| known.quantiles.map(|ratio| cache + ratio * beside))
    }

    /// The machine in both readings.
    pub fn new(weights: &NumberFormat, kv: &NumberFormat, machine: Machine<Datum>) -> Formats {
        let plain = machine.read(&Plain);
        Formats {
            weights: weights.id.clone(),
            kv: kv.id.clone(),
            block: weights.block,
            machine,
            sure: None,
            beside: None,
            plain,
        }
    }

    /// Reads its figures again, after they were changed.
    pub fn reread(&mut self) {
        self.plain = self.machine.read(&Plain);
    }

    /// How far off predictions may be, for pools apart or not, with so many requests of a rank.
    pub fn interval(&self, split: bool, requests: u64) -> Option<&Interval> {
        self.sure.as_ref().map(|sure| sure.of(split, requests))
    }

    /// The machine as the search reads it.
    #[inline(always)]
    pub fn plain(&self) -> &Machine<Qty<f64>> {
        &self.plain
    }
}

/// When host memory may be used for what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadPolicy {
    /// Only where nothing fits without it.
    Auto,
    /// Not at all.
    Never,
    /// Always considered beside the rest.
    Always,
}

/// How much traffic is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// As much as can be carried.
    Free,
    /// Requests in flight over the whole deployment.
    InFlight(u64),
    /// Requests per second.
    Rate(f64),
}

impl Traffic {
    /// The traffic in a reading.
    pub fn demand<R: Reading>(&self, read: &R) -> Demand<Qty<R::N>> {
        use crate::quantity::count::{Count, Origin};
        use crate::quantity::unit::{COUNT, SECOND};
        match *self {
            Traffic::Free => Demand::Free,
            Traffic::InFlight(value) => Demand::InFlight(read.count(Count {
                value,
                symbol: "concurrency",
                origin: Origin::Workload("concurrency"),
            })),
            Traffic::Rate(rate) => Demand::Rate(read.datum(&Datum::stated(
                "request_rate",
                rate,
                COUNT.per(SECOND),
                "workload: rate",
            ))),
        }
    }
}

/// Everything that is asked.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The model.
    pub graph: ModelGraph,
    /// The devices.
    pub cluster: Cluster,
    /// The runtime's id and the degrees it has.
    pub runtime: (String, Vec<String>),
    /// Formats to choose among.
    pub formats: Vec<Formats>,
    /// Lengths, power, prices.
    pub stated: WorkloadInputs,
    /// The least and the most that a device may cost, by the bounds of the price that it is billed by.
    pub bill_bounds: Option<[Bill<Datum>; 2]>,
    /// How much traffic.
    pub traffic: Traffic,
    /// How sure latencies must be; the machines allow for it.
    pub risk: Confidence,
    /// Latency limits.
    pub limits: LatencyLimits,
    /// What to optimise, most important first.
    pub aims: Vec<ObjectiveTerm>,
    /// Axes of the front: those that were named, and what is optimised.
    pub axes: Vec<Metric>,
    /// Of equals in every aim the better on these comes first, so that nothing on the front dominates the answer.
    ties: Vec<ObjectiveTerm>,
    /// Every number of replicas is shown on the front: output in all was named as an axis.
    pub counts: bool,
    /// When host memory may be used.
    pub offload: OffloadPolicy,
    /// Host memory of a node, in bytes, where known.
    pub host_memory: Option<f64>,
    /// Whether prefill and decode may be split over pools.
    pub split: bool,
    /// The strategies that are looked at.
    pub family: StrategyFamily,
    /// Which disaggregated deployments the front lists.
    pub front_sampling: FrontSampling,
    shapes: Vec<TierShape>,
    room: DeviceCapacity,
    terms: WorkloadTerms<Qty<f64>>,
}

impl Problem {
    /// Puts the question together.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        graph: ModelGraph,
        cluster: Cluster,
        runtime: &Runtime,
        formats: Vec<Formats>,
        stated: WorkloadInputs,
        traffic: Traffic,
        limits: LatencyLimits,
        (aims, axes): (Vec<ObjectiveTerm>, Vec<Metric>),
    ) -> Problem {
        let terms = stated.read(&Plain);
        let split = runtime.parallelism.iter().any(|p| p == "disagg")
            && stated.lengths.osl > 1
            && cluster.devices() > 1;
        let known = |metric: &Metric| match metric {
            Metric::UsdPerMtok => stated.bill.is_some(),
            Metric::Watts | Metric::TokPerJoule => stated.draw.is_some(),
            _ => true,
        };
        let mut axes: Vec<Metric> = axes.into_iter().filter(known).collect();
        let counts = axes.contains(&Metric::OutputTokS);
        if !axes.is_empty() {
            let aimed: Vec<Metric> = aims.iter().map(|aim| aim.metric).filter(known).collect();
            aimed.into_iter().for_each(|aim| {
                if !axes.contains(&aim) {
                    axes.push(aim)
                }
            });
        }
        let ties = axes.iter().map(|&metric| ObjectiveTerm { metric, direction: metric.entry().direction });
        Problem {
            ties: ties.collect(),
            counts,
            axes,
            host_memory: cluster
                .host
                .as_ref()
                .and_then(|host| host.memory.as_ref())
                .map(|memory| memory.value),
            shapes: tiers(&cluster),
            room: DeviceCapacity::of(&cluster),
            runtime: (runtime.id.clone(), runtime.parallelism.clone()),
            offload: OffloadPolicy::Auto,
            graph,
            cluster,
            formats,
            stated,
            bill_bounds: None,
            traffic,
            limits,
            aims,
            split,
            family: StrategyFamily::Any,
            front_sampling: FrontSampling::default(),
            risk: Confidence::default(),
            terms,
        }
    }

    /// The same question of requests with other lengths.
    pub fn with_lengths(&self, lengths: Lengths) -> Problem {
        let stated = WorkloadInputs { lengths, ..self.stated.clone() };
        Problem { terms: stated.read(&Plain), stated, ..self.clone() }
    }

    /// The same question of another part of the requests.
    pub fn with_tail(&self, percentile: Percentile) -> Problem {
        let stated = WorkloadInputs { tail: Some(percentile), ..self.stated.clone() };
        Problem { terms: stated.read(&Plain), stated, ..self.clone() }
    }

    /// The same question paid for otherwise.
    pub fn billed(&self, bill: Bill<Datum>) -> Problem {
        let stated = WorkloadInputs { bill: Some(bill), ..self.stated.clone() };
        Problem { terms: stated.read(&Plain), stated, ..self.clone() }
    }

    /// The same question on other devices of the same kind.
    pub fn on(&self, cluster: Cluster) -> Problem {
        let shapes = tiers(&cluster);
        let room = DeviceCapacity::of(&cluster);
        let mut question = Problem { cluster, room, shapes: shapes.clone(), ..self.clone() };
        question.formats.iter_mut().for_each(|pair| {
            pair.machine.shapes.clone_from(&shapes);
            pair.reread();
        });
        question
    }

    /// The terms as the search reads them.
    #[inline(always)]
    pub fn terms(&self) -> &WorkloadTerms<Qty<f64>> {
        &self.terms
    }

    /// The tiers of the interconnect.
    #[inline(always)]
    pub fn tiers(&self) -> &[TierShape] {
        &self.shapes
    }

    /// How many instances there is room for.
    #[inline(always)]
    pub fn room(&self) -> &DeviceCapacity {
        &self.room
    }

    /// What a plan with these weights must respect.
    pub fn legal_limits(&self, formats: &Formats) -> LegalLimits<'_> {
        let roles: [bool; ROLES] = formats.machine.quantised;
        debug_assert!(!roles[Role::Norm as usize]);
        LegalLimits {
            devices: self.cluster.devices(),
            domain: self.cluster.domain(),
            block: self.cluster.block(),
            scales: formats.block.map(|block| (block, roles)),
            runtime: Some((&self.runtime.0, &self.runtime.1)),
        }
    }

    /// A context that the model was not made for.
    ///
    /// # Errors
    /// Prompt and answer are longer than the model states.
    pub fn context_fits(&self) -> Result<(), Infeasible> {
        let tokens = self.stated.lengths.isl + self.stated.lengths.osl;
        match self.graph.max_context {
            Some(limit) if tokens > limit => Err(Infeasible::ContextTooLong { tokens, limit }),
            _ => Ok(()),
        }
    }

    /// The axes without those that order candidates as others do: rented devices cost the same an
    /// hour whatever they do, so dollars per token and tokens per device are one axis; E2E follows from TTFT and TPOT.
    pub fn distinct_axes(&self) -> Vec<Metric> {
        let rented = matches!(self.stated.bill, Some(Bill::Rented(_)));
        let has = |metric| self.axes.contains(&metric);
        let follows = |axis: &Metric| match axis {
            Metric::UsdPerMtok => rented && has(Metric::OutputTokSPerDevice),
            Metric::E2e => has(Metric::Ttft) && has(Metric::Tpot),
            Metric::OutputTokSPerUser => has(Metric::Tpot),
            _ => false,
        };
        self.axes.iter().copied().filter(|axis| !follows(axis)).collect()
    }

    /// Which of two points is the better answer: by the aims, then by the axes of the front.
    #[inline(always)]
    pub fn compare(&self, a: &Point, b: &Point) -> Ordering {
        compare(a, b, &self.aims).then_with(|| compare(a, b, &self.ties))
    }

    /// Whether `a` is the better answer.
    #[inline(always)]
    pub fn ahead(&self, a: &Point, b: &Point) -> bool {
        self.compare(a, b).is_lt()
    }

    /// The limit that `metric` has, in seconds.
    pub fn limit(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Ttft => self.limits.ttft,
            Metric::Tpot => self.limits.tpot,
            Metric::E2e => self.limits.e2e,
            _ => None,
        }
    }

    /// The first latency limit that a point misses.
    pub fn missed(&self, point: &Point) -> Option<Infeasible> {
        self.misses([Metric::Ttft, Metric::Tpot, Metric::E2e].map(|metric| (metric, point[place(metric)])))
            .next()
    }

    /// The latency limits that a pool of a deployment misses.
    pub fn missed_in_pools(&self, evaluation: &Evaluation<Qty<f64>>) -> impl Iterator<Item = Infeasible> {
        let slowest = &evaluation.slowest;
        let values = [(Metric::Ttft, slowest.ttft), (Metric::Tpot, slowest.tpot), (Metric::E2e, slowest.e2e)];
        self.misses(values.map(|(metric, value)| (metric, value.value())))
    }

    fn misses(&self, latencies: [(Metric, f64); 3]) -> impl Iterator<Item = Infeasible> {
        latencies.into_iter().filter_map(|(metric, value)| {
            let limit = self.limit(metric)?;
            (value > limit).then_some(Infeasible::LimitMissed { metric, value, limit })
        })
    }

    /// The largest share of a latency limit that a point uses; above 1 it misses one.
    pub fn filled(&self, point: &Point) -> f64 {
        let share = |metric| Some(point[place(metric)] / self.limit(metric)?);
        [Metric::Ttft, Metric::Tpot, Metric::E2e].into_iter().filter_map(share).fold(0.0, f64::max)
    }

    /// Power that `devices` draw at least, and whether energy is paid for apart.
    pub fn idle(&self, devices: u64) -> Idle {
        let watts = self.stated.draw.as_ref().map_or(f64::NAN, |draw| draw.tdp.value * draw.idle.value);
        let owned = matches!(self.stated.bill, Some(Bill::Owned(_)));
        Idle { watts: watts * devices as f64, owned }
    }

    /// What host memory may take, tried when the devices are too small.
    pub fn offloads(&self) -> &'static [OffloadTarget] {
        &[OffloadTarget::Layers, OffloadTarget::Experts, OffloadTarget::Kv]
    }
}
