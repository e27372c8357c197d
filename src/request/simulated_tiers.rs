//! Tiers of the KV cache behind that of the devices, as a request states them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::priced_plan::PricedPlan;
use crate::plan::parallel::Phase;
use crate::quantity::unit::GIB;
use crate::search::simulated_pool::{CachedToken, InstanceClock, tokens};
use crate::spec::error::Error;
use crate::spec::limits::{KV_HOST_MEMORY, KV_STORE, KV_STORE_BANDWIDTH, KV_STORE_LATENCY};
use crate::spec::role::Role;
use crate::traffic::cache_tier::{CacheTierSettings, TierScope, TierSettings};
use crate::traffic::engine::SchedulerSettings;
use crate::traffic::run::PoolSettings;

/// Host memory and a store behind the KV cache of the devices.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "CacheTiers")]
pub struct SimulatedTiers {
    /// Host memory for the KV cache of a replica, in GiB, in equal parts for its attention ranks: what the devices give up, or compute, is loaded from there instead of being computed again [default: none]
    #[cfg_attr(feature = "cli", arg(long, value_name = "GIB", value_parser = crate::spec::limits::number(&KV_HOST_MEMORY), allow_negative_numbers = true, help_heading = "Cache tiers"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_host_memory: Option<f64>,
    /// Size of a store behind host memory, on disks or over a network, in GiB [default: none]
    #[cfg_attr(feature = "cli", arg(long, value_name = "GIB", value_parser = crate::spec::limits::number(&KV_STORE), allow_negative_numbers = true, help_heading = "Cache tiers"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_store: Option<f64>,
    /// GB that a store gives in a second, one read after the other; required with a store
    #[cfg_attr(feature = "cli", arg(long, value_name = "GB/S", value_parser = crate::spec::limits::number(&KV_STORE_BANDWIDTH), allow_negative_numbers = true, help_heading = "Cache tiers"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_store_bandwidth: Option<f64>,
    /// Seconds before the first byte of a read from a store [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", value_parser = crate::spec::limits::number(&KV_STORE_LATENCY), allow_negative_numbers = true, help_heading = "Cache tiers"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_store_latency: Option<f64>,
    /// Who shares a store: no other attention rank, those of a replica, or all replicas [default: replica]
    #[cfg_attr(feature = "cli", arg(long, value_name = "SCOPE", help_heading = "Cache tiers"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_store_scope: Option<TierScope>,
}

/// Tokens of a page of SGLang with a hierarchical cache, where the plan has its default of 1
/// (<https://docs.sglang.io/advanced_features/hicache_best_practices.html>).
const HICACHE_PAGE: u32 = 64;

impl SimulatedTiers {
    /// Gives the pools of `plan` that compute prompts their tiers.
    pub(super) fn apply(&self, plan: &PricedPlan, pools: &mut [PoolSettings]) -> Result<(), Error> {
        let Some(gib) = self.kv_host_memory else { return Ok(()) };
        let clocks = &plan.clocks().pools;
        for (pool, clock) in pools.iter_mut().zip(clocks).filter(|(pool, _)| pool.role != Role::Decode) {
            self.check_runtime(&pool.scheduler)?;
            if !plan.caches_prefixes {
                let fix = "leave this out, or choose a runtime that keeps the blocks of earlier prompts";
                let found = "a runtime without a prefix cache";
                return Err(Error::new("kv_host_memory", found, "a prefix cache", fix));
            }
            widen_pages(&mut pool.scheduler);
            let host_bytes = gib * GIB / pool.ranks.max(1) as f64;
            pool.tiers = Some(self.settings(host_bytes, (&*pool, clock))?);
        }
        Ok(())
    }

