//! A placement as text: layers per device, speed, proof of optimality.

use super::launch::table as launch_table;
use super::page::{
    BAD, GOOD, WIDTH, bullets, heading, indent, join, paragraph, section, styled_within, wrap,
};
use crate::report::number::{count, digits, gib, gib_number, percent, time};
use crate::report::place::{
    DisaggregatedReport, PlacementReport, PlacementResult, StageReport, StageShortfall, TriedChange,
};
use crate::report::proof::StoppedBy;
use crate::report::table::{grouped, table, table_within};
use crate::search::outcome::Status;

pub fn table_of(answer: &PlacementResult) -> String {
    join([
        head(answer, WIDTH),
        answer.placement.as_ref().map(stages).unwrap_or_default(),
        answer.placement.as_ref().map(|placed| speed(placed, answer)).unwrap_or_default(),
        compared(answer),
        disaggregated(answer),
        theoretical(answer).map(|found| heading("Theoretical", "") + &paragraph(&found)).unwrap_or_default(),
        proof(answer),
        infeasible(answer),
        section("Defaults", "", bullets(&answer.question.defaults)),
        section("Notes", "", bullets(&answer.notes)),
        answer.launch.as_ref().map(launch_table).unwrap_or_default(),
    ])
}

fn question(answer: &PlacementResult) -> String {
    let inputs = &answer.question;
    let mut runtimes = inputs.runtimes.clone();
    runtimes.dedup();
    let requests = count(inputs.concurrency, "concurrent request");
    format!(
        "{} in {} on {}; {}; ISL {}, OSL {}, {requests}",
        inputs.model,
        inputs.weight_format,
        inputs.rig,
        runtimes.join(" + "),
        grouped(inputs.isl),
        grouped(inputs.osl),
    )
}

pub(super) fn head(answer: &PlacementResult, width: usize) -> String {
    let question = wrap(&question(answer), width, 0, 2);
    let Some(placed) = &answer.placement else {
        let none = match answer.status {
            Status::Unknown => "STOPPED: no placement found yet",
            _ => "INFEASIBLE: no placement fits",
        };
        return styled_within(BAD, none, width) + &question;
    };
    let what = value(answer, placed);
    let started = if answer.is_theoretical() { "theoretical, no software starts it: " } else { "" };
    let proof = match (answer.status, answer.stopped_by) {
        (Status::Optimal, _) => "optimal under the model",
        (_, Some(StoppedBy::TimeLimit)) => "best found within the time limit",
        (_, Some(StoppedBy::Interrupt)) => "best found so far",
        _ => "best found, not proved optimal",
    };
    let evidence = answer.evidence.map_or_else(String::new, |evidence| format!("; {}", evidence.words()));
    styled_within(GOOD, &format!("{started}{what}, {proof}{evidence}"), width) + &question
}

/// The objective of a placement in words.
fn value(answer: &PlacementResult, placed: &PlacementReport) -> String {
    match answer.question.objective.as_str() {
        "throughput" => format!("{} output tok/s", digits(placed.decode_tok_s)),
        "request" => format!("E2E {}", time(placed.request_ms)),
        "max-context" => format!("{} tokens of context", grouped(answer.max_context.unwrap_or_default())),
        _ => format!("{} per token", time(placed.token_ms)),
    }
}

/// A better placement that no software starts, in one sentence.
pub(super) fn theoretical(answer: &PlacementResult) -> Option<String> {
    let found = answer.theoretical.as_ref()?;
    let placed = &found.placement;
    let mut runtimes = found.runtimes.clone();
    runtimes.dedup();
    let held: Vec<String> =
        placed.stages.iter().map(|stage| format!("{} {}", stage.member, stage.layers)).collect();
    let how = format!("{} in {}", runtimes.join(" + "), found.weight_format);
    let why = found.why.join("; ");
    Some(format!(
        "{} with layers on {} ({how}); no software starts it: {why}",
        value(answer, placed),
        held.join(", ")
    ))
}

/// Prefill and decode on different devices, in one sentence.
pub(super) fn disaggregation(found: &DisaggregatedReport) -> String {
    let gain = match found.gain {
        gain if gain > 1.0005 => format!("{} times as fast", digits(gain)),
        _ => "no faster".to_owned(),
    };
    let open = if proved(found) { "" } else { "; not proved optimal" };
    format!("E2E {}, {gain}; theoretical, no software starts it{open}", time(found.request_ms))
}

