//! Builds a [`Machine`]: selects the constants of device, runtime and formats.

use super::machine::{Chip, Machine, PricedLink};
use crate::graph::tensor::Role;
use crate::plan::group::tiers;
use crate::plan::shard::ROLES;
use crate::quantity::datum::{Datum, Grade, Source};
use crate::quantity::unit::{BYTE, COUNT, SECOND};
use crate::spec::cluster::Cluster;
use crate::spec::device::{Arithmetic, Device};
use crate::spec::error::Error;
use crate::spec::figure::{Dimension, Figure, Seconds};
use crate::spec::format::NumberFormat;
use crate::spec::runtime::{CalibratedConstant, CalibrationKey, Constants, Runtime, ServingFit};

/// Roles in the order of [`Role`], by their names in format files.
const ROLE_NAMES: [(Role, &str); ROLES] = [
    (Role::Embedding, "embedding"),
    (Role::LmHead, "lm_head"),
    (Role::Norm, "norm"),
    (Role::Router, "router"),
    (Role::Attention, "attention"),
    (Role::Mlp, "mlp"),
    (Role::Expert, "expert"),
    (Role::SharedExpert, "shared_expert"),
    (Role::Bias, "bias"),
    (Role::Sink, "sink"),
    (Role::Recurrence, "recurrence"),
    (Role::Indexer, "indexer"),
    (Role::Tower, "tower"),
];

/// The roles that `format` quantises. Norms, biases, sinks, small recurrence tensors and encoders never are.
pub fn quantised(format: &NumberFormat, dense: bool) -> [bool; ROLES] {
    let leaves = format.dense_leaves.as_ref().filter(|_| dense).unwrap_or(&format.leaves);
    let mut roles = [true; ROLES];
    for (role, name) in ROLE_NAMES {
        let small = matches!(role, Role::Norm | Role::Bias | Role::Sink | Role::Recurrence | Role::Tower);
        roles[role as usize] = !small && !leaves.iter().any(|left| left == name);
    }
    roles
}

/// The compute format of `format` on `device`, and its dense peak.
///
/// # Errors
/// The device has no peak for any compute format of `format`.
pub fn arithmetic(device: &Device, format: &NumberFormat) -> Result<(Arithmetic, Datum, bool), Error> {
    let native = format.computes_in.first();
    let found = format.computes_in.iter().find_map(|a| device.peak.get(a).map(|peak| (*a, peak)));
    let (arithmetic, peak) = found.ok_or_else(|| {
        let has: Vec<_> = device.peak.keys().map(|a| a.name()).collect();
        let wants: Vec<_> = format.computes_in.iter().map(|a| a.name()).collect();
        Error::new(
            "peak",
            format!("{} on {}: peaks for {} only", format.id, device.id, has.join(", ")),
            format!("a peak for one of {}", wants.join(", ")),
            "choose another format, or add the peak to a copy of the device file",
        )
    })?;
    Ok((arithmetic, peak.datum(format!("peak_{}", arithmetic.name())), Some(&arithmetic) == native))
}

/// The constants of `runtime` for `device` and `format`: measured on the device, otherwise on its generation, otherwise
/// the nearest ones. Nearest ones are graded as assumed.
fn constants<'a>(
    runtime: &'a Runtime,
    device: &Device,
    format: &str,
) -> Option<(&'a Constants, Option<String>)> {
    let serves = |c: &&Constants| c.weight_formats.iter().any(|f| f == format);
    let any = |c: &&Constants| c.weight_formats.iter().any(|f| f == "*");
    let exact = |c: &&Constants| c.devices.contains(&device.id);
    let family = |c: &&Constants| c.families.contains(&device.family);
    let all = || runtime.constants.iter();
    let near = |c: &'a Constants, why: &str| Some((c, Some(format!("{why} of {}", runtime.name))));
    if let Some(c) = all().find(|c| exact(c) && serves(c)).or(all().find(|c| exact(c) && any(c))) {
        return Some((c, None));
    }
    if let Some(c) = all().find(|c| family(c) && serves(c)).or(all().find(|c| family(c) && any(c))) {
        return near(c, &format!("the nearest measured hardware to {}, constants", device.family));
    }
    let nearest = all().find(|c| exact(c)).or(all().find(|c| family(c)));
    if let Some(c) = nearest {
        return near(c, "same generation in another format, constants");
    }
    all().find(serves).or(all().next()).and_then(|c| near(c, "this generation is not measured: constants"))
}

