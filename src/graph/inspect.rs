//! Inspection of a graph: blocks, operators with their dimensions, counts, tensors.
//!
//! Serialisable data, independent of output formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::assembly::once;
use super::cache::Cache;
use super::checkpoint::Checkpoint;
use super::count::Parameters;
use super::model::{Block, ModelGraph};
use super::tensor::{TensorRole, Weight};
use super::tower::Tower;
use crate::quantity::count::{Count, Tag};
use crate::spec::model::ModelConfig;

/// The inspected model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inspection {
    /// `model_type` of the configuration.
    pub model_type: String,
    /// Number of layers.
    pub layers: u64,
    /// Maximum context of the configuration, in tokens.
    pub max_context: Option<u64>,
    /// The head is tied to the embedding's weights.
    pub tied: bool,
    /// Exact counts.
    pub parameters: Parameters,
    /// KV cache bytes per token in layers that keep every token, at 2 bytes per element.
    pub kv_bytes_per_token: u64,
    /// KV cache bytes per token in layers with a window.
    pub kv_bytes_per_token_windowed: u64,
    /// Bytes per sequence independent of its length: states of recurrent layers and convolutions.
    pub state_bytes_per_sequence: u64,
    /// Checkpoint size, where its layout is known to the byte.
    pub checkpoint: Option<Checkpoint>,
    /// Encoders next to the language model.
    pub towers: Vec<InspectedTower>,
    /// The integers behind the structure, by key. A key with different values per layer is listed with each value.
    pub values: Vec<InspectedValue>,
    /// Embedding, layers, head.
    pub blocks: Vec<InspectedBlock>,
    /// Every tensor by its full name.
    pub tensors: Vec<InspectedTensor>,
    /// Multi-token-prediction weights.
    pub mtp: Vec<InspectedTensor>,
}

/// A number of the structure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedValue {
    /// Its key in `config.json`, or its name in formulas.
    pub key: String,
    /// The number.
    pub value: u64,
    /// Category of its source.
    pub tag: Tag,
    /// How the number was derived, if it was.
    pub how: Option<String>,
}

/// An encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedTower {
    /// Encoder parameters.
    pub name: String,
    /// Its parameters.
    pub parameters: u64,
    /// Operations of its matrices and attention per image, if the file fixes the image size.
    pub flops_per_image: Option<u64>,
    /// Prompt tokens per image, if the file fixes the image size.
    pub tokens_per_image: Option<u64>,
    /// Its blocks in execution order.
    pub blocks: Vec<InspectedBlock>,
}

/// Identical layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedBlock {
    /// Its name.
    pub name: String,
    /// Layer indices; empty for embedding and head.
    pub layers: Vec<u32>,
    /// Parameters of one layer.
    pub parameters: u64,
    /// KV cache bytes per token of one layer, at 2 bytes per element.
    pub kv_bytes_per_token: u64,
    /// State bytes of one layer per sequence.
    pub state_bytes_per_sequence: u64,
    /// Maximum number of tokens that one layer keeps.
    pub window: Option<u64>,
    /// Operators in execution order.
    pub operators: Vec<InspectedOperator>,
}

/// One operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedOperator {
    /// Its name in the layer.
    pub name: String,
    /// Its operator.
    pub kind: String,
    /// Its dimensions.
    pub dims: Vec<InspectedDim>,
    /// Operators whose results it reads.
    pub inputs: Vec<String>,
    /// Elements of its result per token.
    pub output: u64,
    /// Its parameters.
    pub parameters: u64,
    /// The tensors that it reads, by their names inside the layer. Rows of a joined tensor count as its own.
    pub weights: Vec<InspectedTensor>,
}

/// One dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedDim {
    /// Its name in the operator.
    pub name: String,
    /// The number.
    pub value: u64,
    /// Its source.
    pub origin: String,
    /// Category of the source.
    pub tag: Tag,
}

/// One tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedTensor {
    /// Its name in the checkpoint.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its role.
    pub role: TensorRole,
    /// A buffer, not a parameter.
    pub buffer: bool,
}

/// Bytes of a bf16 element, the unit of cache comparisons.
const BF16_BYTES: u64 = 2;

