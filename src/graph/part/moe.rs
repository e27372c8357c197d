//! Mixtures of experts: router, stacked routed experts, shared experts.
//!
//! Independent of which layers have experts.

use petgraph::graph::NodeIndex;

use super::feed_forward::FeedForward;
use crate::graph::assembly::{Affine, Assembly, Matrix, weight};
use crate::graph::dimensions::RoutedExperts;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::misfit;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Storage layout of the experts' matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stacking {
    /// `[experts, out, in]`, without biases: the form of most models.
    OutIn,
    /// The same without gates: `up_proj` and `down_proj` (Nemotron-H).
    PlainOutIn,
    /// `[experts, in, out]`, without biases (Llama-4).
    InOut,
    /// `[experts, in, out]`, with biases (gpt-oss).
    InOutWithBias,
    /// `[experts × width, hidden]`, three of them (DBRX).
    Rows,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SharedExperts {
    /// The checkpoint's name, e.g. `mlp.shared_experts`.
    pub tensor: &'static str,
    /// All shared experts, fused into one network.
    pub network: FeedForward,
    /// A sigmoid gate with one output on their sum (Qwen2-MoE).
    pub gate: Option<&'static str>,
}

impl SharedExperts {
    /// The same with biases on all matrices, or on none.
    pub fn biased(self, bias: bool) -> SharedExperts {
        SharedExperts { network: FeedForward { bias, ..self.network }, ..self }
    }
}

/// The mixture of experts of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Moe {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Routed experts.
    pub experts: Count,
    /// Experts selected per token, without shared ones.
    pub top_k: Count,
    /// Experts that return their input, without weights (LongCat).
    pub idle: Option<Count>,
    /// Width of one expert.
    pub intermediate: Count,
    /// The checkpoint's name of the router, e.g. `mlp.gate`.
    pub router: &'static str,
    /// Name of the scales of the router's input and of each expert's score (Gemma-4).
    pub router_scales: Option<&'static str>,
    /// A bias on the router's scores.
    pub router_bias: bool,
    /// The expert-balancing buffer, e.g. `mlp.gate.e_score_correction_bias`.
    pub correction_bias: Option<&'static str>,
    /// The same as a learned parameter, stored as one row (ERNIE-4.5).
    pub learned_correction: Option<&'static str>,
    /// The same as a learned parameter, stored in the shape of its use (AFMoE).
    pub learned_bias: Option<&'static str>,
    /// Rows of a table that assigns experts to each token id instead of scores (DeepSeek-V4's first layers).
    pub table: Option<Count>,
    /// Storage layout of the experts.
    pub stacking: Stacking,
    /// Latent width of the routed experts, with projections from and to the stream (Nemotron-3 Super).
    pub latent: Option<Count>,
    /// Biases on these two projections.
    pub latent_bias: bool,
    /// Norms after the first and before the second of them (Muse Spark).
    pub latent_norms: Option<[&'static str; 2]>,
    pub shared: Option<SharedExperts>,
    /// The checkpoint's name of a norm on the sum of routed and shared experts (A.X-K1).
    pub output_norm: Option<&'static str>,
}

impl Moe {
    /// Routed experts only, behind `mlp.gate`, in the most common layout.
    pub fn routed(hidden: Count, experts: Count, top_k: Count, intermediate: Count) -> Result<Moe, Error> {
        if top_k.value > experts.value {
            return Err(misfit(
                top_k,
                format!("at most the {} experts of {}", experts.value, experts.symbol),
            ));
        }
        Ok(Moe {
            hidden,
            experts,
            top_k,
            idle: None,
            intermediate,
            router: "mlp.gate",
            router_scales: None,
            router_bias: false,
            correction_bias: None,
            learned_correction: None,
            learned_bias: None,
            table: None,
            stacking: Stacking::OutIn,
            latent: None,
            latent_bias: false,
            latent_norms: None,
            shared: None,
            output_norm: None,
        })
    }

