//! MiniCPM: Llama's layers with scaled sums; MiniCPM3 with latent attention.

use serde_json::json;

use crate::graph::dimensions::LatentAttention;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::latent::{Latent, LatentTraits};
use crate::graph::part::layer::{Layer, Mixer};
use crate::graph::part::rope::{Rope, RopeClass};
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `minicpm`: MiniCPM-2B and MiniCPM4.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let scaled_as_4 = keys.count_or_none("mup_denominator")?.is_some();
    if !scaled_as_4 {
        // Files of the first generation claim a separate head; their checkpoints have none.
        keys.only("tie_word_embeddings", &json!(true))?;
    }
    let whole = DecoderSpec::read(keys, true)?;
    let network = FeedForward::read(keys, whole.hidden)?;
    let attention = Attention::read_stated(keys, whole.hidden)?;
    let biased = attention.biased(keys.flag("attention_bias", false)?);
    Ok(whole.uniform(Layer::new(biased, network)))
}

/// `minicpm3`: the values' head dimension is the stream's width over the number of heads.
pub fn build_minicpm3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["num_key_value_heads", "head_dim", "qk_head_dim"]);
    let whole = DecoderSpec::read(keys, true)?;
    let hidden = whole.hidden;
    let heads = keys.count("num_attention_heads")?;
    let v_head_dim = match keys.count_or_none("v_head_dim")? {
        Some(stated) => stated,
        None => Attention::of(hidden, heads, heads, None)?.head_dim,
    };
    let qk_rope_head_dim = keys.count("qk_rope_head_dim")?;
    let q_lora_rank = keys.stated("q_lora_rank")?.count_or_none("q_lora_rank")?;
    let dims = LatentAttention {
        heads,
        kv_lora_rank: keys.count("kv_lora_rank")?,
        qk_rope_head_dim,
        qk_nope_head_dim: keys.count("qk_nope_head_dim")?,
        v_head_dim,
        mask: AttentionMask::All,
    };
    let bias = keys.flag("attention_bias", false)?;
    let rope = Some(Rope::of(keys, qk_rope_head_dim, RopeClass::WHOLE)?);
    let traits = LatentTraits::default();
    let latent = Latent { hidden, dims, q_lora_rank, bias, indexer: None, rope, output_gate: None, traits };
    let network = FeedForward::read(keys, hidden)?;
    let network = FeedForward { bias: keys.flag("mlp_bias", false)?, ..network };
    Ok(whole.uniform(Layer::of(hidden, Mixer::Latent(latent), network)))
}
