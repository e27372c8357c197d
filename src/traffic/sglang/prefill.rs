//! Admission: in which order waiting requests come, which of them a step takes, and what of their prompts it computes.

use std::cmp::Reverse;

use super::{
    EngineEvent, Note, RadixTree, SglangBatch, SglangEngine, SglangPolicy, SglangRequest, SglangSlot, down,
    up,
};

/// Tokens of output that are reserved at most.
const MOST_RESERVED: u32 = 4096;
/// Waiting requests up to which they are sorted by their cached prefixes, and of which these are looked at.
const MOST_SORTED: usize = 128;
/// Passes from one look at the prefixes to the next, where requests are not sorted by them.
const REFRESH: u64 = 32;
/// Tokens of a prefix up to which it counts as new, and from which on two new ones count as the same.
const NEW_PREFIX: u32 = 32;

/// Whether a pass goes on after a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    GoOn,
    /// Memory is short.
    NoMemory,
    /// Another limit is reached.
    Other,
}

/// One pass over the waiting requests.
struct PrefillPass {
    chosen: Vec<SglangSlot>,
    /// How many of them had a row before.
    with_row: u32,
    /// The request whose prompt this pass cuts.
    cut: Option<SglangSlot>,
    /// Memory that is reserved: for all that the requests may need, and for this step.
    total: f64,
    current: i64,
    /// New tokens that the step can still have, by either limit.
    input: i64,
    chunk: Option<i64>,
    /// Outputs to come and memory held, of the requests by those, where outputs have exactly their length.
    exact: Option<Vec<(f64, i64)>>,
}

/// A request that may be admitted.
struct WaitingCandidate {
    slot: SglangSlot,
    /// Cached tokens, and those after them.
    prefix: u32,
    rest: u32,
    /// Of those after them, the first ones that host memory has.
    hosted: u32,
    node: super::NodeId,
    /// Tokens of output that it may have, those that it had before included.
    limit: u32,
    outputs: u32,
}

impl SglangEngine {
    /// A step with prompts; `None` where none can be admitted.
    pub(super) fn prefill(&mut self, note: Note<'_>) -> Option<SglangBatch> {
        let running = self.running.len() as u32;
        self.full &= running > 0;
        if self.chunk.is_none() {
            if self.full || self.waiting.is_empty() {
                return None;
            }
            let (places, wanted) = (self.places(0), self.settings.min_free_slots.unwrap_or(0));
            let wanted = wanted.min(self.settings.max_requests);
            if wanted > 1 && running > 0 && places < wanted {
                return None;
            }
            if places == 0 {
                self.full = true;
                return None;
            }
        }
        self.order();
        let mut pass = self.begin();
        self.go_on_with_chunk(&mut pass);
        let continued = pass.chosen.len();
        if self.turn.new_prompts {
            self.admit(&mut pass);
        }
        if pass.chosen.is_empty() {
            return None;
        }
        if self.tiers.is_some() {
            // Some in between may wait for their cache.
            self.waiting.retain(|slot| !pass.chosen.contains(slot));
        } else {
            self.waiting.drain(..pass.chosen.len() - continued);
        }
        self.chunk = pass.cut.or(self.chunk);
        if let Some(chunk) = self.chunk {
            self.at_mut(chunk).middle += 1;
        }
        let mut batch = self.place(&pass.chosen, note);
        if self.mixes() {
            self.mix(&mut batch);
        }
        Some(batch)
    }

    /// Requests whose prompts another worker computed join those that decode, without a step of their own
    /// (`disaggregation/decode.py`: `get_new_prebuilt_batch`).
    pub(super) fn join_received(&mut self, note: Note<'_>) {
        let page = self.settings.page_tokens;
        while let Some(&slot) = self.waiting.first() {
            let live = self.at(slot);
            let (received, output) = (live.request.received, live.limit.min(MOST_RESERVED));
            if received == 0 || self.places(0) == 0 {
                return;
            }
            let alone = self.running.is_empty();
            let free = if alone { self.memory() as f64 } else { self.left_in_total(&self.begin()) };
            // Also the rest of a prompt that is computed once more, in parts, needs its memory.
            let rest = self.chunk.map_or(0, |slot| self.at(slot).known() - self.at(slot).prefix);
            let wanted = received + page + up(rest, page) + if alone { 0 } else { output };
            if f64::from(wanted) > free {
                return;
            }
            self.waiting.remove(0);
            self.evict(up(received, page));
            self.take(up(received, page));
            self.rows -= 1;
            self.running.push(slot);
            let round = self.round;
            let live = self.at_mut(slot);
            // It was not in the step before.
            live.round = round;
            (live.held, live.end, live.row, live.fresh, live.retracted) =
                (received, received, true, false, false);
            note(live.request.id, EngineEvent::Admitted { cached_tokens: received });
        }
    }

