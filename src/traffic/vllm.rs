//! The scheduler of one attention rank, with its queues and its cache, as vLLM's: prompts join the steps of the requests
//! that are decoding, within a budget of tokens.
//!
//! Follows `vllm/v1/core/sched/scheduler.py` and `vllm/v1/core/kv_cache_manager.py`: every step first serves the running
//! requests in their order, each with the tokens that it lacks, and preempts the last of them where blocks are short; then
//! it admits waiting requests while tokens, slots and blocks suffice.

mod loading;
mod steady;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache_tier::CacheTiers;
use super::content::{BlockChain, BlockIdentities};
use super::draft::{DraftSettings, places_beyond, proposed, tokens_of_step};
use super::engine::{EngineEvent, EngineRequest, Note, SchedulerEngine, most_steps, placed};
use super::prefix_pool::{GivenBack, NamedId, PrefixPool};
use super::step_load::{PromptChunk, StepLoad};
use loading::{VllmLoad, VllmStart};
use steady::SteadyDecoders;

/// The settings of vLLM's scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VllmSettings {
    /// New tokens of a step.
    pub token_budget: u32,
    /// Requests that run at the same time.
    pub max_sequences: u32,
    /// Blocks of the cache.
    pub blocks: u32,
    /// Tokens of a block.
    pub block_tokens: u32,
    /// Whether a step may compute a part of a prompt.
    pub chunked_prefill: bool,
    /// Tokens of a prompt above which a step computes no more of it than this; none for no such limit.
    pub long_prompt_threshold: Option<u32>,
    /// Whether later prompts use the cached tokens of earlier ones.
    pub prefix_caching: bool,
    /// Whether a request is admitted only where all its known tokens fit, those of later steps included.
    pub whole_prompt_fits: bool,
    /// Blocks that stay free when a request is admitted next to others.
    pub reserved_blocks: u32,
    /// Whether a step is made up while the one before it runs: what ends in that one keeps its slot and its blocks.
    pub asynchronous: bool,
    /// The draft of speculative decoding, if any.
    pub draft: Option<DraftSettings>,
    /// Where requests decode, only every such step computes prompts, on all ranks the same; none for every step. Not where
    /// prompts wait that the last such step could not take (`prefill_schedule_interval`, of attention data parallelism).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_interval: Option<u32>,
}

struct VllmRequest {
    request: EngineRequest,
    /// Tokens in the cache.
    computed: u32,
    generated: u32,
    /// Its blocks that prompts find, in which its tokens begin, and the number of all of them.
    named: Vec<NamedId>,
    blocks: u32,
    /// Tokens that these hold.
    held: u32,
    /// Its whole blocks that keep their tokens, and how many tokens make the next one whole.
    kept: u32,
    whole_at: u32,
    /// Identities of its whole blocks so far, and their number: those that other requests may begin with.
    chain: BlockChain,
    chained: u32,
    /// Its last token was computed, and the scheduler does not know it.
    ended: bool,
    /// Its newest tokens that were computed, and the time of the engine at which the scheduler does not know them.
    newest: u32,
    newest_at: u64,
    /// Blocks that come from tiers of the cache, while it waits.
    load: Option<VllmLoad>,
    /// Blocks that tiers got.
    written: u32,
    /// Its number in the order of the running requests.
    order: u64,
    /// The tick since which it is steady, if it is.
    since: Option<u64>,
}

impl VllmRequest {
    /// Tokens whose values are known: prompt and output so far.
    fn known(&self) -> u32 {
        self.request.prompt + self.generated
    }

    /// Whether its next token is the next of its output, and needs no block; nor does it make one whole.
    fn is_within_blocks(&self) -> bool {
        let known = self.known();
        self.decodes() && !self.ended && known <= self.held && known < self.whole_at
    }

    /// Its blocks so far are whole, and later prompts find them, where any does.
    fn hold_chained(&mut self, size: u32, keeps: bool) {
        self.kept = self.chained;
        self.held = self.chained.saturating_mul(size);
        self.whole_at = if keeps { self.held.saturating_add(size) } else { u32::MAX };
    }

