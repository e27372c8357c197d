//! A mix of systems for a mix of traffic: number of systems of each kind, and share of each traffic bucket on each
//! kind.
//!
//! Rates and prices are inputs. Shares are continuous, numbers of systems are whole.

pub mod carried;
mod large;
pub mod rates;

use std::collections::BTreeMap;

use super::mip::reasons::{InfeasibleReasons, reasons};
use super::mip::solve::{CertifiedSolution, SolveBudget, solve};
use super::mip::{MipModel, SHARE, Sense};
use crate::search::outcome::Status;

/// Requests of similar length.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    pub name: String,
    pub model: usize,
    /// Requests per second.
    pub rate: f64,
    pub osl: u64,
}

/// Systems available at one price.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemSupply {
    pub name: String,
    /// Number available; `None` means unlimited.
    pub available: Option<u64>,
}

/// A system of a supply that runs one model in one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemKind {
    pub name: String,
    pub supply_index: usize,
    pub model: usize,
    pub usd_per_hour: f64,
    /// The most that it may cost, in USD/h; the budget holds at this price.
    pub usd_per_hour_most: f64,
    pub devices: u64,
    /// Requests per second that it sustains of each bucket alone; `None` where it does not serve the bucket.
    pub rates: Vec<Option<f64>>,
}

impl SystemKind {
    /// Systems of this kind that `rate` requests per second of a bucket keep busy.
    pub fn busy(&self, bucket: usize, rate: f64) -> f64 {
        self.rates[bucket].map_or(f64::INFINITY, |most| rate / most)
    }

    /// Systems of this kind that all of `bucket`, with index `at`, keeps busy; `None` where it does not serve the
    /// bucket.
    fn load(&self, bucket: &Bucket, at: usize) -> Option<f64> {
        let serves = self.model == bucket.model;
        self.rates[at].filter(|rate| serves && *rate > 0.0).map(|rate| bucket.rate / rate)
    }
}

/// Objective of a fleet.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum FleetObjective {
    /// Minimum USD/h for all traffic.
    #[default]
    Cost,
    /// Minimum device count for all traffic.
    Devices,
    /// Maximum output tokens of the traffic within the budget.
    Throughput,
}

/// Constraints in addition to the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetBounds {
    /// Maximum USD/h.
    pub usd_per_hour: Option<f64>,
    /// Maximum number of devices.
    pub devices: Option<u64>,
    /// One spare system (N+1) of every kind in use.
    pub spare: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    pub buckets: Vec<Bucket>,
    pub supplies: Vec<SystemSupply>,
    pub kinds: Vec<SystemKind>,
}

/// A share of a bucket on a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketShare {
    pub bucket: usize,
    pub kind: usize,
    /// Share of the bucket, from 0 to 1.
    pub share: f64,
}

#[derive(Clone, Debug)]
pub struct FleetMix {
    /// Number of systems of each kind, in order.
    pub counts: Vec<u64>,
    pub parts: Vec<BucketShare>,
    pub solved: CertifiedSolution,
    /// The solved program. The solution satisfies its rows.
    pub program: MipModel,
    pub reasons: Option<InfeasibleReasons>,
}

impl Bucket {
    /// Output tokens per second of the bucket.
    pub fn tokens(&self) -> f64 {
        self.rate * self.osl as f64
    }
}

impl Fleet {
    fn tokens(&self) -> Vec<f64> {
        self.buckets.iter().map(Bucket::tokens).collect()
    }
}

impl FleetMix {
    /// Output tokens per second of the traffic of `fleet` that it serves.
    pub fn served(&self, fleet: &Fleet) -> f64 {
        self.parts.iter().map(|part| part.share * fleet.buckets[part.bucket].tokens()).sum()
    }
}

/// Unit of money: a thousandth of a dollar.
pub const MILLS: f64 = 1000.0;
/// Largest coefficient of a load row.
const FINEST: f64 = 1_000_000.0;
/// Maximum number of systems of one kind.
const MOST: i64 = 100_000;

#[derive(Default)]
struct Columns {
    counts: Vec<usize>,
    /// Binary column: whether a kind is in use, where that matters.
    used: BTreeMap<usize, usize>,
    /// Bucket, kind, column.
    shares: Vec<(usize, usize, usize)>,
}

/// Solver tableau size (entries) above which the branch-and-bound tree has almost no nodes.
const LARGE: u64 = 4_000_000;

