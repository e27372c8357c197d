//! The layers of each device as llama.cpp assigns them by shares
//! (<https://github.com/ggml-org/llama.cpp/blob/0c1e570/src/llama-model.cpp>, `load_tensors`): the repeating layers and,
//! after them, the output are spread over the devices by the position of each, in 32-bit arithmetic.

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

    proptest! {
        #[test]
        fn written_shares_give_the_layers(stages in prop::collection::vec(1u64..60, 1..9)) {
            let layers: u64 = stages.iter().sum();
            prop_assert_eq!(layers_by_shares(&shares_of_layers(&stages), layers, layers + 1), stages);
        }
    }
}
