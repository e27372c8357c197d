//! Candidate weight and KV formats: the checkpoint's own, and published ones of at least 8 bits. Lower precision only
//! on request.
//!
//! Independent of files: a function loads a format.

use super::device::Device;
use super::error::Error;
use super::figure::Figure;
use super::format::{NumberFormat, ScaleBlock};
use super::model::ModelConfig;
use super::model::file::Published;
use super::near::{near, suggest};
use super::runtime::Runtime;
use crate::quantity::datum::{Grade, Source};

#[derive(Clone, Debug)]
pub struct FormatOption {
    pub format: NumberFormat,
    pub why: String,
    /// Hugging Face id of the checkpoint in this format, if one is published.
    pub checkpoint: Option<String>,
    /// Whether the model's own checkpoint has it.
    pub own: bool,
}

impl FormatOption {
    fn new(format: NumberFormat, why: impl Into<String>) -> FormatOption {
        FormatOption { format, why: why.into(), checkpoint: None, own: false }
    }

    /// Bits per weight, scales included.
    pub fn bits(&self) -> f64 {
        self.format.bits_per_element.value * 8.0
    }

    /// The quality of weights in it, of a model whose checkpoint has `checkpoint` bits per weight.
    pub fn quality(&self, checkpoint: f64) -> WeightQuality {
        let bits = self.bits();
        WeightQuality { is_kept: self.own || bits >= FOUR_BITS.0.min(checkpoint), bits }
    }

    /// Whether some checkpoint has it, or the runtime makes it of 16-bit weights when it starts.
    pub fn loads(&self, config: &ModelConfig, runtime: &Runtime) -> bool {
        self.own || self.checkpoint.is_some() || self.made_at_start(config, runtime)
    }

    /// Whether the runtime makes it of the 16-bit weights of the model's own checkpoint when it starts.
    pub fn made_at_start(&self, config: &ModelConfig, runtime: &Runtime) -> bool {
        let made = config.quantization.is_none() && runtime.weights_at_start.contains(&self.format.id);
        made && !self.own && self.checkpoint.is_none()
    }
}

/// Quality of weights, of which more is better: whether it counts as that of the checkpoint, then bits per weight. Published
/// figures bear it out, and each format has its own with the source: about no loss from 8 bits on (fp8, int8, Q8_0), a
/// few points or per cent of perplexity from 4 to 6 (NVFP4, GPTQ, Q4_K_M), and fast growing losses below.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct WeightQuality {
    /// It counts as that of the checkpoint: its own format, 4 bits and up, or no fewer bits than the checkpoint's.
    pub is_kept: bool,
    /// Bits per weight, scales included.
    pub bits: f64,
}

impl WeightQuality {
    /// Whether it is within a range of bits per weight.
    pub fn is_within(self, (least, below): (f64, f64)) -> bool {
        (least..below).contains(&self.bits)
    }
}

/// Bits per weight, scales included, that count as 8 bits: from here on, a format is chosen without a request.
pub const EIGHT_BITS: (f64, f64) = (8.0, 9.5);
/// Bits per weight, scales included, that count as 4 bits. Below, a format is used only by name: published losses grow
/// fast there (<https://github.com/ggml-org/llama.cpp/blob/master/tools/quantize/README.md>).
pub const FOUR_BITS: (f64, f64) = (4.0, 5.5);
/// Bits of the widest format that is used without its name.
const SIXTEEN_BITS: f64 = 16.0;

/// Size of a checkpoint's weights in its own formats, from its tensors and its quantization.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointLayout {
    /// Formats of its parts; the one with the most elements first.
    pub formats: Vec<&'static str>,
    /// Bytes of all roles with any quantized tensor, scales included.
    pub bytes: u64,
    /// Elements of those roles.
    pub elements: u64,
    /// Its roles, and whether any of their tensors is quantized.
    pub roles: Vec<(String, bool)>,
}

/// Relative tolerance between a checkpoint's bits and its format's before the checkpoint's own count is used: other
/// group sizes exceed it, partial blocks at the edge of a matrix do not.
const ALIKE: f64 = 0.01;

