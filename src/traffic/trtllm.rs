//! The scheduler of one attention rank as TensorRT-LLM's: memory is given for whole requests, so that none is
//! preempted, or for the next step only; then requests share a step's tokens in the order of their arrival.
//!
//! Follows `tensorrt_llm/_torch/pyexecutor/scheduler/scheduler.py`, the loops of `py_executor.py` and, for the blocks,
//! `cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp`; for full attention on one pipeline stage.

mod capacity;
mod memory;
mod micro_batch;
mod offload;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block_pool::{BlockId, BlockPool};
use super::block_tree::{BlockTokens, BlockTree, TreePlace};
use super::cache_tier::CacheTiers;
use super::content::{BlockChain, BlockIdentities};
use super::draft::{DraftSettings, places_beyond, proposed, tokens_of_step};
use super::engine::{EngineEvent, EngineRequest, Note, SchedulerEngine, most_steps, placed};
use super::step_load::{PromptChunk, StepLoad};

/// For how much of a request memory is to be free: `capacity_scheduler_policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrtllmCapacity {
    /// For all of it: none is preempted.
    GuaranteedNoEvict,
    /// For its next step: the last one is preempted where memory is short.
    MaxUtilization,
}

/// The settings of TensorRT-LLM's scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrtllmSettings {
    /// New tokens of a step: `max_num_tokens`.
    pub token_budget: u32,
    /// Requests that are active at the same time: `max_batch_size`.
    pub max_requests: u32,
    /// Blocks of the cache.
    pub blocks: u32,
    /// Tokens of a block: `tokens_per_block`.
    pub block_tokens: u32,
    /// For how much of a request memory is to be free.
    pub capacity: TrtllmCapacity,
    /// Whether a step may compute a part of a prompt: `enable_chunked_prefill`. Else a prompt has at most the tokens of
    /// a step.
    pub chunked_prefill: bool,
    /// Whether later prompts use the cached blocks of earlier ones: `enable_block_reuse`.
    pub block_reuse: bool,
    /// And the first tokens of a block: `enable_partial_reuse`.
    pub partial_reuse: bool,
    /// Whether a prompt waits for one that computes its next block, and cached tokens count as free:
    /// `enable_prefix_aware_scheduling`.
    pub prefix_aware: bool,
    /// Whether a step is made up while the one before it runs, without its tokens.
    pub overlap: bool,
    /// The most output that clients allow, `max_tokens`, where a request has less; none where they allow just what it
    /// has.
    pub output_limit: Option<u32>,
    /// Steps that prompts wait for others next to requests that decode: `batch_wait_timeout_iters`.
    pub wait_steps: u32,
    /// Part of a step's tokens at which they wait no longer: `batch_wait_max_tokens_ratio`.
    pub wait_tokens_ratio: f64,
    /// The draft of speculative decoding, if any.
    pub draft: Option<DraftSettings>,
}

/// How far a request is, as the scheduler knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrtllmPhase {
    Context,
    Generation,
    /// Its last step is under way.
    ToComplete,
    Complete,
}

struct TrtllmRequest {
    request: EngineRequest,
    /// Tokens of output that it may have.
    limit: u32,
    /// Its whole blocks, at its end, and their identities.
    keys: Vec<BlockTokens>,
    chain: Vec<u64>,
    phase: TrtllmPhase,
    /// Tokens that are computed as a prompt: also the output of before it was preempted.
    prompt: u32,
    /// Tokens whose values are known.
    known: u32,
    /// Tokens of output that were computed, those of which the scheduler does not know included.
    made: u32,
    /// Tokens of the prompt that are computed, those of the step under way included.
    position: u32,
    /// Tokens of the prompt that the cache had.
    cached: u32,
    /// Tokens of the prompt in its next step.
    chunk: u32,
    /// Tokens that the cache is expected to have.
    estimate: u32,
    blocks: Vec<BlockId>,
    /// Tokens that have a place in the blocks; none before its first step.
    held: Option<u32>,
    /// The whole blocks that it has put into the tree, and the place of the last.
    stored: Option<(u32, TreePlace)>,
}

impl TrtllmRequest {
    fn is_first_chunk(&self) -> bool {
        self.phase == TrtllmPhase::Context && self.position == self.cached
    }

    fn remaining(&self) -> u32 {
        self.prompt - self.position
    }

    fn is_last_chunk(&self) -> bool {
        self.position + self.chunk == self.prompt
    }

