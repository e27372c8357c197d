//! Number of prefill, decode and aggregated workers of each size: exact, by dynamic programs over devices.
//!
//! Works on devices and requests per second. Where throughput is the objective, the value of a pool is the sum over
//! its workers. The best pool of each role for every number of devices is then one knapsack, and the solution divides
//! the devices among three roles. For latency objectives a mix does not help: the slowest worker decides, so the best
//! uniform pool is as good.

use super::mip::solve::{SolveBudget, solve};
use super::mip::{MipModel, MipValues, Sense};
use super::outcome::Status;
use super::packing::{Item, Table};
use super::shape::largest;
use crate::quantity::tolerance::ROUNDING;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worker {
    pub devices: u64,
    /// Maximum requests per second by compute.
    pub works: f64,
    /// Maximum requests per second by KV transfer.
    pub carries: f64,
}

impl Worker {
    /// Maximum requests per second.
    pub fn rate(&self) -> f64 {
        self.works.min(self.carries)
    }

    fn item(&self) -> Item {
        Item { devices: self.devices, value: self.rate() }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    pub prefill: Vec<Worker>,
    pub decode: Vec<Worker>,
    pub aggregated: Vec<Worker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Requests per second.
    Total,
    /// Requests per second per device in use.
    PerDevice,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerMix {
    pub prefill: Vec<u64>,
    pub decode: Vec<u64>,
    pub aggregated: Vec<u64>,
    /// Requests per second of the disaggregated part.
    pub disaggregated_rate: f64,
    /// Total requests per second.
    pub rate: f64,
    /// Devices in use.
    pub devices: u64,
}

impl WorkerMix {
    pub fn value(&self, goal: Goal) -> f64 {
        match goal {
            Goal::Total => self.rate,
            Goal::PerDevice => self.rate / self.devices.max(1) as f64,
        }
    }

    pub fn times(mut self, times: u64) -> WorkerMix {
        let counts = self.prefill.iter_mut().chain(&mut self.decode).chain(&mut self.aggregated);
        counts.for_each(|count| *count *= times);
        let factor = times as f64;
        WorkerMix {
            disaggregated_rate: self.disaggregated_rate * factor,
            rate: self.rate * factor,
            devices: self.devices * times,
            ..self
        }
    }

    /// Whether it ranks before another: better by more than rounding, or equal with fewer devices.
    pub fn before(&self, other: &WorkerMix, goal: Goal) -> bool {
        let (own, known) = (self.value(goal), other.value(goal));
        let close = (own - known).abs() <= ROUNDING * own.abs().max(known.abs());
        if close { self.devices < other.devices } else { own > known }
    }
}

struct Tables {
    prefill: Table,
    decode: Table,
    aggregated: Table,
}

impl Tables {
    /// Number of `devices` to use for prefill if the others decode: prefill capacity grows with it, decode capacity
    /// falls.
    fn cut(&self, devices: u64) -> u64 {
        let (mut low, mut high) = (0, devices);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let short = self.prefill.value(middle) <= self.decode.value(devices - middle);
            if short { low = middle } else { high = middle - 1 }
        }
        let more = (low + 1).min(devices);
        if self.disaggregated_rate(devices, more) > self.disaggregated_rate(devices, low) {
            more
        } else {
            low
        }
    }

    fn disaggregated_rate(&self, devices: u64, prompts: u64) -> f64 {
        self.prefill.value(prompts).min(self.decode.value(devices - prompts))
    }

    fn mix(&self, roles: &Roles, (devices, both): (u64, u64)) -> WorkerMix {
        let prompts = self.cut(devices);
        let disaggregated_rate = self.disaggregated_rate(devices, prompts);
        // Drop devices of the pool with excess capacity, and devices without effect.
        let least = |table: &Table, most: u64, needed: f64| {
            (0..=most).find(|devices| table.value(*devices) >= needed).unwrap_or(most)
        };
        let of = |table: &Table, most, needed| table.counts(least(table, most, needed));
        let counts = [
            of(&self.prefill, prompts, disaggregated_rate),
            of(&self.decode, devices - prompts, disaggregated_rate),
            of(&self.aggregated, both, self.aggregated.value(both)),
        ];
        let taken = [&roles.prefill, &roles.decode, &roles.aggregated].into_iter().zip(&counts);
        let taken = taken.flat_map(|(workers, counts)| workers.iter().zip(counts));
        let devices = taken.map(|(worker, count)| worker.devices * count).sum();
        let [prefill, decode, aggregated] = counts;
        let rate = disaggregated_rate + self.aggregated.value(both);
        WorkerMix { prefill, decode, aggregated, disaggregated_rate, rate, devices }
    }
}

/// The best mix on at most `devices` devices; `None` where no mix carries any requests.
pub fn best(roles: &Roles, devices: u64, goal: Goal) -> Option<WorkerMix> {
    let table = |workers: &[Worker]| {
        let items: Vec<Item> = workers.iter().map(Worker::item).collect();
        Table::new(&items, devices)
    };
    let tables = Tables {
        prefill: table(&roles.prefill),
        decode: table(&roles.decode),
        aggregated: table(&roles.aggregated),
    };
    let splits: Vec<(u64, u64)> = match goal {
        Goal::Total => (0..=devices).map(|both| (devices - both, both)).collect(),
        // For throughput per device, the better of two parts alone is at least as good as both.
        Goal::PerDevice => (1..=devices).map(|n| (n, 0)).chain((1..=devices).map(|n| (0, n))).collect(),
    };
    let value = |(split, both): (u64, u64)| {
        let rate = tables.disaggregated_rate(split, tables.cut(split)) + tables.aggregated.value(both);
        match goal {
            Goal::Total => rate,
            Goal::PerDevice => rate / (split + both) as f64,
        }
    };
    // Ties: fully disaggregated first, then fewer devices.
    let first = |a: (f64, (u64, u64)), b: (f64, (u64, u64))| if b.0 > a.0 * (1.0 + ROUNDING) { b } else { a };
    let (most, split) = splits.into_iter().map(|split| (value(split), split)).reduce(first)?;
    (most > 0.0).then(|| tables.mix(roles, split))
}

/// The best mix of one kind of prefill worker with one kind of decode worker; `None` where none carries any requests.
/// Ties go to fewer devices.
pub fn best_pair(roles: &Roles, devices: u64, goal: Goal) -> Option<WorkerMix> {
    let alone = |workers: &[Worker], at: usize, count: u64| {
        (0..workers.len()).map(|other| if other == at { count } else { 0 }).collect()
    };
    // Requests per second and device of any numbers of both, pools in proportion.
    let most = |prefill: &Worker, decode: &Worker| {
        1.0 / (prefill.devices as f64 / prefill.rate() + decode.devices as f64 / decode.rate())
    };
    let pairs = (0..roles.prefill.len()).flat_map(|p| (0..roles.decode.len()).map(move |d| (p, d)));
    let mut pairs: Vec<(f64, usize, usize)> =
        pairs.map(|(p, d)| (most(&roles.prefill[p], &roles.decode[d]), p, d)).collect();
    pairs.retain(|(most, ..)| *most > 0.0);
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut best: Option<WorkerMix> = None;
    for (most, p, d) in pairs {
        let bound = match goal {
            Goal::Total => most * devices as f64,
            Goal::PerDevice => most,
        };
        if best.as_ref().is_some_and(|known| known.value(goal) > bound * (1.0 + ROUNDING)) {
            break;
        }
        let (prefill, decode) = (&roles.prefill[p], &roles.decode[d]);
        let at = |prefills: u64| {
            let (sent, left) = (prefills as f64 * prefill.rate(), devices - prefills * prefill.devices);
            // More decode workers than the prompts fill only add devices; one less may be better per device.
            let enough = (left / decode.devices).min((sent / decode.rate()).ceil() as u64);
            (enough.saturating_sub(1).max(1)..=enough).map(move |decodes| {
                let rate = sent.min(decodes as f64 * decode.rate());
                let used = prefills * prefill.devices + decodes * decode.devices;
                let mix = WorkerMix { disaggregated_rate: rate, rate, devices: used, ..WorkerMix::default() };
                (prefills, decodes, mix)
            })
        };
        let all = devices / prefill.devices;
        // Prompts grow with the prefill workers, the decode workers next to them do not: the total is highest where both
        // meet.
        let few = |prefills: u64| {
            let decodes = (devices - prefills * prefill.devices) / decode.devices;
            prefills as f64 * prefill.rate() <= decodes as f64 * decode.rate()
        };
        let tried = match goal {
            Goal::PerDevice => 1..=all,
            Goal::Total => {
                let meet = largest(all, few);
                meet.max(1)..=(meet + 1).min(all)
            }
        };
        for (prefills, decodes, bare) in tried.flat_map(at) {
            if best.as_ref().is_none_or(|known| bare.before(known, goal)) {
                best = Some(WorkerMix {
                    prefill: alone(&roles.prefill, p, prefills),
                    decode: alone(&roles.decode, d, decodes),
                    aggregated: vec![0; roles.aggregated.len()],
                    ..bare
                });
            }
        }
    }
    best
}

/// Maximum requests per second with one kind of prefill worker and one kind of decode worker.
pub fn one_each(roles: &Roles, devices: u64) -> f64 {
    best_pair(roles, devices, Goal::Total).map_or(0.0, |mix| mix.rate)
}

/// Units per request/s in the check of a mix.
pub const PARTS: f64 = 1e9;

/// The same choice as an integer program with `parts` units per request/s, and `mix` as a point of it. The flow of
/// each kind of worker is bounded by one compute row and one KV transfer row.
pub fn program(roles: &Roles, devices: u64, parts: f64, mix: &WorkerMix) -> (MipModel, MipValues) {
    let whole = |rate: f64| (rate * parts).min(i64::MAX as f64 / 2.0) as i64;
    let mut program = MipModel::default();
    let mut point = MipValues::new();
    let mut used = Vec::new();
    let most = |worker: &Worker| (devices / worker.devices) as i64;
    let mut ends = Vec::new();
    let kinds = [("prompts", &roles.prefill, &mix.prefill), ("answers", &roles.decode, &mix.decode)];
    for (kind, workers, counts) in kinds {
        let mut flows = Vec::new();
        for (at, (worker, count)) in workers.iter().zip(counts).enumerate() {
            let number = program.whole(format!("{kind} {at}"), (0, most(worker)), 0);
            let through = whole(worker.rate());
            let flow = program.whole(format!("flow of {kind} {at}"), (0, most(worker) * through), 0);
            point.extend([*count as i64, *count as i64 * through]);
            for (what, rate) in [("work", worker.works), ("kv transfer", worker.carries)] {
                // A bound far above the total flow is never active.
                let rate = whole(rate).min(through.saturating_mul(2).max(1));
                let name = format!("{what} of {kind} {at}");
                program.row((name, what), vec![(flow, 1), (number, -rate)], Sense::AtMost, 0);
            }
            used.push((number, worker.devices as i64));
            flows.push(flow);
        }
        ends.push((kind, flows));
    }
    let sum = |point: &MipValues, flows: &[usize]| flows.iter().map(|at| point[*at]).sum::<i64>();
    let through = ends.iter().map(|(_, flows)| sum(&point, flows)).min().unwrap_or(0);
    let bound = ends.iter().map(|(_, flows)| flows.iter().map(|at| program.bounds(*at).1).sum::<i64>());
    let flow = program.whole("flow", (0, bound.min().unwrap_or(0)), -1);
    point.push(through);
    for (kind, flows) in ends {
        let terms = flows.into_iter().map(|at| (at, -1)).chain([(flow, 1)]).collect();
        program.row((format!("flow of {kind}"), kind), terms, Sense::AtMost, 0);
    }
    for (at, (worker, count)) in roles.aggregated.iter().zip(&mix.aggregated).enumerate() {
        used.push((
            program.whole(format!("both {at}"), (0, most(worker)), -whole(worker.rate())),
            worker.devices as i64,
        ));
        point.push(*count as i64);
    }
    program.row(("devices", "devices"), used, Sense::AtMost, devices as i64);
    (program, point)
}

/// Checks a mix row by row in integers, and returns the number of rows.
pub fn check(roles: &Roles, devices: u64, mix: &WorkerMix) -> Result<u64, String> {
    let (program, point) = program(roles, devices, PARTS, mix);
    let rows = program.check(&point)?;
    let found = -program.objective(&point) as f64 / super::mip::SHARE as f64;
    // The rate of each worker was rounded down to whole units.
    let cut = (mix.prefill.iter().chain(&mix.decode).chain(&mix.aggregated).sum::<u64>() + 1) as f64;
    if (found - mix.rate * PARTS).abs() > cut + ROUNDING * found {
        return Err(format!("claimed {} requests/s, the program gives {}", mix.rate, found / PARTS));
    }
    Ok(rows)
}

/// A choice of workers for some devices, and the mix that the dynamic program found for it.
#[derive(Clone, Debug, PartialEq)]
pub struct MixProgram {
    pub roles: Roles,
    pub devices: u64,
    pub mix: WorkerMix,
    pub goal: Goal,
}

/// Nodes in which a program is solved: seconds at most.
const SECONDS: SolveBudget = SolveBudget { nodes: 2_000, own_nodes: 100_000 };

/// Units of the slowest worker in a program that a floating-point solver solves.
const UNITS: f64 = 1e3;

impl MixProgram {
    /// The same choice among the workers of the mix.
    pub fn used(self) -> MixProgram {
        let of = |workers: &[Worker], counts: &[u64]| -> (Vec<Worker>, Vec<u64>) {
            workers
                .iter()
                .zip(counts)
                .filter(|(_, count)| **count > 0)
                .map(|(one, count)| (*one, *count))
                .unzip()
        };
        let MixProgram { roles, mix, .. } = &self;
        let (prefill, prefills) = of(&roles.prefill, &mix.prefill);
        let (decode, decodes) = of(&roles.decode, &mix.decode);
        let (aggregated, replicas) = of(&roles.aggregated, &mix.aggregated);
        let mix = WorkerMix { prefill: prefills, decode: decodes, aggregated: replicas, ..self.mix };
        MixProgram { roles: Roles { prefill, decode, aggregated }, mix, ..self }
    }

