//! Layers of vision and audio encoders: bidirectional attention, then a feed-forward network.
//!
//! Independent of tensor names and images.

use petgraph::graph::NodeIndex;

use crate::graph::assembly::{Assembly, Matrix, weight};
use crate::graph::dimensions::{ScoredKeys, Scores, SoftmaxAttention};
use crate::graph::mask::AttentionMask;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::misfit;
use crate::graph::tensor::{TensorRole, Weight};
use crate::graph::tower::{Positions, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;

/// Tensor names inside an encoder layer.
#[derive(Clone, Copy, Debug)]
pub struct EncoderNames {
    /// Norms before attention and before the feed-forward network.
    pub norms: [&'static str; 2],
    /// Projections of queries, keys and values. A single name for all means joined rows.
    pub qkv: [&'static str; 3],
    /// The output projection.
    pub out: &'static str,
    /// Matrices of the feed-forward network: up and down, or gate, up and down.
    pub network: &'static [&'static str],
}

/// A layer of an encoder.
#[derive(Clone, Copy, Debug)]
pub struct Encoder {
    /// Width of its stream.
    pub hidden: Count,
    pub heads: Count,
    /// Key and value heads.
    pub kv_heads: Count,
    /// Norms of `head_dim` on queries and keys, by name.
    pub head_norms: Option<[&'static str; 2]>,
    /// Width of its feed-forward network.
    pub intermediate: Count,
    /// LayerNorm with shifts as well as scales.
    pub shift: bool,
    /// Biases on queries, keys and values.
    pub qkv_bias: [bool; 3],
    /// Bias on the output projection.
    pub out_bias: bool,
    /// Biases of the feed-forward network.
    pub network_bias: bool,
    pub names: &'static EncoderNames,
}

/// A matrix of an encoder.
pub struct Projection {
    /// The operator's name.
    pub name: &'static str,
    /// The checkpoint's name without `.weight`.
    pub tensor: &'static str,
    /// Inner dimension.
    pub input: Count,
    /// Outer dimension.
    pub output: Count,
    pub bias: bool,
}

impl Encoder {
    /// Layers with LayerNorm's shift, and biases on all matrices.
    pub fn biased(hidden: Count, heads: Count, intermediate: Count, names: &'static EncoderNames) -> Encoder {
        let (shift, qkv_bias, out_bias, network_bias) = (true, [true; 3], true, true);
        let (kv_heads, head_norms) = (heads, None);
        Encoder {
            hidden,
            heads,
            kv_heads,
            head_norms,
            intermediate,
            shift,
            qkv_bias,
            out_bias,
            network_bias,
            names,
        }
    }

    /// `layers` such layers under `prefix`, with `positions` positions per image.
    pub fn layers(
        &self,
        prefix: &str,
        layers: Count,
        positions: impl Into<Positions>,
        extra: &[Weight],
    ) -> Result<TowerPart, Error> {
        let all = (0..layers.value as u32).collect();
        self.some_layers(prefix, ("encoder_layer", all), AttentionMask::Both, positions, extra)
    }

    /// The attention of a layer alone, with its norm, as a part that occurs once.
    pub fn attention_once(
        &self,
        prefix: &str,
        name: &'static str,
        reach: AttentionMask,
        positions: impl Into<Positions>,
    ) -> Result<TowerPart, Error> {
        let (mut block, stream) = Assembly::from_input(self.hidden);
        let attended = self.attention(&mut block, stream, self.head_dim()?, reach);
        block.node("attention_add", Operator::Add { width: self.hidden }, vec![], &[attended, stream]);
        Ok(once(block, name, prefix, positions))
    }

    /// Elements of a head.
    fn head_dim(&self) -> Result<Count, Error> {
        let Encoder { hidden, heads, kv_heads, .. } = *self;
        if !hidden.value.is_multiple_of(heads.value) {
            return Err(misfit(heads, format!("a divisor of the encoder's width {}", hidden.value)));
        }
        if !heads.value.is_multiple_of(kv_heads.value) {
            return Err(misfit(kv_heads, format!("a divisor of the encoder's {} heads", heads.value)));
        }
        Ok(Count::derived("head_dim", hidden.value / heads.value, "width / heads of the encoder"))
    }

    /// The layers with these indices, under one name and with the same mask.
    pub fn some_layers(
        &self,
        prefix: &str,
        (called, layers): (&'static str, Vec<u32>),
        reach: AttentionMask,
        positions: impl Into<Positions>,
        extra: &[Weight],
    ) -> Result<TowerPart, Error> {
        let hidden = self.hidden;
        let head_dim = self.head_dim()?;
        let (mut block, stream) = Assembly::from_input(hidden);
        let attended = self.attention(&mut block, stream, head_dim, reach);
        let sum = Operator::Add { width: hidden };
        let stream = block.node("attention_add", sum.clone(), extra.to_vec(), &[attended, stream]);
        let network = self.network(&mut block, stream);
        block.node("network_add", sum, vec![], &[network, stream]);
        let block = block.finish(called, layers, vec![]);
        Ok(TowerPart { prefix: prefix.to_owned(), block, positions: positions.into() })
    }

    /// Norm, queries, keys and values, attention, and its output projection.
    fn attention(
        &self,
        block: &mut Assembly,
        stream: NodeIndex,
        head_dim: Count,
        reach: AttentionMask,
    ) -> NodeIndex {
        let Encoder { hidden, heads, kv_heads, names, .. } = *self;
        let normed = norm(block, stream, "attention_norm", names.norms[0], hidden, self.shift);
        let grouped = kv_heads.value * head_dim.value;
        let grouped = Count::derived("kv_width", grouped, "key and value heads × head_dim of the encoder");
        let widths = [hidden, grouped, grouped];
        let operators = ["q_proj", "k_proj", "v_proj"].into_iter().zip(names.qkv).zip(self.qkv_bias);
        let mut qkv: Vec<NodeIndex> = operators
            .zip(widths)
            .map(|(((name, tensor), bias), output)| {
                let projection = Projection { name, tensor, input: hidden, output, bias };
                linear(block, normed, projection, Split::Heads)
            })
            .collect();
        for (at, tensor) in self.head_norms.into_iter().flatten().enumerate() {
            let (name, rows) = [("q_norm", heads), ("k_norm", kv_heads)][at];
            let scale = weight(format!("{tensor}.weight"), vec![head_dim.value], TensorRole::Norm);
            let each = Operator::Norm { width: head_dim, rows, split: Split::Heads };
            qkv[at] = block.node(name, each, vec![scale], &[qkv[at]]);
        }
        let attention = SoftmaxAttention::of_encoder(heads, head_dim, reach);
        let attention = Operator::Attention(SoftmaxAttention { kv_heads, ..attention });
        qkv.push(block.softmax(Scores { heads, keys: ScoredKeys::Masked(reach) }, &qkv[..2]));
        let attention = block.node("attention", attention, vec![], &qkv);
        let (name, tensor, bias) = ("o_proj", names.out, self.out_bias);
        let out = Projection { name, tensor, input: hidden, output: hidden, bias };
        linear(block, attention, out, Split::Row)
    }

    /// Norm, then the feed-forward network.
    fn network(&self, block: &mut Assembly, stream: NodeIndex) -> NodeIndex {
        let Encoder { hidden, intermediate, names, network_bias: bias, .. } = *self;
        let normed = norm(block, stream, "network_norm", names.norms[1], hidden, self.shift);
        let (down, wide) = names.network.split_last().expect("a network has matrices");
        let mut widened = vec![];
        for (name, tensor) in ["up_proj", "gate_proj"].into_iter().zip(wide.iter().rev()) {
            let up = Projection { name, tensor, input: hidden, output: intermediate, bias };
            widened.push(linear(block, normed, up, Split::Column));
        }
        let activation = Operator::Activation { width: intermediate, gated: wide.len() > 1 };
        let activated = block.node("activation", activation, vec![], &widened);
        let down = Projection { name: "down_proj", tensor: down, input: intermediate, output: hidden, bias };
        linear(block, activated, down, Split::Row)
    }
}

/// Adds a matrix of an encoder.
pub fn linear(block: &mut Assembly, from: NodeIndex, projection: Projection, split: Split) -> NodeIndex {
    let Projection { name, tensor, input, output, bias } = projection;
    let tensor = tensor.to_owned();
    block.linear(from, Matrix { name, tensor, input, output, split, role: TensorRole::Tower, bias })
}

/// Adds a norm of an encoder.
pub fn norm(
    block: &mut Assembly,
    from: NodeIndex,
    name: &'static str,
    tensor: &str,
    width: Count,
    shift: bool,
) -> NodeIndex {
    let mut weights = vec![weight(format!("{tensor}.weight"), vec![width.value], TensorRole::Norm)];
    if shift {
        weights.push(weight(format!("{tensor}.bias"), vec![width.value], TensorRole::Norm));
    }
    let rows = Count::derived("rows", 1, "one norm per position");
    block.node(name, Operator::Norm { width, rows, split: Split::Replicate }, weights, &[from])
}

/// Pixel input: patches times a matrix (a convolution without overlap), and position embeddings.
pub struct Patches {
    /// Name of the matrix in the checkpoint, without `.weight`.
    pub tensor: &'static str,
    /// Its shape: `[hidden, channels, …, patch, patch]`, or flat.
    pub shape: Vec<u64>,
    pub bias: bool,
    /// Position and class embeddings, by name and shape.
    pub embeddings: Vec<(&'static str, Vec<u64>)>,
}

impl Patches {
    /// Adds the operator; `hidden` is the output width.
    pub fn assemble(self, block: &mut Assembly, hidden: Count) -> NodeIndex {
        let pixels = self.shape[1..].iter().product();
        let pixels = Count::derived("pixels", pixels, "channels × frames × patch_size²");
        let stream = block.input(pixels);
        let mut weights = vec![weight(format!("{}.weight", self.tensor), self.shape, TensorRole::Tower)];
        if self.bias {
            weights.push(weight(format!("{}.bias", self.tensor), vec![hidden.value], TensorRole::Bias));
        }
        weights
            .extend(self.embeddings.into_iter().map(|(name, shape)| weight(name, shape, TensorRole::Tower)));
        let matrix = Operator::Linear { input: pixels, output: hidden, split: Split::Replicate };
        block.node("patch_embed", matrix, weights, &[stream])
    }
}

/// Completes a block that occurs once.
pub fn once(block: Assembly, name: &'static str, prefix: &str, positions: impl Into<Positions>) -> TowerPart {
    let block = block.finish(name, vec![], vec![]);
    TowerPart { prefix: prefix.to_owned(), block, positions: positions.into() }
}

/// A norm that occurs once, as a part of its name.
pub fn norm_once(
    name: &'static str,
    tensor: &str,
    width: Count,
    shift: bool,
    prefix: &str,
    positions: impl Into<Positions>,
) -> TowerPart {
    let (mut block, stream) = Assembly::from_input(width);
    norm(&mut block, stream, name, tensor, width, shift);
    once(block, name, prefix, positions)
}
