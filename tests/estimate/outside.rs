//! What lies outside the search, and what it is worth: measured by evaluating what the search does not try, on twenty
//! questions. `MANTILE_OUTSIDE=all` measures all of them and prints the figures of docs/optimality.md; without it two are.

use mantile::quantity::read::Plain;
use mantile::report::space::OUTSIDE;
use mantile::search::aggregated::measure;
use mantile::search::candidate::Candidate;
use mantile::search::layouts::each;
use mantile::search::outcome::{Census, EvaluatedCandidate};
use mantile::search::point::place;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::search::shape::{largest, shape};
use mantile::serving::disaggregated::{decode_performance, prefill_rate};
use mantile::serving::iteration::prefill;
use mantile::serving::terms::InstanceLoad;
use mantile::spec::objective::Metric;
use mantile::spec::offload::Offload;
use mantile::spec::role::Role;
use mantile::spec::scenario::Scenario;

use super::ask::{ask, on};

const MODELS: [&str; 5] = ["Llama-3.1-8B", "Qwen2.5-14B", "Qwen3-32B", "Qwen3-30B-A3B", "gpt-oss-20b"];
const HARDWARE: [&str; 4] = ["2xh100-sxm", "4xh100-sxm", "8xa100-sxm-80gb", "4xl40s"];

fn output(problem: &Problem, candidate: &Candidate) -> f64 {
    measure(problem, candidate)[place(Metric::OutputTokS)]
}

/// More output of the best pipeline, a layer at a time moved between its stages as long as that gains.
fn cuts(problem: &Problem, found: &[EvaluatedCandidate]) -> Option<f64> {
    let piped = found.iter().find(|found| found.candidate.pools.iter().any(|pool| pool.plan.pp > 1))?;
    let start = output(problem, &piped.candidate);
    let (mut best, mut value) = (piped.candidate.clone(), start);
    loop {
        let mut next: Option<(Candidate, f64)> = None;
        for pool in 0..best.pools.len() {
            let stages = best.pools[pool].stages.len();
            for (from, to) in (0..stages).flat_map(|from| (0..stages).map(move |to| (from, to))) {
                let mut other = best.clone();
                let cut = &mut other.pools[pool].stages;
                if from == to || cut[from] < 2 {
                    continue;
                }
                cut[from] -= 1;
                cut[to] += 1;
                let reached = output(problem, &other);
                let fits = mantile::report::answer::holdings(problem, &other)
                    .iter()
                    .all(mantile::report::answer::fits);
                let kept = problem.missed(&measure(problem, &other), other.margin(problem)).is_none();
                if fits && kept && next.as_ref().map_or(value, |(_, known)| *known) < reached {
                    next = Some((other, reached));
                }
            }
        }
        match next {
            Some((other, reached)) => (best, value) = (other, reached),
            None => return Some(value / start - 1.0),
        }
    }
}

/// How much longer a token takes on the instance that has a tenth more requests than its share.
fn uneven(problem: &Problem, best: &Candidate) -> f64 {
    let mut crowded = best.clone();
    let answering = crowded.pools.iter_mut().filter(|pool| pool.role != Role::Prefill);
    answering.for_each(|pool| pool.concurrency += pool.concurrency.div_ceil(10));
    let tpot = |candidate| measure(problem, candidate)[place(Metric::Tpot)];
    tpot(&crowded) / tpot(best) - 1.0
}

/// Output that is lost where no rank takes more than 256 requests at a time.
fn capped(problem: &Problem, best: &Candidate) -> f64 {
    let mut few = best.clone();
    few.pools.iter_mut().for_each(|pool| pool.concurrency = pool.concurrency.min(256 * pool.plan.dp));
    1.0 - output(problem, &few) / output(problem, best)
}

