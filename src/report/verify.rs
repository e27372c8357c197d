//! A saved answer held against what its own question comes to: every row evaluated again, the objective, the front,
//! a sample of what was pruned, and the search itself. Knows no file.

pub mod fleet;
pub mod place;
pub mod recommend;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::{forbidden, reported};
use super::number::requests;
use super::result::{Answer, Reported};
use crate::plan::parallel::ParallelPlan;
use crate::search::candidate::{Candidate, Duty, PoolPlan};
use crate::search::outcome::Found;
use crate::search::point::{Point, before};
use crate::search::question::Question;
use crate::search::sample::sample;
use crate::serving::terms::Offload;
use crate::spec::objective::{Direction, Metric};

/// What was checked of an answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verified {
    /// Whether every check passed.
    pub holds: bool,
    /// The checks.
    pub checks: Vec<Check>,
    /// Seed of the sample.
    pub seed: u64,
}

/// One check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// What is checked.
    pub what: String,
    /// How many things.
    pub of: u64,
    /// What is wrong; empty where nothing is.
    pub faults: Vec<String>,
}

/// Faults of a check that are told.
const TOLD: usize = 5;
/// Numbers that differ by less are the same: a file holds them in full, rounding is the machine's.
const CLOSE: f64 = 1e-9;

impl Verified {
    fn of(checks: Vec<Check>, seed: u64) -> Verified {
        Verified { holds: checks.iter().all(|check| check.faults.is_empty()), checks, seed }
    }
}

impl Check {
    fn new(what: impl Into<String>, of: usize, mut faults: Vec<String>) -> Check {
        let more = faults.len().saturating_sub(TOLD);
        faults.truncate(TOLD);
        if more > 0 {
            faults.push(format!("and {more} more"));
        }
        Check { what: what.into(), of: of as u64, faults }
    }
}

