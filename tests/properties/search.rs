//! The pruned search finds what trying every deployment finds.

use mantile::spec::offload::OffloadPolicy;
use std::sync::Arc;

use mantile::plan::locality::gcd;
use mantile::search::aggregated::mixes;
use mantile::search::aggregated::replicas::omits_copies;
use mantile::search::candidate::{Candidate, PoolPlan};
use mantile::search::front_sampling::FrontSampling;
use mantile::search::outcome::Outcome;
use mantile::search::point::{Point, cost};
use mantile::search::problem::{Problem, Traffic};
use mantile::search::run::{UNWATCHED, run};
use mantile::search::shape::{PreparedShape, cuts, shape};
use mantile::serving::instance::Instance;
use mantile::serving::terms::{Lengths, WorkloadInputs};
use mantile::spec::objective::{LatencyLimits, METRICS, Metric};
use mantile::spec::offload::Offload::Nothing;
use mantile::spec::scenario::Scenario;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::ask::{ask, on};
use super::brute::{self, Known, ranks};
use super::cases::each;

/// Rounding, and nothing more: sums of the same terms in another order.
const MARGIN: f64 = 1e-11;

/// A small question.
#[derive(Clone, Debug)]
struct Small {
    model: &'static str,
    hardware: &'static str,
    axes: Option<Vec<Metric>>,
    /// The axes are stated: the front is over nothing else.
    stated: bool,
    runtime: &'static str,
    objective: &'static str,
    router: bool,
    osl: u64,
    most: u64,
    traffic: Option<f64>,
    rate: bool,
    limits: [Option<f64>; 3],
}

const MODELS: [&str; 4] = ["Llama-3.1-8B", "gpt-oss-20b", "Qwen3-30B-A3B", "TinyLlama-1.1B-Chat-v1.0"];

/// Up to four devices: in one domain or two, rented or bought.
const HARDWARE: [&str; 8] = [
    "1xh100-sxm",
    "2xh100-sxm",
    "3xh100-sxm",
    "4xh100-sxm",
    "2x2xh100-sxm",
    "3xl40s",
    "4xmi300x",
    "2xrtx-4090",
];

fn small() -> impl Strategy<Value = Small> {
    let objectives = prop_oneof![
        4 => Just("throughput"),
        1 => Just("latency"),
        1 => Just("perf-per-dollar"),
        1 => Just("perf-per-watt"),
        1 => Just("min-chips"),
        1 => Just("max-context"),
    ];
    let names = (
        prop::sample::select(&MODELS),
        prop::sample::select(&HARDWARE),
        prop::sample::select(&["vllm", "sglang"][..]),
        objectives,
    );
    let metrics: Vec<_> = METRICS.iter().filter(|entry| entry.searched).map(|entry| entry.metric).collect();
    let axes = prop_oneof![2 => Just(None), 1 => prop::sample::subsequence(metrics, 1..=5).prop_map(Some)];
    let traffic = prop_oneof![3 => Just(None), 1 => (0.05..0.9).prop_map(Some)];
    let limit = || prop_oneof![2 => Just(None), 1 => (0.3..3.0).prop_map(Some)];
    let sizes = (axes, any::<bool>(), 2u64..2000, 3u64..=24);
    (names, sizes, traffic, any::<[bool; 2]>(), [limit(), limit(), limit()]).prop_map(
        |(
            (model, hardware, runtime, objective),
            (axes, stated, osl, most),
            traffic,
            [rate, router],
            limits,
        )| Small {
            router,
            model,
            hardware,
            axes,
            stated,
            runtime,
            objective,
            osl,
            most,
            traffic,
            rate,
            limits,
        },
    )
}

/// The question with other lengths, traffic and limits.
fn with(
    problem: &Problem,
    lengths: Lengths,
    traffic: Traffic,
    limits: LatencyLimits,
    runtime: &str,
) -> Problem {
    let catalog = mantile::store::catalog::Catalog::default();
    let runtime = catalog.load(runtime).unwrap();
    let Problem { graph, cluster, formats, workload: stated, objective, axes, stated_axes, .. } =
        problem.clone();
    let graph = mantile::graph::model::ModelGraph { max_context: None, ..(*graph).clone() };
    let stated = WorkloadInputs { lengths, ..stated };
    let terms = (objective, axes.clone());
    let problem = Problem::new(
        std::sync::Arc::new(graph),
        cluster,
        &runtime,
        formats.to_vec(),
        stated,
        traffic,
        limits,
        terms,
    );
    if stated_axes { problem.over_axes(&axes) } else { problem }
}

