//! How many copies of a system serve so many users, at which load, and what the whole draws and costs.
//!
//! Like instances that take prompts and answers are looked at first, all of them; where they take several copies or
//! miss a limit, the search says whether anything else takes fewer. Knows one system at a time; which of several to
//! take is for [`super::offers`].

pub mod candidates;

use super::outcome::{Census, EvaluatedCandidate};
use super::point::place;
use super::question::{Problem, Traffic};
use super::run::{UNWATCHED, run};
use super::shape::largest;
use crate::plan::infeasible::Infeasible;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::quantity::datum::Datum;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::economy::{Bill, usd_per_second, usd_per_token, watts};
use crate::serving::evaluate::residency;
use crate::serving::instance::Instance;
use crate::serving::metrics::closed_loop;
use crate::serving::terms::Lengths;
use crate::spec::objective::{Direction, Metric, ObjectiveTerm};
use candidates::{MaxServed, NearestCandidate, SizingCandidates, layouts, shapes};

/// Users who each keep one request in flight, served by copies of one system.
#[derive(Clone, Debug)]
pub struct Sized {
    /// Copies of the system, each with a share of the users.
    pub copies: u64,
    /// Requests in flight of the copy that has most.
    pub share: u64,
    /// What one copy runs at that share: the quickest deployment.
    pub at_share: EvaluatedCandidate,
    /// What one copy runs when it carries all it can: the most output within the limits.
    pub full: EvaluatedCandidate,
    /// Most requests in flight that one copy is known to carry within the limits: of like instances no more, of
    /// others at least as many.
    pub full_users: u64,
    /// What became of every candidate of all searches.
    pub census: Census,
}

/// Why a system cannot serve.
#[derive(Clone, Debug)]
pub struct Unfit {
    /// The kind of reason, as the census counts it.
    pub kind: String,
    /// The reason, with its numbers.
    pub reason: String,
    /// What came nearest, where limits are what it misses.
    pub nearest: Option<EvaluatedCandidate>,
    /// What became of every candidate.
    pub census: Census,
}

/// What all copies together yield and draw.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Output tokens a second.
    pub output_tok_s: f64,
    /// Power of the devices, idle ones included; none where no power is known.
    pub watts: Option<f64>,
    /// Devices, idle ones included.
    pub devices: u64,
}

/// Bytes of the model in the question's formats of that index, and what one device may hold.
pub fn weights(question: &Problem, formats: usize) -> (f64, f64) {
    let layers = vec![question.graph.layer_block.len() as u32];
    let whole = Instance::new(&question.graph, ParallelPlan::SINGLE, layers, question.tiers());
    let machine = question.formats[formats].plain();
    let held = residency(&Plain, &whole, Phase::Decode, machine, question.terms(), 1);
    (held.weights.value(), held.usable.value())
}

/// The least weights of the question's formats, where even they do not fit on all of its devices.
fn too_large(question: &Problem) -> Option<Infeasible> {
    let devices = question.cluster.devices() as f64;
    let mut least: Option<(f64, f64)> = None;
    for formats in 0..question.formats.len() {
        let (needed, usable) = weights(question, formats);
        if needed <= usable * devices {
            return None;
        }
        if least.is_none_or(|(known, _)| needed < known) {
            least = Some((needed, usable));
        }
    }
    let (needed, usable) = least?;
    Some(Infeasible::OutOfMemory { needed: needed / devices, available: usable, largest: "weights" })
}

/// A missed limit, else what most shapes were refused for.
fn unfit(nearest: Option<NearestCandidate>, census: Census) -> Unfit {
    if let Some((_, found, missed)) = nearest {
        let (kind, reason) = (missed.kind().to_string(), missed.to_string());
        return Unfit { kind, reason, nearest: Some(found), census };
    }
    // Of memory and rules, memory is what a buyer can do something about.
    let weight = |kind: &str, count: u64| (kind == "out_of_memory", count);
    let commonest = census.illegal.iter().max_by_key(|(kind, refusal)| weight(kind, refusal.count));
    let (kind, reason) =
        commonest.map(|(kind, refusal)| (kind.clone(), refusal.example.clone())).unwrap_or_default();
    Unfit { kind, reason, nearest: None, census }
}

/// The question with this traffic.
fn asked(question: &Problem, traffic: Traffic) -> Problem {
    let mut asked = question.clone();
    asked.traffic = traffic;
    asked
}

/// The best of everything that the search knows, under `aim`: split pools and unlike instances too.
fn searched(
    question: &Problem,
    traffic: Traffic,
    aim: ObjectiveTerm,
    census: &mut Census,
) -> Option<EvaluatedCandidate> {
    let mut asked = asked(question, traffic);
    asked.axes.clear();
    asked.aims = vec![aim];
    let outcome = run(&asked, &UNWATCHED);
    census.add(outcome.census);
    outcome.best
}

