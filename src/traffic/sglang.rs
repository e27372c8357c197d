//! The scheduler of one attention rank as SGLang's: prompts go first, in steps of their own, and what is decoding waits
//! for them. How much memory a request will need is estimated by a ratio; where that was too little, requests are
//! retracted.
//!
//! Follows `sglang/srt/managers/scheduler.py`, `schedule_policy.py` and `schedule_batch.py`, for full attention on one
//! pipeline stage. The memory is counted in tokens: slots themselves do not matter.

mod loading;
mod prefill;

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache_tier::CacheTiers;
use super::content::BlockIdentities;
use super::draft::{DraftSettings, places_beyond, proposed, tokens_of_step};
use super::engine::{EngineEvent, EngineRequest, Note, RankTurn, SchedulerEngine, most_steps, placed};
use super::radix_tree::{NodeId, ROOT, RadixTree};
use super::step_load::{PromptChunk, StepLoad};
use loading::SglangLoad;

/// In which order waiting requests are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SglangPolicy {
    /// As they arrived.
    Fcfs,
    /// Those with the longest cached prefix first.
    Lpm,
}

/// The settings of SGLang's scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SglangSettings {
    /// New tokens of prompts of a step, at which no further prompt joins it: `max_prefill_tokens`.
    pub prefill_tokens: u32,
    /// New tokens of prompts of a step above which a prompt is cut: `chunked_prefill_size`; none for whole prompts.
    pub chunk_tokens: Option<u32>,
    /// Requests that run at the same time: `max_running_requests`.
    pub max_requests: u32,
    /// Tokens of the cache: `max_total_tokens`.
    pub cache_tokens: u32,
    /// Tokens of a page of the cache.
    pub page_tokens: u32,
    /// Tokens of a request, prompt and output.
    pub context_tokens: u32,
    /// The order of admission.
    pub policy: SglangPolicy,
    /// How much of the output that running requests may have is reserved: `schedule_conservativeness`, 1 for 70 % at
    /// first.
    pub conservativeness: f64,
    /// Whether later prompts use the cached tokens of earlier ones.
    pub prefix_caching: bool,
    /// Whether a step with prompts also gives the decoding requests their next token: `enable_mixed_chunk`.
    pub mixed_chunk: bool,
    /// Whether a step is made up while the one before it runs, without its tokens.
    pub overlap: bool,
    /// The most output that clients allow, `max_new_tokens`, where a request has less; none where they allow just what
    /// it has.
    pub output_limit: Option<u32>,
    /// Whether outputs have exactly the length that the client allows, and the scheduler counts on it: `ignore_eos`.
    pub exact_output: bool,
    /// Prompts of a step: `prefill_max_requests`; none for any number.
    pub prefill_requests: Option<u32>,
    /// Free places for requests below which none is admitted: `min_free_slots_delay`; none for no such limit.
    pub min_free_slots: Option<u32>,
    /// Steps without prompts after one with them: `prefill_decode_interval`.
    pub decodes_after_prefill: u32,
    /// Running requests below which these are left out: `prefill_decode_interval_min_bs`.
    pub decodes_min_requests: u32,
    /// Passes after which an attention rank with prompts waits no more for ranks without, `prefill_delayer_max_delay_passes`
    /// with `enable_prefill_delayer`; none where it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_passes: Option<u32>,
    /// Decode steps from one look at new requests to the next: `scheduler_recv_interval`.
    #[serde(default = "every_step")]
    pub receive_interval: u32,
    /// The draft of speculative decoding, if any.
    pub draft: Option<DraftSettings>,
}

fn every_step() -> u32 {
    1
}

/// The part of a possible output that is reserved at first, with a conservativeness of 1.
const INITIAL_RATIO: f64 = 0.7;
/// The ratio's minimum, as a part of its initial value.
const LEAST: f64 = 0.14;
/// Decoding steps from the initial value to the minimum.
const DECAY_STEPS: f64 = 600.0;
/// Tokens for each request that are to be free after a retraction.
const RETRACT_TOKENS: u32 = 20;

