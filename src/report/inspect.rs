//! The inspection of a model, as text and JSON.

pub mod compare;
pub mod total;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::total::Reconciliation;
use super::table::{grouped, ranges, table};
use crate::graph::inspect::{InspectedBlock, InspectedTensor, InspectedValue, Inspection};
use crate::spec::visible::visible;

/// The inspection of a model, with its name and source.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Inspected {
    /// Hugging Face id, or the path it was read from.
    pub name: String,
    /// Source of the configuration.
    pub source: String,
    /// Number format of the checkpoint's weights, if the configuration gives one.
    pub weight_format: Option<String>,
    /// Published size of its checkpoint, and the counts that add up to it.
    pub published_total: Option<Reconciliation>,
    /// Structure and counts.
    #[serde(flatten)]
    pub inspection: Inspection,
}

/// The inspection as text, with every tensor; equal layers share a line.
pub fn text(inspected: &Inspected) -> String {
    let Inspected { name, source, weight_format, published_total, inspection } = inspected;
    let parameters = &inspection.parameters;
    let mut lines = vec![
        format!("{}: {}, {} layers", visible(name), inspection.model_type, inspection.layers),
        format!("  source      {}", visible(source)),
        format!("  checkpoint  {}", weight_format.as_deref().unwrap_or("number format not given")),
        format!("  parameters  {} unique", grouped(parameters.unique)),
        format!("              {} active per token", grouped(parameters.active)),
        format!("              {} in buffers", grouped(parameters.buffers)),
    ];
    if parameters.mtp > 0 {
        let copies = grouped(parameters.mtp_copies);
        lines.push(format!(
            "              {} for multi-token prediction, and {copies} in copies",
            grouped(parameters.mtp)
        ));
    }
    if let Some(again) = parameters.read_again {
        lines.push(format!("              {} read again by layers that share weights", grouped(again)));
    }
    if let Some(copy) = total::tied_copy(inspection) {
        lines.push(format!("              {} in a tied head, not counted again", grouped(copy)));
    }
    if parameters.towers > 0 {
        lines.push(format!("              {} of them in encoders", grouped(parameters.towers)));
    }
    lines.extend(checkpoint(inspection));
    if let Some(reconciliation) = published_total {
        lines.extend(total::text(reconciliation));
    }
    lines.extend(towers(inspection));
    lines.extend(caches(inspection));
    lines.push(format!(
        "  head        {}",
        if inspection.tied { "tied to the embedding" } else { "separate weights" }
    ));
    let mut text = lines.join("\n");
    text.push_str("\n\nValues\n");
    text.push_str(&values(&inspection.values));
    text.push_str("\nBlocks\n");
    text.push_str(&blocks(&inspection.blocks));
    for block in &inspection.blocks {
        text.push_str(&format!("\n{}, in execution order\n", block.name));
        text.push_str(&operators(block));
    }
    for (title, list) in [("Tensors", &inspection.tensors), ("Multi-token prediction", &inspection.mtp)] {
        if !list.is_empty() {
            text.push_str(&format!("\n{title} ({})\n", grouped(list.len() as u64)));
            text.push_str(&tensors(list));
        }
    }
    text
}

fn checkpoint(inspection: &Inspection) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(checkpoint) = &inspection.checkpoint {
        lines.push(format!("  tensors     {} B stored", grouped(checkpoint.bytes)));
        if checkpoint.scales > 0 {
            let (bytes, scales) = (grouped(checkpoint.scale_bytes), grouped(checkpoint.scales));
            lines.push(format!("              {bytes} B of them in {scales} scales"));
        }
    }
    lines
}

fn towers(inspection: &Inspection) -> Vec<String> {
    let mut lines = Vec::new();
    for tower in &inspection.towers {
        let per_image = tower.flops_per_image.zip(tower.tokens_per_image);
        let per_image = per_image.map_or("images of any size".to_owned(), |(flops, tokens)| {
            format!("{} FLOP per image of {} tokens", grouped(flops), grouped(tokens))
        });
        lines.push(format!("  {:<11} {} parameters, {per_image}", tower.name, grouped(tower.parameters)));
    }
    lines
}

fn caches(inspection: &Inspection) -> Vec<String> {
    let mut lines = Vec::new();
    let windowed = inspection.kv_bytes_per_token_windowed;
    lines.push(format!("  KV cache    {} B per token at 16 bits", grouped(inspection.kv_bytes_per_token)));
    if windowed > 0 {
        lines.push(format!("              and {} B per token inside windows", grouped(windowed)));
    }
    if inspection.state_bytes_per_sequence > 0 {
        let state = grouped(inspection.state_bytes_per_sequence);
        lines.push(format!("  state       {state} B per sequence, independent of its length"));
    }
    let context =
        inspection.max_context.map_or("not given".into(), |tokens| format!("{} tokens", grouped(tokens)));
    lines.push(format!("  context     {context}"));
    lines
}

