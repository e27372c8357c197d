//! Laws of answers, on random questions: one more device is never worse, a limit that does not bind changes nothing,
//! Little's law holds, and the answer is on its own front.

use mantile::search::outcome::{EvaluatedCandidate, Outcome};
use mantile::search::point::{Point, cost, place};
use mantile::search::problem::{Problem, Share, Traffic};
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::objective::Metric;
use mantile::spec::role::Role;
use mantile::spec::scenario::Scenario;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::ask::{ask, on};
use super::cases::each;

/// Sums of the same terms in another order differ by less.
const MARGIN: f64 = 1e-9;

/// A limit so many times what the answer needs does not bind.
const LOOSE: f64 = 1e3;

/// A random question.
#[derive(Clone, Debug)]
struct Random {
    model: &'static str,
    device: &'static str,
    count: u64,
    objective: &'static str,
    lengths: (u64, u64),
    traffic: Option<(bool, u64)>,
    limits: [Option<f64>; 3],
}

fn random() -> impl Strategy<Value = Random> {
    let models = prop::sample::select(&[
        "Llama-3.1-8B",
        "Llama-3.3-70B",
        "Qwen2.5-14B",
        "gpt-oss-20b",
        "Qwen3-30B-A3B",
    ]);
    let devices =
        prop::sample::select(&["h100-sxm", "h200-sxm", "l40s", "rtx-a6000", "mi300x", "a100-sxm-80gb"]);
    let objectives = prop::sample::select(&[
        "throughput",
        "interactive",
        "latency",
        "perf-per-dollar",
        "perf-per-watt",
        "min-chips",
        "max-context",
    ]);
    let lengths = (1u32..14, 1u32..11).prop_map(|(isl, osl)| (1 << isl, 1 << osl));
    let traffic =
        prop::option::weighted(0.6, (any::<bool>(), 0u32..9).prop_map(|(rate, bits)| (rate, 1 << bits)));
    let limit = || prop::option::weighted(0.3, 0.5f64..3.0);
    (models, devices, 1u64..=7, objectives, lengths, traffic, [limit(), limit(), limit()]).prop_map(
        |(model, device, count, objective, lengths, traffic, limits)| Random {
            model,
            device,
            count,
            objective,
            lengths,
            traffic,
            limits,
        },
    )
}

impl Random {
    /// The question on so many devices, without its limits.
    fn on(&self, devices: u64) -> Problem {
        self.on_hardware(&format!("{devices}x{}", self.device))
    }

    /// The question on so many nodes, without its limits; `None` where no network joins them.
    fn on_nodes(&self, nodes: u64) -> Option<Problem> {
        let joined = !["l40s", "rtx-a6000"].contains(&self.device);
        joined.then(|| self.on_hardware(&format!("{nodes}x{}x{}", self.count, self.device)))
    }

    fn on_hardware(&self, hardware: &str) -> Problem {
        let scenario = Scenario {
            objective: Some(self.objective.into()),
            isl: Some(self.lengths.0),
            osl: Some(self.lengths.1),
            concurrency: self.traffic.filter(|(rate, _)| !rate).map(|(_, number)| number),
            rate: self.traffic.filter(|(rate, _)| *rate).map(|(_, number)| number as f64 / 8.0),
            ..on(self.model, hardware)
        };
        let mut problem = ask(&scenario).unwrap_or_else(|fault| panic!("{fault}"));
        problem.limits = Default::default();
        problem
    }

    /// With limits around what the answer without any comes to.
    fn limited(&self, mut problem: Problem) -> Problem {
        let mut bare = problem.clone();
        bare.axes.clear();
        let Some(best) = run(&bare, &UNWATCHED).best else { return problem };
        let limit = |which: usize, metric| self.limits[which].map(|times| best.point[place(metric)] * times);
        problem.limits.ttft = limit(0, Metric::Ttft);
        problem.limits.tpot = limit(1, Metric::Tpot);
        problem.limits.e2e = limit(2, Metric::E2e);
        problem
    }
}

/// The first aim's figure, less being better.
fn aimed(problem: &Problem, point: &Point) -> f64 {
    let aim = &problem.objective[0];
    cost(point, aim.metric, aim.direction)
}

fn no_worse(
    problem: &Problem,
    (before, after): (&Outcome, &Outcome),
    what: &str,
) -> Result<(), TestCaseError> {
    let Some(old) = &before.best else { return Ok(()) };
    let Some(new) = &after.best else {
        return Err(TestCaseError::fail(format!("{what}: no answer any more")));
    };
    let (old_value, new_value) = (aimed(problem, &old.point), aimed(problem, &new.point));
    prop_assert!(
        new_value <= old_value + MARGIN * old_value.abs(),
        "{what}: {new_value} with {:?}, before {old_value} with {:?}",
        new.candidate,
        old.candidate
    );
    Ok(())
}

