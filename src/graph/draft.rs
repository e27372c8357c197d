//! What guesses tokens ahead of a model: the module that its checkpoint ships for it.
//!
//! Knows neither how many tokens are guessed nor how many of them prove right.

use super::assembly::weight;
use super::model::{Block, ModelGraph, OperatorNode};
use super::operator::{Operator, Split};
use super::tensor::{Role, Tensor};
use crate::quantity::count::Count;

/// What guesses tokens ahead of a model, before each of its steps.
#[derive(Clone, Debug)]
pub struct Draft {
    /// `mtp`, or the smaller model's name.
    pub name: String,
    /// A smaller model, or the model's own module.
    pub graph: Box<ModelGraph>,
    /// Tokens guessed before each step of the model, which checks them all at once.
    pub tokens: u64,
}

/// One in so many of a module's parameters may be in none of the matrices taken here: its norms.
const NORMS: u64 = 100;

impl ModelGraph {
    /// The model's own multi-token-prediction module as a model of one layer: a layer like the last, after a matrix
    /// that joins the embedding of the last token with the hidden state that foretold it. Embedding and head are the
    /// model's own, which hold their weights already (DeepSeek-AI 2024, DeepSeek-V3, section 2.2).
    ///
    /// `None` where the checkpoint ships none, or one of another form than that.
    pub fn multi_token_prediction(&self) -> Option<ModelGraph> {
        let last = *self.layer_block.last()?;
        let block = Block { name: "mtp_layer", layers: vec![0], ..self.blocks[last].clone() };
        let mut embedding = lent(&self.embedding);
        let both = Count::derived("two_streams", 2 * self.hidden.value, "2 × hidden_size");
        let join = embedding.graph.add_node(OperatorNode {
            name: "eh_proj",
            operator: Operator::Linear { input: both, output: self.hidden, split: Split::Replicate },
            weights: vec![weight("eh_proj.weight", vec![self.hidden.value, both.value], Role::Mlp)],
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
            mtp: vec![],
            towers: vec![],
            seen: None,
            draft: None,
            ..self.clone()
        };
        let (shipped, taken) = (self.parameters().mtp, module.parameters().unique);
        let modules = shipped.saturating_add(taken / 2).checked_div(taken)?;
        let alike = modules > 0 && shipped.abs_diff(modules.saturating_mul(taken)) <= shipped / NORMS;
        alike.then_some(module)
    }
}

/// A block whose weights another holds.
fn lent(block: &Block) -> Block {
    let mut block = block.clone();
    block.graph.node_weights_mut().for_each(|node| node.weights.clear());
    block
}
