//! Number of copies of a system for a number of users, with their load, power and cost.
//!
//! Aggregated deployments of identical replicas are searched first, exhaustively. On several devices the full search
//! then finds whether another deployment takes fewer copies, and the one of a copy with the lowest latency. Covers one
//! system; [`super::ranking`] chooses among systems.

pub mod candidates;

use std::borrow::Cow;

use super::outcome::{Census, EvaluatedCandidate};
use super::point::place;
use super::problem::{Formats, OffloadPolicy, Problem, Traffic};
use super::run::{UNWATCHED, run};
use super::shape::largest;
use crate::plan::infeasible::Infeasible;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::quantity::datum::Datum;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::admission::residency;
use crate::serving::economy::{Bill, usd_per_second, usd_per_token, watts};
use crate::serving::instance::Instance;
use crate::serving::metrics::closed_loop;
use crate::spec::objective::{Direction, Metric, ObjectiveTerm};
use candidates::{MaxServed, NearestCandidate, SizingCandidates, layouts, shapes};

/// A sized system: every user has a concurrency of one.
#[derive(Clone, Debug)]
pub struct Sized {
    /// Number of copies of the system; the users are divided among them.
    pub copies: u64,
    /// Concurrency of the copy with the highest load.
    pub share: u64,
    /// The deployment of one copy at that load with the lowest latency.
    pub at_share: EvaluatedCandidate,
    /// The deployment of one copy with the highest throughput within the SLOs.
    pub full: EvaluatedCandidate,
    /// Maximum concurrency of one copy within the SLOs: exact for identical replicas, a lower bound for other
    /// deployments.
    pub full_users: u64,
    /// Counts of all candidates of all searches.
    pub census: Census,
}

/// The reason why a system is infeasible.
#[derive(Clone, Debug)]
pub struct Unfit {
    /// Census id of the reason.
    pub kind: String,
    /// The reason with its numbers.
    pub reason: String,
    /// The nearest candidate, where an SLO is missed.
    pub nearest: Option<EvaluatedCandidate>,
    /// Counts of all candidates.
    pub census: Census,
}

/// Total throughput and power of all copies.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Output tokens per second.
    pub output_tok_s: f64,
    /// Power of the devices in W, idle ones included; `None` where unknown.
    pub watts: Option<f64>,
    /// Devices, idle ones included.
    pub devices: u64,
}

/// Model bytes in each format pair, in order, and usable bytes per device.
pub fn weights(problem: &Problem) -> Vec<(f64, f64)> {
    let layers = vec![problem.graph.layer_block.len() as u32];
    let whole = Instance::new(&problem.graph, ParallelPlan::SINGLE, layers, problem.tiers());
    let of = |formats: &Formats| {
        let held = residency(&Plain, &whole, Phase::Decode, formats.plain(), problem.terms(), 1);
        (held.weights.value(), held.usable.value())
    };
    problem.formats.iter().map(of).collect()
}

/// The error if even the smallest weights exceed the memory of all devices, and of their hosts where a part of the
/// model may be in host memory.
fn too_large(problem: &Problem) -> Option<Infeasible> {
    let devices = problem.cluster.devices() as f64;
    let hosts = match problem.offload {
        OffloadPolicy::Never => 0.0,
        OffloadPolicy::Considered => problem.host_memory.unwrap_or(0.0) * problem.cluster.nodes as f64,
    };
    let mut least: Option<(f64, f64)> = None;
    for (needed, usable) in weights(problem) {
        if needed <= usable * devices + hosts {
            return None;
        }
        if least.is_none_or(|(known, _)| needed < known) {
            least = Some((needed, usable));
        }
    }
    let (needed, usable) = least?;
    Some(Infeasible::OutOfMemory { needed: needed / devices, available: usable, largest: "weights" })
}

/// The missed SLO, or the most frequent rejection.
fn unfit(nearest: Option<NearestCandidate>, census: Census) -> Unfit {
    if let Some((_, found, missed)) = nearest {
        let (kind, reason) = (missed.kind().to_string(), missed.to_string());
        return Unfit { kind, reason, nearest: Some(found), census };
    }
    // Memory comes before plan rules: a larger device can fix it.
    let weight = |kind: &str, count: u64| (kind == "out_of_memory", count);
    let commonest = census.illegal.iter().max_by_key(|(kind, refusal)| weight(kind, refusal.count));
    let (kind, reason) =
        commonest.map(|(kind, refusal)| (kind.clone(), refusal.example.clone())).unwrap_or_default();
    Unfit { kind, reason, nearest: None, census }
}

/// The problem with this traffic.
fn with_traffic(problem: &Problem, traffic: Traffic) -> Cow<'_, Problem> {
    if problem.traffic == traffic {
        return Cow::Borrowed(problem);
    }
    let mut changed = problem.clone();
    changed.traffic = traffic;
    Cow::Owned(changed)
}

