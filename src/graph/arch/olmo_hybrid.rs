//! OLMo-Hybrid: gated DeltaNet in pre-norm layers, OLMo-3's attention in every fourth layer.
//!
//! Source: `modular_olmo_hybrid.py` of transformers 5.24.

use serde_json::Value;

use crate::graph::cache::StateWidth;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::delta::Delta;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Arrangement, Layer, Mixer};
use crate::graph::part::misfit;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("linear_attn.in_proj_v", "linear_attn.v_proj"),
    ("linear_attn.in_proj_z", "linear_attn.g_proj"),
    ("linear_attn.in_proj_a", "linear_attn.a_proj"),
    ("linear_attn.in_proj_b", "linear_attn.b_proj"),
    ("linear_attn.norm", "linear_attn.o_norm"),
    ("linear_attn.out_proj", "linear_attn.o_proj"),
]);

/// `olmo_hybrid`: full layers have norms after attention and network only; without a base of angles nothing rotates.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Initialisation, and the sign of the step.
    keys.set_aside(&["linear_a_log_max", "linear_a_log_min", "linear_dt_max", "linear_dt_min"]);
    keys.set_aside(&["linear_dt_init_floor", "linear_allow_neg_eigval"]);
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let words = [("linear_attention", false), ("full_attention", true)];
    let attends = match layer_kinds(keys, "layer_types", whole.layers, &words)? {
        Some(attends) => attends,
        None => {
            // The last layer attends where no fourth one does.
            let last = whole.layers.value - 1;
            (0..=last).map(|layer| layer % 4 == 3 || (last < 3 && layer == last)).collect()
        }
    };
    let attention = Attention::read_grouped(keys, hidden)?.biased(keys.flag("attention_bias", false)?);
    let rope = attention.rope.filter(|_| rotates(keys));
    let attention = Attention { qk_norm: QkNorm::WholeProjection, rope, ..attention };
    let delta = Recurrent::Delta(delta(keys, hidden, attention.heads)?);
    let network = FeedForward::read(keys, hidden)?;
    let layer = |attends: bool| {
        let arrangement = if attends { Arrangement::PostNorm } else { Arrangement::PreNorm };
        let layer = Layer::of(hidden, Mixer::either(attends, &attention, &delta), network.clone());
        Layer { arrangement, ..layer }
    };
    Ok(whole.graph(attends.into_iter().map(layer).collect(), vec![]))
}

/// Whether the file has a base of angles; `null` in `rope_parameters` means none.
fn rotates(keys: &Keys<'_>) -> bool {
    let inside = keys.value("rope_parameters").and_then(|inside| inside.get("rope_theta"));
    !inside.is_some_and(Value::is_null)
}

/// Missing numbers follow from those of attention.
fn delta(keys: &Keys<'_>, hidden: Count, heads: Count) -> Result<Delta, Error> {
    let key_heads = keys.count_or_none("linear_num_key_heads")?.unwrap_or(heads);
    let value_heads = keys.count_or_none("linear_num_value_heads")?.unwrap_or(heads);
    if !value_heads.value.is_multiple_of(key_heads.value) {
        return Err(misfit(value_heads, format!("a multiple of linear_num_key_heads {}", key_heads.value)));
    }
    let usual = (3 * hidden.value / (4 * key_heads.value)).max(1);
    let usual = Count::derived("linear_key_head_dim", usual, "3/4 of hidden_size / key heads, rounded down");
    let key_dim = keys.count_or_none("linear_key_head_dim")?.unwrap_or(usual);
    let twice = Count::derived("linear_value_head_dim", 2 * key_dim.value, "2 × linear_key_head_dim");
    Ok(Delta {
        hidden,
        key_heads,
        value_heads,
        key_dim,
        value_dim: keys.count_or_none("linear_value_head_dim")?.unwrap_or(twice),
        kernel: keys.count_or("linear_conv_kernel_dim", 4)?,
        width: StateWidth::Single,
        two_matrices: true,
    })
}
