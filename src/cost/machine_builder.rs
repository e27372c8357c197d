//! Builds a [`Machine`]: selects the constants of device, runtime and formats.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::StrDeserializer;

use super::calibration::ConstantMultipliers;
use super::machine::{Chip, HeldPrompts, Machine, PricedLink, ShapeHeadroom};
use crate::graph::tensor::TensorRole;
use crate::plan::group::tiers;
use crate::plan::shard::ROLES;
use crate::quantity::datum::{Datum, Grade, Source};
use crate::quantity::unit::{BYTE, COUNT, Unit};
use crate::spec::cluster::{Cluster, Tier};
use crate::spec::constant::{
    CalibratedConstant, CalibrationFactor, CalibrationKey, ConstantFigures, ConstantKind, ConstantSection,
    calibrated_constants,
};
use crate::spec::correction::{CellCorrection, ShrunkFactor};
use crate::spec::device::{Arithmetic, Device};
use crate::spec::error::Error;
use crate::spec::figure::{Bytes, Dimension, Figure};
use crate::spec::format::NumberFormat;
use crate::spec::runtime::{Constants, DecodeGraphs, Reserve, Runtime, StatedPolicy};

/// The roles that `format` quantises. Norms, biases, sinks, small recurrence tensors and encoders never are.
pub fn quantised(format: &NumberFormat, dense: bool) -> [bool; ROLES] {
    let leaves = format.dense_leaves.as_ref().filter(|_| dense).unwrap_or(&format.leaves);
    let mut roles = [true; ROLES];
    let small =
        [TensorRole::Norm, TensorRole::Bias, TensorRole::Sink, TensorRole::Recurrence, TensorRole::Tower];
    let named = leaves.iter().filter_map(|name| {
        TensorRole::deserialize(StrDeserializer::<serde::de::value::Error>::new(name)).ok()
    });
    for role in small.into_iter().chain(named) {
        roles[role as usize] = false;
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
    let exact = |c: &&Constants| c.devices.iter().any(|id| id == device.measured_as());
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

/// The inputs of a machine.
pub struct MachineBuilder<'a> {
    /// Devices and interconnect.
    pub cluster: &'a Cluster,
    /// The serving runtime.
    pub runtime: &'a Runtime,
    pub weights: &'a NumberFormat,
    /// KV cache format.
    pub kv: &'a NumberFormat,
    /// The model's own dtype, for weights that the format does not quantise.
    pub native: &'a NumberFormat,
    /// Properties of model and traffic that select the calibration multipliers.
    pub calibration_key: CalibrationKey,
    /// Factors of one's own measurements of such problems, if any.
    pub correction: Option<&'a CellCorrection>,
}

/// Planned utilisation of a prefill pool: a judgement, as queues have no largest sensible load.
const PREFILL_UTILIZATION: f64 = 0.85;

/// The source of constants that only a fit has.
const NOT_FITTED: &str = "included in the runtime's constants: not fitted separately";

/// A figure that no file has.
fn default(symbol: &'static str, value: f64, unit: Unit, text: &'static str) -> Datum {
    Datum::stated(symbol, value, unit, text)
}

/// The figure of a file, or a number with its reason where the file has none.
fn or_default<D: Dimension>(
    figure: &Option<Figure<D>>,
    symbol: &'static str,
    (value, unit): (f64, Unit),
    text: &'static str,
) -> Datum {
    figure.as_ref().map_or_else(|| default(symbol, value, unit, text), |figure| figure.datum(symbol))
}

fn kv_bytes(kv: &NumberFormat) -> Datum {
    kv.bits_per_element.datum("bytes_per_kv_element")
}

macro_rules! chip_of_table {
    ($($Name:ident $key:ident $Kind:ident $Section:ident,)*) => {
        impl MachineBuilder<'_> {
            /// The device, with the calibrated constants that `constant` reads.
            fn chip(
                &self,
                mut constant: impl FnMut(CalibratedConstant) -> Datum,
            ) -> Result<Chip<Datum>, Error> {
                let device = &self.cluster.device;
                let (_, weight_peak, _) = arithmetic(device, self.weights)?;
                let (_, native_peak, _) = arithmetic(device, self.native)?;
                let taken = self.runtime.taken(device);
                Ok(Chip {
                    bandwidth: device.bandwidth()?.datum("memory_bandwidth"),
                    weight_peak,
                    attention_peak: native_peak.clone(),
                    native_peak,
                    quantised_bytes: self.weights.bits_per_element.datum("bytes_per_weight"),
                    native_bytes: self.native.bits_per_element.datum("bytes_per_native_weight"),
                    activation_bytes: self.native.bits_per_element.datum("bytes_per_activation"),
                    kv_bytes: kv_bytes(self.kv),
                    $($key: constant(CalibratedConstant::$Name),)*
                    prefill_utilization: default(
                        "prefill_utilization",
                        PREFILL_UTILIZATION,
                        COUNT,
                        "assumed: above this utilisation the mean wait exceeds three prompts (Pollaczek and Khinchine)",
                    ),
                    capacity: device.capacity()?.datum("memory_capacity"),
                    utilization: taken.utilization.datum("memory_utilization"),
                    buffers: self.runtime.memory.buffers.datum("runtime_buffers"),
                    least_streamed: self.runtime.memory.least_streamed(),
                    sampler_bytes: self.runtime.memory.sampler_bytes(),
                    fragmentation: self.runtime.memory.fragmentation(),
                    answer_reserved: self.runtime.memory.answer_reserved(),
                    block_tokens: self.runtime.block_tokens.datum("block_tokens"),
                    max_batched_tokens: taken.max_batched_tokens.datum("max_batched_tokens"),
                })
            }
        }
    };
}
calibrated_constants!(chip_of_table);

