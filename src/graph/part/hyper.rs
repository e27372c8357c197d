//! Parallel residual streams (hyper-connections): their weighted sum before a network.
//!
//! Independent of the network, and of the mixing with its result.

use petgraph::graph::NodeIndex;

use crate::graph::assembly::{Assembly, weight};
use crate::graph::operator::Operator;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// Total width of all streams.
pub fn stream_width(hidden: Count, streams: Count) -> Count {
    Count::derived("streams_width", hidden.value * streams.value, "hc_mult × hidden_size")
}

/// Sums the streams by a mapping of `(2 + n) n` rows, which also defines the mixing after the network.
pub fn hyper_connection(
    block: &mut Assembly,
    from: NodeIndex,
    (name, tensor): (&'static str, &str),
    (hidden, streams): (Count, Count),
) -> NodeIndex {
    let rows = (2 + streams.value) * streams.value;
    let names = ["fn", "base", "scale"].map(|part| format!("{tensor}.{part}"));
    let weights = mapping(names, rows, 3, stream_width(hidden, streams));
    block.node(name, Operator::HyperConnection { hidden, streams, expands: false }, weights, &[from])
}

/// Sums the streams for the head.
pub fn head_connection(block: &mut Assembly, from: NodeIndex, hidden: Count, streams: Count) -> NodeIndex {
    let names = ["hc_fn", "hc_base", "hc_scale"].map(|part| format!("model.hc_head.{part}"));
    let weights = mapping(names, streams.value, 1, stream_width(hidden, streams));
    block.node("hc_head", Operator::HyperConnection { hidden, streams, expands: false }, weights, &[from])
}

/// A mapping of `rows`, its shifts and its scales.
fn mapping([map, base, scale]: [String; 3], rows: u64, scales: u64, width: Count) -> Vec<Weight> {
    vec![
        weight(map, vec![rows, width.value], TensorRole::Norm),
        weight(base, vec![rows], TensorRole::Norm),
        weight(scale, vec![scales], TensorRole::Norm),
    ]
}
