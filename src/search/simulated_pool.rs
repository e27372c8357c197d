//! A plan as the simulation of traffic takes it: the settings of its schedulers, and the times of its steps.

use std::sync::Arc;

use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::disaggregated::prompt_transfer;
use crate::serving::instance::Instance;
use crate::serving::iteration::{host_read, offloaded};
use crate::serving::mixed::{RankLoad, rank_step};
use crate::serving::residency::{CachedSequences, cache_per_sequence};
use crate::serving::stage_memory::InstanceMemory;
use crate::serving::step::{CostObserver, StepTime};
use crate::serving::terms::WorkloadTerms;
use crate::spec::runtime::{SchedulerPolicy, StepPolicy};
use crate::traffic::draft::DraftSettings;
use crate::traffic::engine::SchedulerSettings;
use crate::traffic::llamacpp::LlamacppSettings;
use crate::traffic::llamacpp::host_prompts::HostPromptSettings;
use crate::traffic::sglang::{SglangPolicy, SglangSettings};
use crate::traffic::step_load::{DeploymentClock, StepClock, StepLoad};
use crate::traffic::trtllm::{TrtllmCapacity, TrtllmSettings};
use crate::traffic::vllm::VllmSettings;

/// The scheduler of an attention rank, by the rules of its runtime and what the plan fixes.
#[derive(Clone, Debug)]
pub struct SchedulerInputs {
    /// How the runtime makes up its steps.
    pub policy: StepPolicy,
    /// Tokens that the KV cache of the rank holds.
    pub rank_tokens: u32,
    /// Tokens of a block of the KV cache.
    pub block_tokens: u32,
    /// New tokens in one step, at most.
    pub step_tokens: u32,
    /// Requests that run at a time, where the runtime fixes their number.
    pub max_sequences: Option<u32>,
    /// Requests of a rank at a time for which the plan starts its server.
    pub started_for: u32,
    /// Bytes of a token in the KV caches of all devices.
    pub token_bytes: u64,
    /// Attention ranks of a replica.
    pub ranks: u64,
    /// Tokens of a request, at most, where the model has such a limit.
    pub max_context: Option<u64>,
    /// Whether later prompts use the cached tokens of earlier ones.
    pub caches_prefixes: bool,
    /// The draft of speculative decoding, if any.
    pub draft: Option<DraftSettings>,
    /// Steps for which prompts wait for others, and the part of a step's tokens at which they wait no longer, where launch
    /// flags say so.
    pub held: Option<(u32, f64)>,
}

impl SchedulerInputs {
    /// Those of an instance that holds the caches of this phase, without a prefix cache or a draft, with `spilled` bytes
    /// of a device in host memory, started for `concurrency` requests at a time; `None` where its scheduler is not
    /// simulated.
    pub fn of(
        (instance, phase): (&Instance, Phase),
        machine: &Machine<Qty<f64>>,
        spilled: Option<Qty<f64>>,
        concurrency: u64,
    ) -> Option<SchedulerInputs> {
        let one = cache_per_sequence(&Plain, instance, phase, Qty::from(1.0), machine);
        Some(SchedulerInputs {
            policy: machine.policy?,
            rank_tokens: tokens(cache_tokens((instance, phase), machine, spilled)),
            block_tokens: machine.chip.block_tokens.value() as u32,
            step_tokens: machine.of(Phase::Prefill).chip.max_batched_tokens.value() as u32,
            max_sequences: machine.max_sequences.map(|most| most.value() as u32),
            started_for: tokens(concurrency.div_ceil(instance.plan.dp.max(1)).max(1)),
            token_bytes: (one.value() * instance.plan.devices() as f64) as u64,
            ranks: instance.plan.dp,
            max_context: instance.max_context,
            caches_prefixes: false,
            draft: None,
            // Ranks that wait for each other are not simulated.
            held: (machine.held.as_ref().filter(|_| !machine.ranks_wait_together(instance.plan.dp)))
                .map(|held| (held.steps.value() as u32, held.tokens_ratio.value())),
        })
    }

