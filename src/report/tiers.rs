//! Tiers of the KV cache behind that of the devices, in the answer of `simulate`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::traffic::run::{PoolSettings, RunTotals};

/// Prompt tokens that a tier gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierHits {
    /// `device`, `host` or `store`.
    pub tier: String,
    /// Prompt tokens that were found there, and in no tier before it.
    pub tokens: u64,
    /// Their share of all prompt tokens.
    pub hit_rate: f64,
}

/// Hits by tier, and loads from those behind the devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierReport {
    /// By tier, that of the devices first.
    pub hits: Vec<TierHits>,
    /// Loads, those after preemptions included.
    pub loads: u64,
    /// Tokens that they brought.
    pub loaded_tokens: u64,
    /// Their mean time, from the start to the end, in ms; absent without loads.
    pub mean_load_ms: Option<f64>,
}

impl TierReport {
    /// Those of a run; `None` without tiers.
    pub fn of(pools: &[PoolSettings], totals: &RunTotals) -> Option<TierReport> {
        let tiers: Vec<_> = pools.iter().filter_map(|pool| pool.tiers.as_ref()).collect();
        if tiers.is_empty() {
            return None;
        }
        let of = &totals.tiers;
        let device = totals.cached_tokens.saturating_sub(of.host_tokens + of.store_tokens);
        let has_store = tiers.iter().any(|tiers| tiers.store.is_some());
        let store = has_store.then_some(("store", of.store_tokens));
        let hits = [("device", device), ("host", of.host_tokens)].into_iter().chain(store);
        let all = totals.prompt_tokens.max(1) as f64;
        Some(TierReport {
            hits: hits
                .map(|(tier, tokens)| TierHits {
                    tier: tier.to_owned(),
                    tokens,
                    hit_rate: tokens as f64 / all,
                })
                .collect(),
            loads: of.loads,
            loaded_tokens: of.loaded_tokens,
            mean_load_ms: (of.loads > 0).then(|| of.load_s / of.loads as f64 * 1e3),
        })
    }
}
