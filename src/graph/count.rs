//! Exact counts over a graph: parameters, cached elements, tensors by their full names.
//!
//! Counts elements, not bytes.

use std::collections::HashSet;

use super::cache::Cache;
use super::model::{Block, ModelGraph, OperatorNode};
use super::operator::Operator;
use super::tensor::{TensorRole, Weight};
use super::tower::Tower;

/// The parameter counts of one model, listed separately.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Parameters {
    /// Trainable parameters: a tied head and layers that run several times once, no buffers, no multi-token prediction.
    pub unique: u64,
    /// Persistent buffers, e.g. `e_score_correction_bias`.
    pub buffers: u64,
    /// Those of `unique` in vision and audio encoders and their projectors.
    pub towers: u64,
    /// Unique parameters per text token: without encoders and without the routed experts that are not selected.
    ///
    /// The embedding counts in full, although a token reads one row. This convention matches model cards. Tables of
    /// n-grams count by the rows that a token reads. A layer that runs several times counts once, with the experts of one
    /// run.
    pub active: u64,
    /// Multi-token-prediction weights of the checkpoint with their buffers, without `mtp_copies`.
    pub mtp: u64,
    /// Copies of embedding and head that the checkpoint stores for multi-token prediction.
    pub mtp_copies: u64,
    /// Parameters that layers read again since they share weights: those of all layers add up to `unique` and these.
    ///
    /// None where every layer has its own weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_again: Option<u64>,
}

/// Cached elements per token of a sequence, over all layers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct KvElements {
    /// In layers that keep every token.
    pub growing: u64,
    /// In layers with a window or a chunk.
    pub windowed: u64,
}

impl OperatorNode {
    /// Its parameters, without buffers.
    pub fn parameters(&self) -> u64 {
        self.weights.iter().filter(|weight| !weight.buffer).map(Weight::elements).sum()
    }

    /// The first of its weights that several layers share.
    fn first_shared(&self) -> Option<&str> {
        self.weights.iter().find(|weight| weight.shared).map(|weight| weight.name.as_str())
    }

    /// Whether a token reads several rows of its table.
    fn reads_rows(&self, width: u64) -> bool {
        self.weights.first().is_some_and(|table| table.shape.last().is_some_and(|row| *row < width))
    }

    /// Its active parameters per token.
    pub fn active_parameters(&self) -> u64 {
        match self.operator {
            Operator::Experts(dims) => self.parameters() / dims.experts.value * dims.top_k.value,
            // A matrix of experts: as many elements as those that are selected have.
            Operator::Linear { input, output, .. } if self.role() == Some(TensorRole::Expert) => {
                input.value * output.value
            }
            // Tables of which a token reads several rows (n-grams): those rows.
            Operator::Embedding { hidden, .. } if self.reads_rows(hidden.value) => hidden.value,
            _ => self.parameters(),
        }
    }
}

impl Block {
    /// Number of occurrences in the model.
    pub fn repeats(&self) -> u64 {
        self.layers.len().max(1) as u64
    }

    /// Weights of one layer, in execution order. A tensor whose rows several operators share appears once.
    pub fn weights(&self) -> Vec<Weight> {
        let mut joined: Vec<Weight> = vec![];
        for weight in self.order.iter().flat_map(|node| &self.graph[*node].weights) {
            match joined.iter_mut().find(|known| known.name == weight.name) {
                Some(known) => known.shape[known.joined] += weight.shape[known.joined],
                None => joined.push(weight.clone()),
            }
        }
        joined
    }

    /// Elements per token that one layer caches.
    pub fn kv_elements_per_token(&self) -> u64 {
        self.caches.iter().map(Cache::elements_per_token).sum()
    }

    /// Bytes per sequence and layer independent of length, for a model with a two-byte dtype.
    pub fn state_bytes_per_sequence(&self) -> u64 {
        self.caches.iter().map(Cache::state_bytes).sum()
    }

    /// Elements of one layer that several layers share.
    pub fn shared_elements(&self) -> u64 {
        let weights = self.graph.node_weights().flat_map(|node| &node.weights);
        weights.filter(|weight| weight.shared).map(Weight::elements).sum()
    }

    /// A sum over the operators of one layer.
    fn sum(&self, of: impl Fn(&OperatorNode) -> u64) -> u64 {
        self.graph.node_weights().map(of).sum()
    }
}

impl ModelGraph {
    /// Embedding, layers' blocks, head.
    pub fn all_blocks(&self) -> impl Iterator<Item = &Block> {
        [&self.embedding].into_iter().chain(&self.blocks).chain([&self.head])
    }

