//! The degrees of a split: one instance of the model over `tp × cp × dp × pp` devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which half of a request's life a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The prompt, all tokens at once.
    Prefill,
    /// The answer, a token a step.
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

/// How many ways each dimension is split. Ranks are laid out tp innermost, then cp, dp, and pp outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ParallelPlan {
    /// Tensor parallel: heads and dense widths.
    pub tp: u64,
    /// Pipeline parallel: layers.
    pub pp: u64,
    /// Attention data parallel: sequences; every rank holds the attention weights, experts are shared.
    pub dp: u64,
    /// Context parallel: the prompt's tokens in prefill, the cache's tokens in decode.
    pub cp: u64,
    /// Expert parallel: experts.
    pub ep: u64,
    /// Tensor parallel inside experts: `tp × cp × dp = moe_tp × ep`.
    pub moe_tp: u64,
    /// Sequence parallel: norms and residuals split by token between the tp ranks.
    pub sp: bool,
}

impl ParallelPlan {
    /// Everything on one device.
    pub const SINGLE: ParallelPlan = ParallelPlan { tp: 1, pp: 1, dp: 1, cp: 1, ep: 1, moe_tp: 1, sp: false };

    /// Devices of a pipeline stage.
    pub fn stage_devices(&self) -> u64 {
        self.tp * self.cp * self.dp
    }

    /// Devices of an instance.
    pub fn devices(&self) -> u64 {
        self.stage_devices() * self.pp
    }

    /// `tp4 pp2`, leaving out what is 1.
    pub fn label(&self) -> String {
        let degrees = [("tp", self.tp), ("pp", self.pp), ("dp", self.dp), ("cp", self.cp), ("ep", self.ep)];
        let mut parts: Vec<String> =
            degrees.iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{name}{n}")).collect();
        if self.moe_tp > 1 && self.moe_tp != self.tp {
            parts.push(format!("moe_tp{}", self.moe_tp));
        }
        if self.sp {
            parts.push("sp".into());
        }
        if parts.is_empty() { "tp1".into() } else { parts.join(" ") }
    }
}