/// Output tokens per second times seconds of a request are the tokens of what is in flight.
fn little(problem: &Problem, found: &EvaluatedCandidate) -> Result<(), TestCaseError> {
    let osl = problem.workload.lengths.osl as f64;
    let at = |metric| found.point[place(metric)];
    let held = at(Metric::OutputTokS) * at(Metric::E2e) / osl;
    let close = |a: f64, b: f64| (a - b).abs() <= MARGIN * b.abs();
    let pools = &found.candidate.pools;
    let slots: u64 =
        pools.iter().filter(|p| p.role != Role::Prefill).map(|p| p.replicas * p.concurrency).sum();
    match problem.traffic {
        Traffic::InFlight(share) => {
            let requests = share.requests as f64 / share.units as f64;
            prop_assert!(close(held, requests), "{held} for {requests}: {found:?}")
        }
        Traffic::Rate(rate) => prop_assert!(close(at(Metric::OutputTokS), rate * osl), "{found:?}"),
        Traffic::Free if !found.candidate.is_disaggregated() => {
            prop_assert!(close(held, slots as f64), "{held}: {found:?}")
        }
        Traffic::Free => {
            // What decodes has a slot, and what does not prefills or is on its way.
            let rate = at(Metric::OutputTokS) / osl;
            let decoding = rate * (osl - 1.0) * at(Metric::Tpot);
            prop_assert!(decoding <= slots as f64 * (1.0 + MARGIN), "{decoding} in {slots} slots: {found:?}");
            prop_assert!(close(held, decoding + rate * at(Metric::Ttft)), "{found:?}");
        }
    }
    Ok(())
}

fn on_its_front(problem: &Problem, outcome: &Outcome) -> Result<(), TestCaseError> {
    let ranks = |found: &EvaluatedCandidate| -> Vec<f64> {
        problem.axes.iter().map(|m| cost(&found.point, *m, m.entry().direction)).collect()
    };
    let front: Vec<Vec<f64>> = outcome.front.iter().map(ranks).collect();
    if let Some(best) = &outcome.best {
        let own = ranks(best);
        prop_assert!(front.contains(&own), "{own:?} {:?} is not on its front", best.candidate);
    }
    for one in &front {
        let beaten = front.iter().find(|other| *other != one && other.iter().zip(one).all(|(a, b)| a <= b));
        prop_assert!(beaten.is_none(), "{one:?} is beaten by {beaten:?}");
    }
    Ok(())
}

fn holds(random: &Random) -> Result<(), TestCaseError> {
    let problem = random.limited(random.on(random.count));
    let outcome = run(&problem, &UNWATCHED);
    on_its_front(&problem, &outcome)?;
    for found in outcome.best.iter().chain(&outcome.front).chain(&outcome.alternatives) {
        little(&problem, found)?;
    }
    let mut more = random.on(random.count + 1);
    more.limits = problem.limits;
    more.axes.clear();
    no_worse(&problem, (&outcome, &run(&more, &UNWATCHED)), "one more device")?;
    let mut loose = problem.clone();
    loose.axes.clear();
    if let Some(best) = &outcome.best {
        let mut bound = |limit: fn(&mut Problem) -> &mut Option<f64>, metric| {
            let limit = limit(&mut loose);
            *limit = limit.or(Some(best.point[place(metric)] * LOOSE));
        };
        bound(|q| &mut q.limits.ttft, Metric::Ttft);
        bound(|q| &mut q.limits.tpot, Metric::Tpot);
        bound(|q| &mut q.limits.e2e, Metric::E2e);
        let then = run(&loose, &UNWATCHED);
        no_worse(&problem, (&outcome, &then), "a limit that does not bind")?;
        no_worse(&problem, (&then, &outcome), "without a limit that does not bind")?;
    }
    Ok(())
}

/// One more node is never worse, and twice the traffic on twice the nodes is served.
fn holds_over_nodes(random: &Random) -> Result<(), TestCaseError> {
    let nodes = [1, 2, 3].map(|nodes| random.on_nodes(nodes));
    let [Some(one), Some(two), Some(three)] = nodes else { return Ok(()) };
    let problem = random.limited(one);
    let solved = |mut resolved: Problem| {
        resolved.limits = problem.limits;
        resolved.axes.clear();
        run(&resolved, &UNWATCHED)
    };
    let single = run(&problem, &UNWATCHED);
    let double = solved(two.clone());
    no_worse(&problem, (&single, &double), "a second node")?;
    no_worse(&problem, (&double, &solved(three)), "a third node")?;
    let traffic = match problem.traffic {
        Traffic::Free => return Ok(()),
        Traffic::InFlight(share) => Traffic::InFlight(Share { requests: 2 * share.requests, ..share }),
        // The rates differ by rounding.
        Traffic::Rate(rate) => Traffic::Rate(2.0 * rate * (1.0 - MARGIN)),
    };
    let mut twice = two;
    twice.traffic = traffic;
    let served = solved(twice);
    prop_assert!(single.best.is_none() || served.best.is_some(), "twice the traffic: {:?}", single.best);
    Ok(())
}

fn on_random_questions(least: u32, law: impl Fn(&Random) -> Result<(), TestCaseError>) {
    // All of them: MANTILE_LAWS=600.
    let cases = std::env::var("MANTILE_LAWS").ok().and_then(|number| number.parse().ok()).unwrap_or(least);
    each(cases, random(), |random| {
        law(&random).map_err(|error| match error {
            TestCaseError::Fail(why) => TestCaseError::fail(format!("{why}\n{random:?}")),
            reject => reject,
        })
    });
}

#[test]
fn laws_of_answers_hold_on_random_questions() {
    on_random_questions(24, holds);
}

#[test]
fn more_nodes_are_never_worse() {
    on_random_questions(12, holds_over_nodes);
}
