//! One transformer layer: norm, attention, sum, norm, feed-forward network, sum.
//!
//! Equal layers compare equal, which is how they become one block.

use super::attention::Attention;
use super::feed_forward::FeedForward;
use super::latent::Latent;
use super::moe::Moe;
use crate::graph::assembly::Assembly;
use crate::graph::cache::Cache;
use crate::graph::model::Block;
use crate::graph::operator::Operator;
use crate::quantity::count::Count;

/// What mixes tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum Mixer {
    /// Attention over heads.
    Attention(Attention),
    /// Multi-head latent attention.
    Latent(Latent),
}

/// What works on each token alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// A dense feed-forward network.
    Dense(FeedForward),
    /// A mixture of experts.
    Moe(Box<Moe>),
}

/// A pre-norm layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Width of the residual stream.
    pub hidden: Count,
    /// LayerNorm's shifts beside its scales.
    pub norm_bias: bool,
    /// What mixes tokens.
    pub mixer: Mixer,
    /// What works on each token alone.
    pub network: Network,
}

impl Layer {
    /// A layer of attention over heads with RMSNorm.
    pub fn new(attention: Attention, network: Network) -> Layer {
        Layer { hidden: attention.hidden, norm_bias: false, mixer: Mixer::Attention(attention), network }
    }

    /// Whether it attends to a window only.
    pub fn slides(&self) -> bool {
        matches!(&self.mixer, Mixer::Attention(attention) if attention.reach.kept().is_some())
    }

    /// Whether it has experts.
    pub fn is_moe(&self) -> bool {
        matches!(self.network, Network::Moe(_))
    }

    /// The layer as a block of the graph, standing for `layers`.
    pub fn block(&self, name: &'static str, layers: Vec<u32>) -> Block {
        let mut block = Assembly::default();
        let add = || Operator::Add { width: self.hidden };
        let input = block.input(self.hidden);
        let normed = block.stream_norm(input, "input_norm", "input_layernorm", self.norm_bias);
        let (mixed, caches): (_, Vec<Cache>) = match &self.mixer {
            Mixer::Attention(attention) => (attention.assemble(&mut block, normed), attention.caches()),
            Mixer::Latent(latent) => (latent.assemble(&mut block, normed), latent.caches()),
        };
        let stream = block.node("attention_add", add(), vec![], &[mixed, input]);
        let normed =
            block.stream_norm(stream, "post_attention_norm", "post_attention_layernorm", self.norm_bias);
        let mut sums = match &self.network {
            Network::Dense(network) => vec![network.assemble(&mut block, normed)],
            Network::Moe(moe) => moe.assemble(&mut block, normed),
        };
        sums.push(stream);
        block.node("ffn_add", add(), vec![], &sums);
        block.finish(name, layers, caches)
    }
}

/// Names blocks by what sets the layers of a model apart: windows, experts, or both.
pub fn name(layer: &Layer, windows_differ: bool, networks_differ: bool) -> &'static str {
    match (windows_differ, layer.slides(), networks_differ, layer.is_moe()) {
        (false, _, _, false) => "dense_layer",
        (false, _, _, true) => "moe_layer",
        (true, true, false, _) => "sliding_layer",
        (true, false, false, _) => "full_layer",
        (true, true, true, false) => "sliding_dense_layer",
        (true, true, true, true) => "sliding_moe_layer",
        (true, false, true, false) => "full_dense_layer",
        (true, false, true, true) => "full_moe_layer",
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::model::{Block, ModelGraph};
    use crate::graph::operator::Operator;
    use crate::spec::model::ModelConfig;

    const GPT_OSS: &str = r#"{"model_type": "gpt_oss", "hidden_size": 6, "num_hidden_layers": 4, "vocab_size": 11,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 5, "intermediate_size": 7,
        "num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 128}"#;

    fn blocks() -> Vec<Block> {
        ModelGraph::build(&ModelConfig::parse(GPT_OSS).unwrap()).unwrap().blocks
    }

    #[test]
    fn layers_alternate_between_two_blocks() {
        let blocks = blocks();
        assert_eq!((blocks[0].name, blocks[0].layers.as_slice()), ("sliding_layer", &[0, 2][..]));
        assert_eq!((blocks[1].name, blocks[1].layers.as_slice()), ("full_layer", &[1, 3][..]));
    }

    #[test]
    fn every_operator_reads_what_came_before_and_all_but_the_last_are_read() {
        for block in blocks() {
            let place = |node| block.order.iter().position(|other| *other == node).unwrap();
            for edge in block.graph.edge_indices() {
                let (from, to) = block.graph.edge_endpoints(edge).unwrap();
                assert!(place(from) < place(to));
            }
            let unread: Vec<_> = block.graph.externals(petgraph::Direction::Outgoing).collect();
            assert_eq!(unread, [*block.order.last().unwrap()]);
        }
    }

    #[test]
    fn both_sums_take_in_the_stream_that_went_around() {
        for block in blocks() {
            let inputs = |node| block.graph.neighbors_directed(node, petgraph::Direction::Incoming).count();
            let adds = block
                .order
                .iter()
                .filter(|node| matches!(block.graph[**node].operator, Operator::Add { .. }));
            assert_eq!(adds.map(|node| inputs(*node)).collect::<Vec<_>>(), [2, 2]);
        }
    }
}