impl Reserve {
    fn sampler_bytes(&self) -> Datum {
        or_default(&self.sampler, "sampler_bytes", (4.0, BYTE), "logits in fp32")
    }

    fn least_streamed(&self) -> Datum {
        or_default(&self.streamed, "least_streamed", (0.0, BYTE), "weights that fit stay on the device")
    }

    fn fragmentation(&self) -> Datum {
        let text = "pages waste at most the last page of a sequence";
        or_default(&self.fragmentation, "fragmentation", (0.0, COUNT), text)
    }

    fn answer_reserved(&self) -> Datum {
        let text = "the admission rule is not known: the full output is reserved";
        or_default(&self.answer_reserved, "answer_reserved", (1.0, COUNT), text)
    }
}

impl MachineBuilder<'_> {
    /// Memory that a server leaves free by its shape.
    fn by_shape(&self) -> Option<ShapeHeadroom<Datum>> {
        let (device, known) = (&self.cluster.device, self.runtime.memory.by_shape.as_ref()?);
        let capacity = device.capacity().ok()?.value;
        let fits = |one: &&DecodeGraphs| one.below.as_ref().is_none_or(|most| capacity < most.value);
        let graphs = known.graphs.iter().find(fits)?;
        let none = |symbol, unit| default(symbol, 0.0, unit, "none on this device");
        let prompts = known.prompt_graph_vendors.iter().any(|name| name == device.vendor.name());
        let of_prompts = |figure: &Figure<Bytes>, symbol| match prompts {
            true => figure.datum(symbol),
            false => none(symbol, BYTE),
        };
        let large = capacity > known.least_free_above.value;
        Some(ShapeHeadroom {
            per_device: known.per_device.datum("free_per_device"),
            per_sequence: known.per_sequence.datum("free_per_graph_sequence"),
            per_rank_sequence: known.per_rank_sequence.datum("free_per_rank_and_sequence"),
            per_rank_sequence_of_many: known
                .per_rank_sequence_of_many
                .datum("free_per_rank_and_sequence_of_many"),
            many_sequences: known.many_sequences.datum("many_graph_sequences"),
            narrow_ranks: known.narrow_ranks.datum("ranks_of_narrow_graphs"),
            narrow_sequences: graphs.narrow.datum("narrow_graph_sequences"),
            wide_sequences: graphs.wide.datum("wide_graph_sequences"),
            latent_prompts: of_prompts(&known.latent_prompts, "free_for_latent_prompt_graphs"),
            prompts: of_prompts(&known.prompts, "free_for_prompt_graphs"),
            per_prompt_token: of_prompts(&known.per_prompt_token, "free_per_prompt_graph_token"),
            least_free: if large { known.least_free.datum("least_free") } else { none("least_free", BYTE) },
        })
    }

    /// The factor of one's own measurements.
    fn correction(&self, of: fn(&CellCorrection) -> Option<ShrunkFactor>) -> Option<Datum> {
        let correction = self.correction?;
        Some(Datum {
            symbol: "factor(own measurements)".into(),
            value: of(correction)?.times,
            unit: COUNT,
            source: Source { grade: Grade::Fitted, text: correction.source.clone().into() },
        })
    }

    /// The factor of one's own measurements on a constant: counts take no time.
    pub(super) fn time_correction(&self, of: CalibratedConstant) -> Option<Datum> {
        match of.entry().kind {
            ConstantKind::Count => None,
            ConstantKind::Efficiency if of.is_of_compute() => self.correction(|one| one.compute.or(one.time)),
            ConstantKind::Efficiency | ConstantKind::Time => self.correction(|one| one.time),
        }
    }

    /// The multipliers of a constant, each named by its condition.
    fn multipliers(&self, of: CalibratedConstant) -> Vec<Datum> {
        let Some(fit) = &self.runtime.serving_fit else { return vec![] };
        let device = &self.cluster.device;
        let datum = |factor: &CalibrationFactor| Datum {
            symbol: format!("multiplier({})", factor.condition()).into(),
            value: factor.times,
            unit: COUNT,
            source: Source { grade: Grade::Fitted, text: fit.source.clone().into() },
        };
        fit.multipliers(of, device, &self.weights.id, &self.calibration_key).map(datum).collect()
    }

    /// A constant as its file has it, and its multipliers if there are any.
    fn constant(
        &self,
        of: CalibratedConstant,
        figures: &ConstantFigures,
        borrowed: &Option<String>,
    ) -> (Datum, Option<ConstantMultipliers>) {
        let entry = of.entry();
        let correction = self.time_correction(of);
        let calibrated = |datum: Datum, multipliers: Vec<Datum>| {
            let above_roofline = entry.kind == ConstantKind::Efficiency && datum.value > 1.0;
            match multipliers.is_empty() && !above_roofline {
                true => (datum, None),
                false => (
                    datum.named(format!("{}_base", entry.key)),
                    Some(ConstantMultipliers { of, multipliers }),
                ),
            }
        };
        if let Some(stated) = self.cluster.device.constants.datum(of) {
            return calibrated(stated, correction.into_iter().collect());
        }
        let absent = || default(entry.key, 0.0, entry.kind.unit(), NOT_FITTED);
        let mut datum = figures.datum(of, entry.key.to_owned()).unwrap_or_else(absent);
        if let Some(why) = borrowed.as_ref().filter(|_| entry.section == ConstantSection::Constants) {
            let text = format!("{why}; {}", datum.source.text);
            datum.source = Source { grade: Grade::Assumed, text: text.into() };
        }
        calibrated(datum, self.multipliers(of).into_iter().chain(correction).collect())
    }

    /// Builds the machine.
    ///
    /// # Errors
    /// The device supports neither format, or the runtime has no constants.
    pub fn machine(&self) -> Result<Machine<Datum>, Error> {
        Ok(self.with_host(self.without_host()?))
    }

    /// The machines of several KV formats in place of the builder's, in order. They differ in nothing else.
    pub fn machines(&self, each: &[&NumberFormat]) -> Result<Vec<Machine<Datum>>, Error> {
        let plain = self.without_host()?;
        let of = |kv: &&NumberFormat| {
            let mut machine = plain.clone();
            machine.chip.kv_bytes = kv_bytes(kv);
            machine.pool_entry = self.pool_entry(kv);
            self.with_host(machine)
        };
        Ok(each.iter().map(of).collect())
    }

    /// Elements and bytes of an entry of compressed attention in `kv`, where the runtime states them.
    fn pool_entry(&self, kv: &NumberFormat) -> Option<(u64, u64)> {
        let entries = &self.runtime.memory.page_pool.as_ref()?.entries;
        entries.iter().find(|one| one.kv_format == kv.id).map(|one| (one.width, one.bytes))
    }

    fn without_host(&self) -> Result<Machine<Datum>, Error> {
        let device = &self.cluster.device;
        let (constants, borrowed) = constants(self.runtime, device, &self.weights.id).ok_or_else(|| {
            let fix = "add at least one entry of `constants` to the runtime's file";
            Error::new("constants", format!("none in {}", self.runtime.id), "efficiency constants", fix)
        })?;
        let figures = ConstantFigures { runtime: self.runtime, constants };
        let mut calibration = Vec::new();
        let chip = self.chip(|of| {
            let (datum, multipliers) = self.constant(of, &figures, &borrowed);
            calibration.extend(multipliers);
            datum
        })?;
        let link = |tier: &Tier| PricedLink {
            bandwidth: tier.bandwidth.datum(format!("{}_bandwidth", tier.link)),
            latency: tier.latency.datum(format!("{}_latency", tier.link)),
        };
        let decode_compute = device.constants.decode_compute.as_ref();
        Ok(Machine {
            chip,
            decode_compute: decode_compute.map(|figure| figure.datum("decode_compute")),
            in_turn: false,
            vector_peak: device.peak.get(&Arithmetic::Fp32).map(|peak| peak.datum("peak_fp32")),
            links: self.cluster.tiers.iter().map(link).collect(),
            shapes: tiers(self.cluster),
            quantised: quantised(self.weights, !self.calibration_key.experts),
            by_shape: self.by_shape(),
            policy: self.runtime.scheduler.policy.as_ref().map(StatedPolicy::rules),
            held: self.runtime.scheduler.held.as_ref().map(|held| HeldPrompts {
                steps: held.steps.datum("held_steps"),
                tokens_ratio: held.tokens_ratio.datum("held_tokens_ratio"),
            }),
            max_sequences: self.runtime.taken(device).max_sequences.map(|f| f.datum("max_sequences")),
            page_pool: self.runtime.memory.page_pool.clone().map(Arc::new),
            pool_entry: self.pool_entry(self.kv),
            sampler_drafts: self.runtime.memory.sampler_drafts.as_ref().map(|f| f.datum("sampler_drafts")),
            calibration,
            memory_correction: self.correction(|one| one.memory),
            host: None,
            prefill: None,
        })
    }
}
