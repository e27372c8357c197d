//! The encoders of Gemma-3n: MobileNet-V5 for images, a conformer for audio, each with its own token embeddings.
//!
//! Defaults for missing keys: `Gemma3nVisionConfig` and `Gemma3nAudioConfig` of transformers.

use serde_json::{Value, json};

use super::conformer::Conformer;
use super::mobilenet;
use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Projection, linear, norm, once};
use crate::graph::part::names::TensorNames;
use crate::graph::tensor::TensorRole;
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const CONFORMER: TensorNames = TensorNames::of_table(&[
    ("feed_forward1", "ffw_layer_start"),
    ("feed_forward2", "ffw_layer_end"),
    ("norm_pre_attn", "attention.pre_attn_norm"),
    ("norm_post_attn", "attention.post_norm"),
    ("norm_out", "norm"),
    ("self_attn.post", "attention.post"),
    ("self_attn.relative_k_proj", "attention.attn.relative_position_embedding.pos_proj"),
    ("self_attn", "attention.attn"),
]);

/// The image encoder, and the projection to the width `text`.
pub fn vision(keys: Option<&Keys<'_>>, text: Count) -> Result<Tower, Error> {
    let width = Count::derived("hidden_size", mobilenet::WIDTH, "mobilenetv5_300m_enc");
    let mut vocab = Count::class_default("vocab_size", 128);
    if let Some(keys) = keys {
        keys.set_aside(&["do_pooling", "label_names", "model_type", "num_classes", "vocab_offset"]);
        keys.set_aside(&["pretrained_cfg"]);
        keys.only("architecture", &json!("mobilenetv5_300m_enc"))?;
        keys.only("hidden_size", &json!(mobilenet::WIDTH))?;
        keys.only("model_args", &Value::Null)?;
        vocab = keys.count_or("vocab_size", 128)?;
    }
    let mut parts = mobilenet::parts();
    parts.push(embedder("model.embed_vision", vocab, width, text));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}

/// The audio encoder, and the projection to the width `text`.
pub fn audio(keys: Option<&Keys<'_>>, text: Count) -> Result<Tower, Error> {
    let count = |key, default| match keys {
        Some(keys) => keys.count_or(key, default),
        None => Ok(Count::class_default(key, default)),
    };
    let mut channels = [128, 32];
    if let Some(keys) = keys {
        keys.set_aside(ignored("gemma3n audio_config"));
        keys.only("input_feat_size", &json!(128))?;
        keys.only("sscp_conv_kernel_size", &json!([[3, 3], [3, 3]]))?;
        keys.only("sscp_conv_stride_size", &json!([[2, 2], [2, 2]]))?;
        if let Some([first, second]) = keys.numbers("sscp_conv_channel_size")?.as_deref() {
            channels = [*first, *second];
        }
    }
    let hidden = count("hidden_size", 1536)?;
    let conformer = Conformer {
        hidden,
        heads: count("conf_num_attention_heads", 8)?,
        kernel: count("conf_conv_kernel_size", 5)?,
        channels,
        clipped: false,
        names: CONFORMER,
    };
    let stem = conformer.stem("model.audio_tower.subsample_conv_projection", ["conv_0", "conv_1"]);
    let layers = conformer.layers("model.audio_tower.conformer", count("conf_num_hidden_layers", 12)?)?;
    let end = embedder("model.embed_audio", count("vocab_size", 128)?, hidden, text);
    Ok(Tower { name: "audio", parts: vec![stem, layers, end], image_processor: ImageProcessor::Unknown })
}

/// The encoder's own token embeddings and their norm, a norm of the encoder's output, and the projection of both.
fn embedder(prefix: &str, vocab: Count, hidden: Count, text: Count) -> TowerPart {
    let mut block = Assembly::default();
    let table = weight("embedding.weight", vec![vocab.value, hidden.value], TensorRole::Tower);
    let lookup = Operator::Embedding { vocab, hidden, split: Split::Replicate };
    let hard = block.node("embedding", lookup, vec![table], &[]);
    norm(&mut block, hard, "hard_embedding_norm", "hard_embedding_norm", hidden, false);
    let stream = block.input(hidden);
    let soft = norm(&mut block, stream, "soft_embedding_norm", "soft_embedding_norm", hidden, false);
    let (name, tensor) = ("embedding_projection", "embedding_projection");
    let projection = Projection { name, tensor, input: hidden, output: text, bias: false };
    linear(&mut block, soft, projection, Split::Replicate);
    once(block, "projection", prefix, Positions::Open)
}