    /// The settings of its scheduler.
    pub fn settings(&self) -> SchedulerSettings {
        match self.policy.like {
            SchedulerPolicy::Vllm => SchedulerSettings::Vllm(self.vllm()),
            SchedulerPolicy::Sglang => SchedulerSettings::Sglang(self.sglang()),
            SchedulerPolicy::Trtllm => SchedulerSettings::Trtllm(self.trtllm()),
            SchedulerPolicy::Llamacpp => SchedulerSettings::Llamacpp(self.llamacpp()),
        }
    }

    /// Settings that the plan leaves open are the server's defaults: `SchedulerConfig`, vLLM 0.33.
    fn vllm(&self) -> VllmSettings {
        let block_tokens = self.block_tokens.max(1);
        VllmSettings {
            token_budget: self.step_tokens.max(1),
            max_sequences: self.max_sequences.unwrap_or(u32::MAX),
            blocks: self.rank_tokens / block_tokens,
            block_tokens,
            chunked_prefill: true,
            long_prompt_threshold: None,
            prefix_caching: self.caches_prefixes,
            whole_prompt_fits: true,
            reserved_blocks: 0,
            asynchronous: self.policy.asynchronous,
            draft: self.draft,
            prefill_interval: None,
        }
    }

    /// Settings that the plan leaves open are the server's defaults: `ServerArgs`, SGLang 0.5.23.
    fn sglang(&self) -> SglangSettings {
        let page_tokens = self.block_tokens.max(1);
        let cache_tokens = self.rank_tokens / page_tokens * page_tokens;
        let context_tokens = self.max_context.map_or(u32::MAX, tokens);
        // Of 512 contexts of the model, as many as the cache holds: kv_cache_configurator.py, from 2,048 to 4,096.
        let usual = (f64::from(cache_tokens) / f64::from(context_tokens) * 512.0) as u32;
        let most = self.max_sequences.unwrap_or(usual.clamp(2048, 4096)).min(cache_tokens / 2).max(1);
        SglangSettings {
            // max_prefill_tokens, and with attention data parallelism a conservativeness of 0.3 (parallel_hook.py).
            prefill_tokens: 16_384,
            chunk_tokens: Some(self.step_tokens.max(page_tokens) / page_tokens * page_tokens),
            max_requests: most,
            cache_tokens,
            page_tokens,
            context_tokens,
            policy: SglangPolicy::Fcfs,
            conservativeness: if self.ranks > 1 { 0.3 } else { 1.0 },
            prefix_caching: self.caches_prefixes,
            mixed_chunk: false,
            overlap: self.policy.asynchronous,
            output_limit: None,
            exact_output: false,
            prefill_requests: None,
            min_free_slots: None,
            decodes_after_prefill: 0,
            decodes_min_requests: 0,
            delayed_passes: None,
            receive_interval: self.held.map_or(1, |(steps, _)| steps.max(1)),
            draft: self.draft,
        }
    }

    /// Settings that the plan leaves open are the server's defaults: `TorchLlmArgs`, TensorRT-LLM 002f3cc. Prompts run in
    /// chunks, as the command of a plan says.
    fn trtllm(&self) -> TrtllmSettings {
        let block_tokens = self.block_tokens.max(1);
        TrtllmSettings {
            token_budget: self.step_tokens.max(block_tokens),
            max_requests: self.max_sequences.unwrap_or(2048),
            blocks: self.rank_tokens / block_tokens,
            block_tokens,
            capacity: TrtllmCapacity::GuaranteedNoEvict,
            chunked_prefill: true,
            block_reuse: self.caches_prefixes,
            partial_reuse: self.caches_prefixes,
            prefix_aware: true,
            overlap: self.policy.asynchronous,
            output_limit: None,
            wait_steps: self.held.map_or(0, |(steps, _)| steps),
            wait_tokens_ratio: self.held.map_or(0.0, |(_, ratio)| ratio),
            draft: self.draft,
        }
    }

