//! A fleet as text: systems and their counts, routing of the traffic, certificate.

use super::page::{BAD, GOOD, WIDTH, bullet, heading, indent, join, styled_within, wrap};
use crate::quantity::tolerance::QUANTIZED;
use crate::report::fleet::costs::BucketCosts;
use crate::report::fleet::{FleetInputs, FleetResult};
use crate::report::number::{count, digits, limit, percent, plain};
use crate::report::table::{grouped, table as rows, table_within};
use crate::search::fleet::FleetObjective;
use crate::search::mip::solve::Prover;
use crate::search::outcome::Status;
use crate::spec::price::HOURS_OF_A_DAY;

/// Maximum number of traffic rows.
const ROWS: usize = 16;

/// The whole report.
pub fn table(answer: &FleetResult) -> String {
    join([
        head(answer, WIDTH),
        systems(answer, usize::MAX, usize::from(u16::MAX)),
        routes(answer),
        bucket_costs(answer),
        why(answer),
        unserved(answer),
        certificate(answer),
        assumed(&answer.question),
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
    for (name, most) in
        [("TTFT", inputs.limits.ttft), ("TPOT", inputs.limits.tpot), ("E2E", inputs.limits.e2e)]
    {
        if let Some(most) = most {
            text.push_str(&format!("; {name} ≤ {}", limit(most * 1e3)));
        }
    }
    if let Some(basis) = inputs.price_basis {
        text.push_str(&format!("; {}", basis.name()));
    }
    if let Some(usd) = inputs.budget_usd_per_hour {
        text.push_str(&format!("; ≤ {} USD/h", plain(usd)));
    }
    if let Some(devices) = inputs.max_devices {
        text.push_str(&format!("; ≤ {}", count(devices, "device")));
    }
    if inputs.spare {
        text.push_str("; one spare per kind of system");
    }
    if let Some(share) = inputs.headroom {
        text.push_str(&format!("; {} of the capacity stays free", percent(share)));
    }
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
            let all: Vec<String> = answer
                .systems
                .iter()
                .map(|one| format!("{} x {}", grouped(one.count), one.hardware))
                .collect();
            let all = if all.is_empty() { "nothing".to_string() } else { all.join(" + ") };
            styled_within(
                GOOD,
                &format!(
                    "{all}: {} USD/h{}, {}, {proof}",
                    digits(usd),
                    most(answer),
                    count(devices, "device")
                ),
                width,
            )
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
    let row = |one: &crate::report::fleet::Systems| {
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
    let shown: Vec<Vec<String>> = answer.systems.iter().take(most).map(row).collect();
    heading("Fleet", &tokens) + &indent(&table_within(&header, &shown, width.saturating_sub(2)), 2)
}

/// Costs by time and token, in one line.
pub(super) fn costs(answer: &FleetResult) -> Option<String> {
    let costs = answer.costs.as_ref()?;
    let hours = match costs.hours_per_day == HOURS_OF_A_DAY {
        true => String::new(),
        false => format!(" of {} hours", plain(costs.hours_per_day)),
    };
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
    let shown: Vec<Vec<String>> = costs.buckets.iter().take(ROWS).map(row).collect();
    let rest = costs.buckets.len().saturating_sub(ROWS);
    let more = if rest > 0 { format!("{rest} more in --format json") } else { String::new() };
    let line = wrap(&self::costs(answer).unwrap_or_default(), WIDTH, 2, 4);
    heading("Costs", &more) + &line + &indent(&rows(&header, &shown), 2)
}

fn routes(answer: &FleetResult) -> String {
    if answer.routes.is_empty() {
        return String::new();
    }
    let header = ["ISL", "OSL", "requests/s", "share", "system"];
    let row = |route: &crate::report::fleet::Routed| {
        let system = &answer.systems[route.systems as usize];
        vec![
            grouped(route.isl),
            grouped(route.osl),
            digits(route.requests_per_s),
            percent(route.share),
            format!("{}, {}", system.hardware, system.plan),
        ]
    };
    let shown: Vec<Vec<String>> = answer.routes.iter().take(ROWS).map(row).collect();
    let rest = answer.routes.len().saturating_sub(ROWS);
    let more = if rest > 0 { format!("{rest} more in --format csv") } else { String::new() };
    heading("Traffic", &more) + &indent(&rows(&header, &shown), 2)
}

fn why(answer: &FleetResult) -> String {
    if answer.conflict.is_empty() {
        return String::new();
    }
    let proof = if answer.irreducible { "dropping any one makes the rest feasible" } else { "" };
    let mut text = heading("Conflicting constraints", proof);
    text.extend(answer.conflict.iter().map(|group| bullet(group)));
    if let Some(most) = answer.most_output_tok_s {
        let wanted = answer.output_tok_s.1;
        let share = percent(most / wanted);
        text.push_str(&wrap(
            &format!("At most {} of {} output tok/s can be served ({share}).", digits(most), digits(wanted)),
            WIDTH,
            2,
            2,
        ));
    }
    if !answer.helps.is_empty() {
        text.push_str(&heading("Smallest changes that make it feasible", "each re-optimized alone"));
        for help in &answer.helps {
            text.push_str(&bullet(&format!(
                "{}: {} → {}",
                help.what,
                plain(help.stated),
                plain(help.needed)
            )));
        }
    }
    text
}

fn unserved(answer: &FleetResult) -> String {
    let lines: String = answer.unserved.iter().take(ROWS).map(|line| bullet(line)).collect();
    if lines.is_empty() { lines } else { heading("Not served", "") + &lines }
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
    let doubts: String = certificate.doubts.iter().map(|doubt| bullet(doubt)).collect();
    heading("Certificate", "") + &wrap(&text, WIDTH, 2, 2) + &doubts
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

fn assumed(inputs: &FleetInputs) -> String {
    let lines: String = inputs.assumed.iter().map(|line| bullet(line)).collect();
    if lines.is_empty() { lines } else { heading("Defaults used", "not specified") + &lines }
}
