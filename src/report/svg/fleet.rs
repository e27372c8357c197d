//! A fleet as bars: its systems by cost and load, the routing of every bucket, and the cost of its tokens.

use super::bars::{LabelledBar, bars, shares};
use super::{SvgPanel, SvgPicture};
use crate::report::fleet::costs::BucketCosts;
use crate::report::fleet::{FleetResult, Systems};
use crate::report::number::{count, digits, percent};

/// The picture of a fleet; empty if infeasible.
pub fn fleet_picture(found: &FleetResult) -> SvgPicture {
    let usd = found.usd_per_hour.map(|usd| format!("{} USD/h, ", digits(usd))).unwrap_or_default();
    let (served, requested) = found.output_tok_s;
    SvgPicture {
        title: format!("Fleet for {}", found.question.models.join(", ")),
        subtitle: format!(
            "{usd}{}; {} of {} output tok/s served",
            count(found.devices.unwrap_or_default(), "device"),
            digits(served),
            digits(requested)
        ),
        panels: if found.systems.is_empty() { vec![] } else { panels(found) },
    }
}

fn panels(found: &FleetResult) -> Vec<SvgPanel> {
    let names: Vec<String> = found.systems.iter().map(name).collect();
    let cost = found.systems.iter().zip(&names).enumerate().map(|(at, (systems, name))| LabelledBar {
        label: name.clone(),
        parts: vec![(at, systems.usd_per_hour, format!("{name}: {}, {}", systems.model, systems.plan))],
        note: format!("{} USD/h, {}", digits(systems.usd_per_hour), systems.plan),
    });
    let load = found.systems.iter().zip(&names).map(|(systems, name)| {
        let idle = (systems.count as f64 - systems.busy).max(0.0);
        let busy = percent(systems.busy / systems.count.max(1) as f64);
        LabelledBar {
            label: name.clone(),
            parts: vec![
                (0, systems.busy, format!("{name}: {} busy", digits(systems.busy))),
                (6, idle, format!("{name}: {} idle", digits(idle))),
            ],
            note: format!("{busy} busy"),
        }
    });
    let mut panels = vec![
        bars("Cost of the systems", &[], &cost.collect::<Vec<_>>()),
        bars("Systems that the load keeps busy", &[(0, "busy"), (6, "idle")], &load.collect::<Vec<_>>()),
        routing(found, &names),
    ];
    panels.extend(found.costs.as_ref().map(|costs| tokens(&costs.buckets)));
    panels
}

fn name(systems: &Systems) -> String {
    format!("{} x {}", systems.count, systems.hardware)
}

fn bucket(isl: u64, osl: u64) -> String {
    format!("ISL {isl}, OSL {osl}")
}

/// The systems that serve each bucket.
fn routing(found: &FleetResult, names: &[String]) -> SvgPanel {
    let mut all: Vec<LabelledBar> = Vec::new();
    for route in &found.routes {
        let label = bucket(route.isl, route.osl);
        let at = route.systems as usize;
        let name = names.get(at).map_or("", String::as_str);
        let title = format!("{label} on {name}: {} of its requests", percent(route.share));
        let part = (at, route.share, title);
        match all.iter_mut().find(|one| one.label == label) {
            Some(one) => one.parts.push(part),
            None => all.push(LabelledBar { label, parts: vec![part], note: String::new() }),
        }
    }
    let legend: Vec<(usize, &str)> = names.iter().map(String::as_str).enumerate().collect();
    shares("Routing of the traffic", &legend, &all)
}

/// Cost of a million tokens of each bucket.
fn tokens(buckets: &[BucketCosts]) -> SvgPanel {
    let legend = [(0, "USD/Mtok in"), (1, "USD/Mtok out")];
    let one = |of: &BucketCosts| {
        let label = bucket(of.isl, of.osl);
        let parts = [of.usd_per_mtok_in, of.usd_per_mtok_out];
        let titled = parts
            .iter()
            .zip(legend)
            .map(|(usd, (at, what))| (at, *usd, format!("{label}: {} {what}", digits(*usd))));
        let note = format!("{} in, {} out", digits(of.usd_per_mtok_in), digits(of.usd_per_mtok_out));
        LabelledBar { parts: titled.collect(), label, note }
    };
    bars("Cost of a million tokens", &legend, &buckets.iter().map(one).collect::<Vec<_>>())
}
