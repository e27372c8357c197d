//! Softmax attention with its projections: MHA, GQA and MQA, biases, QK norms, sinks, windows.
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::indexer::{Indexer, own_key};
use super::rope::{Rope, RopeClass};
use crate::graph::assembly::{Affine, Assembly, Matrix, NormRows, NormSpec, once, weight};
use crate::graph::cache::Cache;
use crate::graph::dimensions::{ScoredKeys, Scores, SoftmaxAttention};
use crate::graph::mask::AttentionMask;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::misfit;
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Norms on queries and keys, after their projections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QkNorm {
    /// None.
    Absent,
    /// One scale of `head_dim` for all heads (Qwen3).
    PerHead,
    /// Norms without learned parameters (nanochat).
    Plain,
    /// One scale and shift of `head_dim` for all heads (Phi).
    PerHeadWithShift,
    /// One scale of `head_dim` per head, in one tensor (Command R+).
    EachHead,
    /// One scale and shift of `head_dim` per head, in one tensor each (Chameleon).
    EachHeadWithShift,
    /// One scale of `head_dim` per head, in a separate tensor each (StableLM-2-12B).
    PerHeadTensors,
    /// Over the whole projection, with one scale per element (MiniMax-M2, OLMo-2).
    WholeProjection,
}

/// Source of a layer's keys and values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KvSource {
    /// Separate projections.
    Own,
    /// One projection for both: values are the keys before their norm (Gemma-4's `attention_k_eq_v`).
    KeysAlone,
    /// The KV cache of an earlier layer (`num_kv_shared_layers`).
    Shared,
    /// Separate projections, of which nothing is kept: those of earlier tokens are in the cache of a later layer (Dory's
    /// `last_loop`).
    Passing,
}

impl KvSource {
    /// Whether another layer has the cache.
    fn elsewhere(self) -> bool {
        matches!(self, KvSource::Shared | KvSource::Passing)
    }
}

