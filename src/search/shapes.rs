//! The instance configurations that results of a search refer to. What is beaten is dropped: a search takes the memory of
//! its results, not that of everything it examined.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;
use std::sync::Arc;

use super::shape::InstanceConfig;

/// Configurations that may be kept without a result that refers to them.
const SPARE: usize = 256;

/// Instance configurations by their number, which is their order: the plainest plan first.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    kept: BTreeMap<usize, Arc<InstanceConfig>>,
    /// Number of configurations, kept or not.
    pub total: u64,
    /// Nothing is dropped.
    keeps_all: bool,
    needed: usize,
}

impl Index<usize> for Shapes {
    type Output = InstanceConfig;

    fn index(&self, number: usize) -> &InstanceConfig {
        &self.kept[&number]
    }
}

impl Shapes {
    /// No configurations; with `keeps_all` none will be dropped.
    pub fn new(keeps_all: bool) -> Shapes {
        Shapes { keeps_all, ..Shapes::default() }
    }

    pub fn insert(&mut self, number: usize, shape: Arc<InstanceConfig>) {
        self.total += 1;
        self.kept.insert(number, shape);
    }

    pub fn shared(&self, number: usize) -> &Arc<InstanceConfig> {
        &self.kept[&number]
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Arc<InstanceConfig>)> {
        self.kept.iter().map(|(number, shape)| (*number, shape))
    }

    /// Whether none was dropped.
    pub fn is_whole(&self) -> bool {
        self.kept.len() as u64 == self.total
    }

    pub fn merge(&mut self, other: Shapes) {
        self.total += other.total;
        self.kept.extend(other.kept);
    }

    /// Drops what is not `needed`, from time to time.
    pub fn drop_beaten(&mut self, needed: impl FnOnce() -> BTreeSet<usize>) {
        if self.keeps_all || self.kept.len() < 2 * self.needed + SPARE {
            return;
        }
        let needed = needed();
        self.kept.retain(|number, _| needed.contains(number));
        self.needed = self.kept.len();
    }
}
