//! One transformer layer: attention, feed-forward network, norms and residual sums.
//!
//! Equal layers compare equal and become one block.

use petgraph::graph::NodeIndex;

use super::attention::Attention;
use super::compressed::Compressed;
use super::cross::Cross;
use super::feed_forward::FeedForward;
use super::hyper::{Hyper, hyper_connection, stream_width};
use super::latent::Latent;
use super::moe::Moe;
use super::recurrent::Recurrent;
use super::rope::Rope;
use super::streams::Extras;
use crate::graph::assembly::{Affine, Assembly, Matrix};
use crate::graph::cache::Cache;
use crate::graph::model::Block;
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;

/// The token mixer.
#[derive(Clone, Debug, PartialEq)]
pub enum Mixer {
    /// Multi-head attention.
    Attention(Attention),
    /// Multi-head latent attention.
    Latent(Latent),
    /// A recurrent mixer with a state instead of a KV cache.
    Recurrent(Box<Recurrent>),
    /// Attention and a recurrent mixer in parallel after the same norm (Falcon-H1).
    AttentionAndRecurrent(Attention, Box<Recurrent>),
    /// A matrix instead of attention (Nemotron-NAS).
    Linear,
    /// None, without a norm: the layer consists of its network.
    Absent,
    /// Cross-attention to an encoder's states.
    Cross(Cross),
    /// Attention over a window and compressed entries.
    Compressed(Compressed),
}

/// The per-token network.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// A dense feed-forward network.
    Dense(FeedForward),
    /// A mixture of experts.
    Moe(Box<Moe>),
    /// A dense network and experts in parallel, each with its own norms (Gemma-4).
    DenseAndMoe(FeedForward, Box<Moe>),
    /// A matrix instead of a network (Nemotron-NAS).
    Linear,
    /// None, without a norm: the layer consists of its mixer.
    Absent,
}

impl From<FeedForward> for Network {
    fn from(dense: FeedForward) -> Network {
        Network::Dense(dense)
    }
}

impl From<Moe> for Network {
    fn from(moe: Moe) -> Network {
        Network::Moe(Box::new(moe))
    }
}

impl Network {
    /// Experts in a sparse layer, otherwise a dense network.
    pub fn either(sparse: bool, moe: &Moe, dense: &FeedForward) -> Network {
        if sparse { moe.clone().into() } else { dense.clone().into() }
    }
}

impl Mixer {
    /// Attention where the layer attends, otherwise a recurrent mixer.
    pub fn either(attends: bool, attention: &Attention, recurrent: &Recurrent) -> Mixer {
        match attends {
            true => Mixer::Attention(attention.clone()),
            false => Mixer::Recurrent(Box::new(recurrent.clone())),
        }
    }
}

/// Kind of token mixer in block names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixerKind {
    /// Full attention.
    Full,
    /// Attention to a window or a chunk.
    Sliding,
    /// A recurrent mixer.
    Recurrent,
    /// No token mixer.
    Absent,
}

/// Placement of a layer's norms and residual sums.
///
/// `norm` is a norm with its own weight, `mix` attention or another mixer, `net` the feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrangement {
    /// `x += mix(norm(x)); x += net(norm(x))`: Llama and most others.
    PreNorm,
    /// `x += norm(mix(x)); x += norm(net(x))`: OLMo-2, EXAONE-4.
    PostNorm,
    /// `x += norm(mix(norm(x))); x += norm(net(norm(x)))`: Gemma-2 and 3, GLM-4-0414.
    Sandwich,
    /// `x = norm(x + mix(x)); x = norm(x + net(x))`: OPT-350m.
    NormedSum,
    /// `h = norm(x); x += mix(h) + net(h)`: GPT-J, Phi-2, Cohere, Falcon-7B.
    Parallel,
    /// `x += mix(norm(x)) + net(norm(x))`, each with its own norm: GPT-NeoX, Falcon-40B.
    ParallelTwoNorms,
    /// `x, y = collapse(X); X = mix(X) + mix(norm(x))` and the same for `net`, over several streams `X`: DeepSeek-V4.
    HyperConnected(Hyper),
}

