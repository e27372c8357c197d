//! llama.cpp's server: a request has a slot, which keeps its tokens for the next one. Slots that generate come first in
//! every batch, then prompts fill it in the order of the slots.
//!
//! After tools/server/server-context.cpp and server-queue.cpp at 0c1e570, in the source archive of llama-cpp-python 0.3.36.
//! A step is one call of `llama_process`: a batch that finds no memory in a KV cache that slots share is computed in
//! several. How a call is divided into parts of `--ubatch-size` changes its time, not the schedule. Left out are
//! checkpoints, which only models have whose memory cannot be cut (sliding windows, recurrent ones), shifts of the context
//! (off by default), several answers to one prompt, drafts, adapters and media.

pub mod host_prompts;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::host_prompts::{HostPromptSettings, HostPrompts, KeptTokens};
use super::content::{BlockIdentities, TokenRun};
use super::engine::{EngineEvent, EngineRequest, Note, SchedulerEngine};
use super::step_load::{PromptChunk, StepLoad};

/// A slot that gives up more than this share of its tokens has them copied to host memory before.
const MUCH_LOST: f32 = 0.5;

/// Options of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LlamacppSettings {
    /// Requests at a time (`--parallel`).
    pub slots: u32,
    /// Tokens of a batch (`--batch-size`).
    pub batch_tokens: u32,
    /// Tokens of a request, at most: of the KV cache of a slot, or of the one that all share.
    pub context_tokens: u32,
    /// Whether all slots share one KV cache (`--kv-unified`).
    pub unified: bool,
    /// Whether prompts join the batches of slots that generate (`--cont-batching`).
    pub joined: bool,
    /// Whether a request uses the tokens that its slot has in common with it (`cache_prompt`).
    pub prefix_caching: bool,
    /// Share of a prompt that a slot must have to be taken for it (`--slot-prompt-similarity`); 0: any slot.
    pub similarity: f64,
    /// Prompts in host memory (`--cache-ram`).
    pub host_prompts: Option<HostPromptSettings>,
}

/// How far a request in a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LlamacppPhase {
    /// No batch has had it.
    Started,
    Prompt,
    Generating,
}

struct LlamacppRequest {
    request: EngineRequest,
    phase: LlamacppPhase,
    /// Whether a batch with its first tokens has been computed.
    admitted: bool,
    /// Tokens of output.
    made: u32,
}

#[derive(Default)]
struct LlamacppSlot {
    /// Tokens of its last request, with those of the batch that is made up.
    kept: KeptTokens,
    /// Tokens with a place in the KV cache.
    cells: u32,
    /// The number of the request that left it last, from 1.
    left: u64,
    running: Option<LlamacppRequest>,
}

impl LlamacppSlot {
    fn is_in(&self, phase: LlamacppPhase) -> bool {
        self.running.as_ref().is_some_and(|one| one.phase == phase)
    }

    fn clear(&mut self) {
        (self.kept, self.cells) = (KeptTokens::default(), 0);
    }
}

/// Tokens of one slot in a batch.
#[derive(Clone, Copy, Debug)]
struct BatchPart {
    slot: usize,
    new: u32,
    /// Tokens of its request before them.
    before: u32,
    /// Whether they are of a prompt.
    prompt: bool,
    /// Whether the last of them gives a token.
    output: bool,
}

/// The requests of one server.
pub struct LlamacppEngine {
    settings: LlamacppSettings,
    slots: Vec<LlamacppSlot>,
    host: Option<HostPrompts>,
    /// Requests that the server has not taken up.
    queue: VecDeque<EngineRequest>,
    /// Those that found no slot.
    deferred: VecDeque<EngineRequest>,
    /// Requests that have left a slot.
    left: u64,
    /// The part of the batch that comes after the step.
    rest: VecDeque<BatchPart>,
    step: Vec<BatchPart>,
    load: StepLoad,
}

impl LlamacppEngine {
    /// An engine without requests.
    pub fn new(settings: LlamacppSettings) -> LlamacppEngine {
        let slots = settings.slots.max(1);
        let cells = u64::from(settings.context_tokens) * if settings.unified { 1 } else { u64::from(slots) };
        LlamacppEngine {
            host: settings.host_prompts.clone().map(|of| HostPrompts::new(of, cells)),
            slots: (0..slots).map(|_| LlamacppSlot::default()).collect(),
            settings,
            queue: VecDeque::new(),
            deferred: VecDeque::new(),
            left: 0,
            rest: VecDeque::new(),
            step: vec![],
            load: StepLoad::default(),
        }
    }