    /// Tokens of output that it may have after its present prompt.
    fn max_new(&self) -> u32 {
        self.limit - (self.prompt - self.request.prompt)
    }

    fn will_complete(&self) -> bool {
        self.known - self.prompt + 1 >= self.max_new()
    }

    /// Its output so far is prompt from now on.
    fn pause(&mut self) {
        (self.prompt, self.chunk, self.phase) = (self.known, self.known, TrtllmPhase::Context);
        (self.position, self.cached) = (0, 0);
        // The cache that another worker sent is lost too.
        self.request.received = 0;
    }
}

/// A request in the slab of the engine.
type TrtllmSlot = usize;

/// Requests of a step: those with prompts, of which those with a last part come last, and those that decode.
#[derive(Default)]
struct TrtllmBatch {
    context: Vec<TrtllmSlot>,
    /// From which of these on it is their last part.
    last: usize,
    generation: Vec<TrtllmSlot>,
}

/// The requests of one attention rank.
pub struct TrtllmEngine {
    settings: TrtllmSettings,
    pool: BlockPool,
    tree: BlockTree,
    live: Vec<Option<TrtllmRequest>>,
    vacant: Vec<TrtllmSlot>,
    /// Requests that the scheduler has not taken.
    queue: VecDeque<TrtllmSlot>,
    active: Vec<TrtllmSlot>,
    /// Active requests with blocks.
    started: usize,
    paused: Vec<TrtllmSlot>,
    /// Active requests that their clients have given up.
    cancelled: Vec<TrtllmSlot>,
    batch: TrtllmBatch,
    /// Whether the states of its requests are still those of before it.
    fresh: bool,
    /// The batch whose tokens are to be read, of overlapping steps.
    unread: Option<TrtllmBatch>,
    /// Steps that prompts have waited.
    waited: u32,
    /// Whether the first request that waits for memory lacks blocks.
    blocked: bool,
    /// Whether no request has ended, and no prompt has come into the cache, since the step was made up.
    settled: bool,
    load: StepLoad,
    /// Tiers of the cache behind that of the device, if any.
    tiers: Option<CacheTiers>,
    /// By block: the identity of its tokens, where it is whole and was put into the tree.
    identities: Vec<Option<u64>>,
    /// Blocks that come from host memory for the step.
    arriving: u32,
}

impl TrtllmEngine {
    /// An engine without requests.
    pub fn new(settings: TrtllmSettings) -> TrtllmEngine {
        TrtllmEngine {
            pool: BlockPool::new(settings.blocks),
            tree: BlockTree::new(settings.blocks),
            identities: vec![None; settings.blocks as usize],
            settings,
            live: vec![],
            vacant: vec![],
            queue: VecDeque::new(),
            active: vec![],
            started: 0,
            paused: vec![],
            cancelled: vec![],
            batch: TrtllmBatch::default(),
            fresh: false,
            unread: None,
            waited: 0,
            blocked: false,
            settled: true,
            load: StepLoad::default(),
            tiers: None,
            arriving: 0,
        }
    }

    fn at(&self, slot: TrtllmSlot) -> &TrtllmRequest {
        self.live[slot].as_ref().expect("a slot in a queue is taken")
    }

    fn at_mut(&mut self, slot: TrtllmSlot) -> &mut TrtllmRequest {
        self.live[slot].as_mut().expect("a slot in a queue is taken")
    }

    /// A request arrives whose client allows `limit` tokens of output.
    pub fn submit_with_limit(&mut self, request: EngineRequest, limit: u32) {
        let size = self.settings.block_tokens;
        let mut chain = BlockChain::default();
        let live = TrtllmRequest {
            limit: limit.max(request.output),
            keys: BlockTokens::whole(&request.runs, size),
            chain: std::iter::from_fn(|| chain.next(&request.runs, size)).collect(),
            phase: TrtllmPhase::Context,
            prompt: request.prompt,
            known: request.prompt,
            made: 0,
            position: 0,
            cached: 0,
            chunk: request.prompt,
            estimate: 0,
            blocks: vec![],
            held: None,
            stored: None,
            request,
        };
        let slot = placed(&mut self.live, &mut self.vacant, live);
        self.queue.push_back(slot);
    }

    /// Takes what waits while there are places.
    fn fetch(&mut self) {
        let places = (self.settings.max_requests as usize).saturating_sub(self.active.len());
        let taken = places.min(self.queue.len());
        self.active.extend(self.queue.drain(..taken));
    }

