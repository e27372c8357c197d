//! The longest context of a device's requests: the inverse of the memory that their cache takes.
//!
//! Exact to the token. The cache of a sequence grows page by page; a layer with a window stops there. Cached bytes are
//! the least over all choices of layers that have stopped, so the longest context is the most over them.

use super::instance::{Instance, StageKind};
use super::page_pool::PooledCaches;
use super::residency::{draft, grows, stage_caches};
use crate::cost::machine::Machine;
use crate::graph::cache::Cache;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, COUNT, TOKEN};
use crate::spec::objective::MOST_TOKENS;

/// How the cache of one sequence on one stage grows with its tokens.
#[derive(Clone, Debug)]
pub(super) struct CacheGrowth<T> {
    /// Tokens of a sequence per page.
    page: T,
    /// Bytes per page in the layers that keep every token, if any.
    unlimited: Option<T>,
    /// Layers with a window, the narrowest first.
    windows: Vec<WindowGrowth<T>>,
}

/// The layers of one window.
#[derive(Clone, Copy, Debug)]
struct WindowGrowth<T> {
    /// Bytes per page.
    page: T,
    /// Bytes of a full window.
    full: T,
}

/// The different windows of the growing caches of a stage and its draft.
fn windows(instance: &Instance, phase: Phase, stage: &StageKind) -> Vec<Option<u64>> {
    let blocks = instance.sharded(phase).blocks.iter().zip(&stage.layers);
    let caches = blocks.filter(|(_, layers)| **layers > 0).flat_map(|(block, _)| &block.caches);
    let mut found: Vec<_> = caches.filter(|cache| grows(cache)).map(Cache::limit).collect();
    if let Some((draft, alone)) = draft(instance, stage) {
        found.extend(windows(draft, phase, alone));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The number rounded down, by rounding up what is left to a number beyond any context: the rounding of a spreadsheet
/// differs for negative numbers.
fn floor<N: Num>(number: Qty<N>) -> Qty<N> {
    let beyond = Qty::from(MOST_TOKENS as f64);
    beyond - (beyond - number.min(beyond)).ceil()
}

fn sum<N: Num>(parts: impl Iterator<Item = Qty<N>>) -> Option<Qty<N>> {
    parts.reduce(|a, b| a + b)
}

impl<N: Num> CacheGrowth<Qty<N>> {
    /// The growth of the caches of `stage`.
    pub(super) fn of<R: Reading<N = N>>(
        read: &R,
        instance: &Instance,
        phase: Phase,
        stage: &StageKind,
        machine: &Machine<Qty<N>>,
    ) -> CacheGrowth<Qty<N>> {
        if let Some(pool) = PooledCaches::of(read, instance, phase, stage, machine) {
            return CacheGrowth { page: pool.block, unlimited: Some(pool.page), windows: vec![] };
        }
        let page = read.count(instance.plan.cache_ranks()) * machine.chip.block_tokens;
        let cached = |tokens, of: Option<u64>| {
            let picked = |cache: &Cache| grows(cache) && cache.limit() == of;
            stage_caches(read, instance, phase, stage, tokens, machine, &picked)
        };
        let found = windows(instance, phase, stage);
        let limited = found.iter().flatten().map(|&limit| {
            let full = cached(read.count(Count::config("sliding_window", limit)), Some(limit));
            WindowGrowth { page: cached(page, Some(limit)), full }
        });
        let windows = limited.collect();
        let unlimited = found.contains(&None).then(|| cached(page, None));
        CacheGrowth { page, unlimited, windows }
    }

    /// The most tokens that a sequence holds at its end where its cache has `free_bytes` on average: without its output
    /// of `osl` tokens at its beginning, and the fraction `part` of the way to its end.
    pub(super) fn longest(&self, free_bytes: Qty<N>, osl: Qty<N>, part: Qty<N>) -> Qty<N> {
        let moves = Qty::from(1.0).exceeds(part);
        let steps = (0..=2 * self.windows.len()).filter(|step| moves || step % 2 == 0);
        let lengths = steps.map(|step| {
            let (stopped, open) = self.windows.split_at(step / 2);
            let (stopping, open) = open.split_at(step % 2);
            let full = stopped.iter().map(|one| one.full);
            let full = sum(full.chain(stopping.iter().map(|one| part * one.full)));
            let left = full.map_or(free_bytes, |full| free_bytes - full);
            let both = sum(self.unlimited.into_iter().chain(open.iter().map(|one| one.page)));
            self.piece(left, (both, stopping.first().map(|one| one.page)), osl, part)
        });
        let longest = lengths.reduce(|a, b| a.max(b)).expect("a first step");
        longest.max(Qty::from(0.0)).is(&FITTING)
    }

    /// The same where `both` bytes per page grow over the whole sequence, and `stopping` only up to its output.
    fn piece(
        &self,
        left: Qty<N>,
        (both, stopping): (Option<Qty<N>>, Option<Qty<N>>),
        osl: Qty<N>,
        part: Qty<N>,
    ) -> Qty<N> {
        let whole = floor(osl / self.page);
        let rest = osl - whole * self.page;
        let before = sum(both.into_iter().chain(stopping)).map(|bytes| (1.0 - part) * bytes);
        let Some(before) = before else {
            let none = Qty::literal(0.0 * BYTE).exceeds(left);
            return Qty::from(if none { 0.0 } else { MOST_TOKENS as f64 });
        };
        let Some(both) = both else {
            return floor(left / before + whole) * self.page + rest;
        };
        let end = part * both;
        let pages = (left + before * whole) / (before + end);
        let full = floor(pages);
        // A last page at the end of the output may fit where another page of the prompt does not.
        let more = floor((pages - full) * (before + end) / end).min(Qty::from(1.0));
        full * self.page + more * rest
    }
}

/// Longest context of requests with `osl` output tokens: what fits, up to the context that the model supports and the
/// longest request that the server takes; none where no prompt fits.
pub fn max_context<R: Reading>(
    read: &R,
    fits: Qty<R::N>,
    osl: Qty<R::N>,
    (limit, taken): (Option<u64>, Option<Qty<R::N>>),
) -> Qty<R::N> {
    let fits = if osl.exceeds(fits) { Qty::from(0.0) } else { fits };
    let most = match limit {
        Some(limit) => Count::config("max_position_embeddings", limit),
        None => Count::derived("most_tokens", MOST_TOKENS, "no request is longer"),
    };
    let fits = fits.min(read.count(most));
    let fits = taken.map_or(fits, |taken| fits.min(taken));
    (fits * Qty::literal(1.0 * TOKEN)).is(&MAX_CONTEXT)
}

crate::formulas! {
    FITTING {
        symbol: "fitting_context",
        unit: COUNT,
        why: "the most tokens of a request, prompt and output, whose cache fits in the memory that weights, activations, buffers and states leave: whole pages, windows at most full, every request of the load as long",
        cite: "inverse of kv_cache",
    }
    MAX_CONTEXT {
        symbol: "max_context",
        unit: TOKEN,
        why: "the longest prompt plus output that fits in memory at the plan's load, up to the context that the model supports and the longest request that the server takes",
        cite: "definition",
    }
}