/// The layers of `windows`. Where some slide, those that do not have no rotary positions.
pub fn positioned(windows: Vec<Option<Count>>, mut layer: impl FnMut(Option<Count>) -> Layer) -> Vec<Layer> {
    let mixed = windows.iter().any(Option::is_some);
    let one = |window: Option<Count>| match window {
        None if mixed => layer(None).rotated(None),
        window => layer(window),
    };
    windows.into_iter().map(one).collect()
}

#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Learned parameters of its norms.
    pub norm: Affine,
    /// Placement of its norms and residual sums.
    pub arrangement: Arrangement,
    pub mixer: Mixer,
    pub network: Network,
    /// Its additional parts.
    pub extras: Extras,
}

impl Layer {
    /// A pre-norm layer with multi-head attention and RMSNorm.
    pub fn new(attention: Attention, network: impl Into<Network>) -> Layer {
        Layer::of(attention.hidden, Mixer::Attention(attention), network)
    }

    /// A pre-norm layer with RMSNorm.
    pub fn of(hidden: Count, mixer: Mixer, network: impl Into<Network>) -> Layer {
        let (norm, arrangement, network) = (Affine::Scale, Arrangement::PreNorm, network.into());
        Layer { hidden, norm, arrangement, mixer, network, extras: Extras::default() }
    }

    /// The same layer with a window, if it has multi-head attention.
    pub fn sliding(&self, window: Option<Count>) -> Layer {
        let mut layer = self.clone();
        if let Mixer::Attention(attention) = &mut layer.mixer {
            attention.mask = window.into();
        }
        layer
    }

    /// The same layer with another rotation, or none, if it has multi-head attention.
    pub fn rotated(mut self, rope: Option<Rope>) -> Layer {
        if let Mixer::Attention(attention) = &mut self.mixer {
            attention.rope = rope;
        }
        self
    }

    /// Kind of token mixer in block names.
    pub fn mixer_kind(&self) -> MixerKind {
        if self.extras.transformer.is_some() {
            return MixerKind::Full;
        }
        match &self.mixer {
            Mixer::Latent(latent) if latent.dims.mask.limit().is_some() => MixerKind::Sliding,
            Mixer::Attention(attention) | Mixer::AttentionAndRecurrent(attention, _)
                if attention.mask.limit().is_some() =>
            {
                MixerKind::Sliding
            }
            Mixer::Recurrent(_) => MixerKind::Recurrent,
            Mixer::Linear | Mixer::Absent => MixerKind::Absent,
            _ => MixerKind::Full,
        }
    }

    /// Whether the per-token network has experts, as block names say it; `None` without a network.
    pub fn has_experts(&self) -> Option<bool> {
        match &self.network {
            Network::Dense(_) | Network::Linear => Some(false),
            Network::Moe(_) | Network::DenseAndMoe(..) => Some(true),
            Network::Absent => None,
        }
    }

    /// The layer as a block of the graph, for the layers `layers`.
    pub fn block(&self, name: &'static str, layers: Vec<u32>) -> Block {
        let mut block = Assembly::default();
        if let Arrangement::HyperConnected(hyper) = self.arrangement {
            let caches = self.hyper_connected(&mut block, hyper);
            return block.finish(name, layers, caches);
        }
        let input = block.input(self.hidden);
        let start = match &self.extras.altup {
            Some(altup) => altup.predict(&mut block, input, self.hidden),
            None => input,
        };
        let (stream, mut caches) = match self.arrangement {
            Arrangement::Parallel | Arrangement::ParallelTwoNorms => self.parallel(&mut block, start),
            _ => match &self.extras.second {
                Some(second) => self.shortcut(&mut block, start, second),
                None => self.sequential(&mut block, start),
            },
        };
        self.extras.finish(&mut block, stream, self.hidden);
        caches.extend(&self.extras.states);
        caches.extend(self.extras.adapter.iter().flat_map(|adapter| adapter.cross.caches()));
        block.finish(name, layers, caches)
    }

