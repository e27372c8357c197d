//! Tiers of the KV cache behind that of the devices: host memory, and a store behind it, on disks or over a network.
//!
//! A tier holds whole blocks by the identity of their tokens. Writing takes no time here: it uses the other direction of
//! the links, and nothing waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block_lru::BlockLru;

/// The ranks that share a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum TierScope {
    /// Each attention rank has its own.
    Rank,
    /// The attention ranks of a replica have one.
    #[default]
    Replica,
    /// All replicas have one.
    Deployment,
}

/// A tier of the KV cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierSettings {
    /// Its size.
    pub bytes: u64,
    /// Bytes that are read from it in a second, one load after the other.
    pub bytes_per_s: f64,
    /// Seconds before the first byte of a load.
    pub latency_s: f64,
    /// The ranks that share it.
    pub scope: TierScope,
}

/// The tiers behind the devices of an attention rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheTierSettings {
    /// Bytes of a token in a tier: those of all devices of the rank.
    pub token_bytes: f64,
    /// Layers that are loaded one after the other, where the computation of one may run next to the load of later ones.
    pub layers: u32,
    /// Whether only the blocks of prompts are written: `offload_prompt_only` of vLLM.
    pub prompts_only: bool,
    /// Host memory.
    pub host: TierSettings,
    /// A store behind it.
    pub store: Option<TierSettings>,
}

/// A store that several ranks may have in common.
pub struct TierStore {
    blocks: BlockLru,
    /// From when on it reads nothing.
    free_s: f64,
}

/// A store, and all that have it.
pub type SharedStore = Arc<Mutex<TierStore>>;

impl CacheTierSettings {
    /// Blocks of `block_tokens` tokens that a tier holds.
    fn blocks(&self, tier: &TierSettings, block_tokens: u32) -> u64 {
        (tier.bytes as f64 / (self.token_bytes * f64::from(block_tokens))) as u64
    }

    /// An empty store for blocks of `block_tokens` tokens, if there is any of this scope.
    pub fn new_store(&self, scope: TierScope, block_tokens: u32) -> Option<SharedStore> {
        let store = self.store.as_ref().filter(|store| store.scope == scope)?;
        let blocks = BlockLru::new(self.blocks(store, block_tokens));
        Some(Arc::new(Mutex::new(TierStore { blocks, free_s: 0.0 })))
    }
}

/// Blocks that are on their way from tiers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TierLoad {
    /// Blocks that host memory had.
    pub host: u32,
    /// Blocks that the store alone had.
    pub store: u32,
    /// When they are there.
    pub end_s: f64,
}

/// The tiers of an attention rank.
pub struct CacheTiers {
    settings: CacheTierSettings,
    block_tokens: u32,
    host: BlockLru,
    store: Option<SharedStore>,
    /// From when on the link from host memory is free.
    link_free_s: f64,
    now_s: f64,
    heard_s: f64,
}

impl CacheTiers {
    /// Host memory without blocks of `block_tokens` tokens, before a store.
    pub fn new(settings: CacheTierSettings, block_tokens: u32, store: Option<SharedStore>) -> CacheTiers {
        CacheTiers {
            host: BlockLru::new(settings.blocks(&settings.host, block_tokens)),
            settings,
            block_tokens,
            store,
            link_free_s: 0.0,
            now_s: 0.0,
            heard_s: 0.0,
        }
    }

    /// Their settings.
    pub fn settings(&self) -> &CacheTierSettings {
        &self.settings
    }

    /// Loads start at `now_s`, and those that ended by `heard_s` are known.
    pub fn set_time(&mut self, now_s: f64, heard_s: f64) {
        (self.now_s, self.heard_s) = (now_s, heard_s);
    }

    /// The time at which loads start.
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Whether it is known that a load has ended, which ends at `end_s`.
    pub fn has_ended(&self, end_s: f64) -> bool {
        end_s <= self.heard_s
    }