    fn mixes(&self) -> bool {
        self.settings.mixed_chunk && self.settings.chunk_tokens.is_some()
    }

    /// Requests that can join, when the step already has `with_row` that run.
    pub(super) fn places(&self, with_row: u32) -> u32 {
        let most = self.settings.max_requests.saturating_sub(self.running.len() as u32);
        most.min(self.rows + with_row)
    }

    /// Puts the waiting requests in order.
    fn order(&mut self) {
        if !self.settings.prefix_caching || self.waiting.is_empty() {
            return;
        }
        if self.settings.policy == SglangPolicy::Lpm && self.waiting.len() <= MOST_SORTED {
            self.order_by_prefix();
            return;
        }
        if self.passes.is_multiple_of(REFRESH) {
            for place in (0..self.waiting.len().min(MOST_SORTED)).rev() {
                let slot = self.waiting[place];
                self.find(slot, self.at(slot).known());
            }
        }
        self.passes += 1;
    }

    /// Those with the longest cached prefix first. Of those with the same new prefix, all but one come last: they will
    /// find it cached.
    fn order_by_prefix(&mut self) {
        let mut new = RadixTree::new(1);
        let mut keys = vec![];
        for place in 0..self.waiting.len() {
            let slot = self.waiting[place];
            let known = self.at(slot).known();
            let (found, _) = self.find(slot, known);
            let runs = &self.at(slot).request.runs;
            let late = found <= NEW_PREFIX && new.find(runs, known).0 >= NEW_PREFIX;
            if found <= NEW_PREFIX && !late {
                new.insert(runs, known);
            }
            let cached = if late { 0 } else { found.min(known - 1) };
            keys.push((late, Reverse(cached), slot));
        }
        keys.sort_by_key(|&(late, cached, _)| (late, cached));
        self.waiting = keys.into_iter().map(|key| key.2).collect();
    }

    fn begin(&self) -> PrefillPass {
        let mixed = if self.mixes() { self.running.len() as i64 } else { 0 };
        let reserved = |slot: &SglangSlot| {
            let live = self.at(*slot);
            f64::from(live.limit.saturating_sub(live.outputs).min(MOST_RESERVED)) * self.expected()
        };
        PrefillPass {
            chosen: vec![],
            with_row: 0,
            cut: None,
            total: mixed as f64 + self.running.iter().map(reserved).sum::<f64>(),
            current: mixed,
            input: i64::from(self.settings.prefill_tokens) - mixed,
            chunk: self.settings.chunk_tokens.map(|tokens| i64::from(tokens) - mixed),
            exact: None,
        }
    }

    /// The part of the output that a request may have for which memory is reserved.
    fn expected(&self) -> f64 {
        if self.settings.exact_output { 1.0 } else { self.ratio }
    }

    fn memory(&self) -> i64 {
        i64::from(self.free) + i64::from(self.tree.evictable())
    }

    fn left_in_total(&self, pass: &PrefillPass) -> f64 {
        self.memory() as f64 - pass.total
    }

    fn left_now(&self, pass: &PrefillPass) -> i64 {
        self.memory() - pass.current
    }

    fn verdict(&self, pass: &PrefillPass) -> Verdict {
        if self.left_in_total(pass) <= 0.0 || self.left_now(pass) <= 0 {
            Verdict::NoMemory
        } else if pass.input <= 0 || pass.chunk.is_some_and(|chunk| chunk <= 0) {
            Verdict::Other
        } else {
            Verdict::GoOn
        }
    }

