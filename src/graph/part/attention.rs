//! Softmax attention with its projections: MHA, GQA and MQA, biases, QK norms, sinks, windows.
//!
//! Knows nothing of the layer around it.

use petgraph::graph::NodeIndex;

use crate::graph::assembly::{Affine, Assembly, Matrix, Rows, Scale, once, weight};
use crate::graph::cache::Cache;
use crate::graph::operator::{Operator, Split};
use crate::graph::reach::Reach;
use crate::graph::tensor::Role;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Norms between the projections of queries and keys and their product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QkNorm {
    /// None.
    Absent,
    /// One scale of `head_dim` for all heads (Qwen3).
    PerHead,
    /// One scale and shift of `head_dim` for all heads (Phi).
    PerHeadWithShift,
    /// A scale of `head_dim` for each head, in one tensor (Command R+).
    EachHead,
    /// A scale of `head_dim` for each head, in a tensor for each (StableLM-2-12B).
    EachHeadApart,
    /// Over the whole projection, with a scale for each element (MiniMax-M2, OLMo-2).
    WholeProjection,
}

/// Attention over heads, as one layer has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Query heads.
    pub heads: Count,
    /// Key and value heads.
    pub kv_heads: Count,
    /// Elements of a head.
    pub head_dim: Count,
    /// Biases on queries, keys and values.
    pub qkv_bias: bool,
    /// Bias on the output projection.
    pub o_bias: bool,
    /// Norms of queries and keys.
    pub qk_norm: QkNorm,
    /// Which keys a query sees.
    pub reach: Reach,
    /// A learned logit per head in the softmax's denominator (gpt-oss).
    pub sinks: bool,
}

impl Attention {
    /// Plain attention of these dimensions; without `head_dim`, heads share `hidden` between them.
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
            return Err(Error::new(
                kv_heads.symbol,
                kv_heads.value.to_string(),
                format!("a divisor of {} {}", heads.symbol, heads.value),
                "copy both values from the model's config.json",
            ));
        }
        Ok(Attention {
            hidden,
            heads,
            kv_heads,
            head_dim,
            qkv_bias: false,
            o_bias: false,
            qk_norm: QkNorm::Absent,
            reach: Reach::All,
            sinks: false,
        })
    }

    /// The same keys where the class has a number of its own for a missing `num_key_value_heads`: it must be stated.
    pub fn read_stated(keys: &Keys<'_>, hidden: Count) -> Result<Attention, Error> {
        Attention::read_grouped(keys.stated("num_key_value_heads")?, hidden)
    }

    /// The keys of Llama and its kin: `num_attention_heads`, `num_key_value_heads` (left out: MHA), `head_dim`.
    pub fn read_grouped(keys: &Keys<'_>, hidden: Count) -> Result<Attention, Error> {
        let heads = keys.count("num_attention_heads")?;
        let kv_heads = match keys.count_or_none("num_key_value_heads")? {
            Some(kv_heads) => kv_heads,
            None => mha(heads),
        };
        Attention::of(hidden, heads, kv_heads, keys.count_or_none("head_dim")?)
    }

    /// The same with biases on all four projections, or on none.
    pub fn biased(self, bias: bool) -> Attention {
        Attention { qkv_bias: bias, o_bias: bias, ..self }
    }

    /// What a layer of it caches.
    pub fn caches(&self) -> Vec<Cache> {
        let Attention { kv_heads, head_dim, reach, .. } = *self;
        vec![Cache::Heads { kv_heads, head_dim, v_head_dim: head_dim, reach }]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Attention { hidden, heads, kv_heads, head_dim, reach, .. } = *self;
        let q_width = width("q_width", heads, head_dim, "num_attention_heads × head_dim");
        let kv_width = width("kv_width", kv_heads, head_dim, "num_key_value_heads × head_dim");
        let mut project = |name: &'static str, output, split| {
            let (tensor, role, bias) = (format!("self_attn.{name}"), Role::Attention, self.qkv_bias);
            block.linear(from, Matrix { name, tensor, input: hidden, output, split, role, bias })
        };
        let q = project("q_proj", q_width, Split::Heads);
        let k = project("k_proj", kv_width, Split::KvHeads);
        let v = project("v_proj", kv_width, Split::KvHeads);
        let q = self.norm(block, q, "q_norm", heads, q_width, Split::Heads);
        let k = self.norm(block, k, "k_norm", kv_heads, kv_width, Split::KvHeads);
        let sinks = weight("self_attn.sinks", vec![heads.value], Role::Sink);
        let attention = block.node(
            "attention",
            Operator::Attention { heads, kv_heads, head_dim, v_head_dim: head_dim, reach, shared: false },
            if self.sinks { vec![sinks] } else { vec![] },
            &[q, k, v],
        );
        block.linear(
            attention,
            Matrix {
                name: "o_proj",
                tensor: "self_attn.o_proj".to_owned(),
                input: q_width,
                output: hidden,
                split: Split::Row,
                role: Role::Attention,
                bias: self.o_bias,
            },
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
        let affine = Affine::shift(self.qk_norm == QkNorm::PerHeadWithShift);
        let learns = match self.qk_norm {
            QkNorm::EachHead => Rows::Stacked,
            QkNorm::EachHeadApart => Rows::Apart,
            _ => Rows::Alike,
        };
        block.norm(from, Scale { name, tensor, width, rows, split, affine, learns })
    }
}

/// As many key and value heads as query heads.
pub fn mha(heads: Count) -> Count {
    Count::derived("num_key_value_heads", heads.value, "as many as query heads, as in MHA")
}

/// `heads` heads of `head_dim` elements. Both stay within the limits of their keys, so the product fits.
pub(super) fn width(symbol: &'static str, heads: Count, head_dim: Count, how: &'static str) -> Count {
    Count::derived(symbol, heads.value * head_dim.value, how)
}

/// `head_dim` of a file that leaves it to be worked out.
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
