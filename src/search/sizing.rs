//! Number of copies of a system for a number of users, with their load, power and cost.
//!
//! Identical replicas are searched first, exhaustively. Where other deployments are possible, a search of these alone
//! finds whether they take fewer copies, or serve the share of one copy at a lower latency. The full load of a copy is a
//! search of all deployments, for the system that is kept. Covers one system; [`super::ranking`] chooses among systems.

pub mod candidates;

use crate::spec::offload::OffloadPolicy;

use super::error_ratios::ErrorRatios;
use super::family::StrategyFamily;
use super::hint::above;
use super::layouts::Layouts;
use super::outcome::{Census, EvaluatedCandidate};
use super::point::{Point, place};
use super::problem::{Formats, Problem, Traffic};
use super::run::UNWATCHED;
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
use crate::spec::evidence::EvidenceRule;
use crate::spec::objective::Metric;
use candidates::{NearestCandidate, SizingCandidates, instances, shapes};

/// A sized system: as [`SizedForUsers`], with its full load.
#[derive(Clone, Debug)]
pub struct Sized {
    pub copies: u64,
    pub share: u64,
    pub at_share: EvaluatedCandidate,
    /// The deployment of one copy with the highest throughput within the SLOs.
    pub full: EvaluatedCandidate,
    pub full_users: u64,
    pub census: Census,
}

/// A system sized for its users, before the search of its full load: every user has a concurrency of one.
pub struct SizedForUsers {
    /// Number of copies of the system; the users are divided among them.
    pub copies: u64,
    /// Concurrency of the copy with the highest load.
    pub share: u64,
    /// The deployment of one copy at that load with the lowest latency.
    pub at_share: EvaluatedCandidate,
    /// Maximum concurrency of one copy within the SLOs: exact for identical replicas, a lower bound for other
    /// deployments.
    pub full_users: u64,
    layouts: Layouts,
    /// A deployment within the SLOs, whose throughput the maximum is at least.
    floor: Option<Point>,
    pub census: Census,
}

impl SizedForUsers {
    pub fn most_users(&self) -> u64 {
        self.full_users * self.copies
    }

    /// Output tokens per second per user, with the given users.
    pub fn tok_s_per_user(&self) -> f64 {
        self.at_share.point[place(Metric::OutputTokSPerUser)]
    }

    /// Whether it is better than another of the same system and quality: fewer copies, then more users, then a higher
    /// speed per user.
    pub fn serves_more(&self, other: &SizedForUsers) -> bool {
        let users = self.most_users().cmp(&other.most_users());
        let speed = self.tok_s_per_user().total_cmp(&other.tok_s_per_user());
        other.copies.cmp(&self.copies).then(users).then(speed).is_gt()
    }

    /// The same with the deployment of one copy that has the highest throughput.
    pub fn at_full_load(self, problem: &Problem) -> Sized {
        let SizedForUsers { copies, share, at_share, full_users, layouts, floor, mut census } = self;
        let target = problem.with_traffic(Traffic::Free).optimizing(Metric::OutputTokS);
        let copy = CopySearch { problem, layouts: &layouts };
        let full = copy.optimum(&target, floor.as_ref(), &mut census).unwrap_or_else(|| at_share.clone());
        Sized { copies, share, at_share, full, full_users, census }
    }
}

#[derive(Clone, Debug)]
pub struct Unfit {
    /// Census id of the reason.
    pub kind: String,
    /// The reason with its numbers.
    pub reason: String,
    /// The nearest candidate, where an SLO is missed.
    #[cfg_attr(not(feature = "internals"), allow(dead_code))]
    pub nearest: Option<EvaluatedCandidate>,
    pub census: Census,
}

#[derive(Clone, Copy, Debug)]
pub struct Totals {
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
        OffloadPolicy::Auto | OffloadPolicy::Always => {
            problem.host_memory.unwrap_or(0.0) * problem.cluster.nodes as f64
        }
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

struct CopySearch<'a> {
    problem: &'a Problem,
    layouts: &'a Layouts,
}

impl CopySearch<'_> {
    /// Whether anything else than identical replicas is searched: disaggregated workers, and with a router that has weights
    /// any mix.
    fn has_others(&self) -> bool {
        self.problem.split || self.problem.custom_router
    }

    /// The optimum of `target`, where it is as good as `floor`.
    fn optimum(
        &self,
        target: &Problem,
        floor: Option<&Point>,
        census: &mut Census,
    ) -> Option<EvaluatedCandidate> {
        let outcome = above(target, floor, self.layouts, &UNWATCHED);
        census.add(outcome.census);
        outcome.best
    }

    /// The deployment of `share` requests with the lowest latency, where it is none of identical replicas and better than
    /// `known`.
    fn other(
        &self,
        share: u64,
        known: Option<&EvaluatedCandidate>,
        census: &mut Census,
    ) -> Option<EvaluatedCandidate> {
        let mut target = at_share(self.problem, share);
        if !target.custom_router {
            target.family = StrategyFamily::Split;
        }
        let found = self.optimum(&target, known.map(|known| &known.point), census);
        found.filter(|found| known.is_none_or(|known| target.is_better(&found.point, &known.point)))
    }
}