    /// Settings that the plan leaves open are the server's defaults: hardware/options/llama.cpp-0c1e570.json. The command
    /// of a plan states the slots and the context, so that each slot has a KV cache of its own.
    fn llamacpp(&self) -> LlamacppSettings {
        let slots = self.max_sequences.unwrap_or(self.started_for).max(1);
        LlamacppSettings {
            slots,
            batch_tokens: self.step_tokens.max(1),
            // A slot does not pass the model's window (`n_ctx_slot`).
            context_tokens: (self.rank_tokens / slots).min(self.max_context.map_or(u32::MAX, tokens)),
            unified: false,
            joined: true,
            prefix_caching: true,
            similarity: 0.1,
            host_prompts: Some(HostPromptSettings {
                bytes: Some(8192 << 20),
                prompt_bytes: 0,
                token_bytes: self.token_bytes,
                idle_slots: true,
            }),
        }
    }
}

/// Tokens of a prompt by which the caches of its tokens are counted.
const LONG_PROMPT: f64 = 65_536.0;

/// The keys and values of a token.
#[derive(Clone, Copy, Debug)]
pub struct CachedToken {
    /// Bytes on all devices of an attention rank.
    pub bytes: f64,
    /// Seconds in which each device reads its part from host memory.
    pub link_s: f64,
}

/// Times of the steps of one replica, by the formulas of its instance.
#[derive(Clone, Debug)]
pub struct InstanceClock {
    /// The replica, which decodes and computes prompts.
    pub instance: Arc<Instance>,
    /// Its devices, under the runtime.
    pub machine: Machine<Qty<f64>>,
    /// The lengths, and the link to host memory.
    pub terms: WorkloadTerms<Qty<f64>>,
    /// Bytes of each device that are in host memory and that every step reads.
    pub streamed: Option<Qty<f64>>,
}

impl InstanceClock {
    /// The work and the time of the slowest of `ranks`, the attention ranks of the replica in one step; `None` where none
    /// has work. Steps of equal loads can be timed again on another machine.
    pub fn slowest(&self, ranks: &[StepLoad]) -> Option<(RankLoad<Qty<f64>>, f64)> {
        let timed = self.loads(ranks).into_iter().map(|load| (load, self.step(&load).1.value()));
        timed.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// The work of each attention rank of the replica in one step that has any.
    pub fn loads(&self, ranks: &[StepLoad]) -> Vec<RankLoad<Qty<f64>>> {
        let each: Vec<RankSums> = ranks.iter().map(RankSums::of).collect();
        let all = RankSums {
            decoding: each.iter().map(|rank| rank.decoding).sum(),
            new_tokens: each.iter().map(|rank| rank.new_tokens).sum(),
            ..RankSums::default()
        };
        let busy = each.iter().filter(|rank| rank.decoding + rank.prompts > 0.0);
        busy.map(|rank| rank.load(&all)).collect()
    }

    /// The keys and values of a token of a long prompt, with which states and windows no longer grow; `None` where no link
    /// to host memory is known.
    pub fn cached_token(&self, phase: Phase) -> Option<CachedToken> {
        let cache =
            |tokens: f64| cache_per_sequence(&Plain, &self.instance, phase, Qty::from(tokens), &self.machine);
        let one = (cache(LONG_PROMPT) - cache(0.0)) / Qty::from(LONG_PROMPT);
        let link_s = host_read(&self.terms, Some(one))?.value();
        let devices = (self.instance.plan.devices() / self.instance.plan.dp.max(1)) as f64;
        Some(CachedToken { bytes: one.value() * devices, link_s })
    }

    /// Layers of the longest pipeline stage.
    pub fn layers(&self) -> u64 {
        let stages = self.instance.kinds.iter();
        stages.map(|stage| stage.layers.iter().sum()).max().unwrap_or(1)
    }

    /// Seconds that a request takes from its client to the scheduler: HTTP, and the text made into tokens.
    pub fn front_end_s(&self) -> f64 {
        self.machine.chip.request_overhead.value()
    }

    /// One step of a rank, and the time until every request of it has its tokens.
    pub fn step(&self, load: &RankLoad<Qty<f64>>) -> (StepTime<Qty<f64>>, Qty<f64>) {
        self.observed(load, &mut ())
    }

    /// The same, whose costs `watch` sees.
    pub fn observed(
        &self,
        load: &RankLoad<Qty<f64>>,
        watch: &mut impl CostObserver<f64>,
    ) -> (StepTime<Qty<f64>>, Qty<f64>) {
        let (one, whole) = rank_step(&Plain, &self.instance, load, &self.machine, watch);
        let read = offloaded(&Plain, &self.instance, one, &self.terms, self.streamed);
        (read, whole + (read.total - one.total))
    }
}

impl StepClock for InstanceClock {
    fn seconds(&self, ranks: &[StepLoad]) -> f64 {
        self.slowest(ranks).map_or(0.0, |(_, seconds)| seconds)
    }
}

/// Times of all pools of a plan.
#[derive(Clone, Debug)]
pub struct PlanClock {
    /// By pool.
    pub pools: Vec<InstanceClock>,
    /// The tier of links over which KV caches go from one pool to another.
    pub kv_tier: usize,
}

impl DeploymentClock for PlanClock {
    type Steps = InstanceClock;