    fn sequential(&self, block: &mut Assembly, input: NodeIndex) -> (NodeIndex, Vec<Cache>) {
        use Arrangement::{NormedSum, PostNorm, PreNorm, Sandwich};
        let of = self.arrangement;
        let (mut stream, mut caches) = (input, vec![]);
        if self.mixer != Mixer::Absent {
            let shared = self.extras.transformer.as_deref();
            let entry = shared.map_or(input, |shared| shared.assemble(block, input, self.hidden));
            let normed = match of {
                PreNorm | Sandwich if !self.extras.unnormed => {
                    self.normed(block, entry, "input_norm", "input_layernorm")
                }
                _ => entry,
            };
            let mut sums;
            (sums, caches) = self.mix(block, normed);
            caches.extend(shared.into_iter().flat_map(|shared| shared.attention.caches()));
            if matches!(of, PostNorm | Sandwich) {
                let whole = self.one(block, "mixers_add", sums);
                sums = vec![self.normed(block, whole, "post_attention_norm", "post_attention_layernorm")];
            }
            sums.extend(self.extras.altup.map(|altup| altup.laurel(block, normed, self.hidden)));
            sums.push(input);
            stream = self.add(block, "attention_add", &sums);
        }
        if self.network == Network::Absent {
            return (stream, caches);
        }
        let mut normed = stream;
        if matches!(of, PreNorm | NormedSum) {
            normed = self.normed(block, stream, "post_attention_norm", "post_attention_layernorm");
        } else if of == Sandwich {
            normed = self.normed(block, stream, "pre_ffn_norm", "pre_feedforward_layernorm");
        }
        if of == NormedSum {
            stream = normed;
        }
        if let Some(cross) = &self.extras.crossed {
            stream = self.crossed(block, stream, cross);
            normed = stream;
            caches.extend(cross.caches());
        }
        let mut sums = self.networked(block, normed, stream);
        if matches!(of, PostNorm | Sandwich) {
            let whole = self.one(block, "experts_add", sums);
            sums = vec![self.normed(block, whole, "post_ffn_norm", "post_feedforward_layernorm")];
        }
        sums.push(stream);
        let mut sum = self.add(block, "ffn_add", &sums);
        if of == NormedSum {
            sum = self.normed(block, sum, "post_ffn_norm", "post_feedforward_layernorm");
        }
        (sum, caches)
    }

    /// Cross-attention to an encoder's states, and the norm of its sum with the stream.
    fn crossed(&self, block: &mut Assembly, stream: NodeIndex, cross: &Cross) -> NodeIndex {
        let attended = cross.assemble(block, stream);
        let sum = self.add(block, "cross_add", &[attended, stream]);
        self.normed(block, sum, "cross_norm", "cross_layernorm")
    }

    /// Two attentions with a dense network each; the experts read what the first network reads, and their result is
    /// added at the end.
    fn shortcut(
        &self,
        block: &mut Assembly,
        input: NodeIndex,
        (other, dense): &(Mixer, FeedForward),
    ) -> (NodeIndex, Vec<Cache>) {
        let (mut stream, mut caches, mut routed) = (input, vec![], vec![]);
        for (at, mixer) in [&self.mixer, other].into_iter().enumerate() {
            let first = block.nodes();
            let normed = block.stream_norm(stream, "input_norm", &format!("input_layernorm.{at}"), self.norm);
            let (mut sums, cached) = self.mixed(block, normed, mixer);
            block.rename(first, "self_attn", &format!("self_attn.{at}"));
            caches.extend(cached);
            sums.push(stream);
            stream = self.add(block, "attention_add", &sums);
            let tensor = format!("post_attention_layernorm.{at}");
            let normed = block.stream_norm(stream, "post_attention_norm", &tensor, self.norm);
            if at == 0 {
                routed = self.networked(block, normed, stream);
            }
            let mut sums = vec![dense.assemble_at(block, normed, &format!("mlps.{at}")), stream];
            sums.extend(routed.iter().filter(|_| at == 1));
            stream = self.add(block, "ffn_add", &sums);
        }
        (stream, caches)
    }

    fn parallel(&self, block: &mut Assembly, input: NodeIndex) -> (NodeIndex, Vec<Cache>) {
        let normed = self.normed(block, input, "input_norm", "input_layernorm");
        let (mut sums, caches) = self.mix(block, normed);
        let normed = match self.arrangement {
            Arrangement::Parallel => normed,
            _ => self.normed(block, input, "post_attention_norm", "post_attention_layernorm"),
        };
        // One sum for both, and therefore one collective.
        sums.extend(self.networked(block, normed, input));
        sums.push(input);
        (self.add(block, "layer_add", &sums), caches)
    }

