//! Conformers: the audio encoders of Gemma-3n and Gemma-4.
//!
//! Defines shapes and names. No file gives the length of a clip.

use petgraph::graph::NodeIndex;

use crate::graph::assembly::{Assembly, weight};
use crate::graph::dimensions::{ScoredKeys, Scores, SoftmaxAttention};
use crate::graph::mask::AttentionMask;
use crate::graph::model::Block;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Projection, linear, norm, once};
use crate::graph::part::misfit;
use crate::graph::part::names::TensorNames;
use crate::graph::rule::ConvForm;
use crate::graph::tensor::{TensorRole, Weight};
use crate::graph::tower::{Positions, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;

/// Mel bands per frame; two convolutions of stride 2 reduce them to a quarter.
const BANDS: u64 = 128;

/// An audio encoder.
pub struct Conformer {
    /// Width of its stream.
    pub hidden: Count,
    pub heads: Count,
    /// Kernel width of its convolution, in frames.
    pub kernel: Count,
    /// Channels of the two convolutions before it.
    pub channels: [u64; 2],
    /// Whether each matrix has bounds for its input and output, stored as buffers.
    pub clipped: bool,
    /// Names of a layer's modules in the checkpoint.
    pub names: TensorNames,
}

impl Conformer {
    /// The convolutions before it, under `prefix`, stored as `names`.
    pub fn stem(&self, prefix: &str, names: [&str; 2]) -> TowerPart {
        let (mut block, mut stream) =
            Assembly::from_input(Count::derived("bands", BANDS, "mel bands of a frame"));
        let mut input = 1;
        for (name, channels) in names.into_iter().zip(self.channels) {
            let taps = Count::derived("taps", 9 * input, "3 × 3 × channels");
            let output = Count::derived("channels", channels, "channels of the convolution");
            let weights = vec![
                weight(format!("{name}.conv.weight"), vec![channels, input, 3, 3], TensorRole::Tower),
                weight(format!("{name}.norm.weight"), vec![channels], TensorRole::Norm),
            ];
            let conv = Operator::Linear { input: taps, output, split: Split::Replicate };
            stream = block.node("subsample_conv", conv, weights, &[stream]);
            input = channels;
        }
        let input = Count::derived("subsampled", input * BANDS / 4, "channels × bands / 4");
        let (name, tensor) = ("input_proj_linear", "input_proj_linear");
        let projection = Projection { name, tensor, input, output: self.hidden, bias: false };
        linear(&mut block, stream, projection, Split::Replicate);
        once(block, "subsampling", prefix, Positions::Open)
    }

    /// `layers` such layers under `prefix`.
    pub fn layers(&self, prefix: &str, layers: Count) -> Result<TowerPart, Error> {
        let Conformer { hidden, heads, .. } = *self;
        if !hidden.value.is_multiple_of(heads.value) {
            return Err(misfit(heads, format!("a divisor of the encoder's width {}", hidden.value)));
        }
        let (mut block, stream) = Assembly::from_input(hidden);
        let stream = self.network(&mut block, stream, "feed_forward1");
        let stream = self.attention(&mut block, stream);
        let stream = self.convolution(&mut block, stream);
        let stream = self.network(&mut block, stream, "feed_forward2");
        norm(&mut block, stream, "norm_out", "norm_out", hidden, false);
        let mut block = block.finish("conformer_layer", (0..layers.value as u32).collect(), vec![]);
        if self.clipped {
            bound(&mut block);
        }
        self.names.apply(&mut block);
        Ok(TowerPart { prefix: prefix.to_owned(), block, positions: Positions::Open })
    }

    fn matrix(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        tensor: &'static str,
        (input, output): (Count, Count),
    ) -> NodeIndex {
        linear(block, from, Projection { name: tensor, tensor, input, output, bias: false }, Split::Replicate)
    }

    fn network(&self, block: &mut Assembly, stream: NodeIndex, which: &'static str) -> NodeIndex {
        let hidden = self.hidden;
        let wide = Count::derived("intermediate", 4 * hidden.value, "4 × hidden_size");
        let [before, up, down, after] = match which {
            "feed_forward1" => FIRST,
            _ => SECOND,
        };
        let normed = norm(block, stream, "pre_layer_norm", before, hidden, false);
        let widened = self.matrix(block, normed, up, (hidden, wide));
        let activation = Operator::Activation { width: wide, gated: false };
        let activated = block.node("activation", activation, vec![], &[widened]);
        let narrowed = self.matrix(block, activated, down, (wide, hidden));
        let normed = norm(block, narrowed, "post_layer_norm", after, hidden, false);
        block.node("network_add", Operator::Add { width: hidden }, vec![], &[normed, stream])
    }

    fn attention(&self, block: &mut Assembly, stream: NodeIndex) -> NodeIndex {
        let Conformer { hidden, heads, .. } = *self;
        let head_dim = Count::derived("head_dim", hidden.value / heads.value, "hidden_size / heads");
        let normed = norm(block, stream, "norm_pre_attn", "norm_pre_attn", hidden, false);
        let square = (hidden, hidden);
        let mut inputs = vec![];
        for tensor in ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", RELATIVE] {
            inputs.push(self.matrix(block, normed, tensor, square));
        }
        let scale = weight("self_attn.per_dim_scale", vec![head_dim.value], TensorRole::Norm);
        let reach = AttentionMask::Both;
        let attention = Operator::Attention(SoftmaxAttention::of_encoder(heads, head_dim, reach));
        let scores = Scores { heads, keys: ScoredKeys::Masked(reach) };
        inputs.push(block.softmax(scores, &inputs[..2]));
        let mixed = block.node("attention", attention, vec![scale], &inputs);
        let out = self.matrix(block, mixed, "self_attn.post", square);
        let normed = norm(block, out, "norm_post_attn", "norm_post_attn", hidden, false);
        block.node("attention_add", Operator::Add { width: hidden }, vec![], &[normed, stream])
    }

    fn convolution(&self, block: &mut Assembly, stream: NodeIndex) -> NodeIndex {
        let hidden = self.hidden;
        let twice = Count::derived("gated_width", 2 * hidden.value, "2 × hidden_size");
        let normed = norm(block, stream, "conv_pre_norm", "lconv1d.pre_layer_norm", hidden, false);
        let start = self.matrix(block, normed, "lconv1d.linear_start", (hidden, twice));
        let gated = Operator::Activation { width: hidden, gated: true };
        let gated = block.node("conv_gate", gated, vec![], &[start]);
        let shape = vec![hidden.value, 1, self.kernel.value];
        let taps = weight("lconv1d.depthwise_conv1d.weight", shape, TensorRole::Recurrence);
        let (form, split) = (ConvForm::Activated, Split::Replicate);
        let conv = Operator::ShortConv { channels: hidden, kernel: self.kernel, form, split };
        let mixed = block.node("depthwise_conv1d", conv, vec![taps], &[gated]);
        let normed = norm(block, mixed, "conv_norm", "lconv1d.conv_norm", hidden, false);
        let end = self.matrix(block, normed, "lconv1d.linear_end", (hidden, hidden));
        block.node("conv_add", Operator::Add { width: hidden }, vec![], &[end, stream])
    }
}

const RELATIVE: &str = "self_attn.relative_k_proj";

const FIRST: [&str; 4] = [
    "feed_forward1.pre_layer_norm",
    "feed_forward1.ffw_layer_1",
    "feed_forward1.ffw_layer_2",
    "feed_forward1.post_layer_norm",
];

const SECOND: [&str; 4] = [
    "feed_forward2.pre_layer_norm",
    "feed_forward2.ffw_layer_1",
    "feed_forward2.ffw_layer_2",
    "feed_forward2.post_layer_norm",
];

/// Adds bounds to every matrix except that of relative positions.
pub fn bound(block: &mut Block) {
    for node in block.graph.node_weights_mut() {
        if !matches!(node.operator, Operator::Linear { .. }) || node.name == RELATIVE {
            continue;
        }
        let module = node.weights[0].name.trim_end_matches(".weight").to_owned();
        let scalar = |name: &str| Weight {
            buffer: true,
            ..weight(format!("{module}.{name}"), vec![1], TensorRole::Norm)
        };
        node.weights.extend(["input_min", "input_max", "output_min", "output_max"].map(scalar));
    }
}
