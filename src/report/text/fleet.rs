//! A fleet as text: systems and their counts, routing of the traffic, certificate.

use super::metrics::limits;
use super::page::{
    BAD, GOOD, WIDTH, bullets, heading, indent, join, paragraph, remainder, section, styled_within, wrap,
};
use crate::quantity::tolerance::QUANTIZED;
use crate::report::cost::hours_words;
use crate::report::fleet::costs::BucketCosts;
use crate::report::fleet::{FleetInputs, FleetResult, RelaxationHint, Routed, Systems};
use crate::report::number::{count, digits, percent, plain};
use crate::report::table::{grouped, table as rows, table_within};
use crate::search::fleet::FleetObjective;
use crate::search::mip::solve::Prover;
use crate::search::outcome::Status;

const ROWS: usize = 16;

pub fn table(answer: &FleetResult) -> String {
    join([
        head(answer, WIDTH),
        systems(answer, usize::MAX, usize::from(u16::MAX)),
        routes(answer),
        bucket_costs(answer),
        why(answer),
        section("Not served", "", bullets(answer.unserved.iter().take(ROWS))),
        certificate(answer),
        section("Defaults used", "not specified", bullets(&answer.question.assumed)),
    ])
}

fn question(inputs: &FleetInputs) -> String {
    let rate: f64 = inputs.buckets.iter().map(|bucket| bucket.rate).sum();
    let mut text = format!(
        "{}: {} requests/s in {}, {}",
        inputs.models.join(" and "),
        digits(rate),
        count(inputs.buckets.len() as u64, "bucket"),
        count(inputs.offers.len() as u64, "offer")
    );
    let conditions = [
        inputs.price_basis.map(|basis| basis.name().to_owned()),
        inputs.budget_usd_per_hour.map(|usd| format!("≤ {} USD/h", plain(usd))),
        inputs.max_devices.map(|devices| format!("≤ {}", count(devices, "device"))),
        inputs.spare.then(|| "one spare per kind of system".to_owned()),
        inputs.headroom.map(|share| format!("{} of the capacity stays free", percent(share))),
    ];
    let conditions = limits(&inputs.limits).into_iter().chain(conditions.into_iter().flatten());
    text.extend(conditions.map(|one| format!("; {one}")));
    text.push_str(match inputs.aim {
        FleetObjective::Cost => "; objective cost",
        FleetObjective::Devices => "; objective devices",
        FleetObjective::Throughput => "; objective throughput",
    });
    text
}

pub(super) fn head(answer: &FleetResult, width: usize) -> String {
    let proof = match answer.certificate.status {
        Status::Optimal => "optimal under the model",
        Status::Feasible => "not proved optimal",
        Status::Infeasible | Status::Unknown => "",
    };
    let verdict = match (answer.usd_per_hour, answer.devices) {
        (Some(usd), Some(devices)) => {
            let system = |one: &Systems| format!("{} x {}", grouped(one.count), one.hardware);
            let all: Vec<String> = answer.systems.iter().map(system).collect();
            let all = if all.is_empty() { "nothing".to_string() } else { all.join(" + ") };
            let (usd, devices) = (digits(usd) + " USD/h" + &most(answer), count(devices, "device"));
            styled_within(GOOD, &format!("{all}: {usd}, {devices}, {proof}"), width)
        }
        _ if answer.certificate.status == Status::Unknown => {
            styled_within(BAD, "UNKNOWN: stopped before a fleet was found", width)
        }
        _ => styled_within(BAD, "INFEASIBLE: no fleet serves this traffic", width),
    };
    verdict + &wrap(&question(&answer.question), width, 0, 2)
}

/// The upper end of the price of a fleet, where it differs.
fn most(answer: &FleetResult) -> String {
    let known = answer.usd_per_hour_most.filter(|most| Some(*most) > answer.usd_per_hour);
    known.map_or(String::new(), |most| format!(" (at most {})", digits(most)))
}

/// The first `most` kinds of systems in lines of at most `width` characters.
pub(super) fn systems(answer: &FleetResult, most: usize, width: usize) -> String {
    if answer.systems.is_empty() {
        return String::new();
    }
    let several = answer.question.models.len() > 1;
    let header = ["count", "system", "offer", "plan", "devices", "USD/h", "requests/s", "busy"];
    let row = |one: &Systems| {
        let runs = if several { format!("{}, {}", one.model, one.plan) } else { one.plan.clone() };
        vec![
            grouped(one.count),
            one.hardware.clone(),
            one.offer.clone(),
            runs,
            grouped(one.devices),
            digits(one.usd_per_hour),
            digits(one.requests_per_s),
            percent(one.busy / one.count as f64),
        ]
    };
    let (served, wanted) = answer.output_tok_s;
    let tokens = format!("{} of {} output tok/s served", digits(served), digits(wanted));
    let shown = answer.systems.iter().take(most).map(row);
    heading("Fleet", &tokens) + &indent(&table_within(&header, shown, width.saturating_sub(2)), 2)
}