    /// The blocks that it gives back.
    fn given_back(&self) -> GivenBack<'_> {
        let own = self.kept - self.chained;
        GivenBack { named: &self.named, own, bare: self.blocks - self.named.len() as u32 - own }
    }

    /// Whether its next token is the next of its output.
    fn decodes(&self) -> bool {
        self.generated > 0 && self.computed + 1 == self.known()
    }
}

/// A request in the slab of the engine.
type VllmSlot = usize;

/// The requests of one attention rank.
pub struct VllmEngine {
    settings: VllmSettings,
    pool: PrefixPool,
    live: Vec<Option<VllmRequest>>,
    vacant: Vec<VllmSlot>,
    waiting: VecDeque<VllmSlot>,
    running: Vec<VllmSlot>,
    /// Those of them that decode, each with a token in every step.
    steady: SteadyDecoders,
    /// Those that are neither steady nor ended, in order.
    others: Vec<VllmSlot>,
    /// Requests that were admitted so far, again after preemptions.
    admitted: u64,
    /// The step that was scheduled, without the steady ones: requests with their new tokens.
    scheduled: Vec<(VllmSlot, u32)>,
    /// Its batch.
    load: StepLoad,
    /// Steps until the first of the requests that decode in it has ended.
    ends: u32,
    /// Requests whose last token was computed, and the scheduler does not know it.
    ending: Vec<VllmSlot>,
    /// How often the scheduler has heard of a step.
    heard: u64,
    /// Whether the step after it admits no waiting request, as long as nothing changes.
    settled: bool,
    /// Whether there were several requests when the step was scheduled.
    several: bool,
    /// Steps so far.
    steps: u32,
    /// Whether the last step that could take prompts left some waiting.
    crowded: bool,
    /// Whether the step computes no prompt.
    defers: bool,
    /// Tiers of the cache behind that of the device, if any.
    tiers: Option<CacheTiers>,
}

impl VllmEngine {
    /// An engine without requests.
    pub fn new(settings: VllmSettings) -> VllmEngine {
        VllmEngine {
            pool: PrefixPool::new(settings.blocks),
            steady: SteadyDecoders::new(settings.block_tokens),
            others: vec![],
            admitted: 0,
            settings,
            live: vec![],
            vacant: vec![],
            waiting: VecDeque::new(),
            running: vec![],
            scheduled: vec![],
            load: StepLoad::default(),
            ends: u32::MAX,
            ending: vec![],
            heard: 0,
            settled: true,
            several: false,
            steps: 0,
            crowded: false,
            defers: false,
            tiers: None,
        }
    }

    fn at(&self, slot: VllmSlot) -> &VllmRequest {
        self.live[slot].as_ref().expect("a slot in a queue is taken")
    }

    fn at_mut(&mut self, slot: VllmSlot) -> &mut VllmRequest {
        self.live[slot].as_mut().expect("a slot in a queue is taken")
    }

    /// New tokens of a request that lacks `lacking`, within `budget`. A request without others is not cut.
    fn chunk(&self, lacking: u32, budget: u32) -> u32 {
        let most = self.settings.long_prompt_threshold.filter(|_| self.several);
        most.map_or(lacking, |most| lacking.min(most)).min(budget)
    }

    /// Serves running requests in order. Returns the budget that is left, and whether a request was preempted.
    fn schedule_running(&mut self, note: Note<'_>) -> (u32, bool) {
        let (mut budget, mut preempted, mut place) = (self.schedule_steady(), false, 0);
        let has_draft = self.settings.draft.is_some();
        while place < self.others.len() && budget > 0 {
            let slot = self.others[place];
            let live = self.at(slot);
            if live.is_within_blocks() && !has_draft {
                // Most requests of most steps.
                self.schedule(slot, 1);
                (budget, place) = (budget - 1, place + 1);
                continue;
            }
            if self.defers && !live.decodes() {
                place += 1;
                continue;
            }
            let lacking = live.known() - live.computed;
            // A draft proposes what follows the tokens of the step before.
            let proposes = if live.decodes() { proposed(self.settings.draft) } else { 0 };
            let new = self.chunk(lacking + proposes, budget);
            let tokens = live.computed + new + proposes;
            while !self.grow(slot, tokens) {
                let Some(victim) = self.running.pop() else { break };
                self.others.pop_if(|last| *last == victim);
                preempted = true;
                self.preempt(victim, note);
                if victim == slot {
                    return (budget, true);
                }
            }
            self.schedule(slot, new);
            budget -= new;
            place += 1;
        }
        (budget, preempted)
    }

