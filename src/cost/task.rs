//! Cost of a task of the plan. This is the only place that maps operators to formulas.

use super::attention::AttentionShard;
use super::batch::Batch;
use super::compressed::CompressedAttention;
use super::cross::CrossAttention;
use super::elementwise::{ACTIVATION_FLOPS, Elementwise, NORM_FLOPS, SAMPLING_FLOPS, hyper_connection};
use super::experts::Experts;
use super::indexer::IndexerShard;
use super::latent::LatentAttention;
use super::linear::Linear;
use super::machine::Machine;
use super::memory::element_bytes;
use super::recurrence::{Recurrence, ShortConv};
use super::roofline::Cost;
use crate::graph::mask::AttentionMask;
use crate::graph::operator::Operator;
use crate::graph::tensor::Role;
use crate::plan::parallel::Phase;
use crate::plan::shard::{Elements, Task};
use crate::quantity::count::Count;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, FLOP, SECOND};

/// The cost components of a compute task.
struct OperatorShard<'a> {
    operator: &'a Operator,
    role: Role,
    matrix: u64,
    vectors: u64,
    token_parts: u64,
}

/// Cost of a task. Collectives have no operations or device bytes of their own.
#[inline(always)]
pub fn price<R: Reading>(
    read: &R,
    task: &Task,
    phase: Phase,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    layer: &Elements,
) -> Cost<Qty<R::N>> {
    match task {
        Task::Communicate(collective) => {
            let (time, floor) = super::collective::cost(read, collective, batch, machine);
            let idle = Qty::literal(0.0 * SECOND);
            Cost {
                flops: Qty::literal(0.0 * FLOP),
                bytes: Qty::literal(0.0 * BYTE),
                compute_time: idle,
                memory_time: idle,
                time,
                roofline_time: floor,
            }
        }
        Task::Compute { operator, role, matrix, vectors, token_parts } => {
            let share = OperatorShard {
                operator,
                role: *role,
                matrix: *matrix,
                vectors: *vectors,
                token_parts: *token_parts,
            };
            compute(read, &share, phase, batch, machine, layer)
        }
    }
}