/// Costs by time and token, in one line.
pub(super) fn costs(answer: &FleetResult) -> Option<String> {
    let costs = answer.costs.as_ref()?;
    let hours = hours_words(costs.hours_per_day);
    Some(format!(
        "{} USD a day{hours}, {} a month, {} a year; {} USD/Mtok in, {} out, {} overall; {} output tok/USD",
        digits(costs.usd_per_day),
        digits(costs.usd_per_month),
        digits(costs.usd_per_year),
        digits(costs.usd_per_mtok_in),
        digits(costs.usd_per_mtok_out),
        digits(costs.usd_per_mtok),
        digits(costs.tok_per_usd)
    ))
}

fn bucket_costs(answer: &FleetResult) -> String {
    let Some(costs) = &answer.costs else { return String::new() };
    let header = ["ISL", "OSL", "requests/s", "USD/h", "USD/1k requests", "USD/Mtok in", "USD/Mtok out"];
    let row = |bucket: &BucketCosts| {
        vec![
            grouped(bucket.isl),
            grouped(bucket.osl),
            digits(bucket.requests_per_s),
            digits(bucket.usd_per_hour),
            digits(bucket.usd_per_1k_requests),
            digits(bucket.usd_per_mtok_in),
            digits(bucket.usd_per_mtok_out),
        ]
    };
    let more = remainder(costs.buckets.len(), ROWS, "in --format json");
    let line = wrap(&self::costs(answer).unwrap_or_default(), WIDTH, 2, 4);
    heading("Costs", &more) + &line + &indent(&rows(&header, costs.buckets.iter().take(ROWS).map(row)), 2)
}

fn routes(answer: &FleetResult) -> String {
    if answer.routes.is_empty() {
        return String::new();
    }
    let header = ["ISL", "OSL", "requests/s", "share", "system"];
    let row = |route: &Routed| {
        let system = &answer.systems[route.systems as usize];
        vec![
            grouped(route.isl),
            grouped(route.osl),
            digits(route.requests_per_s),
            percent(route.share),
            format!("{}, {}", system.hardware, system.plan),
        ]
    };
    let more = remainder(answer.routes.len(), ROWS, "in --format csv");
    heading("Traffic", &more) + &indent(&rows(&header, answer.routes.iter().take(ROWS).map(row)), 2)
}

fn why(answer: &FleetResult) -> String {
    if answer.conflict.is_empty() {
        return String::new();
    }
    let proof = if answer.irreducible { "dropping any one makes the rest feasible" } else { "" };
    let mut text = section("Conflicting constraints", proof, bullets(&answer.conflict));
    if let Some(most) = answer.most_output_tok_s {
        let wanted = answer.output_tok_s.1;
        let share = percent(most / wanted);
        text.push_str(&paragraph(&format!(
            "At most {} of {} output tok/s can be served ({share}).",
            digits(most),
            digits(wanted)
        )));
    }
    let helps = bullets(answer.helps.iter().map(hint));
    text + &section("Smallest changes that make it feasible", "each re-optimized alone", helps)
}

/// A change that makes the problem feasible, in words.
pub(super) fn hint(help: &RelaxationHint) -> String {
    format!("{}: {} → {}", help.what, plain(help.stated), plain(help.needed))
}

fn certificate(answer: &FleetResult) -> String {
    let certificate = &answer.certificate;
    let mut text = proof(answer);
    text.push_str(&format!(
        "; {}, {} system types, {} variables, {} of {} constraints checked in exact integers",
        count(certificate.nodes, "node"),
        grouped(answer.kinds),
        grouped(certificate.columns),
        grouped(certificate.rows_checked),
        grouped(certificate.rows)
    ));
    heading("Certificate", "") + &paragraph(&text) + &bullets(&certificate.doubts)
}

/// Status, prover, objective, bound and gap.
pub(super) fn proof(answer: &FleetResult) -> String {
    let certificate = &answer.certificate;
    let status = match certificate.status {
        Status::Optimal => "optimal",
        Status::Feasible => "feasible, not proved optimal; bound proved",
        Status::Infeasible => "infeasible",
        Status::Unknown => "unknown",
    };
    let prover = match certificate.prover {
        Prover::Solver => "by branch and bound (MIP solver)",
        Prover::OwnSearch => "by exact search",
        Prover::Prices => "by Lagrangian prices on scarce resources",
        Prover::Trivial => "by the sum of least costs",
    };
    let mut text = format!("{status} {prover}");
    if let (Some(value), Some(bound)) = (certificate.objective, certificate.bound) {
        let (value, unit) = (digits(value), &certificate.unit);
        text.push_str(&format!(": {value} {unit}, bound {} {unit}", digits(bound)));
        if let Some(gap) = certificate.gap {
            let gap = if gap > 0.0 && gap < QUANTIZED {
                "0 % (rounding)".into()
            } else {
                format!("{} %", plain(gap * 100.0))
            };
            text.push_str(&format!(", gap {gap}"));
        }
    }
    text
}
