//! Nemotron-H and Nemotron-3: layers with one mixer each: Mamba-2, attention, a plain network or experts.
//!
//! Defaults for missing keys: `NemotronHConfig` of transformers.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::{below, weight};
use crate::graph::cache::StateWidth;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{COPY, kinds_of};
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, SharedExperts, Stacking};
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::ssd::Ssd;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("model.embed_tokens", "model.embeddings"),
    ("model.norm", "model.norm_f"),
    ("input_layernorm post_attention_layernorm", "norm"),
    ("self_attn mamba mlp", "mixer"),
]);

/// The one mixer of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NemotronMixer {
    Mamba,
    Attention,
    Moe,
    Mlp,
}

/// Their names in lists and pattern strings.
const WORDS: &[(&str, NemotronMixer)] = &[
    ("mamba", NemotronMixer::Mamba),
    ("linear_attention", NemotronMixer::Mamba),
    ("attention", NemotronMixer::Attention),
    ("full_attention", NemotronMixer::Attention),
    ("moe", NemotronMixer::Moe),
    ("mlp", NemotronMixer::Mlp),
    ("M", NemotronMixer::Mamba),
    ("*", NemotronMixer::Attention),
    ("E", NemotronMixer::Moe),
    ("-", NemotronMixer::Mlp),
];

/// `nemotron_h`: the pattern defines the layers; keys of kinds outside the pattern are unused.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // The class ignores these; the checkpoints' own code does not.
    if keys.has("auto_map") {
        keys.only("sliding_window", &serde_json::Value::Null)?;
        keys.only("tie_word_embeddings", &json!(false))?;
    } else {
        keys.set_aside(&["attention_bias", "mamba_proj_bias", "sliding_window"]);
    }
    keys.set_aside(ignored("nemotron_h"));
    let kinds = kinds(keys, "hybrid_override_pattern", "layers_block_type")?;
    let Some(kinds) = kinds else {
        let expected = "one character or word for each layer";
        let fix = "copy hybrid_override_pattern or layers_block_type from the model's config.json";
        return Err(Error::new("hybrid_override_pattern", "nothing: the key is missing", expected, fix));
    };
    let depth = Count::derived("num_hidden_layers", kinds.len() as u64, "layers of the pattern");
    if let Some(stated) =
        keys.count_or_none("num_hidden_layers")?.filter(|stated| stated.value != depth.value)
    {
        let expected = format!("the {} layers of the pattern", depth.value);
        let fix = "copy the pattern and num_hidden_layers from the model's config.json";
        return Err(Error::new("num_hidden_layers", stated.value.to_string(), expected, fix));
    }
    let whole = DecoderSpec::of(keys, keys.count("hidden_size")?, depth, keys.count("vocab_size")?, false)?;
    let whole = DecoderSpec { names: NAMES, tied: false, ..whole };
    let parts = NemotronReader { keys, hidden: whole.hidden };
    parts.set_idle_aside();
    let layers = kinds.iter().map(|kind| parts.layer(*kind)).collect::<Result<Vec<_>, _>>()?;
    let mtp = parts.predicting(whole.layers)?;
    Ok(whole.graph(layers, mtp))
}

/// The kinds of layers, from a string of characters or a list of words.
fn kinds(
    keys: &Keys<'_>,
    pattern: &'static str,
    list: &'static str,
) -> Result<Option<Vec<NemotronMixer>>, Error> {
    if let Some(words) = keys.texts(list)? {
        keys.set_aside(&[pattern]);
        return kinds_of(list, &words, WORDS, COPY).map(Some);
    }
    let Some(pattern_text) = keys.text(pattern)? else { return Ok(None) };
    let characters: Vec<String> = pattern_text.chars().map(String::from).collect();
    kinds_of(pattern, &characters, WORDS, COPY).map(Some)
}

struct NemotronReader<'k, 'c> {
    keys: &'k Keys<'c>,
    hidden: Count,
}

impl NemotronReader<'_, '_> {
    /// Keys of layer kinds that a pattern may not contain.
    fn set_idle_aside(&self) {
        self.keys.set_aside(ignored("nemotron_h absent kinds"));
    }

