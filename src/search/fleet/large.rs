//! Fleets with too many kinds and buckets for a full branch-and-bound tree: a Lagrangian bound, a mix of the kinds
//! that its prices choose, and the gap between the two.
//!
//! The bound is valid for any prices: with a price on each scarce resource, every bucket goes to the kind with the
//! lowest reduced cost (Lagrange multipliers, by subgradients). The mix merges similar buckets, so that a small
//! program finds it; its shares are checked against every row of the full program.

use std::collections::BTreeMap;

use super::{Bucket, Columns, Fleet, FleetBounds, FleetObjective, MILLS, MOST, SystemKind};
use crate::quantity::tolerance::ROUNDING;
use crate::search::mip::solve::{CertifiedSolution, Prover, SolveBudget, nothing, solve};
use crate::search::mip::{MipModel, MipValues, SHARE};
use crate::search::outcome::Status;

const PRICINGS: usize = 400;
/// Updates without a better bound after which the step size decreases.
const PATIENCE: usize = 12;
/// Maximum number of bucket groups in the small program.
const GROUPS: usize = 80;
/// Number of kinds in the small program: few first, as these solve fast.
const KINDS: [usize; 4] = [2, 4, 7, usize::MAX];
/// Solver nodes for each small program with one kind.
const NODES: u64 = 2_000;
/// Nodes of the built-in search, where the solver fails.
const OWN_NODES: u64 = 1_000;

/// Loads of every bucket on every kind, costs, and scarce resources.
struct ScarceResources<'a> {
    fleet: &'a Fleet,
    /// `[bucket]`: kinds that serve it, with the number of systems that it keeps busy.
    loads: Vec<Vec<(usize, f64)>>,
    /// Units per system in which the loads of each kind are counted.
    fine: Vec<f64>,
    /// Objective coefficient of a system.
    costs: Vec<f64>,
    /// Objective value of serving a bucket; if set, a bucket may be unserved.
    value: Option<Vec<f64>>,
    /// Scarce resources: use per system of each kind, and amount available.
    rows: Vec<(Vec<f64>, f64)>,
}

/// The cheapest kind for every bucket under prices.
struct PricedChoice {
    bound: f64,
    busy: Vec<f64>,
    kinds: Vec<Option<usize>>,
}

