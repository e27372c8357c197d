//! Reports the deployments of one problem. What they have in common is computed once: instances, prompts, the rules
//! of plans.

use crate::spec::offload::Offload;
use crate::spec::role::Role;
use std::sync::OnceLock;

use super::answer::{fits, memory, missed, plan};
use super::bounds::{PriceEnd, price_bounds, price_ends};
use super::breakdown::DecodeClasses;
use super::breakdown::{Breakdown, alone, shown};
use super::evidence::PlanEvidence;
use super::notation::notation_by;
use super::number::gib;
use super::pool::divided_role;
use super::result::{ContextBound, Feasibility, Intervals, MetricsReport, ReportedDeployment};
use super::robustness::SloOdds;
use crate::cost::memory::Footprint;
use crate::plan::infeasible::Infeasible;
use crate::plan::legal::check;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolPlan, in_flight};
use crate::search::hosting::{free_host_memory, on_node, refused};
use crate::search::prepared::{MadeOnce, PreparedInstance, PreparedInstances};
use crate::search::problem::{Problem, Traffic};
use crate::search::shape::{SpillFault, largest_part, longest_request, shape, spill_fault, usual_cut};
use crate::serving::admission::residency;
use crate::serving::evaluate::Evaluation;
use crate::serving::step::CostObserver;

pub struct Reporter<'q> {
    problem: &'q Problem,
    instances: PreparedInstances<'q>,
    /// The ends of the price range, where the price has bounds.
    prices: OnceLock<Option<[PriceEnd; 2]>>,
    /// Whether each plan in each format pair is legal.
    legal: MadeOnce<(usize, ParallelPlan), Result<(), Infeasible>>,
    /// The first cut by the number of pipeline stages, the only degree that it depends on.
    cuts: MadeOnce<u64, Vec<u32>>,
    /// Requests per attention rank that fit with offloading.
    offloaded: MadeOnce<(usize, (Offload, u64), ParallelPlan, Vec<u32>), Option<u64>>,
}

impl<'q> Reporter<'q> {
    pub fn new(problem: &'q Problem) -> Self {
        Reporter {
            problem,
            instances: PreparedInstances::new(problem),
            prices: OnceLock::new(),
            legal: MadeOnce::default(),
            cuts: MadeOnce::default(),
            offloaded: MadeOnce::default(),
        }
    }

