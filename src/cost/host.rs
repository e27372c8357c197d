//! The host's processor as a machine of its own: tensors in host memory are priced with it.

use super::calibration::ConstantMultipliers;
use super::machine::{Chip, Machine};
use super::machine_builder::MachineBuilder;
use crate::figures;
use crate::quantity::datum::{Datum, Grade, Source};
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, COUNT, SECOND};
use crate::spec::constant::CalibratedConstant;
use crate::spec::figure::{Figure, Ratio};
use crate::spec::host_part::{HostCompute, HostProcessor, HostedTensors, PromptWay};

/// The vector peak at which `growth` changes nothing, in FLOP/s: a desktop part of 24 cores.
const REFERENCE: f64 = 4e12;

figures! {
    /// Constants of the way between a device and the host memory.
    HostPath {
        /// Peak bandwidth of the link per direction.
        bandwidth,
        /// Fraction of it that copies reach.
        reached,
        /// Wait of device and processor for each other, per layer.
        crossing,
        /// Tokens of a step from which weights are copied to the device.
        stream_from,
        /// Tokens that share one copy of the weights.
        micro_batch,
    }
}

/// The host of a device, where its runtime computes on it.
#[derive(Clone, Debug)]
pub struct HostMachine<T> {
    /// Its processor and memory, in the formats of the device.
    pub processor: Machine<T>,
    /// The way to the device.
    pub path: HostPath<T>,
    /// The tensors that it can compute with.
    pub computes: Vec<HostedTensors>,
    /// How a prompt passes them.
    pub prompt: Vec<PromptWay>,
}

impl HostMachine<Datum> {
    /// The same host in another reading.
    pub fn read<R: Reading>(&self, read: &R) -> HostMachine<Qty<R::N>> {
        HostMachine {
            processor: read.within(format_args!("constants/host"), || self.processor.read(read)),
            path: self.path.map(|datum| read.datum(datum)),
            computes: self.computes.clone(),
            prompt: self.prompt.clone(),
        }
    }
}

/// The vector peak that counts: with the exponent `growth` of the stated one.
fn grown(peak: f64, growth: f64) -> f64 {
    libm::pow(REFERENCE, 1.0 - growth) * libm::pow(peak, growth)
}

/// Fraction of that peak which products of a few tokens reach: of the stated one, it is `decode`. What one's own measurements
/// say of loads holds for the arithmetic between them.
fn decode_compute(host: &HostCompute, of: &HostProcessor, times: Option<Datum>) -> Option<Datum> {
    let mut compute = host.decode.as_ref()?.datum("host_decode_reached");
    compute.value *= of.peak.value / grown(of.peak.value, host.growth.value);
    let mut text = format!("{} of the stated peak: {}", host.decode.as_ref()?.value, compute.source.text);
    if let Some(times) = times {
        compute.value /= times.value;
        text += &format!("; divided by {:.3}: {}", times.value, times.source.text);
    }
    compute.source = Source { grade: compute.source.grade, text: text.into() };
    Some(compute)
}

/// The chip of a processor that runs `host`: bandwidth and peak of the processor at the runtime's efficiencies, where
/// products reach `products` in prompts.
fn processor(
    chip: &Chip<Datum>,
    host: &HostCompute,
    of: &HostProcessor,
    products: &Figure<Ratio>,
) -> Chip<Datum> {
    let growth = host.growth.value;
    let peak = || {
        let mut peak = of.peak.datum("host_vector_peak");
        peak.value = grown(peak.value, growth);
        let text =
            format!("4 TFLOP/s to the {:.2} x peak to the {growth:.2}: {}", 1.0 - growth, peak.source.text);
        peak.source = Source { grade: Grade::Assumed, text: text.into() };
        peak
    };
    let compute = |reached: &Figure<Ratio>| reached.datum("host_compute_reached");
    let memory = || host.memory.datum("host_memory_reached");
    let none = || Datum::stated("host_launch", 0.0, SECOND, "inside the achieved bandwidth");
    Chip {
        bandwidth: of.bandwidth.datum("host_memory_bandwidth"),
        weight_peak: peak(),
        native_peak: peak(),
        attention_peak: peak(),
        gemm_compute: compute(products),
        attention_compute: compute(&host.compute),
        moe_compute: compute(products),
        gemm_memory: memory(),
        attention_memory: memory(),
        moe_memory: memory(),
        launch_per_layer: none(),
        kernel_launch: none(),
        quantised_launch: none(),
        experts_launch: none(),
        ..chip.clone()
    }
}

/// Constants of a device that a processor has figures of its own for.
const OWN: [CalibratedConstant; 10] = [
    CalibratedConstant::GemmCompute,
    CalibratedConstant::AttentionCompute,
    CalibratedConstant::MoeCompute,
    CalibratedConstant::GemmMemory,
    CalibratedConstant::AttentionMemory,
    CalibratedConstant::MoeMemory,
    CalibratedConstant::LaunchPerLayer,
    CalibratedConstant::KernelLaunch,
    CalibratedConstant::QuantisedLaunch,
    CalibratedConstant::ExpertsLaunch,
];

