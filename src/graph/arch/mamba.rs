//! Pure Mamba models: Mamba, Falcon-Mamba and Mamba-2, with one mixer and one norm per layer.
//!
//! Defaults for missing keys: the configuration classes of transformers.

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::Affine;
use crate::graph::cache::StateWidth;
use crate::graph::model::ModelGraph;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::mamba::Mamba;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::ssd::Ssd;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("model.layers", "backbone.layers"),
    ("model.embed_tokens", "backbone.embeddings"),
    ("model.norm", "backbone.norm_f"),
    ("input_layernorm", "norm"),
    ("mamba", "mixer"),
]);

/// `mamba`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build_first(keys, None)
}

/// `falcon_mamba`: step, B and C are normalised without weights.
pub fn build_falcon(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build_first(keys, Some(Affine::Absent))
}

fn build_first(keys: &Keys<'_>, norms: Option<Affine>) -> Result<ModelGraph, Error> {
    // Keys of the first checkpoints and of initialisation. The classes derive no shape from them.
    keys.set_aside(ignored("mamba"));
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, true)? };
    let mamba = Mamba {
        hidden: whole.hidden,
        inner: inner(keys, whole.hidden, "expand", Some("intermediate_size"))?,
        state: keys.count_or("state_size", 16)?,
        dt_rank: dt_rank(keys, whole.hidden, "time_step_rank")?,
        kernel: keys.count_or("conv_kernel", 4)?,
        // Versions of the class disagree on its default.
        bias: keys.stated("use_bias")?.flag("use_bias", false)?,
        conv_bias: keys.flag("use_conv_bias", true)?,
        norms,
        heads: None,
    };
    Ok(alone(whole, Recurrent::Mamba(mamba)))
}

/// `mamba2`.
pub fn build_second(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("mamba"));
    // A remnant of the first Mamba: no matrix has this width here.
    keys.set_aside(&["time_step_rank"]);
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let bias = keys.flag("use_bias", false)?;
    let ssd = Ssd {
        hidden: whole.hidden,
        heads: keys.count_or("num_heads", 128)?,
        head_dim: keys.count_or("head_dim", 64)?,
        groups: keys.count_or("n_groups", 8)?,
        state: keys.count_or("state_size", 128)?,
        kernel: keys.count_or("conv_kernel", 4)?,
        chunk: keys.count_or("chunk_size", 256)?,
        bias: [bias, bias],
        conv_bias: keys.flag("use_conv_bias", true)?,
        norm: true,
        width: StateWidth::Native,
    };
    fills(&ssd, inner(keys, whole.hidden, "expand", None)?)?;
    Ok(alone(whole, Recurrent::Ssd(ssd.checked()?)))
}

fn alone(whole: DecoderSpec, mixer: Recurrent) -> ModelGraph {
    let mixer = Mixer::Recurrent(Box::new(mixer));
    let layer = Layer::of(whole.hidden, mixer, Network::Absent);
    whole.uniform(layer)
}

/// Inner channels: `expand × hidden_size`. A file that repeats them must agree.
pub(super) fn inner(
    keys: &Keys<'_>,
    hidden: Count,
    expand: &'static str,
    stated: Option<&'static str>,
) -> Result<Count, Error> {
    let inner = keys.count_or(expand, 2)?.value * hidden.value;
    if let Some(key) = stated
        && let Some(stated) = keys.count_or_none(key)?
    {
        return Ok(stated);
    }
    Ok(Count::derived("d_inner", inner, "expand × hidden_size"))
}

/// Returns an error if the heads do not add up to the inner channels.
pub(super) fn fills(ssd: &Ssd, inner: Count) -> Result<(), Error> {
    let width = ssd.heads.value * ssd.head_dim.value;
    if width == inner.value { Ok(()) } else { Err(disagree(ssd.heads.symbol, width, inner.value)) }
}

fn disagree(key: &str, found: u64, inner: u64) -> Error {
    let fix = "copy heads, head_dim and expand from the model's config.json";
    Error::new(key, found.to_string(), format!("expand × hidden_size {inner}"), fix)
}

/// Rank of the step projection: `"auto"` is a sixteenth of the stream.
pub(super) fn dt_rank(keys: &Keys<'_>, hidden: Count, key: &'static str) -> Result<Count, Error> {
    if keys.says(key, "auto") {
        return Ok(Count::derived("dt_rank", hidden.value.div_ceil(16), "hidden_size / 16, rounded up"));
    }
    keys.count(key)
}