    fn hyper_connected(&self, block: &mut Assembly, hyper: Hyper) -> Vec<Cache> {
        let streams = hyper.streams;
        let mut input = block.input(stream_width(self.hidden, streams));
        if let Some(ngrams) = &self.extras.ngrams {
            input = ngrams.assemble(block, input, (self.hidden, streams));
        }
        let [first, second] = match hyper.rank {
            None => ["attn_hc", "ffn_hc"],
            Some(_) => ["attn_hyper_connection", "mlp_hyper_connection"],
        };
        // A gated connection norms each stream before their sum.
        let norm = |block: &mut Assembly, one, name, tensor| match hyper.rank {
            None => self.normed(block, one, name, tensor),
            Some(_) => one,
        };
        let one = hyper_connection(block, input, ("attn_hc", first), (self.hidden, hyper));
        let normed = norm(block, one, "input_norm", "input_layernorm");
        let (sums, mut caches) = self.mix(block, normed);
        let sum = self.add(block, "attention_add", &sums);
        let expand = Operator::HyperConnection { hidden: self.hidden, streams, expands: true };
        let mixed = block.node("attention_mix", expand.clone(), vec![], &[sum, input]);
        let one = hyper_connection(block, mixed, ("ffn_hc", second), (self.hidden, hyper));
        let normed = norm(block, one, "post_attention_norm", "post_attention_layernorm");
        let sums = self.networked(block, normed, one);
        let sum = self.add(block, "ffn_add", &sums);
        block.node("ffn_mix", expand, vec![], &[sum, mixed]);
        caches.extend(self.extras.ngrams.iter().map(|ngrams| ngrams.state(self.hidden, streams)));
        caches
    }

    fn mix(&self, block: &mut Assembly, from: NodeIndex) -> (Vec<NodeIndex>, Vec<Cache>) {
        self.mixed(block, from, &self.mixer)
    }

    fn mixed(&self, block: &mut Assembly, from: NodeIndex, mixer: &Mixer) -> (Vec<NodeIndex>, Vec<Cache>) {
        match mixer {
            Mixer::Attention(attention) => (vec![attention.assemble(block, from)], attention.caches()),
            Mixer::Latent(latent) => (vec![latent.assemble(block, from)], latent.caches()),
            Mixer::Compressed(mixer) => (vec![mixer.assemble(block, from)], mixer.caches()),
            Mixer::Cross(cross) => (vec![cross.assemble(block, from)], cross.caches()),
            Mixer::Recurrent(mixer) => (vec![mixer.assemble(block, from)], mixer.caches()),
            Mixer::AttentionAndRecurrent(attention, mixer) => {
                let sums = vec![attention.assemble(block, from), mixer.assemble(block, from)];
                (sums, [attention.caches(), mixer.caches()].concat())
            }
            Mixer::Linear => (vec![self.square(block, from, "linear_attn", "self_attn.linear_attn")], vec![]),
            Mixer::Absent => (vec![], vec![]),
        }
    }

    /// A matrix from the stream to the stream.
    fn square(&self, block: &mut Assembly, from: NodeIndex, name: &'static str, tensor: &str) -> NodeIndex {
        let (tensor, input, output) = (tensor.to_owned(), self.hidden, self.hidden);
        let (split, role) = (Split::Replicate, TensorRole::Mlp);
        block.linear(from, Matrix { name, tensor, input, output, split, role, bias: false })
    }

    /// The sum of several results, or the only one.
    fn one(&self, block: &mut Assembly, name: &'static str, sums: Vec<NodeIndex>) -> NodeIndex {
        if let [one] = sums[..] { one } else { self.add(block, name, &sums) }
    }