/// The most requests of a rank that any shape holds.
fn most_requests(problem: &Problem) -> u64 {
    let formats = 0..problem.formats.len();
    let plans = formats
        .flat_map(|formats| brute::plans(problem, formats).into_iter().map(move |plan| (formats, plan)));
    let shapes = plans.flat_map(|(formats, plan)| {
        let cuts = cuts(&problem.graph, &problem.formats[formats], plan.pp).into_iter();
        cuts.filter_map(move |stages| {
            let instance = Instance::new(&problem.graph, plan, stages, problem.tiers());
            shape(problem, formats, &Arc::new(instance), (Nothing, 1)).ok()
        })
    });
    shapes.map(|shape| shape.fits).max().unwrap_or(0)
}

impl Small {
    /// The question with prompts so long that no instance holds more than `most` requests.
    fn question(&self) -> Problem {
        let scenario = Scenario {
            runtime: Some(self.runtime.into()),
            objective: Some(self.objective.into()),
            offload: Some(OffloadPolicy::Never),
            ..on(self.model, self.hardware)
        };
        let mut requested = ask(&scenario).unwrap_or_else(|fault| panic!("{fault}"));
        if let Some(axes) = &self.axes {
            requested.axes.clone_from(axes);
            requested.stated_axes = self.stated;
        }
        let none = LatencyLimits::default();
        let mut lengths = Lengths { isl: 1 << 12, osl: self.osl, prefix: 0 };
        let free = loop {
            let mut problem = with(&requested, lengths, Traffic::Free, none, self.runtime);
            problem.custom_router = self.router;
            if most_requests(&problem) <= self.most {
                break problem;
            }
            lengths.isl += lengths.isl / 2;
        };
        // Limits and traffic are set around what the unlimited question reaches.
        let Some(best) = run(&free, &UNWATCHED).best else { return free };
        let around = |which: usize| self.limits[which].map(|factor| best.point[which] * factor);
        let limits = LatencyLimits { ttft: around(0), tpot: around(1), e2e: around(2) };
        let traffic = match self.traffic {
            None => Traffic::Free,
            Some(part) if self.rate => Traffic::Rate(best.point[3] / self.osl as f64 * part),
            Some(part) => Traffic::InFlight(
                ((self.most as f64 * requested.cluster.devices() as f64 * part).ceil() as u64).into(),
            ),
        };
        let mut problem = with(&requested, lengths, traffic, limits, self.runtime);
        problem.offload = OffloadPolicy::Never;
        problem.custom_router = self.router;
        problem
    }
}

/// A candidate in one line.
fn label(candidate: &Candidate) -> String {
    let pool = |pool: &PoolPlan| {
        let PoolPlan { role, plan, stages, replicas, concurrency } = pool;
        format!("{role:?} {replicas} x {} {stages:?} at {concurrency}", plan.label())
    };
    let pools: Vec<_> = candidate.pools.iter().map(pool).collect();
    format!("formats {}, {}", candidate.formats, pools.join(", "))
}

/// Whether `a` is at least as good as `b` on every axis, but for rounding.
fn covers(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b || (a - b).abs() <= MARGIN * b.abs())
}

/// Whether `a` is at least as good as `b` on every axis and better on one by more than rounding.
fn beats(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a.iter().zip(b).any(|(a, b)| b - a > MARGIN * b.abs())
}

/// Of unlike instances that prefill, decode or do both.
fn is_mix(candidate: &Candidate) -> bool {
    candidate.pools.len() > if candidate.is_disaggregated() { 2 } else { 1 }
}

fn same_optimum(problem: &Problem, outcome: &Outcome, known: &[Known]) -> Result<(), TestCaseError> {
    let mix = outcome.best.as_ref().is_some_and(|best| is_mix(&best.candidate));
    let crowded = matches!(problem.traffic, Traffic::InFlight(_));
    let counted = || known.iter().filter(|known| known.shown || !crowded);
    let met = counted().next().is_some();
    prop_assert!(
        outcome.best.is_some() == met || (outcome.best.is_some() && (mix || crowded)),
        "{} deployments meet the limits",
        known.len()
    );
    let Some(best) = &outcome.best else { return Ok(()) };
    prop_assert!(
        problem.missed(&best.point, best.candidate.margin(problem)).is_none(),
        "the optimum misses a limit: {:?}",
        best
    );
    let mut equals: Vec<&Known> = counted().collect();
    for (rank, aim) in problem.objective.iter().enumerate() {
        let value = |point: &Point| cost(point, aim.metric, aim.direction);
        let least = equals.iter().map(|known| value(&known.point)).fold(f64::INFINITY, f64::min);
        let found = value(&best.point);
        let first = equals.iter().find(|known| value(&known.point) == least);
        prop_assert!(
            found <= least || (found - least).abs() <= MARGIN * least.abs(),
            "aim {} {}: found {} with {:?}, but {} is {:?}",
            rank,
            aim.metric.entry().name,
            found,
            label(&best.candidate),
            least,
            first.map(|known| label(&known.candidate))
        );
        // Of equals to the last bit: rounding is not the next aim's business. Of mixes the first aim is proved.
        equals.retain(|known| !known.unlike && value(&known.point) == found);
    }
    Ok(())
}

