//! Which requests there is memory for.

use std::collections::{HashMap, HashSet};

use super::memory::PrefixReuse;
use super::{TrtllmCapacity, TrtllmEngine, TrtllmPhase, TrtllmSlot};
use crate::traffic::block_pool::BlockId;

impl TrtllmEngine {
    /// The active requests that memory suffices for, in their order. Those that it no longer does for are preempted.
    pub(super) fn fitting(&mut self) -> Vec<TrtllmSlot> {
        self.blocked = false;
        let mut promised = self.promised();
        match self.settings.capacity {
            TrtllmCapacity::GuaranteedNoEvict => self.fitting_whole(&mut promised),
            TrtllmCapacity::MaxUtilization => self.fitting_step(&mut promised),
        }
    }

    fn is_prefix_aware(&self) -> bool {
        self.settings.prefix_aware && self.settings.block_reuse
    }

    /// Identities of the blocks that prompts under way will leave in the cache.
    fn promised(&self) -> HashSet<u64> {
        if !self.is_prefix_aware() {
            return HashSet::new();
        }
        self.started_prompts().into_iter().filter_map(|slot| self.next_block(slot)).collect()
    }

    /// The part of a new prompt in the cache; `Err` where it waits for one that computes its next block.
    fn look_up(&self, slot: TrtllmSlot, promised: &mut HashSet<u64>) -> Result<Option<PrefixReuse>, ()> {
        if !self.at(slot).is_first_chunk() {
            return Ok(None);
        }
        if !self.settings.prefix_aware || self.at(slot).request.received > 0 {
            return Ok(Some(PrefixReuse::default()));
        }
        if !self.settings.block_reuse {
            return Ok(None);
        }
        let found = self.prefix_reuse(slot);
        match found.new {
            Some(new) if !promised.insert(new) => Err(()),
            _ => Ok(Some(found)),
        }
    }

    /// Those that there is memory for up to their end.
    fn fitting_whole(&mut self, promised: &mut HashSet<u64>) -> Vec<TrtllmSlot> {
        let most = self.settings.max_requests as usize;
        let (mut fitting, mut pending) = (vec![], vec![]);
        let mut available = i64::from(self.pool.free());
        for at in 0..self.active.len() {
            if fitting.len() >= most {
                break;
            }
            let slot = self.active[at];
            if self.at(slot).phase == TrtllmPhase::Context {
                pending.push(slot);
            } else {
                fitting.push(slot);
                available -= i64::from(self.remaining_blocks(slot, None));
            }
        }
        let mut first = true;
        for slot in pending {
            let Ok(known) = self.look_up(slot, promised) else {
                first = false;
                continue;
            };
            if fitting.len() >= most {
                break;
            }
            let needed = i64::from(self.remaining_blocks(slot, known));
            if needed > available {
                self.blocked = first;
                break;
            }
            first = false;
            available -= needed;
            fitting.push(slot);
        }
        fitting
    }

    /// Those that there is memory for in the next step; the last that have blocks lose them where it is short.
    fn fitting_step(&mut self, promised: &mut HashSet<u64>) -> Vec<TrtllmSlot> {
        let most = self.settings.max_requests as usize;
        let (mut fitting, mut taken) = (vec![], 0);
        let mut free = self.pool.free();
        let mut users: HashMap<BlockId, u32> = HashMap::new();
        let (mut at, mut end) = (0, self.active.len());
        while at < end {
            let slot = self.active[at];
            let Ok(known) = self.look_up(slot, promised) else {
                at += 1;
                continue;
            };
            if fitting.len() < most {
                let needed = self.step_blocks(slot, known);
                if taken + needed <= free {
                    taken += needed;
                    fitting.push(slot);
                    at += 1;
                    continue;
                }
            }
            let started = |other: &usize| {
                let live = self.at(self.active[*other]);
                live.phase != TrtllmPhase::Context || !live.is_first_chunk()
            };
            let Some(last) = (at..end).rev().find(started) else { break };
            let victim = self.active[last];
            for block in &self.at(victim).blocks {
                let left = users.entry(*block).or_insert_with(|| self.pool.users(*block));
                *left -= 1;
                free += u32::from(*left == 0);
            }
            self.paused.push(victim);
            end = last;
        }
        fitting
    }
}