impl ScarceResources<'_> {
    /// Cost of a system with prices on scarce resources.
    fn costs(&self, prices: &[f64]) -> Vec<f64> {
        let extra = |kind: usize| {
            self.rows.iter().zip(prices).map(|((each, _), price)| each[kind] * price).sum::<f64>()
        };
        self.costs.iter().enumerate().map(|(kind, cost)| cost + extra(kind)).collect()
    }

    fn priced(&self, prices: &[f64]) -> PricedChoice {
        let costs = self.costs(prices);
        let mut found = PricedChoice {
            bound: -self.rows.iter().zip(prices).map(|((_, most), price)| most * price).sum::<f64>(),
            busy: vec![0.0; costs.len()],
            kinds: vec![None; self.loads.len()],
        };
        for (bucket, loads) in self.loads.iter().enumerate() {
            let cost = |(kind, load): &(usize, f64)| costs[*kind] * load;
            let Some(best) = loads.iter().min_by(|a, b| cost(a).total_cmp(&cost(b))) else { continue };
            let value = cost(best) - self.value.as_ref().map_or(0.0, |value| value[bucket]);
            if self.value.is_none() || value < 0.0 {
                found.bound += value;
                found.busy[best.0] += best.1;
                found.kinds[bucket] = Some(best.0);
            }
        }
        found
    }

    /// The bound of a relaxed problem, tightened: with N+1 spares at least one kind has a spare, and costs of whole
    /// systems are whole. A small margin covers floating-point rounding.
    fn whole_bound(&self, bound: f64, objective: FleetObjective, spare: bool) -> f64 {
        if objective == FleetObjective::Throughput {
            return bound - 1e-9 * bound.abs();
        }
        let loaded = self.loads.iter().any(|loads| !loads.is_empty());
        let spare = self.costs.iter().copied().reduce(f64::min).filter(|_| spare && loaded).unwrap_or(0.0);
        (bound + spare - 1e-9 * bound.abs() - 1e-6).ceil()
    }

    /// The best prices found, their bound, and the average number of busy systems of each kind.
    fn best(&self) -> (Vec<f64>, f64, Vec<f64>) {
        let mut prices = vec![0.0; self.rows.len()];
        let (mut best, mut at, mut busy) = (f64::NEG_INFINITY, prices.clone(), vec![0.0; self.costs.len()]);
        let (mut step_factor, mut idle) = (0.5, 0);
        for _ in 0..PRICINGS {
            let found = self.priced(&prices);
            // Later choices weigh more: the average converges to the optimal shares.
            busy.iter_mut().zip(&found.busy).for_each(|(mean, busy)| *mean = 0.95 * *mean + 0.05 * busy);
            if found.bound > best {
                (best, at, idle) = (found.bound, prices.clone(), 0);
            } else {
                idle += 1;
            }
            if idle >= PATIENCE {
                (step_factor, idle, prices) = (step_factor / 2.0, 0, at.clone());
            }
            let over = |(each, most): &(Vec<f64>, f64)| {
                let used: f64 = each.iter().zip(&found.busy).map(|(each, busy)| each * busy).sum();
                used - most
            };
            let over: Vec<f64> = self.rows.iter().map(over).collect();
            if prices.iter().zip(&over).all(|(price, over)| *over <= 0.0 && *price == 0.0) {
                break;
            }
            // Prices are scaled by row: rows count systems, dollars and devices.
            let length: f64 =
                over.iter().zip(&self.rows).map(|(over, (_, most))| (over / most.max(1.0)).powi(2)).sum();
            let step = step_factor * found.bound.abs().max(1.0) / length.max(1e-12);
            for ((price, over), (_, most)) in prices.iter_mut().zip(&over).zip(&self.rows) {
                let unit = most.max(1.0);
                *price = (*price + step * over / unit / unit).max(0.0);
            }
        }
        (at, best, busy)
    }
}

fn scarce<'a>(fleet: &'a Fleet, objective: FleetObjective, bounds: &FleetBounds) -> ScarceResources<'a> {
    let mills = |kind: &SystemKind| (kind.usd_per_hour * MILLS).ceil();
    let most = |kind: &SystemKind| (kind.usd_per_hour_most * MILLS).ceil();
    let load = |bucket: usize, kind: &SystemKind| kind.load(&fleet.buckets[bucket], bucket);
    let loads = (0..fleet.buckets.len()).map(|bucket| {
        let kinds = fleet.kinds.iter().enumerate();
        kinds.filter_map(|(at, kind)| Some((at, load(bucket, kind)?))).collect()
    });
    let fine =
        |kind: &SystemKind| super::fineness((0..fleet.buckets.len()).filter_map(|bucket| load(bucket, kind)));
    let of = |each: &dyn Fn(&SystemKind) -> f64| fleet.kinds.iter().map(each).collect::<Vec<f64>>();
    let supplied = fleet.supplies.iter().enumerate().filter_map(|(at, supply)| {
        let there = supply.available?.min(MOST as u64) as f64;
        Some((of(&|kind| f64::from(u8::from(kind.supply_index == at))), there))
    });
    let budget = bounds.usd_per_hour.map(|usd| (of(&most), (usd * MILLS).floor()));
    let devices = bounds.devices.map(|most| (of(&|kind| kind.devices as f64), most as f64));
    let rows = supplied.chain(budget).chain(devices).collect();
    let values = || super::values(&fleet.tokens()).into_iter().map(|value| value as f64).collect();
    ScarceResources {
        fleet,
        loads: loads.collect(),
        fine: of(&fine),
        costs: match objective {
            FleetObjective::Cost => of(&mills),
            FleetObjective::Devices => of(&|kind| kind.devices as f64),
            FleetObjective::Throughput => of(&|_| 0.0),
        },
        value: (objective == FleetObjective::Throughput).then(values),
        rows,
    }
}