fn same_front(problem: &Problem, outcome: &Outcome, known: &[Known]) -> Result<(), TestCaseError> {
    let front: Vec<_> = outcome.front.iter().map(|found| (ranks(problem, &found.point), found)).collect();
    let known: Vec<_> = known.iter().map(|known| (ranks(problem, &known.point), known)).collect();
    for (ranks, found) in &front {
        // Of mixes not every load is tried.
        let unlike = is_mix(&found.candidate)
            && (found.candidate.is_disaggregated() || problem.traffic != Traffic::Free);
        prop_assert!(
            unlike || known.iter().any(|(other, _)| other == ranks),
            "nobody deploys {}",
            label(&found.candidate)
        );
        let crowded = matches!(problem.traffic, Traffic::InFlight(_));
        let mut alike =
            known.iter().filter(|(_, known)| !is_mix(&known.candidate) && (known.shown || !crowded));
        let better = alike.find(|(other, _)| beats(other, ranks));
        let better = better.map(|(ranks, known)| (ranks, label(&known.candidate)));
        prop_assert!(better.is_none(), "{:?} {} is beaten by {:?}", ranks, label(&found.candidate), better);
    }
    let all = &known;
    for (ranks, known) in known.iter().filter(|(_, known)| known.shown && listed(problem, &known.candidate)) {
        let covered = front.iter().any(|(other, _)| covers(other, ranks))
            || all.iter().any(|(other, _)| beats(other, ranks));
        let front = || front.iter().map(|(ranks, found)| format!("\n{ranks:?} {}", label(&found.candidate)));
        prop_assert!(
            covered,
            "{:?} {} is missing on the front of {:?}:{}",
            ranks,
            label(&known.candidate),
            problem.axes,
            front().collect::<String>()
        );
    }
    Ok(())
}

/// Whether the front lists a deployment, where nothing beats it: of like instances one or as many as there is room for,
/// unless output in all was named as an axis.
fn listed(problem: &Problem, candidate: &Candidate) -> bool {
    let only = match &candidate.pools[..] {
        [only] => only,
        // Several copies of a smaller deployment, which stands for them.
        [prefill, decode] if omits_copies(problem) => return gcd(prefill.replicas, decode.replicas) == 1,
        _ => return true,
    };
    let most = problem.capacity().most(only.plan.devices());
    problem.counts || problem.traffic != Traffic::Free || only.replicas == 1 || only.replicas == most
}

fn agrees(small: &Small) -> Result<(), TestCaseError> {
    let problem = small.question();
    answer(&problem).map_err(|error| match error {
        TestCaseError::Fail(why) => TestCaseError::fail(format!(
            "{why}\n{small:?}\n{:?} {:?}",
            problem.workload.lengths, problem.traffic
        )),
        reject => reject,
    })
}

fn answer(problem: &Problem) -> Result<(), TestCaseError> {
    let outcome = run(problem, &UNWATCHED);
    let known = everything(problem);
    same_optimum(problem, &outcome, &known)?;
    same_front(problem, &outcome, &known)?;
    adds_up(&outcome)?;
    // However little the front shows, the optimum considers all.
    let mut short = problem.clone();
    short.front_sampling = FrontSampling {
        load_steps: 2,
        count_steps: 1,
        decode_workers: 1,
        across_domains_up_to: 2,
        any_size_up_to: 2,
    };
    let outcome = run(&short, &UNWATCHED);
    adds_up(&outcome)?;
    same_optimum(problem, &outcome, &known)
}

/// Nothing is both evaluated and pruned.
fn adds_up(Outcome { census, .. }: &Outcome) -> Result<(), TestCaseError> {
    let pruned: u64 = census.pruned.values().sum();
    prop_assert!(census.evaluated + pruned <= census.candidates, "{census:?}");
    Ok(())
}

fn everything(problem: &Problem) -> Vec<Known> {
    let shapes = brute::shapes(problem);
    let placed: Vec<_> =
        shapes.iter().map(|shape| PreparedShape::of(problem, Arc::new(shape.clone()))).collect();
    let mut known = brute::together(problem, &placed);
    let unlike = brute::unlike(problem, &placed, &known);
    if mixes(problem) {
        let mixed = brute::mixes(problem, &known);
        known.extend(mixed);
    }
    known.extend(brute::separate(problem, &placed));
    known.extend(unlike);
    known
}

#[test]
fn the_pruned_search_finds_what_trying_everything_finds() {
    each(100, small(), |small| agrees(&small));
}