struct SglangRequest {
    request: EngineRequest,
    /// Tokens of output that it may have.
    limit: u32,
    /// Tokens of output that it has at its end.
    output: u32,
    /// Tokens of output that the scheduler knows.
    outputs: u32,
    /// Tokens of output that its newest step gives it.
    yields: u32,
    /// Tokens whose keys and values were there before its step.
    prefix: u32,
    /// Tokens with those that its step with a prompt computes.
    end: u32,
    /// Tokens that the tree holds for it.
    protected: u32,
    /// Tokens that have a place in the memory.
    held: u32,
    node: NodeId,
    /// Whether it has a row in the table of requests.
    row: bool,
    ended: bool,
    retracted: bool,
    /// Whether it was in no step, since it arrived or was retracted.
    fresh: bool,
    /// Steps of its prompt to come whose result is no token.
    middle: u32,
    /// The last step that it is in.
    round: u64,
    /// Its part of tiers of the cache.
    load: SglangLoad,
}

impl SglangRequest {
    /// Tokens whose values are known: prompt and output so far.
    fn known(&self) -> u32 {
        self.request.prompt + self.outputs
    }
}

/// A request in the slab of the engine.
type SglangSlot = usize;

/// Requests of a step: first those with prompts and their new tokens, then those that are decoding and the tokens that
/// they get.
struct SglangBatch {
    scheduled: Vec<(SglangSlot, u32)>,
    prompts: usize,
    /// The request of which a part of the prompt remains after it.
    chunk: Option<SglangSlot>,
}

/// The requests of one attention rank.
pub struct SglangEngine {
    settings: SglangSettings,
    tree: RadixTree,
    /// Tokens of the memory that are free: whole pages.
    free: u32,
    live: Vec<Option<SglangRequest>>,
    vacant: Vec<SglangSlot>,
    /// Requests that have ended, and those that ended one step earlier: no batch has these any more.
    ended: Vec<SglangSlot>,
    gone: Vec<SglangSlot>,
    /// Requests that have not ended.
    unfinished: usize,
    waiting: Vec<SglangSlot>,
    running: Vec<SglangSlot>,
    /// Whether waiting requests are not looked at until a running one ends.
    full: bool,
    /// The request whose prompt is computed in parts.
    chunk: Option<SglangSlot>,
    last: Option<SglangBatch>,
    /// The batch whose result is to be processed, of overlapping steps.
    unread: Option<SglangBatch>,
    rows: u32,
    /// The part of the output that running requests may have that they are expected to have.
    ratio: f64,
    /// Steps to come without prompts.
    deferred: u32,
    /// Passes that looked at the prefixes of the waiting requests.
    passes: u64,
    round: u64,
    turn: RankTurn,
    load: StepLoad,
    /// Tiers of the cache behind that of the device, if any, and tokens that come from there in the step.
    tiers: Option<CacheTiers>,
    arriving: u32,
}

fn down(tokens: u32, page: u32) -> u32 {
    tokens - tokens % page
}

fn up(tokens: u32, page: u32) -> u32 {
    tokens.div_ceil(page) * page
}

impl SglangEngine {
    /// An engine without requests.
    pub fn new(mut settings: SglangSettings) -> SglangEngine {
        settings.cache_tokens = down(settings.cache_tokens, settings.page_tokens);
        settings.max_requests = settings.max_requests.min(settings.cache_tokens / 2);
        let mut engine = SglangEngine {
            tree: RadixTree::new(settings.page_tokens),
            free: settings.cache_tokens,
            live: vec![],
            vacant: vec![],
            ended: vec![],
            gone: vec![],
            unfinished: 0,
            waiting: vec![],
            running: vec![],
            full: false,
            chunk: None,
            last: None,
            unread: None,
            rows: settings.max_requests,
            ratio: 0.0,
            deferred: 0,
            passes: 0,
            round: 0,
            turn: RankTurn::default(),
            load: StepLoad::default(),
            tiers: None,
            arriving: 0,
            settings,
        };
        engine.ratio = engine.initial_ratio();
        engine
    }

    /// The part of the output that running requests may have for which memory is reserved.
    #[cfg(feature = "internals")]
    pub fn new_token_ratio(&self) -> f64 {
        self.ratio
    }

    /// Tokens of the cache in use that are only kept for later requests.
    pub fn evictable(&self) -> u64 {
        u64::from(self.tree.evictable())
    }