/// Where two values differ, as `path: saved, but again`.
fn differences(path: &str, saved: &Value, again: &Value, found: &mut Vec<String>) {
    let key = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match (saved, again) {
        (Value::Object(a), Value::Object(b)) => {
            for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
                let null = Value::Null;
                let (a, b) = (a.get(name).unwrap_or(&null), b.get(name).unwrap_or(&null));
                differences(&key(name), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&key(&at.to_string()), a, b, found);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (x, y) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            if (x - y).abs() > CLOSE * x.abs().max(y.abs()) || x.is_nan() != y.is_nan() {
                found.push(format!("{path}: {a} is saved, {b} comes out"));
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: {a} is saved, {b} comes out")),
    }
}

/// Where the values of `keys` differ.
fn unlike(keys: &[&str], saved: &Value, again: &Value) -> Vec<String> {
    let mut found = Vec::new();
    keys.iter().for_each(|key| differences(key, &saved[key], &again[key], &mut found));
    found
}

/// A number that is told beside what it comes to, where they differ by more than `close` of it.
fn off(what: &str, saved: f64, again: f64, close: f64) -> Option<String> {
    let same = (saved - again).abs() <= close * saved.abs().max(again.abs());
    (!same).then(|| format!("{what}: {saved} is saved, {again} comes out"))
}

/// The number at `key`, not a number where there is none.
fn figure(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(f64::NAN)
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

fn pool(saved: &Value) -> Option<PoolPlan> {
    let plan: ParallelPlan = serde_json::from_value(saved.clone()).ok()?;
    let number = |key: &str| saved.get(key)?.as_u64();
    Some(PoolPlan {
        duty: match saved.get("duty")?.as_str()? {
            "both" => Duty::Both,
            "prefill" => Duty::Prefill,
            "decode" => Duty::Decode,
            _ => return None,
        },
        plan,
        stages: serde_json::from_value(saved.get("stages")?.clone()).ok()?,
        replicas: number("replicas").filter(|count| *count > 0)?,
        concurrency: number("concurrency_per_replica").filter(|count| *count > 0)?,
    })
}

/// The deployments that a row may mean: host memory is told of it, not what lies in it.
fn candidates(question: &Question, row: &Value) -> Option<Vec<Candidate>> {
    let plan = row.get("plan")?;
    let apart = plan.get("mode")?.as_str()? == "disaggregated";
    let mut pools = vec![pool(plan.get("prefill")?)?];
    if apart {
        pools.push(pool(plan.get("decode")?)?);
    }
    for other in plan.get("others")?.as_array()? {
        pools.push(pool(other)?);
    }
    // Prompts, answers, both, as they are deployed.
    let kinds = [Duty::Prefill, Duty::Decode, Duty::Both];
    pools.sort_by_key(|pool| kinds.iter().position(|duty| *duty == pool.duty));
    let text = |key: &str| row.get(key)?.as_str();
    let (weights, kv) = (text("weight_format")?, text("kv_format")?);
    let formats = question.formats.iter().position(|pair| pair.weights == weights && pair.kv == kv)?;
    let spilled = text("feasibility")? == "with_offload";
    let offloads: &[Offload] = if spilled { question.offloads() } else { &[Offload::Nothing] };
    let one = |offload: &Offload| Candidate { formats, pools: pools.clone(), offload: *offload };
    Some(offloads.iter().map(one).collect())
}

/// A row evaluated again: its deployment, and where it differs from what is saved.
fn again(question: &Question, row: &Value) -> Result<Found, Vec<String>> {
    let unreadable = || vec!["it is no deployment of this question".to_string()];
    let mut least: Option<Vec<String>> = None;
    for candidate in candidates(question, row).ok_or_else(unreadable)? {
        let sound = candidate.pools.iter().all(|pool| {
            let layers: u64 = pool.stages.iter().map(|layers| u64::from(*layers)).sum();
            pool.stages.len() as u64 == pool.plan.pp && layers == question.graph.layers.value
        });
        let broken = forbidden(question, &candidate);
        if !sound || !broken.is_empty() {
            return Err(broken.iter().map(ToString::to_string).chain(unreadable()).take(1).collect());
        }
        if candidate.devices() > question.cluster.devices() {
            return Err(vec!["it takes more devices than there are".into()]);
        }
        let fresh: Reported = reported(question, &candidate);
        let mut faults = Vec::new();
        differences("", row, &value(&fresh), &mut faults);
        faults.extend(fresh.violations.iter().cloned());
        if faults.is_empty() {
            let point = crate::search::aggregated::measure(question, &candidate);
            return Ok(Found { candidate, point });
        }
        if least.as_ref().is_none_or(|known| faults.len() < known.len()) {
            least = Some(faults);
        }
    }
    Err(least.unwrap_or_else(unreadable))
}

fn rows<'a>(saved: &'a Value, key: &str) -> Vec<&'a Value> {
    saved.get(key).and_then(Value::as_array).map_or_else(Vec::new, |rows| rows.iter().collect())
}

/// Evaluates rows again; those that hold, and a check.
fn evaluated(question: &Question, what: &str, rows: &[&Value]) -> (Vec<Found>, Check) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        match again(question, row) {
            Ok(one) => found.push(one),
            Err(why) => faults.extend(why.into_iter().map(|why| format!("{what} {at}: {why}"))),
        }
    }
    (
        found,
        Check::new(
            format!("{what}: evaluated again, legal, in memory, within the limits"),
            rows.len(),
            faults,
        ),
    )
}

fn dominates(a: &Point, b: &Point, axes: &[Metric]) -> bool {
    let cost = |point: &Point, axis: &Metric| {
        let value = point[*axis as usize];
        if axis.entry().direction == Direction::Minimize { value } else { -value }
    };
    axes.iter().all(|axis| cost(a, axis) <= cost(b, axis))
        && axes.iter().any(|axis| {
            let (x, y) = (cost(a, axis), cost(b, axis));
            x < y && (x - y).abs() > CLOSE * y.abs()
        })
}

/// Whether `a` is better than `b` in the first aim, by more than rounding.
fn ahead(question: &Question, a: f64, b: f64) -> bool {
    let smaller = question.aims.first().is_some_and(|aim| aim.direction == Direction::Minimize);
    let hair = CLOSE * b.abs();
    if smaller { a < b - hair } else { a > b + hair }
}

/// The first aim's figure of a deployment, as answers give it.
fn aimed(question: &Question, found: &Found) -> Option<f64> {
    let metric = question.aims.first()?.metric;
    let value = found.point[metric as usize] / metric.entry().scale;
    value.is_finite().then_some(value)
}

/// The bound and the gap against the best.
fn proved(question: &Question, saved: &Value, best: Option<&Found>) -> Vec<String> {
    let proof = &saved["proof"];
    let Some((found, bound)) = best.and_then(|best| aimed(question, best)).zip(proof["bound"].as_f64())
    else {
        return vec![];
    };
    let mut faults = Vec::new();
    if ahead(question, found, bound) {
        faults.push(format!("proof.bound: {bound} is saved, the best comes to {found}"));
    }
    let gap = if found == bound { 0.0 } else { (found - bound).abs() / found.abs() };
    if (figure(proof, "gap") - gap).abs() > CLOSE || proof["gap"].is_null() {
        faults.push(format!("proof.gap: {} is saved, {gap} comes out", proof["gap"]));
    }
    if saved["status"] == "optimal" && gap > CLOSE {
        faults.push(format!("status: optimal is saved, the gap is {gap}"));
    }
    faults
}

