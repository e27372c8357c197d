//! Operators on one device, each with its shard, FLOPs, bytes and wire bytes.

use super::page::{BOLD, heading, paragraph, styled};
use crate::plan::parallel::Phase;
use crate::quantity::unit::{FLOP, humanize};
use crate::report::breakdown::OperatorLine;
use crate::report::detail::{DeploymentDetail, PhaseTime};
use crate::report::number::{count, digits, gib, percent};
use crate::report::shard::Shard;
use crate::report::table::grouped;

/// Width of the name column, in characters.
const NAME: usize = 31;
/// Width of the shard column, in characters.
const SHARD: usize = 30;
/// Share of a phase below which operators are summed into one line.
const SMALL: f64 = 0.01;
/// Decimal prefixes.
const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// `2.42 T`; empty for zero.
pub(super) fn scaled(value: f64) -> String {
    if value <= 0.0 {
        return String::new();
    }
    let step = ((libm::log10(value) / 3.0).floor().max(0.0) as usize).min(PREFIXES.len() - 1);
    format!("{} {}", digits(value / 1000f64.powi(step as i32)), PREFIXES[step]).trim_end().to_string()
}

/// `text` in at most `width` characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

fn row(cells: [&str; 6]) -> String {
    let [name, shard, replicas, flops, bytes, wire] = cells;
    let (name, shard) = (cut(name, NAME), cut(shard, SHARD));
    let line = format!("    {name:<NAME$} {shard:<SHARD$} {replicas:>4} {flops:>8} {bytes:>8} {wire:>8}");
    format!("{}\n", line.trim_end())
}

fn operator(line: &OperatorLine) -> String {
    let name = match line.layers {
        1 => format!("{}/{}", line.block, line.module),
        layers => format!("{}/{} x {layers}", line.block, line.module),
    };
    let shard = line.shard.as_ref().map(Shard::text).unwrap_or_default();
    let replicas = line.shard.as_ref().map(|shard| shard.replicas.to_string()).unwrap_or_default();
    let [flops, bytes, wire] = [line.flops, line.bytes, line.wire_bytes].map(scaled);
    row([&name, &shard, &replicas, &flops, &bytes, &wire])
}

fn phase(times: &PhaseTime) -> String {
    let title = match times.phase {
        Phase::Prefill => "Prefill",
        Phase::Decode => "Decode step",
    };
    let mut sums = vec![
        format!("{title}: MFU {}", percent(times.mfu)),
        format!("MBU {}", percent(times.mbu)),
        format!("{}FLOP", scaled(times.flops)),
        format!("{}B of memory", scaled(times.bytes)),
    ];
    if times.wire_bytes > 0.0 {
        let used = times.interconnect.iter().filter(|one| one.wire_bytes > 0.0);
        let busy: Vec<_> = used.map(|one| format!("{} {}", one.level, percent(one.load_share))).collect();
        let busy =
            if busy.is_empty() { String::new() } else { format!(" (links busy: {})", busy.join(", ")) };
        sums.push(format!("{}B sent{busy}", scaled(times.wire_bytes)));
    }
    if times.bubble_share > 0.0 {
        sums.push(format!("pipeline bubble {}", percent(times.bubble_share)));
    }
    let mut text = paragraph(&sums.join(", "));
    text.push_str(&header());
    let working = times.operators.iter().filter(|line| line.flops + line.bytes + line.wire_bytes > 0.0);
    let (large, small): (Vec<_>, Vec<_>) =
        working.partition(|line| line.time_ms >= times.operators_ms * SMALL);
    large.into_iter().for_each(|line| text.push_str(&operator(line)));
    if !small.is_empty() {
        let sum = |of: fn(&OperatorLine) -> f64| scaled(small.iter().map(|line| of(line)).sum());
        let name = count(small.len() as u64, "smaller operator");
        let (flops, bytes) = (sum(|line| line.flops), sum(|line| line.bytes));
        text.push_str(&row([&name, "", "", &flops, &bytes, &sum(|line| line.wire_bytes)]));
    }
    text
}

pub fn step_operators<'a>(lines: impl Iterator<Item = &'a OperatorLine>) -> String {
    let working = lines.filter(|line| line.flops + line.bytes + line.wire_bytes > 0.0);
    header() + &working.map(operator).collect::<String>()
}

fn header() -> String {
    let header = row(["operator x layers", "whole -> on one device", "same", "FLOP", "B", "B sent"]);
    format!("{}\n", styled(BOLD, header.trim_end()))
}

pub fn operators(detail: &DeploymentDetail) -> String {
    let note = "on one device of each pipeline stage; same: devices of the stage with the same shard";
    let mut text = heading("Operators", note);
    detail.phases.iter().for_each(|times| text.push_str(&phase(times)));
    let (own, older) = (detail.prefill_flops, detail.prefill_flops_noncausal_without_head);
    let rate = detail.prefill_tok_s.map_or_else(String::new, |rate| {
        let tokens = |rate: f64| grouped(rate.round() as u64);
        let ends = detail.prefill_interval.filter(|ends| ends.p10 < ends.p90);
        let ends = ends.map(|ends| format!(" (p10–p90 {} to {})", tokens(ends.p10), tokens(ends.p90)));
        format!(" Each replica prefills {} tok/s{} at its load.", tokens(rate), ends.unwrap_or_default())
    });
    text.push_str(&paragraph(&format!(
        "A prompt takes {} on the whole model; {} if every query sees every key, without LM head, as older \
         tools count.{rate}",
        humanize(own, FLOP),
        humanize(older, FLOP),
    )));
    if detail.host_memory_peak_bytes > 0.0 {
        let peak = gib(detail.host_memory_peak_bytes);
        let ends = detail
            .host_memory_interval
            .map(|ends| format!(", p10–p90 {} to {}", gib(ends.p10), gib(ends.p90)));
        let ends = ends.unwrap_or_default();
        text.push_str(&paragraph(&format!(
            "Host memory: at most {peak} of weights and KV cache per node{ends}."
        )));
    }
    text
}