    pub fn problem(&self) -> &'q Problem {
        self.problem
    }

    pub fn instances(&self, candidate: &Candidate) -> Vec<PreparedInstance> {
        self.instances.of(candidate)
    }

    /// Evaluates a candidate. `watch` sees no prefill step.
    pub fn evaluate(
        &self,
        candidate: &Candidate,
        prepared: &[PreparedInstance],
        watch: &mut impl CostObserver<f64>,
    ) -> Evaluation<Qty<f64>> {
        self.instances.evaluate(candidate, prepared, watch)
    }

    pub fn breakdown(&self, candidate: &Candidate) -> Breakdown {
        let alone = alone(candidate);
        Breakdown::on(self.problem, &alone, &self.instances(&alone))
    }

    /// The report of a candidate. One that cannot run has no metrics.
    pub fn deployment(&self, candidate: &Candidate) -> ReportedDeployment {
        let problem = self.problem;
        let formats = &problem.formats[candidate.formats];
        let devices = candidate.devices();
        let bare = ReportedDeployment {
            plan: plan(candidate),
            notation: notation_by(problem, candidate, |plan| self.first_cut(plan)).to_string(),
            weight_format: formats.weights.clone(),
            prefill_weight_format: formats.prefill_weights.clone(),
            kv_format: formats.kv.clone(),
            concurrency: candidate.concurrency(&problem.traffic) as f64,
            devices,
            idle_devices: problem.cluster.devices().saturating_sub(devices),
            feasibility: Feasibility::Illegal,
            violations: self.forbidden(candidate).iter().map(Infeasible::to_string).collect(),
            memory: None,
            bottleneck: None,
            metrics: None,
            context_bound: None,
            intervals: None,
            slo_odds: None,
            evidence: Some(PlanEvidence::of(problem, candidate)),
            capacity: None,
            price_bounds: None,
            chosen: false,
        };
        if !bare.violations.is_empty() {
            return bare;
        }
        let prepared = self.instances(candidate);
        let mut classes = DecodeClasses::default();
        let evaluation = self.evaluate(candidate, &prepared, &mut classes);
        let held = self.held(candidate, &prepared, &evaluation);
        let short = self.shortages(candidate, (&prepared, &held), evaluation.spilled);
        let feasibility = match evaluation.spilled {
            _ if !short.is_empty() => Feasibility::InsufficientMemory,
            Some(_) => Feasibility::WithOffload,
            None => Feasibility::InVram,
        };
        let runs = short.is_empty();
        // A plan that memory does not hold streams nothing from the host.
        let spilled = evaluation.spilled.filter(|_| runs || candidate.offload.streamed().is_none());
        let metrics = runs.then(|| MetricsReport::of(&evaluation.metrics));
        let interval = candidate.interval(problem);
        let at_rate = matches!(problem.traffic, Traffic::Rate(_));
        let intervals = interval.zip(metrics.as_ref());
        let prices = self.prices.get_or_init(|| price_ends(problem));
        ReportedDeployment {
            feasibility,
            concurrency: if runs { in_flight(problem, &evaluation) } else { bare.concurrency },
            violations: if runs { missed(problem, candidate, &evaluation) } else { short },
            memory: Some(memory(&evaluation.memory, spilled, problem, candidate)),
            bottleneck: runs.then(|| self.bottleneck(candidate, classes)),
            intervals: intervals.map(|(interval, metrics)| Intervals::of(interval, metrics, at_rate)),
            slo_odds: SloOdds::of(problem, candidate, &evaluation).filter(|_| runs),
            context_bound: runs.then(|| {
                let tokens = evaluation.metrics.max_context.value();
                ContextBound::of(tokens, problem.graph.max_context, problem.max_model_len())
            }),
            price_bounds: prices.as_ref().filter(|_| runs).map(|ends| price_bounds(ends, &evaluation)),
            metrics,
            ..bare
        }
    }

    /// The class with most of the decode step that a breakdown shows; `classes` is that of all decode steps.
    fn bottleneck(&self, candidate: &Candidate, classes: DecodeClasses) -> String {
        let shown = shown(candidate);
        let all = candidate.pools.iter().all(|pool| shown.iter().any(|one| std::ptr::eq(*one, pool)));
        let classes = if all {
            classes
        } else {
            let (alone, mut classes) = (alone(candidate), DecodeClasses::default());
            self.evaluate(&alone, &self.instances(&alone), &mut classes);
            classes
        };
        classes.largest().name().to_owned()
    }

    /// The pipeline cut that a plan has where none is given.
    fn first_cut(&self, plan: &ParallelPlan) -> Vec<u32> {
        self.cuts.get(plan.pp, || usual_cut(&self.problem.graph, plan.pp))
    }

    /// Rules that a candidate violates regardless of load and memory.
    pub fn forbidden(&self, candidate: &Candidate) -> Vec<Infeasible> {
        let problem = self.problem;
        let plans = candidate.pools.iter().map(|pool| self.legal(candidate.formats, &pool.plan));
        let kv = &problem.formats[candidate.formats].kv;
        let split = candidate.is_disaggregated() && !problem.runtime.has("disagg");
        let unsupported = |degree: &'static str| {
            Err(Infeasible::NotSupported { runtime: problem.runtime.id.clone(), degree })
        };
        let streamed = candidate.offload.streamed().filter(|part| !problem.runtime.streams.contains(part));
        let rules = [
            problem.runtime.check(kv, &candidate.workers()),
            if split { unsupported("disaggregation") } else { Ok(()) },
            problem.one_format(candidate),
            streamed.map_or(Ok(()), |part| unsupported(part.in_host_memory())),
        ];
        let rules = rules.into_iter().chain(plans).chain([problem.context_fits()]);
        let mut broken: Vec<Infeasible> = Vec::new();
        for reason in rules.filter_map(Result::err).chain(not_hosted(problem, candidate)) {
            if !broken.contains(&reason) {
                broken.push(reason);
            }
        }
        broken
    }

    fn legal(&self, formats: usize, plan: &ParallelPlan) -> Result<(), Infeasible> {
        self.legal.get((formats, *plan), || {
            check(&self.problem.graph, plan, &self.problem.legal_limits(&self.problem.formats[formats]))
        })
    }

    /// Memory of the fullest device of each pool, in order; the evaluation has that of the first that decodes.
    pub fn held(
        &self,
        candidate: &Candidate,
        prepared: &[PreparedInstance],
        evaluation: &Evaluation<Qty<f64>>,
    ) -> Vec<Footprint<Qty<f64>>> {
        let (machine, terms) = (self.problem.formats[candidate.formats].plain(), self.problem.terms());
        let [_, decoding] = shown(candidate);
        let held = |(pool, prepared): (&PoolPlan, &PreparedInstance)| match pool.role {
            Role::Prefill => {
                residency(&Plain, &prepared.instance, Phase::Prefill, machine, terms, pool.concurrency)
            }
            _ if std::ptr::eq(pool, decoding) => evaluation.memory,
            _ => residency(&Plain, &prepared.instance, Phase::Decode, machine, terms, pool.concurrency),
        };
        candidate.pools.iter().zip(prepared).map(held).collect()
    }

    /// Whether host memory holds the part that exceeds the devices of a pool.
    fn spills(&self, candidate: &Candidate, pool: &PoolPlan) -> bool {
        let (formats, offload) = (candidate.formats, candidate.offload);
        if offload == Offload::Nothing {
            return false;
        }
        let shared = (offload, on_node(self.problem, pool.replicas));
        let fits = self.offloaded.get((formats, shared, pool.plan, pool.stages.clone()), || {
            shape(self.problem, formats, &self.instances.bare(pool), shared).ok().map(|shape| shape.fits)
        });
        fits.is_some_and(|fits| pool.concurrency.div_ceil(pool.plan.dp) <= fits)
    }

    /// Host memory that the part of a deployment in it exceeds.
    fn host_shortage(&self, there: Option<Qty<f64>>) -> String {
        let needed = gib(there.map_or(0.0, Qty::value));
        format!("{needed} needed in host memory, {} usable", gib(free_host_memory(self.problem)))
    }

    /// Why host memory does not take what exceeds the devices of a pool; empty where nothing is streamed from it.
    fn not_spilled(&self, candidate: &Candidate, pool: &PoolPlan, held: &Footprint<Qty<f64>>) -> String {
        let streamed = candidate.offload.streamed().is_some();
        let shared = (candidate.offload, on_node(self.problem, pool.replicas));
        let fault = spill_fault(self.problem, held, shared, &pool.plan).filter(|_| streamed);
        match fault {
            None => String::new(),
            Some(SpillFault::UnknownHost) => "; host memory or the link to it is unknown".to_owned(),
            Some(SpillFault::TooFewMovable(bytes)) => {
                format!("; at most {} of it may lie in host memory", gib(bytes))
            }
            Some(SpillFault::HostMemory { needed, usable }) => {
                format!(
                    "; {} in host memory for all devices of a host, of which {} are usable",
                    gib(needed),
                    gib(usable)
                )
            }
        }
    }

    /// The memory shortage of every pool that does not fit; `there` are the bytes in host memory.
    fn shortages(
        &self,
        candidate: &Candidate,
        (prepared, held): (&[PreparedInstance], &[Footprint<Qty<f64>>]),
        there: Option<Qty<f64>>,
    ) -> Vec<String> {
        let shortage = |((pool, held), prepared): ((&PoolPlan, &Footprint<Qty<f64>>), &PreparedInstance)| {
            let whose = divided_role(pool.role, "", " pool: ");
            let (needed, usable) = (held.total.value(), held.usable.value());
            if matches!(candidate.offload, Offload::Host(_)) && fits(held) {
                let words = || self.host_shortage(there);
                return (!self.spills(candidate, pool)).then(words);
            }
            (!fits(held) && !self.spills(candidate, pool)).then(|| {
                let phase = if pool.role == Role::Prefill { Phase::Prefill } else { Phase::Decode };
                let (of, load) = ((&*prepared.instance, phase), pool.concurrency);
                if let Some(why) = longest_request(self.problem, candidate.formats, of, load) {
                    return format!("{whose}{why}");
                }
                format!(
                    "{whose}{} needed on the fullest device, {} usable: {} short (mostly {}){}",
                    gib(needed),
                    gib(usable),
                    gib(needed - usable),
                    largest_part(held),
                    self.not_spilled(candidate, pool, held)
                )
            })
        };
        candidate.pools.iter().zip(held).zip(prepared).filter_map(shortage).collect()
    }
}

/// Why a pool cannot have its part in host memory.
fn not_hosted(problem: &Problem, candidate: &Candidate) -> impl Iterator<Item = Infeasible> {
    candidate.pools.iter().filter_map(|pool| match candidate.offload {
        Offload::Host(part) => {
            let many = on_node(problem, pool.replicas) > 1;
            let why = "replicas on one host share its processor: one replica per node";
            let many = many.then_some(Infeasible::NotHosted { why });
            refused(problem, candidate.formats, &pool.plan, part).or(many)
        }
        Offload::Nothing | Offload::Streamed(_) => None,
    })
}