    fn store(&self) -> Option<MutexGuard<'_, TierStore>> {
        let store = self.store.as_ref()?;
        Some(store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether host memory has a block.
    pub fn hosts(&self, block: u64) -> bool {
        self.host.holds(block)
    }

    /// Whether the store has a block.
    pub fn stores(&self, block: u64) -> bool {
        self.store().is_some_and(|store| store.blocks.holds(block))
    }

    /// Whether a tier has a block.
    pub fn holds(&self, block: u64) -> bool {
        self.hosts(block) || self.stores(block)
    }

    /// Seconds that `blocks` blocks take from a tier, alone.
    fn seconds(&self, tier: &TierSettings, blocks: u32) -> f64 {
        let tokens = f64::from(blocks) * f64::from(self.block_tokens);
        tokens * self.settings.token_bytes / tier.bytes_per_s
    }

    /// Seconds that `blocks` blocks take from host memory to the devices, alone.
    pub fn host_s(&self, blocks: u32) -> f64 {
        if blocks == 0 {
            0.0
        } else {
            self.settings.host.latency_s + self.seconds(&self.settings.host, blocks)
        }
    }

    /// Reads blocks from the store, after all that it reads already, until `until_s` at most. Returns their number, and
    /// when they are in host memory.
    fn read(&self, blocks: &[u64], until_s: f64) -> (u32, f64) {
        let (Some(of), Some(mut store)) = (&self.settings.store, self.store()) else {
            return (0, self.now_s);
        };
        let start_s = self.now_s.max(store.free_s) + of.latency_s;
        let (mut count, mut end_s) = (blocks.len() as u32, start_s + self.seconds(of, blocks.len() as u32));
        if end_s > until_s {
            let part = (until_s - start_s) / (end_s - start_s);
            count = (part.max(0.0) * f64::from(count)) as u32;
            end_s = until_s;
        }
        if count > 0 {
            store.free_s = start_s + self.seconds(of, count);
        }
        blocks[..count as usize].iter().rev().for_each(|block| store.blocks.put(*block));
        (count, end_s)
    }

    /// Loads blocks that tiers have to the devices: first those that the store alone has to host memory, then all of them
    /// over its link.
    pub fn load(&mut self, blocks: &[u64]) -> TierLoad {
        let stored: Vec<u64> = blocks.iter().copied().filter(|block| !self.hosts(*block)).collect();
        let (host, store) = ((blocks.len() - stored.len()) as u32, stored.len() as u32);
        let read_s = if store > 0 { self.read(&stored, f64::INFINITY).1 } else { self.now_s };
        let over_link_s = self.host_s(blocks.len() as u32);
        let end_s = read_s.max(self.link_free_s) + over_link_s;
        self.link_free_s = self.now_s.max(self.link_free_s) + over_link_s;
        self.place(blocks);
        TierLoad { host, store, end_s }
    }

    /// Reads blocks that the store has towards host memory, until `until_s` at most. Returns their number, and when that
    /// ends; the blocks are there from [`CacheTiers::place`] on.
    pub fn prefetch(&self, blocks: &[u64], until_s: f64) -> (u32, f64) {
        self.read(blocks, until_s)
    }

    /// Host memory has these blocks, the first of which are the last to be given up.
    pub fn place(&mut self, blocks: &[u64]) {
        blocks.iter().rev().for_each(|block| self.host.put(*block));
    }

    /// The same, and so has the store.
    pub fn write(&mut self, blocks: &[u64]) {
        self.place(blocks);
        if let Some(mut store) = self.store() {
            blocks.iter().rev().for_each(|block| store.blocks.put(*block));
        }
    }

    /// Takes a block out of host memory. Returns whether it was there.
    pub fn take(&mut self, block: u64) -> bool {
        self.host.remove(block)
    }
}

/// Loads of a run from tiers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TierTotals {
    /// Prompt tokens of answered requests that came from host memory, and from the store.
    pub host_tokens: u64,
    pub store_tokens: u64,
    /// Tokens of all loads, those after preemptions included, their number, and their seconds.
    pub loaded_tokens: u64,
    pub loads: u64,
    pub load_s: f64,
}

impl TierTotals {
    /// Counts those of another run too.
    pub fn with(&mut self, other: &TierTotals) {
        self.host_tokens += other.host_tokens;
        self.store_tokens += other.store_tokens;
        self.loaded_tokens += other.loaded_tokens;
        self.loads += other.loads;
        self.load_s += other.load_s;
    }

    /// Counts a load.
    pub fn add(&mut self, tokens: u32, seconds: f64) {
        self.loads += 1;
        self.loaded_tokens += u64::from(tokens);
        self.load_s += seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(blocks: u64, bytes_per_s: f64, latency_s: f64) -> TierSettings {
        TierSettings { bytes: blocks * 1600, bytes_per_s, latency_s, scope: TierScope::Rank }
    }

    fn tiers(host: u64, store: u64) -> CacheTiers {
        let settings = CacheTierSettings {
            token_bytes: 100.0,
            layers: 1,
            prompts_only: false,
            host: tier(host, 1e6, 0.0),
            store: Some(tier(store, 1e5, 0.5)),
        };
        let shared = settings.new_store(TierScope::Rank, 16);
        CacheTiers::new(settings, 16, shared)
    }

    #[test]
    fn a_load_takes_its_bytes_over_the_bandwidth() {
        let mut of = tiers(4, 8);
        of.set_time(10.0, 10.0);
        of.write(&[1, 2, 3, 4, 5, 6]);
        // The end of what is written is given up first.
        assert!((1..=4).all(|block| of.hosts(block)) && !of.hosts(5) && of.stores(5));
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} for {other}");
        let first = of.load(&[1, 2]);
        assert_eq!((first.host, first.store), (2, 0));
        near(first.end_s, 10.0 + 2.0 * 1600.0 / 1e6);
        // The next one waits for the link, and for the store before that.
        near(of.load(&[3]).end_s, 10.0 + 3.0 * 1600.0 / 1e6);
        let both = of.load(&[1, 2, 3, 4, 5, 6]);
        assert_eq!((both.host, both.store), (4, 2));
        near(both.end_s, 10.0 + 0.5 + 2.0 * 1600.0 / 1e5 + 6.0 * 1600.0 / 1e6);
        assert!(!of.has_ended(both.end_s));
        of.set_time(12.0, 11.0);
        assert!(of.has_ended(both.end_s));
    }

    #[test]
    fn a_read_ends_at_its_deadline() {
        let mut of = tiers(4, 8);
        of.write(&[1, 2, 3, 4, 5, 6]);
        // Half a second, then 16 ms a block.
        assert_eq!(of.prefetch(&[5, 6], 0.52), (1, 0.52));
        assert_eq!(of.prefetch(&[5, 6], 0.3), (0, 0.3));
        let (count, end_s) = of.prefetch(&[5, 6], 9.0);
        assert_eq!(count, 2);
        assert!((end_s - (0.516 + 0.5 + 0.032)).abs() < 1e-9, "{end_s}");
    }
}
