//! Shards one block in execution order: local dimensions, local weights, and collectives between mismatched shardings.
//! Each block is independent of the others.

mod exchanges;

use petgraph::Direction;
use petgraph::graph::NodeIndex;

use super::collective::{Collective, CollectiveOp, Tokens};
use super::group::{RankGroup, TierShape};
use super::parallel::{LayerType, ParallelPlan, Phase};
use super::shard::{Elements, ROLES, ShardedBlock, Task, TaskStep};
use super::sharding::{self, ShardDegrees, Sharding, TensorLayout, TokenShare, WHOLE};
use crate::graph::model::Block;
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;

pub(super) struct BlockSharder<'a> {
    plan: ParallelPlan,
    phase: Phase,
    tiers: &'a [TierShape],
    block: &'a Block,
    degrees: [ShardDegrees; 3],
    layouts: Vec<TensorLayout>,
    steps: Vec<TaskStep>,
    weights: Elements,
    shared: Elements,
}

impl<'a> BlockSharder<'a> {
    pub(super) fn new(plan: ParallelPlan, phase: Phase, tiers: &'a [TierShape], block: &'a Block) -> Self {
        let kv_heads = block.graph.node_weights().find_map(|node| node.operator.kv_heads());
        let kv = kv_heads.map_or(1, |kv_heads| plan.tp.min(kv_heads.value));
        let dcp = if phase == Phase::Decode { plan.dcp } else { 1 };
        let degrees =
            [LayerType::Attention, LayerType::FeedForward, LayerType::Vocabulary].map(|layer_type| {
                ShardDegrees { tp: plan.tp_of(layer_type), dcp, kv, ep: plan.ep, moe_tp: plan.moe_tp }
            });
        let lays = vec![WHOLE; block.graph.node_count()];
        let (steps, weights, shared) = (vec![], [0; ROLES], [0; ROLES]);
        BlockSharder { plan, phase, tiers, block, degrees, layouts: lays, steps, weights, shared }
    }

    /// Sequence parallelism is used only where there are tokens to divide.
    fn sequence_parallel(&self) -> bool {
        self.plan.sp && self.plan.tp > 1 && self.phase == Phase::Prefill && !self.block.layers.is_empty()
    }

    /// Ranks with the same tokens: tensor-parallel ranks and their copies, and in decode also context-parallel ones.
    fn copies(&self) -> u64 {
        let same = self.plan.tp * self.plan.attention_copies();
        if self.phase == Phase::Decode { same * self.plan.cp } else { same }
    }

    pub(super) fn run(mut self) -> ShardedBlock {
        for &node in &self.block.order {
            self.place(node);
        }
        let last = self.block.order.last().map(|&node| (node, self.layouts[node.index()]));
        if let Some((node, layout @ TensorLayout { sharding: Sharding::Partial, .. })) = last {
            let width = self.block.graph[node].operator.output();
            self.reduce(layout, width, false);
        }
        let layers = Count::derived("layers", self.block.layers.len().max(1) as u64, "layers of this kind");
        let caches = self.block.caches.iter().map(|cache| cache.local(self.plan.tp)).collect();
        let (name, steps, weights, shared) = (self.block.name, self.steps, self.weights, self.shared);
        ShardedBlock { name, layers, steps, weights, shared, caches, encoder: false }
    }

    fn place(&mut self, node: NodeIndex) {
        let operator = &self.block.graph[node].operator;
        if let Operator::Add { width } = *operator {
            return self.add(node, width);
        }
        let input = self.input_of(node);
        let kind = self.layer_type(node);
        let tokens = kind.map_or(input.tokens, |kind| self.token_share(kind));
        match sharding::collective_op(operator, input.sharding) {
            // These ranks hold just the tokens that the operator works on.
            Some(_) if input.sharding == Sharding::Tokens && tokens == TokenShare::Divided(input.parts) => {}
            Some(op) => self.gather(node, op, input),
            None if matches!(input.tokens, TokenShare::Divided(_)) && tokens != input.tokens => {
                self.gather(node, CollectiveOp::AllGather, input)
            }
            None => {}
        }
        let input = self.input_of(node);
        if let Operator::Experts(dims) = operator {
            return self.experts(node, dims.hidden, dims.top_k);
        }
        self.pool(node, input, tokens);
        self.gather_queries(operator);
        let degrees = self.degrees[kind.unwrap_or(LayerType::Attention) as usize];
        let local = sharding::local(operator, input, degrees);
        let mut lay = TensorLayout { tokens, ..sharding::output(operator, input, degrees) };
        if matches!(operator, Operator::Input { .. }) && self.sequence_parallel() {
            lay = TensorLayout::over(Sharding::Tokens, self.plan.tp);
        }
        self.compute(
            node,
            local,
            if lay.sharding == Sharding::Tokens { TokenShare::Divided(lay.parts) } else { tokens },
        );
        self.layouts[node.index()] = lay;
        self.context_parallel(operator);
    }

    /// The type of the layer of an operator; `None` where it follows its input.
    fn layer_type(&self, node: NodeIndex) -> Option<LayerType> {
        let node = &self.block.graph[node];
        sharding::layer_type(&node.operator, node.role())
    }

