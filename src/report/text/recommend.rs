//! A recommendation as text: the named builds, a table of all builds, rejected systems with reasons.

use std::collections::BTreeSet;

use super::head;
use super::page::{
    BAD, GOOD, WIDTH, bullet, bullets, heading, indent, join, paragraph, remainder, section, shorten,
    styled_within, wrap,
};
use crate::report::number::{count, digits, gib, limit, plain, time};
use crate::report::recommend::money::Money;
use crate::report::recommend::{Build, Recommendation, RejectedBuild, Requirements};
use crate::report::table::{grouped, table as rows};

/// Maximum number of rows of the table; CSV and JSON have all.
const ROWS: usize = 16;
/// Maximum number of systems named for a rejection reason.
const NAMES: usize = 6;

pub fn table(answer: &Recommendation) -> String {
    join([
        head(answer, WIDTH),
        named(answer),
        all(answer),
        section("Left out of the comparison", "", bullets(left_out(answer, NAMES))),
        missed(&answer.missed),
        section("Defaults used", "not specified", bullets(&answer.sought.assumed)),
        looked(answer),
    ])
}

pub(super) fn sought(sought: &Requirements) -> String {
    let context = grouped(sought.isl + sought.osl);
    let cached = match sought.prefix {
        0 => String::new(),
        prefix => format!(" ({} of the prompt cached)", grouped(prefix)),
    };
    let mut text = format!(
        "{} for {} at ≥ {} tok/s/user, context {context} tokens{cached}",
        sought.model.as_deref().or(sought.hardware.as_deref()).unwrap_or("everything"),
        count(sought.users, "user"),
        plain(sought.target_tok_s)
    );
    let but = if sought.no_ttft_at_home { " (not at home)" } else { "" };
    let conditions = [
        sought.limits.ttft.map(|ttft| format!("; TTFT ≤ {}{but}", limit(ttft * 1e3))),
        sought.budget_usd.map(|usd| format!("; purchase ≤ {} USD", plain(usd))),
        sought.budget_usd_per_hour.map(|usd| format!("; ≤ {} USD/h", plain(usd))),
        sought.max_watts.map(|watts| format!("; ≤ {} W of devices", plain(watts))),
        sought.price_basis.map(|basis| format!("; {}", basis.name())),
    ];
    text.extend(conditions.into_iter().flatten());
    text
}

pub(super) fn head(answer: &Recommendation, width: usize) -> String {
    let verdict = match answer.minimum.as_ref().or(answer.cheapest.as_ref()) {
        Some(build) => {
            let hourly =
                build.money.usd_per_hour.map_or(String::new(), |usd| format!(", {} USD/h", digits(usd)));
            let text = format!("{}, {}{hourly}", build.name, build.each.weight_format);
            styled_within(GOOD, &text, width)
        }
        None => match answer.builds.first() {
            Some(build) => {
                let why = build.because.as_deref().unwrap_or("its price is unknown");
                let nearest = format!("the cheapest that meets the SLO is {}: {why}", build.name);
                let text = format!("NO SYSTEM TO RECOMMEND; {nearest}");
                styled_within(BAD, &text, width)
            }
            None => styled_within(BAD, "NO SYSTEM OF THE CATALOGUE MEETS THE SLO", width),
        },
    };
    verdict + &wrap(&sought(&answer.sought), width, 0, 2)
}

fn named(answer: &Recommendation) -> String {
    let compared = |build: &Build| answer.minimum.as_ref().filter(|minimum| !std::ptr::eq(*minimum, build));
    choices(answer).iter().map(|(title, build)| render_build(title, build, compared(build))).collect()
}

/// The builds to choose from, with their titles.
pub(super) fn choices(answer: &Recommendation) -> Vec<(String, &Build)> {
    let same = |a: &Build, b: &Option<Build>| {
        b.as_ref().is_some_and(|b| a.name == b.name && a.each.weight_format == b.each.weight_format)
    };
    let also = |build: &Build, text: &'static str| if same(build, &answer.value) { text } else { "" };
    let mut choices = Vec::new();
    if let Some(build) = &answer.minimum {
        choices.push((format!("Minimum{}", also(build, ", and the best value")), build));
    }
    if let Some(build) = &answer.cheapest {
        let also = also(build, ", and the best value");
        choices.push((format!("Cheaper in {}{also}", build.each.weight_format), build));
    }
    let is_tier = |build: &Build| answer.tiers.iter().any(|tier| same(build, &Some(tier.clone())));
    if let Some(build) = &answer.value
        && !same(build, &answer.minimum)
        && !same(build, &answer.cheapest)
        && !is_tier(build)
    {
        choices.push(("Best value".to_owned(), build));
    }
    for (at, build) in answer.tiers.iter().enumerate() {
        choices.push((format!("Upgrade {}{}", at + 1, also(build, ", the best value")), build));
    }
    choices
}