    /// The most output that a request can have of which the client allows `limit`.
    pub fn output_limit(&self, prompt: u32, limit: u32) -> u32 {
        let of = &self.settings;
        let longest = of.context_tokens.min(of.cache_tokens).saturating_sub(1);
        let beyond = places_beyond(of.draft) + of.page_tokens + 1;
        let memory = of.cache_tokens.saturating_sub(up(prompt, of.page_tokens) + beyond);
        limit.min(longest.saturating_sub(prompt + 1)).min(memory)
    }

    /// A request arrives whose client allows `limit` tokens of output.
    pub fn submit_with_limit(&mut self, request: EngineRequest, limit: u32) {
        let limit = if self.settings.exact_output { limit.min(request.output) } else { limit };
        let limit = self.output_limit(request.prompt, limit);
        let live = SglangRequest {
            output: request.output.min(limit).max(1),
            limit,
            request,
            outputs: 0,
            yields: 1,
            prefix: 0,
            end: 0,
            protected: 0,
            held: 0,
            node: ROOT,
            row: false,
            ended: false,
            retracted: false,
            fresh: true,
            middle: 0,
            round: 0,
            load: SglangLoad::default(),
        };
        self.unfinished += 1;
        let slot = placed(&mut self.live, &mut self.vacant, live);
        self.waiting.push(slot);
        self.prefetch(slot);
    }

    fn at(&self, slot: SglangSlot) -> &SglangRequest {
        self.live[slot].as_ref().expect("a slot in a queue is taken")
    }

    fn at_mut(&mut self, slot: SglangSlot) -> &mut SglangRequest {
        self.live[slot].as_mut().expect("a slot in a queue is taken")
    }

    fn initial_ratio(&self) -> f64 {
        (INITIAL_RATIO * self.settings.conservativeness).min(1.0)
    }

    fn decay(&mut self) {
        let first = self.initial_ratio();
        let least = (first * LEAST).min(1.0);
        self.ratio = (self.ratio - (first - least) / DECAY_STEPS).max(least);
    }

    /// Evicts what was not used for longest, until `tokens` tokens are free or all that is cached is in use.
    fn evict(&mut self, tokens: u32) {
        while self.free < tokens {
            let Some(evicted) = self.tree.evict() else { return };
            self.free += evicted;
        }
    }

    fn take(&mut self, tokens: u32) {
        debug_assert!(tokens <= self.free, "admission leaves memory for what it admits");
        self.free = self.free.saturating_sub(tokens);
    }

    /// The cached tokens that a request begins with, of its first `tokens`, and their node.
    fn find(&mut self, slot: SglangSlot, tokens: u32) -> (u32, NodeId) {
        match &self.live[slot] {
            Some(live) if self.settings.prefix_caching => self.tree.find(&live.request.runs, tokens),
            _ => (0, ROOT),
        }
    }

    /// Puts the whole pages of the first `tokens` tokens of a request into the tree.
    fn checkpoint(&mut self, slot: SglangSlot, tokens: u32) {
        let Some(live) = self.live[slot].as_mut().filter(|_| self.settings.prefix_caching) else { return };
        let page = self.settings.page_tokens;
        let (key, prompt) = (down(tokens, page), down(live.request.prompt, page));
        let (found, node) = self.tree.insert(&live.request.runs, key);
        // Another request has put the same pages there meanwhile.
        self.free += found.saturating_sub(live.protected);
        if 0 < prompt && prompt < key {
            self.tree.insert(&live.request.runs, prompt);
        }
        self.tree.unlock(live.node);
        self.tree.lock(node);
        (live.node, live.protected) = (node, key);
        self.write_through(slot, key);
    }

    /// Takes the memory from a request, of which the tree keeps what it has computed if `keep`.
    fn release(&mut self, slot: SglangSlot, keep: bool) {
        if keep {
            let live = self.at(slot);
            self.checkpoint(slot, live.held.min(live.known()));
        }
        let page = self.settings.page_tokens;
        let Some(live) = self.live[slot].as_mut() else { return };
        self.free += up(live.held, page) - live.protected;
        self.tree.unlock(live.node);
        (live.node, live.held, live.protected, live.row) = (ROOT, 0, 0, false);
        self.rows += 1;
    }

