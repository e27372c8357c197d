//! Random deployments of shipped models on shipped systems: what the properties are tried on.

use mantile::spec::offload::{Offload, OffloadPart};
use mantile::spec::role::Role;
use std::fmt;
use std::sync::LazyLock;

use mantile::plan::enumerate::enumerate;
use mantile::plan::legal::{LegalLimits, check, has_experts};
use mantile::plan::parallel::ParallelPlan;
use mantile::search::candidate::{Candidate, PoolPlan};
use mantile::search::problem::Problem;
use mantile::search::shape::cuts;
use mantile::spec::image::ImageSize;
use mantile::spec::percentile::{Confidence, OddsLevel, Percentile};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::ask::{ask, on};

/// A deployment and the question it answers.
pub struct Case {
    /// What is asked.
    pub problem: Problem,
    /// What is deployed.
    pub candidate: Candidate,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { graph, cluster, runtime, workload: stated, traffic, .. } = &self.problem;
        let formats = &self.problem.formats[self.candidate.formats];
        writeln!(
            f,
            "{} with {} layers on {} by {}",
            graph.model_type, graph.layers.value, cluster.id, runtime.id
        )?;
        writeln!(f, "{} weights, {} cache, {:?}, {traffic:?}", formats.weights, formats.kv, stated.lengths)?;
        write!(f, "offload {:?}, {:#?}", self.candidate.offload, self.candidate.pools)
    }
}

/// How pools share the work.
#[derive(Clone, Copy, Debug)]
enum Pools {
    One,
    Mixed,
    Split,
    Unlike,
}

/// What is stated of the traffic.
#[derive(Clone, Copy, Debug)]
enum Traffic {
    Free,
    InFlight(u64),
    Rate(f64),
}

/// What a case is drawn from.
#[derive(Clone, Debug)]
pub struct Draw {
    names: [Index; 5],
    plans: [Index; 2],
    cut: Index,
    lengths: (u64, u64),
    prefix: f64,
    concurrency: [u64; 2],
    replicas: [u64; 2],
    traffic: Traffic,
    offload: Offload,
    pools: Pools,
    images: Option<(u64, u64, u64)>,
    percentile: Percentile,
    risk: Confidence,
    guesses: Option<u64>,
}

/// Whole numbers of every size up to `2^bits`.
fn sizes(bits: u32) -> impl Strategy<Value = u64> {
    (0..bits).prop_flat_map(|bit| (1u64 << bit)..(2u64 << bit))
}

/// Every kind of case.
pub fn draws() -> impl Strategy<Value = Draw> {
    let traffic = prop_oneof![
        2 => Just(Traffic::Free),
        1 => sizes(10).prop_map(Traffic::InFlight),
        1 => (0.01..100.0).prop_map(Traffic::Rate),
    ];
    let offload = prop_oneof![
        3 => Just(Offload::Nothing),
        1 => Just(Offload::Streamed(OffloadPart::Layers)),
        1 => Just(Offload::Streamed(OffloadPart::Experts)),
        1 => Just(Offload::Streamed(OffloadPart::Kv)),
    ];
    let pools = prop_oneof![4 => Just(Pools::One), 1 => Just(Pools::Mixed), 2 => Just(Pools::Split), 1 => Just(Pools::Unlike)];
    let prefix = prop_oneof![Just(0.0), 0.0..1.0];
    let names = any::<[Index; 5]>();
    let choices = (names, any::<[Index; 2]>(), any::<Index>());
    let images = prop_oneof![5 => Just(None), 1 => (1u64..5, 1u64..3000, 1u64..3000).prop_map(Some)];
    let load = ((sizes(17), sizes(13)), prefix, [sizes(11), sizes(11)], [1u64..5, 1u64..5]);
    let percentile = prop::sample::select(&Percentile::ALL[..]);
    let risk = prop_oneof![3 => Just(Confidence::Median), 1 => Just(Confidence::Odds(OddsLevel::P90))];
    let guesses = prop_oneof![3 => Just(None), 1 => (1u64..6).prop_map(Some)];
    let sure = (percentile, risk, guesses);
    (choices, load, traffic, offload, (pools, images), sure).prop_map(
        |(choices, load, traffic, offload, (pools, images), sure)| Draw {
            percentile: sure.0,
            risk: sure.1,
            guesses: sure.2,
            names: choices.0,
            plans: choices.1,
            cut: choices.2,
            lengths: load.0,
            prefix: load.1,
            concurrency: load.2,
            replicas: load.3,
            traffic,
            offload,
            pools,
            images,
        },
    )
}

static NAMES: LazyLock<[Vec<String>; 3]> = LazyLock::new(|| {
    let catalog = Catalog::default();
    let mut names = [CatalogKind::Models, CatalogKind::Systems, CatalogKind::Runtimes]
        .map(|kind| catalog.entries(kind).into_keys().collect::<Vec<_>>());
    // Systems whose devices lack a figure are refused before anything runs.
    names[1].retain(|system| catalog.hardware(system).is_ok());
    names
});

/// Devices of an instance at most: more of the same kind would only take longer.
const MOST_DEVICES: u64 = 64;

