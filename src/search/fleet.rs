//! A mix of systems for a mix of traffic: how many of each, and which share of each length of request goes where.
//!
//! Knows rates and prices, not where they come from. Shares are continuous, numbers of systems whole.

pub mod carried;
mod large;
pub mod rates;

use std::collections::BTreeMap;

use super::mip::reasons::{InfeasibleReasons, reasons};
use super::mip::solve::{CertifiedSolution, SolveBudget, solve};
use super::mip::{MipModel, SHARE, Sense, VariableDomain};
use crate::search::outcome::Status;

/// Requests of like length.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// What it is called.
    pub name: String,
    /// Which of the models it asks.
    pub model: usize,
    /// Requests a second.
    pub rate: f64,
    /// Output tokens of each.
    pub osl: u64,
}

/// What may be had, at one price.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemSupply {
    /// What it is called.
    pub name: String,
    /// How many there are; any number where none.
    pub available: Option<u64>,
}

/// A system of a supply, running one model in one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemKind {
    /// What it is called.
    pub name: String,
    /// Which supply it is of.
    pub supply: usize,
    /// Which model it runs.
    pub model: usize,
    /// Dollars an hour.
    pub usd_per_hour: f64,
    /// Devices.
    pub devices: u64,
    /// Requests a second that it carries of each bucket, given that alone; none where it does not serve it.
    pub rates: Vec<Option<f64>>,
}

impl SystemKind {
    /// Systems of this kind that `rate` requests per second of a bucket keep busy.
    pub fn busy(&self, bucket: usize, rate: f64) -> f64 {
        self.rates[bucket].map_or(f64::INFINITY, |most| rate / most)
    }

    /// Systems of this kind that all of `bucket`, which is numbered `at`, keeps busy; none where it does not serve it.
    fn load(&self, bucket: &Bucket, at: usize) -> Option<f64> {
        let serves = self.model == bucket.model;
        self.rates[at].filter(|rate| serves && *rate > 0.0).map(|rate| bucket.rate / rate)
    }
}

/// What to make small or large.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum FleetObjective {
    /// Least dollars an hour for all traffic.
    #[default]
    Cost,
    /// Fewest devices for all traffic.
    Devices,
    /// Most output tokens of the traffic within the budget.
    Throughput,
}

/// What must be kept besides the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetBounds {
    /// Most dollars an hour.
    pub usd_per_hour: Option<f64>,
    /// Most devices.
    pub devices: Option<u64>,
    /// One system more of every kind in use than its load takes.
    pub spare: bool,
}

/// Everything that is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// Traffic.
    pub buckets: Vec<Bucket>,
    /// What may be had.
    pub supplies: Vec<SystemSupply>,
    /// What it may run.
    pub kinds: Vec<SystemKind>,
}

/// A share of a bucket on a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketShare {
    /// The bucket.
    pub bucket: usize,
    /// The kind.
    pub kind: usize,
    /// How much of the bucket.
    pub share: f64,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct FleetMix {
    /// Systems of each kind, in order.
    pub counts: Vec<u64>,
    /// Where the traffic goes.
    pub parts: Vec<BucketShare>,
    /// What is certified.
    pub solved: CertifiedSolution,
    /// What was solved: its rows are what the answer keeps.
    pub programme: MipModel,
    /// Why there is none, where there is none.
    pub reasons: Option<InfeasibleReasons>,
}

impl Bucket {
    /// Output tokens a second.
    pub fn tokens(&self) -> f64 {
        self.rate * self.osl as f64
    }
}

impl FleetMix {
    /// Output tokens a second that it serves of `fleet`'s traffic.
    pub fn served(&self, fleet: &Fleet) -> f64 {
        self.parts.iter().map(|part| part.share * fleet.buckets[part.bucket].tokens()).sum()
    }
}

/// Thousandths of a dollar, in which money is counted.
pub const MILLS: f64 = 1000.0;
/// Largest coefficient of a row of loads.
const FINEST: f64 = 1_000_000.0;
/// Most systems of one kind.
const MOST: i64 = 100_000;

/// Where the columns of a fleet's programme stand.
#[derive(Default)]
struct Columns {
    counts: Vec<usize>,
    /// Whether a kind is in use at all, where that matters.
    used: BTreeMap<usize, usize>,
    /// Bucket, kind, column.
    shares: Vec<(usize, usize, usize)>,
}

/// Entries of a solver's tableau beyond which its tree has next to no nodes.
const LARGE: u64 = 4_000_000;

