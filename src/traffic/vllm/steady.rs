//! Requests that get one token in every step are counted together: such a step costs no work for each of them.
//!
//! A request is steady from its first token on, as long as blocks and tokens of a step suffice for all. Its own numbers
//! are those of the tick since which it is; the engine brings them up to date where one ends, or is given up, or where
//! memory is short.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::{VllmEngine, VllmRequest, VllmSlot};

/// Blocks of more tokens are too large for a count of every place in them.
const MOST_BLOCK_TOKENS: u32 = 4096;

/// Requests by a tick at which something is due, then in their order.
type DueSlots = BinaryHeap<Reverse<(u64, u64, VllmSlot)>>;

/// Requests that decode, each with one token a tick.
pub(super) struct SteadyDecoders {
    /// Tokens of a block.
    size: u32,
    tick: u64,
    /// The tick, modulo that.
    turn: u32,
    count: u32,
    /// Tokens that they have in the cache.
    kv_tokens: u64,
    /// Requests by their tokens in the cache at tick 0, modulo the size of a block; none of large blocks.
    phases: Vec<u32>,
    /// When each has its last token.
    ends: DueSlots,
    /// When a block is whole that other prompts may find.
    wholes: DueSlots,
    /// None of them comes after this one in the order of the scheduler.
    last: u64,
}