/// A build in a few lines, compared with the minimum if there is one.
fn render_build(title: &str, build: &Build, minimum: Option<&Build>) -> String {
    let money = &build.money;
    let mut text = heading(title, &build.name);
    let each = if build.copies > 1 { "each: " } else { "" };
    let quality = if build.keeps_quality { "" } else { " (below the checkpoint's quality)" };
    text.push_str(&wrap(
        &format!(
            "{each}{} on {}, {} weights{quality}, {}",
            head::plan(&build.each),
            count(build.devices / build.copies, "device"),
            build.each.weight_format,
            build.runtime
        ),
        WIDTH,
        2,
        4,
    ));
    let between = build.each.intervals.as_ref().map_or(String::new(), |intervals| {
        let tok_s = |ms: f64| digits(1e3 / ms);
        format!(" (p10–p90 {} to {})", tok_s(intervals.tpot_ms.p90), tok_s(intervals.tpot_ms.p10))
    });
    let [ttft, watts] = ttft_and_watts(build);
    text.push_str(&wrap(
        &format!(
            "{} tok/s per user{between}{ttft}, {} output tok/s{watts}; max {}, {} tok/s",
            digits(build.tok_s_per_user),
            digits(build.output_tok_s),
            count(build.most_users, "user"),
            digits(build.most_output_tok_s)
        ),
        WIDTH,
        2,
        4,
    ));
    text.extend(build.odds().map(|odds| wrap(&format!("SLO odds: {odds}"), WIDTH, 2, 4)));
    text.extend(least_memory(build).map(|memory| wrap(&format!("memory: {memory}"), WIDTH, 2, 4)));
    text.push_str(&wrap(&priced(build), WIDTH, 2, 4));
    // A ratio to a cost of 0 is undefined.
    let minimum = minimum.and_then(|minimum| Some((minimum, minimum.money.usd_per_hour?)));
    if let Some((minimum, hourly)) = minimum.filter(|(_, hourly)| *hourly > 0.0) {
        let ratio = |now: f64, then: f64| format!("{}x", digits(now / then));
        let cost = money.usd_per_hour.map_or(String::new(), |usd| format!(", {} cost", ratio(usd, hourly)));
        text.push_str(&wrap(
            &format!(
                "vs minimum: {} capacity, {} speed{cost}",
                ratio(build.most_users as f64, minimum.most_users as f64),
                ratio(build.tok_s_per_user, minimum.tok_s_per_user)
            ),
            WIDTH,
            2,
            4,
        ));
    }
    text
}

/// `, TTFT 467 ms` and `, 700 W of devices`, where they are known.
pub(super) fn ttft_and_watts(build: &Build) -> [String; 2] {
    let ttft = build.each.metrics.as_ref().map(|metrics| format!(", TTFT {}", time(metrics.ttft_ms)));
    let watts = build.watts.map(|watts| format!(", {} W of devices", digits(watts)));
    [ttft, watts].map(Option::unwrap_or_default)
}

/// The kinds of reasons, in the order of their names.
pub(super) fn kinds(misses: &[RejectedBuild]) -> BTreeSet<&str> {
    misses.iter().map(|miss| miss.kind.as_str()).collect()
}

/// The least memory of each device and each host with which a build works.
pub(super) fn least_memory(build: &Build) -> Option<String> {
    let memory = build.each.memory.as_ref()?;
    let (device, host) = (gib(memory.on_device()), gib(memory.least_host_bytes));
    Some(format!("at least {device} usable on the fullest device, {host} of each host"))
}

/// Price, parts and range of a build.
pub(super) fn priced(build: &Build) -> String {
    let money = &build.money;
    let Some(basis) = money.basis else {
        return build.because.clone().unwrap_or_else(|| "no price is known".to_owned());
    };
    let known = |usd: Option<f64>| usd.map_or_else(|| "unknown".to_owned(), digits);
    let full = format!(" ({} at full load)", known(money.usd_per_mtok_full));
    let hourly = money.cost().map_or_else(
        || "unknown".to_owned(),
        |cost| format!("{}: {}", basis.name(), cost.row(&range(money.usd_per_hour_range), &full)),
    );
    let dated = match money.dated.as_slice() {
        [] => String::new(),
        [one] => format!("; price of {one}"),
        [first, .., last] => format!("; prices of {first} to {last}"),
    };
    format!("{}{hourly}{}{dated}", bought(money), over_time(money))
}

fn range(ends: Option<[f64; 2]>) -> String {
    ends.map_or(String::new(), |[low, high]| format!(" ({} to {})", digits(low), digits(high)))
}