    /// Reserves memory for `new` tokens of a prompt and an output of `output`.
    fn reserve(&self, pass: &mut PrefillPass, new: u32, output: u32) {
        let page = self.settings.page_tokens;
        let new = i64::from(up(new, page));
        pass.total += (new + i64::from(page) + i64::from(output)) as f64;
        pass.current += new + i64::from(page);
        pass.input -= new;
        pass.chunk = pass.chunk.map(|chunk| chunk - new);
    }

    /// The prompt that is computed in parts goes first.
    fn go_on_with_chunk(&mut self, pass: &mut PrefillPass) {
        let (Some(slot), Some(chunk)) = (self.chunk, pass.chunk) else { return };
        // It must go on also where memory is short.
        let most = match chunk.min(self.left_in_total(pass) as i64) {
            short if short <= 0 => chunk,
            most => most,
        };
        let live = self.at_mut(slot);
        let rest = live.known() - live.prefix;
        let new = i64::from(rest).min(most).max(0) as u32;
        live.end = live.prefix + new;
        let limit = live.limit.min(MOST_RESERVED);
        pass.chosen.push(slot);
        pass.with_row += 1;
        if new < rest {
            self.reserve(pass, new, 0);
        } else {
            self.reserve(pass, new, limit);
            self.chunk = None;
        }
    }

    /// Takes waiting requests in order until one does not fit.
    fn admit(&mut self, pass: &mut PrefillPass) {
        let waiting = std::mem::take(&mut self.waiting);
        for &slot in &waiting {
            if self.verdict(pass) == Verdict::Other || self.at(slot).request.received > 0 {
                break;
            }
            self.full |= pass.chosen.len() as u32 >= self.places(pass.with_row);
            if self.full {
                break;
            }
            if self.is_prefetching(slot) {
                continue;
            }
            let known = self.at(slot).known();
            let (prefix, node) = self.find(slot, known - 1);
            let hosted = self.hosted(slot, prefix);
            let live = self.at(slot);
            let (limit, outputs) = (live.limit, live.outputs);
            let rest = known - prefix;
            let candidate = WaitingCandidate { slot, prefix, rest, hosted, node, limit, outputs };
            let verdict = if pass.chosen.len() as u32 >= self.settings.prefill_requests.unwrap_or(u32::MAX) {
                Verdict::Other
            } else if self.settings.exact_output && !self.settings.prefix_caching {
                self.add_exact(pass, &candidate)
            } else {
                self.tree.lock(node);
                let verdict = self.add(pass, &candidate);
                self.tree.unlock(node);
                verdict
            };
            if verdict != Verdict::GoOn {
                self.full |=
                    verdict == Verdict::NoMemory && !(pass.chosen.is_empty() && self.running.is_empty());
                break;
            }
        }
        self.waiting = waiting;
    }

    /// Adds a request whose output may be shorter than its limit. Its prefix is locked for the checks.
    fn add(&mut self, pass: &mut PrefillPass, of: &WaitingCandidate) -> Verdict {
        let page = self.settings.page_tokens;
        let output = of.limit.saturating_sub(of.outputs).min(MOST_RESERVED);
        if f64::from(of.rest + output + page) >= self.left_in_total(pass) {
            return Verdict::NoMemory;
        }
        // Tokens in host memory are loaded, and not computed.
        let of = &WaitingCandidate { prefix: of.prefix + of.hosted, rest: of.rest - of.hosted, ..*of };
        let rounded = i64::from(up(of.rest, page));
        match pass.chunk {
            None if !pass.chosen.is_empty() && rounded >= pass.input => return Verdict::Other,
            Some(chunk) if rounded > chunk => {
                let end = down(of.prefix + down(chunk as u32, page), page);
                if end <= of.prefix {
                    return Verdict::Other;
                }
                self.choose_candidate(pass, of, end - of.prefix);
                pass.cut = Some(of.slot);
                self.reserve(pass, end - of.prefix, 0);
            }
            _ => {
                self.choose_candidate(pass, of, of.rest);
                // Also what a retracted request has already.
                self.reserve(pass, of.rest, of.limit.min(MOST_RESERVED));
            }
        }
        self.verdict(pass)
    }