fn values(values: &[InspectedValue]) -> String {
    let row = |value: &InspectedValue| {
        let how = value.how.clone().unwrap_or_default();
        vec![value.key.clone(), value.value.to_string(), value.tag.to_string(), how]
    };
    table(&["key", "value", "source", "formula"], values.iter().map(row))
}

fn blocks(blocks: &[InspectedBlock]) -> String {
    let row = |block: &InspectedBlock| {
        vec![
            block.name.clone(),
            ranges(&block.layers),
            grouped(block.parameters),
            grouped(block.kv_bytes_per_token),
            block.window.map(grouped).unwrap_or_default(),
        ]
    };
    let header = ["block", "layers", "parameters per layer", "KV B/token per layer", "window"];
    table(&header, blocks.iter().map(row))
}

fn operators(block: &InspectedBlock) -> String {
    let rows = block.operators.iter().map(|operator| {
        let dims = operator.dims.iter().map(|dim| format!("{} {}", dim.name, dim.value));
        vec![
            operator.name.clone(),
            operator.kind.clone(),
            dims.collect::<Vec<_>>().join(", "),
            grouped(operator.parameters),
            operator.inputs.join(", "),
        ]
    });
    table(&["operator", "kind", "dimensions", "parameters", "reads"], rows)
}

/// One line for tensors that differ only in the layer.
fn tensors(list: &[InspectedTensor]) -> String {
    let mut groups: BTreeMap<(usize, &str), (Vec<u32>, &InspectedTensor)> = BTreeMap::new();
    let mut first: BTreeMap<(&str, &[u64]), usize> = BTreeMap::new();
    for (at, tensor) in list.iter().enumerate() {
        let (layer, rest) = match layer(&tensor.name) {
            Some((layer, rest)) => (Some(layer), rest),
            None => (None, tensor.name.as_str()),
        };
        let place = *first.entry((rest, &tensor.shape)).or_insert(at);
        let group = groups.entry((place, rest)).or_insert_with(|| (Vec::new(), tensor));
        group.0.extend(layer);
    }
    let rows = groups.into_iter().map(|((_, rest), (layers, tensor))| {
        let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
        let name = match layers.is_empty() {
            true => rest.to_owned(),
            false => format!("model.layers.{{{}}}.{rest}", ranges(&layers)),
        };
        let role = role(tensor);
        [name, shape.join(" x "), if tensor.buffer { format!("{role}, buffer") } else { role }]
    });
    table(&["tensor", "shape", "role"], rows)
}

/// Role of a tensor, by its name in files.
pub fn role(tensor: &InspectedTensor) -> String {
    let name = serde_json::to_value(tensor.role).ok();
    name.as_ref().and_then(|name| name.as_str()).unwrap_or_default().to_owned()
}

/// `model.layers.3.mlp.up_proj.weight` → 3 and `mlp.up_proj.weight`.
fn layer(name: &str) -> Option<(u32, &str)> {
    let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
    Some((layer.parse().ok()?, rest))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    pub fn inspected(name: &str, config: &str) -> Inspected {
        Inspected {
            name: name.into(),
            source: "s".into(),
            weight_format: None,
            published_total: None,
            inspection: Inspection::of(&ModelGraph::build(&ModelConfig::parse(config).unwrap()).unwrap()),
        }
    }

    /// A small model; `more` has further keys of its configuration.
    pub fn llama(more: &str) -> Inspected {
        let config = r#"{"model_type": "llama", "hidden_size": 6, "num_hidden_layers": 3, "vocab_size": 11,
            "num_attention_heads": 3, "intermediate_size": 10"#;
        inspected("a", &format!("{config}, {more}}}"))
    }

    #[test]
    fn every_tensor_has_its_line_and_equal_layers_share_one() {
        let inspection = llama(r#""num_key_value_heads": 1, "tie_word_embeddings": false"#).inspection;
        let text = tensors(&inspection.tensors);
        assert_eq!(text.lines().count(), 1 + 3 + 9, "{text}");
        let shape = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        assert_eq!(shape("model.layers.{0-2}.self_attn.k_proj.weight"), Some("2 x 6   attention"));
    }
}