    /// Drops the running requests that have ended. Returns whether there were any.
    fn drop_ended(&mut self) -> bool {
        let before = self.running.len();
        let live = &self.live;
        self.running.retain(|slot| live[*slot].as_ref().is_some_and(|live| !live.ended));
        self.running.len() < before
    }

    /// Drops the running requests of which the result of the step before will be the last token that they may have.
    /// Returns whether there were any.
    fn drop_ending(&mut self) -> bool {
        let before = self.running.len();
        let (live, round) = (&self.live, self.round - 1);
        if self.settings.overlap {
            self.running.retain(|slot| {
                let one = live[*slot].as_ref();
                one.is_some_and(|one| one.round != round || one.outputs + 1 < one.limit)
            });
        }
        self.running.len() < before
    }

    /// Joins the requests whose prompts are complete to those that run, and drops what has ended.
    fn merge(&mut self, before: Option<&SglangBatch>) {
        if let Some(chunk) = self.chunk {
            let live = self.at(chunk);
            let (prefix, end) = (live.prefix, live.end);
            if end > prefix {
                self.checkpoint(chunk, end);
                self.at_mut(chunk).prefix = end;
            }
        }
        if let Some(batch) = before.filter(|batch| batch.prompts > 0) {
            let stays = |slot: &SglangSlot| {
                Some(*slot) != self.chunk && Some(*slot) != batch.chunk && !self.at(*slot).ended
            };
            let joining: Vec<SglangSlot> = batch.scheduled.iter().map(|one| one.0).filter(stays).collect();
            // A batch that becomes the running one brings its own mark.
            if joining.len() < batch.scheduled.len() || (self.running.is_empty() && !joining.is_empty()) {
                self.full = false;
            }
            self.running.extend(joining);
        }
        if self.drop_ended() {
            self.full = false;
        }
    }

    /// The next batch: prompts, if any can be admitted, else what is decoding.
    fn next(&mut self, before: Option<&SglangBatch>, note: Note<'_>) -> Option<SglangBatch> {
        self.merge(before);
        self.join_received(note);
        if self.running.len() < self.settings.decodes_min_requests as usize {
            self.deferred = 0;
        }
        // An idle scheduler looks at new requests at once.
        if self.settings.receive_interval > 1 && self.running.is_empty() {
            self.deferred = 0;
        }
        let mut batch = None;
        if self.deferred > 0 {
            self.deferred -= 1;
        } else {
            batch = self.prefill(note);
            // A step with prompts is followed by a look at new requests.
            self.deferred = self.settings.receive_interval.max(1) - 1;
        }
        if batch.is_some() {
            self.deferred = self.settings.decodes_after_prefill;
        } else if !self.running.is_empty() && self.turn.decodes {
            batch = self.decode(note);
        }
        for &(slot, _) in batch.iter().flat_map(|batch| &batch.scheduled) {
            let round = self.round;
            self.at_mut(slot).round = round;
        }
        batch
    }

    /// Places that a request needs in a step: of its token, and of those that a draft proposes.
    fn step_tokens(&self) -> u32 {
        1 + proposed(self.settings.draft)
    }

    /// Memory that a request lacks for its next step.
    fn step_memory(&self, slot: SglangSlot) -> u32 {
        let (page, held) = (self.settings.page_tokens, self.at(slot).held);
        up(held + self.step_tokens(), page) - up(held, page)
    }

    /// Whether there is memory for the next token of these requests.
    fn next_token_fits(&mut self, slots: &[SglangSlot]) -> bool {
        let tokens = slots.iter().map(|slot| self.step_memory(*slot)).sum();
        self.evict(tokens);
        self.free >= tokens
    }

    /// Gives the running requests a place for the tokens of a step each.
    fn grow(&mut self) {
        let (page, places) = (self.settings.page_tokens, self.step_tokens());
        // The pages of a step each, also where none is needed.
        self.evict(self.running.len() as u32 * up(places, page));
        let slots = std::mem::take(&mut self.running);
        for &slot in &slots {
            let lacking = self.step_memory(slot);
            self.take(lacking);
            self.at_mut(slot).held += places;
        }
        self.running = slots;
    }