/// A row for each stage: device, layers, times, memory; parts outside device memory only where there are any.
pub(super) fn stage_table(stages: &[StageReport], width: usize) -> String {
    let is_offloaded = stages.iter().any(|stage| stage.offloaded_bytes > 0.0);
    let is_stored = stages.iter().any(|stage| stage.disk_bytes > 0.0);
    let mut header = vec!["device", "layers", "n", "decode", "prefill", "transfer", "GiB"];
    header.extend(is_offloaded.then_some("host GiB"));
    header.extend(is_stored.then_some("disk GiB"));
    let row = |stage: &StageReport| {
        let mut row = stage_row(stage);
        row.extend(is_offloaded.then(|| gib_number(stage.offloaded_bytes - stage.disk_bytes)));
        row.extend(is_stored.then(|| gib_number(stage.disk_bytes)));
        row
    };
    indent(&table_within(&header, stages.iter().map(row), width.saturating_sub(2)), 2)
}

/// Device, layers, times and device memory of a stage.
fn stage_row(stage: &StageReport) -> Vec<String> {
    let ends = match (stage.embedding, stage.head) {
        (true, true) => " + embedding, head",
        (true, false) => " + embedding",
        (false, true) => " + head",
        (false, false) => "",
    };
    let member = match stage.devices {
        0 | 1 => stage.member.clone(),
        devices => format!("{} (tp{devices})", stage.member),
    };
    let copies: Vec<&str> =
        std::iter::once(member.as_str()).chain(stage.copies.iter().map(String::as_str)).collect();
    vec![
        copies.join(" | "),
        format!("{}-{}{ends}", stage.first_layer, stage.last_layer),
        stage.layers.to_string(),
        time(stage.decode_ms),
        time(stage.prefill_ms),
        if stage.send_ms > 0.0 { time(stage.send_ms) } else { String::new() },
        format!("{} of {}", gib_number(stage.memory_bytes), gib_number(stage.usable_bytes)),
    ]
}

fn stages(placed: &PlacementReport) -> String {
    let mut text = heading("Layer placement", "");
    text.push_str(&stage_table(&placed.stages, usize::from(u16::MAX)));
    let experts = placed.stages.iter().filter_map(|stage| {
        let (first, last) = stage.experts_out?;
        Some(format!("{first}-{last} of {}", stage.member))
    });
    let experts: Vec<String> = experts.collect();
    if !experts.is_empty() {
        text.push_str(&paragraph(&format!("experts outside device memory: layers {}", experts.join(", "))));
    }
    if placed.stages.iter().any(|stage| !stage.copies.is_empty()) {
        text.push_str(&paragraph(
            "devices separated by | each hold all layers of the stage; requests alternate between them",
        ));
    }
    if !placed.unused.is_empty() {
        text.push_str(&paragraph(&format!("unused: {}", placed.unused.join(", "))));
    }
    text
}

fn speed(placed: &PlacementReport, answer: &PlacementResult) -> String {
    let batches = match placed.micro_batches > 1 {
        true => format!("{} micro-batches of {}", placed.micro_batches, placed.requests_each),
        false => format!("{} in a batch", placed.requests_each),
    };
    let (speed, batches) =
        (format!("{} tok/s", digits(placed.decode_tok_s)), format!("decode only, {batches}"));
    let rows = [
        ["decode step".into(), time(placed.token_ms), "one token through all stages".into()],
        ["prefill".into(), time(placed.prefill_ms), format!("{} tokens", grouped(answer.question.isl))],
        ["E2E".into(), time(placed.request_ms), "one request at batch 1: prefill and decode".into()],
        ["throughput".into(), speed, batches],
    ];
    let lines = table(&["", "", ""], &rows);
    let lines = lines.split_once('\n').map_or("", |(_header, lines)| lines);
    let between = answer.intervals.as_ref().map(|known| {
        let [low, high] = [known.decode_tok_s.p10, known.decode_tok_s.p90].map(digits);
        let rate = format!("{low} to {high} tok/s in decode");
        paragraph(&format!("p10–p90: {}; {rate}; {}", known.words(), known.near.words()))
    });
    heading("Speed", "") + &indent(lines, 2) + &between.unwrap_or_default()
}

/// Whether the disaggregated placement is proved optimal.
pub(super) fn proved(found: &DisaggregatedReport) -> bool {
    found.request_ms <= found.lower_bound_ms * (1.0 + 1e-9)
}

fn layers(shares: &[(String, usize)]) -> String {
    shares.iter().map(|(name, layers)| format!("{name} {layers}")).collect::<Vec<_>>().join(", ")
}

fn compared(answer: &PlacementResult) -> String {
    let lines = answer.compared.iter().map(|other| match (other.objective_ms, other.times) {
        (Some(ms), Some(times)) => {
            let slower = match times {
                times if times < 1.0005 => "equally fast".to_owned(),
                times => format!("{} times as long", digits(times)),
            };
            format!("{}: {}, {slower} ({})", other.rule, time(ms), layers(&other.layers))
        }
        _ => format!("{}: does not fit", other.rule),
    });
    section("Baselines: layers split by memory alone, same cost model", "", bullets(lines))
}