    /// Solves the integer program and compares its optimum with the mix: whether they are equal, `None` where the solver
    /// does not decide it.
    pub fn agrees(&self) -> Option<bool> {
        let workers = || self.roles.prefill.iter().chain(&self.roles.decode).chain(&self.roles.aggregated);
        let slowest = workers().map(Worker::rate).filter(|rate| *rate > 0.0).fold(f64::INFINITY, f64::min);
        // No mix of as many devices is better per device.
        let devices = if self.goal == Goal::PerDevice { self.mix.devices } else { self.devices };
        let (program, point) = program(&self.roles, devices, UNITS / slowest, &self.mix);
        if program.check(&point).is_err() {
            return Some(false);
        }
        let solved = solve(&program, &SECONDS);
        let own = -program.objective(&point) as f64 / super::mip::SHARE as f64;
        let counts = |counts: &[u64]| counts.iter().sum::<u64>();
        let values = solved.values.as_ref()?;
        let whole = |value: &i64| u64::try_from(*value).unwrap_or(0).min(devices);
        // Each worker's rate was rounded down to whole units.
        let cut = counts(&self.mix.prefill)
            + counts(&self.mix.decode)
            + counts(&self.mix.aggregated)
            + values.iter().map(whole).sum::<u64>();
        let best = -solved.objective?;
        if best > own + cut as f64 {
            return Some(false);
        }
        (solved.status == Status::Optimal).then_some(best >= own - cut as f64)
    }
}
