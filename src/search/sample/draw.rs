//! Draws random deployments: from scratch, or by changing one.

use crate::spec::offload::Offload;
use crate::spec::role::Role;
use fastrand::Rng;

use crate::plan::legal::{check, has_experts};
use crate::plan::parallel::ParallelPlan;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::problem::{Problem, Traffic};

/// Maximum attempts at a legal plan.
const TRIES: u32 = 64;
/// Maximum concurrency per instance, as a power of two.
const MOST_POWER: u32 = 14;

pub struct Draw<'q> {
    problem: &'q Problem,
    random: Rng,
    experts: bool,
}

impl<'q> Draw<'q> {
    pub fn new(problem: &'q Problem, seed: u64) -> Draw<'q> {
        Draw { problem, random: Rng::with_seed(seed), experts: has_experts(&problem.graph) }
    }

    /// A deployment; only its plans are known to be legal.
    pub fn candidate(&mut self, best: Option<&Candidate>) -> Option<Candidate> {
        let drawn = match best.filter(|best| best.offload == Offload::Nothing && !best.pools.is_empty()) {
            Some(best) if self.random.bool() => {
                let mut other = best.clone();
                for _ in 0..self.random.u32(1..=2) {
                    self.change(&mut other);
                }
                Some(other).filter(|other| !other.pools.is_empty())
            }
            _ => self.anew(),
        };
        drawn.map(|candidate| self.settled(candidate))
    }

    /// Pools in order, with the concurrency distributed over them.
    fn settled(&mut self, mut candidate: Candidate) -> Candidate {
        const ORDER: [Role; 3] = [Role::Prefill, Role::Decode, Role::Aggregated];
        candidate.pools.sort_by_key(|pool| ORDER.iter().position(|role| *role == pool.role));
        for pool in candidate.pools.iter_mut().filter(|pool| pool.role == Role::Prefill) {
            pool.concurrency = pool.plan.dp;
        }
        let decodes = |pool: &PoolPlan| pool.role != Role::Prefill;
        // A rate keeps as many requests in flight on every attention rank.
        if let Traffic::Rate(_) = self.problem.traffic {
            for pool in candidate.pools.iter_mut().filter(|pool| decodes(pool)) {
                pool.concurrency = pool.concurrency.next_multiple_of(pool.plan.dp);
            }
        }
        if let Some(requests) = self.problem.traffic.requests() {
            let instances: u64 =
                candidate.pools.iter().filter(|pool| decodes(pool)).map(|pool| pool.replicas).sum();
            let each = requests.div_ceil(instances.max(1));
            for pool in candidate.pools.iter_mut().filter(|pool| decodes(pool)) {
                // A decode-only pool needs no slot for requests that wait for prefill.
                let fewer = pool.role == Role::Decode && pool.concurrency < each;
                pool.concurrency = if fewer { pool.concurrency } else { each };
            }
        }
        candidate
    }

    fn anew(&mut self) -> Option<Candidate> {
        let formats = self.random.usize(0..self.problem.formats.len());
        let all = self.problem.cluster.devices();
        let roles: &[Role] = match self.random.u8(0..8) {
            0..=2 => &[Role::Aggregated],
            3 => &[Role::Aggregated, Role::Aggregated],
            4 | 5 => &[Role::Prefill, Role::Decode],
            6 => &[Role::Prefill, Role::Decode, Role::Decode],
            _ => &[Role::Prefill, Role::Decode, Role::Aggregated],
        };
        let mut left = all;
        let mut pools = Vec::new();
        for role in roles {
            let pool = self.pool(formats, *role, left)?;
            left -= pool.replicas * pool.plan.devices();
            pools.push(pool);
        }
        Some(Candidate { formats, pools, offload: Offload::Nothing })
    }

    /// A pool of at most `most` devices.
    fn pool(&mut self, formats: usize, role: Role, most: u64) -> Option<PoolPlan> {
        let plan = self.plan(formats, most)?;
        let most = most / plan.devices();
        let replicas = if self.random.bool() { most } else { self.random.u64(1..=most) };
        let stages = self.stages(plan.pp);
        Some(PoolPlan { role, plan, stages, replicas, concurrency: self.requests() })
    }

    /// Log-uniform concurrency.
    fn requests(&mut self) -> u64 {
        let below = 1u64 << self.random.u32(0..=MOST_POWER);
        self.random.u64(below..2 * below)
    }

    /// A legal plan of at most `most` devices.
    fn plan(&mut self, formats: usize, most: u64) -> Option<ParallelPlan> {
        let problem = self.problem;
        let limits = problem.legal_limits(&problem.formats[formats]);
        for _ in 0..TRIES {
            if most == 0 {
                return None;
            }
            // Small and large instances with similar probability.
            let devices =
                if self.random.bool() { self.random.u64(1..=most) } else { self.random.u64(1..=most.min(8)) };
            let tp = self.divisor(devices);
            let pp = self.divisor(devices / tp);
            let cp = if self.random.bool() { 1 } else { self.divisor(devices / tp / pp) };
            let dp = devices / tp / pp / cp;
            let ranks = tp * cp * dp;
            let ep = if self.experts { self.divisor(ranks) } else { 1 };
            let sp = tp > 1 && self.random.u8(0..4) == 0;
            let dcp = if self.random.u8(0..4) == 0 { self.divisor(tp) } else { 1 };
            let plan = ParallelPlan { tp, pp, dp, cp, dcp, sp, ..ParallelPlan::SINGLE };
            let plan = if self.experts { plan.with_experts(ep) } else { plan.without_experts() };
            if check(&problem.graph, &plan, &limits).is_ok() {
                return Some(plan);
            }
        }
        None
    }

    fn divisor(&mut self, of: u64) -> u64 {
        let all: Vec<u64> = (1..=of).filter(|part| of.is_multiple_of(*part)).collect();
        all[self.random.usize(0..all.len())]
    }

    /// Layers of each stage: balanced, or cut anywhere.
    fn stages(&mut self, stages: u64) -> Vec<u32> {
        let layers = self.problem.graph.layers.value;
        if self.random.u8(0..4) == 0 && stages > 1 && layers > stages {
            let mut cuts: Vec<u64> = (1..layers).collect();
            self.random.shuffle(&mut cuts);
            cuts.truncate(stages as usize - 1);
            cuts.extend([0, layers]);
            cuts.sort_unstable();
            return cuts.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect();
        }
        let (each, more) = (layers / stages, layers % stages);
        let mut held: Vec<u32> = (0..stages).map(|at| (each + u64::from(at < more)) as u32).collect();
        for _ in 0..self.random.usize(0..3) {
            self.shift(&mut held);
        }
        held
    }

    /// Moves a layer from one stage to another.
    fn shift(&mut self, stages: &mut [u32]) {
        let (from, to) = (self.random.usize(0..stages.len()), self.random.usize(0..stages.len()));
        if stages[from] > 1 {
            stages[from] -= 1;
            stages[to] += 1;
        }
    }

    /// Changes one property of a deployment.
    fn change(&mut self, candidate: &mut Candidate) {
        let at = self.random.usize(0..candidate.pools.len().max(1));
        let free = self.problem.cluster.devices().saturating_sub(candidate.devices());
        let Some(pool) = candidate.pools.get_mut(at) else { return };
        match self.random.u8(0..11) {
            0 => pool.replicas += 1,
            1 => pool.replicas = pool.replicas.saturating_sub(1).max(1),
            2 => pool.concurrency = self.random.u64(1..=pool.concurrency.saturating_mul(2)),
            3 => pool.concurrency += 1,
            4 => pool.concurrency = pool.concurrency.saturating_sub(1).max(1),
            5 => {
                let mut stages = std::mem::take(&mut pool.stages);
                self.shift(&mut stages);
                pool.stages = stages;
            }
            6 | 7 => {
                let most = free + pool.replicas * pool.plan.devices();
                let (role, concurrency) = (pool.role, pool.concurrency);
                if let Some(other) = self.pool(candidate.formats, role, most) {
                    let concurrency = if self.random.bool() { concurrency } else { other.concurrency };
                    candidate.pools[at] = PoolPlan { concurrency, ..other };
                }
            }
            8 => {
                let roles = [Role::Aggregated, Role::Prefill, Role::Decode];
                let role = roles[self.random.usize(0..roles.len())];
                candidate.pools.extend(self.pool(candidate.formats, role, free));
            }
            9 => {
                candidate.pools.remove(at);
            }
            _ => candidate.formats = self.random.usize(0..self.problem.formats.len()),
        }
    }
}
