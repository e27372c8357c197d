//! Latency breakdown by bottleneck, module and operator, each against its speed of light (SOL).

use std::collections::BTreeMap;

use super::operators::cut;
use super::page::{BOLD, heading, paragraph, styled};
use crate::plan::parallel::Phase;
use crate::report::breakdown::{CLASSES, Class, Module, OperatorLine};
use crate::report::detail::{DeploymentDetail, PhaseTime};
use crate::report::inputs::ReportInputs;
use crate::report::number::{bar, count, percent, percents, time as spell};
use crate::report::result::ReportedDeployment;
use crate::report::table::grouped;

/// Width of a bar, in characters.
const CELLS: usize = 10;
/// Width of the name column, in characters.
const NAME: usize = 34;
/// Share of a phase below which operators are summed into one line.
const SMALL: f64 = 0.02;

/// The operators of one name in a block, summed.
struct TimeRow {
    place: String,
    layers: u64,
    class: Class,
    time: f64,
    roofline: f64,
}

impl TimeRow {
    fn name(&self) -> String {
        if self.layers > 1 { format!("{} x {}", self.place, self.layers) } else { self.place.clone() }
    }
}

/// Operators of a phase by module, both sorted by time, longest first.
fn modules(times: &PhaseTime) -> Vec<(Module, Vec<TimeRow>)> {
    let mut by: BTreeMap<Module, Vec<TimeRow>> = BTreeMap::new();
    for line in times.operators.iter().filter(|line| line.time_ms > 0.0) {
        let OperatorLine { block, module, layers, class, time_ms, speed_of_light_ms, .. } = line;
        let place = format!("{block}/{module}");
        let rows = by.entry(line.part_of).or_default();
        match rows.iter_mut().find(|row| row.place == place && row.class == *class) {
            Some(row) => {
                row.layers += layers;
                row.time += time_ms;
                row.roofline += speed_of_light_ms;
            }
            None => rows.push(TimeRow {
                place,
                layers: *layers,
                class: *class,
                time: *time_ms,
                roofline: *speed_of_light_ms,
            }),
        }
    }
    let all = |rows: &[TimeRow]| rows.iter().map(|row| row.time).sum::<f64>();
    let mut by: Vec<(Module, Vec<TimeRow>)> = by.into_iter().collect();
    by.iter_mut().for_each(|(_, rows)| rows.sort_by(|a, b| b.time.total_cmp(&a.time)));
    by.sort_by(|a, b| all(&b.1).total_cmp(&all(&a.1)));
    by
}

fn row(name: &str, class: &str, (time, light): (f64, f64), share: f64) -> String {
    let near = if light > 0.0 { percent(light / time) } else { String::new() };
    let light = if light > 0.0 { spell(light) } else { String::new() };
    let bar = bar(share, CELLS);
    let name = cut(name, NAME);
    format!("{name:<NAME$} {class:<13} {:>9} {light:>9} {near:>7}  {:>5} {bar}", spell(time), percent(share))
}

fn phase(times: &PhaseTime, title: &str) -> String {
    let parts = CLASSES.map(|class| times.of(class));
    let shares: Vec<String> = CLASSES
        .iter()
        .zip(percents(&parts))
        .filter(|(class, _)| times.of(**class) > 0.0)
        .map(|(class, share)| format!("{} {share} %", class.name()))
        .collect();
    let mut text = paragraph(&format!("{title}: {} = {}", spell(times.time_ms), shares.join(" + ")));
    let header = format!(
        "    {:<NAME$} {:<13} {:>9} {:>9} {:>7}  {:>5}",
        "operator x layers", "bound by", "time", "SOL", "SOL %", "share"
    );
    text.push_str(&format!("{header}\n"));
    for (module, rows) in modules(times) {
        let sum = |pick: fn(&TimeRow) -> f64| rows.iter().map(pick).sum::<f64>();
        let (time, light) = (sum(|row| row.time), sum(|row| row.roofline));
        let share = |time: f64| time / times.operators_ms;
        let line = row(module.name(), "", (time, light), share(time));
        text.push_str(&format!("    {}\n", styled(BOLD, line.trim_end())));
        let (mut large, mut small): (Vec<&TimeRow>, Vec<&TimeRow>) =
            rows.iter().partition(|row| share(row.time) >= SMALL);
        if small.len() == 1 {
            large.append(&mut small);
        }
        for one in large {
            let line = row(
                &format!("  {}", one.name()),
                one.class.name(),
                (one.time, one.roofline),
                share(one.time),
            );
            text.push_str(&format!("    {}\n", line.trim_end()));
        }
        if !small.is_empty() {
            let sum = |pick: fn(&TimeRow) -> f64| small.iter().map(|row| pick(row)).sum::<f64>();
            let (time, light) = (sum(|row| row.time), sum(|row| row.roofline));
            let name = format!("  {}", count(small.len() as u64, "smaller operator"));
            text.push_str(&format!("    {}\n", row(&name, "", (time, light), share(time)).trim_end()));
        }
    }
    let difference = times.time_ms - times.operators_ms;
    if difference.abs() > times.time_ms * 5e-3 {
        let all = spell(times.operators_ms);
        let why = if difference > 0.0 {
            "the rest is stage transfers, host-memory reads and waits between chunks"
        } else {
            "overlapped communication is shown at full duration; times are summed over pipeline stages"
        };
        text.push_str(&paragraph(&format!("sum of operators {all}; {why}")));
    }
    text
}

pub fn time(detail: &DeploymentDetail, inputs: &ReportInputs, best: &ReportedDeployment) -> String {
    let mut text =
        heading("Latency breakdown", "SOL (speed of light): FLOPs at dense peak, bytes at full bandwidth");
    for times in &detail.phases {
        let title = match times.phase {
            Phase::Prefill => {
                let images = inputs.images.map_or(0, |images| images.number * images.tokens);
                let tokens = inputs.isl - inputs.prefix + images;
                let pool = &best.plan.prefill;
                let each = if pool.plan.dp > 1 { ", one prompt per DP rank" } else { "" };
                format!("Prefill of {} tokens{each} ({})", grouped(tokens), pool.label)
            }
            Phase::Decode => {
                let each = best.plan.decode.concurrency_per_replica;
                format!("Decode step, {} ({})", count(each, "concurrent request"), best.plan.decode.label)
            }
        };
        text.push_str(&phase(times, &title));
    }
    text
}