fn figure<D: Dimension>(figure: &Figure<D>, symbol: &'static str, borrowed: &Option<String>) -> Datum {
    let mut datum = figure.datum(symbol);
    if let Some(why) = borrowed {
        datum.source = Source { grade: Grade::Assumed, text: format!("{why}; {}", datum.source.text).into() };
    }
    datum
}

/// An efficiency: a fraction limited to 1, the roofline.
fn fraction<D: Dimension>(found: &Figure<D>, symbol: &'static str, borrowed: &Option<String>) -> Datum {
    let mut datum = figure(found, symbol, borrowed);
    if datum.value > 1.0 {
        datum.source.text =
            format!("{} (fitted {}, capped at 1: the roofline)", datum.source.text, datum.value).into();
        datum.value = 1.0;
    }
    datum
}

/// The inputs of a machine.
pub struct MachineBuilder<'a> {
    /// Devices and interconnect.
    pub cluster: &'a Cluster,
    /// The serving runtime.
    pub runtime: &'a Runtime,
    /// Weight format.
    pub weights: &'a NumberFormat,
    /// KV cache format.
    pub kv: &'a NumberFormat,
    /// The model's own dtype, for weights that the format does not quantise.
    pub native: &'a NumberFormat,
    /// Properties of model and traffic that select the calibration multipliers.
    pub calibration_key: CalibrationKey,
}

/// Planned utilisation of a prefill pool: a judgement, as queues have no largest sensible load.
const PREFILL_UTILIZATION: f64 = 0.85;

/// `datum` with its calibration multiplier, which applies to time: an efficiency is divided by it.
fn fitted(drive: &MachineBuilder, of: CalibratedConstant, mut datum: Datum) -> Datum {
    // No multiplier was fitted where only intervals were.
    let fit = drive.runtime.serving_fit.as_ref().filter(|fit| !fit.factors.is_empty());
    let Some(fit) = fit else { return datum };
    let times = fit.times(of, &drive.cluster.device, &drive.weights.id, &drive.calibration_key);
    let efficiency = of.is_efficiency();
    // Kernel fits of one class do not apply to other classes.
    if efficiency && times == 1.0 {
        return datum;
    }
    datum.value = if efficiency { (datum.value / times).min(1.0) } else { datum.value * times };
    // A source that already names the fit does not name it twice.
    let by = if *datum.source.text == *fit.source { String::new() } else { format!(": {}", fit.source) };
    datum.source.text = format!("{} (calibrated: time x {times:.3}{by})", datum.source.text).into();
    datum
}

