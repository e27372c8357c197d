//! Results as text: the plan first, then its basis.

pub mod alternatives;
pub mod answer_diff;
pub mod audit;
pub mod basis;
pub mod capacity;
pub mod checked;
pub mod devices;
pub mod fleet;
pub mod front;
pub mod head;
pub mod infeasible;
pub mod launch;
pub mod machine;
pub mod metrics;
pub mod models;
pub mod operation;
pub mod operators;
pub mod page;
pub mod parallel;
pub mod place;
pub mod recommend;
mod sampled_replicas;
pub mod screen;
pub mod simulate;
pub mod simulated_figures;
pub mod start;
pub mod static_batch;
pub mod tiers;
pub mod time;
pub mod verify;
pub mod why;

use super::result::{EstimateResult, OptimizeResult};

pub fn table(answer: &OptimizeResult) -> String {
    let Some((best, detail)) = answer.best.as_ref().zip(answer.detail.as_ref()) else {
        return page::join([
            infeasible::head(answer, page::WIDTH),
            infeasible::reasons(&answer.census),
            infeasible::nearest(answer, page::WIDTH),
            infeasible::conflict(answer, page::WIDTH),
            infeasible::weights(answer, page::WIDTH),
            basis::lower_format(answer),
            basis::space(&answer.proof.space),
            basis::census(&answer.census),
        ]);
    };
    page::join([
        head::answer(answer, best, page::WIDTH),
        metrics::metrics(best, &answer.question),
        metrics::percentiles(&detail.percentiles),
        devices::devices(best, &answer.question, &detail.constraints),
        alternatives::ratio(answer, best),
        devices::memory(&detail.pools),
        time::time(detail, &answer.question, best),
        operators::operators(detail),
        devices::binding(&detail.constraints),
        why::why(answer, page::WIDTH),
        checked::checked(answer.checked.as_ref()),
        alternatives::alternatives(answer, best),
        front::front(answer, best),
        basis::lower_format(answer),
        basis::assumptions(&detail.evidence, answer.audit.as_ref()) + &basis::prices(best),
        basis::space(&answer.proof.space),
        basis::census(&answer.census),
    ])
}

pub fn estimate(estimated: &EstimateResult) -> String {
    let EstimateResult { candidate, question: inputs, detail, audit, .. } = estimated;
    let load = estimated.chosen_load.iter().map(|text| page::paragraph(&format!("Load: {text}.")));
    let head = head::estimate(estimated, page::WIDTH)
        + &head::risk(estimated, page::WIDTH)
        + &load.collect::<String>();
    let Some(detail) = detail else { return head };
    let memory = devices::memory(&detail.pools);
    if candidate.metrics.is_none() {
        return page::join([head, devices::devices(candidate, inputs, &[]), memory]);
    }
    page::join([
        head,
        metrics::metrics(candidate, inputs),
        metrics::percentiles(&detail.percentiles),
        devices::devices(candidate, inputs, &detail.constraints),
        memory,
        time::time(detail, inputs, candidate),
        operators::operators(detail),
        devices::binding(&detail.constraints),
        basis::assumptions(&detail.evidence, audit.as_ref()) + &basis::prices(candidate),
    ])
}
