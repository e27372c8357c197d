//! Kimi-K2.5's encoder (MoonViT): a grid of learned positions, images of any size, neighbours merged.
//!
//! The checkpoints' own code and transformers use different keys for the same numbers; both are read.

use serde_json::json;

use super::{merged_width, two_once};
use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::Assembly;
use crate::graph::image_processor::{ImageProcessor, PatchGrid, SizeRounding};
use crate::graph::part::encoder::{Encoder, EncoderNames, Patches, Projection, norm_once, once};
use crate::graph::tower::{Positions, Tower};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: EncoderNames = EncoderNames {
    norms: ["norm1", "norm2"],
    qkv: ["attn.q_proj", "attn.k_proj", "attn.v_proj"],
    out: "attn.proj",
    network: &["mlp.fc1", "mlp.fc2"],
};

/// The encoder; `text` is the language model's width.
pub fn tower(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    // The time grid and similar keys define how positions are combined, not learned weights.
    keys.set_aside(ignored("kimi_k25 vision_config"));
    keys.only("merge_kernel_size", &json!([2, 2]))?;
    keys.only("merge_type", &json!("sd2_tpool"))?;
    keys.only("mm_projector_type", &json!("patchmerger"))?;
    keys.only("pos_emb_type", &json!("divided_fixed"))?;
    keys.only("video_attn_type", &json!("spatial_temporal"))?;
    keys.only("text_hidden_size", &json!(text.value))?;
    let named = |names: [&'static str; 2]| keys.count(keys.spelling(&names)?);
    let (hidden, heads) = (width(keys)?, named(["num_attention_heads", "vt_num_attention_heads"])?);
    keys.only("mm_hidden_size", &json!(hidden.value))?;
    let grid = [
        named(["pos_emb_height", "init_pos_emb_height"])?.value,
        named(["pos_emb_width", "init_pos_emb_width"])?.value,
    ];
    let patch = keys.count("patch_size")?.value;
    let positions = Positions::PerCell(4);
    let sight = ImageProcessor::DynamicPatches(PatchGrid {
        side: 2 * patch,
        rounding: SizeRounding::RoundUp,
        longest: None,
        row_end: 0,
        usual: None,
    });
    let prefix = "model.vision_tower";
    let mut block = Assembly::default();
    let embeddings = vec![("patch_embed.pos_emb.position_embeddings", vec![grid[0], grid[1], hidden.value])];
    let shape = vec![hidden.value, 3, patch, patch];
    Patches { tensor: "patch_embed.proj", shape, bias: true, embeddings }.assemble(&mut block, hidden);
    let stem = once(block, "patches", prefix, positions);
    let encoder =
        Encoder::biased(hidden, heads, named(["intermediate_size", "vt_intermediate_size"])?, &NAMES);
    let depth = named(["num_hidden_layers", "vt_num_hidden_layers"])?;
    let layers = encoder.layers(&format!("{prefix}.layers"), depth, positions, &[])?;
    let last = norm_once("post_norm", "final_layernorm", hidden, true, prefix, positions);
    let normed = norm_once("projector_norm", "pre_norm", hidden, true, "model.mm_projector", positions);
    let two = Count::derived("merge", 2, "merge_kernel_size");
    let wide = merged_width(hidden, two);
    let up = Projection { name: "in_proj", tensor: "in_proj", input: wide, output: wide, bias: true };
    let down = Projection { name: "out_proj", tensor: "out_proj", input: wide, output: text, bias: true };
    let projector = two_once("projector", up, down, "model.mm_projector", Positions::PerCell(1));
    Ok(Tower { name: "vision", parts: vec![stem, layers, last, normed, projector], image_processor: sight })
}

/// Width of the encoder.
pub fn width(keys: &Keys<'_>) -> Result<Count, Error> {
    keys.count(keys.spelling(&["hidden_size", "vt_hidden_size"])?)
}
