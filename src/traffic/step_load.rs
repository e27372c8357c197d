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
    /// Tokens that these have in the cache, before the step.
    pub kv_tokens: u64,
    /// Prompts, or parts of them.
    pub prompts: Vec<PromptChunk>,
}

impl StepLoad {
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

impl<F: Fn(&[StepLoad]) -> f64> StepClock for F {
    fn seconds(&self, ranks: &[StepLoad]) -> f64 {
        self(ranks)
    }
}
