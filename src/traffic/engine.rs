//! The common part of all schedulers: requests come, steps are made up of them, tokens follow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache_tier::CacheTiers;
use super::content::{BlockIdentities, TokenRun};
use super::draft::DraftSettings;
use super::llamacpp::{LlamacppEngine, LlamacppSettings};
use super::sglang::{SglangEngine, SglangSettings};
use super::step_load::StepLoad;
use super::trtllm::{TrtllmEngine, TrtllmSettings};
use super::vllm::{VllmEngine, VllmSettings};

/// A request to the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineRequest {
    /// Its number in the run.
    pub id: u64,
    /// Its prompt, and the output that it will have, as runs of tokens.
    pub runs: Vec<TokenRun>,
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of the output.
    pub output: u32,
    /// Requests of one conversation have equal numbers: a router may send them to the same replica.
    pub session: u64,
    /// Tokens of the prompt whose keys and values another worker computed and sent: none, or all but the last.
    pub received: u32,
    /// Tokens from its start on that another request may begin with; those after them are its own.
    pub shared: u32,
}

impl EngineRequest {
    /// A request on its own.
    pub fn new(id: u64, runs: Vec<TokenRun>, prompt: u32, output: u32) -> EngineRequest {
        EngineRequest { id, runs, prompt, output, session: id, received: 0, shared: u32::MAX }
    }
}

/// An event in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EngineEvent {
    /// This many tokens of its prompt come from host memory, and from the store behind it, before it is admitted or in its
    /// first step; that takes this long.
    Loaded { host_tokens: u32, store_tokens: u32, seconds: f64 },
    /// It was admitted with this many tokens of its prompt in the cache.
    Admitted { cached_tokens: u32 },
    /// Its blocks were given to others; it waits again.
    Preempted,
    /// Its first token.
    FirstToken,
    /// Its last token.
    Finished,
    /// An error in place of its next token: there is no memory for it, and no other request gives it up.
    Failed,
}

/// How attention ranks take up prompts together: SGLang's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointPrompts {
    /// Passes after which ranks with prompts wait no more for those without (`--enable-prefill-delayer`,
    /// `PrefillDelayer`); none where they do not wait.
    pub most_passes: Option<u32>,
    /// Whether no rank decodes while another one computes prompts: with speculative decoding
    /// (`get_next_batch_to_run`: batches of both kinds are not processed in one group).
    pub alone: bool,
}

/// Kinds of work that the other attention ranks leave to a rank in the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankTurn {
    /// Whether it may begin prompts.
    pub new_prompts: bool,
    /// Whether it may decode.
    pub decodes: bool,
}

impl Default for RankTurn {
    fn default() -> RankTurn {
        RankTurn { new_prompts: true, decodes: true }
    }
}

/// Hears of events, with the number of the request.
pub type Note<'a> = &'a mut dyn FnMut(u64, EngineEvent);

