//! A transformer that several layers share, before their own mixers (Zamba): it reads the stream and the embedding of the
//! token. Each use has a KV cache of its own, a matrix after it and, in Zamba2, adapters.
//!
//! Independent of the mixer.

use petgraph::graph::NodeIndex;

use super::attention::Attention;
use super::feed_forward::FeedForward;
use crate::graph::assembly::{Affine, Assembly, Matrix};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;

/// Attention and network without sums around them.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedTransformer {
    /// Its input is the stream and the embedding, its result as wide as the stream.
    pub attention: Attention,
    pub network: FeedForward,
}

impl SharedTransformer {
    /// Adds the operators, from the stream to its sum with the result, which the mixer reads.
    pub fn assemble(&self, block: &mut Assembly, stream: NodeIndex, hidden: Count) -> NodeIndex {
        let first = block.nodes();
        let both = Operator::Add { width: self.attention.hidden };
        let both = block.node("stream_and_embedding", both, vec![], &[stream]);
        let normed = block.stream_norm(both, "shared_input_norm", "input_layernorm", Affine::Scale);
        let attended = self.attention.assemble(block, normed);
        let normed = block.stream_norm(attended, "shared_ffn_norm", "pre_ff_layernorm", Affine::Scale);
        let result = self.network.assemble(block, normed);
        block.share(first, |name| !name.starts_with("adapter_"));
        let (name, tensor, role) = ("shared_linear", "linear".to_owned(), TensorRole::Mlp);
        let (input, output, split) = (hidden, hidden, Split::Replicate);
        let own = block.linear(result, Matrix { name, tensor, input, output, split, role, bias: false });
        block.node("shared_add", Operator::Add { width: hidden }, vec![], &[own, stream])
    }
}