    /// The tokens that a decoding step gives a request.
    fn yielded(&mut self, slot: SglangSlot) -> u32 {
        let (draft, round, overlap) = (self.settings.draft, self.round, self.settings.overlap);
        let live = self.at_mut(slot);
        // The result of the step before is not read yet.
        let unread = if overlap && live.round + 1 == round { live.yields } else { 0 };
        let made = live.outputs + unread;
        let left = live.output.saturating_sub(made);
        live.yields = if left > 0 { tokens_of_step(draft, live.request.id, made, left) } else { 0 };
        live.yields
    }

    /// A step in which each running request gets a token.
    fn decode(&mut self, note: Note<'_>) -> Option<SglangBatch> {
        let before = self.running.len();
        let ending = self.drop_ending();
        let slots = std::mem::take(&mut self.running);
        let fits = self.next_token_fits(&slots);
        self.running = slots;
        if self.running.is_empty() || (!fits && ending) {
            self.full = false;
            return None;
        }
        if fits {
            self.decay();
        } else if !self.retract(note) {
            return None;
        }
        if self.running.len() < before {
            self.full = false;
        }
        self.grow();
        let slots = self.running.clone();
        let scheduled = slots.into_iter().map(|slot| (slot, self.yielded(slot))).collect();
        Some(SglangBatch { scheduled, prompts: 0, chunk: None })
    }

    /// Takes their memory from the requests with the shortest outputs until the others' next tokens fit; false where
    /// one alone does not, next to a prompt that is computed in parts: it waits for that.
    fn retract(&mut self, note: Note<'_>) -> bool {
        let mut kept = std::mem::take(&mut self.running);
        kept.sort_by_key(|slot| {
            let live = self.at(*slot);
            (Reverse(live.outputs), live.request.prompt)
        });
        let mut gone = vec![];
        while kept.len() > 1 && (gone.is_empty() || !self.next_token_fits(&kept)) {
            let Some(victim) = kept.pop() else { break };
            self.release(victim, false);
            self.evict(kept.len() as u32 * RETRACT_TOKENS);
            let live = self.at_mut(victim);
            (live.prefix, live.end, live.middle) = (0, 0, 0);
            (live.retracted, live.fresh) = (true, true);
            // The cache that another worker sent is lost too.
            live.request.received = 0;
            note(live.request.id, EngineEvent::Preempted);
            gone.push(victim);
        }
        self.waiting.extend(gone);
        let fits = self.next_token_fits(&kept);
        let sum = |of: fn(&SglangRequest) -> u32| {
            kept.iter().map(|slot| u64::from(of(self.at(*slot)))).sum::<u64>()
        };
        let expected = sum(|live| live.outputs + RETRACT_TOKENS);
        self.ratio = (expected as f64 / (sum(|live| live.limit) + 1) as f64).min(1.0);
        self.running = kept;
        fits
    }

    /// Whether the result of a batch gives a request a token.
    fn gets_token(live: &SglangRequest) -> bool {
        !live.ended && !live.retracted && live.middle == 0
    }

    /// The result that a batch will have. A request that was retracted meanwhile loses its token.
    fn announce(&self, batch: &SglangBatch, note: Note<'_>) {
        let each = batch.scheduled.iter().enumerate();
        let each = each.map(|(place, one)| (self.at(one.0), if place < batch.prompts { 1 } else { one.1 }));
        for (live, yields) in each.filter(|(live, _)| SglangEngine::gets_token(live)) {
            if live.outputs == 0 && live.request.received == 0 {
                note(live.request.id, EngineEvent::FirstToken);
            }
            if live.outputs + yields >= live.output {
                note(live.request.id, EngineEvent::Finished);
            }
        }
    }

