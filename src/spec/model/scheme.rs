//! Layout of weights and scales in a quantized checkpoint, to the byte.
//!
//! Independent of the tensors of a model.

use serde_json::{Map, Value};

/// A layout of quantized matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// fp8, an fp32 scale per block of rows and columns.
    Fp8Block([u64; 2]),
    /// fp8, a scale per output row, with this number of bytes.
    Fp8Row(u64),
    /// fp8, one scale per matrix, and one for its inputs if those are static.
    Fp8Tensor {
        /// Bytes of a scale.
        scale: u64,
        /// Whether the inputs have a scale too.
        inputs: bool,
    },
    /// MXFP4: an 8-bit exponent per 32 elements along the inputs.
    Mxfp4,
    /// MXFP8: an 8-bit exponent per 32 elements along the inputs.
    Mxfp8,
    /// NVFP4: an fp8 scale per 16 elements along the inputs, and fp32 scales for matrix and inputs.
    Nvfp4,
    /// int4 in int32 words, an fp16 scale per group along the inputs.
    Int4 {
        /// Number of inputs that share a scale.
        group: u64,
        /// Whether each scale has a packed zero point.
        zeros: bool,
        /// Whether each input has a group index, as int32 (GPTQ).
        order: bool,
    },
}

/// Size of a matrix in a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of its elements.
    pub elements: u64,
    /// Number of scales, zero points and group indices; packed zero points count as words.
    pub scales: u64,
    /// Bytes of those.
    pub scale_bytes: u64,
}

impl Scheme {
    /// Size of a matrix with this number of outputs and inputs.
    pub fn matrix(self, outputs: u64, inputs: u64) -> Stored {
        let of = |elements, scales, scale_bytes| Stored { elements, scales, scale_bytes };
        let all = outputs * inputs;
        match self {
            Scheme::Fp8Block([rows, columns]) => {
                let blocks = outputs.div_ceil(rows) * inputs.div_ceil(columns);
                of(all, blocks, 4 * blocks)
            }
            Scheme::Fp8Row(bytes) => of(all, outputs, bytes * outputs),
            Scheme::Fp8Tensor { scale, inputs } => {
                let scales = 1 + u64::from(inputs);
                of(all, scales, scale * scales)
            }
            Scheme::Mxfp4 => {
                let groups = outputs * inputs.div_ceil(32);
                of(all.div_ceil(2), groups, groups)
            }
            Scheme::Mxfp8 => {
                let groups = outputs * inputs.div_ceil(32);
                of(all, groups, groups)
            }
            Scheme::Nvfp4 => {
                let groups = outputs * inputs.div_ceil(16);
                of(all.div_ceil(2), groups + 2, groups + 2 * 4)
            }
            Scheme::Int4 { group, zeros, order } => {
                let groups = inputs.div_ceil(group);
                let words = if zeros { groups * outputs.div_ceil(8) } else { 0 };
                let orders = if order { inputs } else { 0 };
                of(
                    all.div_ceil(2),
                    groups * outputs + words + orders,
                    2 * groups * outputs + 4 * (words + orders),
                )
            }
        }
    }

    /// The layout of a `quantization_config`, if known to the byte.
    pub fn read(
        map: &Map<String, Value>,
        method: &str,
        block: Option<[u64; 2]>,
        group: Option<u64>,
    ) -> Option<Scheme> {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let flag = |key: &str| map.get(key).and_then(Value::as_bool);
        match (text("quant_algo"), method) {
            (Some("NVFP4"), _) => Some(Scheme::Nvfp4),
            (Some(_), _) => None,
            (None, "mxfp4") => Some(Scheme::Mxfp4),
            (None, "fp8") => match (block, text("activation_scheme")) {
                (Some(block), _) => Some(Scheme::Fp8Block(block)),
                (None, Some("static")) => Some(Scheme::Fp8Tensor { scale: 4, inputs: true }),
                _ => None,
            },
            (None, "fbgemm_fp8") => Some(Scheme::Fp8Row(4)),
            (None, "awq") => Some(Scheme::Int4 { group: group?, zeros: flag("zero_point")?, order: false }),
            (None, "gptq") if map.get("bits").and_then(Value::as_u64) == Some(4) => {
                Some(Scheme::Int4 { group: group?, zeros: true, order: true })
            }
            (None, "compressed-tensors") => compressed(map),
            _ => None,
        }
    }
}

/// compressed-tensors with one group of fp8 weights: scales have the model's 16-bit dtype.
fn compressed(map: &Map<String, Value>) -> Option<Scheme> {
    let groups = map.get("config_groups")?.as_object()?;
    let [group] = groups.values().collect::<Vec<_>>()[..] else { return None };
    let weights = group.get("weights")?;
    if weights.get("type")?.as_str()? != "float" || weights.get("num_bits")?.as_u64()? != 8 {
        return None;
    }
    let inputs = group.get("input_activations").and_then(|inputs| inputs.get("dynamic")?.as_bool());
    match (weights.get("strategy")?.as_str()?, inputs) {
        ("channel", Some(true)) => Some(Scheme::Fp8Row(2)),
        ("tensor", Some(dynamic)) => Some(Scheme::Fp8Tensor { scale: 2, inputs: !dynamic }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_by_hand() {
        let of = |elements, scales, scale_bytes| Stored { elements, scales, scale_bytes };
        for (scheme, stored) in [
            (Scheme::Fp8Block([128, 128]), of(576 * 256, 5 * 2, 40)),
            (Scheme::Fp8Row(4), of(576 * 256, 576, 4 * 576)),
            (Scheme::Fp8Tensor { scale: 4, inputs: true }, of(576 * 256, 2, 8)),
            (Scheme::Mxfp4, of(576 * 128, 576 * 8, 576 * 8)),
            (Scheme::Nvfp4, of(576 * 128, 576 * 16 + 2, 576 * 16 + 8)),
            (
                Scheme::Int4 { group: 128, zeros: true, order: false },
                of(576 * 128, 2 * 576 + 2 * 72, 2 * 2 * 576 + 4 * 2 * 72),
            ),
            (
                Scheme::Int4 { group: 64, zeros: false, order: true },
                of(576 * 128, 4 * 576 + 256, 2 * 4 * 576 + 4 * 256),
            ),
        ] {
            assert_eq!(scheme.matrix(576, 256), stored, "{scheme:?}");
        }
    }
}