/// The problem of a copy at its share of the users: the lowest latency.
fn at_share(problem: &Problem, share: u64) -> Problem {
    problem.with_traffic(Traffic::InFlight(share.into())).optimizing(Metric::E2e)
}

/// The fewest copies below `most` that serve `users`, which no identical replicas do, with the deployment of one copy
/// that has the lowest latency.
fn fewer(copy: &CopySearch, users: u64, most: u64, census: &mut Census) -> Option<(u64, EvaluatedCandidate)> {
    let mut found: Option<(u64, EvaluatedCandidate)> = None;
    largest(most - 1, |saved| {
        let copies = most - saved;
        let served = copy.other(users.div_ceil(copies), None, census);
        let serves = served.is_some();
        // Fewer copies may be tried before more.
        if let Some(served) = served
            && found.as_ref().is_none_or(|(known, _)| copies < *known)
        {
            found = Some((copies, served));
        }
        serves
    });
    found
}

/// A problem, and the system sized for its users.
pub struct SizedProblem {
    pub problem: Problem,
    pub sized: SizedForUsers,
}

/// The minimum number of copies of the system that serve `users` within the SLOs, under a rule on the kinds of plans: those
/// of measured kinds count, unless they take more copies than the best of all takes at the worse end of its interval.
pub fn size_by(problem: Problem, users: u64) -> Result<SizedProblem, Box<Unfit>> {
    let sized = size(&problem, users)?;
    let candidate = &sized.at_share.candidate;
    if problem.space.rule == EvidenceRule::Any || problem.space.rows_of(candidate) > 0 {
        return Ok(SizedProblem { problem, sized });
    }
    let errors = candidate.interval(&problem).map_or(ErrorRatios::NONE, ErrorRatios::worse_end);
    let most = (sized.copies as f64 / errors.output).ceil() as u64;
    let measured = problem.clone().with_measured_only(true);
    let found = size(&measured, users).ok().filter(|found| found.copies <= most);
    Ok(match found {
        Some(sized) => SizedProblem { problem: measured, sized },
        None => SizedProblem { problem, sized },
    })
}

/// The minimum number of copies of the system that serve `users` within the SLOs.
pub fn size(problem: &Problem, users: u64) -> Result<SizedForUsers, Box<Unfit>> {
    let refused = |reason: Infeasible| {
        let (kind, reason) = (reason.kind().to_string(), reason.to_string());
        Box::new(Unfit { kind, reason, nearest: None, census: Census::default() })
    };
    problem.context_fits().map_err(refused)?;
    if let Some(reason) = too_large(problem) {
        return Err(refused(reason));
    }
    let free = &problem.with_traffic(Traffic::Free);
    let mut census = Census::default();
    let layouts = Layouts::shared(free);
    let instances = instances(free, &layouts, &mut census);
    let shapes = shapes(free, &instances, &mut census);
    let replicas = SizingCandidates::new(free, &shapes);
    let alike = replicas.most(&mut census);
    let copy = CopySearch { problem, layouts: &layouts };
    // One copy per user, or the number that identical replicas need.
    let most = alike.map_or(users, |alike| users.div_ceil(alike.users));
    let more = copy.has_others() && (alike.is_some() || replicas.meets_tpot());
    let saved = if more { fewer(&copy, users, most, &mut census) } else { None };
    let copies = saved.as_ref().map_or(most, |(copies, _)| *copies);
    let share = users.div_ceil(copies);
    let quickest = || {
        let target = at_share(problem, share);
        let quickest = replicas.quickest(&target, share, &mut census);
        let known = quickest.map(|key| replicas.found(&target, key));
        let other = if more { copy.other(share, known.as_ref(), &mut census) } else { None };
        other.or(known)
    };
    let Some(at_share) = saved.map(|(_, found)| found).or_else(quickest) else {
        return Err(Box::new(unfit(replicas.nearest(), census)));
    };
    let full_users = alike.map_or(share, |alike| alike.users.max(share));
    let floor = alike.map(|alike| alike.point);
    Ok(SizedForUsers { copies, share, at_share, full_users, layouts, floor, census })
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