/// The best mix of `fleet` for `objective` within `bounds`.
pub fn mix(fleet: &Fleet, objective: FleetObjective, bounds: &FleetBounds, effort: &SolveBudget) -> FleetMix {
    let (program, columns) = state(fleet, objective, bounds);
    let solved = if entries(&program) > LARGE {
        large::solved(fleet, objective, bounds, (&program, &columns), effort)
    } else {
        better(solve(&program, effort), || {
            large::solved(fleet, objective, bounds, (&program, &columns), effort)
        })
    };
    let why = (solved.status == Status::Infeasible).then(|| {
        // Infeasibility analysis solves repeatedly.
        if entries(&program) > LARGE {
            InfeasibleReasons { conflict: program.groups(), ..InfeasibleReasons::default() }
        } else {
            reasons(&program, effort)
        }
    });
    solution(program, &columns, solved, why)
}

/// A mix for programs of any size without a full branch-and-bound tree: a bound from prices, and a mix of merged
/// similar buckets.
#[cfg(feature = "internals")]
pub fn mixed(
    fleet: &Fleet,
    objective: FleetObjective,
    bounds: &FleetBounds,
    effort: &SolveBudget,
) -> FleetMix {
    let (program, columns) = state(fleet, objective, bounds);
    let solved = large::solved(fleet, objective, bounds, (&program, &columns), effort);
    solution(program, &columns, solved, None)
}

/// Entries of the solver tableau.
fn entries(program: &MipModel) -> u64 {
    (program.rows.len() as u64).saturating_mul(program.columns.len() as u64)
}

/// The solver result; if it is not proved optimal, the better of it and `another`.
fn better(solved: CertifiedSolution, another: impl FnOnce() -> CertifiedSolution) -> CertifiedSolution {
    if matches!(solved.status, Status::Optimal | Status::Infeasible) {
        return solved;
    }
    let other = another();
    if other.status == Status::Infeasible {
        return other;
    }
    let bound = [solved.bound, other.bound].into_iter().flatten().reduce(f64::max);
    let cost = |solved: &CertifiedSolution| solved.objective.unwrap_or(f64::INFINITY);
    let prover = if other.bound.is_some() && other.bound == bound { other.prover } else { solved.prover };
    let doubts = solved.doubts.clone();
    let best = if cost(&other) < cost(&solved) { other } else { solved };
    let bound = bound.map(|bound| best.objective.map_or(bound, |objective| bound.min(objective)));
    let proved = best.objective.zip(bound).is_some_and(|(objective, bound)| objective <= bound);
    let status = if proved { Status::Optimal } else { best.status };
    CertifiedSolution { bound, prover, status, doubts, ..best }
}

/// The best shares for given numbers of systems of each kind: whether they carry the traffic.
pub fn pinned(
    fleet: &Fleet,
    objective: FleetObjective,
    bounds: &FleetBounds,
    counts: &[u64],
    effort: &SolveBudget,
) -> FleetMix {
    let used = |(kind, count): (&SystemKind, &u64)| (*count > 0).then(|| (kind.clone(), *count));
    let (kinds, held): (Vec<SystemKind>, Vec<u64>) = fleet.kinds.iter().zip(counts).filter_map(used).unzip();
    let some = Fleet { kinds, ..fleet.clone() };
    let (mut program, columns) = state(&some, objective, bounds);
    for (at, count) in columns.counts.iter().zip(&held) {
        let count = *count as i64;
        program.columns[*at].bounds = (count, count);
    }
    let solved = solve(&program, effort);
    solution(program, &columns, solved, None)
}

fn solution(
    program: MipModel,
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
    FleetMix { counts: counts.collect(), parts: parts.collect(), program, solved, reasons }
}

/// Units per system in which loads are counted, rounded up: as fine as the largest coefficient allows. A fleet is
/// never reported too small for its load.
fn fineness(loads: impl Iterator<Item = f64>) -> f64 {
    (FINEST / loads.fold(1.0, f64::max).ceil()).floor().max(1.0)
}

/// Objective value of serving all of each bucket, proportional to its `tokens`; the largest has the highest value.
fn values(tokens: &[f64]) -> Vec<i64> {
    let largest = tokens.iter().copied().fold(0.0, f64::max);
    tokens.iter().map(|tokens| (tokens / largest * FINEST).round() as i64).collect()
}

/// The program: numbers of systems of each kind are whole, shares of each bucket on each kind are continuous.
fn state(fleet: &Fleet, objective: FleetObjective, bounds: &FleetBounds) -> (MipModel, Columns) {
    state_with(fleet, objective, bounds, &fleet.tokens())
}

/// The same program, where serving all of a bucket is worth `tokens` per second.
fn state_with(
    fleet: &Fleet,
    objective: FleetObjective,
    bounds: &FleetBounds,
    tokens: &[f64],
) -> (MipModel, Columns) {
    let (terms, program, columns) =
        (vec![vec![]; fleet.buckets.len()], MipModel::default(), Columns::default());
    let mut builder = ProgramBuilder { fleet, objective, bounds, terms, program, columns };
    let values = values(tokens);
    (0..fleet.kinds.len()).for_each(|kind| builder.add_kind(kind, &values));
    builder.add_traffic();
    builder.add_limits();
    (builder.program, builder.columns)
}