    /// The preempted requests, and those of the newest batch, are what they will be after it.
    fn proceed(&mut self) {
        for slot in std::mem::take(&mut self.paused) {
            let live = self.at_mut(slot);
            // One that has ended while it was preempted is not computed again.
            if live.phase != TrtllmPhase::Complete {
                live.pause();
            }
        }
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        let overlap = self.settings.overlap;
        let (live, batch) = (&mut self.live, &self.batch);
        for &slot in batch.context.iter().chain(&batch.generation) {
            let Some(one) = live[slot].as_mut().filter(|one| one.phase != TrtllmPhase::Complete) else {
                continue;
            };
            if one.phase == TrtllmPhase::Context {
                one.position += one.chunk;
                one.chunk = 0;
                if one.remaining() > 0 {
                    continue;
                }
                one.phase = TrtllmPhase::Generation;
            }
            if overlap && one.will_complete() {
                one.phase = TrtllmPhase::ToComplete;
            }
        }
    }

    /// Tokens of a request that decodes in a step: its newest, and those that a draft proposes.
    fn step_tokens(&self) -> u32 {
        1 + proposed(self.settings.draft)
    }

    /// Tokens that a decoding step gives a request that had `made` tokens of output.
    fn yielded(&self, live: &TrtllmRequest, made: u32) -> u32 {
        let left = live.request.output.saturating_sub(made);
        tokens_of_step(self.settings.draft, live.request.id, made, left)
    }

    /// The requests of a batch that get tokens, and whether they decode.
    fn with_tokens(batch: &TrtllmBatch) -> impl Iterator<Item = (TrtllmSlot, bool)> {
        let prompts = batch.context[batch.last..].iter().map(|slot| (*slot, false));
        prompts.chain(batch.generation.iter().map(|slot| (*slot, true)))
    }

    /// The scheduler reads the tokens of a batch.
    fn read(&mut self, batch: &TrtllmBatch) {
        for (slot, decodes) in TrtllmEngine::with_tokens(batch) {
            let live = self.at(slot);
            if live.phase == TrtllmPhase::Complete {
                continue;
            }
            let made = live.known - live.request.prompt;
            let yielded = if decodes { self.yielded(live, made) } else { 1 };
            let refused = if decodes { self.step_tokens() - yielded } else { 0 };
            let live = self.at_mut(slot);
            live.known += yielded;
            // The places of proposed tokens that were not accepted are free again.
            live.held = live.held.map(|held| held - refused);
            if live.known >= live.request.prompt + live.request.output {
                live.phase = TrtllmPhase::Complete;
            }
        }
    }

    /// `_handle_canceled_requests`: those that clients have given up end as if they were complete.
    fn cancel(&mut self) {
        for slot in std::mem::take(&mut self.cancelled) {
            self.release(slot);
            self.at_mut(slot).phase = TrtllmPhase::Complete;
        }
    }

    /// Later prompts find the blocks of a computed batch; ended requests give back their places and their blocks.
    fn finish(&mut self, batch: &TrtllmBatch) {
        for &slot in &batch.context {
            self.store_prompt(slot);
            // One that waits may find these blocks.
            self.settled = false;
        }
        let live = &self.live;
        let ended =
            |slot: &TrtllmSlot| live[*slot].as_ref().is_some_and(|one| one.phase == TrtllmPhase::Complete);
        let gone: Vec<TrtllmSlot> = self.active.iter().copied().filter(ended).collect();
        if gone.is_empty() {
            return;
        }
        self.settled = false;
        self.active.retain(|slot| !ended(slot));
        for slot in gone {
            self.release(slot);
            self.live[slot] = None;
            // One that stops before its limit is in the newest batch too, which gives it no token.
            self.batch.generation.retain(|other| *other != slot);
            if let Some(place) = self.batch.context.iter().position(|other| *other == slot) {
                self.batch.context.remove(place);
                self.batch.last -= usize::from(place < self.batch.last);
            }
            self.vacant.push(slot);
        }
    }

    /// Whether no step is made up and none is under way, though requests are active: the server waits for good where a
    /// prompt under way comes after one that lacks memory. Here it goes on.
    fn hangs(&self) -> bool {
        let empty = |batch: &TrtllmBatch| batch.context.is_empty() && batch.generation.is_empty();
        empty(&self.batch)
            && self.unread.as_ref().is_none_or(empty)
            && self.paused.is_empty()
            && !self.active.is_empty()
    }