impl SteadyDecoders {
    pub(super) fn new(size: u32) -> SteadyDecoders {
        SteadyDecoders {
            size,
            tick: 0,
            turn: 0,
            count: 0,
            kv_tokens: 0,
            phases: vec![0; if size > MOST_BLOCK_TOKENS { 0 } else { size as usize }],
            ends: BinaryHeap::new(),
            wholes: BinaryHeap::new(),
            last: 0,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn kv_tokens(&self) -> u64 {
        self.kv_tokens
    }

    /// Steps until the first of them has ended.
    pub(super) fn next_end(&self) -> Option<u32> {
        self.ends.peek().map(|Reverse((tick, ..))| (tick - self.tick) as u32)
    }

    /// The place in the phases of those that have `tokens` tokens in the cache.
    fn phase(&self, tokens: u32) -> usize {
        let (now, turn) = (tokens % self.size, self.turn);
        (if now < turn { now + self.size - turn } else { now - turn }) as usize
    }

    /// Blocks that are full after these numbers of further tokens, over all requests.
    pub(super) fn filled(&self, tokens: Range<u32>) -> u64 {
        let (all, size) = (tokens.end.saturating_sub(tokens.start), self.size);
        if all == 0 || self.count == 0 {
            return 0;
        }
        let rounds = u64::from(all / size) * u64::from(self.count);
        // The place of those that are full after one token more is the one before.
        let first = self.phase(size - tokens.start % size);
        let places = (0..=first).rev().chain((first + 1..size as usize).rev());
        let rest = places.take((all % size) as usize).map(|place| u64::from(self.phases[place]));
        rounds + rest.sum::<u64>()
    }

    /// All get this many tokens.
    fn advance(&mut self, tokens: u32) {
        self.tick += u64::from(tokens);
        self.turn = (self.tick % u64::from(self.size)) as u32;
        self.kv_tokens += u64::from(self.count) * u64::from(tokens);
    }

    /// A request with `tokens` tokens in the cache is one of them, or no longer.
    fn add(&mut self, tokens: u32) {
        let phase = self.phase(tokens);
        (self.count, self.kv_tokens) = (self.count + 1, self.kv_tokens + u64::from(tokens));
        self.phases[phase] += 1;
    }

    fn remove(&mut self, tokens: u32) {
        let phase = self.phase(tokens);
        (self.count, self.kv_tokens) = (self.count - 1, self.kv_tokens - u64::from(tokens));
        self.phases[phase] -= 1;
    }
}

/// The first of `due` up to `tick`, if any.
fn pop(due: &mut DueSlots, tick: u64) -> Option<(u64, VllmSlot)> {
    due.peek().filter(|Reverse((at, ..))| *at <= tick)?;
    due.pop().map(|Reverse((_, order, slot))| (order, slot))
}

impl VllmRequest {
    /// Tokens of output that it has at this tick.
    pub(super) fn made(&self, tick: u64) -> u32 {
        self.generated + self.since.map_or(0, |since| (tick - since) as u32)
    }

    /// Brings its numbers up to date; of a step that is made up, it has the place of one token more.
    fn catch_up(&mut self, tick: u64, (size, places): (u32, u32)) {
        let more = self.made(tick) - self.generated;
        (self.computed, self.generated) = (self.computed + more, self.generated + more);
        self.since = self.since.map(|_| tick);
        self.blocks = self.blocks.max((self.computed + places).div_ceil(size));
        self.held = self.blocks.saturating_mul(size);
    }
}

impl VllmEngine {
    /// Tokens in the cache that the scheduler does not know after a step.
    fn unknown(&self) -> u32 {
        u32::from(self.settings.asynchronous)
    }

    /// The tick of the engine.
    pub(super) fn tick(&self) -> u64 {
        self.steady.tick
    }

    /// Whether all steady requests get a token in the next step, and no running request is preempted.
    fn serves_steady(&self) -> bool {
        if self.steady.count == 0 {
            return true;
        }
        let follows = |slot: &VllmSlot| self.at(*slot).order > self.steady.last;
        let lacking = |slot: &VllmSlot| {
            let live = self.at(*slot);
            u64::from(live.known().div_ceil(self.settings.block_tokens).saturating_sub(live.blocks))
        };
        let others: u64 = self.others.iter().map(lacking).sum();
        self.steady.count <= self.settings.token_budget
            && self.others.first().is_none_or(follows)
            && self.steady.filled(0..1) + others <= u64::from(self.pool.free())
    }

    /// All steady requests are in the step that is made up, where that can be; else none is steady. Returns the tokens of
    /// the step that are left.
    pub(super) fn schedule_steady(&mut self) -> u32 {
        if !self.serves_steady() {
            self.scatter();
        }
        self.pool.take(self.steady.filled(0..1) as u32);
        self.load.decoding += self.steady.count();
        self.load.kv_tokens += self.steady.kv_tokens();
        self.ends = self.ends.min(self.steady.next_end().unwrap_or(u32::MAX));
        let mut due = self.pop_wholes(self.steady.tick);
        due.sort_unstable();
        due.into_iter().for_each(|(_, slot)| self.publish_steady(slot, 1));
        self.settings.token_budget - self.steady.count()
    }

    /// Later prompts find the whole blocks of a steady request that the scheduler knows, also of those places of a step
    /// that is made up.
    pub(super) fn publish_steady(&mut self, slot: VllmSlot, places: u32) {
        let (tick, size, unknown) = (self.steady.tick, self.settings.block_tokens, self.unknown());
        let live = self.at_mut(slot);
        live.catch_up(tick, (size, places));
        let known = live.computed + places - unknown;
        self.publish(slot, known);
        self.await_whole(slot);
    }

    /// Sets when a steady request has its next block that other prompts may find.
    fn await_whole(&mut self, slot: VllmSlot) {
        let live = self.at(slot);
        if live.whole_at > live.request.shared || live.whole_at == u32::MAX {
            return;
        }
        let lacking = (live.whole_at + self.unknown() - 1).saturating_sub(live.computed);
        let due = (self.steady.tick + u64::from(lacking), live.order, slot);
        self.steady.wholes.push(Reverse(due));
    }

    /// Requests that got their token are steady from now on, where nothing else of them is due.
    pub(super) fn join_steady(&mut self, scheduled: &[(VllmSlot, u32)]) {
        let size = self.settings.block_tokens;
        // With a draft, each request gets its own number of tokens.
        let is_single = self.settings.draft.is_some() || self.steady.phases.is_empty();
        let joining = if is_single { &[] } else { scheduled };
        for &(slot, _) in joining {
            let tick = self.steady.tick;
            let Some(live) = self.live[slot].as_mut() else { continue };
            let is_whole = live.held == live.computed.div_ceil(size).saturating_mul(size);
            if live.since.is_some() || live.ended || !live.decodes() || !is_whole {
                continue;
            }
            live.since = Some(tick);
            let end = tick + u64::from(live.request.output - live.generated);
            let (computed, order) = (live.computed, live.order);
            self.steady.add(computed);
            self.steady.ends.push(Reverse((end, order, slot)));
            self.steady.last = self.steady.last.max(order);
            self.await_whole(slot);
        }
        let (live, all) = (&self.live, &mut self.others);
        all.retain(|slot| live[*slot].as_ref().is_some_and(|one| one.since.is_none() && !one.ended));
    }

    /// All steady requests get their tokens of these steps. Returns those of which something else is due: they end, and
    /// are steady no more, or a block of theirs is whole.
    pub(super) fn advance_steady(&mut self, steps: u32) -> Vec<(VllmSlot, u32)> {
        let mut due = vec![];
        while let Some((_, slot)) = pop(&mut self.steady.ends, self.steady.tick + u64::from(steps)) {
            self.leave(slot, 1);
            due.push((slot, 1));
        }
        self.pool.take(self.steady.filled(1..steps) as u32);
        self.steady.advance(steps);
        due.extend(self.pop_wholes(self.steady.tick - 1).into_iter().map(|(_, slot)| (slot, 1)));
        due
    }

    /// The steady requests that have a block by `tick` which other prompts may find, with their order.
    fn pop_wholes(&mut self, tick: u64) -> Vec<(u64, VllmSlot)> {
        let mut due = vec![];
        while let Some((order, slot)) = pop(&mut self.steady.wholes, tick) {
            // Those that have ended are there too.
            let is_steady = |one: &VllmRequest| one.order == order && one.since.is_some();
            if self.live[slot].as_ref().is_some_and(is_steady) {
                due.push((order, slot));
            }
        }
        due
    }

    /// A steady request is one on its own from now on, at its end or for another reason.
    fn leave(&mut self, slot: VllmSlot, places: u32) {
        let (tick, size) = (self.steady.tick, self.settings.block_tokens);
        let (unknown, heard) = (self.unknown(), self.heard);
        let live = self.at_mut(slot);
        live.catch_up(tick, (size, places));
        live.since = None;
        if places == 0 && unknown > 0 {
            (live.newest, live.newest_at) = (1, heard);
        }
        let (computed, known) = (live.computed, live.computed + places - unknown);
        self.steady.remove(computed);
        self.publish(slot, known);
    }

    /// A steady request is given up.
    pub(super) fn drop_steady(&mut self, slot: VllmSlot) {
        if self.at(slot).since.is_some() {
            self.leave(slot, 0);
            self.steady.ends.retain(|Reverse((.., other))| *other != slot);
            self.steady.wholes.retain(|Reverse((.., other))| *other != slot);
        }
    }

    /// No request is steady.
    fn scatter(&mut self) {
        for place in 0..self.running.len() {
            let slot = self.running[place];
            if self.at(slot).since.is_some() {
                self.leave(slot, 0);
            }
        }
        self.steady.ends.clear();
        self.steady.wholes.clear();
        self.steady.last = 0;
        let live = &self.live;
        let others = self.running.iter().copied();
        self.others = others.filter(|slot| live[*slot].as_ref().is_some_and(|one| !one.ended)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that become full are those that a count one by one finds, at any time.
    #[test]
    fn filled_blocks_are_those_of_single_requests() {
        let mut rng = fastrand::Rng::with_seed(5);
        for size in [1, 3, 16] {
            let (mut steady, mut single) = (SteadyDecoders::new(size), Vec::<u32>::new());
            for _ in 0..500 {
                match rng.u32(0..3) {
                    0 => {
                        single.push(rng.u32(1..100));
                        steady.add(single[single.len() - 1]);
                    }
                    1 if single.len() > 2 => steady.remove(single.swap_remove(0)),
                    _ => {
                        let tokens = rng.u32(1..40);
                        steady.advance(tokens);
                        single.iter_mut().for_each(|one| *one += tokens);
                    }
                }
                let (from, to) = (rng.u32(0..3), rng.u32(0..70));
                let full =
                    |one: &u32| (from..to).filter(|more| (one + more).is_multiple_of(size)).count() as u64;
                let filled: u64 = single.iter().map(full).sum();
                assert_eq!(steady.filled(from..to), filled, "{from} {to} of {size}");
                let all: u64 = single.iter().map(|one| u64::from(*one)).sum();
                assert_eq!(steady.kv_tokens(), all);
                assert_eq!(steady.count() as usize, single.len());
            }
        }
    }

    #[test]
    fn what_is_due_comes_in_order() {
        let mut due = DueSlots::from([(5, 2, 0), (3, 9, 1), (5, 1, 2)].map(Reverse));
        let popped = |due: &mut DueSlots, tick| std::iter::from_fn(|| pop(due, tick)).collect::<Vec<_>>();
        assert_eq!(popped(&mut due, 2), []);
        assert_eq!(popped(&mut due, 5), [(9, 1), (1, 2), (2, 0)]);
    }
}