/// The mix of `fleet` that is best for `aim` within `bounds`.
pub fn mix(fleet: &Fleet, aim: FleetObjective, bounds: &FleetBounds, effort: &SolveBudget) -> FleetMix {
    let (programme, columns) = state(fleet, aim, bounds);
    let solved = if entries(&programme) > LARGE {
        large::solved(fleet, aim, bounds, (&programme, &columns), effort)
    } else {
        better(solve(&programme, effort), || {
            large::solved(fleet, aim, bounds, (&programme, &columns), effort)
        })
    };
    let why = (solved.status == Status::Infeasible).then(|| {
        // Reasons are found by solving again and again.
        if entries(&programme) > LARGE {
            InfeasibleReasons { conflict: programme.groups(), ..InfeasibleReasons::default() }
        } else {
            reasons(&programme, effort)
        }
    });
    told(programme, &columns, solved, why)
}

/// A mix without a solver's tree for all of it, whatever the size: a bound by prices, and a mix of like buckets.
pub fn mixed(fleet: &Fleet, aim: FleetObjective, bounds: &FleetBounds, effort: &SolveBudget) -> FleetMix {
    let (programme, columns) = state(fleet, aim, bounds);
    let solved = large::solved(fleet, aim, bounds, (&programme, &columns), effort);
    told(programme, &columns, solved, None)
}

/// Entries of a solver's tableau.
fn entries(programme: &MipModel) -> u64 {
    (programme.rows.len() as u64).saturating_mul(programme.columns.len() as u64)
}

/// What a solver found, and where that is not proved the better of it and `another`.
fn better(solved: CertifiedSolution, another: impl FnOnce() -> CertifiedSolution) -> CertifiedSolution {
    if matches!(solved.status, Status::Optimal | Status::Infeasible) {
        return solved;
    }
    let other = another();
    if other.status == Status::Infeasible {
        return other;
    }
    let bound = [solved.bound, other.bound].into_iter().flatten().reduce(f64::max);
    let worth = |solved: &CertifiedSolution| solved.objective.unwrap_or(f64::INFINITY);
    let prover = if other.bound.is_some() && other.bound == bound { other.prover } else { solved.prover };
    let doubts = solved.doubts.clone();
    let best = if worth(&other) < worth(&solved) { other } else { solved };
    let bound = bound.map(|bound| best.objective.map_or(bound, |objective| bound.min(objective)));
    let proved = best.objective.zip(bound).is_some_and(|(objective, bound)| objective <= bound);
    let status = if proved { Status::Optimal } else { best.status };
    CertifiedSolution { bound, prover, status, doubts, ..best }
}

/// The best shares of stated numbers of systems, one for each kind: whether they carry the traffic at all.
pub fn pinned(
    fleet: &Fleet,
    aim: FleetObjective,
    bounds: &FleetBounds,
    counts: &[u64],
    effort: &SolveBudget,
) -> FleetMix {
    let used = |(kind, count): (&SystemKind, &u64)| (*count > 0).then(|| (kind.clone(), *count));
    let (kinds, held): (Vec<SystemKind>, Vec<u64>) = fleet.kinds.iter().zip(counts).filter_map(used).unzip();
    let some = Fleet { kinds, ..fleet.clone() };
    let (mut programme, columns) = state(&some, aim, bounds);
    for (at, count) in columns.counts.iter().zip(&held) {
        let count = *count as i64;
        programme.columns[*at].domain = VariableDomain::Whole { least: count, most: count };
    }
    let solved = solve(&programme, effort);
    told(programme, &columns, solved, None)
}

/// A solved programme as a mix.
fn told(
    programme: MipModel,
    columns: &Columns,
    solved: CertifiedSolution,
    reasons: Option<InfeasibleReasons>,
) -> FleetMix {
    let values = solved.values.clone();
    let counts = columns.counts.iter().map(|at| values.as_ref().map_or(0, |values| values[*at] as u64));
    let parts = columns.shares.iter().filter_map(|&(bucket, kind, at)| {
        let share = values.as_ref()?[at] as f64 / SHARE as f64;
        (share > 0.0).then_some(BucketShare { bucket, kind, share })
    });
    FleetMix { counts: counts.collect(), parts: parts.collect(), programme, solved, reasons }
}

/// Parts of a system that loads are counted in, rounded up: as fine as the largest allows. A fleet is never called too
/// small for its load.
fn fineness(loads: impl Iterator<Item = f64>) -> f64 {
    (FINEST / loads.fold(1.0, f64::max).ceil()).floor().max(1.0)
}

