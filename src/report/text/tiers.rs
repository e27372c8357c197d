//! Tiers of the KV cache as text.

use super::page::paragraph;
use crate::report::number::{count, digits, percent, time};
use crate::report::tiers::TierReport;
use crate::traffic::cache_tier::{CacheTierSettings, TierScope, TierSettings};

/// Hits by tier.
pub fn tier_hits(report: &TierReport) -> String {
    let hits = report.hits.iter().map(|one| format!("{} {}", one.tier, percent(one.hit_rate)));
    let hits = hits.collect::<Vec<_>>().join(", ");
    let loads = report.mean_load_ms.map_or_else(String::new, |mean_ms| {
        let (loads, tokens) = (count(report.loads, "load"), digits(report.loaded_tokens as f64));
        format!("; {loads} of {tokens} tokens, {} on average", time(mean_ms))
    });
    paragraph(&format!("prompt tokens by tier of the cache: {hits}{loads}"))
}

/// The tiers of a pool.
pub fn tier_sizes(of: &CacheTierSettings) -> String {
    let tokens = |tier: &TierSettings| digits(tier.bytes as f64 / of.token_bytes);
    let rate = |tier: &TierSettings| format!("{} GB/s", digits(tier.bytes_per_s / 1e9));
    let host = format!("behind each: host memory for {} tokens at {}", tokens(&of.host), rate(&of.host));
    let store = of.store.as_ref().map_or_else(String::new, |store| {
        let scope = match store.scope {
            TierScope::Rank => "of its own",
            TierScope::Replica => "of its replica",
            TierScope::Deployment => "of all replicas",
        };
        format!(", and a store {scope} for {} tokens at {}", tokens(store), rate(store))
    });
    format!("{host}{store}")
}
