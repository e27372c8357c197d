//! The replicas of a run, with the few numbers of each that every event needs, next to each other.

use std::ops::Index;

use super::replica::Replica;

/// The numbers of a replica that choices between replicas depend on.
#[derive(Clone, Copy, Debug)]
struct ReplicaGlance {
    end_s: Option<f64>,
    load: usize,
    ranks: usize,
}

impl ReplicaGlance {
    fn of(replica: &Replica) -> ReplicaGlance {
        ReplicaGlance { end_s: replica.end_s(), load: replica.load(), ranks: replica.engines().len() }
    }
}

/// All replicas of a run.
pub struct ReplicaSet {
    all: Vec<Replica>,
    glances: Vec<ReplicaGlance>,
}

impl ReplicaSet {
    /// These replicas.
    pub fn new(all: Vec<Replica>) -> ReplicaSet {
        let glances = all.iter().map(ReplicaGlance::of).collect();
        ReplicaSet { all, glances }
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Replica> {
        self.all.iter()
    }

    /// The same, each as `change` makes it.
    #[must_use]
    pub fn each(self, change: impl FnMut(Replica) -> Replica) -> ReplicaSet {
        ReplicaSet::new(self.all.into_iter().map(change).collect())
    }

    /// Changes a replica.
    pub fn change(&mut self, at: usize, change: impl FnOnce(&mut Replica)) {
        change(&mut self.all[at]);
        self.glances[at] = ReplicaGlance::of(&self.all[at]);
    }

    /// Requests that a replica has not finished.
    pub fn load(&self, at: usize) -> usize {
        self.glances[at].load
    }

    /// Attention ranks of a replica; none of one that is absent.
    pub fn ranks(&self, at: usize) -> usize {
        self.glances[at].ranks
    }

    /// The replica whose steps end first, and when; of several the first.
    pub fn first_end(&self) -> Option<(usize, f64)> {
        let ends = self.glances.iter().enumerate().filter_map(|(at, one)| Some((at, one.end_s?)));
        ends.min_by(|one, other| one.1.total_cmp(&other.1))
    }
}

impl Index<usize> for ReplicaSet {
    type Output = Replica;

    fn index(&self, at: usize) -> &Replica {
        &self.all[at]
    }
}
