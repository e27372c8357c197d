//! Converts a solved placement into its report, under the same cost model.

use super::{
    BaselineComparison, DisaggregatedReport, PlacementCertificate, PlacementReport, PlacementResult,
    StageReport,
};
use crate::report::sheet::{self, CsvColumn};
use crate::search::placement::baseline::BaselineRule;
use crate::search::placement::chain::{HostOverhead, Stage};
use crate::search::placement::disaggregated::DisaggregatedPlacement;
use crate::search::placement::price::{
    DeviceGroup, MemberPrices, PAGE, PlacementProblem, PlacementWork, PricedChain,
};
use crate::search::placement::solve::{PlacementTime, SolvedPlacement, stage_seconds};

fn rule_name(rule: BaselineRule) -> &'static str {
    match rule {
        BaselineRule::Fewest => "in proportion to memory, on the fewest devices (exo)",
        BaselineRule::All => "in proportion to memory, on all devices (llama.cpp --tensor-split)",
        BaselineRule::BackToFront => "filled back to front (llama.cpp --fit)",
    }
}

fn shares(problem: &PlacementProblem, stages: &[Stage]) -> Vec<(String, usize)> {
    stages.iter().map(|s| (problem.members[s.member].name.clone(), s.to - s.from)).collect()
}

pub fn placement_report(problem: &PlacementProblem, solved: &SolvedPlacement) -> PlacementReport {
    let prices = MemberPrices::new(problem);
    let token = solved.priced(&prices, PlacementWork::Token(solved.batches.1));
    let prompt = solved.priced(&prices, PlacementWork::Prompt);
    let request = solved.priced(&prices, PlacementWork::Request);
    let sum = |priced: &PricedChain| {
        priced.chain.sum(&solved.stages).map_or(f64::NAN, |ticks| 1e3 * priced.seconds(ticks))
    };
    let each =
        |priced: &PricedChain| stage_seconds(priced, &solved.stages, HostOverhead::Once).unwrap_or_default();
    let (decode, prefill) = (each(&token), each(&prompt));
    let layers = token.chain.layers;
    let name = |at: usize| problem.members[at].name.clone();
    let report = |(at, stage): (usize, &Stage)| {
        let (offer, member) = (&problem.members[stage.member], &token.chain.members[stage.member]);
        let alone = |priced: &PricedChain| {
            let member = &priced.chain.members[stage.member];
            let ticks = member.ticks(layers, stage.from, stage.to, HostOverhead::Once);
            1e3 * priced.seconds(ticks.unwrap_or_default())
        };
        let pages = member.pages(layers, stage.from, stage.to).0;
        let over = token.chain.over(stage);
        let time = |times: &[f64]| times.get(at).map_or(f64::NAN, |seconds| 1e3 * seconds);
        StageReport {
            member: offer.name.clone(),
            copies: solved.copies.get(at).into_iter().flatten().map(|at| name(*at)).collect(),
            devices: offer.devices,
            first_layer: stage.from,
            last_layer: stage.to - 1,
            layers: stage.to - stage.from,
            embedding: stage.from == 0,
            head: stage.to == layers,
            decode_ms: time(&decode),
            prefill_ms: time(&prefill),
            send_ms: (time(&decode) - alone(&token)).max(0.0),
            prefill_send_ms: (time(&prefill) - alone(&prompt)).max(0.0),
            memory_bytes: pages as f64 * PAGE,
            usable_bytes: member.usable as f64 * PAGE,
            offloaded_bytes: over as f64 * PAGE,
            experts_out: token.chain.experts_out(stage).map(|first| (first, stage.to - 1)),
            disk_bytes: over.saturating_sub(member.spill.map_or(0, |spill| spill.pages)) as f64 * PAGE,
        }
    };
    let used = |at: usize| {
        solved.stages.iter().any(|stage| stage.member == at)
            || solved.copies.iter().flatten().any(|copy| *copy == at)
    };
    let (flying, requests) = solved.batches;
    let cycle = solved.cycle(&token).unwrap_or(f64::NAN);
    let tokens = flying.saturating_mul(requests).min(problem.concurrency.max(1)) as f64;
    PlacementReport {
        stages: solved.stages.iter().enumerate().map(report).collect(),
        unused: (0..problem.members.len()).filter(|at| !used(*at)).map(name).collect(),
        objective_ms: 1e3 * solved.seconds,
        token_ms: sum(&token),
        prefill_ms: sum(&prompt),
        request_ms: sum(&request),
        decode_tok_s: tokens / cycle,
        micro_batches: flying,
        requests_each: requests,
    }
}