    /// Tokens of a batch: not more than the KV cache (`llama_context`).
    fn batch_tokens(&self) -> u64 {
        u64::from(self.settings.batch_tokens).min(self.cache()).max(1)
    }

    fn cells(&self) -> u64 {
        self.slots.iter().map(|slot| u64::from(slot.cells)).sum()
    }

    /// Tokens of KV cache that any slot may have: slots with a cache of their own lack none.
    fn free(&self) -> u64 {
        if self.settings.unified { self.cache().saturating_sub(self.cells()) } else { u64::MAX }
    }

    /// The slot without a request that has most of a prompt, if that is enough of it, and the share of its tokens that the
    /// prompt has.
    fn similar(&self, request: &EngineRequest) -> Option<(usize, f32)> {
        let threshold = self.settings.similarity as f32;
        if threshold == 0.0 {
            return None;
        }
        let (mut best, mut chosen) = (0.0, None);
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.running.is_some() || slot.kept.tokens == 0 {
                continue;
            }
            let common = slot.kept.common(&request.runs, request.prompt);
            let share = common as f32 / request.prompt as f32;
            if share > best && share > threshold {
                (best, chosen) = (share, Some(at));
            }
        }
        let kept = |at: usize| best * request.prompt as f32 / self.slots[at].kept.tokens as f32;
        chosen.map(|at| (at, kept(at)))
    }

    /// The slot without a request that has been without the longest; of several that never had one, the last.
    fn longest_unused(&self) -> Option<usize> {
        let idle = self.slots.iter().enumerate().filter(|(_, slot)| slot.running.is_none());
        idle.rev().min_by_key(|(_, slot)| slot.left).map(|(at, _)| at)
    }

    /// The slot for a request (`get_available_slot`).
    fn available(&mut self, request: &EngineRequest) -> Option<usize> {
        let (at, loses) = match self.similar(request) {
            Some((at, kept)) => (at, kept < MUCH_LOST),
            None => (self.longest_unused()?, true),
        };
        if loses {
            self.exchange(at, request);
        }
        Some(at)
    }

    /// A slot's tokens are copied to host memory, and replaced by others from there that serve a request better.
    fn exchange(&mut self, at: usize, request: &EngineRequest) {
        let free = self.free();
        let Some(host) = &mut self.host else { return };
        let slot = &mut self.slots[at];
        host.save(&slot.kept);
        if let Some(better) = host.better(&slot.kept, &request.runs, request.prompt) {
            if free.saturating_add(u64::from(slot.cells)) < u64::from(host.tokens_at(better)) {
                slot.clear();
            } else if let Some(kept) = host.take(better) {
                (slot.cells, slot.kept) = (kept.tokens, kept);
            }
        }
        host.limit();
    }

    /// Requests get slots (`process_single_task`).
    fn take_requests(&mut self) {
        while let Some(request) = self.queue.pop_front() {
            let Some(at) = self.available(&request) else {
                self.deferred.push_back(request);
                continue;
            };
            let phase = LlamacppPhase::Started;
            self.slots[at].running = Some(LlamacppRequest { request, phase, admitted: false, made: 0 });
            let Some(host) = self.host.as_mut().filter(|host| host.copies_idle_slots()) else { continue };
            for slot in self.slots.iter_mut().filter(|slot| slot.running.is_none()) {
                host.save(&slot.kept);
                host.limit();
                if self.settings.unified {
                    slot.clear();
                }
            }
        }
    }

    /// Makes up a batch (`pre_decode`).
    fn make_up(&mut self) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.is_in(LlamacppPhase::Generating) {
                let before = slot.kept.tokens;
                slot.kept.tokens += 1;
                self.rest.push_back(BatchPart { slot: at, new: 1, before, prompt: false, output: true });
            }
        }
        if !self.settings.joined && !self.rest.is_empty() {
            return;
        }
        let (mut size, most) = (self.rest.len() as u64, self.batch_tokens());
        for at in 0..self.slots.len() {
            if size >= most {
                return;
            }
            if let Some(part) = self.prompt_part(at, most - size) {
                size += u64::from(part.new);
                self.rest.push_back(part);
            }
        }
    }

    /// The next tokens of the prompt in a slot, `most` at most.
    fn prompt_part(&mut self, at: usize, most: u64) -> Option<BatchPart> {
        let reuses = self.settings.prefix_caching;
        let slot = &mut self.slots[at];
        let running = slot.running.as_mut().filter(|one| one.phase != LlamacppPhase::Generating)?;
        let request = &running.request;
        if running.phase == LlamacppPhase::Started {
            running.phase = LlamacppPhase::Prompt;
            let common = if reuses { slot.kept.common(&request.runs, request.prompt) } else { 0 };
            // Its last token is computed in any case.
            let tokens = common.min(request.prompt.saturating_sub(1));
            slot.kept = KeptTokens { runs: request.runs.clone(), tokens };
            slot.cells = slot.cells.min(tokens);
        }
        let before = slot.kept.tokens;
        let new = u64::from(request.prompt - before).min(most) as u32;
        slot.kept.tokens += new;
        Some(BatchPart { slot: at, new, before, prompt: true, output: before + new == request.prompt })
    }

    /// Tokens of the step that comes next of a batch: all, or as many as find memory when slots without a request are
    /// cleared one by one, and the batch is halved after them; `None` where one token finds none (`decode`).
    fn fitting(&mut self) -> Option<u64> {
        let left: u64 = self.rest.iter().map(|part| u64::from(part.new)).sum();
        let mut most = self.batch_tokens();
        loop {
            let tokens = most.min(left);
            if tokens <= self.free() {
                return Some(tokens);
            }
            if most == 1 {
                return None;
            }
            let idle = |slot: &&mut LlamacppSlot| slot.running.is_none() && slot.kept.tokens > 0;
            match self.slots.iter_mut().find(idle) {
                Some(slot) => slot.clear(),
                None => most /= 2,
            }
        }
    }

    /// The first tokens of what is left of the batch are the step.
    fn take(&mut self, mut tokens: u64, note: Note<'_>) {
        while tokens > 0 {
            let Some(part) = self.rest.front_mut() else { break };
            let new = tokens.min(u64::from(part.new)) as u32;
            let whole = new == part.new;
            let taken = BatchPart { new, output: part.output && whole, ..*part };
            if whole {
                self.rest.pop_front();
            } else {
                (part.new, part.before) = (part.new - new, part.before + new);
            }
            tokens -= u64::from(new);
            self.step.push(taken);
            let slot = &mut self.slots[taken.slot];
            slot.cells += new;
            if let Some(one) = slot.running.as_mut().filter(|one| !one.admitted) {
                one.admitted = true;
                note(one.request.id, EngineEvent::Admitted { cached_tokens: taken.before });
            }
        }
    }

    /// No token finds memory: every request gets an error, and its slot is cleared.
    fn fail(&mut self, note: Note<'_>) {
        self.rest.clear();
        for at in 0..self.slots.len() {
            if let Some(one) = self.release(at) {
                note(one.request.id, EngineEvent::Failed);
                self.slots[at].clear();
            }
        }
    }

    /// A request leaves its slot, and the first one that found none is taken up before all others.
    fn release(&mut self, at: usize) -> Option<LlamacppRequest> {
        let one = self.slots[at].running.take()?;
        self.left += 1;
        self.slots[at].left = self.left;
        if let Some(next) = self.deferred.pop_front() {
            self.queue.push_front(next);
        }
        Some(one)
    }

    fn describe(&mut self) {
        let mut load = std::mem::take(&mut self.load);
        let (prompts, generating) =
            (self.step.iter().filter(|part| part.prompt), || self.step.iter().filter(|part| !part.prompt));
        load.prompts.clear();
        load.prompts
            .extend(prompts.map(|part| PromptChunk { new_tokens: part.new, cached_tokens: part.before }));
        load.decoding = generating().count() as u32;
        load.kv_tokens = generating().map(|part| u64::from(part.before)).sum();
        self.load = load;
    }

    /// The slots of the step, in the order of its batch.
    #[cfg(feature = "internals")]
    pub fn batch_slots(&self) -> Vec<usize> {
        self.step.iter().map(|part| part.slot).collect()
    }

    fn output_left(one: &LlamacppRequest) -> u32 {
        one.request.output.saturating_sub(one.made).max(1)
    }
}

