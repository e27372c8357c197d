//! Degrees and dtypes per layer type, as the interface has them, and the static batch that they describe.

use crate::spec::degree::Degrees;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::request::static_batch::{NativeLayers, StaticRequest};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;

/// A layer type of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum PublishedLayer {
    /// Attention and its projections.
    Attention,
    /// Feed-forward layers and experts.
    Feedforward,
    /// Norms and the residual stream.
    Norm,
    /// Embedding and LM head.
    Embedding,
}

/// Degrees and dtype of one layer type.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::http) struct LayerDegrees {
    /// Tensor parallelism; 1 if absent.
    pub(super) tensor_parallel: Option<u64>,
    /// Context parallelism; 1 if absent.
    pub(super) context_parallel: Option<u64>,
    /// Sequence parallelism: 1, or the tensor parallelism.
    pub(super) sequence_parallel: Option<u64>,
    /// Number format of the weights.
    pub(super) dtype: Option<String>,
}

/// Degrees and dtypes of every layer type.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::http) struct LayersDegrees {
    /// Attention.
    pub(super) attention: LayerDegrees,
    /// Feed-forward layers and experts.
    pub(super) feedforward: LayerDegrees,
    /// Norms.
    pub(super) norm: LayerDegrees,
    /// Embedding and LM head.
    pub(super) embedding: LayerDegrees,
}

/// Formats of 16 bits and more, in which a checkpoint's own tensors stay.
const NATIVE: [&str; 3] = ["bf16", "fp16", "fp32"];

fn is_native(dtype: &str) -> bool {
    NATIVE.contains(&dtype.to_lowercase().as_str())
}

impl LayersDegrees {
    /// The same degrees and dtype for every layer type.
    pub(super) fn all(one: &LayerDegrees) -> LayersDegrees {
        let [attention, feedforward, norm, embedding] = [(); 4].map(|()| one.clone());
        LayersDegrees { attention, feedforward, norm, embedding }
    }

    /// The static batch of `batch` requests on these degrees. A device of the catalogue is taken as often as the degrees
    /// need.
    pub(super) fn request(
        &self,
        known: &Catalog,
        (model, hardware): (&str, &str),
        (batch, isl, osl): (u64, u64, u64),
    ) -> Result<StaticRequest, Error> {
        let LayersDegrees { attention, feedforward, norm, embedding } = self;
        let tp = attention.tensor_parallel.unwrap_or(1);
        let cp = attention.context_parallel.unwrap_or(1);
        let each = [attention, feedforward, norm, embedding];
        let sp = each.iter().filter_map(|one| one.sequence_parallel).max();
        let sp = sp.unwrap_or(1).max(norm.tensor_parallel.unwrap_or(1));
        if sp > 1 && sp != tp {
            let expected = format!("1, or {tp}, the tensor parallelism of attention");
            let fix = "norms are whole on every rank, or sharded by token over all of them";
            return Err(Error::new("sequence_parallel", sp.to_string(), expected, fix));
        }
        let own = |degree: Option<u64>| degree.filter(|degree| *degree != tp);
        let both = Degrees {
            tp: Some(tp),
            cp: Some(cp),
            ffn_tp: own(feedforward.tensor_parallel),
            vocab_tp: own(embedding.tensor_parallel),
            sp: (sp > 1).then_some(true),
            ..Degrees::default()
        };
        let (weight_format, native_layers) = self.formats()?;
        let is_system = known.find(CatalogKind::Systems, hardware).is_ok();
        let widest = both.ffn_tp.max(both.vocab_tp).unwrap_or(1);
        let devices = tp.saturating_mul(cp).max(widest);
        Ok(StaticRequest {
            scenario: Scenario {
                isl: Some(isl),
                osl: Some(osl),
                weight_format,
                deployment: Some(Deployment { both, ..Deployment::default() }),
                ..Scenario::of(
                    model,
                    &if is_system { hardware.to_owned() } else { format!("{devices}x{hardware}") },
                )
            },
            batch: Some(batch),
            native_layers,
            ..StaticRequest::default()
        })
    }

    /// The weight format, and the layers that stay in 16 bits where others are quantised.
    fn formats(&self) -> Result<(Option<String>, Vec<NativeLayers>), Error> {
        let named = [
            (&self.attention, &[NativeLayers::Attention][..]),
            (&self.feedforward, &[NativeLayers::FeedForward, NativeLayers::Experts][..]),
            (&self.embedding, &[NativeLayers::Vocabulary][..]),
        ];
        let named = named.iter().filter_map(|(one, layers)| Some((one.dtype.as_deref()?, *layers)));
        let (native, quantised): (Vec<_>, Vec<_>) = named.partition(|(dtype, _)| is_native(dtype));
        let Some((format, _)) = quantised.first() else {
            return Ok((native.first().map(|(dtype, _)| (*dtype).to_owned()), vec![]));
        };
        if let Some((other, _)) = quantised.iter().find(|(dtype, _)| dtype != format) {
            let fix = "use one quantised format, and bf16 for the other layer types";
            return Err(Error::new("dtype", format!("{format} and {other}"), "one quantised format", fix));
        }
        let native = native.into_iter().flat_map(|(_, layers)| layers.iter().copied()).collect();
        Ok((Some((*format).to_owned()), native))
    }
}
