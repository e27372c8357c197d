//! Weights with the names and shapes of the checkpoint, and tensors between operators.

use crate::quantity::count::Count;

/// TensorRole of a weight. Number formats list the roles that they leave in the model's own dtype.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TensorRole {
    /// Token embedding.
    Embedding,
    /// Vocabulary projection (head).
    LmHead,
    /// Scales (and shifts) of a norm.
    Norm,
    /// Router: expert scores.
    Router,
    /// Q, K, V and output projections, including those of MLA.
    Attention,
    /// Dense feed-forward matrices.
    Mlp,
    /// Routed experts' matrices.
    Expert,
    /// Shared experts' matrices.
    SharedExpert,
    /// Bias vectors of any role.
    Bias,
    /// Learned attention sinks: one logit per head.
    Sink,
    /// Kernels of short convolutions, and decays, steps and skips of recurrences. Small, as norms are.
    Recurrence,
    /// Projections of a sparse-attention indexer.
    Indexer,
    /// Matrices and embeddings of vision and audio encoders and their projectors.
    Tower,
}

impl TensorRole {
    /// Whether its tensors are vectors and small, which no format quantises.
    pub fn is_small(self) -> bool {
        matches!(self, TensorRole::Norm | TensorRole::Bias | TensorRole::Sink | TensorRole::Recurrence)
    }
}

/// An unsharded tensor of the checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// Its name inside the layer, e.g. `self_attn.q_proj.weight`; outside layers its full name.
    ///
    /// Where the checkpoint joins matrices by rows (`qkv_proj`), each operator has its own rows under that name.
    pub name: String,
    /// Its shape in the layout of transformers 5: `[out, in]`, with experts stacked first.
    pub shape: Vec<u64>,
    /// The dimension along which checkpoints join matrices: the output dimension, 0 unless stored as `[in, out]`.
    pub joined: usize,
    pub role: TensorRole,
    /// A persistent buffer, not a parameter (e.g. `e_score_correction_bias`).
    pub buffer: bool,
    /// Stored once for all layers of one of [`super::model::ModelGraph::stores`], not once for each layer.
    pub shared: bool,
}

impl Weight {
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// An edge between operators: elements per token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    /// Elements per token.
    pub width: Count,
}
