//! Parallel degrees of one instance of the model over `tp × cp × dp × pp` devices.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::count::Count;
use crate::spec::degree::Degree;

/// The phase that a plan serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Prefill: all prompt tokens at once.
    Prefill,
    /// Decode: one token per step.
    Decode,
}

impl Phase {
    /// Its name in paths.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Prefill => "prefill",
            Phase::Decode => "decode",
        }
    }
}

/// A type of layers with a tensor-parallel degree of its own. Experts have `ep` and `moe_tp`, norms `sp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerType {
    /// Attention with its projections, and recurrent mixers.
    Attention,
    /// Dense feed-forward networks and shared experts.
    FeedForward,
    /// Embedding and LM head.
    Vocabulary,
}

/// Degrees of every kind of parallelism. Ranks are numbered with tp innermost, then cp, dp, and pp outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ParallelPlan {
    /// Tensor parallelism: heads and dense widths.
    pub tp: u64,
    /// Pipeline parallelism: layers.
    pub pp: u64,
    /// Attention data parallelism: sequences. Every rank holds the attention weights; experts are shared.
    pub dp: u64,
    /// Context parallelism: the prompt's tokens in prefill, the KV cache's tokens in decode.
    pub cp: u64,
    /// Decode context parallelism: the KV cache's tokens, over `dcp` of the tp ranks with the same KV heads. Adds no device.
    pub dcp: u64,
    /// Expert parallelism: experts.
    pub ep: u64,
    /// Tensor parallelism inside experts: `tp × cp × dp = moe_tp × ep`.
    pub moe_tp: u64,
    /// Tensor parallelism of dense feed-forward layers and shared experts, where it is not `tp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ffn_tp: Option<u64>,
    /// Tensor parallelism of the embedding and the LM head, where it is not `tp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_tp: Option<u64>,
    /// Sequence parallelism: norms and residuals divided by token between the tp ranks.
    pub sp: bool,
}

impl ParallelPlan {
    /// Everything on one device.
    pub const SINGLE: ParallelPlan = ParallelPlan {
        tp: 1,
        pp: 1,
        dp: 1,
        cp: 1,
        dcp: 1,
        ep: 1,
        moe_tp: 1,
        sp: false,
        ffn_tp: None,
        vocab_tp: None,
    };

    /// The tensor-parallel degree of a layer type.
    pub fn tp_of(&self, layer_type: LayerType) -> u64 {
        let own = match layer_type {
            LayerType::Attention => None,
            LayerType::FeedForward => self.ffn_tp,
            LayerType::Vocabulary => self.vocab_tp,
        };
        own.unwrap_or(self.tp)
    }

    /// Ranks that divide attention: its heads, tokens and sequences.
    pub fn attention_ranks(&self) -> u64 {
        self.tp * self.cp * self.dp
    }

    /// Devices of a pipeline stage: as many as its widest layer type needs.
    pub fn stage_devices(&self) -> u64 {
        let types = [self.ffn_tp, self.vocab_tp].into_iter().flatten();
        types.fold(self.attention_ranks(), u64::max)
    }

    /// Groups of devices that compute attention for the same tokens: more than one where another layer type is wider than
    /// all ranks of attention. They are next to each other.
    pub fn attention_copies(&self) -> u64 {
        self.stage_devices() / self.attention_ranks()
    }

    /// The fewest devices that a layer type of this plan runs on.
    pub fn least_devices(&self, layer_type: LayerType) -> u64 {
        match layer_type {
            LayerType::Attention => self.attention_ranks(),
            LayerType::FeedForward | LayerType::Vocabulary => self.tp_of(layer_type),
        }
    }

    /// The degrees of the kind of a worker, in the order of [`crate::spec::evidence::KIND_DEGREES`]; `None` where it has
    /// others too, which no measurement states.
    pub fn kind_degrees(&self) -> Option<[u64; 5]> {
        let plain = self.dcp == 1 && self.ffn_tp.is_none() && self.vocab_tp.is_none() && !self.sp;
        plain.then_some([self.tp, self.pp, self.dp, self.cp, self.ep])
    }

    /// Devices of an instance.
    pub fn devices(&self) -> u64 {
        self.stage_devices() * self.pp
    }

    /// Ranks that divide the tokens of a sequence's KV cache, named after the degree in use. A runtime has one of the two.
    pub fn cache_ranks(&self) -> Count {
        if self.dcp > 1 { Count::plan("dcp", self.cp * self.dcp) } else { Count::plan("cp", self.cp) }
    }

    /// Orders plans, the plainest first: fewest degrees above 1, tp before ep, pp, dp, cp and dcp, no sp, fewest
    /// devices.
    pub fn plainness(&self) -> (u32, u32, u64, ParallelPlan) {
        let bits = self.degree_bits();
        (u32::count_ones(bits), bits, self.devices(), *self)
    }

    /// The number of degrees above 1, sequence parallelism included.
    pub fn used_degrees(&self) -> u32 {
        self.degree_bits().count_ones()
    }

    /// A bit for each degree above 1; a later one outweighs all earlier ones.
    fn degree_bits(&self) -> u32 {
        let used = [self.tp > 1, self.ep > 1, self.pp > 1, self.dp > 1, self.cp > 1, self.dcp > 1, self.sp];
        used.iter().enumerate().map(|(bit, used)| u32::from(*used) << bit).sum()
    }

    /// The number of a degree; where a layer type has no tensor parallelism of its own, that of the plan.
    pub fn degree(&self, degree: Degree) -> u64 {
        match degree {
            Degree::Tp => self.tp,
            Degree::Pp => self.pp,
            Degree::Dp => self.dp,
            Degree::Cp => self.cp,
            Degree::Dcp => self.dcp,
            Degree::Ep => self.ep,
            Degree::MoeTp => self.moe_tp,
            Degree::FfnTp => self.tp_of(LayerType::FeedForward),
            Degree::VocabTp => self.tp_of(LayerType::Vocabulary),
            Degree::Sp => 1 + u64::from(self.sp),
            Degree::Devices => self.devices(),
        }
    }

    /// A degree that the plan uses: above 1, or where it is that of a layer type, other than `tp`.
    pub fn used(&self, degree: Degree) -> Option<u64> {
        match degree {
            Degree::FfnTp => self.ffn_tp,
            Degree::VocabTp => self.vocab_tp,
            Degree::MoeTp => Some(self.moe_tp).filter(|degree| *degree > 1 && *degree != self.tp),
            _ => Some(self.degree(degree)).filter(|degree| *degree > 1),
        }
    }

    /// Ranks of a stage that divide the experts.
    pub fn expert_ranks(&self) -> u64 {
        self.moe_tp * self.ep
    }

    /// The plan with its experts over `ep` groups of the ranks of a stage.
    pub fn with_experts(self, ep: u64) -> ParallelPlan {
        ParallelPlan { ep, moe_tp: self.stage_devices() / ep, ..self }
    }

    /// The plan for a model without experts: what would cut them follows `tp`.
    pub fn without_experts(self) -> ParallelPlan {
        ParallelPlan { ep: 1, moe_tp: self.tp, ..self }
    }

    /// `tp4 pp2`, without degrees of 1.
    pub fn label(&self) -> String {
        let mut label = String::new();
        for degree in Degree::stated() {
            let Some(number) = self.used(degree) else { continue };
            let space = if label.is_empty() { "" } else { " " };
            let _ = write!(label, "{space}{}{number}", degree.key());
        }
        if self.sp {
            label.push_str(if label.is_empty() { "sp" } else { " sp" });
        }
        if label.is_empty() { "tp1".into() } else { label }
    }
}
