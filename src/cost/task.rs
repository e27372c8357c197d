//! Cost of a task of the plan. This is the only place that maps operators to formulas.

use super::batch::Batch;
use super::collective::{CollectiveCost, cost_by_leg};
use super::cross::CrossAttentionShard;
use super::elementwise::Elementwise;
use super::experts::Experts;
use super::indexer::IndexerShard;
use super::latent::LatentAttentionShard;
use super::linear::Linear;
use super::machine::Machine;
use super::recurrence::{RecurrenceShard, ShortConv};
use super::roofline::Cost;
use super::rope::Rotation;
use crate::graph::operator::Operator;
use crate::graph::tensor::TensorRole;
use crate::plan::parallel::Phase;
use crate::plan::shard::{Elements, Task};
use crate::plan::sharding::TokenShare;
use crate::quantity::count::Count;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, FLOP, SECOND};

/// The cost components of a compute task.
struct OperatorShard<'a> {
    operator: &'a Operator,
    role: TensorRole,
    matrix: u64,
    vectors: u64,
    tokens: TokenShare,
    phase: Phase,
    /// Elements of the layer on this device.
    layer: &'a Elements,
}

/// Cost of a task; `leg` sees the tier and the cost of each leg of a collective. Collectives have no operations or device
/// bytes of their own.
#[inline(always)]
pub fn price<R: Reading>(
    read: &R,
    task: &Task,
    phase: Phase,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    layer: &Elements,
    leg: impl FnMut(usize, &CollectiveCost<Qty<R::N>>),
) -> Cost<Qty<R::N>> {
    match task {
        Task::Communicate(collective) => {
            let cost = cost_by_leg(read, collective, batch, machine, leg);
            let idle = Qty::literal(0.0 * SECOND);
            Cost {
                flops: Qty::literal(0.0 * FLOP),
                bytes: Qty::literal(0.0 * BYTE),
                wire: cost.wire,
                compute_time: idle,
                memory_time: idle,
                time: cost.time,
                roofline_time: cost.roofline_time,
            }
        }
        Task::Compute { operator, role, matrix, vectors, tokens } => {
            let share = OperatorShard {
                operator,
                role: *role,
                matrix: *matrix,
                vectors: *vectors,
                tokens: *tokens,
                phase,
                layer,
            };
            let cost = compute(read, &share, batch, machine);
            if machine.in_turn && phase == Phase::Decode { cost.in_turn() } else { cost }
        }
    }
}

/// Tokens of a device in one step.
#[inline(always)]
pub(super) fn tokens_here<R: Reading>(read: &R, share: TokenShare, batch: &Batch<Qty<R::N>>) -> Qty<R::N> {
    match share {
        TokenShare::Own => batch.tokens,
        TokenShare::Divided(ranks) => batch.tokens / read.count(Count::plan("tp", ranks)),
        TokenShare::Pooled(ranks) => batch.pooled(read.count(Count::plan("attention_ranks", ranks))),
    }
}

#[inline(always)]
fn compute<R: Reading>(
    read: &R,
    share: &OperatorShard,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
) -> Cost<Qty<R::N>> {
    let quantised = machine.quantised[share.role as usize];
    let of_decode = machine.decode_chip().filter(|_| share.phase == Phase::Decode);
    let chip = of_decode.as_ref().unwrap_or(&machine.chip);
    let n = |count: Count| read.count(count);
    let elements =
        |value| read.count(Count::derived("elements_here", value, "elements of this tensor on one device"));
    let (matrix, vectors) = (|| elements(share.matrix), || elements(share.vectors));
    let tokens = || tokens_here(read, share.tokens, batch);
    let linear = |matrix, tokens, input, output| {
        Linear { tokens, input: n(input), output: n(output), matrix }.cost(chip, quantised)
    };
    match *share.operator {
        Operator::Input { .. } | Operator::KvCache { .. } => Elementwise::nothing().cost(chip),
        Operator::Rope { heads, rotary, .. } => {
            Rotation { tokens: tokens(), heads: n(heads), rotary: n(rotary) }.cost(machine)
        }
        Operator::Softmax(scores) => scores.map(n).cost(batch, machine),
        Operator::Linear { input, output, .. } => linear(matrix(), tokens(), input, output),
        Operator::Router { hidden, experts, .. } => linear(matrix(), tokens(), hidden, experts),
        Operator::GroupedLinear { groups, input, output } => {
            linear(matrix(), tokens() * n(groups), input, output)
        }
        Operator::ShortConv { channels, kernel, form, .. } => {
            ShortConv { channels: n(channels), kernel: n(kernel), form, weights: vectors() }.cost(batch, chip)
        }
        Operator::Recurrence(dims) => {
            RecurrenceShard::of(read, dims, vectors(), share.phase).cost(batch, chip)
        }
        Operator::Attention(dims) => dims.map(n).cost(batch, chip),
        Operator::LatentAttention(dims) => {
            LatentAttentionShard::of(dims.map(n), matrix(), share.phase).cost(batch, chip, quantised)
        }
        Operator::CrossAttention(dims) => {
            CrossAttentionShard::of(dims.map(n), matrix(), share.phase).cost(batch, chip, quantised)
        }
        Operator::CompressedAttention(dims) => dims.map(n).cost(batch, chip),
        Operator::HyperConnection { hidden, streams, expands } => {
            let one = tokens() * n(hidden);
            Elementwise::hyper_connection(streams.value, one, n(streams), expands, vectors()).cost(chip)
        }
        Operator::Indexer { heads, head_dim, every, .. } => {
            IndexerShard { heads: n(heads), head_dim: n(head_dim), every: n(every) }.cost(batch, chip)
        }
        Operator::Experts(dims) => {
            Experts::of(read, &dims, || elements(share.layer[TensorRole::Expert as usize]))
                .cost(batch, chip, quantised)
        }
        Operator::Norm { width, rows, .. } => {
            Elementwise::norm(tokens() * n(rows) * n(width), vectors()).cost(chip)
        }
        Operator::Activation { width, gated } => {
            Elementwise::activation(tokens() * n(width), gated).cost(chip)
        }
        Operator::Add { width } => Elementwise::sum(tokens() * n(width)).cost(chip),
        Operator::Embedding { hidden, .. } => Elementwise::look_up(tokens() * n(hidden)).cost(chip),
        Operator::Sampling { vocab } => Elementwise::sampling(batch.sequences * n(vocab)).cost(chip),
    }
}
