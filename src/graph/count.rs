//! Exact counts over a graph: parameters, cached elements, tensors by their full names.
//!
//! Knows nothing of number formats: elements, not bytes.

use super::model::{Block, KvLayout, ModelGraph, Node};
use super::operator::Operator;
use super::tensor::{Role, Weight};

/// The legitimate parameter counts of one model, kept apart.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Parameters {
    /// Trainable parameters: a tied head once, no buffers, no multi-token prediction.
    pub unique: u64,
    /// Persistent buffers, e.g. `e_score_correction_bias`.
    pub buffers: u64,
    /// Unique parameters that one token passes: all but the routed experts not chosen for it.
    ///
    /// The embedding counts whole, although a token reads one row; without it, model cards' figures come out.
    pub active: u64,
    /// Multi-token-prediction weights that the checkpoint ships, with their buffers, without `mtp_copies`.
    pub mtp: u64,
    /// Copies of embedding and head that the checkpoint stores again for multi-token prediction.
    pub mtp_copies: u64,
}

/// Elements cached per token of a sequence, over all layers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct KvElements {
    /// In layers that keep every token.
    pub growing: u64,
    /// In layers that keep a window.
    pub windowed: u64,
}

impl KvLayout {
    /// Elements that one layer keeps per token.
    pub fn elements_per_token(&self) -> u64 {
        match self {
            KvLayout::Heads { kv_heads, head_dim, v_head_dim, .. } => {
                kv_heads.value * (head_dim.value + v_head_dim.value)
            }
            KvLayout::Latent { kv_lora_rank, qk_rope_head_dim } => {
                kv_lora_rank.value + qk_rope_head_dim.value
            }
            KvLayout::None => 0,
        }
    }

    /// Tokens kept at most.
    pub fn window(&self) -> Option<u64> {
        match self {
            KvLayout::Heads { window, .. } => window.map(|window| window.value),
            KvLayout::Latent { .. } | KvLayout::None => None,
        }
    }
}

impl Node {
    /// Parameters (not buffers) of it.
    pub fn parameters(&self) -> u64 {
        self.weights.iter().filter(|weight| !weight.buffer).map(Weight::elements).sum()
    }

    /// Parameters of it that one token passes.
    pub fn active_parameters(&self) -> u64 {
        match self.operator {
            Operator::Experts { experts, top_k, .. } => self.parameters() / experts.value * top_k.value,
            _ => self.parameters(),
        }
    }
}

impl Block {
    /// How often it stands in the model.
    pub fn repeats(&self) -> u64 {
        self.layers.len().max(1) as u64
    }

    /// Weights of one layer, in execution order. A tensor that several operators share by rows comes once.
    pub fn weights(&self) -> Vec<Weight> {
        let mut joined: Vec<Weight> = vec![];
        for weight in self.order.iter().flat_map(|node| &self.graph[*node].weights) {
            match joined.iter_mut().find(|known| known.name == weight.name) {
                Some(known) => known.shape[0] += weight.shape[0],
                None => joined.push(weight.clone()),
            }
        }
        joined
    }

    /// Elements that one layer caches per token.
    pub fn kv_elements_per_token(&self) -> u64 {
        self.kv.elements_per_token()
    }

    /// A sum over the operators of one layer.
    fn sum(&self, of: impl Fn(&Node) -> u64) -> u64 {
        self.graph.node_weights().map(of).sum()
    }
}

impl ModelGraph {
    /// Embedding, layers' blocks, head.
    pub fn all_blocks(&self) -> impl Iterator<Item = &Block> {
        [&self.embedding].into_iter().chain(&self.blocks).chain([&self.head])
    }

    /// The counts.
    pub fn parameters(&self) -> Parameters {
        let total =
            |of: fn(&Node) -> u64| self.all_blocks().map(|block| block.repeats() * block.sum(of)).sum();
        let copy = |weight: &&Weight| matches!(weight.role, Role::Embedding | Role::LmHead);
        let shipped: u64 = self.mtp.iter().map(Weight::elements).sum();
        let mtp_copies: u64 = self.mtp.iter().filter(copy).map(Weight::elements).sum();
        Parameters {
            unique: total(Node::parameters),
            buffers: total(|node| {
                node.weights.iter().filter(|weight| weight.buffer).map(Weight::elements).sum()
            }),
            active: total(Node::active_parameters),
            mtp: shipped - mtp_copies,
            mtp_copies,
        }
    }

    /// Elements cached per token of a sequence.
    pub fn kv_elements_per_token(&self) -> KvElements {
        let mut kv = KvElements::default();
        for block in &self.blocks {
            let elements = block.repeats() * block.kv_elements_per_token();
            match block.kv.window() {
                None => kv.growing += elements,
                Some(_) => kv.windowed += elements,
            }
        }
        kv
    }

    /// Every tensor of the model by its full name, in order of layers; multi-token prediction apart.
    pub fn tensors(&self) -> Vec<Weight> {
        let of_block: Vec<Vec<Weight>> = self.blocks.iter().map(Block::weights).collect();
        let mut tensors = self.embedding.weights();
        for (layer, block) in self.layer_block.iter().enumerate() {
            let named = |weight: &Weight| Weight {
                name: format!("model.layers.{layer}.{}", weight.name),
                ..weight.clone()
            };
            tensors.extend(of_block[*block].iter().map(named));
        }
        tensors.extend(self.head.weights());
        tensors
    }

    /// Everything stored, in a width that no configuration overflows.
    pub(super) fn stored_elements(&self) -> u128 {
        let elements = |weight: &Weight| u128::from(weight.elements());
        let block = |block: &Block| -> u128 {
            let once: u128 = block.graph.node_weights().flat_map(|node| &node.weights).map(elements).sum();
            u128::from(block.repeats()) * once
        };
        self.all_blocks().map(block).sum::<u128>() + self.mtp.iter().map(elements).sum::<u128>()
    }
}