    /// Adds a request whose output has exactly its limit, without a prefix cache: the memory that others will have
    /// given back by then counts.
    fn add_exact(&mut self, pass: &mut PrefillPass, of: &WaitingCandidate) -> Verdict {
        let page = self.settings.page_tokens;
        let needed = i64::from(up(of.rest, page) + page);
        if needed as f64 > (self.left_now(pass) as f64).min(self.left_in_total(pass)) {
            return Verdict::NoMemory;
        }
        let state = |live: &SglangRequest| {
            let left = f64::from(live.limit) * self.expected() - f64::from(live.outputs);
            (left > 0.0).then(|| (left, i64::from(live.known())))
        };
        let own = state(self.at(of.slot));
        let exact = match &mut pass.exact {
            Some(exact) => {
                if let Some(own) = own {
                    let longer = exact.iter().position(|other| own.0 <= other.0);
                    exact.insert(longer.unwrap_or(exact.len().saturating_sub(1)), own);
                }
                exact
            }
            none => {
                let others = self.running.iter().chain(&pass.chosen).filter_map(|slot| state(self.at(*slot)));
                let mut all: Vec<_> = own.into_iter().chain(others).collect();
                all.sort_by(|a, b| a.0.total_cmp(&b.0));
                none.insert(all)
            }
        };
        let (mut freed, requests) = (0, exact.len());
        let free = self.memory() - pass.current - needed;
        for (place, &(left, held)) in exact.iter().enumerate() {
            let alive = (requests - place) as f64;
            if (free + freed) as f64 - left * alive <= alive {
                return Verdict::NoMemory;
            }
            freed += held;
        }
        match pass.chunk {
            Some(chunk) if i64::from(of.rest) > chunk => {
                if chunk <= 0 {
                    return Verdict::Other;
                }
                self.choose_candidate(pass, of, chunk as u32);
                pass.cut = Some(of.slot);
                self.reserve(pass, chunk as u32, 0);
            }
            _ => {
                self.choose_candidate(pass, of, of.rest);
                self.reserve(pass, of.rest, of.limit.min(MOST_RESERVED));
            }
        }
        self.verdict(pass)
    }

    /// Takes a request into the step, with `new` tokens of its prompt.
    fn choose_candidate(&mut self, pass: &mut PrefillPass, of: &WaitingCandidate, new: u32) {
        let loads = of.hosted > 0;
        let node = if loads { self.load_back(of.slot, of.prefix, of.hosted) } else { of.node };
        self.tree.lock(node);
        let live = self.at_mut(of.slot);
        (live.node, live.prefix, live.protected) = (node, of.prefix, of.prefix);
        live.end = of.prefix + new;
        pass.chosen.push(of.slot);
    }

    /// Gives the chosen requests their memory.
    fn place(&mut self, chosen: &[SglangSlot], note: Note<'_>) -> SglangBatch {
        let page = self.settings.page_tokens;
        let (mut scheduled, mut new, mut taken) = (vec![], 0, 0);
        for &slot in chosen {
            let live = self.at(slot);
            scheduled.push((slot, live.end - live.prefix));
            new += live.end - live.prefix;
            taken += up(live.end, page) - up(live.prefix, page);
        }
        // More than is needed where pages have several tokens.
        self.evict(if page == 1 { new } else { new + chosen.len() as u32 * page });
        self.take(taken);
        for &slot in chosen {
            let live = self.at_mut(slot);
            live.held = live.end;
            (live.retracted, live.yields) = (false, 1);
            let (id, fresh, cached_tokens) = (live.request.id, std::mem::take(&mut live.fresh), live.prefix);
            if !std::mem::replace(&mut live.row, true) {
                self.rows -= 1;
            }
            if fresh {
                self.note_load(slot, note);
                note(id, EngineEvent::Admitted { cached_tokens });
            }
        }
        SglangBatch { scheduled, prompts: chosen.len(), chunk: self.chunk }
    }

    /// The running requests join a batch of prompts if their next tokens fit; else they wait for the step after it.
    fn mix(&mut self, batch: &mut SglangBatch) {
        if self.running.is_empty() {
            return;
        }
        if self.drop_ending() {
            self.full = false;
        }
        let slots = std::mem::take(&mut self.running);
        let fits = !slots.is_empty() && self.next_token_fits(&slots);
        self.running = slots;
        if fits {
            self.grow();
            let slots = std::mem::take(&mut self.running);
            batch.scheduled.extend(slots.into_iter().map(|slot| (slot, self.yielded(slot))));
        }
    }
}