/// What serving all of `bucket` is worth among those of `fleet`, by its tokens: the largest bucket is worth most.
fn worth(fleet: &Fleet, bucket: &Bucket) -> i64 {
    let largest = fleet.buckets.iter().map(Bucket::tokens).fold(0.0, f64::max);
    (bucket.tokens() / largest * FINEST).round() as i64
}

/// The programme: systems of each kind are whole, shares of each bucket on each kind that serves it are not.
fn state(fleet: &Fleet, aim: FleetObjective, bounds: &FleetBounds) -> (MipModel, Columns) {
    state_with(fleet, aim, bounds, &|bucket| fleet.buckets[bucket].tokens())
}

/// The same, where serving all of a bucket comes to `tokens` a second.
fn state_with(
    fleet: &Fleet,
    aim: FleetObjective,
    bounds: &FleetBounds,
    tokens: &dyn Fn(usize) -> f64,
) -> (MipModel, Columns) {
    let Fleet { buckets, supplies, kinds } = fleet;
    let mut programme = MipModel::default();
    let mut columns = Columns::default();
    let mills = |kind: &SystemKind| (kind.usd_per_hour * MILLS).ceil() as i64;
    let load = |bucket: usize, kind: &SystemKind| kind.load(&buckets[bucket], bucket);
    let largest = (0..buckets.len()).map(tokens).fold(0.0, f64::max);
    let mut terms_of: Vec<Vec<(usize, i64)>> = vec![vec![]; buckets.len()];
    for (index, kind) in kinds.iter().enumerate() {
        let loads: Vec<(usize, f64)> =
            (0..buckets.len()).filter_map(|bucket| Some((bucket, load(bucket, kind)?))).collect();
        let all: f64 = loads.iter().map(|(_, load)| load).sum();
        let spare = i64::from(bounds.spare);
        let most = (all.ceil() as i64 + spare).clamp(0, MOST);
        let cost = match aim {
            FleetObjective::Cost => mills(kind),
            FleetObjective::Devices => kind.devices as i64,
            FleetObjective::Throughput => 0,
        };
        let count = programme.whole(kind.name.clone(), (0, most), cost);
        columns.counts.push(count);
        let fine = fineness(loads.iter().map(|(_, load)| *load));
        let mut row = vec![(count, -(fine as i64))];
        for (bucket, load) in loads {
            let worth = match aim {
                FleetObjective::Throughput => -((tokens(bucket) / largest * FINEST).round() as i64),
                FleetObjective::Cost | FleetObjective::Devices => 0,
            };
            let share = programme.share(format!("{} on {}", buckets[bucket].name, kind.name), worth);
            row.push((share, (load * fine).ceil() as i64));
            terms_of[bucket].push((share, 1));
            columns.shares.push((bucket, index, share));
        }
        if bounds.spare {
            let used = programme.whole(format!("{} in use", kind.name), (0, 1), 0);
            columns.used.insert(index, used);
            row.push((used, fine as i64));
            programme.row(
                (format!("use of {}", kind.name), ""),
                vec![(count, 1), (used, -most)],
                Sense::AtMost,
                0,
            );
        }
        programme.row((format!("load of {}", kind.name), ""), row, Sense::AtMost, 0);
    }
    let sense = if aim == FleetObjective::Throughput { Sense::AtMost } else { Sense::Equal };
    for (bucket, terms) in buckets.iter().zip(terms_of) {
        programme.row((format!("traffic {}", bucket.name), "traffic"), terms, sense, 1);
    }
    for (index, supply) in supplies.iter().enumerate() {
        let Some(there) = supply.available else { continue };
        let of = kinds.iter().zip(&columns.counts).filter(|(kind, _)| kind.supply == index);
        let terms: Vec<(usize, i64)> = of.map(|(_, count)| (*count, 1)).collect();
        let name = format!("available {}", supply.name);
        programme.row((name.clone(), name), terms, Sense::AtMost, (there as i64).min(MOST));
    }
    let all = |factor: &dyn Fn(&SystemKind) -> i64| -> Vec<(usize, i64)> {
        kinds.iter().zip(&columns.counts).map(|(kind, count)| (*count, factor(kind))).collect()
    };
    if let Some(usd) = bounds.usd_per_hour {
        let bound = (usd * MILLS).floor() as i64;
        programme.row(("USD per hour", "budget"), all(&|kind| mills(kind)), Sense::AtMost, bound);
    }
    if let Some(devices) = bounds.devices {
        let terms = all(&|kind| kind.devices as i64);
        programme.row(("devices", "devices"), terms, Sense::AtMost, devices as i64);
    }
    (programme, columns)
}