    /// The tokens that a device works on in layers of this type. More ranks pool the tokens of several attention ranks,
    /// as far as these are not copies; fewer divide those of one; of the vocabulary, fewer ranks repeat the work.
    fn token_share(&self, layer_type: LayerType) -> TokenShare {
        let (attention, own) = (self.plan.tp, self.plan.tp_of(layer_type));
        let several = own / attention / self.plan.attention_copies();
        match layer_type {
            _ if several > 1 => TokenShare::Pooled(several),
            _ if own > attention => TokenShare::Own,
            LayerType::FeedForward if own < attention => TokenShare::Divided(attention / own),
            LayerType::Attention | LayerType::FeedForward | LayerType::Vocabulary => TokenShare::Own,
        }
    }

    /// Sharding of the input. The first edge is enough, since all inputs of an operator have the same sharding.
    fn input_of(&self, node: NodeIndex) -> TensorLayout {
        let inputs = self.block.graph.neighbors_directed(node, Direction::Incoming);
        let sharded = |lay: &TensorLayout| lay.sharding != Sharding::Replicate;
        let lays: Vec<TensorLayout> = inputs.map(|input| self.layouts[input.index()]).collect();
        lays.iter().find(|lay| sharded(lay)).or(lays.first()).copied().unwrap_or(WHOLE)
    }

    /// Routed experts: where ranks hold different tokens, these are sent to the experts and back.
    fn experts(&mut self, node: NodeIndex, hidden: Count, top_k: Count) {
        let ranks = self.plan.stage_devices();
        let degrees = self.degrees[LayerType::Attention as usize];
        let local = sharding::local(&self.block.graph[node].operator, WHOLE, degrees);
        let copies = self.copies();
        if ranks == copies {
            self.compute(node, local, TokenShare::Own);
            let sharding = if ranks > 1 { Sharding::Partial } else { Sharding::Replicate };
            self.layouts[node.index()] = TensorLayout::over(sharding, ranks);
            return;
        }
        let tokens = Tokens::Dispatched { tp: copies, top_k, ep: self.plan.ep };
        let width = Count { value: hidden.value * self.plan.moe_tp, ..hidden };
        let group = RankGroup::place(ranks, 1, self.tiers);
        let travel = |kind| {
            group.map(|group| Task::Communicate(Collective::new(kind, group, width, tokens, self.tiers)))
        };
        self.steps.extend(travel(CollectiveOp::AllToAll).map(|task| TaskStep { name: "dispatch", task }));
        self.compute(node, local, TokenShare::Own);
        self.steps.extend(travel(CollectiveOp::AllToAll).map(|task| TaskStep { name: "combine", task }));
        let sharding = if copies > 1 { Sharding::Tokens } else { Sharding::Replicate };
        self.layouts[node.index()] = TensorLayout::over(sharding, copies);
    }

    fn add(&mut self, node: NodeIndex, width: Count) {
        let sources: Vec<_> = self.block.graph.neighbors_directed(node, Direction::Incoming).collect();
        let sequence = self.sequence_parallel();
        let mut partial: Vec<TensorLayout> = Vec::new();
        let mut gather = None;
        for source in sources {
            let layout = self.layouts[source.index()];
            match (layout.sharding, layout.tokens) {
                (Sharding::Partial, _) | (Sharding::Replicate, TokenShare::Divided(_))
                    if !partial.contains(&layout) =>
                {
                    partial.push(layout)
                }
                (Sharding::Tokens, _) if !sequence => gather = Some(layout.parts),
                _ => {}
            }
        }
        for layout in partial {
            self.reduce(layout, width, sequence);
        }
        if let Some(parts) = gather {
            self.communicate("all_gather", CollectiveOp::AllGather, parts, width);
        }
        let tokens = if sequence { TokenShare::Divided(self.plan.tp) } else { TokenShare::Own };
        self.compute(node, Operator::Add { width }, tokens);
        self.layouts[node.index()] =
            if sequence { TensorLayout::over(Sharding::Tokens, self.plan.tp) } else { WHOLE };
    }

    fn compute(&mut self, node: NodeIndex, operator: Operator, tokens: TokenShare) {
        let degrees = self.degrees[self.layer_type(node).unwrap_or(LayerType::Attention) as usize];
        let whole = &self.block.graph[node];
        let (mut matrix, mut vectors, mut role) = (0, 0, TensorRole::Norm);
        for weight in &whole.weights {
            let here = sharding::weight(
                &whole.operator,
                weight.elements(),
                weight.role,
                weight.shape.len(),
                degrees,
            );
            self.weights[weight.role as usize] += here;
            if weight.shared {
                self.shared[weight.role as usize] += here;
            }
            if weight.role.is_small() {
                vectors += here;
            } else {
                (matrix, role) = (matrix + here, weight.role);
            }
        }
        // A tied head stores nothing but still reads the whole vocabulary.
        if let Operator::Linear { input, output, split: Split::Vocab } = operator {
            (matrix, role) = (input.value * output.value, TensorRole::LmHead);
        }
        // A cache is a place: the attention that reads it counts its traffic.
        if !matches!(operator, Operator::Input { .. } | Operator::KvCache { .. }) {
            let task = Task::Compute { operator, role, matrix, vectors, tokens };
            self.steps.push(TaskStep { name: whole.name, task });
        }
    }
}
