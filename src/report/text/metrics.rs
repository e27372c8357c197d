//! The metrics of a deployment, each with its unit, interval and SLO.

use super::page::heading;
use crate::report::detail::Latencies;
use crate::report::inputs::ReportInputs;
use crate::report::number::{digits, limit as spell, percent, requests, time};
use crate::report::result::{ContextBound, ReportedDeployment};
use crate::report::table::grouped;
use crate::spec::objective::{LatencyLimits, Metric};
use crate::spec::role::Role;

/// The latency SLOs: `TTFT ≤ 2 s`.
pub fn limits(limits: &LatencyLimits) -> Vec<String> {
    let limits = [("TTFT", limits.ttft), ("TPOT", limits.tpot), ("E2E", limits.e2e)];
    let spelled = |(name, limit): (&str, Option<f64>)| Some(format!("{name} ≤ {}", spell(limit? * 1e3)));
    limits.into_iter().filter_map(spelled).collect()
}

fn against(value: f64, limit: Option<f64>) -> String {
    let Some(limit) = limit else { return "no SLO".to_string() };
    let limit = limit * 1e3;
    let mark = if value > limit { ": MISSED" } else { "" };
    format!("{} of the SLO of {}{mark}", percent(value / limit), spell(limit))
}

/// The table of metrics; empty if the deployment cannot run.
pub fn metrics(best: &ReportedDeployment, inputs: &ReportInputs) -> String {
    let Some(m) = &best.metrics else { return String::new() };
    let limits = &inputs.limits;
    let answering = if best.plan.decode.role == Role::Decode { "decode worker" } else { "replica" };
    let each = best.plan.decode.concurrency_per_replica;
    let between = |metric: Metric, spell: fn(f64) -> String| {
        let found = best.intervals.as_ref().and_then(|known| known.get(metric));
        let found = found.filter(|q| q.p10 < q.p90);
        found.map(|q| format!("; p10–p90 {} to {}", spell(q.p10), spell(q.p90))).unwrap_or_default()
    };
    let unknown = || ("unknown".to_string(), String::new());
    let (cost, cost_note) = m.usd_per_mtok.map_or_else(unknown, |usd| {
        let total = m.usd_per_mtok_total.map_or_else(|| "unknown".to_string(), digits);
        let note = format!("of output; {total} of input and output");
        (format!("{} USD/Mtok", digits(usd)), note + &between(Metric::UsdPerMtok, digits))
    });
    let by_time = m.usd_per_hour.zip(m.usd_per_day.zip(m.usd_per_month));
    let (hour, hour_note) = by_time.map_or_else(unknown, |(hour, (day, month))| {
        let tokens =
            m.tok_per_usd.map_or_else(String::new, |tokens| format!("; {} output tok/USD", digits(tokens)));
        let note = format!("{} USD/day, {} USD/month{tokens}", digits(day), digits(month));
        (format!("{} USD/h", digits(hour)), note)
    });
    let (power, power_note) = m.watts.map_or_else(unknown, |watts| {
        let joule = m.tok_per_joule.map_or_else(|| "unknown".to_string(), digits);
        let whole = m
            .facility_watts
            .map_or_else(String::new, |watts| format!("; {} W with hosts and facility", digits(watts)));
        (format!("{} W", digits(watts)), format!("of devices; {joule} output tok/J{whole}"))
    });
    let bound = match best.context_bound {
        Some(ContextBound::Model) => ": all that the model supports",
        Some(ContextBound::Server) => ": all that the server takes",
        Some(ContextBound::Memory) => ": all that memory holds",
        None => "",
    };
    let tpot_note = if inputs.osl == 1 {
        "OSL is 1: time of a further token".to_string()
    } else {
        against(m.tpot_ms, limits.tpot)
    };
    let rows = [
        ("TTFT", time(m.ttft_ms), against(m.ttft_ms, limits.ttft) + &between(Metric::Ttft, time)),
        ("TPOT", time(m.tpot_ms), tpot_note + &between(Metric::Tpot, time)),
        ("E2E", time(m.e2e_ms), against(m.e2e_ms, limits.e2e) + &between(Metric::E2e, time)),
        (
            "throughput",
            format!("{} tok/s", digits(m.output_tok_s)),
            format!(
                "{} tok/s per device, {} tok/s per user",
                digits(m.output_tok_s_per_device),
                digits(m.output_tok_s_per_user)
            ) + &between(Metric::OutputTokS, digits),
        ),
        ("cost", cost, cost_note),
        ("cost by time", hour, hour_note),
        ("power", power, power_note),
        (
            "concurrency",
            requests(best.concurrency),
            format!("concurrent requests, {} per {answering}", grouped(each)),
        ),
        (
            "max context",
            format!("{} tokens", grouped(m.max_context_tokens as u64)),
            format!("ISL + OSL, at this concurrency{bound}"),
        ),
        ("formats", best.weight_format.clone(), format!("weights; KV cache {}", best.kv_format)),
    ];
    let mut text = heading("Metrics", "");
    for (name, value, note) in rows {
        text.push_str(format!("  {name:<12} {value:<14}  {note}").trim_end());
        text.push('\n');
    }
    text
}

/// The table; empty if only mean latencies are known.
pub fn percentiles(latencies: &[Latencies]) -> String {
    if latencies.is_empty() {
        return String::new();
    }
    let mut text = heading("Latency percentiles", "Poisson arrivals");
    let names = latencies.iter().map(|at| at.percentile.name().to_string()).collect();
    let row = |pick: fn(&Latencies) -> f64| latencies.iter().map(|at| time(pick(at))).collect();
    let rows: [(&str, Vec<String>); 4] = [
        ("", names),
        ("TTFT", row(|at| at.ttft_ms)),
        ("TPOT", row(|at| at.tpot_ms)),
        ("E2E", row(|at| at.e2e_ms)),
    ];
    for (name, cells) in rows {
        let cells: String = cells.iter().map(|cell| format!("{cell:>12}")).collect();
        text.push_str(format!("  {name:<6}{cells}").trim_end());
        text.push('\n');
    }
    text
}
