//! Shards one block in execution order: local dimensions, local weights, and collectives between mismatched shardings.
//! Each block is independent of the others.

use petgraph::Direction;
use petgraph::graph::NodeIndex;

use super::collective::{Collective, CollectiveOp, Tokens};
use super::group::{RankGroup, TierShape};
use super::parallel::{ParallelPlan, Phase};
use super::shard::{Elements, ROLES, ShardedBlock, Task, TaskStep};
use super::sharding::{Sharding, collective_op, output, result_width};
use crate::graph::model::Block;
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::Role;
use crate::quantity::count::Count;

/// Sharding of an operator's result, and the number of ranks.
#[derive(Clone, Copy)]
struct TensorLayout {
    sharding: Sharding,
    parts: u64,
}

const WHOLE: TensorLayout = TensorLayout { sharding: Sharding::Replicate, parts: 1 };

pub(super) struct BlockSharder<'a> {
    plan: ParallelPlan,
    phase: Phase,
    tiers: &'a [TierShape],
    block: &'a Block,
    kv_parts: u64,
    layouts: Vec<TensorLayout>,
    steps: Vec<TaskStep>,
    weights: Elements,
}

impl<'a> BlockSharder<'a> {
    pub(super) fn new(plan: ParallelPlan, phase: Phase, tiers: &'a [TierShape], block: &'a Block) -> Self {
        let kv_heads = block.graph.node_weights().find_map(|node| match node.operator {
            Operator::Attention { kv_heads, .. } | Operator::CrossAttention { kv_heads, .. } => {
                Some(kv_heads.value)
            }
            _ => None,
        });
        let kv_parts = kv_heads.map_or(1, |kv_heads| plan.tp.min(kv_heads));
        let lays = vec![WHOLE; block.graph.node_count()];
        BlockSharder {
            plan,
            phase,
            tiers,
            block,
            kv_parts,
            layouts: lays,
            steps: vec![],
            weights: [0; ROLES],
        }
    }

    /// Sequence parallelism is used only where there are tokens to divide.
    fn sequence_parallel(&self) -> bool {
        self.plan.sp && self.plan.tp > 1 && self.phase == Phase::Prefill && !self.block.layers.is_empty()
    }

    /// Ranks with the same tokens: tensor-parallel ranks, and in decode also context-parallel ones.
    fn copies(&self) -> u64 {
        if self.phase == Phase::Decode { self.plan.tp * self.plan.cp } else { self.plan.tp }
    }

    pub(super) fn run(mut self) -> ShardedBlock {
        for &node in &self.block.order {
            self.place(node);
        }
        let last = self.block.order.last().map(|&node| (node, self.layouts[node.index()]));
        if let Some((node, TensorLayout { sharding: Sharding::Partial, parts })) = last {
            let width = result_width(&self.block.graph[node].operator);
            self.communicate("all_reduce", CollectiveOp::AllReduce, parts, width);
        }
        let layers = Count::derived("layers", self.block.layers.len().max(1) as u64, "layers of this kind");
        let caches = self.block.caches.iter().map(|cache| cache.local(self.plan.tp)).collect();
        let (name, steps, weights) = (self.block.name, self.steps, self.weights);
        ShardedBlock { name, layers, steps, weights, caches, encoder: false }
    }

    fn place(&mut self, node: NodeIndex) {
        let operator = &self.block.graph[node].operator;
        if let Operator::Add { width } = *operator {
            return self.add(node, width);
        }
        let input = self.input_of(node);
        if let Some(kind) = collective_op(operator, input.sharding) {
            self.gather(node, kind, input);
        }
        let input = self.input_of(node);
        if let Operator::Experts { hidden, top_k, .. } = *operator {
            return self.experts(node, hidden, top_k);
        }
        let local = self.local(operator, input);
        let mut lay =
            TensorLayout { sharding: output(operator, input.sharding), parts: self.parts(operator, input) };
        if lay.parts == 1 {
            lay = WHOLE;
        }
        if matches!(operator, Operator::Input { .. }) && self.sequence_parallel() {
            lay = TensorLayout { sharding: Sharding::Tokens, parts: self.plan.tp };
        }
        self.compute(node, local, if lay.sharding == Sharding::Tokens { lay.parts } else { 1 });
        self.layouts[node.index()] = lay;
        self.context_parallel(operator);
    }