/// Requests a second per device that prefill, and that decode, in each pair of formats, at best.
fn phases(problem: &Problem) -> Vec<(f64, f64)> {
    let mut best = vec![(0.0, 0.0); problem.formats.len()];
    let rates = each(problem, &mut Census::default(), |formats, instance| {
        let Ok(shape) = shape(problem, formats, &instance, (Offload::Nothing, 1)) else {
            return (formats, 0.0, 0.0);
        };
        let (machine, terms) = (problem.formats[formats].plain(), problem.terms());
        let devices = shape.plan.devices() as f64;
        let prompt = prefill(&Plain, &instance, machine, terms, &mut ());
        let late = problem.limits.ttft.is_some_and(|limit| prompt.total.value() > limit);
        let prompts = prefill_rate(&Plain, &instance, machine, &prompt).value() / devices;
        let at = |requests: u64| {
            let load = InstanceLoad { concurrency: requests * shape.plan.dp, offload: Offload::Nothing };
            decode_performance(&Plain, &instance, machine, terms, &load, &mut ())
        };
        let kept = largest(shape.fits, |requests| {
            problem.limits.tpot.is_none_or(|limit| at(requests).tpot.value() <= limit)
        });
        let answers = if kept == 0 { 0.0 } else { at(kept).rate.value() / devices };
        (formats, if late || !shape.prefills(problem) { 0.0 } else { prompts }, answers)
    });
    for (formats, prompts, answers) in rates {
        let (known, decoded) = &mut best[formats];
        (*known, *decoded) = (f64::max(*known, prompts), f64::max(*decoded, answers));
    }
    best
}

/// More output, were each pool free to have its own weight format; devices are split as finely as one likes, so that it
/// is no less than what can be had.
fn formats_per_pool(scenario: &Scenario) -> Option<f64> {
    let problem = ask(&Scenario { weight_format: Some("any".into()), ..scenario.clone() }).ok()?;
    let phases = phases(&problem);
    let together = |(p, _): (f64, f64), (_, d): (f64, f64)| if p + d > 0.0 { p * d / (p + d) } else { 0.0 };
    let like = phases.iter().map(|both| together(*both, *both)).fold(0.0, f64::max);
    let pairs = (0..phases.len()).flat_map(|a| (0..phases.len()).map(move |b| (a, b)));
    let same_cache = |(a, b): &(usize, usize)| problem.formats[*a].kv == problem.formats[*b].kv;
    let mixed = pairs.filter(same_cache).map(|(a, b)| together(phases[a], phases[b])).fold(0.0, f64::max);
    let mut free = problem.clone();
    free.axes.clear();
    let best = run(&free, &UNWATCHED).best?.point[place(Metric::OutputTokS)];
    let scale = problem.cluster.devices() as f64 * problem.workload.lengths.osl as f64;
    Some((mixed * scale / best.max(like * scale) - 1.0).max(0.0))
}

fn report(what: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let Some(most) = values.last() else { return eprintln!("{what}: no question") };
    let median = values[values.len() / 2];
    eprintln!(
        "{what}: of {} questions the median {:.1} %, the largest {:.1} %",
        values.len(),
        median * 100.0,
        most * 100.0
    );
}

#[test]
fn what_lies_outside_is_measured() {
    let all = std::env::var("MANTILE_OUTSIDE").is_ok_and(|which| which == "all");
    let requested = HARDWARE.iter().flat_map(|hardware| MODELS.iter().map(move |model| (*model, *hardware)));
    let (mut cut, mut late, mut lost, mut formats) = (vec![], vec![], vec![], vec![]);
    for (model, hardware) in requested.take(if all { 20 } else { 2 }) {
        let scenario = on(model, hardware);
        let problem = ask(&scenario).unwrap();
        let outcome = run(&problem, &UNWATCHED);
        let Some(best) = &outcome.best else { continue };
        let known: Vec<EvaluatedCandidate> =
            [best].into_iter().chain(&outcome.alternatives).cloned().collect();
        cut.extend(cuts(&problem, &known));
        late.push(uneven(&problem, &best.candidate));
        lost.push(capped(&problem, &best.candidate));
        formats.extend(formats_per_pool(&scenario));
    }
    // A tenth more requests take longer, and fewer requests yield no more than the best.
    assert!(
        late.iter().all(|late| *late >= 0.0) && lost.iter().all(|lost| *lost >= -1e-9),
        "{late:?} {lost:?}"
    );
    assert!(!late.is_empty());
    report("other cuts of a pipeline, more output of the best pipeline", cut);
    report("uneven load, longer TPOT with a tenth more requests", late);
    report("256 requests a rank at most, less output", lost);
    report("different formats per pool, more output at most", formats);
}

#[test]
fn the_document_of_optimality_names_everything_that_lies_outside() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/optimality.md");
    let lower = std::fs::read_to_string(document).unwrap().to_lowercase();
    for (what, _) in OUTSIDE {
        assert!(lower.contains(what), "`{what}` is not in docs/optimality.md");
    }
}