impl Draw {
    /// The question: the first model from the one drawn that the system's runtimes run at all.
    fn question(&self) -> Problem {
        let [models, systems, runtimes] = &*NAMES;
        let system = &systems[self.names[1].index(systems.len())];
        let (isl, osl) = (self.lengths.0, self.lengths.1.max(if self.split() { 2 } else { 1 }));
        let (concurrency, rate) = match self.traffic {
            Traffic::Free => (None, None),
            Traffic::InFlight(requests) => (Some(requests), None),
            Traffic::Rate(rate) => (None, Some(rate)),
        };
        let from = |names: &Vec<String>, drawn: Index| {
            let first = drawn.index(names.len());
            names.iter().cycle().skip(first).take(names.len()).cloned().collect::<Vec<_>>()
        };
        for model in from(models, self.names[0]) {
            for runtime in from(runtimes, self.names[2]) {
                let scenario = Scenario {
                    runtime: Some(runtime),
                    weight_format: Some("any".into()),
                    kv_format: Some("any".into()),
                    isl: Some(isl),
                    osl: Some(osl),
                    images: self.images.map(|(images, ..)| images),
                    image_size: self.images.map(|(_, width, height)| ImageSize { width, height }),
                    prefix: Some(((isl - 1) as f64 * self.prefix) as u64),
                    concurrency,
                    rate,
                    percentile: rate.map(|_| self.percentile),
                    ..on(&model, system)
                };
                // A model may guess for itself, where it has no module for it.
                let draft = |draft: &str| Scenario {
                    draft: Some(draft.to_owned()),
                    draft_tokens: self.guesses,
                    acceptance: Some(0.75),
                    ..scenario.clone()
                };
                let sure = |scenario: Scenario| Scenario { risk: Some(self.risk), ..scenario };
                let guessing = self.guesses.map(|_| [draft("mtp"), draft(&model)]).into_iter().flatten();
                let all = guessing.chain([scenario.clone()]).flat_map(|one| [sure(one.clone()), one]);
                if let Some(problem) = all.map(|scenario| ask(&scenario)).find_map(Result::ok) {
                    return problem;
                }
            }
        }
        panic!("no shipped model runs on {system}");
    }

    fn split(&self) -> bool {
        matches!(self.pools, Pools::Split | Pools::Unlike)
    }

    /// The case itself.
    pub fn case(&self) -> Case {
        let problem = self.question();
        let formats = self.names[3].index(problem.formats.len());
        let plans = plans(&problem, formats);
        let pool = |which: usize, role| {
            let plan = plans[self.plans[which].index(plans.len())];
            let cuts = cuts(&problem.graph, &problem.formats[formats], plan.pp);
            let stages = cuts[self.cut.index(cuts.len())].clone();
            let (replicas, concurrency) = (self.replicas[which], self.concurrency[which]);
            PoolPlan { role, plan, stages, replicas, concurrency }
        };
        let linked = !problem.cluster.tiers.is_empty();
        let (pools, offload) = match self.pools {
            Pools::Split if linked => (vec![pool(0, Role::Prefill), pool(1, Role::Decode)], Offload::Nothing),
            Pools::Unlike if linked => {
                let all = [
                    (0, Role::Prefill),
                    (1, Role::Decode),
                    (1, Role::Prefill),
                    (0, Role::Decode),
                    (0, Role::Aggregated),
                ];
                (all.map(|(which, role)| pool(which, role)).to_vec(), Offload::Nothing)
            }
            Pools::Mixed => (vec![pool(0, Role::Aggregated), pool(1, Role::Aggregated)], self.offload),
            _ => (vec![pool(0, Role::Aggregated)], self.offload),
        };
        Case { candidate: Candidate { formats, pools, offload }, problem }
    }
}

/// Every legal plan, whatever the runtime has of degrees; for dense models also with data parallelism.
pub fn plans(problem: &Problem, formats: usize) -> Vec<ParallelPlan> {
    let limits = problem.legal_limits(&problem.formats[formats]);
    let limits = LegalLimits { devices: limits.devices.min(MOST_DEVICES), runtime: None, ..limits };
    let mut plans = enumerate(&problem.graph, &limits).legal;
    if !has_experts(&problem.graph) {
        let shared =
            plans.iter().filter(|plan| plan.cp > 1).map(|plan| ParallelPlan { dp: plan.cp, cp: 1, ..*plan });
        let shared: Vec<_> = shared.collect();
        plans.extend(shared);
    }
    let unlike: Vec<_> = plans.iter().enumerate().filter_map(|(at, plan)| unlike(at, plan)).collect();
    plans.extend(unlike.into_iter().filter(|plan| check(&problem.graph, plan, &limits).is_ok()));
    for plan in &plans {
        check(&problem.graph, plan, &limits).unwrap_or_else(|reason| panic!("{plan:?}: {reason}"));
    }
    plans
}

/// The plan with degrees of their own for feed-forward layers, embedding and head: `at` chooses which.
fn unlike(at: usize, plan: &ParallelPlan) -> Option<ParallelPlan> {
    let (one, all) = (Some(1), Some(plan.stage_devices()));
    let degrees =
        [(one, None), (all, None), (None, one), (None, all), (all, one), (one, all), (one, one), (all, all)];
    let (ffn_tp, vocab_tp) = degrees[at % degrees.len()];
    let own = |degree: Option<u64>| degree.filter(|degree| *degree != plan.tp);
    let changed = ParallelPlan { ffn_tp: own(ffn_tp), vocab_tp: own(vocab_tp), ..*plan };
    (changed != *plan).then_some(changed)
}

/// Tries `property` on `cases` deployments.
pub fn each_case(cases: u32, property: impl Fn(&Case) -> Result<(), TestCaseError>) {
    each(cases, draws(), |draw| {
        let case = draw.case();
        property(&case).map_err(|error| match error {
            TestCaseError::Fail(why) => TestCaseError::fail(format!("{why}\n{case}")),
            reject => reject,
        })
    });
}

/// Tries `property` on `cases` draws, always the same ones; `PROPTEST_CASES` sets another number.
pub fn each<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { cases };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    match runner.run(&strategy, property) {
        Ok(()) => {}
        Err(TestError::Fail(why, _)) => panic!("{why}"),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}
