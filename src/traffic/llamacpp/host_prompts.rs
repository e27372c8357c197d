//! Prompts that llama.cpp's server keeps in host memory: `server_prompt_cache` of tools/server/server-task.cpp.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::traffic::content::{TokenRun, common_prefix};

/// A prompt gives up no kept one of which it has less than this share.
const LEAST_KEPT: f32 = 0.25;

/// The memory of the host for prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostPromptSettings {
    /// Bytes, at most (`--cache-ram`); `None` where only the tokens are limited, to those of the KV cache.
    pub bytes: Option<u64>,
    /// Bytes of a prompt without its tokens.
    pub prompt_bytes: u64,
    /// Bytes of a token.
    pub token_bytes: u64,
    /// Whether slots without a request are copied there when a request starts (`--cache-idle-slots`); slots that share
    /// their KV cache are cleared then.
    pub idle_slots: bool,
}

/// Tokens of which keys and values are kept: those at the start of `runs`.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptTokens {
    pub(super) runs: Vec<TokenRun>,
    pub(super) tokens: u32,
}

impl KeptTokens {
    /// Those that a prompt of `tokens` tokens begins with.
    pub(super) fn common(&self, runs: &[TokenRun], tokens: u32) -> u32 {
        if self.tokens == 0 {
            return 0;
        }
        common_prefix(&self.runs, runs).min(self.tokens).min(tokens)
    }

    /// Its first ones alone.
    fn holds(&self, other: &KeptTokens) -> bool {
        self.common(&other.runs, other.tokens) == other.tokens
    }
}

/// The kept prompts, the oldest first.
pub(super) struct HostPrompts {
    settings: HostPromptSettings,
    /// Tokens of the KV cache.
    cells: u64,
    kept: VecDeque<KeptTokens>,
}

impl HostPrompts {
    pub(super) fn new(settings: HostPromptSettings, cells: u64) -> HostPrompts {
        HostPrompts { settings, cells, kept: VecDeque::new() }
    }

    pub(super) fn copies_idle_slots(&self) -> bool {
        self.settings.idle_slots
    }

    fn bytes_of(&self, prompt: &KeptTokens) -> u64 {
        self.settings.prompt_bytes + self.settings.token_bytes * u64::from(prompt.tokens)
    }

    fn bytes(&self) -> u64 {
        self.kept.iter().map(|one| self.bytes_of(one)).sum()
    }

    fn tokens(&self) -> u64 {
        self.kept.iter().map(|one| u64::from(one.tokens)).sum()
    }

    /// Copies a prompt, unless one that begins with it is kept, and gives up those that it begins with (`alloc`). The
    /// limit of tokens is left to `limit`.
    pub(super) fn save(&mut self, prompt: &KeptTokens) {
        if prompt.tokens == 0 || self.kept.iter().any(|one| one.holds(prompt)) {
            return;
        }
        let new = self.bytes_of(prompt);
        if self.settings.bytes.is_some_and(|most| new > most) {
            return;
        }
        self.kept.retain(|one| !prompt.holds(one));
        if let Some(most) = self.settings.bytes {
            while !self.kept.is_empty() && self.bytes() + new > most {
                self.kept.pop_front();
            }
        }
        self.kept.push_back(prompt.clone());
    }

    /// Gives up the oldest prompts while there are too many tokens (`update`); of numbers of 32 bits as there.
    pub(super) fn limit(&mut self) {
        if let Some(most) = self.settings.bytes {
            while !self.kept.is_empty() && self.bytes() > most {
                self.kept.pop_front();
            }
        }
        let token_bytes = (self.bytes() as f32 / self.tokens().max(1) as f32).max(1.0);
        let fitting = self.settings.bytes.map_or(0, |most| (most as f32 / token_bytes) as u64);
        let most = self.cells.max(fitting);
        while !self.kept.is_empty() && self.tokens() > most {
            self.kept.pop_front();
        }
    }

    /// The prompt that has more of a new one than a slot has, and of which the new one has more (`load`).
    pub(super) fn better(&self, slot: &KeptTokens, runs: &[TokenRun], tokens: u32) -> Option<usize> {
        let shares = |kept: &KeptTokens| {
            let common = kept.common(runs, tokens) as f32;
            (common / kept.tokens as f32, common / tokens as f32)
        };
        let (mut kept, mut found) = shares(slot);
        if slot.tokens == 0 {
            kept = -1.0;
        }
        let mut best = None;
        for (at, one) in self.kept.iter().enumerate() {
            let (of_kept, of_new) = shares(one);
            if of_kept >= LEAST_KEPT && of_kept > kept && of_new > found {
                (kept, found, best) = (of_kept, of_new, Some(at));
            }
        }
        best
    }

    pub(super) fn tokens_at(&self, at: usize) -> u32 {
        self.kept.get(at).map_or(0, |one| one.tokens)
    }

    pub(super) fn take(&mut self, at: usize) -> Option<KeptTokens> {
        self.kept.remove(at)
    }

    /// The most tokens that a prompt has in common with one of them.
    pub(super) fn most_common(&self, runs: &[TokenRun], tokens: u32) -> u32 {
        self.kept.iter().map(|one| one.common(runs, tokens)).max().unwrap_or(0)
    }
}