    /// Active requests of whose prompts a part is computed.
    fn started_prompts(&self) -> Vec<TrtllmSlot> {
        let started = |slot: &TrtllmSlot| {
            let live = self.at(*slot);
            live.phase == TrtllmPhase::Context && !live.is_first_chunk()
        };
        self.active.iter().copied().filter(started).collect()
    }

    /// Whether prompts wait for others, so that a step has many tokens.
    fn waits(&mut self) -> bool {
        let of = &self.settings;
        if of.wait_steps == 0 && of.wait_tokens_ratio == 0.0 {
            return false;
        }
        let new = |slot: &TrtllmSlot| {
            let live = self.at(*slot);
            let reused = if live.is_first_chunk() { live.estimate } else { 0 };
            u64::from(live.chunk.saturating_sub(reused).max(1))
        };
        let tokens = self.batch.generation.len() as u64 * u64::from(self.step_tokens())
            + self.batch.context.iter().map(new).sum::<u64>();
        let enough = of.wait_tokens_ratio * f64::from(of.token_budget);
        let waits = self.waited < of.wait_steps && (tokens as f64) < enough;
        self.waited = if waits { self.waited + 1 } else { 0 };
        waits
    }

    /// The batch of the step.
    fn describe(&mut self) {
        let mut load = std::mem::take(&mut self.load);
        load.prompts.clear();
        load.prompts.extend(self.batch.context.iter().map(|slot| {
            let live = self.at(*slot);
            PromptChunk { new_tokens: live.chunk, cached_tokens: live.position }
        }));
        load.decoding = self.batch.generation.len() as u32;
        let places = u64::from(self.step_tokens());
        let before = |slot: &TrtllmSlot| self.at(*slot).held.map_or(0, |held| u64::from(held) - places);
        load.kv_tokens = self.batch.generation.iter().map(before).sum();
        let more = |slot: &TrtllmSlot| self.yielded(self.at(*slot), self.at(*slot).made) - 1;
        load.accepted = self.batch.generation.iter().map(more).sum();
        let has_ended = |slot: &&TrtllmSlot| self.at(**slot).made >= self.at(**slot).request.output;
        load.ended = self.batch.generation.iter().filter(has_ended).count() as u32;
        self.load = load;
    }

    /// Whether the requests of a step stay those of the next ones, while none ends.
    fn is_steady(&self) -> bool {
        let pending = self.active.len() - self.batch.generation.len();
        let full = self.active.len() >= self.settings.max_requests as usize;
        let waits =
            pending == 0 || (self.blocked && self.settings.capacity == TrtllmCapacity::GuaranteedNoEvict);
        let decodes = |slot: &TrtllmSlot| self.at(*slot).phase == TrtllmPhase::Generation;
        self.batch.context.is_empty()
            && self.settled
            && self.cancelled.is_empty()
            && (full || self.queue.is_empty())
            && waits
            && self.batch.generation.iter().all(decodes)
    }
}

impl SchedulerEngine for TrtllmEngine {
    fn with_loads(&self, step_s: f64) -> f64 {
        step_s + self.arrival_s()
    }

    fn submit(&mut self, request: EngineRequest) {
        let limit = self.settings.output_limit.unwrap_or(request.output);
        self.submit_with_limit(request, limit);
    }

    /// One that waits leaves the queue; an active one ends when the tokens of a step are read.
    fn abort(&mut self, id: u64) -> Option<u32> {
        let is_it = |slot: &TrtllmSlot| self.at(*slot).request.id == id;
        if let Some(place) = self.queue.iter().position(is_it) {
            let slot = self.queue.remove(place)?;
            self.live[slot] = None;
            self.vacant.push(slot);
            return Some(0);
        }
        let slot = self.active.iter().copied().find(is_it)?;
        let live = self.at(slot);
        let tokens = (live.made < live.request.output).then_some(live.made)?;
        self.cancelled.push(slot);
        Some(tokens)
    }

    fn is_idle(&self) -> bool {
        self.active.is_empty() && self.queue.is_empty()
    }

    fn queued(&self) -> (usize, usize) {
        (self.started, self.active.len() + self.queue.len() - self.started)
    }

    fn cache(&self) -> u64 {
        u64::from(self.settings.blocks) * u64::from(self.settings.block_tokens)
    }

    fn cache_used(&self) -> u64 {
        u64::from(self.settings.blocks - self.pool.free()) * u64::from(self.settings.block_tokens)
    }

    fn found(&self, request: &EngineRequest, _: &mut BlockIdentities) -> u32 {
        if self.settings.block_reuse {
            self.found_by(&BlockTokens::whole(&request.runs, self.settings.block_tokens), request.prompt)
        } else {
            0
        }
    }