impl Inspection {
    /// Inspects `graph`.
    pub fn of(graph: &ModelGraph) -> Inspection {
        let kv = graph.kv_elements_per_token();
        Inspection {
            model_type: graph.model_type.clone(),
            layers: graph.layers.value,
            max_context: graph.max_context,
            tied: graph.tied,
            parameters: graph.parameters(),
            kv_bytes_per_token: BF16_BYTES * kv.growing,
            kv_bytes_per_token_windowed: BF16_BYTES * kv.windowed,
            state_bytes_per_sequence: graph.state_bytes_per_sequence(),
            checkpoint: None,
            towers: graph.towers.iter().map(tower).collect(),
            values: values(graph),
            blocks: graph.all_blocks().map(block).collect(),
            tensors: graph.tensors().into_iter().map(tensor).collect(),
            mtp: graph.mtp.iter().cloned().map(tensor).collect(),
        }
    }

    /// The same, with the checkpoint size that `config` describes.
    pub fn of_checkpoint(graph: &ModelGraph, config: &ModelConfig) -> Inspection {
        Inspection { checkpoint: Checkpoint::of(graph, config), ..Inspection::of(graph) }
    }

    /// Marks values of `keys` as set by the user instead of the file.
    pub fn overridden(mut self, keys: &[String]) -> Inspection {
        let ours = |key: &str| keys.iter().any(|known| known.rsplit('.').next() == Some(key));
        for value in self.values.iter_mut().filter(|value| value.tag == Tag::Config && ours(&value.key)) {
            value.tag = Tag::Override;
        }
        let towers = self.towers.iter_mut().flat_map(|tower| &mut tower.blocks);
        let operators = self.blocks.iter_mut().chain(towers).flat_map(|block| &mut block.operators);
        for dim in operators.flat_map(|operator| &mut operator.dims).filter(|dim| dim.tag == Tag::Config) {
            let key = dim.origin.strip_prefix("config.json: ").unwrap_or(&dim.origin);
            if ours(key) {
                (dim.tag, dim.origin) = (Tag::Override, format!("override: {key}"));
            }
        }
        self
    }
}

/// Every integer of the graph, in order of first use.
fn values(graph: &ModelGraph) -> Vec<InspectedValue> {
    let towers = graph.towers.iter().flat_map(|tower| &tower.parts).map(|part| &part.block);
    let dims = graph
        .all_blocks()
        .chain(towers)
        .flat_map(|block| block.order.iter().flat_map(|node| block.graph[*node].operator.dims()))
        .map(|(_, count)| count);
    let mut values: Vec<InspectedValue> = vec![];
    for Count { value, symbol, origin } in [graph.layers, graph.hidden, graph.vocab].into_iter().chain(dims) {
        // Every plain norm has one row.
        if origin == once().origin {
            continue;
        }
        let (tag, how) = (origin.tag(), origin.how());
        let how = (how != symbol).then(|| how.to_owned());
        let value = InspectedValue { key: symbol.to_owned(), value, tag, how };
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn tower(tower: &Tower) -> InspectedTower {
    InspectedTower {
        name: tower.name.to_owned(),
        parameters: tower.parameters(),
        flops_per_image: tower.flops_per_image(),
        tokens_per_image: tower.tokens_per_image(),
        blocks: tower.parts.iter().map(|part| block(&part.block)).collect(),
    }
}

fn block(block: &Block) -> InspectedBlock {
    InspectedBlock {
        name: block.name.to_owned(),
        layers: block.layers.clone(),
        parameters: block.graph.node_weights().map(|node| node.parameters()).sum(),
        kv_bytes_per_token: BF16_BYTES * block.kv_elements_per_token(),
        state_bytes_per_sequence: block.state_bytes_per_sequence(),
        window: block.caches.iter().filter_map(Cache::limit).max(),
        operators: block.order.iter().map(|index| operator(block, *index)).collect(),
    }
}

fn operator(block: &Block, index: petgraph::graph::NodeIndex) -> InspectedOperator {
    let node = &block.graph[index];
    let dim = |(name, count): &(&'static str, Count)| InspectedDim {
        name: (*name).to_owned(),
        value: count.value,
        origin: count.origin.to_string(),
        tag: count.origin.tag(),
    };
    let mut inputs: Vec<String> = block
        .graph
        .neighbors_directed(index, petgraph::Direction::Incoming)
        .map(|input| block.graph[input].name.to_owned())
        .collect();
    inputs.reverse();
    InspectedOperator {
        name: node.name.to_owned(),
        kind: node.operator.kind().to_owned(),
        dims: node.operator.dims().iter().map(dim).collect(),
        inputs,
        output: node.operator.output().value,
        parameters: node.parameters(),
        weights: node.weights.iter().cloned().map(tensor).collect(),
    }
}

fn tensor(weight: Weight) -> InspectedTensor {
    let Weight { name, shape, role, buffer, .. } = weight;
    InspectedTensor { name, shape, role, buffer }
}