#[inline(always)]
fn compute<R: Reading>(
    read: &R,
    share: &OperatorShard,
    phase: Phase,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    layer: &Elements,
) -> Cost<Qty<R::N>> {
    let chip = &machine.chip;
    let n = |count: Count| read.count(count);
    let elements =
        |value| read.count(Count::derived("elements_here", value, "elements of this tensor on one device"));
    let quantised = machine.quantised[share.role as usize];
    let tokens = || match share.token_parts {
        1 => batch.tokens,
        parts => batch.tokens / n(Count::plan("tp", parts)),
    };
    let elementwise = |elements: Qty<R::N>, flops_per_element, moved, weights| {
        Elementwise { elements, flops_per_element, moved, weights }.cost(chip)
    };
    match *share.operator {
        Operator::Input { .. } => elementwise(Qty::from(0.0), 0.0, Qty::from(0.0), Qty::from(0.0)),
        Operator::Linear { input, output, .. } => {
            let matrix = elements(share.matrix);
            Linear { tokens: tokens(), input: n(input), output: n(output), matrix }.cost(chip, quantised)
        }
        Operator::Router { hidden, experts, .. } => {
            let matrix = elements(share.matrix);
            Linear { tokens: tokens(), input: n(hidden), output: n(experts), matrix }.cost(chip, quantised)
        }
        Operator::GroupedLinear { groups, input, output } => {
            let (groups, matrix) = (n(groups), elements(share.matrix));
            Linear { tokens: tokens() * groups, input: n(input), output: n(output), matrix }
                .cost(chip, quantised)
        }
        Operator::ShortConv { channels, kernel, form, .. } => {
            let weights = elements(share.vectors);
            ShortConv { channels: n(channels), kernel: n(kernel), form, weights }.cost(batch, chip)
        }
        Operator::Recurrence { rule, heads, key_heads, key_dim, value_dim, gates, chunk, state } => {
            Recurrence {
                rule,
                heads: n(heads),
                key_heads: n(key_heads),
                key_dim: n(key_dim),
                value_dim: n(value_dim),
                gates: n(gates),
                chunk: chunk.filter(|_| phase == Phase::Prefill && rule.chunks()).map(n),
                state_bytes: element_bytes(state, chip),
                weights: elements(share.vectors),
            }
            .cost(batch, chip)
        }
        Operator::Attention { heads, kv_heads, head_dim, v_head_dim, reach, shared } => AttentionShard {
            heads: n(heads),
            kv_heads: n(kv_heads),
            head_dim: n(head_dim),
            v_head_dim: n(v_head_dim),
            mask: reach.map(n),
            shared,
        }
        .cost(batch, chip),
        Operator::LatentAttention {
            heads,
            kv_lora_rank,
            qk_rope_head_dim,
            qk_nope_head_dim,
            v_head_dim,
            reach,
        } => {
            LatentAttention {
                heads: n(heads),
                kv_lora_rank: n(kv_lora_rank),
                qk_rope_head_dim: n(qk_rope_head_dim),
                qk_nope_head_dim: n(qk_nope_head_dim),
                v_head_dim: n(v_head_dim),
                matrix: elements(share.matrix),
                mask: reach.map(n),
                // Heads share a latent that was selected for one query only in the absorbed form.
                absorbed: phase == Phase::Decode || matches!(reach, AttentionMask::Selected(_)),
            }
            .cost(batch, chip, quantised)
        }
        Operator::CrossAttention { heads, kv_heads, head_dim, source, positions } => CrossAttention {
            heads: n(heads),
            kv_heads: n(kv_heads),
            head_dim: n(head_dim),
            source: n(source),
            positions: n(positions),
            matrix: elements(share.matrix),
            makes: phase == Phase::Prefill,
        }
        .cost(batch, chip, quantised),
        Operator::CompressedAttention { heads, head_dim, window, beyond } => CompressedAttention {
            heads: n(heads),
            head_dim: n(head_dim),
            window: n(window),
            beyond: beyond.map(|(every, reach)| (n(every), reach.map(n))),
        }
        .cost(batch, chip),
        Operator::HyperConnection { hidden, streams, expands } => {
            let one = tokens() * n(hidden);
            let all = one * n(streams);
            let (flops, moved) = hyper_connection(streams.value as f64, expands, one, all);
            elementwise(all, flops, moved, elements(share.vectors))
        }
        Operator::Indexer { heads, head_dim, every, .. } => {
            IndexerShard { heads: n(heads), head_dim: n(head_dim), every: n(every) }.cost(batch, chip)
        }
        Operator::Experts { .. } => {
            let experts = Experts::of(read, share.operator, layer[Role::Expert as usize]);
            experts.expect("guarded by the match arm").cost(batch, chip, quantised)
        }
        Operator::Norm { width, rows, .. } => {
            let all = tokens() * n(rows) * n(width);
            elementwise(all, NORM_FLOPS, 2.0 * all, elements(share.vectors))
        }
        Operator::Activation { width, gated } => {
            let all = tokens() * n(width);
            elementwise(all, ACTIVATION_FLOPS, all * if gated { 3.0 } else { 2.0 }, Qty::from(0.0))
        }
        Operator::Add { width } => {
            let all = tokens() * n(width);
            elementwise(all, 1.0, 2.0 * all, Qty::from(0.0))
        }
        Operator::Embedding { hidden, .. } => {
            let all = tokens() * n(hidden);
            elementwise(all, 0.0, all, all)
        }
        Operator::Sampling { vocab } => {
            let all = batch.sequences * n(vocab);
            // Logits are fp32, which equals two activation elements each.
            elementwise(all, SAMPLING_FLOPS, 2.0 * all, Qty::from(0.0))
        }
    }
}
