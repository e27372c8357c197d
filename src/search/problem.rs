//! The complete problem: the model, the machine in every format pair, the workload, the objective.

use crate::spec::offload::OffloadPolicy;
use std::cmp::Ordering;
use std::sync::Arc;

use super::candidate::Candidate;
use super::capacity::DeviceCapacity;
use super::error_margin::{ErrorMargin, FormatMargins};
use super::family::StrategyFamily;
use super::front_sampling::FrontSampling;
use super::plan_space::PlanSpace;
use super::point::{Idle, Point, compare, place};
use crate::cost::machine::Machine;
use crate::cost::memory::Footprint;
use crate::graph::model::ModelGraph;
use crate::graph::tensor::TensorRole;
use crate::plan::group::{TierShape, tiers};
use crate::plan::infeasible::Infeasible;
use crate::plan::legal::LegalLimits;
use crate::plan::locality::lcm;
use crate::plan::parallel::Phase;
use crate::plan::rules::RuntimeRules;
use crate::plan::scale_blocks::BlockLimits;
use crate::plan::shard::ROLES;
use crate::quantity::datum::Datum;
use crate::quantity::num::Qty;
use crate::quantity::read::{Plain, Reading};
use crate::serving::economy::Bill;
use crate::serving::evaluate::{Evaluation, Slowest};
use crate::serving::terms::{Demand, Lengths, WorkloadInputs, WorkloadTerms};
use crate::spec::cluster::Cluster;
use crate::spec::format::{NumberFormat, ScaleBlock};
use crate::spec::nearness::{ErrorClass, Interval, PredictionIntervals};
use crate::spec::objective::{LatencyLimits, Metric, MetricInput, ObjectiveTerm};
use crate::spec::odds::PointLatencies;
use crate::spec::percentile::{Confidence, OddsLevel, Percentile};
use crate::spec::role::Role;
use crate::spec::runtime::{MemoryQuantiles, Runtime};

/// A weight format and a KV format, with the machine figures for them.
#[derive(Clone, Debug)]
pub struct Formats {
    pub weights: String,
    /// Id of the weight format of prefill workers, where it is another: then every plan is disaggregated.
    pub prefill_weights: Option<String>,
    pub kv: String,
    /// Weights of the weight format that share a scale; a shard must not cut such a block.
    pub block: Option<ScaleBlock>,
    /// Machine figures with their sources.
    pub machine: Machine<Datum>,
    pub intervals: Option<PredictionIntervals>,
    /// The errors that the SLOs allow for, by these intervals and the confidence of the problem.
    pub margins: FormatMargins,
    /// Quantiles of memory other than the KV cache, where measured.
    pub memory_quantiles: Option<MemoryQuantiles>,
    plain: Machine<Qty<f64>>,
}

impl Formats {
    /// p10, p50 and p90 of the bytes held per device, where prediction errors were measured. The KV cache is exact;
    /// everything else has the interval.
    pub fn memory_interval(&self, memory: &Footprint<Qty<f64>>) -> Option<[f64; 3]> {
        let (cache, rest) = (memory.kv.value(), memory.total.value() - memory.kv.value());
        self.memory_quantiles.as_ref().map(|known| known.quantiles.map(|ratio| cache + ratio * rest))
    }

    pub fn new(weights: &NumberFormat, kv: &NumberFormat, machine: Machine<Datum>) -> Formats {
        let plain = machine.read(&Plain);
        Formats {
            weights: weights.id.clone(),
            prefill_weights: None,
            kv: kv.id.clone(),
            block: weights.block,
            machine,
            intervals: None,
            margins: FormatMargins::NONE,
            memory_quantiles: None,
            plain,
        }
    }