impl MachineBuilder<'_> {
    /// Builds the machine.
    ///
    /// # Errors
    /// The device supports neither format, or the runtime has no constants.
    pub fn machine(&self) -> Result<Machine<Datum>, Error> {
        let device = &self.cluster.device;
        let (_, weight_peak, _) = arithmetic(device, self.weights)?;
        let (_, native_peak, _) = arithmetic(device, self.native)?;
        let (c, borrowed) = constants(self.runtime, device, &self.weights.id).ok_or_else(|| {
            let fix = "add at least one entry of `constants` to the runtime's file";
            Error::new("constants", format!("none in {}", self.runtime.id), "efficiency constants", fix)
        })?;
        let reserve = &self.runtime.memory;
        let taken = self.runtime.taken(device);
        let stated = |symbol, value, unit, text: &'static str| Datum::stated(symbol, value, unit, text);
        let logits = || stated("sampler_bytes", 4.0, BYTE, "logits in fp32");
        let fit = |of, datum| fitted(self, of, datum);
        let reached = |of, figure, symbol: &'static str| fit(of, fraction(figure, symbol, &borrowed));
        let none = "included in the runtime's constants: not fitted separately";
        let extra = |of, symbol, pick: fn(&ServingFit) -> &Figure<Seconds>| match &self.runtime.serving_fit {
            Some(found) => fit(of, pick(found).datum(symbol)),
            None => stated(symbol, 0.0, SECOND, none),
        };
        let chip = Chip {
            bandwidth: device.bandwidth()?.datum("memory_bandwidth"),
            weight_peak,
            attention_peak: native_peak.clone(),
            native_peak,
            quantised_bytes: self.weights.bits_per_element.datum("bytes_per_weight"),
            native_bytes: self.native.bits_per_element.datum("bytes_per_native_weight"),
            activation_bytes: self.native.bits_per_element.datum("bytes_per_activation"),
            kv_bytes: self.kv.bits_per_element.datum("bytes_per_kv_element"),
            gemm_compute: reached(CalibratedConstant::GemmCompute, &c.gemm_compute, "gemm_compute"),
            gemm_memory: reached(CalibratedConstant::GemmMemory, &c.gemm_memory, "gemm_memory"),
            attention_compute: reached(
                CalibratedConstant::AttentionCompute,
                &c.attention_compute,
                "attention_compute",
            ),
            attention_memory: reached(
                CalibratedConstant::AttentionMemory,
                &c.attention_memory,
                "attention_memory",
            ),
            moe_compute: reached(CalibratedConstant::MoeCompute, &c.moe_compute, "moe_compute"),
            moe_memory: reached(CalibratedConstant::MoeMemory, &c.moe_memory, "moe_memory"),
            launch_per_layer: fit(
                CalibratedConstant::LaunchPerLayer,
                figure(&c.launch_per_layer, "launch_per_layer", &borrowed),
            ),
            host_per_step: fit(
                CalibratedConstant::HostPerStep,
                figure(&c.host_per_step, "host_per_step", &borrowed),
            ),
            collective_latency: fit(
                CalibratedConstant::CollectiveLatency,
                figure(&c.collective_latency, "collective_latency", &borrowed),
            ),
            collective_bandwidth: reached(
                CalibratedConstant::CollectiveBandwidth,
                &c.collective_bandwidth,
                "collective_bandwidth",
            ),
            kernel_launch: extra(CalibratedConstant::KernelLaunch, "kernel_launch", |fit| &fit.kernel_launch),
            quantised_launch: extra(CalibratedConstant::QuantisedLaunch, "quantised_launch", |fit| {
                &fit.quantised_launch
            }),
            experts_launch: extra(CalibratedConstant::ExpertsLaunch, "experts_launch", |fit| {
                &fit.experts_launch
            }),
            host_per_sequence: extra(CalibratedConstant::HostPerSequence, "host_per_sequence", |fit| {
                &fit.host_per_sequence
            }),
            request_work: extra(CalibratedConstant::RequestWork, "request_work", |fit| &fit.request_work),
            prefill_interference: fit(
                CalibratedConstant::PrefillInterference,
                figure(&c.prefill_interference, "prefill_interference", &borrowed),
            ),
            request_overhead: fit(
                CalibratedConstant::RequestOverhead,
                self.runtime.scheduler.request_overhead.datum("request_overhead"),
            ),
            prompt_queue: fit(
                CalibratedConstant::PromptQueue,
                self.runtime.scheduler.prompt_queue.datum("prompt_queue"),
            ),
            prompt_burst: match &self.runtime.serving_fit {
                Some(found) => fit(CalibratedConstant::PromptBurst, found.prompt_burst.datum("prompt_burst")),
                None => stated("prompt_burst", 0.0, COUNT, none),
            },
            step_wait: fit(CalibratedConstant::StepWait, self.runtime.scheduler.step_wait.datum("step_wait")),
            prefill_utilization: stated(
                "prefill_utilization",
                PREFILL_UTILIZATION,
                COUNT,
                "assumed: above this utilisation the mean wait exceeds three prompts (Pollaczek and Khinchine)",
            ),
            capacity: device.capacity()?.datum("memory_capacity"),
            utilization: taken.utilization.datum("memory_utilization"),
            buffers: reserve.buffers.datum("runtime_buffers"),
            sampler_bytes: reserve.sampler.as_ref().map_or_else(logits, |f| f.datum("sampler_bytes")),
            fragmentation: reserve.fragmentation.as_ref().map_or_else(
                || stated("fragmentation", 0.0, COUNT, "pages waste at most the last page of a sequence"),
                |f| f.datum("fragmentation"),
            ),
            answer_reserved: reserve.answer_reserved.as_ref().map_or_else(
                || {
                    stated(
                        "answer_reserved",
                        1.0,
                        COUNT,
                        "the admission rule is not known: the full output is reserved",
                    )
                },
                |f| f.datum("answer_reserved"),
            ),
            block_tokens: self.runtime.block_tokens.datum("block_tokens"),
            max_batched_tokens: taken.max_batched_tokens.datum("max_batched_tokens"),
        };
        let link = |tier: &crate::spec::cluster::Tier| PricedLink {
            bandwidth: tier.bandwidth.datum(format!("{}_bandwidth", tier.link)),
            latency: tier.latency.datum(format!("{}_latency", tier.link)),
        };
        Ok(self.with_host(Machine {
            chip,
            links: self.cluster.tiers.iter().map(link).collect(),
            shapes: tiers(self.cluster),
            quantised: quantised(self.weights, !self.calibration_key.experts),
            max_sequences: taken.max_sequences.map(|f| f.datum("max_sequences")),
            margin: None,
            host: None,
        }))
    }
}