impl SchedulerEngine for LlamacppEngine {
    fn submit(&mut self, request: EngineRequest) {
        self.queue.push_back(request);
    }

    fn abort(&mut self, id: u64) -> Option<u32> {
        for queue in [&mut self.queue, &mut self.deferred] {
            if let Some(at) = queue.iter().position(|one| one.id == id) {
                queue.remove(at);
                return Some(0);
            }
        }
        let has = |slot: &LlamacppSlot| slot.running.as_ref().is_some_and(|one| one.request.id == id);
        let at = self.slots.iter().position(has)?;
        self.step.retain(|part| part.slot != at);
        let before = self.rest.len();
        self.rest.retain(|part| part.slot != at);
        if self.rest.len() < before {
            // Its slot counts tokens that are never computed.
            self.slots[at].clear();
        }
        self.release(at).map(|one| one.made)
    }

    fn is_idle(&self) -> bool {
        self.queued() == (0, 0)
    }

    fn queued(&self) -> (usize, usize) {
        let running = self.slots.iter().filter(|slot| slot.running.is_some()).count();
        (running, self.queue.len() + self.deferred.len())
    }

    fn cache(&self) -> u64 {
        let each = u64::from(self.settings.context_tokens);
        if self.settings.unified { each } else { each * self.slots.len() as u64 }
    }

