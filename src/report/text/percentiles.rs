//! Latency percentiles under random arrivals.

use super::page::heading;
use crate::report::detail::Latencies;
use crate::report::number::time;

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
