//! Checkpoint names of tensors; the default names are Llama's.
//!
//! Independent of families, which each supply a table.

use petgraph::graph::NodeIndex;

use crate::graph::model::Block;
use crate::graph::operator::Operator;

/// Names and layouts of the tensors in a family's checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TensorNames {
    /// Pairs of Llama's name of a tensor or module and the family's name. The first matching entry replaces the prefix.
    ///
    /// Several of Llama's names, separated by spaces, are stored joined under one. Names are relative to the layer, or
    /// full names outside layers.
    pub table: &'static [(&'static str, &'static str)],
    /// Layer matrices are stored as `[in, out]` (GPT-2's `Conv1D`).
    pub transposed: bool,
}

impl TensorNames {
    /// Names by `table`, with matrices stored as `[out, in]`.
    pub const fn of_table(table: &'static [(&'static str, &'static str)]) -> TensorNames {
        TensorNames { table, transposed: false }
    }

    /// The family's name for `name`.
    pub fn of(&self, name: &str) -> String {
        let rest = |from: &'static str| {
            name.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let entries = self.table.iter().flat_map(|(names, to)| names.split(' ').map(move |from| (from, to)));
        let renamed = entries.into_iter().find_map(|(from, to)| Some(format!("{to}{}", rest(from)?)));
        renamed.unwrap_or_else(|| name.to_owned())
    }

    /// Renames the weights of `block` to the family's names.
    pub fn apply(&self, block: &mut Block) {
        let layer = !block.layers.is_empty();
        let nodes: Vec<NodeIndex> = block.graph.node_indices().collect();
        for node in nodes {
            let node = &mut block.graph[node];
            let turned = self.transposed && layer && matches!(node.operator, Operator::Linear { .. });
            for weight in &mut node.weights {
                weight.name = self.of(&weight.name);
                if turned && weight.shape.len() == 2 {
                    weight.shape.reverse();
                    weight.joined = 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_module_that_fits_gives_the_name() {
        let names = TensorNames::of_table(&[
            ("self_attn.o_proj", "attn.c_proj"),
            ("self_attn", "attn"),
            ("model", "transformer"),
        ]);
        for (name, stored) in [
            ("self_attn.o_proj.bias", "attn.c_proj.bias"),
            ("self_attn.q_proj.weight", "attn.q_proj.weight"),
            ("self_attn", "attn"),
            ("model.norm.weight", "transformer.norm.weight"),
            ("model_norm.weight", "model_norm.weight"),
            ("mlp.up_proj.weight", "mlp.up_proj.weight"),
        ] {
            assert_eq!(names.of(name), stored);
        }
    }
}