    /// Sharding of the input. The first edge is enough, since all inputs of an operator have the same sharding.
    fn input_of(&self, node: NodeIndex) -> TensorLayout {
        let inputs = self.block.graph.neighbors_directed(node, Direction::Incoming);
        let sharded = |lay: &TensorLayout| lay.sharding != Sharding::Replicate;
        let lays: Vec<TensorLayout> = inputs.map(|input| self.layouts[input.index()]).collect();
        lays.iter().find(|lay| sharded(lay)).or(lays.first()).copied().unwrap_or(WHOLE)
    }

    /// Gathers the inputs of `node`. Later consumers find them gathered.
    fn gather(&mut self, node: NodeIndex, kind: CollectiveOp, input: TensorLayout) {
        let norm = matches!(self.block.graph[node].operator, Operator::Norm { split: Split::Replicate, .. });
        if norm && input.sharding == Sharding::Shard {
            let width =
                Count::derived("statistics_per_token", 2, "a sum of squares in fp32, in 2-byte elements");
            return self.communicate("norm_all_reduce", kind, input.parts, width);
        }
        let sources: Vec<_> = self.block.graph.neighbors_directed(node, Direction::Incoming).collect();
        // A norm on the output of a mixer or network (sandwich and post-norm layers) works on sequence-parallel tokens
        // too.
        let scatter = norm && input.sharding == Sharding::Partial && self.sequence_parallel();
        for source in sources {
            if scatter {
                let width = result_width(&self.block.graph[source].operator);
                self.communicate("reduce_scatter", CollectiveOp::ReduceScatter, input.parts, width);
                self.layouts[source.index()] =
                    TensorLayout { sharding: Sharding::Tokens, parts: self.plan.tp };
            } else if self.layouts[source.index()].sharding != Sharding::Replicate {
                let width = result_width(&self.block.graph[source].operator);
                let name = if kind == CollectiveOp::AllGather { "all_gather" } else { "all_reduce" };
                self.communicate(name, kind, input.parts, width);
                self.layouts[source.index()] = WHOLE;
            }
        }
    }

    fn parts(&self, operator: &Operator, input: TensorLayout) -> u64 {
        let by = |split: Split| match split {
            Split::Column | Split::Row | Split::Heads | Split::Vocab => self.plan.tp,
            Split::KvHeads => {
                if self.kv_parts > 1 {
                    self.plan.tp
                } else {
                    1
                }
            }
            Split::Replicate => 1,
        };
        match operator {
            Operator::Linear { split, .. }
            | Operator::Embedding { split, .. }
            | Operator::ShortConv { split, .. } => by(*split),
            Operator::Attention { .. }
            | Operator::LatentAttention { .. }
            | Operator::CrossAttention { .. }
            | Operator::CompressedAttention { .. }
            | Operator::GroupedLinear { .. }
            | Operator::Recurrence { .. } => self.plan.tp,
            _ => input.parts,
        }
    }

    fn local(&self, operator: &Operator, input: TensorLayout) -> Operator {
        let tp = self.plan.tp;
        let ways = |split: Split| if split == Split::KvHeads { self.kv_parts } else { tp };
        match operator.clone() {
            Operator::Linear { input, output, split } => match split {
                Split::Replicate => Operator::Linear { input, output, split },
                Split::Row => Operator::Linear { input: input.split(tp), output, split },
                _ => Operator::Linear { input, output: output.split(ways(split)), split },
            },
            Operator::Embedding { vocab, hidden, split: Split::Vocab } => {
                Operator::Embedding { vocab: vocab.split(tp), hidden, split: Split::Vocab }
            }
            Operator::Norm { width, rows, split: Split::Replicate } if input.sharding == Sharding::Shard => {
                Operator::Norm { width: width.split(input.parts), rows, split: Split::Replicate }
            }
            Operator::Norm { width, rows, split } if split != Split::Replicate => {
                Operator::Norm { width, rows: rows.split(ways(split)), split }
            }
            Operator::Attention { heads, kv_heads, head_dim, v_head_dim, reach, shared } => {
                let (heads, kv_heads) = (heads.split(tp), kv_heads.split(self.kv_parts));
                Operator::Attention { heads, kv_heads, head_dim, v_head_dim, reach, shared }
            }
            Operator::CrossAttention { heads, kv_heads, head_dim, source, positions } => {
                let (heads, kv_heads) = (heads.split(tp), kv_heads.split(self.kv_parts));
                Operator::CrossAttention { heads, kv_heads, head_dim, source, positions }
            }
            Operator::LatentAttention {
                heads,
                kv_lora_rank,
                qk_rope_head_dim,
                qk_nope_head_dim,
                v_head_dim,
                reach,
            } => {
                let heads = heads.split(tp);
                Operator::LatentAttention {
                    heads,
                    kv_lora_rank,
                    qk_rope_head_dim,
                    qk_nope_head_dim,
                    v_head_dim,
                    reach,
                }
            }
            Operator::CompressedAttention { heads, head_dim, window, beyond } => {
                Operator::CompressedAttention { heads: heads.split(tp), head_dim, window, beyond }
            }
            Operator::GroupedLinear { groups, input, output } => {
                Operator::GroupedLinear { groups: groups.split(tp), input, output }
            }
            Operator::ShortConv { channels, kernel, form, split } if split != Split::Replicate => {
                Operator::ShortConv { channels: channels.split(tp), kernel, form, split }
            }
            Operator::Recurrence { rule, heads, key_heads, key_dim, value_dim, gates, chunk, state } => {
                let (heads, key_heads) = (heads.split(tp), key_heads.split(tp.min(key_heads.value)));
                Operator::Recurrence { rule, heads, key_heads, key_dim, value_dim, gates, chunk, state }
            }
            Operator::Activation { width, gated } => {
                let parts = if input.sharding == Sharding::Shard { input.parts } else { 1 };
                Operator::Activation { width: width.split(parts), gated }
            }
            Operator::Experts { hidden, experts, top_k, intermediate, gated } => Operator::Experts {
                hidden,
                experts: experts.split(self.plan.ep),
                top_k,
                intermediate: intermediate.split(self.plan.moe_tp),
                gated,
            },
            whole => whole,
        }
    }