    /// Gives the requests of a batch their tokens.
    fn process(&mut self, batch: &SglangBatch) {
        let (places, page) = (self.step_tokens(), self.settings.page_tokens);
        for (place, &(slot, new)) in batch.scheduled.iter().enumerate() {
            let live = self.at_mut(slot);
            if !SglangEngine::gets_token(live) {
                if !live.retracted {
                    live.middle = live.middle.saturating_sub(1);
                }
                continue;
            }
            if place < batch.prompts {
                live.outputs += 1;
            } else {
                live.outputs += new;
                // The places of proposed tokens that were not accepted are free again.
                let held = live.held - (places - new).min(places - 1);
                let freed = up(live.held, page) - up(held, page);
                live.held = held;
                self.free += freed;
            }
            let live = self.at_mut(slot);
            if live.outputs >= live.output {
                live.ended = true;
                self.release(slot, true);
                self.unfinished -= 1;
                self.ended.push(slot);
            } else if place < batch.prompts {
                let end = live.end;
                live.prefix = end;
                self.checkpoint(slot, end);
            }
        }
    }

    /// Decodes `steps` more times what is decoding.
    fn repeat(&mut self, steps: u32) {
        let page = self.settings.page_tokens;
        // Requests by the number of those steps, in turn, that take a page for them.
        let mut taking = vec![0; page as usize];
        for slot in &self.running {
            taking[((page - self.at(*slot).held % page) % page) as usize] += 1;
        }
        for step in 0..steps {
            let needed = taking[(step % page) as usize] * page;
            self.evict(needed);
            self.decay();
            self.evict(self.running.len() as u32 * page);
            self.take(needed);
        }
        let slots = std::mem::take(&mut self.running);
        for &slot in &slots {
            let live = self.at_mut(slot);
            live.held += steps;
            live.outputs += steps;
        }
        self.running = slots;
        let few = self.running.len() < self.settings.decodes_min_requests as usize;
        let interval = self.settings.receive_interval.max(1);
        self.deferred = match steps.checked_sub(self.deferred + 1) {
            _ if few => interval - 1,
            None => self.deferred - steps,
            Some(later) => interval - 1 - later % interval,
        };
    }

    /// The load of a batch.
    fn describe(&mut self, batch: Option<&SglangBatch>) {
        let places = self.step_tokens();
        let mut load = std::mem::take(&mut self.load);
        load.prompts.clear();
        (load.decoding, load.ended, load.accepted, load.kv_tokens) = (0, 0, 0, 0);
        for (place, &(slot, new)) in batch.iter().flat_map(|batch| batch.scheduled.iter().enumerate()) {
            let live = self.at(slot);
            if batch.is_some_and(|batch| place < batch.prompts) {
                load.prompts.push(PromptChunk { new_tokens: new, cached_tokens: live.prefix });
            } else {
                load.decoding += 1;
                load.ended += u32::from(new == 0);
                load.accepted += new.saturating_sub(1);
                load.kv_tokens += u64::from(live.held - places);
            }
        }
        self.load = load;
    }
}

impl SchedulerEngine for SglangEngine {
    fn set_time(&mut self, now_s: f64, heard_s: f64) {
        if let Some(tiers) = &mut self.tiers {
            tiers.set_time(now_s, heard_s);
        }
    }

    fn next_load_s(&self) -> Option<f64> {
        self.next_end_s()
    }

    fn with_loads(&self, step_s: f64) -> f64 {
        self.overlapped(step_s)
    }

    fn is_idle(&self) -> bool {
        self.unfinished == 0 && (self.last.is_none() || !self.settings.overlap)
    }

    fn cache(&self) -> u64 {
        u64::from(self.settings.cache_tokens)
    }

    fn cache_used(&self) -> u64 {
        u64::from(self.settings.cache_tokens - self.free) - self.evictable()
    }

    fn queued(&self) -> (usize, usize) {
        (self.unfinished - self.waiting.len(), self.waiting.len())
    }

    fn found(&self, request: &EngineRequest, _: &mut BlockIdentities) -> u32 {
        if self.settings.prefix_caching {
            self.tree.common_beginning(&request.runs, request.prompt - 1)
        } else {
            0
        }
    }

    fn can_ever_hold(&self, request: &EngineRequest) -> bool {
        let longest = self.settings.context_tokens.min(self.settings.cache_tokens);
        request.prompt + 6 < longest && self.output_limit(request.prompt, request.output) == request.output
    }

    fn load(&self) -> &StepLoad {
        &self.load
    }

    #[cfg(feature = "internals")]
    fn batch(&self) -> Vec<(u64, u32)> {
        let scheduled = self.last.iter().flat_map(|batch| &batch.scheduled);
        // One that has ended is in the batch with its newest token.
        scheduled.map(|&(slot, new)| (self.at(slot).request.id, new.max(1))).collect()
    }