    /// The same with prefill workers in another weight format, of which `machine` has the figures.
    pub fn with_prefill(mut self, weights: &NumberFormat, machine: Machine<Datum>) -> Formats {
        self.prefill_weights = Some(weights.id.clone());
        // A plan cuts the blocks of neither.
        self.block = [self.block, weights.block].into_iter().flatten().reduce(|one, other| ScaleBlock {
            outputs: lcm(one.outputs, other.outputs),
            inputs: lcm(one.inputs, other.inputs),
        });
        self.machine.prefill = Some(Box::new(machine));
        self.reread();
        self
    }

    /// Id of the weight format of the workers of a role.
    pub fn weights_of(&self, role: Role) -> &str {
        match (role, &self.prefill_weights) {
            (Role::Prefill, Some(weights)) => weights,
            _ => &self.weights,
        }
    }

    /// Reads the figures again after a change.
    pub fn reread(&mut self) {
        self.plain = self.machine.read(&Plain);
    }

    /// The prediction interval of a class of deployments, at `requests` per attention rank.
    pub fn interval(&self, class: ErrorClass, requests: u64) -> Option<&Interval> {
        self.intervals.as_ref().map(|sure| sure.at(class, requests))
    }

    /// The machine as the search reads it.
    #[inline(always)]
    pub fn plain(&self) -> &Machine<Qty<f64>> {
        &self.plain
    }
}

const DISAGGREGATION: &str = "disagg";

/// The share of a concurrency that one of several equal units carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The concurrency of all units.
    pub requests: u64,
    pub units: u64,
}

impl From<u64> for Share {
    fn from(requests: u64) -> Share {
        Share { requests, units: 1 }
    }
}

/// Traffic of the problem: unlimited, a concurrency of the whole deployment or its share in a unit of it, or requests per
/// second.
pub type Traffic = Demand<Share, f64>;

impl Traffic {
    /// The share of one of `times` equal units; `None` where a unit would have no request.
    pub fn shared(self, times: u64) -> Option<Traffic> {
        match self {
            Traffic::Free => Some(Traffic::Free),
            Traffic::InFlight(Share { requests, units }) => {
                let units = units * times;
                (units <= requests).then(|| {
                    Traffic::InFlight(match requests.is_multiple_of(units) {
                        true => Share::from(requests / units),
                        false => Share { requests, units },
                    })
                })
            }
            Traffic::Rate(rate) => Some(Traffic::Rate(rate / times as f64)),
        }
    }

    /// The concurrency, where it is given and no fraction.
    pub fn requests(&self) -> Option<u64> {
        self.share().filter(|share| share.units == 1).map(|share| share.requests)
    }

    fn share(&self) -> Option<Share> {
        match *self {
            Traffic::InFlight(share) => Some(share),
            Traffic::Free | Traffic::Rate(_) => None,
        }
    }

    /// Mean concurrency, where it is given.
    pub fn in_flight(&self) -> Option<f64> {
        self.share().map(|share| share.requests as f64 / share.units as f64)
    }

    /// The slots that a given concurrency needs, where it is given.
    pub fn slots(&self) -> Option<u64> {
        self.share().map(|share| share.requests.div_ceil(share.units))
    }