    /// Routed experts: where ranks hold different tokens, these are sent to the experts and back.
    fn experts(&mut self, node: NodeIndex, hidden: Count, top_k: Count) {
        let ranks = self.plan.stage_devices();
        let local = self.local(&self.block.graph[node].operator, WHOLE);
        let copies = self.copies();
        if ranks == copies {
            self.compute(node, local, 1);
            let sharding = if ranks > 1 { Sharding::Partial } else { Sharding::Replicate };
            self.layouts[node.index()] = TensorLayout { sharding, parts: ranks };
            return;
        }
        let tokens = Tokens::Dispatched { tp: copies, top_k, ep: self.plan.ep };
        let width = Count { value: hidden.value * self.plan.moe_tp, ..hidden };
        let group = RankGroup::place(ranks, 1, self.tiers);
        let travel = |kind| {
            group.map(|group| Task::Communicate(Collective::new(kind, group, width, tokens, self.tiers)))
        };
        self.steps.extend(travel(CollectiveOp::AllToAll).map(|task| TaskStep { name: "dispatch", task }));
        self.compute(node, local, 1);
        self.steps.extend(travel(CollectiveOp::AllToAll).map(|task| TaskStep { name: "combine", task }));
        let sharding = if copies > 1 { Sharding::Tokens } else { Sharding::Replicate };
        self.layouts[node.index()] = TensorLayout { sharding, parts: copies };
    }

    fn add(&mut self, node: NodeIndex, width: Count) {
        let sources: Vec<_> = self.block.graph.neighbors_directed(node, Direction::Incoming).collect();
        let mut partial: Vec<u64> = Vec::new();
        let mut gather = None;
        for source in sources {
            match self.layouts[source.index()] {
                TensorLayout { sharding: Sharding::Partial, parts } if !partial.contains(&parts) => {
                    partial.push(parts)
                }
                TensorLayout { sharding: Sharding::Tokens, parts } if !self.sequence_parallel() => {
                    gather = Some(parts)
                }
                _ => {}
            }
        }
        for parts in partial {
            let reduce =
                if self.sequence_parallel() { CollectiveOp::ReduceScatter } else { CollectiveOp::AllReduce };
            let name = if self.sequence_parallel() { "reduce_scatter" } else { "all_reduce" };
            self.communicate(name, reduce, parts, width);
        }
        if let Some(parts) = gather {
            self.communicate("all_gather", CollectiveOp::AllGather, parts, width);
        }
        let sequence = self.sequence_parallel();
        let parts = if sequence { self.plan.tp } else { 1 };
        self.compute(node, Operator::Add { width }, parts);
        self.layouts[node.index()] =
            if sequence { TensorLayout { sharding: Sharding::Tokens, parts } } else { WHOLE };
    }

