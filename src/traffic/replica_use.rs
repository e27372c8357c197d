//! How far the schedulers and the caches of replicas are in use over a run.

/// The use of a replica by the steps that it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepsUse {
    /// Seconds of the steps.
    pub lasted_s: f64,
    /// Share of the attention ranks whose scheduler has work in them.
    pub busy: f64,
    /// Share of the KV cache in use by requests, in the first and in the last step.
    pub kv_used: [f64; 2],
}

/// The use of all replicas of a pool over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolUse {
    /// Seconds that the replicas were held, all of them together.
    pub held_s: f64,
    /// Of these, seconds in which steps run; of several attention ranks the mean.
    pub busy_s: f64,
    /// Seconds times the share of the KV cache in use.
    pub kv_used_s: f64,
    /// The largest share of a replica's KV cache that was in use at a time.
    pub kv_used_most: f64,
}

impl PoolUse {
    /// Adds the use of other replicas of the pool.
    pub fn with(&mut self, other: &PoolUse) {
        self.held_s += other.held_s;
        self.busy_s += other.busy_s;
        self.kv_used_s += other.kv_used_s;
        self.kv_used_most = self.kv_used_most.max(other.kv_used_most);
    }

    /// Adds the steps of a replica.
    pub fn add(&mut self, steps: StepsUse) {
        let [first, last] = steps.kv_used;
        self.busy_s += steps.busy * steps.lasted_s;
        self.kv_used_s += (first + last) / 2.0 * steps.lasted_s;
        self.kv_used_most = self.kv_used_most.max(first).max(last);
    }
}