/// The optimum of the full search under `aim`, disaggregated and mixed deployments included.
fn searched(
    problem: &Problem,
    traffic: Traffic,
    aim: ObjectiveTerm,
    census: &mut Census,
) -> Option<EvaluatedCandidate> {
    let mut changed = with_traffic(problem, traffic).into_owned();
    changed.axes.clear();
    changed.aims = vec![aim];
    let outcome = run(&changed, &UNWATCHED);
    census.add(outcome.census);
    outcome.best
}

/// The fewest copies up to `most` that serve `users`, with the deployment of one copy that has the lowest latency.
fn fewest(
    problem: &Problem,
    users: u64,
    most: u64,
    census: &mut Census,
) -> Option<(u64, EvaluatedCandidate)> {
    let quickest = ObjectiveTerm { metric: Metric::E2e, direction: Direction::Minimize };
    let mut serving = |copies: u64| {
        let share = Traffic::InFlight(users.div_ceil(copies));
        searched(problem, share, quickest, census).map(|best| (copies, best))
    };
    let mut found: Option<(u64, EvaluatedCandidate)> = None;
    largest(most - 1, |saved| {
        let served = serving(most - saved);
        let serves = served.is_some();
        // Fewer copies may be tried before more.
        if let Some(served) =
            served.filter(|(copies, _)| found.as_ref().is_none_or(|(known, _)| copies < known))
        {
            found = Some(served);
        }
        serves
    });
    found.or_else(|| serving(most))
}

/// The minimum number of copies of the system that serve `users` within the SLOs.
///
/// # Errors
/// The system is infeasible for one user.
pub fn size(problem: &Problem, users: u64) -> Result<Sized, Box<Unfit>> {
    let refused = |reason: Infeasible| {
        let (kind, reason) = (reason.kind().to_string(), reason.to_string());
        Box::new(Unfit { kind, reason, nearest: None, census: Census::default() })
    };
    problem.context_fits().map_err(refused)?;
    if let Some(reason) = too_large(problem) {
        return Err(refused(reason));
    }
    let free = &*with_traffic(problem, Traffic::Free);
    let mut census = Census::default();
    let layouts = layouts(free, &mut census);
    let shapes = shapes(free, &layouts, &mut census);
    let bench = SizingCandidates::new(free, &shapes);
    let alike = bench.most(&mut census);
    // One copy per user, or the number that identical replicas need.
    let most = alike.map_or(users, |alike| users.div_ceil(alike.users));
    // On one device nothing but identical replicas serves.
    let more = problem.cluster.devices() > 1 && (alike.is_some() || bench.paced());
    let found = if more { fewest(problem, users, most, &mut census) } else { None };
    if let Some((copies, at_share)) = found {
        let share = users.div_ceil(copies);
        let output = ObjectiveTerm { metric: Metric::OutputTokS, direction: Direction::Maximize };
        let full = searched(problem, Traffic::Free, output, &mut census).unwrap_or_else(|| at_share.clone());
        let full_users = alike.map_or(share, |alike| alike.users.max(share));
        return Ok(Sized { copies, share, at_share, full, full_users, census });
    }
    let Some(MaxServed { users: full_users, output: (_, full) }) = alike else {
        return Err(Box::new(unfit(bench.nearest(), census)));
    };
    let copies = users.div_ceil(full_users);
    let share = users.div_ceil(copies);
    let quickest = bench.quickest(share, &mut census).expect("some configuration carries most users");
    let at_share = bench.found(&with_traffic(problem, Traffic::InFlight(share)), quickest);
    Ok(Sized { copies, share, at_share, full: bench.found(free, full), full_users, census })
}

/// Throughput and power of `copies` of the system at a total concurrency of `users`, each copy running `found`.
pub fn totals(problem: &Problem, found: &EvaluatedCandidate, copies: u64, users: u64) -> Totals {
    let terms = problem.terms();
    let count = |number: u64| Qty(number as f64);
    let e2e = Qty(found.point[place(Metric::E2e)]);
    let each = problem.cluster.devices();
    let spare = count(each - found.candidate.devices());
    let drawn = terms.power_draw.as_ref().map(|draw| {
        let idle = watts(spare, Qty(0.0), Qty(0.0), draw).value();
        (found.point[place(Metric::Watts)] + idle) * copies as f64
    });
    Totals {
        output_tok_s: closed_loop(count(users), terms.osl, e2e).value(),
        watts: drawn,
        devices: each * copies,
    }
}

impl Totals {
    /// Cost of all devices in USD/s, used or not.
    pub fn usd_per_second(&self, bill: &Bill<Datum>) -> f64 {
        usd_per_second(Qty(self.devices as f64), self.watts.map(Qty), &bill.read(&Plain)).value()
    }

    /// Cost in USD per output token at `usd_per_second`.
    pub fn usd_per_token(&self, usd_per_second: f64) -> f64 {
        usd_per_token(Qty(usd_per_second), Qty(self.output_tok_s)).value()
    }
}