    /// The same by the keys of the number of experts, of those selected, and of the width of one.
    pub fn read(keys: &Keys<'_>, hidden: Count, names: [&'static str; 3]) -> Result<Moe, Error> {
        let [experts, top_k, width] = names;
        Moe::routed(hidden, keys.count(experts)?, keys.count(top_k)?, keys.count(width)?)
    }

    /// Adds the operators, starting from the normed stream. The caller sums the returned results.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> Vec<NodeIndex> {
        self.assemble_from(block, from, from)
    }

    /// The same with different inputs for router and experts.
    pub fn assemble_from(&self, block: &mut Assembly, from: NodeIndex, scored: NodeIndex) -> Vec<NodeIndex> {
        let Moe { hidden, experts, top_k, intermediate, .. } = *self;
        let router = block.node(
            "router",
            Operator::Router { hidden, experts: self.scored(), top_k },
            self.router_weights(),
            &[scored],
        );
        let gated = self.stacking != Stacking::PlainOutIn;
        let top_k = self.expected();
        let mut enter = from;
        if let Some(latent) = self.latent {
            enter = project(block, from, "fc1_latent_proj", hidden, latent, self.latent_bias);
            if let Some([tensor, _]) = self.latent_norms {
                enter = block.stream_norm(enter, "latent_norm", tensor, Affine::Scale);
            }
        }
        let routed =
            Operator::Experts(RoutedExperts { hidden: self.width(), experts, top_k, intermediate, gated });
        let mut routed = block.node("experts", routed, self.expert_weights(), &[enter, router]);
        if let Some(latent) = self.latent {
            if let Some([_, tensor]) = self.latent_norms {
                routed = block.stream_norm(routed, "latent_result_norm", tensor, Affine::Scale);
            }
            routed = project(block, routed, "fc2_latent_proj", latent, hidden, self.latent_bias);
        }
        let mut sums = vec![routed];
        if let Some(shared) = &self.shared {
            sums.push(shared.network.assemble_shared(block, from, shared.tensor));
            sums.extend(shared.gate.map(|tensor| shared_gate(block, from, hidden, tensor)));
        }
        if let Some(tensor) = self.output_norm {
            let sum = match sums[..] {
                [one] => one,
                _ => block.node("experts_sum", Operator::Add { width: hidden }, vec![], &sums),
            };
            sums = vec![block.stream_norm(sum, "experts_norm", tensor, Affine::Scale)];
        }
        sums
    }

    /// Input width of the routed experts.
    fn width(&self) -> Count {
        self.latent.unwrap_or(self.hidden)
    }

    /// Experts that the router scores.
    fn scored(&self) -> Count {
        let idle = self.idle.map_or(0, |idle| idle.value);
        match idle {
            0 => self.experts,
            _ => Count::derived(
                "scored_experts",
                self.experts.value + idle,
                "experts with and without weights",
            ),
        }
    }

    /// Experts with weights that a token passes; with idle experts, of equally likely ones, rounded up.
    fn expected(&self) -> Count {
        let (all, real) = (self.scored().value, self.experts.value);
        match all == real {
            true => self.top_k,
            false => {
                let how = "selected experts × the share of those with weights";
                Count::derived("expected_experts", (self.top_k.value * real).div_ceil(all), how)
            }
        }
    }

    fn router_weights(&self) -> Vec<Weight> {
        let (experts, hidden) = (self.scored().value, self.hidden.value);
        let mut weights =
            vec![weight(format!("{}.weight", self.router), vec![experts, hidden], TensorRole::Router)];
        if let Some(name) = self.router_scales {
            weights.push(weight(format!("{name}.scale"), vec![hidden], TensorRole::Norm));
            weights.push(weight(format!("{name}.per_expert_scale"), vec![experts], TensorRole::Norm));
        }
        if self.router_bias {
            weights.push(weight(format!("{}.bias", self.router), vec![experts], TensorRole::Bias));
        }
        if let Some(rows) = self.table {
            let shape = vec![rows.value, self.top_k.value];
            let name = format!("{}.tid2eid", self.router);
            weights.push(Weight { buffer: true, ..weight(name, shape, TensorRole::Router) });
        }
        if let Some(name) = self.correction_bias {
            weights.push(Weight { buffer: true, ..weight(name, vec![experts], TensorRole::Router) });
        }
        if let Some(name) = self.learned_correction {
            weights.push(weight(name, vec![1, experts], TensorRole::Router));
        }
        if let Some(name) = self.learned_bias {
            weights.push(weight(name, vec![experts], TensorRole::Router));
        }
        weights
    }

    fn expert_weights(&self) -> Vec<Weight> {
        let (experts, hidden, inner) = (self.experts.value, self.width().value, self.intermediate.value);
        let expert = |name: &str, shape| weight(format!("mlp.experts.{name}"), shape, TensorRole::Expert);
        let bias =
            |name: &str, width| weight(format!("mlp.experts.{name}"), vec![experts, width], TensorRole::Bias);
        match self.stacking {
            Stacking::OutIn => vec![
                expert("gate_up_proj", vec![experts, 2 * inner, hidden]),
                expert("down_proj", vec![experts, hidden, inner]),
            ],
            Stacking::PlainOutIn => vec![
                expert("up_proj", vec![experts, inner, hidden]),
                expert("down_proj", vec![experts, hidden, inner]),
            ],
            Stacking::InOut => vec![
                expert("gate_up_proj", vec![experts, hidden, 2 * inner]),
                expert("down_proj", vec![experts, inner, hidden]),
            ],
            Stacking::Rows => ["gate_proj", "up_proj", "down_proj"]
                .map(|name| expert(name, vec![experts * inner, hidden]))
                .to_vec(),
            Stacking::InOutWithBias => vec![
                expert("gate_up_proj", vec![experts, hidden, 2 * inner]),
                bias("gate_up_proj_bias", 2 * inner),
                expert("down_proj", vec![experts, inner, hidden]),
                bias("down_proj_bias", hidden),
            ],
        }
    }
}

/// A projection to or from the latent width of the routed experts.
fn project(
    block: &mut Assembly,
    from: NodeIndex,
    name: &'static str,
    input: Count,
    output: Count,
    bias: bool,
) -> NodeIndex {
    let (tensor, split, role) = (format!("mlp.{name}"), Split::Replicate, TensorRole::SharedExpert);
    block.linear(from, Matrix { name, tensor, input, output, split, role, bias })
}

/// The gate on shared experts: one number per token, applied where the results are summed.
fn shared_gate(block: &mut Assembly, from: NodeIndex, hidden: Count, tensor: &str) -> NodeIndex {
    block.linear(
        from,
        Matrix {
            name: "shared_expert_gate",
            tensor: tensor.to_owned(),
            input: hidden,
            output: Count::derived("gate", 1, "one gate on the shared experts"),
            split: Split::Replicate,
            role: TensorRole::Router,
            bias: false,
        },
    )
}