    /// The operators of the layers with their blocks and the number of their weights' copies that the model stores: one
    /// for each layer, or one for each module that several layers share.
    pub fn stored_nodes(&self) -> Vec<(&Block, &OperatorNode, u64)> {
        let mut known: HashSet<(&str, &str)> = HashSet::new();
        let mut found = vec![];
        for block in &self.blocks {
            let stores: HashSet<&str> = block
                .layers
                .iter()
                .filter_map(|layer| Some(self.stores.get(*layer as usize)?.as_str()))
                .collect();
            let nodes = || block.graph.node_weights();
            let copies = |node: &OperatorNode| match node.first_shared() {
                Some(name) => stores.iter().filter(|store| !known.contains(&(**store, name))).count() as u64,
                None => block.repeats(),
            };
            found.extend(nodes().map(|node| (block, node, copies(node))));
            for name in nodes().filter_map(OperatorNode::first_shared) {
                known.extend(stores.iter().map(|store| (*store, name)));
            }
        }
        found
    }

    /// A sum over the operators of the language model that it stores; `stored` are those of its layers.
    fn total(&self, stored: &[(&Block, &OperatorNode, u64)], of: fn(&OperatorNode) -> u64) -> u64 {
        let layers: u64 = stored.iter().map(|(_, node, copies)| copies * of(node)).sum();
        self.embedding.sum(of) + layers + self.head.sum(of)
    }

    /// [`Parameters::towers`].
    pub fn tower_parameters(&self) -> u64 {
        self.towers.iter().map(Tower::parameters).sum()
    }

    /// [`Parameters::unique`], alone.
    pub fn unique_parameters(&self) -> u64 {
        self.total(&self.stored_nodes(), OperatorNode::parameters) + self.tower_parameters()
    }

    /// The counts.
    pub fn parameters(&self) -> Parameters {
        let stored = self.stored_nodes();
        let total = |of| self.total(&stored, of);
        let copy = |weight: &&Weight| matches!(weight.role, TensorRole::Embedding | TensorRole::LmHead);
        let shipped: u64 = self.mtp.iter().map(Weight::elements).sum();
        let mtp_copies: u64 = self.mtp.iter().filter(copy).map(Weight::elements).sum();
        let towers = self.tower_parameters();
        Parameters {
            unique: total(OperatorNode::parameters) + towers,
            towers,
            buffers: total(|node| {
                node.weights.iter().filter(|weight| weight.buffer).map(Weight::elements).sum()
            }) + self.towers.iter().map(Tower::buffers).sum::<u64>(),
            active: total(OperatorNode::active_parameters),
            mtp: shipped - mtp_copies,
            mtp_copies,
            read_again: (!self.stores.is_empty()).then(|| {
                let again = |(block, node, copies): &(&Block, &OperatorNode, u64)| {
                    (block.repeats() - copies) * node.parameters()
                };
                stored.iter().map(again).sum()
            }),
        }
    }

    /// Cached elements per token of a sequence.
    pub fn kv_elements_per_token(&self) -> KvElements {
        let mut kv = KvElements::default();
        for block in &self.blocks {
            for cache in &block.caches {
                let elements = block.repeats() * cache.elements_per_token();
                match cache.limit() {
                    None => kv.growing += elements,
                    Some(_) => kv.windowed += elements,
                }
            }
        }
        kv
    }

    /// Bytes per sequence independent of its length, for a model with a two-byte dtype.
    pub fn state_bytes_per_sequence(&self) -> u64 {
        self.blocks.iter().map(|block| block.repeats() * block.state_bytes_per_sequence()).sum()
    }

    /// All tensors of the model by full name, in layer order; without multi-token prediction.
    pub fn tensors(&self) -> Vec<Weight> {
        let of_block: Vec<Vec<Weight>> = self.blocks.iter().map(Block::weights).collect();
        let mut tensors = self.embedding.weights();
        let mut known = HashSet::new();
        for (layer, block) in self.layer_block.iter().enumerate() {
            let own = format!("{}.{layer}", self.layer_prefix);
            let store = self.stores.get(layer).unwrap_or(&own);
            let named = |weight: &Weight| {
                let module = if weight.shared { store } else { &own };
                Weight { name: format!("{module}.{}", weight.name), ..weight.clone() }
            };
            let new = of_block[*block].iter().map(named);
            tensors.extend(new.filter(|weight| !weight.shared || known.insert(weight.name.clone())));
        }
        tensors.extend(self.head.weights());
        tensors.extend(self.towers.iter().flat_map(Tower::tensors));
        tensors
    }