    /// The traffic in a reading.
    pub fn demand<R: Reading>(&self, read: &R) -> Demand<Qty<R::N>> {
        use crate::quantity::count::{Count, Origin};
        use crate::quantity::unit::{COUNT, SECOND};
        let requests = |value| {
            read.count(Count { value, symbol: "concurrency", origin: Origin::Workload("concurrency") })
        };
        match *self {
            Traffic::Free => Demand::Free,
            Traffic::InFlight(Share { requests: value, units: 1 }) => Demand::InFlight(requests(value)),
            Traffic::InFlight(Share { requests: value, units }) => {
                Demand::InFlight(requests(value) / read.count(Count::plan("units", units)))
            }
            Traffic::Rate(rate) => Demand::Rate(read.datum(&Datum::stated(
                "request_rate",
                rate,
                COUNT.per(SECOND),
                "workload: rate",
            ))),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Problem {
    pub graph: Arc<ModelGraph>,
    pub cluster: Cluster,
    pub runtime: RuntimeRules,
    /// Whether heterogeneous workers may share the requests of a pool: their router needs weights.
    pub custom_router: bool,
    /// Maximum requests per attention rank, where the runtime's settings limit them.
    pub most_sequences: Option<u64>,
    /// The pairs of formats; problems that differ in other things share them.
    pub formats: Arc<Vec<Formats>>,
    /// Lengths, power, prices.
    pub workload: WorkloadInputs,
    /// Minimum and maximum bill of a device, from the bounds of its price.
    pub bill_bounds: Option<[Bill<Datum>; 2]>,
    pub traffic: Traffic,
    /// Confidence at which the SLOs must hold; metrics do not depend on it.
    confidence: Confidence,
    pub limits: LatencyLimits,
    /// Upper ends of prediction intervals, as multiples of TTFT and TPOT: an SLO that still holds there is likelier met.
    pub margins: Vec<ErrorMargin>,
    /// Objective terms, most important first.
    pub objective: Vec<ObjectiveTerm>,
    /// Axes of the Pareto front: the stated metrics, or those of the objective's front and the objective.
    pub axes: Vec<Metric>,
    /// The axes were stated: the optimum is on the front only where nothing dominates it on them.
    pub stated_axes: bool,
    /// Tie-breaking terms for equal objectives, so that nothing on the front dominates the result.
    ties: Vec<ObjectiveTerm>,
    /// The front lists every replica count: total throughput was requested as an axis.
    pub counts: bool,
    /// Whether tensors may be offloaded to host memory.
    pub offload: OffloadPolicy,
    /// Host memory of a node in bytes, where known.
    pub host_memory: Option<f64>,
    /// Whether prefill and decode may be disaggregated.
    pub split: bool,
    pub space: PlanSpace,
    pub family: StrategyFamily,
    /// Any deployment will do: the search ends with the first.
    pub any: bool,
    pub front_sampling: FrontSampling,
    shapes: Vec<TierShape>,
    capacity: DeviceCapacity,
    terms: WorkloadTerms<Qty<f64>>,
}

impl Problem {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        graph: Arc<ModelGraph>,
        cluster: Cluster,
        runtime: &Runtime,
        formats: Vec<Formats>,
        workload: WorkloadInputs,
        traffic: Traffic,
        limits: LatencyLimits,
        (objective, axes): (Vec<ObjectiveTerm>, Vec<Metric>),
    ) -> Problem {
        let terms = workload.read(&Plain);
        let runtime = RuntimeRules::of(runtime, None, &graph, &cluster);
        let split = runtime.has(DISAGGREGATION) && workload.lengths.osl > 1 && cluster.devices() > 1;
        let known = |metric: &Metric| match metric.entry().needs {
            MetricInput::Nothing => true,
            MetricInput::Price => workload.bill.is_some(),
            MetricInput::Power => workload.power_draw.is_some(),
        };
        let mut axes: Vec<Metric> = axes.into_iter().filter(known).collect();
        let counts = axes.contains(&Metric::OutputTokS);
        if !axes.is_empty() {
            let metrics: Vec<Metric> = objective.iter().map(|term| term.metric).filter(known).collect();
            for metric in metrics {
                if !axes.contains(&metric) {
                    axes.push(metric)
                }
            }
        }
        let ties = axes.iter().map(|&metric| ObjectiveTerm { metric, direction: metric.entry().direction });
        Problem {
            ties: ties.collect(),
            counts,
            axes,
            stated_axes: false,
            host_memory: cluster
                .host
                .as_ref()
                .and_then(|host| host.memory.as_ref())
                .map(|memory| memory.value),
            shapes: tiers(&cluster),
            front_sampling: FrontSampling::of(cluster.devices()),
            capacity: DeviceCapacity::of(&cluster),
            runtime,
            custom_router: false,
            most_sequences: None,
            offload: OffloadPolicy::Auto,
            graph,
            cluster,
            formats: Arc::new(formats),
            workload,
            bill_bounds: None,
            traffic,
            limits,
            margins: vec![],
            objective,
            split,
            space: PlanSpace::default(),
            family: StrategyFamily::Any,
            any: false,
            confidence: Confidence::Median,
            terms,
        }
    }

    /// The same problem by a runtime in another version, or with its rules lifted.
    pub fn with_runtime(self, runtime: RuntimeRules) -> Problem {
        let several = self.workload.lengths.osl > 1 && self.cluster.devices() > 1;
        Problem { split: runtime.has(DISAGGREGATION) && several, runtime, ..self }
    }

    /// The same problem with a front over `stated` alone, and not over the objective too.
    pub fn over_axes(mut self, stated: &[Metric]) -> Problem {
        self.axes.retain(|axis| stated.contains(axis));
        Problem { stated_axes: true, ..self }
    }

    pub fn with_lengths(&self, lengths: Lengths) -> Problem {
        let stated = WorkloadInputs { lengths, ..self.workload.clone() };
        Problem { terms: stated.read(&Plain), workload: stated, ..self.clone() }
    }

    pub fn with_tail(&self, percentile: Percentile) -> Problem {
        let stated = WorkloadInputs { tail: Some(percentile), ..self.workload.clone() };
        Problem { terms: stated.read(&Plain), workload: stated, ..self.clone() }
    }

    /// The same problem over the plans of measured kinds alone, or over all.
    pub fn with_measured_only(self, measured_only: bool) -> Problem {
        Problem { space: PlanSpace { measured_only, ..self.space }, ..self }
    }

    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// The same problem with SLOs that hold at another confidence.
    pub fn at_confidence(mut self, confidence: Confidence) -> Problem {
        for pair in Arc::make_mut(&mut self.formats) {
            pair.margins = FormatMargins::of(pair.intervals.as_ref(), confidence);
        }
        Problem { margins: error_margins(&self.formats, confidence), confidence, ..self }
    }

    pub fn with_limits(&self, limits: LatencyLimits) -> Problem {
        Problem { limits, ..self.clone() }
    }

    pub fn with_traffic(&self, traffic: Traffic) -> Problem {
        Problem { traffic, ..self.clone() }
    }

    /// The same problem, of which only the best value of one metric is needed.
    pub fn optimizing(&self, metric: Metric) -> Problem {
        let term = ObjectiveTerm { metric, direction: metric.entry().direction };
        Problem { axes: vec![], objective: vec![term], ..self.clone() }
    }

    pub fn with_bill(&self, bill: Bill<Datum>) -> Problem {
        let stated = WorkloadInputs { bill: Some(bill), ..self.workload.clone() };
        Problem { terms: stated.read(&Plain), workload: stated, ..self.clone() }
    }

    /// The same problem on another number of the same devices.
    pub fn with_cluster(&self, cluster: Cluster) -> Problem {
        let (shapes, capacity) = (tiers(&cluster), DeviceCapacity::of(&cluster));
        let runtime = self.runtime.clone().on(&cluster);
        let mut problem = Problem { cluster, capacity, runtime, shapes: shapes.clone(), ..self.clone() };
        Arc::make_mut(&mut problem.formats).iter_mut().for_each(|pair| {
            pair.machine.shapes.clone_from(&shapes);
            pair.reread();
        });
        problem
    }

    #[inline(always)]
    pub fn terms(&self) -> &WorkloadTerms<Qty<f64>> {
        &self.terms
    }

    #[inline(always)]
    pub fn tiers(&self) -> &[TierShape] {
        &self.shapes
    }

    #[inline(always)]
    pub fn capacity(&self) -> &DeviceCapacity {
        &self.capacity
    }

    pub fn legal_limits<'a>(&'a self, formats: &'a Formats) -> LegalLimits<'a> {
        let mut roles: [bool; ROLES] = formats.machine.quantised;
        for (role, quantised) in roles.iter_mut().zip(formats.machine.of(Phase::Prefill).quantised) {
            *role |= quantised;
        }
        debug_assert!(!roles[TensorRole::Norm as usize]);
        LegalLimits {
            devices: self.cluster.devices(),
            domain: self.cluster.domain(),
            block: self.cluster.block(),
            scales: formats.block.map(|block| BlockLimits { block, roles, format: &formats.weights }),
            runtime: (!self.runtime.lifted).then_some((&self.runtime, formats.kv.as_str())),
        }
    }

    /// Checks that pools which prefill and decode have one weight format.
    pub fn one_format(&self, candidate: &Candidate) -> Result<(), Infeasible> {
        let formats = &self.formats[candidate.formats];
        let aggregated = candidate.pools.iter().any(|pool| pool.role == Role::Aggregated);
        match &formats.prefill_weights {
            Some(prefill) if aggregated => {
                Err(Infeasible::TwoFormats { prefill: prefill.clone(), decode: formats.weights.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Checks the context length.
    ///
    /// # Errors
    /// Prompt and output exceed the longest request that the server takes, or one of them that of the model.
    pub fn context_fits(&self) -> Result<(), Infeasible> {
        let tokens = self.workload.lengths.isl + self.workload.lengths.osl;
        let stated = self.max_model_len();
        let longest = stated.map_or(tokens, |stated| stated.max(tokens));
        match (stated, self.graph.max_context) {
            (Some(limit), _) if tokens > limit => Err(Infeasible::BeyondMaxModelLen { tokens, limit }),
            (_, Some(limit)) if longest > limit => Err(Infeasible::ContextTooLong { tokens: longest, limit }),
            _ => Ok(()),
        }
    }

    /// Tokens of the longest request that the server takes, where they are stated.
    pub fn max_model_len(&self) -> Option<u64> {
        self.workload.longest.map(|longest| longest.tokens)
    }

    /// The longest request that any server takes: that of the model, or a stated one.
    pub fn longest_taken(&self) -> Option<u64> {
        [self.graph.max_context, self.max_model_len()].into_iter().flatten().min()
    }

    /// Whether only the optimum is needed.
    pub fn only_best(&self) -> bool {
        self.axes.is_empty() && !self.custom_router
    }

    /// The axes without redundant ones: rented devices have a constant hourly cost, and E2E follows from TTFT and TPOT.
    pub fn distinct_axes(&self) -> Vec<Metric> {
        let rented = matches!(self.workload.bill, Some(Bill::Rented(_)));
        let has = |metric| self.axes.contains(&metric);
        let follows = |axis: &Metric| match axis {
            Metric::UsdPerMtok => rented && has(Metric::OutputTokSPerDevice),
            Metric::E2e => has(Metric::Ttft) && has(Metric::Tpot),
            Metric::OutputTokSPerUser => has(Metric::Tpot),
            _ => false,
        };
        self.axes.iter().copied().filter(|axis| !follows(axis)).collect()
    }

    /// Orders two points, better first: by the objective, then by the axes.
    #[inline(always)]
    pub fn compare(&self, a: &Point, b: &Point) -> Ordering {
        self.by_objective(a, b).then_with(|| compare(a, b, &self.ties))
    }

    /// Orders two points by the objective, better first. Ties of its first term go to what meets the SLOs with more of the
    /// prediction error, then to its other terms.
    #[inline(always)]
    pub fn by_objective(&self, a: &Point, b: &Point) -> Ordering {
        let (first, others) = self.objective.split_at(self.objective.len().min(1));
        compare(a, b, first)
            .then_with(|| self.margins_met(b).cmp(&self.margins_met(a)))
            .then_with(|| compare(a, b, others))
    }

    /// How many of the margins leave the latencies of a point within their SLOs. Lower latencies never meet fewer.
    pub fn margins_met(&self, point: &Point) -> usize {
        self.margins.iter().filter(|margin| self.missed(point, **margin).is_none()).count()
    }

    #[inline(always)]
    pub fn is_better(&self, a: &Point, b: &Point) -> bool {
        self.compare(a, b).is_lt()
    }

    /// Value of the first objective term at a point, where known.
    pub fn objective_value(&self, point: &Point) -> Option<f64> {
        let value = point[place(self.objective.first()?.metric)];
        value.is_finite().then_some(value)
    }

    /// The SLO of `metric`, in seconds.
    pub fn limit(&self, metric: Metric) -> Option<f64> {
        self.limits.of(metric)
    }

    /// The first latency SLO that a point misses with this margin.
    #[inline(always)]
    pub fn missed(&self, point: &Point, margin: ErrorMargin) -> Option<Infeasible> {
        self.misses(latencies(point), margin).next()
    }

    /// The latency SLOs that a pool of a deployment misses.
    pub fn missed_in_pools(
        &self,
        evaluation: &Evaluation<Qty<f64>>,
        margin: ErrorMargin,
    ) -> impl Iterator<Item = Infeasible> {
        self.misses(slowest_latencies(evaluation), margin)
    }

    /// Each that is missed; where none is, the odds of all at once that are too small.
    fn misses(&self, predicted: PointLatencies, margin: ErrorMargin) -> impl Iterator<Item = Infeasible> {
        let confidence = self.confidence;
        let each = margin.latencies(predicted).into_iter().filter_map(move |(metric, value)| {
            let limit = self.limit(metric)?;
            (value > limit).then_some(Infeasible::LimitMissed { metric, value, limit, confidence })
        });
        let mut each = each.peekable();
        let all = match each.peek() {
            Some(_) => None,
            None => margin.odds_missed(predicted, &self.limits),
        };
        let all = all.map(|(odds, required)| {
            let filled = margin.filled(predicted, &self.limits);
            Infeasible::OddsMissed { odds, required, filled }
        });
        each.chain(all)
    }

    /// The factor of the SLOs at which a point would just meet them with this margin; above 1 they are missed.
    pub fn filled(&self, point: &Point, margin: ErrorMargin) -> f64 {
        margin.filled(latencies(point), &self.limits)
    }

    /// Minimum power of `devices` devices, and whether energy is billed separately.
    pub fn idle(&self, devices: u64) -> Idle {
        let watts =
            self.workload.power_draw.as_ref().map_or(f64::NAN, |draw| draw.tdp.value * draw.idle.value);
        let owned = matches!(self.workload.bill, Some(Bill::Owned(_)));
        Idle { watts: watts * devices as f64, owned }
    }
}

fn latencies(point: &Point) -> PointLatencies {
    let at = |metric| point[place(metric)];
    PointLatencies { ttft: at(Metric::Ttft), tpot: at(Metric::Tpot), e2e: at(Metric::E2e) }
}

/// The latencies of the slowest pool.
pub fn slowest_latencies(evaluation: &Evaluation<Qty<f64>>) -> PointLatencies {
    let Slowest { ttft, tpot, e2e } = evaluation.slowest;
    PointLatencies { ttft: ttft.value(), tpot: tpot.value(), e2e: e2e.value() }
}

/// The upper ends of the prediction intervals of aggregated and of disaggregated serving, the widest of all formats;
/// none where every feasible deployment is as likely to meet its SLOs as there.
fn error_margins(formats: &[Formats], confidence: Confidence) -> Vec<ErrorMargin> {
    if matches!(confidence, Confidence::Odds(level) if level >= OddsLevel::P90) {
        return vec![];
    }
    let sure: Vec<&PredictionIntervals> = formats.iter().filter_map(|pair| pair.intervals.as_ref()).collect();
    let widest = |of: fn(&PredictionIntervals) -> &Interval| {
        let ends = sure.iter().map(|known| ErrorMargin::p90(of(known)));
        ends.fold(ErrorMargin::NONE, ErrorMargin::wider)
    };
    vec![widest(|known| &known.aggregated), widest(|known| &known.disaggregated)]
}
