//! MobileNet-V5 300M: the convolutional image encoder of Gemma-3n, whose shape is not part of any configuration.
//!
//! Source: `mobilenetv5_300m_enc` of timm. The resolution of its stages is not modelled.

use petgraph::graph::NodeIndex;

use crate::graph::assembly::{Assembly, weight};
use crate::graph::dimensions::{ScoredKeys, Scores, SoftmaxAttention};
use crate::graph::mask::AttentionMask;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::once;
use crate::graph::rule::ConvForm;
use crate::graph::tensor::{TensorRole, Weight};
use crate::graph::tower::{Positions, TowerPart};
use crate::quantity::count::Count;

/// Its name in the checkpoint.
const PREFIX: &str = "model.vision_tower.timm_model";

/// Output width.
pub const WIDTH: u64 = 2048;

/// A block of a stage. Widths are channels; taps are the side of a square kernel, 0 for no convolution.
#[derive(Clone, Copy)]
enum MobileNetBlock {
    /// A full convolution to `inside` channels, and a matrix back: fused inverted bottleneck.
    Edge { input: u64, inside: u64, output: u64 },
    /// Depthwise convolutions around two matrices: universal inverted bottleneck.
    Bottleneck { taps: [u64; 2], input: u64, inside: u64, output: u64 },
    /// Attention with many query heads and one key/value head, downsampled by a depthwise convolution if taps > 0.
    Attention { taps: u64, width: u64, key: u64, queries: u64 },
}

use MobileNetBlock::{Attention, Bottleneck, Edge};

/// Stage, first block, distance to the next block of this kind, number of blocks, and the block.
const BLOCKS: &[(u32, [u32; 3], MobileNetBlock)] = &[
    (0, [0, 1, 1], Edge { input: 64, inside: 256, output: 128 }),
    (0, [1, 1, 2], Edge { input: 128, inside: 512, output: 128 }),
    (1, [0, 1, 1], Bottleneck { taps: [3, 5], input: 128, inside: 768, output: 256 }),
    (1, [1, 2, 2], Bottleneck { taps: [5, 0], input: 256, inside: 1024, output: 256 }),
    (1, [2, 2, 2], Bottleneck { taps: [3, 0], input: 256, inside: 1024, output: 256 }),
    (2, [0, 1, 1], Bottleneck { taps: [5, 5], input: 256, inside: 1536, output: 640 }),
    (2, [1, 1, 7], Bottleneck { taps: [5, 0], input: 640, inside: 2560, output: 640 }),
    (2, [8, 1, 1], Bottleneck { taps: [0, 0], input: 640, inside: 640, output: 640 }),
    (2, [9, 2, 14], Attention { taps: 3, width: 640, key: 64, queries: 768 }),
    (2, [10, 2, 14], Bottleneck { taps: [0, 0], input: 640, inside: 1280, output: 640 }),
    (3, [0, 1, 1], Bottleneck { taps: [5, 5], input: 640, inside: 3840, output: 1280 }),
    (3, [1, 2, 19], Attention { taps: 0, width: 1280, key: 96, queries: 1536 }),
    (3, [2, 2, 19], Bottleneck { taps: [0, 0], input: 1280, inside: 2560, output: 1280 }),
];

/// Its parts in execution order.
pub fn parts() -> Vec<TowerPart> {
    let (mut block, pixels) = Assembly::from_input(width(3));
    let stem = convolve(&mut block, pixels, "conv_stem.conv", [3, 64], 3, true);
    norm(&mut block, stem, "conv_stem.bn.weight", 64);
    let mut parts = vec![once(block, "stem", PREFIX, Positions::Open)];
    for (stage, [first, step, count], kind) in BLOCKS {
        let layers = (0..*count).map(|index| first + step * index).collect();
        let mut block = Assembly::default();
        assemble(&mut block, *kind);
        let block = block.finish("stage", layers, vec![]);
        parts.push(TowerPart {
            prefix: format!("{PREFIX}.blocks.{stage}"),
            block,
            positions: Positions::Open,
        });
    }
    let mut block = Assembly::default();
    // The concatenation of the last two stages.
    let fused = block.input(width(640 + 1280));
    let out = bottleneck(&mut block, fused, "ffn.", [640 + 1280, 2 * (640 + 1280), WIDTH]);
    norm(&mut block, out, "norm.weight", WIDTH);
    parts.push(once(block, "fusion", &format!("{PREFIX}.msfa"), Positions::Open));
    parts
}

