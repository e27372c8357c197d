//! Parallel residual streams (hyper-connections): their weighted sum before a network.
//!
//! Independent of the network, and of the mixing with its result.

use petgraph::graph::NodeIndex;

use crate::graph::assembly::{Affine, Assembly, Matrix, weight};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// Total width of all streams.
pub fn stream_width(hidden: Count, streams: Count) -> Count {
    Count::derived("streams_width", hidden.value * streams.value, "hc_mult × hidden_size")
}

/// Parallel residual streams of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hyper {
    /// Their number.
    pub streams: Count,
    /// Whether the streams are mixed with each other after a network, by a square matrix (DeepSeek-V4); else each
    /// keeps itself (Hunyuan-4).
    pub mixes: bool,
    /// Whether the head has weights of its own for their sum; else it takes the mean (GLM-5 Next).
    pub head: bool,
    /// Rank of the gate by which the streams, each normed, are weighed element by element (Qwen4); none where a mapping
    /// has one number for each.
    pub rank: Option<Count>,
}

/// Sums the streams by a mapping of `(2 + n) n` rows, which also defines the mixing after the network; of `2 n` rows
/// where they are not mixed.
pub fn hyper_connection(
    block: &mut Assembly,
    from: NodeIndex,
    (name, tensor): (&'static str, &str),
    (hidden, hyper): (Count, Hyper),
) -> NodeIndex {
    let streams = hyper.streams;
    if let Some(rank) = hyper.rank {
        let name_of = format!("{tensor}.block_inject_weight.weight");
        let width = stream_width(hidden, streams).value;
        let inject = weight(name_of, vec![streams.value, width], TensorRole::Norm);
        return gated_connection(block, from, (name, tensor), (hidden, streams, rank), vec![inject]);
    }
    let (parts, scales) = if hyper.mixes { (2 + streams.value, 3) } else { (2, 2) };
    let names = ["fn", "base", "scale"].map(|part| format!("{tensor}.{part}"));
    let weights = mapping(names, parts * streams.value, scales, stream_width(hidden, streams));
    block.node(name, Operator::HyperConnection { hidden, streams, expands: false }, weights, &[from])
}

/// Sums the streams for the head.
pub fn head_connection(block: &mut Assembly, from: NodeIndex, hidden: Count, hyper: Hyper) -> NodeIndex {
    let streams = hyper.streams;
    if let Some(rank) = hyper.rank {
        let names = ("hc_head", "model.hyper_connection_mixer");
        return gated_connection(block, from, names, (hidden, streams, rank), vec![]);
    }
    let names = ["hc_fn", "hc_base", "hc_scale"].map(|part| format!("model.hc_head.{part}"));
    let weights = match hyper.head {
        true => mapping(names, streams.value, 1, stream_width(hidden, streams)),
        false => vec![],
    };
    block.node("hc_head", Operator::HyperConnection { hidden, streams, expands: false }, weights, &[from])
}

/// The mean of the normed streams, each behind a sigmoid of two matrices of rank `rank`.
fn gated_connection(
    block: &mut Assembly,
    from: NodeIndex,
    (name, tensor): (&'static str, &str),
    (hidden, streams, rank): (Count, Count, Count),
    weights: Vec<Weight>,
) -> NodeIndex {
    let width = stream_width(hidden, streams);
    let normed = block.stream_norm(from, "hc_norm", &format!("{tensor}.hc_norm"), Affine::Scale);
    let mut gate = |from, name: &'static str, stored, input, output| {
        let (tensor, split, role) = (format!("{tensor}.{stored}"), Split::Replicate, TensorRole::Mlp);
        block.linear(from, Matrix { name, tensor, input, output, split, role, bias: false })
    };
    let down = gate(normed, "hc_down", "input_mix_weight_down", width, rank);
    let up = gate(down, "hc_up", "input_mix_weight_up", rank, width);
    let operator = Operator::HyperConnection { hidden, streams, expands: false };
    block.node(name, operator, weights, &[up, normed])
}

/// A mapping of `rows`, its shifts and its scales.
fn mapping([map, base, scale]: [String; 3], rows: u64, scales: u64, width: Count) -> Vec<Weight> {
    vec![
        weight(map, vec![rows, width.value], TensorRole::Norm),
        weight(base, vec![rows], TensorRole::Norm),
        weight(scale, vec![scales], TensorRole::Norm),
    ]
}