    fn can_ever_hold(&self, request: &EngineRequest) -> bool {
        let of = &self.settings;
        let limit = of.output_limit.filter(|_| of.capacity == TrtllmCapacity::GuaranteedNoEvict);
        let most = request.prompt.saturating_add(limit.unwrap_or(0).max(request.output));
        let most = most.saturating_add(places_beyond(of.draft));
        let fits = of.chunked_prefill || request.prompt <= of.token_budget;
        fits && most.div_ceil(of.block_tokens) <= of.blocks
    }

    fn choose(&mut self, note: Note<'_>) {
        self.arriving = 0;
        self.proceed();
        self.fetch();
        let fitting = self.fitting();
        self.settled = self.paused.is_empty();
        self.micro_batch(&fitting);
        if self.hangs() {
            let started = self.started_prompts();
            self.micro_batch(&started);
        }
        if !self.batch.context.is_empty() && !self.batch.generation.is_empty() && self.waits() {
            self.batch.context.clear();
            self.batch.last = 0;
        }
        for at in 0..self.paused.len() {
            self.release(self.paused[at]);
            note(self.at(self.paused[at]).request.id, EngineEvent::Preempted);
        }
        self.prepare(note);
        self.fresh = true;
        self.describe();
    }

    fn settle(&mut self) {
        if !self.settings.overlap {
            return;
        }
        let unread = self.unread.take().or_else(|| (!self.cancelled.is_empty()).then(TrtllmBatch::default));
        if let Some(batch) = &unread {
            self.read(batch);
            self.cancel();
        }
        self.proceed();
        if let Some(batch) = &unread {
            self.finish(batch);
        }
    }

    fn load(&self) -> &StepLoad {
        &self.load
    }

    #[cfg(feature = "internals")]
    fn batch(&self) -> Vec<(u64, u32)> {
        let prompts = self.batch.context.iter().map(|slot| {
            let live = self.at(*slot);
            (live.request.id, live.chunk)
        });
        prompts.chain(self.batch.generation.iter().map(|slot| (self.at(*slot).request.id, 1))).collect()
    }

    fn equal_steps(&self) -> u32 {
        // With a draft, each request gets its own number of tokens.
        if self.settings.draft.is_some() || !self.is_steady() {
            return 1;
        }
        let left = |slot: &TrtllmSlot| self.at(*slot).request.output.saturating_sub(self.at(*slot).made);
        let ends = self.batch.generation.iter().map(left).min().unwrap_or(1).max(1);
        let needed = |steps: u32| -> u64 {
            let one = |slot: &TrtllmSlot| {
                let live = self.at(*slot);
                let tokens = live.held.unwrap_or(0) + steps - 1;
                u64::from(tokens.div_ceil(self.settings.block_tokens)) - live.blocks.len() as u64
            };
            self.batch.generation.iter().map(one).sum()
        };
        let free = u64::from(self.pool.free());
        most_steps(ends, |steps| needed(steps) <= free)
    }

    fn complete(&mut self, steps: u32, note: Note<'_>) {
        self.proceed();
        let batch = std::mem::take(&mut self.batch);
        for _ in 1..steps {
            for &slot in &batch.generation {
                self.add_token(slot);
            }
        }
        let overlap = self.settings.overlap;
        for (slot, decodes) in TrtllmEngine::with_tokens(&batch) {
            let live = self.at(slot);
            if live.made == live.request.output {
                continue;
            }
            let yielded = if decodes { self.yielded(live, live.made) } else { 1 };
            let live = self.at_mut(slot);
            if steps > 1 {
                live.known += steps - 1;
                if overlap && live.will_complete() {
                    live.phase = TrtllmPhase::ToComplete;
                }
            }
            let first = live.made == 0;
            live.made += if steps > 1 { steps } else { yielded };
            if first {
                note(live.request.id, EngineEvent::FirstToken);
            }
            if live.made == live.request.output {
                note(live.request.id, EngineEvent::Finished);
            }
        }
        if overlap {
            self.unread = Some(batch);
        } else {
            self.read(&batch);
            self.cancel();
            self.finish(&batch);
        }
    }

    fn lacking(&self, hear: &mut dyn FnMut(u64, u32)) {
        let live = self.live.iter().flatten();
        live.for_each(|one| hear(one.request.id, one.request.output.saturating_sub(one.made)));
    }
}
