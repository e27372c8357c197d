//! The encoders of Qwen2-VL, 2.5-VL and 3-VL: images of any size, patches merged by `spatial_merge_size`.
//!
//! Defaults for missing keys: the vision configurations of these classes in transformers.

use serde_json::json;

use super::{matrix_once, merged_width, stretched, two_once};
use crate::graph::assembly::Assembly;
use crate::graph::image_processor::ImageProcessor;
use crate::graph::mask::AttentionMask;
use crate::graph::part::encoder::{Encoder, EncoderNames, Patches, Projection, norm_once, once};
use crate::graph::part::misfit;
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Name of the encoder in the checkpoint.
const PREFIX: &str = "model.visual";

const fn names(network: &'static [&'static str]) -> EncoderNames {
    EncoderNames { norms: ["norm1", "norm2"], qkv: ["attn.qkv"; 3], out: "attn.proj", network }
}

const QWEN2: EncoderNames = names(&["mlp.fc1", "mlp.fc2"]);
const QWEN2_5: EncoderNames = names(&["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]);
const OMNI: EncoderNames = EncoderNames { qkv: ["attn.q", "attn.k", "attn.v"], ..QWEN2_5 };
const QWEN3: EncoderNames = names(&["mlp.linear_fc1", "mlp.linear_fc2"]);

/// Patch embedding of all these models, `[hidden, channels, frames, patch, patch]`.
fn patches(
    keys: &Keys<'_>,
    hidden: Count,
    patch: u64,
    bias: bool,
    embeddings: Vec<(&'static str, Vec<u64>)>,
) -> Result<(TowerPart, ImageProcessor, Positions), Error> {
    // `in_chans` and `spatial_patch_size` are old names that the classes do not read.
    keys.set_aside(&["in_chans", "spatial_patch_size", "model_type", "tokens_per_second"]);
    let channels = keys.count_or("in_channels", 3)?;
    let frames = keys.count_or("temporal_patch_size", 2)?;
    let patch = keys.count_or("patch_size", patch)?.value;
    let mut block = Assembly::default();
    let shape = vec![hidden.value, channels.value, frames.value, patch, patch];
    Patches { tensor: "patch_embed.proj", shape, bias, embeddings }.assemble(&mut block, hidden);
    let merge = keys.count_or("spatial_merge_size", 2)?.value;
    let positions = Positions::PerCell(merge * merge);
    Ok((once(block, "patches", PREFIX, positions), stretched(patch, merge, None), positions))
}

/// A merger: concatenated neighbours through two matrices. `narrow`: the norm comes before the concatenation.
struct Merger {
    prefix: String,
    norm: &'static str,
    shift: bool,
    narrow: bool,
    matrices: [&'static str; 2],
}

impl Merger {
    fn parts(&self, hidden: Count, merge: Count, out: Count) -> Vec<TowerPart> {
        let wide = merged_width(hidden, merge);
        let (normed, each) = if self.narrow { (hidden, merge.value * merge.value) } else { (wide, 1) };
        let (prefix, each) = (&self.prefix, Positions::PerCell(each));
        let normed = norm_once("merger_norm", self.norm, normed, self.shift, prefix, each);
        let [up, down] = self.matrices;
        let up = Projection { name: "merger_1", tensor: up, input: wide, output: wide, bias: true };
        let down = Projection { name: "merger_2", tensor: down, input: wide, output: out, bias: true };
        vec![normed, two_once("merger", up, down, prefix, Positions::PerCell(1))]
    }
}

/// Qwen2-VL: LayerNorm, a plain network of `mlp_ratio`; `hidden_size` is the language model's width.
pub fn qwen2(keys: &Keys<'_>) -> Result<Tower, Error> {
    let hidden = keys.count_or("embed_dim", 1280)?;
    let out = keys.count("hidden_size")?;
    let ratio = keys.count_or("mlp_ratio", 4)?;
    let intermediate = Count::derived("intermediate", hidden.value * ratio.value, "embed_dim × mlp_ratio");
    let (stem, sight, positions) = patches(keys, hidden, 14, false, vec![])?;
    let encoder = encoder(keys, hidden, intermediate, true, &QWEN2)?;
    let layers = encoder.layers("model.visual.blocks", keys.count_or("depth", 32)?, positions, &[])?;
    let merge = keys.count_or("spatial_merge_size", 2)?;
    let merger = old_merger(true);
    let parts = [vec![stem, layers], merger.parts(hidden, merge, out)].concat();
    Ok(Tower { name: "vision", parts, image_processor: sight })
}

/// Qwen2.5-VL: RMSNorm, a gated network; most layers attend inside windows.
pub fn qwen2_5(keys: &Keys<'_>) -> Result<Tower, Error> {
    windowed(keys, None, &QWEN2_5)
}

/// EXAONE-4.5: the same with fewer key and value heads (`modular_exaone4_5.py` of transformers 5.24).
pub fn exaone(keys: &Keys<'_>) -> Result<Tower, Error> {
    windowed(keys, Some(keys.count_or("num_key_value_heads", 8)?), &QWEN2_5)
}

/// Qwen2.5-Omni: the same with separate matrices for queries, keys and values (`modeling_qwen2_5_omni.py` of
/// transformers 5.24).
pub fn omni(keys: &Keys<'_>) -> Result<Tower, Error> {
    windowed(keys, None, &OMNI)
}

/// HyperCLOVA X SEED Omni: Qwen2.5-VL's encoder under another name, and a matrix to the width `text`
/// (`modular_hyperclovax_vision_v2.py` of transformers 5.24).
pub fn hyperclovax(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    let mut tower = qwen2_5(keys)?;
    for part in &mut tower.parts {
        part.prefix = part.prefix.replace(PREFIX, "model.vision_model");
    }
    let input = keys.count_or("out_hidden_size", 3584)?;
    let matrix = Projection { name: "projector", tensor: "projector", input, output: text, bias: true };
    tower.parts.push(matrix_once("projector", matrix, "model", Positions::PerCell(1)));
    Ok(tower)
}

fn windowed(keys: &Keys<'_>, kv_heads: Option<Count>, names: &'static EncoderNames) -> Result<Tower, Error> {
    let hidden = keys.count("hidden_size")?;
    let (stem, sight, positions) = patches(keys, hidden, 14, false, vec![])?;
    let intermediate = keys.count_or("intermediate_size", 3420)?;
    let encoder = encoder(keys, hidden, intermediate, false, names)?;
    let encoder = Encoder { kv_heads: kv_heads.unwrap_or(encoder.heads), ..encoder };
    let (merge, out) = (keys.count_or("spatial_merge_size", 2)?, keys.count_or("out_hidden_size", 3584)?);
    let depth = keys.count_or("depth", 32)?.value as u32;
    let full = keys.numbers("fullatt_block_indexes")?.unwrap_or_else(|| vec![7, 15, 23, 31]);
    let (whole, inside): (Vec<u32>, Vec<u32>) =
        (0..depth).partition(|layer| full.contains(&u64::from(*layer)));
    let tile = AttentionMask::Tile(window(keys, merge)?);
    let mut parts = vec![stem];
    for (name, layers, reach) in
        [("windowed_encoder_layer", inside, tile), ("encoder_layer", whole, AttentionMask::Both)]
    {
        if !layers.is_empty() {
            parts.push(encoder.some_layers("model.visual.blocks", (name, layers), reach, positions, &[])?);
        }
    }
    parts.extend(old_merger(false).parts(hidden, merge, out));
    Ok(Tower { name: "vision", parts, image_processor: sight })
}

/// Positions of a window, used by most of its layers.
fn window(keys: &Keys<'_>, merge: Count) -> Result<Count, Error> {
    let (window, patch) = (keys.count_or("window_size", 112)?, keys.count_or("patch_size", 14)?);
    let side = window.value / patch.value / merge.value * merge.value;
    if side == 0 {
        let expected = format!("at least {} patches of {}", merge.value, patch.value);
        return Err(misfit(window, expected));
    }
    Ok(Count::derived("window_positions", side * side, "(window_size / patch_size)²"))
}

/// Qwen3-VL: learned positions, and additional mergers that feed early layers of the language model.
pub fn qwen3(keys: &Keys<'_>) -> Result<Tower, Error> {
    with_mergers(keys, ["deepstack_merger_list", "norm", "linear_fc1", "linear_fc2"], &[8, 16, 24])
}

/// Qwen3.5: the same, without additional mergers unless the file has them.
pub fn qwen3_5(keys: &Keys<'_>) -> Result<Tower, Error> {
    with_mergers(keys, ["deepstack_merger_list", "norm", "linear_fc1", "linear_fc2"], &[])
}

/// Qwen3-Omni: the same with other names of mergers (`modeling_qwen3_omni_moe.py` of transformers 5.24).
pub fn qwen3_omni(keys: &Keys<'_>) -> Result<Tower, Error> {
    with_mergers(keys, ["merger_list", "ln_q", "mlp.0", "mlp.2"], &[8, 16, 24])
}

/// `list`: the additional mergers; names of a merger's norm and matrices; `usual`: the class's layers with one.
fn with_mergers(
    keys: &Keys<'_>,
    [list, scale, up, down]: [&'static str; 4],
    usual: &[u64],
) -> Result<Tower, Error> {
    let hidden = keys.count_or("hidden_size", 1152)?;
    let positions = keys.count_or("num_position_embeddings", 2304)?;
    let table = vec![("pos_embed.weight", vec![positions.value, hidden.value])];
    let (stem, sight, positions) = patches(keys, hidden, 16, true, table)?;
    let intermediate = keys.count_or("intermediate_size", 4304)?;
    let encoder = encoder(keys, hidden, intermediate, true, &QWEN3)?;
    let layers = encoder.layers("model.visual.blocks", keys.count_or("depth", 27)?, positions, &[])?;
    let (merge, out) = (keys.count_or("spatial_merge_size", 2)?, keys.count_or("out_hidden_size", 3584)?);
    let deep = keys.numbers("deepstack_visual_indexes")?;
    let usual = if keys.has("deepstack_visual_indexes") { &[] } else { usual };
    let deep = deep.unwrap_or_else(|| usual.to_vec());
    let merger = |prefix, narrow| {
        let matrices = [up, down];
        Merger { prefix, norm: scale, shift: true, narrow, matrices }.parts(hidden, merge, out)
    };
    let mut parts = vec![stem, layers];
    parts.extend(merger(format!("{PREFIX}.merger"), true));
    parts.extend((0..deep.len()).flat_map(|index| merger(format!("{PREFIX}.{list}.{index}"), false)));
    Ok(Tower { name: "vision", parts, image_processor: sight })
}

fn old_merger(shift: bool) -> Merger {
    let prefix = format!("{PREFIX}.merger");
    Merger { prefix, norm: "ln_q", shift, narrow: true, matrices: ["mlp.0", "mlp.2"] }
}

fn encoder(
    keys: &Keys<'_>,
    hidden: Count,
    intermediate: Count,
    shift: bool,
    names: &'static EncoderNames,
) -> Result<Encoder, Error> {
    keys.only("attention_bias", &json!(true))?;
    Ok(Encoder { shift, ..Encoder::biased(hidden, keys.count_or("num_heads", 16)?, intermediate, names) })
}