    fn of(&self, pool: usize) -> &InstanceClock {
        &self.pools[pool]
    }

    fn transfer_s(&self, from: usize, to: usize, tokens: u32) -> f64 {
        let [from, to] = [&self.pools[from], &self.pools[to]];
        let workers = [from.instance.as_ref(), to.instance.as_ref()];
        let joined = (&from.machine, self.kv_tier);
        prompt_transfer(&Plain, workers, Qty::from(f64::from(tokens)), joined).value()
    }
}

/// Sums over the requests of one step on one attention rank, or on all of a replica.
#[derive(Clone, Copy, Debug, Default)]
pub struct RankSums {
    /// Requests that get their next token.
    pub decoding: f64,
    /// Tokens that these have in the cache.
    pub kv_tokens: f64,
    /// Prompts, or parts of them.
    pub prompts: f64,
    /// Tokens of prompts that the step computes.
    pub new_tokens: f64,
    /// Pairs of one of these and a token before it.
    pub pairs: f64,
}

impl RankSums {
    /// Those of a batch.
    pub fn of(load: &StepLoad) -> RankSums {
        let chunks = load.prompts.iter().map(|one| (f64::from(one.new_tokens), f64::from(one.cached_tokens)));
        RankSums {
            decoding: f64::from(load.decoding),
            kv_tokens: load.kv_tokens as f64,
            prompts: load.prompts.len() as f64,
            new_tokens: chunks.clone().map(|(tokens, _)| tokens).sum(),
            pairs: chunks.map(|(tokens, cached)| pairs(tokens, cached)).sum(),
        }
    }

    /// The load of this rank among `all` ranks of the replica: equal requests of the mean lengths.
    pub fn load(&self, all: &RankSums) -> RankLoad<Qty<f64>> {
        let mean = |sum: f64, count: f64| Qty::from(if count > 0.0 { sum / count } else { 0.0 });
        let new_tokens = mean(self.new_tokens, self.prompts);
        RankLoad {
            decoding: Qty::from(self.decoding),
            cached: mean(self.kv_tokens, self.decoding),
            prompts: Qty::from(self.prompts),
            new_tokens,
            prompt_cached: (mean(self.pairs, self.new_tokens) - new_tokens / 2.0).max(Qty::from(0.0)),
            all_decoding: Qty::from(all.decoding),
            all_new_tokens: Qty::from(all.new_tokens),
        }
    }
}

/// Pairs of one of `tokens` new tokens and a token before it.
pub fn pairs(tokens: f64, cached: f64) -> f64 {
    tokens * (cached + tokens / 2.0)
}

/// A number of tokens, which limits keep far below the bound.
pub fn tokens(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Tokens that the KV cache of an attention rank holds, where `spilled` bytes of a device are in host memory.
pub fn cache_tokens(
    (instance, phase): (&Instance, Phase),
    machine: &Machine<Qty<f64>>,
    spilled: Option<Qty<f64>>,
) -> u64 {
    let one = CachedSequences::whole(Qty::from(1.0), Qty::from(1.0));
    let memory = InstanceMemory::of(&Plain, instance, phase, one, machine);
    memory.longest(&Plain, (instance, phase), one, machine, spilled).value().max(0.0) as u64
}
