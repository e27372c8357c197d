//! Which replicas serve, which start or are emptied, and how long each was held.

/// The state of a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplicaState {
    /// It takes requests.
    Serving,
    /// It starts, and takes requests from this time on; after a fault, or because it was added.
    Starting { until_s: f64, after_fault: bool },
    /// It takes no requests, and is removed when those that it has are answered.
    Draining,
    /// It was removed, or is not yet added.
    Absent,
}

/// The states of all replicas of a run.
#[derive(Debug)]
pub struct ReplicaStates {
    states: Vec<ReplicaState>,
    /// How often each began to serve.
    lives: Vec<u64>,
    /// When each was added.
    since_s: Vec<f64>,
    /// Seconds that replicas were held which are absent now, all of them, and each.
    held_s: f64,
    gone_s: Vec<f64>,
}

impl ReplicaStates {
    /// The first `serving` of `all` replicas serve.
    pub fn new(serving: usize, all: usize) -> ReplicaStates {
        let state = |at| if at < serving { ReplicaState::Serving } else { ReplicaState::Absent };
        ReplicaStates {
            states: (0..all).map(state).collect(),
            lives: vec![0; all],
            since_s: vec![0.0; all],
            held_s: 0.0,
            gone_s: vec![0.0; all],
        }
    }

    /// The state of a replica; `Absent` where there is none.
    pub fn of(&self, replica: usize) -> ReplicaState {
        self.states.get(replica).copied().unwrap_or(ReplicaState::Absent)
    }

    /// Whether a replica takes requests.
    pub fn serves(&self, replica: usize) -> bool {
        self.of(replica) == ReplicaState::Serving
    }

    /// Whether a replica has requests, or may get them.
    pub fn works(&self, replica: usize) -> bool {
        matches!(self.of(replica), ReplicaState::Serving | ReplicaState::Draining)
    }

    /// Replicas that serve or start.
    pub fn wanted(&self) -> usize {
        let is_wanted =
            |state: &&ReplicaState| matches!(state, ReplicaState::Serving | ReplicaState::Starting { .. });
        self.states.iter().filter(is_wanted).count()
    }

    /// Whether a replica that failed is starting again.
    pub fn recovers(&self) -> bool {
        self.states.iter().any(|state| matches!(state, ReplicaState::Starting { after_fault: true, .. }))
    }

    /// How often a replica began to serve, but for the first time.
    pub fn life(&self, replica: usize) -> u64 {
        self.lives[replica]
    }

    /// A replica starts, after a fault or because it is added.
    pub fn start(&mut self, replica: usize, (now_s, until_s): (f64, f64), after_fault: bool) {
        if self.states[replica] == ReplicaState::Absent {
            self.since_s[replica] = now_s;
        }
        self.states[replica] = ReplicaState::Starting { until_s, after_fault };
    }

    /// A replica that was to start until `time_s` serves from now on; false where that was called off.
    pub fn started(&mut self, replica: usize, time_s: f64) -> bool {
        let ReplicaState::Starting { until_s, .. } = self.of(replica) else { return false };
        if until_s != time_s {
            return false;
        }
        self.states[replica] = ReplicaState::Serving;
        self.lives[replica] += 1;
        true
    }

    /// A replica is emptied.
    pub fn drain(&mut self, replica: usize) {
        self.states[replica] = ReplicaState::Draining;
    }

    /// A replica is removed.
    pub fn remove(&mut self, replica: usize, time_s: f64) {
        self.held_s += time_s - self.since_s[replica];
        self.gone_s[replica] += time_s - self.since_s[replica];
        self.states[replica] = ReplicaState::Absent;
    }

    /// Which replica is removed first: one that starts, else the newest, as Kubernetes removes those that are not ready,
    /// then those that were created last.
    pub fn removed_first(&self) -> Option<usize> {
        let order = |at: &usize| match self.states[*at] {
            ReplicaState::Starting { .. } => Some(1),
            ReplicaState::Serving => Some(0),
            ReplicaState::Draining | ReplicaState::Absent => None,
        };
        let wanted = (0..self.states.len()).filter(|at| order(at).is_some());
        wanted.max_by(|a, b| {
            let (one, other) = (self.since_s[*a], self.since_s[*b]);
            order(a).cmp(&order(b)).then(one.total_cmp(&other)).then(a.cmp(b))
        })
    }

    /// Seconds that all replicas were held until `time_s`.
    pub fn held_s(&self, time_s: f64) -> f64 {
        let held = self.states.iter().zip(&self.since_s);
        let held = held.filter(|(state, _)| **state != ReplicaState::Absent);
        self.held_s + held.map(|(_, since)| time_s - since).sum::<f64>()
    }

    /// Seconds that a replica was held until `time_s`.
    pub fn held_by_s(&self, replica: usize, time_s: f64) -> f64 {
        match self.of(replica) {
            ReplicaState::Absent => self.gone_s[replica],
            _ => self.gone_s[replica] + time_s - self.since_s[replica],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_goes_first_then_the_newest() {
        let mut states = ReplicaStates::new(2, 4);
        states.start(2, (10.0, 30.0), false);
        states.start(3, (20.0, 40.0), false);
        assert!(states.started(2, 30.0) && !states.started(2, 30.0) && !states.started(3, 39.0));
        assert_eq!((states.wanted(), states.removed_first()), (4, Some(3)));
        states.remove(3, 35.0);
        assert_eq!(states.removed_first(), Some(2));
        states.drain(2);
        assert_eq!((states.wanted(), states.removed_first()), (2, Some(1)));
        assert!(states.works(2) && !states.serves(2));
        // Two from the start, one from 10 s on, and one for 15 s.
        assert_eq!(states.held_s(100.0), 2.0 * 100.0 + 90.0 + 15.0);
        assert_eq!([1, 2, 3].map(|at| states.held_by_s(at, 100.0)), [100.0, 90.0, 15.0]);
    }
}
