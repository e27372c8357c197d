//! Number of instances of each size that a system can host, mixed sizes included.
//!
//! An instance of at most one unit (the innermost tier) lies inside one unit. A larger instance takes whole units of
//! one block (a node that holds several units), or whole blocks; devices that it does not use stay idle. A partial
//! node may end in a partial unit, which only small instances and whole-block instances use.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use super::bins::{many_bins, one_bin};
use super::packing::{Item, Table};
use super::pair_capacity::{CapacityTable, PairCapacity};
use crate::spec::cluster::Cluster;

#[derive(Clone, Debug)]
pub struct DeviceCapacity {
    /// Devices per unit.
    unit: u64,
    /// Whole units per block.
    units: u64,
    /// Devices of a block beyond its whole units.
    rest: u64,
    blocks: u64,
    /// Cached counts of two sizes that share bins, by (bins, capacity, first size, second size).
    shared: Arc<Mutex<HashMap<[u64; 4], Arc<Vec<u64>>>>>,
    /// Cached counts of one size next to another.
    pairs: Arc<Mutex<HashMap<(u64, u64), Arc<CapacityTable>>>>,
}

/// The value of `key`, made where it is not known. It is made without the lock, as it may need others.
fn cached<K: Eq + Hash, V>(cache: &Mutex<HashMap<K, Arc<V>>>, key: K, make: impl FnOnce() -> V) -> Arc<V> {
    let known = cache.lock().ok().and_then(|known| known.get(&key).cloned());
    known.unwrap_or_else(|| {
        let made = Arc::new(make());
        if let Ok(mut known) = cache.lock() {
            known.insert(key, made.clone());
        }
        made
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemPart {
    /// Devices of the innermost tier.
    pub unit: u64,
    pub devices: u64,
    /// Number of such parts.
    pub times: u64,
}

/// Resources that an instance takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstanceFootprint {
    /// Number of devices of a unit.
    Devices(u64),
    /// Number of whole units of a block.
    Units(u64),
    /// Number of whole blocks.
    Blocks(u64),
}

impl DeviceCapacity {
    pub fn of(cluster: &Cluster) -> DeviceCapacity {
        let block = cluster.block();
        let unit = cluster.domain().min(block);
        DeviceCapacity::new(unit, block / unit, block % unit, cluster.devices() / block)
    }

    /// `blocks` blocks, each with `units` whole units of `unit` devices and a partial unit of `rest` devices.
    pub fn new(unit: u64, units: u64, rest: u64, blocks: u64) -> DeviceCapacity {
        DeviceCapacity { unit, units, rest, blocks, shared: Arc::default(), pairs: Arc::default() }
    }

    /// Devices per block.
    fn block(&self) -> u64 {
        self.unit * self.units + self.rest
    }

    pub fn devices(&self) -> u64 {
        self.block() * self.blocks
    }

    /// Parts that mixed instances can fill by device count alone, with the number of such parts. Instance sizes must
    /// divide each other and the unit, or lie in one unit.
    pub fn parts(&self) -> Vec<SystemPart> {
        let unit = SystemPart { unit: self.unit, devices: self.unit, times: self.units * self.blocks };
        let block = SystemPart { unit: self.unit, devices: self.block(), times: self.blocks };
        let all = SystemPart { unit: self.unit, devices: self.devices(), times: 1 };
        let mut parts = vec![unit];
        if self.units > 1 || self.rest > 0 {
            parts.push(block);
        }
        if self.blocks > 1 && self.rest == 0 {
            parts.push(all);
        }
        parts
    }

    /// Whether device counts alone decide if instances of any sizes fit: the system is one unit.
    pub fn is_one_unit(&self) -> bool {
        self.blocks == 1 && self.units == 1 && self.rest == 0
    }

    fn takes(&self, devices: u64) -> InstanceFootprint {
        let units = devices.div_ceil(self.unit);
        if devices <= self.unit {
            InstanceFootprint::Devices(devices)
        } else if units <= self.units {
            InstanceFootprint::Units(units)
        } else {
            InstanceFootprint::Blocks(devices.div_ceil(self.block()))
        }
    }

    /// Maximum number of instances of `devices` devices each.
    pub fn most(&self, devices: u64) -> u64 {
        self.blocks * self.per_block(devices) / self.blocks_each(devices)
    }

    /// Instances that fit one block; one where an instance takes whole blocks.
    fn per_block(&self, devices: u64) -> u64 {
        match self.takes(devices) {
            InstanceFootprint::Devices(size) => self.units * (self.unit / size) + self.rest / size,
            InstanceFootprint::Units(units) => self.units / units,
            InstanceFootprint::Blocks(_) => 1,
        }
    }

    fn blocks_each(&self, devices: u64) -> u64 {
        if let InstanceFootprint::Blocks(blocks) = self.takes(devices) { blocks } else { 1 }
    }

    /// Whether device counts alone decide if instances of two sizes fit: they fill units, and each other, without
    /// gaps.
    pub fn is_plain(&self, one: u64, two: u64) -> bool {
        let even = |size: u64| self.unit.is_multiple_of(size) || size.is_multiple_of(self.unit);
        let nested = one.is_multiple_of(two) || two.is_multiple_of(one);
        let flat = self.rest == 0 && (self.units == 1 || one.max(two) <= self.unit);
        self.is_one_unit() || (flat && nested && even(one) && even(two))
    }

    /// How many instances of two sizes fit together.
    pub fn pair(&self, one: u64, two: u64) -> PairCapacity {
        self.line(one, two)
            .unwrap_or_else(|| PairCapacity::Tables(self.table(one, two), self.table(two, one)))
    }

    /// The same where it is a straight line of units.
    fn line(&self, one: u64, two: u64) -> Option<PairCapacity> {
        if self.is_plain(one, two) {
            return Some(PairCapacity::Line(self.devices(), (one, two)));
        }
        match (self.takes(one), self.takes(two)) {
            (InstanceFootprint::Blocks(one), InstanceFootprint::Blocks(two)) => {
                Some(PairCapacity::Line(self.blocks, (one, two)))
            }
            (InstanceFootprint::Blocks(one), _) => {
                let each = self.per_block(two);
                Some(PairCapacity::Line(self.blocks * each, (one * each, 1)))
            }
            (_, InstanceFootprint::Blocks(two)) => {
                let each = self.per_block(one);
                Some(PairCapacity::Line(self.blocks * each, (1, two * each)))
            }
            _ => None,
        }
    }

    /// How many of `other` fit next to every count of `size`, computed once.
    fn table(&self, size: u64, other: u64) -> Arc<CapacityTable> {
        cached(&self.pairs, (size, other), || {
            let all = (0..=self.most(size)).map_while(|count| self.next_to(size, count, other));
            CapacityTable::new(all.collect())
        })
    }

    /// Maximum number of instances of `other` devices that fit in addition to `count` instances of `devices` devices;
    /// `None` if these do not fit.
    pub fn next_to(&self, devices: u64, count: u64, other: u64) -> Option<u64> {
        if let Some(line) = self.line(devices, other) {
            return line.next_to_first(count);
        }
        if count > self.most(devices) {
            return None;
        }
        match (self.takes(devices), self.takes(other)) {
            (InstanceFootprint::Devices(one), InstanceFootprint::Devices(two)) => {
                // Place as many instances of the first size as possible in the partial units.
                let parts = self.blocks * (self.rest / one);
                let (bins, least) = (
                    self.blocks * self.units,
                    count.saturating_sub(self.blocks * self.units * (self.unit / one)),
                );
                (least..=parts.min(count))
                    .map(|inside| {
                        let whole = self.share((bins, self.unit), (one, count - inside), two);
                        whole + self.share((self.blocks, self.rest), (one, inside), two)
                    })
                    .max()
            }
            (InstanceFootprint::Units(one), InstanceFootprint::Units(two)) => {
                Some(self.share((self.blocks, self.units), (one, count), two))
            }
            (InstanceFootprint::Devices(size), InstanceFootprint::Units(units)) => {
                let in_parts = self.blocks * (self.rest / size);
                let taken = count.saturating_sub(in_parts).div_ceil(self.unit / size);
                let spare = self.blocks * (self.units % units);
                Some(self.most(other).saturating_sub(taken.saturating_sub(spare).div_ceil(units)))
            }
            (InstanceFootprint::Units(units), InstanceFootprint::Devices(size)) => {
                Some(self.most(other) - count * units * (self.unit / size))
            }
            // These are lines.
            (InstanceFootprint::Blocks(_), _) | (_, InstanceFootprint::Blocks(_)) => None,
        }
    }

    /// Maximum number of `other` in addition to `count` of `size` in `bins` bins of a capacity, each instance inside
    /// one bin.
    fn share(&self, (bins, capacity): (u64, u64), (size, count): (u64, u64), other: u64) -> u64 {
        let (own, most) = (capacity / size, bins * (capacity / other));
        if count == 0 || bins == 0 {
            return most;
        }
        if bins == 1 {
            return (capacity - count * size) / other;
        }
        if other.is_multiple_of(size) {
            return most.min((bins * own - count) / (other / size));
        }
        if size.is_multiple_of(other) {
            return most - count * (size / other);
        }
        let key = [bins, capacity, size, other];
        cached(&self.shared, key, || many_bins(bins, &one_bin(capacity, size, other)))[count as usize]
    }

    /// Number of instances of each item with the highest total value. Ties go to fewer devices.
    pub fn pack(&self, items: &[Item]) -> Vec<u64> {
        // An item that cannot lie there gets a size above the capacity.
        let sized = |capacity: u64, size: &dyn Fn(InstanceFootprint) -> Option<u64>| -> Vec<Item> {
            let of = |item: &Item| Item {
                devices: size(self.takes(item.devices)).unwrap_or(capacity + 1),
                ..*item
            };
            items.iter().map(of).collect()
        };
        let small =
            sized(self.unit, &|takes| if let InstanceFootprint::Devices(n) = takes { Some(n) } else { None });
        let inside = Table::new(&small, self.unit);
        let mut middle =
            sized(self.units, &|takes| if let InstanceFootprint::Units(n) = takes { Some(n) } else { None });
        middle.push(Item { devices: 1, value: inside.value(self.unit) });
        let block = Table::new(&middle, self.units);
        let mut large = sized(self.blocks, &|takes| {
            if let InstanceFootprint::Blocks(n) = takes { Some(n) } else { None }
        });
        large.push(Item { devices: 1, value: block.value(self.units) + inside.value(self.rest) });
        let mut counts = Table::new(&large, self.blocks).counts(self.blocks);
        let blocks = counts.pop().unwrap_or(0);
        let mut in_block = block.counts(self.units);
        let filled = in_block.pop().unwrap_or(0);
        let (whole, part) = (inside.counts(self.unit), inside.counts(self.rest));
        for (place, count) in counts.iter_mut().enumerate() {
            *count += blocks * (in_block[place] + filled * whole[place] + part[place]);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether the instances fit, by trying every place for the largest first.
    fn fits(system: &DeviceCapacity, sizes: &[u64]) -> bool {
        fn place(free: &mut Vec<Vec<u64>>, system: &DeviceCapacity, sizes: &[u64]) -> bool {
            let Some((&size, rest)) = sizes.split_first() else { return true };
            let bins = free.len();
            match system.takes(size) {
                InstanceFootprint::Devices(n) => (0..bins).any(|block| {
                    (0..free[block].len()).any(|unit| {
                        if free[block][unit] < n {
                            return false;
                        }
                        free[block][unit] -= n;
                        let fits = place(free, system, rest);
                        free[block][unit] += n;
                        fits
                    })
                }),
                InstanceFootprint::Units(n) => (0..bins).any(|block| {
                    let whole: Vec<usize> =
                        (0..system.units as usize).filter(|unit| free[block][*unit] == system.unit).collect();
                    if (whole.len() as u64) < n {
                        return false;
                    }
                    let taken = &whole[..n as usize];
                    taken.iter().for_each(|unit| free[block][*unit] = 0);
                    let fits = place(free, system, rest);
                    taken.iter().for_each(|unit| free[block][*unit] = system.unit);
                    fits
                }),
                InstanceFootprint::Blocks(n) => {
                    let empty = |block: &Vec<u64>| block.iter().sum::<u64>() == system.block();
                    let whole: Vec<usize> = (0..bins).filter(|block| empty(&free[*block])).collect();
                    if (whole.len() as u64) < n {
                        return false;
                    }
                    let before = free.clone();
                    whole[..n as usize].iter().for_each(|block| free[*block].iter_mut().for_each(|u| *u = 0));
                    let fits = place(free, system, rest);
                    *free = before;
                    fits
                }
            }
        }
        let mut block = vec![system.unit; system.units as usize];
        block.extend((system.rest > 0).then_some(system.rest));
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        place(&mut vec![block; system.blocks as usize], system, &sizes)
    }

    fn small() -> impl Strategy<Value = DeviceCapacity> {
        (1u64..6, 1u64..4, 0u64..5, 1u64..4)
            .prop_map(|(unit, units, rest, blocks)| DeviceCapacity::new(unit, units, rest % unit, blocks))
            .prop_filter("few devices", |system| system.devices() <= 12)
    }

    proptest! {
        #[test]
        fn two_sizes_fit_as_trying_every_place_says(
            system in small(), one in 1u64..9, two in 1u64..9, count in 0u64..6,
        ) {
            let (one, two) = (one.min(system.devices()), two.min(system.devices()));
            let with = |others: u64| {
                let sizes = [vec![one; count as usize], vec![two; others as usize]].concat();
                sizes.iter().sum::<u64>() <= system.devices() && fits(&system, &sizes)
            };
            let most = (0..=system.devices()).take_while(|others| with(*others)).last();
            prop_assert_eq!(system.next_to(one, count, two), most);
        }

        #[test]
        fn one_more_block_or_device_never_holds_less(
            system in small(), sizes in prop::collection::vec((1u64..9, 1u32..50), 1..4),
        ) {
            let items: Vec<Item> =
                sizes.iter().map(|(devices, value)| Item { devices: *devices, value: (*value).into() }).collect();
            let value = |system: &DeviceCapacity| {
                let counts = system.pack(&items);
                items.iter().zip(&counts).map(|(item, n)| item.value * *n as f64).sum::<f64>()
            };
            let more = DeviceCapacity { blocks: system.blocks + 1, ..system.clone() };
            prop_assert!(value(&more) >= value(&system));
            if system.blocks == 1 {
                let whole = system.rest + 1 == system.unit;
                let (units, rest) = if whole { (system.units + 1, 0) } else { (system.units, system.rest + 1) };
                let more = DeviceCapacity { units, rest, ..system.clone() };
                prop_assert!(value(&more) >= value(&system));
                for (devices, _) in sizes {
                    prop_assert!(devices > system.devices() || more.most(devices) >= system.most(devices));
                }
            }
        }
    }
}
