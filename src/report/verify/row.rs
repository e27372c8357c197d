//! Rows of a saved result as deployments, each re-evaluated from the formulas.

use serde_json::Value;

use super::laws::laws;
use super::{CheckResult, differences, value};
use crate::plan::parallel::ParallelPlan;
use crate::report::answer::{forbidden, report_deployment};
use crate::report::result::ReportedDeployment;
use crate::search::candidate::{Candidate, PoolPlan, PoolRole};
use crate::search::outcome::EvaluatedCandidate;
use crate::search::problem::Problem;
use crate::serving::terms::OffloadTarget;
use crate::spec::notation::PlanText;

fn pool(saved: &Value) -> Option<PoolPlan> {
    let plan: ParallelPlan = serde_json::from_value(saved.clone()).ok()?;
    let number = |key: &str| saved.get(key)?.as_u64();
    Some(PoolPlan {
        role: match saved.get("duty")?.as_str()? {
            "both" => PoolRole::Aggregated,
            "prefill" => PoolRole::Prefill,
            "decode" => PoolRole::Decode,
            _ => return None,
        },
        plan,
        stages: serde_json::from_value(saved.get("stages")?.clone()).ok()?,
        replicas: number("replicas").filter(|count| *count > 0)?,
        concurrency: number("concurrency_per_replica").filter(|count| *count > 0)?,
    })
}

/// The deployments that a row may describe: it states the use of host memory, not its content.
fn candidates(problem: &Problem, row: &Value) -> Option<Vec<Candidate>> {
    let plan = row.get("plan")?;
    let apart = plan.get("mode")?.as_str()? == "disaggregated";
    let mut pools = vec![pool(plan.get("prefill")?)?];
    if apart {
        pools.push(pool(plan.get("decode")?)?);
    }
    for other in plan.get("others")?.as_array()? {
        pools.push(pool(other)?);
    }
    // Prefill, decode, aggregated, as deployed.
    let kinds = [PoolRole::Prefill, PoolRole::Decode, PoolRole::Aggregated];
    pools.sort_by_key(|pool| kinds.iter().position(|duty| *duty == pool.role));
    let text = |key: &str| row.get(key)?.as_str();
    let (weights, kv) = (text("weight_format")?, text("kv_format")?);
    let formats = problem.formats.iter().position(|pair| pair.weights == weights && pair.kv == kv)?;
    let streamed = [OffloadTarget::Layers, OffloadTarget::Experts, OffloadTarget::Kv];
    let notation: Option<PlanText> = text("notation").and_then(|plan| plan.parse().ok());
    let offloads = match notation.and_then(|plan| plan.host) {
        Some(part) => vec![OffloadTarget::Host(part)],
        None if text("feasibility")? == "with_offload" => streamed.to_vec(),
        None => vec![OffloadTarget::Nothing],
    };
    let one = |offload| Candidate { formats, pools: pools.clone(), offload };
    Some(offloads.into_iter().map(one).collect())
}

/// Re-evaluates a row: its deployment, or its differences from the saved values.
pub(super) fn again(problem: &Problem, row: &Value) -> Result<EvaluatedCandidate, Vec<String>> {
    let unreadable = || vec!["it is not a deployment of this problem".to_string()];
    let mut least: Option<Vec<String>> = None;
    for candidate in candidates(problem, row).ok_or_else(unreadable)? {
        let sound = candidate.pools.iter().all(|pool| {
            let layers: u64 = pool.stages.iter().map(|layers| u64::from(*layers)).sum();
            pool.stages.len() as u64 == pool.plan.pp && layers == problem.graph.layers.value
        });
        let broken = forbidden(problem, &candidate);
        if !sound || !broken.is_empty() {
            return Err(broken.iter().map(ToString::to_string).chain(unreadable()).take(1).collect());
        }
        if candidate.devices() > problem.cluster.devices() {
            return Err(vec!["it needs more devices than available".into()]);
        }
        let fresh: ReportedDeployment = report_deployment(problem, &candidate);
        let mut faults = laws(problem, row);
        differences("", row, &value(&fresh), &mut faults);
        faults.extend(fresh.violations.iter().cloned());
        if faults.is_empty() {
            let point = crate::search::aggregated::measure(problem, &candidate);
            return Ok(EvaluatedCandidate { candidate, point });
        }
        if least.as_ref().is_none_or(|known| faults.len() < known.len()) {
            least = Some(faults);
        }
    }
    Err(least.unwrap_or_else(unreadable))
}

/// Re-evaluates rows: the valid ones, and a check.
pub(super) fn evaluated(
    problem: &Problem,
    what: &str,
    rows: &[&Value],
) -> (Vec<EvaluatedCandidate>, CheckResult) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        match again(problem, row) {
            Ok(one) => found.push(one),
            Err(why) => faults.extend(why.into_iter().map(|why| format!("{what} {at}: {why}"))),
        }
    }
    (
        found,
        CheckResult::new(
            format!("{what}: re-evaluated, valid, fits in memory, meets the SLOs"),
            rows.len(),
            faults,
        ),
    )
}