/// The requests of one attention rank, with the scheduler that batches them.
pub trait SchedulerEngine {
    /// The time of what follows: loads from tiers of the cache start at `now_s`, and the scheduler has heard of those that
    /// ended by `heard_s`.
    fn set_time(&mut self, _now_s: f64, _heard_s: f64) {}
    /// When the next load from a tier ends that a waiting request needs, and of which the scheduler has not heard.
    fn next_load_s(&self) -> Option<f64> {
        None
    }
    /// Seconds of the step that was made up, which takes `step_s` without the loads that it waits for.
    fn with_loads(&self, step_s: f64) -> f64 {
        step_s
    }
    /// A request arrives.
    fn submit(&mut self, request: EngineRequest);
    /// A client gives up a request, between two steps: it gives back its slot and its cache when the runtime does so.
    /// Returns the tokens of its output so far; `None` where it has ended.
    fn abort(&mut self, id: u64) -> Option<u32>;
    /// Whether it has no request.
    fn is_idle(&self) -> bool;
    /// Requests that run, and that wait.
    fn queued(&self) -> (usize, usize);
    /// Tokens that the cache holds.
    fn cache(&self) -> u64;
    /// Those that requests use, in whole blocks.
    fn cache_used(&self) -> u64;
    /// Tokens of the prompt of a request that comes that are in the cache. `identities` are those of its blocks, for all
    /// engines that are tried.
    fn found(&self, request: &EngineRequest, identities: &mut BlockIdentities) -> u32;
    /// Whether the cache can hold the request at its end.
    fn can_ever_hold(&self, request: &EngineRequest) -> bool;
    /// Whether a prompt waits that the next step could take; of schedulers whose ranks wait for each other.
    fn has_waiting_prompt(&self) -> bool {
        false
    }
    /// Whether the next step goes on with a prompt; of the same.
    fn has_begun_prompt(&self) -> bool {
        false
    }
    /// The work that the next choice may take; of the same.
    fn restrict(&mut self, _turn: RankTurn) {}
    /// Chooses the requests of the next step, with what the scheduler knows. `note` hears of admissions and
    /// preemptions; also of the tokens of the step before, where a preemption may yet lose them.
    fn choose(&mut self, note: Note<'_>);
    /// The scheduler hears of the step before: what has ended gives back its slot and its cache.
    fn settle(&mut self);
    /// The batch of the step that was made up last; empty where the scheduler waits for what runs.
    fn load(&self) -> &StepLoad;
    /// The same by requests, with their new tokens, in the order of the scheduler.
    #[cfg(feature = "internals")]
    fn batch(&self) -> Vec<(u64, u32)>;
    /// The number of steps from that one on that have the same requests, each with one token more, as long as no request
    /// arrives.
    fn equal_steps(&self) -> u32;
    /// That step, and `steps - 1` equal ones after it, are computed. `note` hears of first and last tokens, if not
    /// in the next choice.
    fn complete(&mut self, steps: u32, note: Note<'_>);
    /// The scheduler goes round this often while it has nothing to compute and another attention rank computes.
    fn go_round(&mut self, _rounds: u32) {}
    /// The tokens of output that each request is yet to get, after the scheduler has heard of the step before.
    fn lacking(&self, hear: &mut dyn FnMut(u64, u32));
}

/// Puts a request into the slab of an engine, into a vacant slot where there is one, and returns its slot.
pub(super) fn placed<T>(live: &mut Vec<Option<T>>, vacant: &mut Vec<usize>, one: T) -> usize {
    if let Some(slot) = vacant.pop() {
        live[slot] = Some(one);
        return slot;
    }
    live.push(Some(one));
    live.len() - 1
}

/// The most steps, of 1 to `ends`, that fit; one always does, and more never fit where fewer do not.
pub(super) fn most_steps(ends: u32, fit: impl Fn(u32) -> bool) -> u32 {
    let (mut fits, mut short) = (1, ends + 1);
    while short - fits > 1 {
        let middle = fits + (short - fits) / 2;
        if fit(middle) { fits = middle } else { short = middle }
    }
    fits
}

/// The settings of a scheduler, by runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "runtime", rename_all = "snake_case")]
pub enum SchedulerSettings {
    /// vLLM's.
    Vllm(VllmSettings),
    /// SGLang's.
    Sglang(SglangSettings),
    /// TensorRT-LLM's.
    Trtllm(TrtllmSettings),
    /// That of llama.cpp's server.
    Llamacpp(LlamacppSettings),
}

impl SchedulerSettings {
    /// An engine without requests.
    pub fn engine(&self) -> Box<dyn SchedulerEngine + Send> {
        match self {
            SchedulerSettings::Vllm(settings) => Box::new(VllmEngine::new(settings.clone())),
            SchedulerSettings::Sglang(settings) => Box::new(SglangEngine::new(settings.clone())),
            SchedulerSettings::Trtllm(settings) => Box::new(TrtllmEngine::new(settings.clone())),
            SchedulerSettings::Llamacpp(settings) => Box::new(LlamacppEngine::new(settings.clone())),
        }
    }

    /// The same, with tiers of the cache behind that of its devices, where its scheduler has any.
    pub fn tiered_engine(&self, tiers: Option<CacheTiers>) -> Box<dyn SchedulerEngine + Send> {
        let Some(tiers) = tiers else { return self.engine() };
        match self {
            SchedulerSettings::Vllm(of) => Box::new(VllmEngine::new(of.clone()).tiered(tiers)),
            SchedulerSettings::Sglang(of) => Box::new(SglangEngine::new(of.clone()).tiered(tiers)),
            SchedulerSettings::Trtllm(of) => Box::new(TrtllmEngine::new(of.clone()).tiered(tiers)),
            SchedulerSettings::Llamacpp(_) => self.engine(),
        }
    }

    /// Tokens of a block of the cache.
    pub fn block_tokens(&self) -> u32 {
        match self {
            SchedulerSettings::Vllm(settings) => settings.block_tokens,
            SchedulerSettings::Sglang(settings) => settings.page_tokens,
            SchedulerSettings::Trtllm(settings) => settings.block_tokens,
            SchedulerSettings::Llamacpp(_) => 1,
        }
    }

    /// Tokens of the units in which later prompts find those of earlier ones.
    pub fn reused_tokens(&self) -> u32 {
        match self {
            SchedulerSettings::Trtllm(settings) if settings.partial_reuse => 1,
            other => other.block_tokens(),
        }
    }

    /// Whether a worker that decodes takes the first token from the worker that computed the prompt. vLLM's computes the
    /// prompt's last token once more instead (`_update_waiting_for_remote_kv`).
    pub fn takes_first_token(&self) -> bool {
        !matches!(self, SchedulerSettings::Vllm(_))
    }

    /// The draft of speculative decoding, if any.
    pub fn draft(&self) -> Option<DraftSettings> {
        match self {
            SchedulerSettings::Vllm(settings) => settings.draft,
            SchedulerSettings::Sglang(settings) => settings.draft,
            SchedulerSettings::Trtllm(settings) => settings.draft,
            SchedulerSettings::Llamacpp(_) => None,
        }
    }

    /// The rule by which attention ranks take up prompts together, if there is one.
    pub fn joint_prompts(&self) -> Option<JointPrompts> {
        match self {
            SchedulerSettings::Sglang(settings) => {
                Some(JointPrompts { most_passes: settings.delayed_passes, alone: settings.draft.is_some() })
            }
            _ => None,
        }
    }

    /// Whether an idle scheduler takes all requests of one moment into its first step: llama.cpp's server empties its queue
    /// of tasks before it makes up a batch (`server_queue::start_loop`). The others have a front end that hands over one
    /// request after another, and begin with the first.
    pub fn empties_queue(&self) -> bool {
        matches!(self, SchedulerSettings::Llamacpp(_))
    }

    /// Whether a step is made up while the one before it runs.
    pub fn is_asynchronous(&self) -> bool {
        match self {
            SchedulerSettings::Vllm(settings) => settings.asynchronous,
            SchedulerSettings::Sglang(settings) => settings.overlap,
            SchedulerSettings::Trtllm(settings) => settings.overlap,
            SchedulerSettings::Llamacpp(_) => false,
        }
    }
}
