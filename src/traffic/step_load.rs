//! The work of a step, and its time.

/// The part of a prompt that one step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptChunk {
    /// Tokens that it computes.
    pub new_tokens: u32,
    /// Tokens of the same request that are in the cache already.
    pub cached_tokens: u32,
}

/// The batch of one attention rank in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepLoad {
    /// Requests that get their next token.
    pub decoding: u32,
    /// Of these, requests that have ended, which the scheduler does not know: they get none.
    pub ended: u32,
    /// Tokens of a draft that these get on top.
    pub accepted: u32,
    /// Tokens that these have in the cache, before the step.
    pub kv_tokens: u64,
    /// Prompts, or parts of them.
    pub prompts: Vec<PromptChunk>,
}

impl StepLoad {
    /// Becomes equal to `other`, in the same memory.
    pub fn copy(&mut self, other: &StepLoad) {
        let StepLoad { decoding, ended, accepted, kv_tokens, ref prompts } = *other;
        (self.decoding, self.ended, self.accepted, self.kv_tokens) = (decoding, ended, accepted, kv_tokens);
        self.prompts.clone_from(prompts);
    }

    /// Whether the rank has nothing to compute.
    pub fn is_empty(&self) -> bool {
        self.decoding == 0 && self.prompts.is_empty()
    }
}

/// Times of steps.
pub trait StepClock {
    /// Seconds from the start of a step to its tokens. The attention ranks of a replica take their steps together.
    fn seconds(&self, ranks: &[StepLoad]) -> f64;

    /// That many steps have been taken from `start_s` to `end_s`, the first with these loads, each later one with one
    /// token more of every request that decodes.
    fn taken(&self, _start_s: f64, _end_s: f64, _steps: u32, _ranks: &[StepLoad]) {}
}

/// Times in a deployment.
pub trait DeploymentClock {
    /// Those of the steps of a replica.
    type Steps: StepClock;

    /// Times of the steps of a replica of this pool.
    fn of(&self, pool: usize) -> &Self::Steps;

    /// Seconds that the KV cache of a prompt of `tokens` tokens takes from an attention rank of pool `from` to one of
    /// pool `to`, alone on their links.
    fn transfer_s(&self, from: usize, to: usize, tokens: u32) -> f64;
}

/// Equal pools whose caches are sent at once.
impl<C: StepClock> DeploymentClock for C {
    type Steps = C;

    fn of(&self, _pool: usize) -> &C {
        self
    }

    fn transfer_s(&self, _from: usize, _to: usize, _tokens: u32) -> f64 {
        0.0
    }
}

impl<F: Fn(&[StepLoad]) -> f64> StepClock for F {
    fn seconds(&self, ranks: &[StepLoad]) -> f64 {
        self(ranks)
    }
}