    fn networked(&self, block: &mut Assembly, from: NodeIndex, stream: NodeIndex) -> Vec<NodeIndex> {
        match &self.network {
            Network::Dense(network) => vec![network.assemble(block, from)],
            Network::Moe(moe) => moe.assemble(block, from),
            Network::DenseAndMoe(dense, moe) => {
                let dense = dense.assemble(block, from);
                let dense = self.normed(block, dense, "post_ffn_norm_1", "post_feedforward_layernorm_1");
                let normed = self.normed(block, stream, "pre_ffn_norm_2", "pre_feedforward_layernorm_2");
                let routed = moe.assemble_from(block, normed, stream);
                let routed = self.one(block, "experts_add", routed);
                vec![dense, self.normed(block, routed, "post_ffn_norm_2", "post_feedforward_layernorm_2")]
            }
            Network::Linear => vec![self.square(block, from, "linear_mlp", "mlp.linear_mlp")],
            Network::Absent => vec![],
        }
    }

    fn normed(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        name: &'static str,
        tensor: &'static str,
    ) -> NodeIndex {
        block.stream_norm(from, name, tensor, self.norm)
    }

    fn add(&self, block: &mut Assembly, name: &'static str, inputs: &[NodeIndex]) -> NodeIndex {
        block.node(name, Operator::Add { width: self.hidden }, vec![], inputs)
    }
}

/// Names blocks by the differences between the layers of a model: the token mixer, the per-token network, or both.
pub fn name(layer: &Layer, mixers_differ: bool, networks_differ: bool) -> &'static str {
    use MixerKind::{Absent, Full, Recurrent, Sliding};
    let (mixer, experts) = (layer.mixer_kind(), layer.has_experts());
    let moe = experts == Some(true);
    if experts.is_none() || (mixers_differ && !networks_differ) {
        return match mixer {
            Full => "full_layer",
            Sliding => "sliding_layer",
            Recurrent => "recurrent_layer",
            Absent => "dense_layer",
        };
    }
    match (mixers_differ, mixer, moe) {
        (false, _, false) | (true, Absent, false) => "dense_layer",
        (false, _, true) | (true, Absent, true) => "moe_layer",
        (true, Full, false) => "full_dense_layer",
        (true, Full, true) => "full_moe_layer",
        (true, Sliding, false) => "sliding_dense_layer",
        (true, Sliding, true) => "sliding_moe_layer",
        (true, Recurrent, false) => "recurrent_dense_layer",
        (true, Recurrent, true) => "recurrent_moe_layer",
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::model::{Block, ModelGraph};
    use crate::graph::operator::Operator;
    use crate::spec::model::ModelConfig;

    const GPT_OSS: &str = r#"{"model_type": "gpt_oss", "hidden_size": 6, "num_hidden_layers": 4, "vocab_size": 11,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 5, "intermediate_size": 7,
        "num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 128}"#;

    fn blocks() -> Vec<Block> {
        ModelGraph::build(&ModelConfig::parse(GPT_OSS).unwrap()).unwrap().blocks
    }

    #[test]
    fn layers_alternate_between_two_blocks() {
        let blocks = blocks();
        assert_eq!((blocks[0].name, blocks[0].layers.as_slice()), ("sliding_layer", &[0, 2][..]));
        assert_eq!((blocks[1].name, blocks[1].layers.as_slice()), ("full_layer", &[1, 3][..]));
    }

    #[test]
    fn every_operator_reads_what_came_before_and_all_but_the_last_are_read() {
        for block in blocks() {
            let place = |node| block.order.iter().position(|other| *other == node).unwrap();
            for edge in block.graph.edge_indices() {
                let (from, to) = block.graph.edge_endpoints(edge).unwrap();
                assert!(place(from) < place(to));
            }
            let unread: Vec<_> = block.graph.externals(petgraph::Direction::Outgoing).collect();
            assert_eq!(unread, [*block.order.last().unwrap()]);
        }
    }

    #[test]
    fn both_sums_take_in_the_stream_that_went_around() {
        for block in blocks() {
            let inputs = |node| block.graph.neighbors_directed(node, petgraph::Direction::Incoming).count();
            let adds = block
                .order
                .iter()
                .filter(|node| matches!(block.graph[**node].operator, Operator::Add { .. }));
            assert_eq!(adds.map(|node| inputs(*node)).collect::<Vec<_>>(), [2, 2]);
        }
    }
}