/// Fewer copies than `most` that serve `users`, if any do, and what one of them runs.
fn fewer(
    question: &Problem,
    users: u64,
    most: u64,
    census: &mut Census,
) -> Option<(u64, EvaluatedCandidate)> {
    let quickest = ObjectiveTerm { metric: Metric::E2e, direction: Direction::Minimize };
    let mut found: Option<(u64, EvaluatedCandidate)> = None;
    largest(most - 1, |saved| {
        let copies = most - saved;
        let share = Traffic::InFlight(users.div_ceil(copies));
        let best = searched(question, share, quickest, census);
        let serves = best.is_some();
        if let Some(best) = best {
            // Fewer are tried after more.
            if found.as_ref().is_none_or(|(known, _)| copies < *known) {
                found = Some((copies, best));
            }
        }
        serves
    });
    found
}

/// The fewest copies of the question's system that serve `users` within its limits.
///
/// # Errors
/// One user alone is too much for it.
pub fn size(question: &Problem, users: u64) -> Result<Sized, Box<Unfit>> {
    let refused = |reason: Infeasible| {
        let (kind, reason) = (reason.kind().to_string(), reason.to_string());
        Box::new(Unfit { kind, reason, nearest: None, census: Census::default() })
    };
    question.context_fits().map_err(refused)?;
    if let Some(reason) = too_large(question) {
        return Err(refused(reason));
    }
    let free = &asked(question, Traffic::Free);
    let mut census = Census::default();
    let layouts = layouts(free, &mut census);
    let shapes = shapes(free, &layouts, &mut census);
    let bench = SizingCandidates::new(free, &shapes);
    let alike = bench.most(&mut census);
    // A copy for each user, or so many as like instances take.
    let most = alike.map_or(users.saturating_add(1), |alike| users.div_ceil(alike.users));
    let more = question.cluster.devices() > 1 && (alike.is_some() || bench.paced());
    let found = if more { fewer(question, users, most, &mut census) } else { None };
    if let Some((copies, at_share)) = found {
        let share = users.div_ceil(copies);
        let output = ObjectiveTerm { metric: Metric::OutputTokS, direction: Direction::Maximize };
        let full = searched(question, Traffic::Free, output, &mut census).unwrap_or_else(|| at_share.clone());
        let full_users = alike.map_or(share, |alike| alike.users.max(share));
        return Ok(Sized { copies, share, at_share, full, full_users, census });
    }
    let Some(MaxServed { users: full_users, output: (_, full) }) = alike else {
        return Err(Box::new(unfit(bench.nearest(), census)));
    };
    let copies = users.div_ceil(full_users);
    let share = users.div_ceil(copies);
    let quickest = bench.quickest(share, &mut census).expect("some shape carries most users");
    let at_share = bench.found(&asked(question, Traffic::InFlight(share)), quickest);
    Ok(Sized { copies, share, at_share, full: bench.found(free, full), full_users, census })
}

/// The longest context, in powers of two or what the model states, at which `users` are still served within
/// the limits; what is beyond the question's own new prompt tokens is cached. 0 where there is none.
pub fn longest_context(question: &Problem, users: u64) -> u64 {
    let lengths = question.stated.lengths;
    let fresh = lengths.isl - lengths.prefix;
    let layouts = layouts(question, &mut Census::default());
    let serves = |tokens: u64| {
        let Some(isl) = tokens.checked_sub(lengths.osl).filter(|isl| *isl > 0) else { return true };
        let longer = Lengths { isl, prefix: isl.saturating_sub(fresh), ..lengths };
        let question = asked(&question.with_lengths(longer), Traffic::Free);
        if question.context_fits().is_err() {
            return false;
        }
        let shapes = shapes(&question, &layouts, &mut Census::default());
        SizingCandidates::new(&question, &shapes).serves(users)
    };
    let most = question.graph.max_context.unwrap_or(LONGEST);
    let doublings = u64::from(most.ilog2());
    let power = largest(doublings, |power| serves(1 << power));
    if most > 1 << power && power == doublings && serves(most) {
        return most;
    }
    // An answer longer than that leaves no prompt.
    if power == 0 || 1 << power <= lengths.osl { 0 } else { 1 << power }
}

/// Tokens beyond which nobody looks where the model states no limit.
const LONGEST: u64 = 1 << 20;

/// What `copies` of the question's system yield and draw with `users` in flight over them, each running
/// `found`.
pub fn whole(question: &Problem, found: &EvaluatedCandidate, copies: u64, users: u64) -> Totals {
    let terms = question.terms();
    let count = |number: u64| Qty(number as f64);
    let e2e = Qty(found.point[place(Metric::E2e)]);
    let each = question.cluster.devices();
    let spare = count(each - found.candidate.devices());
    let drawn = terms.draw.as_ref().map(|draw| {
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
    /// Dollars a second of all devices, used or not.
    pub fn usd_per_second(&self, bill: &Bill<Datum>) -> f64 {
        usd_per_second(Qty(self.devices as f64), self.watts.map(Qty), &bill.read(&Plain)).value()
    }

    /// Dollars per output token at `usd_per_second`.
    pub fn usd_per_token(&self, usd_per_second: f64) -> f64 {
        usd_per_token(Qty(usd_per_second), Qty(self.output_tok_s)).value()
    }
}