fn assemble(block: &mut Assembly, kind: MobileNetBlock) {
    match kind {
        Edge { input, inside, output } => {
            let stream = block.input(width(input));
            let wide = convolve(block, stream, "conv_exp", [input, inside], 3, false);
            let wide = norm(block, wide, "bn1.weight", inside);
            let narrow = convolve(block, wide, "conv_pwl", [inside, output], 1, false);
            norm(block, narrow, "bn2.weight", output);
        }
        Bottleneck { taps: [start, middle], input, inside, output } => {
            let mut stream = block.input(width(input));
            if start > 0 {
                stream = depthwise(block, stream, "dw_start.conv", input, start);
                stream = norm(block, stream, "dw_start.bn.weight", input);
            }
            let mut wide = convolve(block, stream, "pw_exp.conv", [input, inside], 1, false);
            wide = norm(block, wide, "pw_exp.bn.weight", inside);
            if middle > 0 {
                wide = depthwise(block, wide, "dw_mid.conv", inside, middle);
                wide = norm(block, wide, "dw_mid.bn.weight", inside);
            }
            let narrow = convolve(block, wide, "pw_proj.conv", [inside, output], 1, false);
            let narrow = norm(block, narrow, "pw_proj.bn.weight", output);
            norm(block, narrow, "layer_scale.gamma", output);
        }
        Attention { taps, width: channels, key, queries } => {
            let stream = block.input(width(channels));
            let stream = norm(block, stream, "norm.weight", channels);
            let q = convolve(block, stream, "attn.query.proj", [channels, queries], 1, false);
            let mut inputs = vec![q];
            for name in ["key", "value"] {
                let mut from = stream;
                if taps > 0 {
                    from = depthwise(block, from, &format!("attn.{name}.down_conv"), channels, taps);
                    from = norm(block, from, &format!("attn.{name}.norm.weight"), channels);
                }
                inputs.push(convolve(block, from, &format!("attn.{name}.proj"), [channels, key], 1, false));
            }
            let heads = Count::derived("heads", queries / key, "query width / key width");
            let reach = AttentionMask::Both;
            let dims = SoftmaxAttention::of_encoder(heads, width(key), reach);
            let attention = Operator::Attention(SoftmaxAttention { kv_heads: width(1), ..dims });
            let scores = Scores { heads, keys: ScoredKeys::Masked(reach) };
            inputs.push(block.softmax(scores, &inputs[..2]));
            let mixed = block.node("attention", attention, vec![], &inputs);
            let out = convolve(block, mixed, "attn.output.proj", [queries, channels], 1, false);
            norm(block, out, "layer_scale.gamma", channels);
        }
    }
}

/// Two matrices with norms.
fn bottleneck(block: &mut Assembly, from: NodeIndex, prefix: &str, widths: [u64; 3]) -> NodeIndex {
    let [input, inside, output] = widths;
    let wide = convolve(block, from, &format!("{prefix}pw_exp.conv"), [input, inside], 1, false);
    let wide = norm(block, wide, &format!("{prefix}pw_exp.bn.weight"), inside);
    let narrow = convolve(block, wide, &format!("{prefix}pw_proj.conv"), [inside, output], 1, false);
    norm(block, narrow, &format!("{prefix}pw_proj.bn.weight"), output)
}

fn width(channels: u64) -> Count {
    Count::derived("channels", channels, "mobilenetv5_300m_enc")
}

/// A full convolution: a matrix over the channels of all taps, per pixel.
fn convolve(
    block: &mut Assembly,
    from: NodeIndex,
    tensor: &str,
    [input, output]: [u64; 2],
    taps: u64,
    bias: bool,
) -> NodeIndex {
    let mut weights =
        vec![weight(format!("{tensor}.weight"), vec![output, input, taps, taps], TensorRole::Tower)];
    if bias {
        weights.push(weight(format!("{tensor}.bias"), vec![output], TensorRole::Bias));
    }
    let (input, output) = (width(input * taps * taps), width(output));
    block.node("conv", Operator::Linear { input, output, split: Split::Replicate }, weights, &[from])
}

fn depthwise(block: &mut Assembly, from: NodeIndex, tensor: &str, channels: u64, taps: u64) -> NodeIndex {
    let kernel = weight(format!("{tensor}.weight"), vec![channels, 1, taps, taps], TensorRole::Recurrence);
    let (channels, kernel_size) = (width(channels), width(taps * taps));
    let (form, split) = (ConvForm::Plain, Split::Replicate);
    let conv = Operator::ShortConv { channels, kernel: kernel_size, form, split };
    block.node("depthwise_conv", conv, vec![kernel], &[from])
}

/// A norm or scale with this number of channels.
fn norm(block: &mut Assembly, from: NodeIndex, tensor: &str, channels: u64) -> NodeIndex {
    let scale: Weight = weight(tensor, vec![channels], TensorRole::Norm);
    let rows = Count::derived("rows", 1, "one norm per position");
    let norm = Operator::Norm { width: width(channels), rows, split: Split::Replicate };
    block.node("norm", norm, vec![scale], &[from])
}