    /// A request is in the step with `new` tokens.
    fn schedule(&mut self, slot: VllmSlot, new: u32) {
        self.scheduled.push((slot, new));
        let Some(live) = self.live[slot].as_ref() else { return };
        if live.decodes() {
            self.load.decoding += 1;
            self.load.kv_tokens += u64::from(live.computed);
            self.ends = self.ends.min(live.request.output - live.generated);
            if self.settings.draft.is_some() {
                self.load.accepted += self.yielded(live, new) - 1;
            }
        } else {
            let cached_tokens = live.computed;
            self.load.prompts.push(PromptChunk { new_tokens: new, cached_tokens });
        }
    }

    /// Whether the step that is made up now leaves prompts for a later one.
    fn is_between(&self) -> bool {
        let interval = self.settings.prefill_interval.unwrap_or(1).max(1);
        let held = !self.steps.is_multiple_of(interval) && !self.crowded;
        held && self.running.iter().any(|slot| self.at(*slot).decodes())
    }

    fn preempt(&mut self, victim: VllmSlot, note: Note<'_>) {
        self.share_own(victim);
        self.write_output(victim);
        let Some(live) = self.live[victim].as_mut() else { return };
        self.pool.release(live.given_back());
        live.named.clear();
        // The cache that another worker sent is lost too.
        (live.computed, live.request.received) = (0, 0);
        (live.chain, live.chained, live.kept, live.held) = (BlockChain::default(), 0, 0, 0);
        (live.blocks, live.written) = (0, 0);
        self.waiting.push_front(victim);
        note(live.request.id, EngineEvent::Preempted);
    }

    /// Gives a request blocks for `tokens` tokens; false where too few are free.
    fn hold(&mut self, slot: VllmSlot, tokens: u32) -> bool {
        let size = self.settings.block_tokens;
        let Some(live) = self.live[slot].as_mut() else { return false };
        if tokens <= live.held {
            return true;
        }
        let lacking = tokens.div_ceil(size) - live.blocks;
        if lacking > self.pool.free() {
            return false;
        }
        self.pool.take(lacking);
        live.blocks += lacking;
        live.held = live.blocks.saturating_mul(size);
        true
    }

    /// The same, and later prompts find its whole blocks whose tokens the scheduler knows.
    fn grow(&mut self, slot: VllmSlot, tokens: u32) -> bool {
        let live = self.at(slot);
        let in_flight = if live.newest_at == self.heard { live.newest } else { 0 };
        let (known, held) = (live.known() - in_flight, tokens <= live.held || self.hold(slot, tokens));
        if held {
            self.publish(slot, tokens.min(known));
        }
        held
    }

    /// Later prompts find the whole blocks of the first `tokens` tokens of a request, which may not be computed yet.
    fn publish(&mut self, slot: VllmSlot, tokens: u32) {
        let size = self.settings.block_tokens;
        let Some(live) = self.live[slot].as_mut().filter(|live| tokens >= live.whole_at) else { return };
        let whole = (tokens / size).min(live.blocks);
        while live.kept < whole && live.whole_at <= live.request.shared {
            let Some(content) = live.chain.next(&live.request.runs, size) else { return };
            live.named.push(self.pool.keep(content));
            live.chained += 1;
            live.kept += 1;
            live.whole_at = live.whole_at.saturating_add(size);
        }
        if live.kept < whole {
            live.kept = whole;
            live.whole_at = whole.saturating_add(1).saturating_mul(size);
        }
    }

    /// A request that gives up its blocks may find them again: also those that no other one begins with.
    fn share_own(&mut self, slot: VllmSlot) {
        let size = self.settings.block_tokens;
        let Some(live) = self.live[slot].as_mut() else { return };
        while live.chained < live.kept {
            let Some(content) = live.chain.next(&live.request.runs, size) else { break };
            live.named.push(self.pool.keep(content));
            live.chained += 1;
        }
    }