pub fn certificate(solved: &SolvedPlacement, objective: PlacementTime) -> PlacementCertificate {
    let program = match (objective, solved.is_optimal()) {
        (PlacementTime::Step | PlacementTime::Request, true) => {
            "exact dynamic program over devices and layers (minimum sum)"
        }
        (PlacementTime::Cycle, true) if !solved.copies.is_empty() => {
            "exact dynamic programs over devices, bisection over stage times: one device per stage, or equal devices sharing it"
        }
        (PlacementTime::Cycle, true) => {
            "exact dynamic program over devices, bisection over stage times, for every number of stages"
        }
        (PlacementTime::Step | PlacementTime::Request, false) => {
            "relaxations: device order dropped, and devices reused at a Lagrangian price"
        }
        (PlacementTime::Cycle, false) => {
            "exact dynamic programs for the part searched, device capacity bounds for the rest"
        }
    };
    PlacementCertificate {
        objective_ms: 1e3 * solved.seconds,
        lower_bound_ms: 1e3 * solved.bound,
        proved_by: program.into(),
        gap: if solved.is_optimal() { 0.0 } else { 1.0 - solved.bound / solved.seconds },
        independent_bound_ms: 1e3 * solved.cheap_bound,
        states: solved.states,
        unlike_members: solved.kinds,
    }
}

pub fn baseline_comparisons(problem: &PlacementProblem, solved: &SolvedPlacement) -> Vec<BaselineComparison> {
    let one = |(rule, held): &(BaselineRule, Option<(f64, Vec<Stage>)>)| BaselineComparison {
        rule: rule_name(*rule).into(),
        objective_ms: held.as_ref().map(|(seconds, _)| 1e3 * seconds),
        times: held.as_ref().map(|(seconds, _)| seconds / solved.seconds),
        layers: held.as_ref().map(|(_, stages)| shares(problem, stages)).unwrap_or_default(),
    };
    solved.others.iter().map(one).collect()
}

/// The disaggregated placement, compared with the best aggregated one.
pub fn disaggregated_report(
    problem: &PlacementProblem,
    found: &DisaggregatedPlacement,
    together_ms: f64,
) -> DisaggregatedReport {
    DisaggregatedReport {
        theoretical: true,
        runtimes: vec![],
        weight_format: String::new(),
        prefill: shares(problem, &found.prefill_stages),
        decode: shares(problem, &found.decode_stages),
        prefill_ms: 1e3 * found.prefill,
        exposed_ms: 1e3 * (found.arrival - found.prefill),
        token_ms: 1e3 * found.token,
        request_ms: 1e3 * found.request,
        lower_bound_ms: 1e3 * found.bound,
        pairs: found.pairs,
        gain: together_ms / (1e3 * found.request),
    }
}

/// Request time on each device that holds the whole model, ms.
pub fn single_member(problem: &PlacementProblem) -> Vec<(String, f64)> {
    let request = MemberPrices::new(problem).chain(PlacementWork::Request);
    let layers = request.chain.layers;
    let one = |(member, offer): (usize, &DeviceGroup)| {
        let ticks = request.chain.sum(&[Stage { member, from: 0, to: layers }]).ok()?;
        Some((offer.name.clone(), 1e3 * request.seconds(ticks)))
    };
    problem.members.iter().enumerate().filter_map(one).collect()
}

const STAGES: [CsvColumn<StageReport>; 11] = [
    ("member", |stage| stage.member.clone()),
    ("devices", |stage| stage.devices.to_string()),
    ("first_layer", |stage| stage.first_layer.to_string()),
    ("last_layer", |stage| stage.last_layer.to_string()),
    ("decode_ms", |stage| stage.decode_ms.to_string()),
    ("prefill_ms", |stage| stage.prefill_ms.to_string()),
    ("send_ms", |stage| stage.send_ms.to_string()),
    ("memory_bytes", |stage| stage.memory_bytes.to_string()),
    ("offloaded_bytes", |stage| stage.offloaded_bytes.to_string()),
    ("disk_bytes", |stage| stage.disk_bytes.to_string()),
    ("copies", |stage| stage.copies.join(" ")),
];

pub fn csv(answer: &PlacementResult) -> String {
    sheet::table(&STAGES, answer.placement.iter().flat_map(|placed| &placed.stages))
}