    /// All stored elements, in an integer width that no configuration overflows.
    pub(super) fn stored_elements(&self) -> u128 {
        let elements = |weight: &Weight| {
            weight.shape.iter().fold(1, |so_far: u128, length| so_far.saturating_mul(u128::from(*length)))
        };
        let block = |block: &Block| -> u128 {
            let weights = block.graph.node_weights().flat_map(|node| &node.weights);
            let once = weights.map(elements).fold(0, u128::saturating_add);
            once.saturating_mul(u128::from(block.repeats()))
        };
        let towers = self.towers.iter().flat_map(|tower| &tower.parts).map(|part| block(&part.block));
        let blocks = self.all_blocks().map(block).chain(towers);
        blocks.chain(self.mtp.iter().map(elements)).fold(0, u128::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::model::ModelConfig;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap()
    }

    const LLAMA: &str = r#"{"model_type": "llama", "hidden_size": 6, "num_hidden_layers": 3, "vocab_size": 11,
        "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 10, "tie_word_embeddings": false}"#;

    #[test]
    fn a_dense_model_by_hand() {
        let graph = graph(LLAMA);
        let layer = 6 * 6 + 2 * 6 * 2 + 6 * 6 + 3 * 6 * 10 + 2 * 6;
        assert_eq!(graph.parameters().unique, 2 * 11 * 6 + 3 * layer + 6);
        assert_eq!(graph.parameters().active, graph.parameters().unique);
        assert_eq!(graph.kv_elements_per_token(), KvElements { growing: 3 * 2 * 2, windowed: 0 });
        assert_eq!(graph.tensors().len(), 3 + 3 * 9);
        assert_eq!(graph.blocks.len(), 1);
    }

    #[test]
    fn a_tied_head_stores_nothing_but_still_projects() {
        let tied = graph(&LLAMA.replace("false", "true"));
        assert_eq!(graph(LLAMA).parameters().unique - tied.parameters().unique, 11 * 6);
        assert!(tied.tied && tied.head.graph.node_weights().any(|node| node.name == "lm_head"));
    }

    #[test]
    fn tensors_joined_in_the_checkpoint_come_once() {
        let joined = graph(&LLAMA.replace("llama", "phi3"));
        assert_eq!(joined.parameters(), graph(LLAMA).parameters());
        let weights = joined.blocks[0].weights();
        let shape = |name: &str| weights.iter().find(|weight| weight.name == name).unwrap().shape.clone();
        assert_eq!(shape("self_attn.qkv_proj.weight"), [6 + 2 * 2, 6]);
        assert_eq!(shape("mlp.gate_up_proj.weight"), [2 * 10, 6]);
    }

    #[test]
    fn one_token_passes_its_experts_only() {
        let graph = graph(
            r#"{"model_type": "mixtral", "hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11,
            "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 10,
            "num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": 7}"#,
        );
        let (unique, active) = (graph.parameters().unique, graph.parameters().active);
        assert_eq!(unique - active, 2 * (5 - 2) * 3 * 6 * 10);
        assert_eq!(graph.kv_elements_per_token(), KvElements { growing: 0, windowed: 2 * 2 * 2 });
    }

    #[test]
    fn latent_attention_caches_latent_and_rotary_key_whatever_the_heads() {
        let graph = graph(
            r#"{"model_type": "deepseek_v3", "hidden_size": 6, "num_hidden_layers": 3, "vocab_size": 11,
            "num_attention_heads": 4, "q_lora_rank": null, "kv_lora_rank": 8, "qk_rope_head_dim": 2,
            "qk_nope_head_dim": 3, "v_head_dim": 5, "intermediate_size": 10, "moe_intermediate_size": 7,
            "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1,
            "num_nextn_predict_layers": 1}"#,
        );
        assert_eq!(graph.kv_elements_per_token().growing, 3 * (8 + 2));
        let attention = 6 * 4 * 5 + 6 * (8 + 2) + 8 + 8 * 4 * (3 + 5) + 4 * 5 * 6 + 2 * 6;
        let moe = 4 * 6 + (4 + 1) * 3 * 6 * 7;
        let parameters = graph.parameters();
        assert_eq!(parameters.unique, 2 * 11 * 6 + 6 + 3 * attention + 3 * 6 * 10 + 2 * moe);
        assert_eq!(parameters.buffers, 2 * 4);
        assert_eq!(parameters.mtp, attention + moe + 4 + 2 * 6 * 6 + 3 * 6);
        assert_eq!(parameters.mtp_copies, 2 * 11 * 6);
        let names: Vec<&str> = graph.blocks.iter().map(|block| block.name).collect();
        assert_eq!(names, ["dense_layer", "moe_layer"]);
        assert_eq!(graph.layer_block, [0, 1, 1]);
    }
}