    /// Admits waiting requests in order, while tokens, slots and blocks suffice.
    fn admit(&mut self, mut budget: u32, note: Note<'_>) {
        let mut place = 0;
        while budget > 0 && self.running.len() < self.settings.max_sequences as usize {
            let Some(&slot) = self.waiting.get(place) else { return };
            if self.defers && self.at(slot).request.received == 0 {
                return;
            }
            let (hits, cached) = match self.start(slot, note) {
                VllmStart::With(hits, cached) => (hits, cached),
                VllmStart::NoMemory if !self.stalls() => return,
                VllmStart::Waits | VllmStart::NoMemory => {
                    place += 1;
                    continue;
                }
            };
            let lacking = self.at(slot).known() - cached;
            let new = self.chunk(lacking, budget);
            if !self.settings.chunked_prefill && new < self.chunk(lacking, u32::MAX) {
                return;
            }
            if !self.place(slot, &hits, cached + new) {
                if !self.stalls() {
                    return;
                }
                place += 1;
                continue;
            }
            self.waiting.remove(place);
            self.running.push(slot);
            self.others.push(slot);
            self.admitted += 1;
            let (order, live) = (self.admitted, self.at_mut(slot));
            (live.computed, live.order) = (cached, order);
            self.schedule(slot, new);
            budget -= new;
            let live = self.at_mut(slot);
            live.load = None;
            note(live.request.id, EngineEvent::Admitted { cached_tokens: cached });
        }
    }

    /// The cached blocks that a request with `known` tokens begins with; its last token is computed in any case.
    fn hits(&self, request: &EngineRequest, known: u32) -> impl Iterator<Item = NamedId> {
        let size = self.settings.block_tokens;
        let most = if self.settings.prefix_caching { (known - 1) / size } else { 0 };
        let mut chain = BlockChain::default();
        (0..most).map_while(move |_| {
            chain.next(&request.runs, size).and_then(|content| self.pool.holding(content))
        })
    }

    /// Blocks that stay as they are when a request gets others than `hits`: those of them that are free, and a reserve.
    fn kept(&self, hits: &[NamedId]) -> u32 {
        let reserved = if self.running.is_empty() { 0 } else { self.settings.reserved_blocks };
        hits.iter().filter(|block| self.pool.is_free(**block)).count() as u32 + reserved
    }

    /// Gives a waiting request the blocks `hits` and others for `tokens` tokens; false where too few are free.
    fn place(&mut self, slot: VllmSlot, hits: &[NamedId], tokens: u32) -> bool {
        let size = self.settings.block_tokens;
        let live = self.at(slot);
        let held = if self.settings.whole_prompt_fits { live.known() } else { tokens };
        // One has blocks already that tiers had.
        let has = hits.len() as u32 + live.blocks;
        if held.div_ceil(size) - has + self.kept(hits) > self.pool.free() {
            return false;
        }
        hits.iter().for_each(|block| self.pool.share(*block));
        let keeps = self.settings.prefix_caching;
        let live = self.at_mut(slot);
        live.named.extend_from_slice(hits);
        live.blocks += hits.len() as u32;
        for _ in 0..hits.len() {
            live.chain.next(&live.request.runs, size);
        }
        live.chained += hits.len() as u32;
        live.hold_chained(size, keeps);
        self.grow(slot, tokens)
    }

    /// Requests in the step that was made up.
    fn in_step(&self) -> usize {
        self.steady.count() as usize + self.scheduled.len()
    }

    /// Tokens that a request gets in a step with `new` of it, of which the first are those that it lacked.
    fn yielded(&self, live: &VllmRequest, new: u32) -> u32 {
        let checked = live.computed + new - live.known();
        let left = live.request.output - live.generated;
        tokens_of_step(self.settings.draft, live.request.id, live.generated, left).min(checked + 1)
    }
}

impl SchedulerEngine for VllmEngine {
    fn set_time(&mut self, now_s: f64, heard_s: f64) {
        if let Some(tiers) = &mut self.tiers {
            tiers.set_time(now_s, heard_s);
        }
    }