    fn submit(&mut self, request: EngineRequest) {
        let limit = self.settings.output_limit.map_or(request.output, |limit| limit.max(request.output));
        self.submit_with_limit(request, limit);
    }

    /// `abort_request`: one that waits leaves the queue; one that runs ends with its next token.
    fn abort(&mut self, id: u64) -> Option<u32> {
        let is_it =
            |one: &Option<SglangRequest>| one.as_ref().is_some_and(|one| one.request.id == id && !one.ended);
        let slot = self.live.iter().position(is_it)?;
        let tokens = self.at(slot).outputs;
        if let Some(place) = self.waiting.iter().position(|other| *other == slot) {
            self.waiting.remove(place);
            self.unfinished -= 1;
            self.at_mut(slot).ended = true;
            self.ended.push(slot);
        } else {
            self.at_mut(slot).output = tokens + 1;
        }
        Some(tokens)
    }

    fn has_waiting_prompt(&self) -> bool {
        !self.waiting.is_empty() && self.places(0) > 0 && (!self.full || self.running.is_empty())
    }

    fn has_begun_prompt(&self) -> bool {
        self.chunk.is_some()
    }

    fn restrict(&mut self, turn: RankTurn) {
        self.turn = turn;
    }

    fn choose(&mut self, note: Note<'_>) {
        self.round += 1;
        self.arriving = 0;
        let before = self.last.take();
        let batch = self.next(before.as_ref(), note);
        self.describe(batch.as_ref());
        self.last = batch;
        if let Some(before) = before.filter(|_| self.settings.overlap) {
            self.announce(&before, note);
            self.unread = Some(before);
        }
    }

    fn settle(&mut self) {
        for slot in std::mem::replace(&mut self.gone, std::mem::take(&mut self.ended)) {
            self.live[slot] = None;
            self.vacant.push(slot);
        }
        match self.unread.take() {
            Some(batch) => self.process(&batch),
            None if self.last.is_none() && self.unfinished == 0 => self.ratio = self.initial_ratio(),
            None => {}
        }
    }

    fn equal_steps(&self) -> u32 {
        // With a draft, each request gets its own number of tokens.
        if self.settings.draft.is_some() {
            return 1;
        }
        let admits = self.chunk.is_some() || (!self.waiting.is_empty() && !self.full);
        let Some(batch) = self.last.as_ref().filter(|batch| batch.prompts == 0 && !admits) else { return 1 };
        let slots = || batch.scheduled.iter().map(|one| self.at(one.0));
        let ends = slots().map(|live| live.output - live.outputs).min().unwrap_or(1).max(1);
        if slots().any(|live| live.ended) {
            return 1;
        }
        let (page, most) = (self.settings.page_tokens, u64::from(self.free) + self.evictable());
        // No more than these, wherever in their pages the requests are.
        let at_most = |steps: u32| slots().len() as u64 * u64::from((steps - 1).div_ceil(page) + 1);
        if at_most(ends) * u64::from(page) <= most {
            return ends;
        }
        let needed = |steps: u32| -> u64 {
            slots().map(|live| u64::from(up(live.held + steps - 1, page) - up(live.held, page))).sum()
        };
        most_steps(ends, |steps| needed(steps) <= most)
    }

    fn complete(&mut self, steps: u32, note: Note<'_>) {
        if steps > 1 {
            self.repeat(steps - 1);
        }
        // With overlap, the scheduler may retract a request before it reads its token.
        if let Some(batch) = self.last.take() {
            if !self.settings.overlap {
                self.announce(&batch, note);
                self.process(&batch);
            }
            self.last = Some(batch);
        }
    }

    fn go_round(&mut self, rounds: u32) {
        // The first forgets what has ended, the second is that of an idle scheduler.
        (0..rounds.min(2)).for_each(|_| self.settle());
    }

    fn lacking(&self, hear: &mut dyn FnMut(u64, u32)) {
        let live = self.live.iter().flatten();
        live.for_each(|one| hear(one.request.id, one.output.saturating_sub(one.outputs)));
    }
}

#[cfg(test)]
mod tests;
