//! Replicas of one instance configuration: what their number changes, and instances that replicas of another replace.

use std::collections::BTreeMap;

use crate::search::capacity::DeviceCapacity;
use crate::search::front_sampling::sampled;
use crate::search::hosting::most_replicas;
use crate::search::pareto::{ParetoFront, beats};
use crate::search::point::{Point, WIDTH, place, rank};
use crate::search::problem::{Problem, Traffic};
use crate::search::shape::InstanceConfig;
use crate::spec::objective::{Metric, ObjectiveTerm};

/// Drops points that several replicas of a front member dominate, where the front does not list every replica count.
pub fn non_dominated<K>(
    problem: &Problem,
    front: Vec<(Point, K)>,
    one: impl Fn(&K) -> bool,
) -> Vec<(Point, K)> {
    let axes = problem.distinct_axes();
    if problem.counts || !axes.contains(&Metric::OutputTokS) {
        return front;
    }
    // On the axes that replicas do not change, an instance has to be at least as good itself: few are.
    let per_instance: Vec<Metric> = axes.iter().copied().filter(|axis| !OF_REPLICAS.contains(axis)).collect();
    let own = |point: &Point| {
        let mut costs = [0.0; WIDTH];
        for (cost, axis) in costs.iter_mut().zip(&per_instance) {
            *cost = rank(point, *axis);
        }
        costs
    };
    let instances = front.iter().filter(|(_, key)| one(key)).map(|(point, _)| (own(point), *point));
    let mut instances: Vec<([f64; WIDTH], Point)> = instances.collect();
    instances.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
    let devices = |point: &Point| point[place(Metric::Devices)] as u64;
    let beaten = |point: &Point| {
        let costs = own(point);
        let first = instances.partition_point(|(own, _)| own[0] <= costs[0]);
        let good = instances[..first].iter().filter(|(own, _)| own.iter().zip(&costs).all(|(a, b)| a <= b));
        good.map(|(_, instance)| instance).any(|instance| {
            let times = devices(point) / devices(instance);
            let times = times.min(problem.capacity().most(devices(instance)));
            // The fewest replicas with the highest throughput; fewer replicas draw less power.
            let fewest = if axes.contains(&Metric::Watts) { 2 } else { times.max(2) };
            (fewest..=times).any(|times| beats(&axes, &replicated(instance, times), point))
        })
    };
    front.into_iter().filter(|(point, _)| !beaten(point)).collect()
}

/// Metrics that grow with the number of replicas.
const OF_REPLICAS: [Metric; 3] = [Metric::OutputTokS, Metric::Devices, Metric::Watts];

/// The metrics of `times` replicas under the same load each.
pub fn replicated(instance: &Point, times: u64) -> Point {
    let mut point = *instance;
    for metric in OF_REPLICAS {
        point[place(metric)] *= times as f64;
    }
    point
}

/// Replica counts of which one is best: every metric grows with their number or does not depend on it.
pub(super) fn replica_ends(problem: &Problem, shape: &InstanceConfig) -> impl Iterator<Item = u64> {
    let most = most_replicas(problem, shape);
    std::iter::once(1).chain((most > 1).then_some(most))
}

/// Replica counts that the front lists, one first: where total throughput is an axis, or decides between equals, more
/// replicas are never worse.
pub(super) fn shown_replicas(problem: &Problem, shape: &InstanceConfig) -> Vec<u64> {
    let decides = |term: &ObjectiveTerm| problem.stated_axes && term.metric == Metric::OutputTokS;
    if !problem.axes.contains(&Metric::OutputTokS) && !problem.objective.iter().any(decides) {
        return vec![1];
    }
    let most = most_replicas(problem, shape);
    let fewer_count =
        problem.counts && [Metric::Devices, Metric::Watts].iter().any(|axis| problem.axes.contains(axis));
    let shown = sampled(most, problem.front_sampling.count_steps);
    shown.filter(|&count| count == 1 || fewer_count || count == most).collect()
}

/// Whether the front lists one deployment instead of any number of its copies.
pub fn omits_copies(problem: &Problem) -> bool {
    problem.traffic == Traffic::Free
        && !problem.counts
        && problem.distinct_axes().contains(&Metric::OutputTokS)
}