fn disaggregated(answer: &PlacementResult) -> String {
    let Some(found) = &answer.disaggregated else { return String::new() };
    let DisaggregatedReport { prefill, decode, .. } = found;
    let mut runtimes = found.runtimes.clone();
    runtimes.dedup();
    let how = format!("{}, {} in {}", disaggregation(found), runtimes.join(" + "), found.weight_format);
    let mut text = heading("Prefill/decode disaggregation", &how);
    text.push_str(&paragraph(&format!(
        "prefill on {}: {}; KV cache streamed layer by layer, {} of it after prefill; decode on {}: {} per token",
        layers(prefill),
        time(found.prefill_ms),
        time(found.exposed_ms),
        layers(decode),
        time(found.token_ms)
    )));
    let proof = if proved(found) {
        format!("optimal over {} pairs of device sets", grouped(found.pairs))
    } else {
        let gap = 1.0 - found.lower_bound_ms / found.request_ms;
        format!("within {} of the optimum over {} pairs of device sets", percent(gap), grouped(found.pairs))
    };
    text.push_str(&paragraph(&proof));
    if !answer.alone.is_empty() {
        let each = |(name, ms): &(String, f64)| {
            format!("{name} {} ({} times as long)", time(*ms), digits(ms / found.request_ms))
        };
        // Equal devices take equally long: only one of them is listed.
        let mut unlike: Vec<(String, f64)> = answer.alone.clone();
        unlike.dedup_by(|a, b| time(a.1) == time(b.1));
        let alone: Vec<String> = unlike.iter().map(each).collect();
        text.push_str(&paragraph(&format!("single devices: {}", alone.join(", "))));
    }
    text
}

fn proof(answer: &PlacementResult) -> String {
    let Some(proof) = &answer.certificate else { return String::new() };
    let mut text = heading("Proof", "");
    let gap = if proof.gap == 0.0 { "gap 0".to_owned() } else { format!("gap {}", percent(proof.gap)) };
    text.push_str(&paragraph(&format!(
        "{}; lower bound {}, {gap}, by {}; states: {}, kinds of devices: {}",
        time(proof.objective_ms),
        time(proof.lower_bound_ms),
        proof.proved_by,
        grouped(proof.states),
        proof.unlike_members,
    )));
    text.push_str(&paragraph(&format!(
        "independent lower bound (device order and links relaxed): {}",
        time(proof.independent_bound_ms)
    )));
    text
}

fn infeasible(answer: &PlacementResult) -> String {
    let Some(reason) = &answer.infeasible else { return String::new() };
    let mut text = heading("Why", "");
    text.push_str(&paragraph(&reason.text));
    if !reason.conflict.is_empty() {
        text.push_str(&paragraph(
            "minimal conflicting constraints (dropping any one resolves the conflict):",
        ));
        text.push_str(&bullets(&reason.conflict));
    }
    if !reason.innocent.is_empty() {
        text.push_str(&paragraph(&format!("not part of the conflict: {}", reason.innocent.join(", "))));
    }
    if reason.several {
        text.push_str(&paragraph(
            "other constraints conflict as well: relaxing one of these may not be enough",
        ));
    }
    let nearest = reason.nearest.iter().map(|lack| {
        let StageShortfall { member, first_layer, last_layer, short_bytes } = lack;
        let lacks =
            if *short_bytes > 0.0 { format!("short by {}", gib(*short_bytes)) } else { "fits".into() };
        format!("{member}, layers {first_layer}-{last_layer}: {lacks}")
    });
    text.push_str(&section("Nearest placement", "", bullets(nearest)));
    let (helps, useless): (Vec<&TriedChange>, Vec<&TriedChange>) =
        reason.tried.iter().partition(|tried| tried.needed.is_some());
    let title =
        if helps.is_empty() { "Possible changes" } else { "Changes that make it feasible, each tried alone" };
    text.push_str(&heading(title, ""));
    text.push_str(&bullets(helps.iter().map(|TriedChange { change, stated, needed }| {
        format!("{change}: {} (now {stated})", needed.as_deref().unwrap_or_default())
    })));
    if helps.is_empty() {
        text.push_str(&bullets(&reason.fixes));
    }
    if !useless.is_empty() {
        let useless: Vec<&str> = useless.iter().map(|tried| tried.change.as_str()).collect();
        text.push_str(&paragraph(&format!("not enough alone: {}", useless.join(", "))));
    }
    text
}