    fn cache_used(&self) -> u64 {
        let running = self.slots.iter().filter(|slot| slot.running.is_some());
        running.map(|slot| u64::from(slot.cells)).sum()
    }

    fn found(&self, request: &EngineRequest, _: &mut BlockIdentities) -> u32 {
        if !self.settings.prefix_caching {
            return 0;
        }
        let common = |runs: &[TokenRun], tokens: u32| {
            let idle = self.slots.iter().filter(|slot| slot.running.is_none());
            let in_slots = idle.map(|slot| slot.kept.common(runs, tokens)).max().unwrap_or(0);
            self.host.as_ref().map_or(0, |host| host.most_common(runs, tokens)).max(in_slots)
        };
        common(&request.runs, request.prompt.saturating_sub(1))
    }

    fn can_ever_hold(&self, request: &EngineRequest) -> bool {
        request.prompt.saturating_add(request.output) <= self.settings.context_tokens
    }

    fn choose(&mut self, note: Note<'_>) {
        self.step.clear();
        if self.rest.is_empty() {
            self.take_requests();
            self.make_up();
        }
        match self.fitting() {
            Some(tokens) => self.take(tokens, note),
            None => self.fail(note),
        }
        self.describe();
    }

    fn settle(&mut self) {}

    fn load(&self) -> &StepLoad {
        &self.load
    }

    #[cfg(feature = "internals")]
    fn batch(&self) -> Vec<(u64, u32)> {
        let id = |at: usize| self.slots[at].running.as_ref().map_or(0, |one| one.request.id);
        self.step.iter().map(|part| (id(part.slot), part.new)).collect()
    }

    fn equal_steps(&self) -> u32 {
        let steady = self.rest.is_empty() && self.queue.is_empty() && self.load.prompts.is_empty();
        let running = || self.slots.iter().filter_map(|slot| slot.running.as_ref());
        let generating = || running().filter(|one| one.phase == LlamacppPhase::Generating);
        // Prompts wait where a batch has no place for them, or does not take them with others.
        let joined = self.settings.joined && u64::from(self.load.decoding) < self.batch_tokens();
        let prompts = joined && running().count() > generating().count();
        if !steady || prompts || self.step.is_empty() || generating().count() != self.step.len() {
            return 1;
        }
        let ends = generating().map(Self::output_left);
        let fit = self.free() / u64::from(self.load.decoding);
        u64::from(ends.min().unwrap_or(1)).min(fit.saturating_add(1)) as u32
    }

    fn lacking(&self, hear: &mut dyn FnMut(u64, u32)) {
        for one in self.slots.iter().filter_map(|slot| slot.running.as_ref()) {
            hear(one.request.id, one.request.output.saturating_sub(one.made));
        }
        for one in self.queue.iter().chain(&self.deferred) {
            hear(one.id, one.output);
        }
    }

    fn complete(&mut self, steps: u32, note: Note<'_>) {
        let mut parts = std::mem::take(&mut self.step);
        parts.retain(|part| part.output);
        parts.sort_by_key(|part| part.slot);
        for part in &parts {
            let slot = &mut self.slots[part.slot];
            slot.kept.tokens += steps - 1;
            slot.cells += steps - 1;
            let Some(one) = &mut slot.running else { continue };
            one.phase = LlamacppPhase::Generating;
            one.made += steps;
            if one.made == steps && part.prompt {
                note(one.request.id, EngineEvent::FirstToken);
            }
            if one.made >= one.request.output {
                note(one.request.id, EngineEvent::Finished);
                self.release(part.slot);
            }
        }
    }
}