    /// Context parallelism: in prefill, ranks read the keys and values of each other; in decode, ranks merge results.
    fn context_parallel(&mut self, operator: &Operator) {
        let (heads, width, keys) = match *operator {
            Operator::Attention { heads, kv_heads, head_dim, v_head_dim, .. } => {
                let kv = kv_heads.split(self.kv_parts).value * (head_dim.value + v_head_dim.value);
                (
                    heads,
                    v_head_dim,
                    Count::derived("kv_width", kv, "KV heads per device × (head_dim + v_head_dim)"),
                )
            }
            Operator::LatentAttention { heads, kv_lora_rank, qk_rope_head_dim, .. } => {
                let kv = kv_lora_rank.value + qk_rope_head_dim.value;
                (heads, kv_lora_rank, Count::derived("kv_width", kv, "kv_lora_rank + qk_rope_head_dim"))
            }
            _ => return,
        };
        let Some(group) = RankGroup::place(self.plan.cp, self.plan.tp, self.tiers) else { return };
        let (name, collective) = match self.phase {
            Phase::Prefill => {
                let ring =
                    Collective::new(CollectiveOp::AllGather, group, keys, Tokens::KeysValues, self.tiers);
                ("ring_kv", Collective { overlaps: true, ..ring })
            }
            Phase::Decode => {
                let merged = heads.split(self.plan.tp).value * (width.value + 4);
                let width = Count::derived(
                    "merged_width",
                    merged,
                    "heads per device × (value width + max and sum in fp32)",
                );
                (
                    "merge_heads",
                    Collective::new(CollectiveOp::AllReduce, group, width, Tokens::Rank, self.tiers),
                )
            }
        };
        self.steps.push(TaskStep { name, task: Task::Communicate(collective) });
    }

    fn communicate(&mut self, name: &'static str, kind: CollectiveOp, parts: u64, width: Count) {
        if let Some(group) = RankGroup::place(parts, 1, self.tiers) {
            let collective = Collective::new(kind, group, width, Tokens::Rank, self.tiers);
            self.steps.push(TaskStep { name, task: Task::Communicate(collective) });
        }
    }

    fn compute(&mut self, node: NodeIndex, operator: Operator, token_parts: u64) {
        let whole = &self.block.graph[node];
        let (mut matrix, mut vectors, mut role) = (0, 0, Role::Norm);
        for weight in &whole.weights {
            let here = self.share(&whole.operator, weight.elements(), weight.role, weight.shape.len());
            self.weights[weight.role as usize] += here;
            match weight.role {
                Role::Bias | Role::Norm | Role::Sink | Role::Recurrence => vectors += here,
                matrix_role => {
                    matrix += here;
                    role = matrix_role;
                }
            }
        }
        // A tied head stores nothing but still reads the whole vocabulary.
        if let Operator::Linear { input, output, split: Split::Vocab } = operator {
            (matrix, role) = (input.value * output.value, Role::LmHead);
        }
        if !matches!(operator, Operator::Input { .. }) {
            let task = Task::Compute { operator, role, matrix, vectors, token_parts };
            self.steps.push(TaskStep { name: whole.name, task });
        }
    }

    /// Elements of a weight on one device.
    fn share(&self, operator: &Operator, elements: u64, role: Role, rank: usize) -> u64 {
        let tp = self.plan.tp;
        match operator {
            Operator::Linear { input, output, split } => match split {
                Split::Replicate => elements,
                Split::Row if role == Role::Bias => elements,
                Split::Row | Split::Column | Split::Heads => elements.div_ceil(tp),
                Split::KvHeads => elements.div_ceil(self.kv_parts),
                Split::Vocab if rank < 2 => output.value.div_ceil(tp),
                Split::Vocab => input.value * output.value.div_ceil(tp),
            },
            Operator::Embedding { vocab, hidden, split: Split::Vocab } => {
                vocab.value.div_ceil(tp) * hidden.value
            }
            Operator::Attention { .. } | Operator::LatentAttention { .. } => elements.div_ceil(tp),
            Operator::CompressedAttention { .. } => elements.div_ceil(tp),
            Operator::GroupedLinear { .. } | Operator::Recurrence { .. } => elements.div_ceil(tp),
            Operator::ShortConv { split, .. } if *split != Split::Replicate => elements.div_ceil(tp),
            Operator::CrossAttention { .. } if role == Role::Attention => elements.div_ceil(self.kv_parts),
            Operator::Experts { .. } => elements.div_ceil(self.plan.ep * self.plan.moe_tp),
            // A per-head scale is sharded with its head.
            Operator::Norm { split: Split::Heads, .. } if rank == 2 => elements.div_ceil(tp),
            Operator::Norm { split: Split::KvHeads, .. } if rank == 2 => elements.div_ceil(self.kv_parts),
            _ => elements,
        }
    }
}