/// A gate on the result of attention, from the matrix of this name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutputGate {
    /// One number per element: extra rows of `q_proj` (Qwen3-Next), or a matrix of its own (AFMoE).
    PerElement(&'static str),
    /// The same with `gate_bias`, which all elements of a head share (Beam).
    BiasPerHead(&'static str),
    /// One number per head (LFM3, Laguna).
    PerHead(&'static str),
}

impl OutputGate {
    /// Adds the gate's matrix, for `heads` heads with `width` elements in all; `q_bias` is the bias of `q_proj`.
    pub(super) fn project(
        self,
        block: &mut Assembly,
        (from, hidden): (NodeIndex, Count),
        (heads, width): (Count, Count),
        q_bias: bool,
    ) -> NodeIndex {
        let (stored, output) = match self {
            OutputGate::PerElement(stored) | OutputGate::BiasPerHead(stored) => (stored, width),
            OutputGate::PerHead(stored) => (stored, heads),
        };
        // Rows of `q_proj` have its bias. A separate matrix has none.
        let bias = q_bias && stored == "q_proj";
        let (name, tensor) = ("q_gate_proj", format!("self_attn.{stored}"));
        let (split, role) = (Split::Heads, TensorRole::Attention);
        let matrix = weight(format!("{tensor}.weight"), vec![output.value, hidden.value], role);
        let stored = match (self, bias) {
            (OutputGate::BiasPerHead(_), _) => {
                vec![matrix, weight("self_attn.gate_bias", vec![heads.value], TensorRole::Bias)]
            }
            (_, true) => vec![matrix, weight(format!("{tensor}.bias"), vec![output.value], TensorRole::Bias)],
            (_, false) => vec![matrix],
        };
        block.node(name, Operator::Linear { input: hidden, output, split }, stored, &[from])
    }
}

/// The result of attention, of `width` elements, behind its gate if it has one.
pub(super) fn gated(
    block: &mut Assembly,
    attention: NodeIndex,
    gate: Option<NodeIndex>,
    width: Count,
) -> NodeIndex {
    let Some(gate) = gate else { return attention };
    block.node("output_gate", Operator::Activation { width, gated: true }, vec![], &[attention, gate])
}

/// Multi-head attention of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Query heads.
    pub heads: Count,
    pub kv_heads: Count,
    /// Elements of a head.
    pub head_dim: Count,
    /// Elements of a value head, if it differs from a key head (MiMo-V2).
    pub v_head_dim: Option<Count>,
    /// Source of keys and values.
    pub source: KvSource,
    /// A norm over all heads of the result, before the output projection (BitNet, Kosmos-2, Dory without a scale).
    pub result_norm: Option<(&'static str, Affine)>,
    /// Width of the result, if it differs from that of the input (Zamba).
    pub output: Option<Count>,
    /// Rank of adapters on queries, keys and values that each layer has for itself where it shares the rest (Zamba2).
    pub adapter: Option<Count>,
    /// The gate on the result.
    pub output_gate: Option<OutputGate>,
    /// A norm without weights on each value head (Gemma-3n, Gemma-4).
    pub v_norm: bool,
    /// Biases on queries, keys and values.
    pub qkv_bias: bool,
    /// Bias on the output projection.
    pub o_bias: bool,
    /// Q and K norms.
    pub qk_norm: QkNorm,
    /// The mask: which keys a query sees.
    pub mask: AttentionMask,
    /// The indexer, if the mask is a selection.
    pub indexer: Option<Indexer>,
    /// One learned logit per head in the softmax denominator (gpt-oss).
    pub sinks: bool,
    /// The rotation of queries and keys; `None`: no rotary positions.
    pub rope: Option<Rope>,
}

impl Attention {
    /// Plain attention with these dimensions. Without `head_dim`, it is `hidden` over the number of heads.
    pub fn of(
        hidden: Count,
        heads: Count,
        kv_heads: Count,
        head_dim: Option<Count>,
    ) -> Result<Attention, Error> {
        let head_dim = match head_dim {
            Some(head_dim) => head_dim,
            None => quotient(hidden, heads)?,
        };
        if !heads.value.is_multiple_of(kv_heads.value) {
            return Err(misfit(kv_heads, format!("a divisor of {} {}", heads.symbol, heads.value)));
        }
        Ok(Attention {
            hidden,
            heads,
            kv_heads,
            head_dim,
            v_head_dim: None,
            source: KvSource::Own,
            result_norm: None,
            output: None,
            adapter: None,
            output_gate: None,
            v_norm: false,
            qkv_bias: false,
            o_bias: false,
            qk_norm: QkNorm::Absent,
            mask: AttentionMask::All,
            indexer: None,
            sinks: false,
            rope: None,
        })
    }

    /// The same keys for classes with a default other than MHA for `num_key_value_heads`: the key is required.
    pub fn read_stated(keys: &Keys<'_>, hidden: Count) -> Result<Attention, Error> {
        Attention::read_grouped(keys.stated("num_key_value_heads")?, hidden)
    }

    /// The keys of Llama and related families: `num_attention_heads`, `num_key_value_heads` (missing: MHA), `head_dim`.
    pub fn read_grouped(keys: &Keys<'_>, hidden: Count) -> Result<Attention, Error> {
        let heads = keys.count("num_attention_heads")?;
        let kv_heads = match keys.count_or_none("num_key_value_heads")? {
            Some(kv_heads) => kv_heads,
            None => mha(heads),
        };
        Attention::of(hidden, heads, kv_heads, keys.count_or_none("head_dim")?)?
            .rotated(keys, RopeClass::WHOLE)
    }

    /// The same for classes that round `hidden_size / num_attention_heads` down if `head_dim` is missing.
    pub fn read_rounded(keys: &Keys<'_>, hidden: Count) -> Result<Attention, Error> {
        let heads = keys.count("num_attention_heads")?;
        if keys.count_or_none("head_dim")?.is_some() || heads.value > hidden.value {
            return Attention::read_grouped(keys, hidden);
        }
        let kv_heads = keys.count_or_none("num_key_value_heads")?.unwrap_or_else(|| mha(heads));
        let how = "hidden_size / num_attention_heads, rounded down";
        let head_dim = Count::derived("head_dim", hidden.value / heads.value, how);
        Attention::of(hidden, heads, kv_heads, Some(head_dim))?.rotated(keys, RopeClass::WHOLE)
    }

    /// The same with the rotation of the keys, or of the class where they say nothing.
    pub fn rotated(self, keys: &Keys<'_>, class: RopeClass) -> Result<Attention, Error> {
        Ok(Attention { rope: Some(Rope::read(keys, self.head_dim, class)?), ..self })
    }

    /// The same with biases on all four projections, or on none.
    pub fn biased(self, bias: bool) -> Attention {
        Attention { qkv_bias: bias, o_bias: bias, ..self }
    }

    /// KV cache of one layer.
    pub fn caches(&self) -> Vec<Cache> {
        let Attention { kv_heads, head_dim, mask: reach, .. } = *self;
        let v_head_dim = self.v_head_dim.unwrap_or(head_dim);
        let mut caches = match self.source.elsewhere() {
            true => vec![],
            false => vec![Cache::Heads { kv_heads, head_dim, v_head_dim, reach }],
        };
        caches.extend(
            self.indexer.map(|indexer| Cache::IndexKeys { head_dim: indexer.head_dim, every: own_key() }),
        );
        caches
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Attention { hidden, heads, kv_heads, head_dim, .. } = *self;
        let q_width = width("q_width", heads, head_dim, "num_attention_heads × head_dim");
        let kv_width = width("kv_width", kv_heads, head_dim, "num_key_value_heads × head_dim");
        let v_head_dim = self.v_head_dim.unwrap_or(head_dim);
        let v_width = width("v_width", kv_heads, v_head_dim, "num_key_value_heads × v_head_dim");
        let o_width = width("o_width", heads, v_head_dim, "num_attention_heads × v_head_dim");
        let mut project = |name: &'static str, output, split| {
            let (tensor, role, bias) = (format!("self_attn.{name}"), TensorRole::Attention, self.qkv_bias);
            block.linear(from, Matrix { name, tensor, input: hidden, output, split, role, bias })
        };
        let q = project("q_proj", q_width, Split::Heads);
        let (own, both) = (self.source != KvSource::Shared, self.source != KvSource::KeysAlone);
        let k = own.then(|| project("k_proj", kv_width, Split::KvHeads));
        let v = (own && both).then(|| project("v_proj", v_width, Split::KvHeads)).or(k);
        let q = self.adapted(block, (from, q), "q", (q_width, Split::Heads));
        let k = k.map(|k| self.adapted(block, (from, k), "k", (kv_width, Split::KvHeads)));
        let v = v.map(|v| self.adapted(block, (from, v), "v", (v_width, Split::KvHeads)));
        let gate =
            self.output_gate.map(|gate| gate.project(block, (from, hidden), (heads, o_width), self.qkv_bias));
        let q = self.norm(block, q, "q_norm", heads, q_width, Split::Heads);
        let k = k.map(|k| self.norm(block, k, "k_norm", kv_heads, kv_width, Split::KvHeads));
        let v = v.map(|v| {
            if !self.v_norm {
                return v;
            }
            let norm = Operator::Norm { width: v_head_dim, rows: kv_heads, split: Split::KvHeads };
            block.node("v_norm", norm, vec![], &[v])
        });
        let indexer = self.indexer.map(|indexer| indexer.assemble(block, from, from));
        let attention = self.kernel(block, (q, k, v), indexer);
        let attention = gated(block, attention, gate, o_width);
        let attention = match self.result_norm {
            Some((tensor, affine)) => block.stream_norm(attention, "result_norm", tensor, affine),
            None => attention,
        };
        block.linear(
            attention,
            Matrix {
                name: "o_proj",
                tensor: "self_attn.o_proj".to_owned(),
                input: o_width,
                output: self.output.unwrap_or(hidden),
                split: Split::Row,
                role: TensorRole::Attention,
                bias: self.o_bias,
            },
        )
    }

    /// The projection `to` of `from` with that of its adapter added.
    fn adapted(
        &self,
        block: &mut Assembly,
        (from, to): (NodeIndex, NodeIndex),
        one: &str,
        (width, split): (Count, Split),
    ) -> NodeIndex {
        let Some(rank) = self.adapter else { return to };
        let tensor = format!("self_attn.linear_{one}_adapter_list");
        low_rank(block, (from, &[to]), &tensor, (self.hidden, rank, width), (split, TensorRole::Attention))
    }

    /// Rotation, cache, softmax and the products of attention: one kernel.
    fn kernel(
        &self,
        block: &mut Assembly,
        (q, k, v): (NodeIndex, Option<NodeIndex>, Option<NodeIndex>),
        indexer: Option<NodeIndex>,
    ) -> NodeIndex {
        let Attention { heads, kv_heads, head_dim, mask, .. } = *self;
        let v_head_dim = self.v_head_dim.unwrap_or(head_dim);
        let mut rotate = |name, from, heads, split| match &self.rope {
            Some(rope) => rope.assemble(block, name, from, (heads, head_dim, split)),
            None => from,
        };
        let q = rotate("q_rope", q, heads, Split::Heads);
        let k = k.map(|k| rotate("k_rope", k, kv_heads, Split::KvHeads));
        let entry = Count::derived("kv_entry", head_dim.value + v_head_dim.value, "head_dim + v_head_dim");
        let new: Vec<NodeIndex> = k.into_iter().chain(v).collect();
        // An encoder sees whole images: it keeps nothing.
        let keys = match mask {
            AttentionMask::Both => new,
            _ => vec![block.kv_cache((kv_heads, entry, Split::KvHeads), &new)],
        };
        let scored = Scores { heads, keys: ScoredKeys::Masked(mask) };
        let softmax = block.softmax(scored, &[&[q], &keys[..1]].concat());
        let sinks = weight("self_attn.sinks", vec![heads.value], TensorRole::Sink);
        let inputs: Vec<NodeIndex> = [q].into_iter().chain(keys).chain([softmax]).chain(indexer).collect();
        block.node(
            "attention",
            Operator::Attention(SoftmaxAttention {
                heads,
                kv_heads,
                head_dim,
                v_head_dim,
                mask,
                shared: self.source.elsewhere(),
            }),
            if self.sinks { vec![sinks] } else { vec![] },
            &inputs,
        )
    }

    fn norm(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        name: &'static str,
        heads: Count,
        projection: Count,
        split: Split,
    ) -> NodeIndex {
        let tensor = format!("self_attn.{name}");
        let (width, rows, split) = match self.qk_norm {
            QkNorm::Absent => return from,
            QkNorm::WholeProjection => (projection, once(), Split::Replicate),
            _ => (self.head_dim, heads, split),
        };
        let affine = match self.qk_norm {
            QkNorm::Plain => Affine::Absent,
            norm => Affine::shift(matches!(norm, QkNorm::PerHeadWithShift | QkNorm::EachHeadWithShift)),
        };
        let learns = match self.qk_norm {
            QkNorm::EachHead | QkNorm::EachHeadWithShift => NormRows::Stacked,
            QkNorm::PerHeadTensors => NormRows::PerTensor,
            _ => NormRows::Shared,
        };
        block.norm(from, NormSpec { name, tensor, width, rows, split, affine, sharing: learns })
    }
}

/// The results `to` of matrices that several layers share, with that of the layer's own pair of matrices of a small rank
/// added.
pub(super) fn low_rank(
    block: &mut Assembly,
    (from, to): (NodeIndex, &[NodeIndex]),
    tensor: &str,
    (input, rank, output): (Count, Count, Count),
    (split, role): (Split, TensorRole),
) -> NodeIndex {
    let mut matrix = |name: &'static str, at: u64, from, (input, output), split| {
        let tensor = format!("{tensor}.{at}");
        block.linear(from, Matrix { name, tensor, input, output, split, role, bias: false })
    };
    let down = matrix("adapter_down", 0, from, (input, rank), Split::Replicate);
    let up = matrix("adapter_up", 1, down, (rank, output), split);
    let sum = Operator::Activation { width: output, gated: true };
    block.node("adapter_add", sum, vec![], &[to, &[up]].concat())
}

/// The number of query heads, used for key and value heads.
pub fn mha(heads: Count) -> Count {
    Count::derived("num_key_value_heads", heads.value, "number of query heads (MHA)")
}

/// `heads` heads of `head_dim` elements. Both are within the limits of their keys, so the product fits.
pub(super) fn width(symbol: &'static str, heads: Count, head_dim: Count, how: &'static str) -> Count {
    Count::derived(symbol, heads.value * head_dim.value, how)
}

/// `head_dim` of a file without the key.
fn quotient(hidden: Count, heads: Count) -> Result<Count, Error> {
    if !hidden.value.is_multiple_of(heads.value) {
        return Err(Error::new(
            heads.symbol,
            heads.value.to_string(),
            format!("a divisor of {} {}, or a head_dim", hidden.symbol, hidden.value),
            "copy head_dim from the model's config.json",
        ));
    }
    Ok(Count::derived("head_dim", hidden.value / heads.value, "hidden_size / num_attention_heads"))
}