/// Solves `program`, which is that of `fleet`, without a full branch-and-bound tree.
pub(super) fn solved(
    fleet: &Fleet,
    objective: FleetObjective,
    bounds: &FleetBounds,
    (program, columns): (&MipModel, &Columns),
    effort: &SolveBudget,
) -> CertifiedSolution {
    let none = |status: Status, bound: Option<f64>| CertifiedSolution {
        status,
        bound,
        ..nothing(Prover::Prices, 0, vec![])
    };
    if program.hopeless() {
        return CertifiedSolution { prover: Prover::OwnSearch, ..none(Status::Infeasible, None) };
    }
    let scarce = scarce(fleet, objective, bounds);
    let (prices, bound, busy) = scarce.best();
    let bound = scarce.whole_bound(bound, objective, bounds.spare);
    let most = match objective {
        FleetObjective::Cost => bounds.usd_per_hour.map(|usd| (usd * MILLS).floor()),
        FleetObjective::Devices => bounds.devices.map(|devices| devices as f64),
        FleetObjective::Throughput => None,
    };
    if most.is_some_and(|most| bound > most) {
        return none(Status::Infeasible, None);
    }
    let costs = scarce.costs(&prices);
    let (mut best, mut nodes): (Option<(i128, MipValues)>, u64) = (None, 0);
    for count in KINDS {
        // All kinds only where fewer do not serve everything.
        if count == usize::MAX && best.is_some() {
            break;
        }
        let kinds = chosen(&scarce, &busy, count);
        let Some((values, looked)) =
            mixed(&scarce, objective, bounds, (program, columns), (&kinds, &costs, effort))
        else {
            continue;
        };
        nodes += looked;
        let cost = program.objective(&values);
        if best.as_ref().is_none_or(|(best, _)| cost < *best) {
            best = Some((cost, values));
        }
    }
    let Some((cost, values)) = best else { return none(Status::Unknown, Some(bound)) };
    let objective = cost as f64 / SHARE as f64;
    let proved = objective <= bound + 1e-6 * objective.abs();
    CertifiedSolution {
        status: if proved { Status::Optimal } else { Status::Feasible },
        objective: Some(objective),
        bound: Some(bound.min(objective)),
        values: Some(values),
        rows_checked: program.rows.len() as u64,
        nodes,
        ..none(Status::Feasible, None)
    }
}

/// About `count` kinds: the busiest under the prices, and one for every bucket that none of them serves.
fn chosen(scarce: &ScarceResources, busy: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..busy.len()).collect();
    // Sorted by the cost of busy systems, then by cost per system.
    let weight = |kind: &usize| busy[*kind] * scarce.costs[*kind].max(1.0);
    order.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.cmp(b)));
    let mut kinds: Vec<usize> = order.iter().copied().take(count).collect();
    for loads in &scarce.loads {
        if loads.is_empty() || loads.iter().any(|(kind, _)| kinds.contains(kind)) {
            continue;
        }
        let least = order.iter().copied().find(|kind| loads.iter().any(|(other, _)| other == kind));
        kinds.extend(least);
    }
    kinds.sort_unstable();
    kinds
}