    fn next_load_s(&self) -> Option<f64> {
        self.next_end_s()
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    fn cache(&self) -> u64 {
        u64::from(self.settings.blocks) * u64::from(self.settings.block_tokens)
    }

    fn cache_used(&self) -> u64 {
        u64::from(self.settings.blocks - self.pool.free()) * u64::from(self.settings.block_tokens)
    }

    fn queued(&self) -> (usize, usize) {
        (self.running.len(), self.waiting.len())
    }

    fn found(&self, request: &EngineRequest, identities: &mut BlockIdentities) -> u32 {
        let size = self.settings.block_tokens;
        let caches = self.settings.prefix_caching;
        let most = if caches { (request.prompt - 1).min(request.shared) / size } else { 0 };
        let holds = |content| self.pool.holding(content).is_some();
        identities.held(&request.runs, (size, most), holds) * size
    }

    fn can_ever_hold(&self, request: &EngineRequest) -> bool {
        let most = request.prompt + request.output.saturating_sub(1) + places_beyond(self.settings.draft);
        most.div_ceil(self.settings.block_tokens) <= self.settings.blocks
    }

    fn load(&self) -> &StepLoad {
        &self.load
    }

    #[cfg(feature = "internals")]
    fn batch(&self) -> Vec<(u64, u32)> {
        let new = |slot: VllmSlot| {
            let single = self.scheduled.iter().find(|(other, _)| *other == slot).map(|(_, new)| *new);
            self.at(slot).since.map(|_| 1).or(single)
        };
        let running = self.running.iter();
        running.filter_map(|&slot| Some((self.at(slot).request.id, new(slot)?))).collect()
    }

    fn submit(&mut self, request: EngineRequest) {
        let live = VllmRequest {
            request,
            computed: 0,
            generated: 0,
            named: vec![],
            blocks: 0,
            held: 0,
            kept: 0,
            whole_at: u32::MAX,
            chain: BlockChain::default(),
            chained: 0,
            ended: false,
            newest: 0,
            newest_at: 0,
            load: None,
            written: 0,
            order: 0,
            since: None,
        };
        let slot = placed(&mut self.live, &mut self.vacant, live);
        self.waiting.push_back(slot);
    }

    /// `finish_requests` with `FINISHED_ABORTED`: blocks are free at once, and keep their tokens for later prompts.
    fn abort(&mut self, id: u64) -> Option<u32> {
        let is_it = |one: &Option<VllmRequest>| one.as_ref().is_some_and(|one| one.request.id == id);
        let slot = self.live.iter().position(is_it)?;
        self.drop_steady(slot);
        self.write_output(slot);
        let one = self.live[slot].take_if(|one| !one.ended)?;
        self.running.retain(|other| *other != slot);
        self.others.retain(|other| *other != slot);
        self.waiting.retain(|other| *other != slot);
        self.scheduled.retain(|(other, _)| *other != slot);
        self.pool.release(one.given_back());
        self.vacant.push(slot);
        self.settled = false;
        Some(one.generated)
    }

    fn choose(&mut self, note: Note<'_>) {
        self.scheduled.clear();
        self.load.prompts.clear();
        (self.load.decoding, self.load.accepted, self.load.kv_tokens) = (0, 0, 0);
        self.ends = u32::MAX;
        self.several = self.running.len() + self.waiting.len() > 1;
        self.defers = self.is_between();
        self.steps = self.steps.wrapping_add(1);
        let (budget, preempted) = self.schedule_running(note);
        let before = self.scheduled.len();
        if !preempted {
            self.admit(budget, note);
            if !self.defers {
                self.crowded = !self.waiting.is_empty();
            }
        }
        // Where a part of a prompt is enough, one that waits needs fewer blocks once others take those that it would find.
        let needs_as_much = self.settings.whole_prompt_fits || self.waiting.is_empty();
        let full = self.running.len() >= self.settings.max_sequences as usize;
        self.settled = !preempted && self.scheduled.len() == before && (full || needs_as_much);
        self.write_prompts();
    }

    fn settle(&mut self) {
        self.heard += 1;
        if self.ending.is_empty() {
            return;
        }
        let mut ended = std::mem::take(&mut self.ending);
        self.settled = false;
        let running = self.running.len();
        for slot in &ended {
            // Most that end are among the first.
            if let Some(place) = self.running.iter().position(|other| other == slot) {
                self.running.remove(place);
            }
        }
        if running - self.running.len() < ended.len() {
            // Others were preempted since: in the order in which they wait, after those that run.
            ended.sort_by_key(|slot| self.waiting.iter().position(|other| other == slot));
            self.waiting.retain(|slot| !ended.contains(slot));
        }
        for slot in ended.drain(..) {
            self.publish(slot, self.at(slot).computed);
            self.write_output(slot);
            if let Some(live) = self.live[slot].take() {
                self.pool.release(live.given_back());
                self.vacant.push(slot);
            }
        }
        self.ending = ended;
    }

    fn equal_steps(&self) -> u32 {
        // With a draft, each request gets its own number of tokens.
        if self.settings.draft.is_some() {
            return 1;
        }
        if !self.load.prompts.is_empty() || !self.settled || self.in_step() != self.running.len() {
            return 1;
        }
        if self.defers && !self.waiting.is_empty() {
            return 1;
        }
        let (ends, size, free) = (self.ends.max(1), self.settings.block_tokens, self.pool.free());
        // No more than these, wherever in their blocks the requests are.
        let most_each = |steps: u32| steps.div_ceil(size).saturating_add(1);
        let at_most = |steps: u32| (self.running.len() as u32).saturating_mul(most_each(steps));
        if at_most(ends) <= free {
            return ends;
        }
        let needed = |steps: u32| -> u64 {
            let one = |(slot, _): &(VllmSlot, u32)| {
                let live = self.at(*slot);
                u64::from((live.computed + steps).div_ceil(size) - live.blocks)
            };
            self.steady.filled(1..steps) + self.scheduled.iter().map(one).sum::<u64>()
        };
        most_steps(ends, |steps| needed(steps) <= u64::from(free))
    }

    fn complete(&mut self, steps: u32, note: Note<'_>) {
        let mut scheduled = std::mem::take(&mut self.scheduled);
        self.steps = self.steps.wrapping_add(steps - 1);
        let due = self.advance_steady(steps);
        if !due.is_empty() {
            scheduled.extend(due);
            scheduled.sort_by_key(|(slot, _)| self.at(*slot).order);
        }
        for &(slot, new) in &scheduled {
            let live = self.at(slot);
            if live.since.is_some() {
                self.publish_steady(slot, 0);
                continue;
            }
            if live.computed + new < live.known() {
                self.at_mut(slot).computed += new;
                continue;
            }
            let has_draft = self.settings.draft.is_some() && live.generated > 0;
            let yielded = if has_draft { self.yielded(live, new) } else { 1 };
            let (asynchronous, heard) = (self.settings.asynchronous, self.heard);
            let live = self.at_mut(slot);
            live.computed = live.known() + yielded - 1;
            live.generated += yielded;
            if steps > 1 {
                live.computed += steps - 1;
                live.generated += steps - 1;
                let computed = live.computed;
                if computed > live.held || computed >= live.whole_at {
                    self.hold(slot, computed);
                    // When the last of these steps was made up, the token of the one before it was not known.
                    self.publish(slot, computed - u32::from(asynchronous));
                }
            }
            let live = self.at_mut(slot);
            if asynchronous {
                (live.newest, live.newest_at) = (yielded, heard);
            }
            let id = live.request.id;
            if live.generated == yielded {
                note(id, EngineEvent::FirstToken);
            }
            if live.generated >= live.request.output {
                live.ended = true;
                self.ending.push(slot);
                note(id, EngineEvent::Finished);
            }
        }
        self.join_steady(&scheduled);
        self.scheduled = scheduled;
        self.scheduled.clear();
        if !self.settings.asynchronous {
            self.settle();
        }
    }

    fn go_round(&mut self, rounds: u32) {
        self.steps = self.steps.wrapping_add(rounds);
    }

    fn lacking(&self, hear: &mut dyn FnMut(u64, u32)) {
        let live = self.live.iter().flatten();
        live.for_each(|one| hear(one.request.id, one.request.output.saturating_sub(one.made(self.tick()))));
    }
}
