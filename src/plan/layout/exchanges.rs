//! The collectives between operators with different layouts.

use petgraph::Direction;
use petgraph::graph::NodeIndex;

use super::BlockSharder;
use crate::graph::operator::{Operator, Split};
use crate::plan::collective::{Collective, CollectiveOp, Tokens};
use crate::plan::group::RankGroup;
use crate::plan::parallel::{LayerType, Phase};
use crate::plan::shard::{Task, TaskStep};
use crate::plan::sharding::{self, ContextExchange, Sharding, TensorLayout, TokenShare, WHOLE};
use crate::quantity::count::Count;

impl BlockSharder<'_> {
    /// Gathers the tokens of the attention ranks that an operator pools. Every rank knows the ids of all tokens.
    pub(super) fn pool(&mut self, node: NodeIndex, input: TensorLayout, tokens: TokenShare) {
        let TokenShare::Pooled(ranks) = tokens else { return };
        let ids = matches!(self.block.graph[node].operator, Operator::Embedding { .. });
        if ids || input.tokens == tokens {
            return;
        }
        let sources: Vec<_> = self.block.graph.neighbors_directed(node, Direction::Incoming).collect();
        for source in sources {
            let width = self.block.graph[source].operator.output();
            let stride = self.plan.tp * self.plan.attention_copies();
            let group = RankGroup::place(ranks, stride, self.tiers);
            self.exchange("pool_tokens", CollectiveOp::AllGather, group, width, tokens);
            self.layouts[source.index()].tokens = tokens;
        }
    }

    /// Sums the partial results of `layout`, `width` elements per token, and returns its new layout: whole on every
    /// tensor-parallel rank of attention, or divided by token where `scatter`.
    pub(super) fn reduce(&mut self, layout: TensorLayout, width: Count, scatter: bool) -> TensorLayout {
        let tp = self.plan.tp;
        if layout.tokens == TokenShare::Own {
            let (name, op) = match scatter {
                true => ("reduce_scatter", CollectiveOp::ReduceScatter),
                false => ("all_reduce", CollectiveOp::AllReduce),
            };
            self.communicate(name, op, layout.parts, width);
        } else {
            // Each rank keeps the sums of its part of the tokens of its attention rank.
            let group = RankGroup::place(layout.parts, 1, self.tiers);
            self.exchange("reduce_scatter", CollectiveOp::ReduceScatter, group, width, layout.tokens);
            if !scatter {
                let same = tp * self.plan.attention_copies();
                self.communicate("all_gather", CollectiveOp::AllGather, same, width);
            }
        }
        if scatter { TensorLayout::over(Sharding::Tokens, tp) } else { WHOLE }
    }

    /// Gathers the inputs of `node`. Later consumers find them gathered.
    pub(super) fn gather(&mut self, node: NodeIndex, kind: CollectiveOp, input: TensorLayout) {
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
            let (layout, width) = (self.layouts[source.index()], self.block.graph[source].operator.output());
            let divided = matches!(layout.tokens, TokenShare::Divided(_));
            if scatter || divided || layout.sharding == Sharding::Partial {
                self.layouts[source.index()] = self.reduce(layout, width, scatter);
            } else if layout.sharding != Sharding::Replicate {
                let name = if kind == CollectiveOp::AllGather { "all_gather" } else { "all_reduce" };
                self.communicate(name, kind, input.parts, width);
                self.layouts[source.index()] = WHOLE;
            }
        }
    }

    fn context_exchange(&self, operator: &Operator) -> Option<ContextExchange> {
        sharding::context_exchange(operator, self.degrees[LayerType::Attention as usize])
    }

    /// Decode context parallelism: each rank needs the queries of all heads whose KV cache it has a part of.
    pub(super) fn gather_queries(&mut self, operator: &Operator) {
        if self.phase == Phase::Decode
            && let Some(exchange) = self.context_exchange(operator)
        {
            self.communicate("gather_queries", CollectiveOp::AllGather, self.plan.dcp, exchange.queries);
        }
    }

    /// Context parallelism: in prefill, ranks read the keys and values of each other; in decode, ranks merge results.
    pub(super) fn context_parallel(&mut self, operator: &Operator) {
        let Some(exchange) = self.context_exchange(operator) else { return };
        match self.phase {
            Phase::Prefill => self.gather_cache(exchange.keys),
            Phase::Decode => {
                self.communicate("merge_parts", CollectiveOp::ReduceScatter, self.plan.dcp, exchange.merged)
            }
        }
        let Some(group) = RankGroup::place(self.plan.cp, self.plan.tp, self.tiers) else { return };
        let (name, op, width, tokens) = match self.phase {
            Phase::Prefill => ("ring_kv", CollectiveOp::AllGather, exchange.keys, Tokens::KeysValues),
            Phase::Decode => {
                ("merge_heads", CollectiveOp::AllReduce, exchange.merged, Tokens::Rank(TokenShare::Own))
            }
        };
        let collective = Collective::new(op, group, width, tokens, self.tiers);
        let collective = Collective { overlaps: self.phase == Phase::Prefill, ..collective };
        self.steps.push(TaskStep { name, task: Task::Communicate(collective) });
    }

    /// Decode context parallelism in prefill: ranks read the cached part of a prompt from each other, at once.
    fn gather_cache(&mut self, keys: Count) {
        if let Some(group) = RankGroup::place(self.plan.dcp, 1, self.tiers) {
            let op = CollectiveOp::AllGather;
            let collective = Collective::new(op, group, keys, Tokens::Cached, self.tiers);
            self.steps.push(TaskStep { name: "gather_cache", task: Task::Communicate(collective) });
        }
    }

    pub(super) fn communicate(&mut self, name: &'static str, kind: CollectiveOp, parts: u64, width: Count) {
        let group = RankGroup::place(parts, 1, self.tiers);
        self.exchange(name, kind, group, width, TokenShare::Own);
    }

    fn exchange(
        &mut self,
        name: &'static str,
        op: CollectiveOp,
        group: Option<RankGroup>,
        width: Count,
        tokens: TokenShare,
    ) {
        if let Some(group) = group {
            let collective = Collective::new(op, group, width, Tokens::Rank(tokens), self.tiers);
            self.steps.push(TaskStep { name, task: Task::Communicate(collective) });
        }
    }
}