/// The best and the bound of a search that was stopped against those of one that was not.
fn beyond(question: &Question, saved: &Value, fresh: &Answer, best: Option<&Found>) -> Vec<String> {
    let (bound, reached) = (saved["proof"]["bound"].as_f64(), fresh.proof.bound);
    let mut faults = Vec::new();
    if let Some((bound, reached)) =
        bound.zip(reached).filter(|(bound, reached)| ahead(question, *reached, *bound))
    {
        faults.push(format!("proof.bound: {bound} is saved, {reached} is reached"));
    }
    let found = best.and_then(|best| aimed(question, best));
    if let Some((found, reached)) =
        found.zip(reached).filter(|(found, reached)| ahead(question, *found, *reached))
    {
        faults.push(format!("best: {found} is saved, nothing is better than {reached}"));
    }
    faults
}

/// Checks a saved answer of `question`; `fresh` is the answer of a search of its own.
pub fn verify(question: &Question, saved: &Value, fresh: &Answer, (count, seed): (u64, u64)) -> Verified {
    let mut checks = Vec::new();
    let mut asked = Vec::new();
    differences("", &saved["question"], &value(&fresh.question), &mut asked);
    checks.push(Check::new("question: resolves to the same, every default filled in", 1, asked));
    let best_row: Vec<&Value> = saved.get("best").into_iter().filter(|row| !row.is_null()).collect();
    let (best, check) = evaluated(question, "best", &best_row);
    let unread = best_row.len() != best.len();
    checks.push(check);
    let best = best.into_iter().next();
    let (others, check) = evaluated(question, "alternative", &rows(saved, "alternatives"));
    checks.push(check);
    let (front, check) = evaluated(question, "front", &rows(saved, "front"));
    checks.push(check);
    let status = saved["status"].as_str().unwrap_or_default();
    let solved = matches!(status, "optimal" | "feasible");
    let mut faults = Vec::new();
    if solved != (best.is_some() || unread) {
        faults.push(format!("status {status}, but {} best", if best_row.is_empty() { "no" } else { "a" }));
    }
    let told = |found: &Found| super::answer::plan(&found.candidate).label;
    let better =
        |found: &&Found| best.as_ref().is_some_and(|best| before(&found.point, &best.point, &question.aims));
    faults
        .extend(others.iter().chain(&front).filter(better).map(|found| format!("{} is better", told(found))));
    checks.push(Check::new(
        "objective: no row of the answer is better than its best",
        others.len() + front.len(),
        faults,
    ));
    let axes = &question.axes;
    let beaten =
        front.iter().filter(|one| front.iter().any(|other| dominates(&other.point, &one.point, axes)));
    let beaten: Vec<String> =
        beaten.map(|one| format!("{} is dominated by another row", told(one))).collect();
    checks.push(Check::new("front: no row is dominated by another", front.len(), beaten));
    // What lies in host memory is drawn by no sample: it is slower than all that fits.
    let drawn = sample(question, best.as_ref().map(|best| &best.point), count, seed);
    let better = drawn.better.iter().map(|found| {
        format!("{} with {} requests is better", told(found), requests(found.candidate.in_flight(question)))
    });
    // What was stopped says only that nothing is beyond its bound.
    let stopped = matches!(status, "feasible" | "unknown");
    let faults: Vec<String> = if unread || stopped { vec![] } else { better.collect() };
    let what = format!(
        "sample: of {} deployments drawn, {} keep the limits and none is better",
        drawn.drawn, drawn.kept
    );
    checks.push(Check::new(what, drawn.drawn as usize, faults));
    let what = "proof: the bound and the gap agree with the best";
    checks.push(Check::new(what, 1, proved(question, saved, best.as_ref())));
    let (what, faults) = if stopped {
        let what = "search: done again to its end, nothing is beyond the bound and the best is no better than the best";
        (what, beyond(question, saved, fresh, best.as_ref()))
    } else {
        let keys = [
            "status",
            "proof",
            "best",
            "census",
            "nearest",
            "front_points",
            "detail",
            "alternatives",
            "lower_format",
            "split_ratio",
        ];
        let what = "search: done again, comes to the same answer and the same census";
        (what, unlike(&keys, saved, &value(fresh)))
    };
    checks.push(Check::new(what, 1, faults));
    Verified::of(checks, seed)
}