/// The best mix of `kinds` with merged buckets, as values of the full program, and the number of nodes.
fn mixed(
    scarce: &ScarceResources,
    objective: FleetObjective,
    bounds: &FleetBounds,
    (program, columns): (&MipModel, &Columns),
    (kinds, costs, effort): (&[usize], &[f64], &SolveBudget),
) -> Option<(MipValues, u64)> {
    let fleet = scarce.fleet;
    let groups = grouped(scarce, kinds, costs);
    // Loads rounded up as in the full program: a point that satisfies the small rows satisfies the full rows.
    let whole = |kind: usize, group: &[usize]| -> Option<f64> {
        let of = |bucket: &usize| {
            let load = scarce.loads[*bucket].iter().find(|(at, _)| *at == kind)?.1;
            Some((load * scarce.fine[kind]).ceil() / scarce.fine[kind])
        };
        group.iter().map(of).sum()
    };
    let rate = |group: &Vec<usize>| group.iter().map(|at| fleet.buckets[*at].rate).sum::<f64>();
    let bucket = |(at, group): (usize, &Vec<usize>)| {
        let tokens: f64 = group.iter().map(|at| fleet.buckets[*at].tokens()).sum();
        (Bucket { name: at.to_string(), model: 0, rate: rate(group), osl: 1 }, tokens)
    };
    let made: Vec<(Bucket, f64)> = groups.iter().enumerate().map(bucket).collect();
    let kind = |at: &usize| {
        let rates = groups.iter().map(|group| Some(rate(group) / (whole(*at, group)? * (1.0 + ROUNDING))));
        SystemKind { model: 0, rates: rates.collect(), ..fleet.kinds[*at].clone() }
    };
    let small = Fleet {
        buckets: made.iter().map(|(bucket, _)| bucket.clone()).collect(),
        supplies: fleet.supplies.clone(),
        kinds: kinds.iter().map(kind).collect(),
    };
    let tokens: Vec<f64> = made.iter().map(|(_, tokens)| *tokens).collect();
    let (small_program, placed) = super::state_with(&small, objective, bounds, &tokens);
    let nodes = effort.nodes.min(NODES / kinds.len().max(1) as u64);
    let small_effort = SolveBudget { nodes, own_nodes: effort.own_nodes.min(OWN_NODES) };
    let found = solve(&small_program, &small_effort);
    let small_values = found.values?;
    let mut values: MipValues = vec![0; program.columns.len()];
    for (at, kind) in kinds.iter().enumerate() {
        values[columns.counts[*kind]] = small_values[placed.counts[at]];
        if let (Some(whole), Some(part)) = (columns.used.get(kind), placed.used.get(&at)) {
            values[*whole] = small_values[*part];
        }
    }
    let mut shares: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    for &(group, at, column) in &placed.shares {
        groups[group].iter().for_each(|bucket| {
            shares.insert((*bucket, kinds[at]), small_values[column]);
        });
    }
    for &(bucket, kind, column) in &columns.shares {
        values[column] = shares.get(&(bucket, kind)).copied().unwrap_or(0);
    }
    program.check(&values).ok()?;
    Some((values, found.nodes))
}

/// Groups of similar buckets: same cheapest kind of `kinds`, and similar relative costs of the others, at the finest
/// resolution that fits.
fn grouped(scarce: &ScarceResources, kinds: &[usize], costs: &[f64]) -> Vec<Vec<usize>> {
    let mut parts = 64.0;
    loop {
        let mut groups: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
        for (bucket, loads) in scarce.loads.iter().enumerate() {
            let of =
                |kind: &usize| loads.iter().find(|(at, _)| at == kind).map(|(_, load)| load * costs[*kind]);
            let each: Vec<Option<f64>> = kinds.iter().map(of).collect();
            let least = each.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let model = scarce.fleet.buckets[bucket].model as i64;
            let dearer = |cost: &Option<f64>| match cost {
                None => i64::MAX,
                Some(_) if least <= 0.0 => 0,
                Some(cost) => (libm::log(cost / least) * parts).round() as i64,
            };
            let key = std::iter::once(model).chain(each.iter().map(dearer)).collect();
            groups.entry(key).or_default().push(bucket);
        }
        if groups.len() <= GROUPS || parts < 0.25 {
            return groups.into_values().collect();
        }
        parts /= 2.0;
    }
}