/// Cost of a system in whole units of the program, rounded up.
fn mills(kind: &SystemKind) -> i64 {
    (kind.usd_per_hour * MILLS).ceil() as i64
}

/// The most that a system may cost, in whole units of the program, rounded up.
fn most_mills(kind: &SystemKind) -> i64 {
    (kind.usd_per_hour_most * MILLS).ceil() as i64
}

/// The program of a fleet while it is written.
struct ProgramBuilder<'a> {
    fleet: &'a Fleet,
    objective: FleetObjective,
    bounds: &'a FleetBounds,
    /// Columns of the shares of each bucket.
    terms: Vec<Vec<(usize, i64)>>,
    program: MipModel,
    columns: Columns,
}

impl ProgramBuilder<'_> {
    /// A kind of system: its number, its share of each bucket, and the row that its load fits its number.
    fn add_kind(&mut self, index: usize, values: &[i64]) {
        let (buckets, kind) = (&self.fleet.buckets, &self.fleet.kinds[index]);
        let load = |bucket: usize| Some((bucket, kind.load(&buckets[bucket], bucket)?));
        let loads: Vec<(usize, f64)> = (0..buckets.len()).filter_map(load).collect();
        let fine = fineness(loads.iter().map(|(_, load)| *load));
        let units = |load: f64| (load * fine).ceil() as i64;
        // As many as carry all loads, rounded up as the row has them.
        let all: i64 = loads.iter().map(|(_, load)| units(*load)).sum();
        let enough = all.unsigned_abs().div_ceil(fine as u64) as i64;
        let most = (enough + i64::from(self.bounds.spare)).clamp(0, MOST);
        let cost = match self.objective {
            FleetObjective::Cost => mills(kind),
            FleetObjective::Devices => kind.devices as i64,
            FleetObjective::Throughput => 0,
        };
        let count = self.program.whole(kind.name.clone(), (0, most), cost);
        self.columns.counts.push(count);
        let mut row = vec![(count, -(fine as i64))];
        for (bucket, load) in loads {
            let value = match self.objective {
                FleetObjective::Throughput => -values[bucket],
                FleetObjective::Cost | FleetObjective::Devices => 0,
            };
            let share = self.program.share(format!("{} on {}", buckets[bucket].name, kind.name), value);
            row.push((share, units(load)));
            self.terms[bucket].push((share, 1));
            self.columns.shares.push((bucket, index, share));
        }
        if self.bounds.spare {
            let used = self.program.whole(format!("{} in use", kind.name), (0, 1), 0);
            self.columns.used.insert(index, used);
            row.push((used, fine as i64));
            let terms = vec![(count, 1), (used, -most)];
            self.program.row((format!("use of {}", kind.name), ""), terms, Sense::AtMost, 0);
        }
        self.program.row((format!("load of {}", kind.name), ""), row, Sense::AtMost, 0);
    }

    /// Shares of a bucket add up to all of it, or to at most all of it.
    fn add_traffic(&mut self) {
        let sense = if self.objective == FleetObjective::Throughput { Sense::AtMost } else { Sense::Equal };
        for (bucket, terms) in self.fleet.buckets.iter().zip(std::mem::take(&mut self.terms)) {
            self.program.row((format!("traffic {}", bucket.name), "traffic"), terms, sense, 1);
        }
    }

    fn add_limits(&mut self) {
        let Fleet { supplies, kinds, .. } = self.fleet;
        for (index, supply) in supplies.iter().enumerate() {
            let Some(available) = supply.available else { continue };
            let of = kinds.iter().zip(&self.columns.counts).filter(|(kind, _)| kind.supply_index == index);
            let terms: Vec<(usize, i64)> = of.map(|(_, count)| (*count, 1)).collect();
            let name = format!("available {}", supply.name);
            self.program.row((name.clone(), name), terms, Sense::AtMost, (available as i64).min(MOST));
        }
        let all = |factor: &dyn Fn(&SystemKind) -> i64| -> Vec<(usize, i64)> {
            kinds.iter().zip(&self.columns.counts).map(|(kind, count)| (*count, factor(kind))).collect()
        };
        let (cost, devices) = (all(&most_mills), all(&|kind| kind.devices as i64));
        if let Some(usd) = self.bounds.usd_per_hour {
            let bound = (usd * MILLS).floor() as i64;
            self.program.row(("USD per hour", "budget"), cost, Sense::AtMost, bound);
        }
        if let Some(most) = self.bounds.devices {
            self.program.row(("devices", "devices"), devices, Sense::AtMost, most as i64);
        }
    }
}
