//! Which of the requests that fit a step takes, and what of their prompts it computes.

use super::{TrtllmBatch, TrtllmEngine, TrtllmPhase, TrtllmSlot};

/// New tokens of a step with `chunk` tokens of a prompt of which `remaining` are left and the first `cached` of these
/// are in the cache: that moves the part to be computed, and makes it shorter only at the end of the prompt.
fn computed(chunk: u32, cached: u32, remaining: u32) -> u32 {
    if cached == 0 || cached + chunk < remaining { chunk } else { remaining.saturating_sub(cached) }
}

impl TrtllmEngine {
    /// Tokens of a request's prompt that its next step is expected to find in the cache.
    fn expected(&self, slot: TrtllmSlot) -> u32 {
        let live = self.at(slot);
        if live.is_first_chunk() { live.estimate } else { 0 }
    }

    /// Makes up the batch of the requests `fitting`.
    pub(super) fn micro_batch(&mut self, fitting: &[TrtllmSlot]) {
        let (budget, chunked) = (self.settings.token_budget, self.settings.chunked_prefill);
        let mut batch = TrtllmBatch::default();
        let (mut tokens, mut prompts, mut all_fit) = (0u32, 0u64, true);
        let mut count = 0;
        for &slot in fitting {
            let live = self.at(slot);
            match live.phase {
                TrtllmPhase::ToComplete | TrtllmPhase::Complete => continue,
                TrtllmPhase::Generation => {
                    if tokens + self.step_tokens() > budget {
                        break;
                    }
                    batch.generation.push(slot);
                    tokens += self.step_tokens();
                }
                TrtllmPhase::Context if chunked => {
                    let remaining = live.remaining();
                    let new = computed(remaining, self.expected(slot), remaining);
                    all_fit &= new <= budget;
                    prompts += u64::from(new.min(budget));
                    self.at_mut(slot).chunk = remaining;
                    batch.context.push(slot);
                }
                TrtllmPhase::Context => {
                    let new = computed(live.known, self.expected(slot), live.remaining()).max(1);
                    // A preempted request may have more tokens than a step: there the server fails.
                    if tokens > 0 && tokens.saturating_add(new) > budget {
                        break;
                    }
                    batch.context.push(slot);
                    tokens = tokens.saturating_add(new);
                }
            }
            count += 1;
            if count >= self.settings.max_requests {
                break;
            }
        }
        all_fit &= prompts <= u64::from(budget.saturating_sub(tokens));
        if chunked && !all_fit {
            self.cut(&batch.context, budget.saturating_sub(tokens));
            batch.context.retain(|slot| self.at(*slot).chunk > 0);
        }
        self.batch = batch;
        self.order_prompts();
    }

    /// Shares `capacity` new tokens among prompts, in their order.
    fn cut(&mut self, prompts: &[TrtllmSlot], mut capacity: u32) {
        let (size, most) = (self.settings.block_tokens, self.settings.token_budget);
        for &slot in prompts {
            let remaining = self.at(slot).remaining();
            let cached = self.expected(slot).min(remaining);
            let mut chunk = remaining;
            if capacity < computed(chunk, cached, remaining) {
                chunk = capacity;
            }
            if computed(chunk, cached, remaining) > most {
                chunk = most.min(remaining);
            }
            if chunk < remaining {
                // A part of a prompt ends with a block.
                chunk = chunk / size * size;
            }
            self.at_mut(slot).chunk = chunk;
            capacity = capacity.saturating_sub(computed(chunk, cached, remaining));
        }
    }
}