impl MachineBuilder<'_> {
    /// `machine` with the processor that runs `host` as its device. Of the multipliers of a device's constants, a processor
    /// has those of one's own measurements alone.
    fn on_processor(
        &self,
        machine: &Machine<Datum>,
        host: &HostCompute,
        of: &HostProcessor,
        products: &Figure<Ratio>,
    ) -> Machine<Datum> {
        let kept = machine.calibration.iter().filter(|one| !OWN.contains(&one.of)).cloned();
        let own = OWN.into_iter().filter(|of| of.entry().is_efficiency()).filter_map(|of| {
            let multipliers = vec![self.time_correction(of)?];
            Some(ConstantMultipliers { of, multipliers })
        });
        Machine {
            chip: processor(&machine.chip, host, of, products),
            calibration: kept.chain(own).collect(),
            in_turn: host.decode.is_some(),
            decode_compute: decode_compute(host, of, self.time_correction(CalibratedConstant::GemmMemory)),
            // The matrix products of a processor run on its vector units.
            vector_peak: None,
            host: None,
            ..machine.clone()
        }
    }

    /// The host behind the device of `machine`, where the runtime computes on it and all figures are known.
    fn host(&self, machine: &Machine<Datum>) -> Option<HostMachine<Datum>> {
        let (host, of) = (self.runtime.host.as_ref()?, self.cluster.processor.as_ref()?);
        let link = self.cluster.device.host_link.as_ref()?;
        Some(HostMachine {
            processor: self.on_processor(machine, host, of, &host.compute),
            path: HostPath {
                bandwidth: link.bandwidth.datum("host_link_bandwidth"),
                reached: host.link.datum("host_link_reached"),
                crossing: host.crossing.datum("host_crossing"),
                stream_from: host.stream_from.datum("stream_from"),
                micro_batch: host.micro_batch.datum("micro_batch"),
            },
            computes: host.computes.clone(),
            prompt: host.prompt.clone(),
        })
    }

    /// `machine` with its host; a machine that is a processor itself gets the efficiencies of one.
    pub(super) fn with_host(&self, machine: Machine<Datum>) -> Machine<Datum> {
        let device = &self.cluster.device;
        let runs = self.runtime.host.as_ref().filter(|_| device.is_processor());
        if let (Some(host), Some(of)) = (runs, self.cluster.processor.as_ref()) {
            return self.on_processor(&machine, host, of, host.products_alone(&self.weights.id));
        }
        Machine { host: self.host(&machine).map(Box::new), ..machine }
    }
}

impl<N: Num> HostMachine<Qty<N>> {
    /// Copies of the weights that `tokens` tokens take.
    pub fn passes(&self, tokens: Qty<N>) -> Qty<N> {
        (tokens / self.path.micro_batch).ceil().is(&PASSES)
    }

    /// Time of copying `bytes` to the device in each of `passes` micro-batches.
    pub fn stream(&self, bytes: Qty<N>, passes: Qty<N>) -> Qty<N> {
        (passes * bytes / (self.path.bandwidth * self.path.reached)).is(&STREAM)
    }

    /// Time of handing `tokens` activations of `hidden` elements to the processor and back.
    pub fn cross(&self, tokens: Qty<N>, hidden: Qty<N>) -> Qty<N> {
        let bytes = 2.0 * tokens * hidden * self.processor.chip.activation_bytes;
        (self.path.crossing + bytes / (self.path.bandwidth * self.path.reached)).is(&CROSSING)
    }
}

/// Bytes of `elements` weights of a layer in host memory.
pub fn hosted_bytes<N: Num>(elements: Qty<N>, weight_bytes: Qty<N>) -> Qty<N> {
    (elements * weight_bytes).is(&HOSTED)
}

crate::formulas! {
    PASSES {
        symbol: "weight_passes",
        unit: COUNT,
        why: "a prompt is computed in micro-batches, and each of them copies the weights again",
        cite: "llama.cpp --ubatch-size, https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    }
    STREAM {
        symbol: "weights_over_host_link",
        unit: SECOND,
        why: "weights in host memory are copied to the device before it computes with them, without overlap",
        cite: "llama.cpp, ggml-backend scheduler: operators of 32 tokens or more move to the device that has free memory (--no-op-offload turns it off)",
    }
    CROSSING {
        symbol: "host_crossing_time",
        unit: SECOND,
        why: "activations go to host memory and back, and device and processor wait for each other",
        cite: "Hockney 1994 (latency and bandwidth); wait fitted on published runs",
    }
    HOSTED {
        symbol: "host_weights",
        unit: BYTE,
        why: "weights of a layer that lie in host memory, in the weight format",
        cite: "definition",
    }
}