/// The axes that the number of copies does not change, or changes in proportion to their devices.
fn axes_of_copies(problem: &Problem) -> Vec<Metric> {
    let mut axes = problem.distinct_axes();
    axes.retain(|axis| !matches!(axis, Metric::OutputTokS | Metric::Devices));
    if !axes.contains(&Metric::OutputTokSPerDevice) {
        axes.push(Metric::OutputTokSPerDevice);
    }
    axes
}

/// The point with its power per device.
fn per_device(point: &Point) -> Point {
    let mut each = *point;
    each[place(Metric::Watts)] /= point[place(Metric::Devices)];
    each
}

/// Single replicas by their devices, on the axes that their number does not change, and per device on those that it
/// does. Where the front does not list every replica count, an instance that replicas of a smaller one dominate is not
/// on it: see [`non_dominated`].
pub struct InstanceFronts {
    axes: Vec<Metric>,
    by_devices: BTreeMap<u64, ParetoFront<()>>,
}

impl InstanceFronts {
    /// No instances. Stays empty where replicas of one do not replace another.
    pub fn new(problem: &Problem) -> InstanceFronts {
        let axes = if omits_copies(problem) { axes_of_copies(problem) } else { vec![] };
        InstanceFronts { axes, by_devices: BTreeMap::new() }
    }

    pub fn insert(&mut self, devices: u64, point: &Point) {
        if !self.axes.is_empty() {
            let front = self.by_devices.entry(devices).or_insert_with(|| ParetoFront::new(&self.axes));
            front.insert(per_device(point), ());
        }
    }

    pub fn merge(&mut self, other: InstanceFronts) {
        for (devices, front) in other.by_devices {
            self.by_devices.entry(devices).or_insert_with(|| ParetoFront::new(&self.axes)).merge(front);
        }
    }

    /// Sizes that divide `devices`.
    pub fn divisors(&self, devices: u64) -> impl Iterator<Item = u64> {
        self.by_devices
            .range(..=devices)
            .map(|(size, _)| *size)
            .filter(move |size| devices.is_multiple_of(*size))
    }

    /// Whether replicas of an instance of `size` devices are as good as `times` instances of `devices` devices that are
    /// no better than `bound` each.
    pub fn replace(
        &self,
        capacity: &DeviceCapacity,
        (size, devices, times): (u64, u64, u64),
        bound: &Point,
    ) -> bool {
        self.by_devices.get(&size).is_some_and(|front| {
            front.covers(&per_device(bound)) && capacity.most(size) >= times * (devices / size)
        })
    }
}

/// Deployments listed instead of any number of copies, which fit wherever there are devices for them.
pub struct CopiedFront {
    /// Absent where the front lists copies too.
    front: Option<ParetoFront<()>>,
}

impl CopiedFront {
    pub fn new(problem: &Problem) -> CopiedFront {
        let axes = || axes_of_copies(problem).into_iter().chain([Metric::Devices]).collect::<Vec<_>>();
        CopiedFront { front: omits_copies(problem).then(|| ParetoFront::new(&axes())) }
    }

    /// Whether the front lists a deployment instead of its copies.
    pub fn is_used(&self) -> bool {
        self.front.is_some()
    }

    pub fn insert(&mut self, point: &Point) {
        if let Some(front) = &mut self.front {
            front.insert(per_device(point), ());
        }
    }

    pub fn merge(&mut self, other: CopiedFront) {
        if let (Some(front), Some(other)) = (&mut self.front, other.front) {
            front.merge(other);
        }
    }

    /// Whether copies of one deployment are as good as any deployment within `bound` that has at least its devices.
    pub fn replace(&self, bound: &Point) -> bool {
        self.smaller(bound, bound[place(Metric::Devices)])
    }

    /// Whether several copies of one deployment are as good as another of this point.
    pub fn dominate(&self, point: &Point) -> bool {
        self.smaller(point, point[place(Metric::Devices)] - 1.0)
    }

    /// The same with copies of at most `largest` devices.
    fn smaller(&self, bound: &Point, largest: f64) -> bool {
        let Some(front) = &self.front else { return false };
        let devices = bound[place(Metric::Devices)];
        [1.0, (devices / 16.0).floor(), (devices / 4.0).floor()].into_iter().any(|size| {
            // Copies of at most this size leave fewer devices idle than one of them has.
            let filled = (devices - size + 1.0) / devices;
            let mut each = per_device(bound);
            each[place(Metric::OutputTokSPerDevice)] /= filled;
            each[place(Metric::Devices)] = size;
            size >= 1.0 && size <= largest && front.covers(&each)
        })
    }
}
