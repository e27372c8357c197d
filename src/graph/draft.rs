//! Draft modules for speculative decoding: the multi-token-prediction module of a checkpoint.
//!
//! The number of draft tokens and their acceptance rate are inputs elsewhere.

use super::assembly::weight;
use super::model::{Block, ModelGraph, OperatorNode};
use super::operator::{Operator, Split};
use super::tensor::{Tensor, TensorRole};
use crate::quantity::count::Count;

/// The draft of a model, run before each of its steps.
#[derive(Clone, Debug)]
pub struct Draft {
    /// `mtp`, or the name of the draft model.
    pub name: String,
    /// A smaller model, or the model's own module.
    pub graph: Box<ModelGraph>,
    /// Draft tokens per step; the model verifies all of them at once.
    pub tokens: u64,
}

/// Up to this fraction (one in this number) of a module's parameters may be outside the matrices modelled here: its
/// norms.
const NORMS: u64 = 100;

impl ModelGraph {
    /// The model's multi-token-prediction module as a model of one layer. The layer equals the last one, after a matrix
    /// that joins the embedding of the last token with its hidden state. Embedding and head are the model's own, whose
    /// weights are already in memory (DeepSeek-AI 2024, DeepSeek-V3, section 2.2).
    ///
    /// `None` where the checkpoint has no module, or one of another form.
    pub fn multi_token_prediction(&self) -> Option<ModelGraph> {
        let last = *self.layer_block.last()?;
        let block = Block { name: "mtp_layer", layers: vec![0], ..self.blocks[last].clone() };
        let mut embedding = lent(&self.embedding);
        let both = Count::derived("two_streams", 2 * self.hidden.value, "2 × hidden_size");
        let join = embedding.graph.add_node(OperatorNode {
            name: "eh_proj",
            operator: Operator::Linear { input: both, output: self.hidden, split: Split::Replicate },
            weights: vec![weight("eh_proj.weight", vec![self.hidden.value, both.value], TensorRole::Mlp)],
        });
        if let Some(from) = embedding.order.last() {
            embedding.graph.add_edge(*from, join, Tensor { width: self.hidden });
        }
        embedding.order.push(join);
        let module = ModelGraph {
            embedding,
            head: lent(&self.head),
            blocks: vec![block],
            layers: Count::derived("layers", 1, "one module"),
            layer_block: vec![0],
            stores: self.stores.last().into_iter().cloned().collect(),
            mtp: vec![],
            towers: vec![],
            image_inputs: None,
            draft: None,
            ..self.clone()
        };
        let (shipped, taken) = (self.parameters().mtp, module.parameters().unique);
        let modules = shipped.saturating_add(taken / 2).checked_div(taken)?;
        let alike = modules > 0 && shipped.abs_diff(modules.saturating_mul(taken)) <= shipped / NORMS;
        alike.then_some(module)
    }
}

/// A block whose weights are stored elsewhere.
fn lent(block: &Block) -> Block {
    let mut block = block.clone();
    block.graph.node_weights_mut().for_each(|node| node.weights.clear());
    block
}
