//! The stores of KV cache behind the ranks of a pool, and who has them in common.

use super::PoolSettings;
use crate::spec::role::Role;
use crate::traffic::cache_tier::{SharedStore, TierScope};
use crate::traffic::engine::SchedulerSettings;

impl PoolSettings {
    /// Replicas without tiers of the cache behind that of the devices.
    pub fn untiered(
        role: Role,
        (replicas, ranks): (usize, usize),
        scheduler: SchedulerSettings,
    ) -> PoolSettings {
        PoolSettings { role, replicas, ranks, scheduler, tiers: None }
    }

    /// An empty store of this scope, if the pool has one.
    pub(super) fn store(&self, scope: TierScope) -> Option<SharedStore> {
        self.tiers.as_ref()?.new_store(scope, self.scheduler.block_tokens())
    }

    /// By rank of a new replica: its store, which may be the `shared` one.
    pub(super) fn stores(&self, shared: Option<&SharedStore>) -> Vec<Option<SharedStore>> {
        let scope = self.tiers.as_ref().and_then(|tiers| tiers.store.as_ref()).map(|store| store.scope);
        let own = match scope {
            Some(TierScope::Deployment) => shared.cloned(),
            Some(TierScope::Replica) => self.store(TierScope::Replica),
            Some(TierScope::Rank) | None => None,
        };
        (0..self.ranks).map(|_| own.clone().or_else(|| self.store(TierScope::Rank))).collect()
    }
}