pub struct Precision<'a> {
    /// Size of the checkpoint in its own formats, where known.
    pub layout: Option<CheckpointLayout>,
    pub config: &'a ModelConfig,
    pub published: &'a [Published],
    /// The published checkpoint that was named instead of the model.
    pub named: Option<&'a Published>,
    pub runtime: &'a Runtime,
    pub device: &'a Device,
    /// Whether the defaults of home and edge devices apply.
    pub at_home: bool,
    /// Loads a format by id or alias.
    pub load: &'a dyn Fn(&str) -> Result<NumberFormat, Error>,
}

/// Reason of the checkpoint's format.
pub const OWN: &str = "the checkpoint's own";
/// Requests every format that runs.
pub const ANY: &str = "any";
/// Format in which runtimes serve float32 and unknown dtypes.
const USUAL: &str = "bf16";

impl Precision<'_> {
    /// The 16-bit format of unquantized weights and of activations.
    pub fn native(&self) -> Result<FormatOption, Error> {
        let dtype = self.config.dtype.as_deref().map(|dtype| dtype.trim_start_matches("torch."));
        let (id, why) = match dtype {
            Some("bfloat16") => ("bf16", "dtype bfloat16".to_owned()),
            Some("float16") => ("fp16", "dtype float16".to_owned()),
            Some(other) => (USUAL, format!("dtype {other}, served in {USUAL}")),
            None => (USUAL, format!("no dtype: {USUAL} assumed")),
        };
        let own = self.named.is_none() && self.config.quantization.is_none();
        Ok(FormatOption { own, ..FormatOption::new((self.load)(id)?, why) })
    }

    /// The candidate weight formats, the checkpoint's own first.
    pub fn weights(&self, requested: Option<&str>) -> Result<Vec<FormatOption>, Error> {
        let own = self.own()?;
        match requested {
            Some(ANY) => {
                // More than 16 bits add nothing to a checkpoint of 16.
                let wanted = |format: &NumberFormat| {
                    let bits = format.bits_per_element.value * 8.0;
                    format.weights && (FOUR_BITS.0..=SIXTEEN_BITS).contains(&bits)
                };
                let converted = self.each(&self.runtime.weight_formats, wanted)?;
                Ok(distinct(own.filter(|own| self.runs(&own.format)).into_iter().chain(converted)))
            }
            Some(name) => {
                let format = self.named(name, "weight-format", &self.runtime.weight_formats)?;
                let own = own.filter(|own| own.format.id == format.id);
                let choice = own.unwrap_or_else(|| self.converted(format, "requested"));
                self.must_run(choice, "weight-format").map(|choice| vec![choice])
            }
            None if self.at_home && !self.runtime.weights_at_home.is_empty() => self.home_weights(own),
            None => {
                let kept = self.published.iter().filter(|_| self.named.is_none());
                let kept = kept.map(|one| Ok(published(one, (self.load)(&one.weight_format)?)));
                let kept: Vec<FormatOption> = kept.collect::<Result<_, Error>>()?;
                let keeps = |choice: &FormatOption| {
                    choice.bits() >= EIGHT_BITS.0
                        && self.runs(&choice.format)
                        && self.native_arithmetic(&choice.format)
                };
                let mut own = self.must_run(own.ok_or_else(|| self.mixed())?, "weight-format")?;
                let slow = |choice: &&FormatOption| choice.bits() >= EIGHT_BITS.0 && !keeps(choice);
                if let Some(choice) = kept.iter().find(slow) {
                    let id = &choice.format.id;
                    let lacks = match self.runs(&choice.format) {
                        true => format!("no {id} arithmetic on {}", self.device.name),
                        false => format!("no {id} kernels of {} on {}", self.runtime.name, self.device.name),
                    };
                    own.why = format!("{}; {lacks}", own.why);
                }
                Ok(distinct([own].into_iter().chain(kept.into_iter().filter(keeps))))
            }
        }
    }

    /// The weight formats on a home or edge device: the checkpoint's own where it is quantized and runs, else the
    /// runtime's default there, then the checkpoint's own.
    fn home_weights(&self, own: Option<FormatOption>) -> Result<Vec<FormatOption>, Error> {
        let quantized = self.config.quantization.is_some() || self.named.is_some();
        if let Some(own) = own.clone().filter(|own| quantized && self.runs(&own.format)) {
            return Ok(vec![own]);
        }
        let usual = self.runtime.weights_at_home.iter().map(|id| (self.load)(id));
        let usual = usual.collect::<Result<Vec<_>, Error>>()?.into_iter().find(|format| self.runs(format));
        let Some(usual) = usual else {
            return self.must_run(own.ok_or_else(|| self.mixed())?, "weight-format").map(|own| vec![own]);
        };
        let usual = self.converted(usual, &format!("the default of {} on home devices", self.runtime.name));
        Ok(distinct([usual].into_iter().chain(own.filter(|own| self.runs(&own.format)))))
    }

    /// Formats below those `chosen`, as an option for the user. Published ones first, then larger ones.
    pub fn lower(&self, chosen: &[FormatOption]) -> Result<Vec<FormatOption>, Error> {
        let least = chosen.iter().map(|c| c.format.bits_per_element.value).fold(f64::INFINITY, f64::min);
        let mut lower = self.each(&self.runtime.weight_formats, |format| {
            format.weights && format.bits_per_element.value < least
        })?;
        lower.sort_by(|a, b| {
            let size = |c: &FormatOption| c.format.bits_per_element.value;
            let published = |c: &FormatOption| c.checkpoint.is_none();
            published(a).cmp(&published(b)).then(size(b).total_cmp(&size(a)))
        });
        Ok(lower)
    }

    /// The candidate KV formats, 16 bits first.
    pub fn kv(&self, requested: Option<&str>) -> Result<Vec<FormatOption>, Error> {
        let native = self.native()?;
        match requested {
            Some(ANY) => {
                let known = &self.runtime.kv_formats;
                let others = self
                    .each(known, |format| format.kv && format.bits_per_element.value * 8.0 <= SIXTEEN_BITS)?;
                let native = known.contains(&native.format.id).then_some(native);
                Ok(distinct(native.into_iter().chain(others)))
            }
            Some(name) => {
                let format = self.named(name, "kv-format", &self.runtime.kv_formats)?;
                let known = self.runtime.kv_formats.contains(&format.id) && !self.left_out(&format);
                if !format.kv || !known || !self.computes(&format) {
                    return Err(self.refuse(&format, "kv-format", &self.runtime.kv_formats));
                }
                Ok(vec![FormatOption::new(format, "requested")])
            }
            None => {
                let stated = self.config.quantization.as_ref().and_then(|q| q.kv_format);
                let stated =
                    match stated.filter(|id| self.runtime.kv_formats.iter().any(|known| known == id)) {
                        Some(id) => Some((self.load)(id)?)
                            .filter(|format| format.kv && self.native_arithmetic(format)),
                        None => None,
                    };
                let stated =
                    stated.map(|format| FormatOption::new(format, "the checkpoint contains its scales"));
                Ok(distinct([native].into_iter().chain(stated)))
            }
        }
    }

    /// The format by name; an unknown name is compared with those of `known` that run here.
    fn named(&self, name: &str, flag: &str, known: &[String]) -> Result<NumberFormat, Error> {
        (self.load)(name).map_err(|miss| {
            if !miss.file.is_empty() {
                return miss;
            }
            let known = self.running(known);
            let fix = match near(name, known.iter().copied())[..] {
                [] => format!("choose one of them, or omit --{flag}"),
                _ => suggest(name, known.iter().copied(), "mantile-opt catalog formats"),
            };
            let expected =
                format!("a format of {} on {}: {}", self.runtime.name, self.device.name, known.join(", "));
            Error::new(flag, miss.found, expected, fix)
        })
    }

    /// Those of `ids` that the runtime runs on the device.
    fn running<'i>(&self, ids: &'i [String]) -> Vec<&'i str> {
        let runs = |id: &&String| {
            (self.load)(id).is_ok_and(|format| self.computes(&format) && !self.left_out(&format))
        };
        ids.iter().filter(runs).map(String::as_str).collect()
    }

    /// Rejects a checkpoint whose layers have several formats, or a format that is not in the catalogue.
    fn mixed(&self) -> Error {
        let method = self.config.quantization.as_ref().map_or("", |mixed| mixed.method.as_str());
        Error::new(
            "weight-format",
            format!(
                "no weight format, for a checkpoint ({method}) in several formats or in one without figures"
            ),
            "one format for the whole checkpoint",
            "set --weight-format; the largest format of the checkpoint is the safe choice",
        )
    }

    /// The format of the checkpoint; none where its layers have several.
    fn own(&self) -> Result<Option<FormatOption>, Error> {
        // A named checkpoint with a configuration of its own has the formats of that.
        let several = self.named.filter(|named| named.config.contains_key("quantization_config"));
        if let Some(named) = several {
            let own = self.of_config()?;
            return Ok(own.map(|own| FormatOption { checkpoint: Some(named.id.clone()), ..own }));
        }
        if let Some(named) = self.named {
            let format = (self.load)(&named.weight_format)?;
            let why = format!("the format of {}", named.id);
            return Ok(Some(FormatOption { format, why, checkpoint: Some(named.id.clone()), own: true }));
        }
        self.of_config()
    }

    /// The format of the configuration; none where it has several without figures.
    fn of_config(&self) -> Result<Option<FormatOption>, Error> {
        match (self.config.weight_format(), &self.config.quantization) {
            (Some(id), _) => {
                let format = self.as_stored((self.load)(id)?);
                Ok(Some(FormatOption { own: true, ..FormatOption::new(format, OWN) }))
            }
            (None, Some(_)) => self.several(),
            (None, None) => self.native().map(Some),
        }
    }

    /// `format` as in the checkpoint: with its group sizes and its unquantized roles.
    fn as_stored(&self, format: NumberFormat) -> NumberFormat {
        let format = NumberFormat { block: self.own_block().or(format.block), ..format };
        let Some(layout) = &self.layout else { return format };
        let dense = !layout.roles.iter().any(|(role, _)| role == "expert");
        let leaves = format.dense_leaves.as_ref().filter(|_| dense).unwrap_or(&format.leaves);
        let leaves_alike = layout.roles.iter().all(|(role, quantised)| leaves.contains(role) != *quantised);
        let bits = layout.bytes as f64 / layout.elements as f64;
        if leaves_alike && (bits / format.bits_per_element.value - 1.0).abs() <= ALIKE {
            return format;
        }
        self.with_layout(format, layout)
    }

    /// Weights of the checkpoint that share a scale, where it states their number.
    fn own_block(&self) -> Option<ScaleBlock> {
        let stated = self.config.quantization.as_ref()?;
        match (stated.weight_block_size, stated.group_size) {
            (Some([outputs, inputs]), _) => Some(ScaleBlock { outputs, inputs }),
            (None, Some(inputs)) => Some(ScaleBlock { outputs: 1, inputs }),
            (None, None) => None,
        }
    }

    fn with_layout(&self, format: NumberFormat, layout: &CheckpointLayout) -> NumberFormat {
        let left = |(role, quantised): &(String, bool)| (!quantised).then(|| role.clone());
        let why = "elements and scales of the checkpoint's tensors, from its quantization_config";
        NumberFormat {
            bits_per_element: Figure::new(
                layout.bytes as f64 / layout.elements as f64,
                Source { grade: Grade::Stated, text: why.into() },
            ),
            leaves: layout.roles.iter().filter_map(left).collect(),
            dense_leaves: None,
            leaves_note: Some("from the checkpoint's quantization_config".to_owned()),
            ..format
        }
    }

    /// A checkpoint of several formats as one format: their mean size, computed like the widest of them, on runtimes
    /// that support all of them.
    fn several(&self) -> Result<Option<FormatOption>, Error> {
        let Some(layout) = &self.layout else { return Ok(None) };
        let formats = layout.formats.iter().map(|id| (self.load)(id)).collect::<Result<Vec<_>, _>>()?;
        let wide = |a: &&NumberFormat, b: &&NumberFormat| {
            a.bits_per_element.value.total_cmp(&b.bits_per_element.value)
        };
        let (Some(most), Some(widest)) = (formats.first(), formats.iter().max_by(wide)) else {
            return Ok(None);
        };
        let run_all = |runtime: &&String| formats.iter().all(|format| format.runtimes.contains(runtime));
        let names: Vec<&str> = formats.iter().map(|format| format.name.as_str()).collect();
        let format = NumberFormat {
            name: names.join(" and "),
            computes_in: widest.computes_in.clone(),
            runtimes: most.runtimes.iter().filter(run_all).cloned().collect(),
            ..most.clone()
        };
        let why = format!("{OWN}: {} of it, evaluated at their mean size", names.join(" and "));
        let format = self.with_layout(format, layout);
        Ok(Some(FormatOption { own: true, ..FormatOption::new(format, why) }))
    }

    /// Those of `ids` that the device computes and that `wanted` accepts.
    fn each(
        &self,
        ids: &[String],
        wanted: impl Fn(&NumberFormat) -> bool,
    ) -> Result<Vec<FormatOption>, Error> {
        let mut found = Vec::new();
        for id in ids {
            let format = (self.load)(id)?;
            if wanted(&format) && self.computes(&format) && !self.left_out(&format) {
                found.push(self.converted(format, "converted from the checkpoint"));
            }
        }
        Ok(found)
    }

    /// A format other than the checkpoint's; the reason is `why`, unless a checkpoint in it is published.
    fn converted(&self, format: NumberFormat, why: &str) -> FormatOption {
        match self.published.iter().find(|one| one.weight_format == format.id) {
            Some(one) => published(one, format),
            None => FormatOption::new(format, why),
        }
    }

    fn must_run(&self, choice: FormatOption, flag: &str) -> Result<FormatOption, Error> {
        if self.runs(&choice.format) {
            return Ok(choice);
        }
        Err(self.refuse(&choice.format, flag, &self.runtime.weight_formats))
    }

    fn refuse(&self, format: &NumberFormat, flag: &str, known: &[String]) -> Error {
        let found = if self.left_out(format) {
            format!("{}, which {} does not run on {}", format.id, self.runtime.name, self.device.family)
        } else if self.computes(format) {
            format!("{}, which {} does not run", format.id, self.runtime.name)
        } else {
            let wanted: Vec<&str> = format.computes_in.iter().map(|arithmetic| arithmetic.name()).collect();
            let peaks = wanted.join(" or ");
            return Error::new(
                flag,
                format!("{}, for which {} has no peak in {peaks}", format.id, self.device.name),
                format!("a dense peak for {peaks}"),
                format!(
                    "choose another format with --{flag}, or add `peak.{}` to your own hardware/devices/{}.json",
                    wanted.first().unwrap_or(&"bf16"),
                    self.device.id
                ),
            );
        };
        // The runtimes of a format are those that run weights in it.
        let others = if flag == "weight-format" { &format.runtimes[..] } else { &[] };
        let fix = match others {
            [] => format!("choose one with --{flag}"),
            runtimes => {
                format!("choose one with --{flag}, or a --runtime that supports it: {}", runtimes.join(", "))
            }
        };
        Error::new(flag, found, format!("one of {}", self.running(known).join(", ")), fix)
    }

    fn runs(&self, format: &NumberFormat) -> bool {
        let listed =
            self.runtime.weight_formats.contains(&format.id) || format.runtimes.contains(&self.runtime.id);
        format.weights && listed && self.computes(format) && !self.left_out(format)
    }

    /// Whether the runtime does not support it on this generation.
    fn left_out(&self, format: &NumberFormat) -> bool {
        self.runtime.excludes(self.device, &format.id)
    }

    fn computes(&self, format: &NumberFormat) -> bool {
        format.computes_in.iter().any(|arithmetic| self.device.peak.contains_key(arithmetic))
    }

    /// Whether the device computes it without dequantization.
    fn native_arithmetic(&self, format: &NumberFormat) -> bool {
        format.computes_in.first().is_some_and(|arithmetic| self.device.peak.contains_key(arithmetic))
    }
}

fn published(checkpoint: &Published, format: NumberFormat) -> FormatOption {
    let why = format!("published as {}", checkpoint.id);
    FormatOption { checkpoint: Some(checkpoint.id.clone()), ..FormatOption::new(format, why) }
}

/// Each format once, in order of first appearance.
fn distinct(choices: impl Iterator<Item = FormatOption>) -> Vec<FormatOption> {
    let mut kept: Vec<FormatOption> = Vec::new();
    for choice in choices {
        if !kept.iter().any(|known| known.format.id == choice.format.id) {
            kept.push(choice);
        }
    }
    kept
}
