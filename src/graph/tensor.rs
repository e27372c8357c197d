//! Weights as the checkpoint names and shapes them, and what flows between operators.

use crate::quantity::count::Count;

/// What a weight is for. Number formats name the roles that they leave in the model's own dtype.
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
pub enum Role {
    /// Token embedding.
    Embedding,
    /// Vocabulary projection.
    LmHead,
    /// Scales (and shifts) of a norm.
    Norm,
    /// Expert scores.
    Router,
    /// Q, K, V and output projections, and MLA's.
    Attention,
    /// Dense feed-forward matrices.
    Mlp,
    /// Routed experts' matrices.
    Expert,
    /// Shared experts' matrices.
    SharedExpert,
    /// Bias vectors of any of these.
    Bias,
    /// Learned attention sinks: a logit per head.
    Sink,
    /// Kernels of short convolutions, and decays, steps and skips of recurrences: small, like norms.
    Recurrence,
    /// Projections of a sparse attention's indexer.
    Indexer,
    /// Matrices and embeddings of vision and audio encoders and their projectors.
    Tower,
}

/// A tensor of the checkpoint, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// Its name inside the layer, e.g. `self_attn.q_proj.weight`; outside layers its whole name.
    ///
    /// Where the checkpoint joins matrices by rows (`qkv_proj`), each operator holds its own rows under that name.
    pub name: String,
    /// Its shape as transformers 5 lays it out: `[out, in]`, experts stacked first.
    pub shape: Vec<u64>,
    /// The dimension along which checkpoints join matrices: that of outputs, 0 unless they are stored `[in, out]`.
    pub joined: usize,
    /// Its role.
    pub role: Role,
    /// A persistent buffer, not a parameter (e.g. `e_score_correction_bias`).
    pub buffer: bool,
}

impl Weight {
    /// Elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// What flows along an edge: elements per token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    /// Elements per token.
    pub width: Count,
}
