//! Pixtral's encoder with Mistral-3's patch merger and projector. Images may have any size up to `image_size`; each row
//! of their tokens ends in a separate token (`[IMG_BREAK]`, `[IMG_END]`).
//!
//! Defaults for missing keys: `PixtralVisionConfig`, `Mistral3Config` of transformers.

use serde_json::json;

use super::{merged_width, side, two_layers, two_once};
use crate::graph::assembly::Assembly;
use crate::graph::image_processor::{ImageProcessor, PatchGrid, SizeRounding};
use crate::graph::operator::Split;
use crate::graph::part::encoder::{
    Encoder, EncoderNames, Patches, Projection, linear, norm, norm_once, once,
};
use crate::graph::tower::{Positions, Tower};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::image::ImageSize;
use crate::spec::model::keys::Keys;

const NAMES: EncoderNames = EncoderNames {
    norms: ["attention_norm", "ffn_norm"],
    qkv: ["attention.q_proj", "attention.k_proj", "attention.v_proj"],
    out: "attention.o_proj",
    network: &["feed_forward.gate_proj", "feed_forward.up_proj", "feed_forward.down_proj"],
};

/// Wrapper keys of the projector.
pub struct PixtralProjector {
    /// Width of the language model.
    pub text: Count,
    /// Neighbours per side that are merged into one token, after a norm; `None`: no merging (LLaVA).
    pub merge: Option<Count>,
    /// Biases of its two matrices.
    pub bias: bool,
    /// Names of encoder and projector in the checkpoint.
    pub places: [&'static str; 2],
}

/// Names of encoder and projector in most wrappers.
pub const PLACES: [&str; 2] = ["model.vision_tower", "model.multi_modal_projector"];

/// The encoder, sized for the largest image.
pub fn tower(keys: &Keys<'_>, projector: &PixtralProjector) -> Result<Tower, Error> {
    let PixtralProjector { text, merge, bias, places: [prefix, place] } = *projector;
    keys.only("model_type", &json!("pixtral"))?;
    let channels = keys.count_or("num_channels", 3)?.value;
    let (hidden, heads) = (keys.count("hidden_size")?, keys.count("num_attention_heads")?);
    if hidden.value.is_multiple_of(heads.value) {
        keys.only("head_dim", &json!(hidden.value / heads.value))?;
    }
    let patch = keys.count_or("patch_size", 16)?;
    let longest = keys.count_or("image_size", 1024)?;
    side(longest, patch)?;
    let neighbours = merge.map_or(1, |merge| merge.value);
    let positions = Positions::PerCell(neighbours * neighbours);
    let sight = ImageProcessor::DynamicPatches(PatchGrid {
        side: patch.value * neighbours,
        rounding: SizeRounding::RoundUp,
        longest: Some(longest.value),
        row_end: 1,
        usual: Some(ImageSize::square(longest.value)),
    });
    let mut block = Assembly::default();
    let shape = vec![hidden.value, channels, patch.value, patch.value];
    let patches = Patches { tensor: "patch_conv", shape, bias: false, embeddings: vec![] };
    let stream = patches.assemble(&mut block, hidden);
    norm(&mut block, stream, "pre_norm", "ln_pre", hidden, false);
    let stem = once(block, "patches", prefix, positions);
    let encoder = Encoder {
        shift: false,
        qkv_bias: [false; 3],
        out_bias: false,
        network_bias: false,
        ..Encoder::biased(hidden, heads, keys.count("intermediate_size")?, &NAMES)
    };
    let layers = keys.count("num_hidden_layers")?;
    let layers = encoder.layers(&format!("{prefix}.transformer.layers"), layers, positions, &[])?;
    let up = Projection { name: "linear_1", tensor: "linear_1", input: hidden, output: text, bias };
    let down = Projection { name: "linear_2", tensor: "linear_2", input: text, output: text, bias };
    let prefix = place;
    let mut parts = vec![stem, layers];
    let Some(merge) = merge else {
        parts.push(two_once("projector", up, down, prefix, positions));
        return Ok(Tower { name: "vision", parts, image_processor: sight });
    };
    parts.push(norm_once("projector_norm", "norm", hidden, false, prefix, positions));
    let mut block = Assembly::default();
    let wide = merged_width(hidden, merge);
    let stream = block.input(wide);
    let merging = Projection {
        name: "merging_layer",
        tensor: "patch_merger.merging_layer",
        input: wide,
        output: hidden,
        bias: false,
    };
    let stream = linear(&mut block, stream, merging, Split::Replicate);
    two_layers(&mut block, stream, up, down);
    parts.push(once(block, "projector", prefix, Positions::PerCell(1)));
    Ok(Tower { name: "vision", parts, image_processor: sight })
}