/// The purchase price with its range and parts; empty for rented devices.
fn bought(money: &Money) -> String {
    let Some(usd) = money.buy_usd else { return String::new() };
    let host = money.host.as_deref().map(|host| format!("{host} "));
    let parts = [
        (money.devices_usd, "devices".to_owned()),
        (money.hosts_usd, format!("{}hosts", host.unwrap_or_default())),
        (money.network_usd, "network".to_owned()),
    ];
    let parts = parts.iter().filter_map(|(usd, name)| Some((usd.filter(|usd| *usd > 0.0)?, name)));
    let parts: Vec<String> = parts.map(|(usd, name)| format!("{name} {}", digits(usd))).collect();
    let parts =
        if parts.len() > 1 { format!(": {}", parts.join(", ")) } else { ", hosts included".to_owned() };
    let energy = money.electricity_usd_per_hour;
    let energy = energy.map_or(String::new(), |usd| format!(" + electricity {} USD/h", digits(usd)));
    format!("buy {} USD{}{parts}{energy}; ", digits(usd), range(money.buy_usd_range))
}

/// Amortization and utilization of owned devices.
fn over_time(money: &Money) -> String {
    let known = money.amortization_months.zip(money.utilization);
    known.map_or(String::new(), |(months, used)| {
        format!("; paid off over {} months, in use {} % of the time", digits(months), digits(100.0 * used))
    })
}

/// Offers that meet the SLO but are left out of the comparison, by reason.
pub(super) fn left_out(answer: &Recommendation, most: usize) -> Vec<String> {
    let kind = |standing: &'static str| {
        let those: Vec<&Build> = answer.builds.iter().filter(|build| build.standing == standing).collect();
        let first = those.first()?;
        let mut names: Vec<&str> = those.iter().map(|build| build.name.as_str()).collect();
        names.dedup();
        let rest = names.len().saturating_sub(most);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let names = names.iter().take(most).copied().collect::<Vec<_>>().join(", ");
        let why = match (standing, first.because.as_deref()) {
            ("unmeasured", _) => "nothing was measured on their vendor; --allow unmeasured includes them",
            (_, why) => why.unwrap_or("no price is known"),
        };
        Some(format!("{names}{rest}: {why}"))
    };
    ["unmeasured", "unpriced"].into_iter().filter_map(kind).collect()
}

fn all(answer: &Recommendation) -> String {
    if answer.builds.is_empty() {
        return String::new();
    }
    let header = [
        "build",
        "weights",
        "USD/h",
        "buy USD",
        "at most",
        "device W",
        "tok/s/user",
        "odds",
        "users",
        "tok/s",
        "status",
    ];
    let known = |figure: Option<f64>| figure.map_or_else(|| "-".to_string(), digits);
    let row = |build: &Build| {
        let because = build.because.as_ref().map_or(String::new(), |why| format!(" by {why}"));
        let standing = if build.standing == "dominated" {
            format!("dominated{because}")
        } else {
            build.standing.clone()
        };
        vec![
            shorten(&build.name, 40),
            build.each.weight_format.clone(),
            known(build.money.usd_per_hour),
            known(build.money.buy_usd),
            known(build.money.buy_usd.and(build.money.most_usd())),
            known(build.watts),
            digits(build.tok_s_per_user),
            build.joint_odds(),
            grouped(build.most_users),
            digits(build.most_output_tok_s),
            shorten(&standing, 48),
        ]
    };
    let more = remainder(answer.builds.len(), ROWS, "in --format csv");
    let shown = answer.builds.iter().take(ROWS).map(row);
    heading("All systems that meet the SLO", &more) + &indent(&rows(&header, shown), 2)
}

pub(super) fn missed(misses: &[RejectedBuild]) -> String {
    if misses.is_empty() {
        return String::new();
    }
    let mut text = heading("Rejected", &format!("{} in --format json", count(misses.len() as u64, "reason")));
    for kind in kinds(misses) {
        let those: Vec<&RejectedBuild> = misses.iter().filter(|miss| miss.kind == kind).collect();
        let names: Vec<&str> = those.iter().take(NAMES).map(|miss| miss.name.as_str()).collect();
        let rest = those.len().saturating_sub(NAMES);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        text.push_str(&bullet(&format!(
            "{kind}: {}{rest}; e.g. {}",
            names.join(", "),
            shorten(&those[0].reason, 160)
        )));
    }
    text
}

fn looked(answer: &Recommendation) -> String {
    let looked = &answer.looked;
    paragraph(&format!(
        "{} considered, {} meet the SLO; {}, {}, {} evaluated, the rest pruned by bounds",
        count(looked.systems, "system"),
        grouped(looked.serve),
        count(looked.searches, "search").replace("searchs", "searches"),
        count(looked.candidates, "candidate"),
        grouped(looked.evaluated)
    ))
}