    /// Whether its numbers are in their ranges, and each setting is of something that is there.
    pub(super) fn check(&self) -> Result<(), Error> {
        for (limit, name, value) in [
            (&KV_HOST_MEMORY, "kv_host_memory", self.kv_host_memory),
            (&KV_STORE, "kv_store", self.kv_store),
            (&KV_STORE_BANDWIDTH, "kv_store_bandwidth", self.kv_store_bandwidth),
            (&KV_STORE_LATENCY, "kv_store_latency", self.kv_store_latency),
        ] {
            if let Some(value) = value {
                limit.check(name, value)?;
            }
        }
        let (host, store) = (self.kv_host_memory.is_some(), self.kv_store.is_some());
        let (of_host, of_store) = ("host memory before it: `kv_host_memory`", "a store: `kv_store`");
        let parts = [
            ("kv_store", store, host, of_host),
            ("kv_store_bandwidth", self.kv_store_bandwidth.is_some(), store, of_store),
            ("kv_store_latency", self.kv_store_latency.is_some(), store, of_store),
            ("kv_store_scope", self.kv_store_scope.is_some(), store, of_store),
        ];
        if let Some((name, .., expected)) =
            parts.into_iter().find(|(_, stated, has_use, _)| *stated && !has_use)
        {
            return Err(Error::new(name, "it alone", expected, "state that too, or leave this out"));
        }
        if store && self.kv_store_bandwidth.is_none() {
            let fix = "state the GB/s that your disks or your network give a reader";
            return Err(Error::new("kv_store_bandwidth", "none", "the bandwidth of the store", fix));
        }
        Ok(())
    }

    /// Whether the runtime of a scheduler has such tiers.
    fn check_runtime(&self, scheduler: &SchedulerSettings) -> Result<(), Error> {
        match scheduler {
            SchedulerSettings::Llamacpp(_) => {
                let found = "llama.cpp, which keeps whole prompts in 8 GiB of host memory, simulated already";
                let fix = "leave this out, or choose another runtime";
                Err(Error::new("kv_host_memory", found, "vllm, sglang or trtllm", fix))
            }
            SchedulerSettings::Trtllm(_) if self.kv_store.is_some() => {
                let found = "trtllm, whose first cache manager has no tier behind host memory";
                let fix = "leave the store out, or choose another runtime";
                Err(Error::new("kv_store", found, "vllm or sglang", fix))
            }
            _ => Ok(()),
        }
    }

    /// The tiers of a rank with `host_bytes` bytes of host memory.
    fn settings(
        &self,
        host_bytes: f64,
        (pool, clock): (&PoolSettings, &InstanceClock),
    ) -> Result<CacheTierSettings, Error> {
        let phase = if pool.role == Role::Prefill { Phase::Prefill } else { Phase::Decode };
        let CachedToken { bytes, link_s } = clock.cached_token(phase).ok_or_else(|| {
            let fix = "choose a device whose file has a `host_link`, or add the link to it";
            Error::new("kv_host_memory", "a device without a link to host memory", "a device with one", fix)
        })?;
        let host = TierSettings {
            bytes: host_bytes as u64,
            bytes_per_s: bytes / link_s,
            latency_s: 0.0,
            scope: TierScope::Rank,
        };
        let store = self.kv_store.zip(self.kv_store_bandwidth).map(|(gib, gb_per_s)| TierSettings {
            bytes: (gib * GIB) as u64,
            bytes_per_s: gb_per_s * 1e9,
            latency_s: self.kv_store_latency.unwrap_or(0.0),
            scope: self.kv_store_scope.unwrap_or_default(),
        });
        Ok(CacheTierSettings {
            token_bytes: bytes,
            layers: tokens(clock.layers()),
            // The default of vLLM 0.33 (`vllm/v1/kv_offload/base.py`).
            prompts_only: matches!(pool.scheduler, SchedulerSettings::Vllm(_)),
            host,
            store,
        })
    }
}

/// Pages of SGLang's tiers have several tokens.
fn widen_pages(scheduler: &mut SchedulerSettings) {
    if let SchedulerSettings::Sglang(of) = scheduler
        && of.page_tokens == 1
    {
        let whole = |tokens: u32| (tokens / HICACHE_PAGE).max(1) * HICACHE_PAGE;
        of.page_tokens = HICACHE_PAGE;
        of.cache_tokens = whole(of.cache_tokens);
        of.chunk_tokens = of.chunk_tokens.map(whole);
    }
}
