//! InternViT: a class token, learned positions, sums scaled by learned factors, neighbours merged before the projector.
//!
//! Defaults for missing keys: `InternVLVisionConfig` of transformers. The checkpoints' own code requires all keys.

use serde_json::{Value, json};

use super::{merged_width, side, two_layers};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::part::encoder::{Encoder, EncoderNames, Patches, Projection, norm, once};
use crate::graph::tensor::TensorRole;
use crate::graph::tower::Tower;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// The tensor names, and the configuration keys, which differ between transformers and the checkpoints' own code.
pub struct Dialect {
    encoder: EncoderNames,
    prefix: &'static str,
    layers: &'static str,
    /// Patches, class token, positions.
    embeddings: [&'static str; 3],
    /// Factors of the sums, norms of queries and keys.
    extra: [&'static str; 4],
    /// The projector's module, norm and matrices.
    projector: [&'static str; 4],
    qkv_bias: (&'static str, bool),
    qk_norm: &'static str,
}

/// Names of transformers.
const TRANSFORMERS: Dialect = Dialect {
    encoder: EncoderNames {
        norms: ["layernorm_before", "layernorm_after"],
        qkv: ["attention.q_proj", "attention.k_proj", "attention.v_proj"],
        out: "attention.projection_layer",
        network: &["mlp.fc1", "mlp.fc2"],
    },
    prefix: "model.vision_tower",
    layers: "model.vision_tower.encoder.layer",
    embeddings: [
        "embeddings.patch_embeddings.projection",
        "embeddings.cls_token",
        "embeddings.position_embeddings",
    ],
    extra: ["lambda_1", "lambda_2", "attention.q_norm.weight", "attention.k_norm.weight"],
    projector: ["model.multi_modal_projector", "layer_norm", "linear_1", "linear_2"],
    qkv_bias: ("attention_bias", false),
    qk_norm: "use_qk_norm",
};

/// The same as a place in memory.
pub static HUGGING_FACE: Dialect = TRANSFORMERS;

/// Qianfan-OCR: the same, with layers under another name and biases by default (`modular_qianfan_ocr.py` of transformers
/// 5.24).
pub static QIANFAN: Dialect =
    Dialect { layers: "model.vision_tower.layers", qkv_bias: ("attention_bias", true), ..TRANSFORMERS };

/// Names of the checkpoints' own code.
pub static CHAT: Dialect = Dialect {
    encoder: EncoderNames {
        norms: ["norm1", "norm2"],
        qkv: ["attn.qkv"; 3],
        out: "attn.proj",
        network: &["mlp.fc1", "mlp.fc2"],
    },
    prefix: "vision_model",
    layers: "vision_model.encoder.layers",
    embeddings: ["embeddings.patch_embedding", "embeddings.class_embedding", "embeddings.position_embedding"],
    extra: ["ls1", "ls2", "attn.q_norm.weight", "attn.k_norm.weight"],
    projector: ["mlp1", "0", "1", "3"],
    qkv_bias: ("qkv_bias", true),
    qk_norm: "qk_normalization",
};

/// The encoder; an image has a variable number of tiles, up to a maximum.
pub fn tower(
    keys: &Keys<'_>,
    text: Count,
    dialect: &'static Dialect,
    tiles: Option<Count>,
) -> Result<Tower, Error> {
    // Keys for training, and the initial value of the sums' factors.
    keys.set_aside(&["model_type", "drop_path_rate", "initializer_factor", "layer_scale_init_value"]);
    keys.set_aside(&["projection_dropout"]);
    let channels = keys.count_or("num_channels", 3)?.value;
    keys.only("use_mask_token", &json!(false))?;
    keys.only("use_mean_pooling", &json!(true))?;
    keys.only("use_absolute_position_embeddings", &json!(true))?;
    let (hidden, heads) = (keys.count("hidden_size")?, keys.count("num_attention_heads")?);
    let shift = match keys.text("norm_type")?.as_deref() {
        None | Some("layer_norm") => true,
        Some("rms_norm") => false,
        Some(other) => {
            let fix = "report the model: this norm needs its own builder";
            return Err(Error::new("norm_type", other, "layer_norm or rms_norm", fix));
        }
    };
    let patch = square(keys, "patch_size")?;
    let size = square(keys, "image_size")?;
    let side = side(size, patch)?;
    let positions =
        Count::derived("positions", side * side + 1, "(image_size / patch_size)² and a class token");
    let [patches, class, learned] = dialect.embeddings;
    let embeddings =
        vec![(class, vec![1, 1, hidden.value]), (learned, vec![1, positions.value, hidden.value])];
    let shape = vec![hidden.value, channels, patch.value, patch.value];
    let mut block = Assembly::default();
    Patches { tensor: patches, shape, bias: true, embeddings }.assemble(&mut block, hidden);
    let stem = once(block, "patches", dialect.prefix, positions);
    let (bias, default) = dialect.qkv_bias;
    let encoder = Encoder::biased(hidden, heads, keys.count("intermediate_size")?, &dialect.encoder);
    let encoder = Encoder { shift, qkv_bias: [keys.flag(bias, default)?; 3], ..encoder };
    let normed = keys.flag(dialect.qk_norm, false)?;
    let extra = dialect.extra.iter().take(if normed { 4 } else { 2 });
    let extra: Vec<_> = extra.map(|name| weight(*name, vec![hidden.value], TensorRole::Norm)).collect();
    let layers = encoder.layers(dialect.layers, keys.count("num_hidden_layers")?, positions, &extra)?;
    let wide = merged_width(hidden, Count::derived("merge", 2, "1 / downsample_ratio"));
    let [place, scale, up, down] = dialect.projector;
    let (mut block, stream) = Assembly::from_input(wide);
    let stream = norm(&mut block, stream, "projector_norm", scale, wide, true);
    let up = Projection { name: "linear_1", tensor: up, input: wide, output: text, bias: true };
    let down = Projection { name: "linear_2", tensor: down, input: text, output: text, bias: true };
    two_layers(&mut block, stream, up, down);
    let tokens =
        Count::derived("tile_tokens", side * side / 4, "((image_size / patch_size) × downsample_ratio)²");
    let projector = once(block, "projector", place, tokens);
    let sight = tiles.map_or(ImageProcessor::FixedSize, |most| ImageProcessor::Tiles {
        side: size.value,
        most: most.value,
    });
    Ok(Tower { name: "vision", parts: vec![stem, layers, projector], image_processor: sight })
}

/// A length, which files may give per side.
fn square(keys: &Keys<'_>, key: &'static str) -> Result<Count, Error> {
    let Some(Value::Array(_)) = keys.value(key) else { return keys.count(key) };
    match keys.numbers(key)?.unwrap_or_default().as_slice() {
        [height, width] if height == width && (1..=1_000_000).contains(height) => {
            Ok(Count::config(key, *height))
        }
        other => {
            let fix = "copy the value from the model's config.json";
            let found = match other {
                [height, width] => format!("{height} and {width}"),
                other => format!("a list of {}", other.len()),
            };
            Err(Error::new(key, found, "one length, or two that are equal", fix))
        }
    }
}
