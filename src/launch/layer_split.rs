//! The layers of each device as llama.cpp assigns them by shares
//! (<https://github.com/ggml-org/llama.cpp/blob/0c1e570/src/llama-model.cpp>, `load_tensors`): the repeating layers and,
//! after them, the output are spread over the devices by the position of each, in 32-bit arithmetic.

use regex_lite::Regex;

/// Repeating layers of each device; `on_device` are the layers that lie on devices, the output among them. Layers before
/// them are in host memory.
pub fn layers_by_shares(shares: &[f64], layers: u64, on_device: u64) -> Vec<u64> {
    let mut ends: Vec<f32> = Vec::with_capacity(shares.len());
    let mut sum = 0.0f32;
    for share in shares {
        sum += *share as f32;
        ends.push(sum);
    }
    // Shares of nothing are as if none were given: all to the first device.
    ends.iter_mut().for_each(|end| *end = if sum > 0.0 { *end / sum } else { 1.0 });
    let placed = on_device.min(layers + 1);
    let first = layers + 1 - placed;
    let mut counts = vec![0; shares.len()];
    for layer in first..layers {
        let position = (layer - first) as f32 / placed as f32;
        if let Some(device) = ends.iter().position(|end| *end > position) {
            counts[device] += 1;
        }
    }
    counts
}

/// Shares by which each device gets these layers: the output counts as a layer of the last.
pub fn shares_of_layers(stages: &[u64]) -> Vec<f64> {
    let last = stages.len().saturating_sub(1);
    stages.iter().enumerate().map(|(at, layers)| (layers + u64::from(at == last)) as f64).collect()
}

/// Layers that patterns of tensors are tried on; models have fewer.
const MOST_LAYERS: u64 = 256;

/// Matrices of a layer's experts in a GGUF file
/// (<https://github.com/ggml-org/llama.cpp/blob/0c1e570/src/llama-arch.cpp>, `LLM_TENSOR_FFN_GATE_EXPS` and its kin).
const EXPERT_TENSORS: [&str; 3] = ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"];

/// Experts whose place `PATTERN=CPU[,…]` moves to host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacedExperts {
    /// Those of every layer.
    All,
    /// Those of these layers.
    Layers(Vec<u64>),
    /// None: other tensors, or another place.
    Others,
}

/// The experts in host memory by patterns of tensors' names, of which the first that fits a name decides; `None` where a
/// pattern is not understood, or takes a part of a layer's experts.
pub fn placed_experts(patterns: &str) -> Option<PlacedExperts> {
    let mut places: Vec<(Regex, bool)> = Vec::new();
    for one in patterns.split(',') {
        let (pattern, place) = one.rsplit_once('=')?;
        places.push((Regex::new(pattern).ok()?, place.starts_with("CPU")));
    }
    let is_hosted =
        |name: &str| places.iter().find(|(pattern, _)| pattern.is_match(name)).is_some_and(|one| one.1);
    let mut layers = Vec::new();
    for layer in 0..MOST_LAYERS {
        let hosted =
            EXPERT_TENSORS.iter().filter(|tensor| is_hosted(&format!("blk.{layer}.{tensor}.weight"))).count();
        match hosted {
            0 => {}
            all if all == EXPERT_TENSORS.len() => layers.push(layer),
            _ => return None,
        }
    }
    Some(match layers.len() as u64 {
        0 => PlacedExperts::Others,
        MOST_LAYERS => PlacedExperts::All,
        _ => PlacedExperts::Layers(layers),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_are_proportions() {
        for shares in [[1.0, 1.0], [0.5, 0.5], [40.0, 40.0]] {
            assert_eq!(layers_by_shares(&shares, 80, 81), [41, 39], "{shares:?}");
        }
        assert_eq!(layers_by_shares(&[3.0, 1.0], 32, 33), [25, 7]);
        assert_eq!(layers_by_shares(&[1.0, 0.0], 32, 33), [32, 0]);
        // Without the output and three layers on the device, those three are the first.
        assert_eq!(layers_by_shares(&[1.0], 32, 30), [29]);
        assert_eq!(layers_by_shares(&[1.0], 32, 999), [32]);
    }

    #[test]
    fn patterns_of_tensors_place_experts() {
        for (patterns, placed) in [
            (".ffn_.*_exps.=CPU", Some(PlacedExperts::All)),
            ("exps=CPU", Some(PlacedExperts::All)),
            (r"blk\.[0-9]+\.ffn_(up|down|gate)_exps\.weight=CPU", Some(PlacedExperts::All)),
            (r"blk\.(0|1|7)\.ffn_.*_exps=CPU", Some(PlacedExperts::Layers(vec![0, 1, 7]))),
            (r"blk\.(0|1)\..*=CUDA0,exps=CPU", Some(PlacedExperts::Layers((2..256).collect()))),
            ("ffn_up_exps=CPU", None),
            ("token_embd=CPU", Some(PlacedExperts::Others)),
            ("exps=CUDA1", Some(PlacedExperts::Others)),
            ("exps", None),
            ("(exps=CPU", None),
        ] {
            assert_eq!(placed_experts(patterns), placed, "{patterns}");
        }
    }

    proptest! {
        #[test]
        fn written_shares_give_the_layers(stages in prop::collection::vec(1u64..60, 1..9)) {
            let layers: u64 = stages.iter().sum();
            prop_assert_eq!(layers_by_shares(&shares_of_layers(&stages), layers, layers + 1), stages);
        }
    }
}