    fn layer(&self, kind: NemotronMixer) -> Result<Layer, Error> {
        let (mixer, network) = match kind {
            NemotronMixer::Mamba => {
                (Mixer::Recurrent(Box::new(Recurrent::Ssd(self.mamba()?))), Network::Absent)
            }
            NemotronMixer::Attention => (Mixer::Attention(self.attention()?), Network::Absent),
            NemotronMixer::Moe => (Mixer::Absent, self.moe()?.into()),
            NemotronMixer::Mlp => {
                let bias = self.keys.flag("mlp_bias", false)?;
                let width = self.keys.count("intermediate_size")?;
                (Mixer::Absent, FeedForward::plain(self.hidden, width, bias).into())
            }
        };
        Ok(Layer::of(self.hidden, mixer, network))
    }

    fn mamba(&self) -> Result<Ssd, Error> {
        let keys = self.keys;
        let bias = keys.flag("use_bias", false)?;
        // NVIDIA's code and transformers read different keys for the same bias.
        if keys.has("auto_map") {
            keys.only("mamba_proj_bias", &json!(bias))?;
        }
        let single = keys.says("mamba_ssm_cache_dtype", "float32");
        Ssd {
            hidden: self.hidden,
            heads: keys.count("mamba_num_heads")?,
            head_dim: keys.count("mamba_head_dim")?,
            groups: keys.count("n_groups")?,
            state: keys.count("ssm_state_size")?,
            kernel: keys.count_or("conv_kernel", 4)?,
            chunk: keys.count_or("chunk_size", 128)?,
            bias: [bias, bias],
            conv_bias: keys.flag("use_conv_bias", true)?,
            norm: true,
            width: if single { StateWidth::Single } else { StateWidth::Native },
        }
        .checked()
    }

    fn attention(&self) -> Result<Attention, Error> {
        let keys = self.keys;
        let heads = keys.count("num_attention_heads")?;
        let kv_heads = keys.stated("num_key_value_heads")?.count("num_key_value_heads")?;
        let head_dim = keys.count_or(keys.spelling(&["head_dim", "attention_head_dim"])?, 128)?;
        let bias = keys.has("auto_map") && keys.flag("attention_bias", false)?;
        let attention = Attention::of(self.hidden, heads, kv_heads, Some(head_dim))?;
        Ok(Attention { qkv_bias: bias, o_bias: bias, ..attention })
    }

    fn moe(&self) -> Result<Moe, Error> {
        let keys = self.keys;
        // One network of width `moe_shared_expert_intermediate_size`, whatever number of experts it represents.
        keys.set_aside(&["n_shared_experts"]);
        let bias = keys.flag("mlp_bias", false)?;
        let width = keys.count("moe_shared_expert_intermediate_size")?;
        let network = FeedForward::plain(self.hidden, width, bias);
        Ok(Moe {
            correction_bias: Some("mlp.gate.e_score_correction_bias"),
            stacking: Stacking::PlainOutIn,
            latent: keys.count_or_none("moe_latent_size")?,
            latent_bias: bias,
            shared: Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }),
            ..Moe::read(
                keys,
                self.hidden,
                ["n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"],
            )?
        })
    }

    /// The weights of multi-token prediction: the layers of its pattern, a two-to-one projection and three norms.
    fn predicting(&self, depth: Count) -> Result<Vec<Weight>, Error> {
        let keys = self.keys;
        let Some(modules) = keys.count_unless_zero("num_nextn_predict_layers")? else { return Ok(vec![]) };
        let kinds = kinds(keys, "mtp_hybrid_override_pattern", "mtp_layers_block_type")?;
        let kinds = kinds.unwrap_or_else(|| vec![NemotronMixer::Attention, NemotronMixer::Moe]);
        let hidden = self.hidden.value;
        let mut weights = vec![];
        for module in 0..modules.value {
            let prefix = format!("mtp.layers.{}", depth.value + module);
            let norm = |name: &str| weight(format!("{prefix}.{name}.weight"), vec![hidden], TensorRole::Norm);
            weights.extend([norm("enorm"), norm("hnorm"), norm("final_layernorm")]);
            let projection = vec![hidden, 2 * hidden];
            weights.push(weight(format!("{prefix}.eh_proj.weight"), projection, TensorRole::Mlp));
            for (at, kind) in kinds.iter().enumerate() {
                let mut block = self.layer(*kind)?.block("mtp_layer", vec![]);
                NAMES.apply(&mut block);
                weights.extend(below(&format!("{prefix}.{at}"), block.weights()));
            }
        }
        Ok(weights)
    }
}
