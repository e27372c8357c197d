//! Every input of a problem, as flags or as a file. Names are not resolved here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::PeerToPeer;
use super::error::Error;
use super::evidence::EvidenceRule;
use super::figure::{Seconds, correction, read};
use super::image::ImageSize;
#[cfg(feature = "cli")]
use super::limits::{
    ACCEPTANCE, AMORTIZATION, CONCURRENCY, DRAFT_TOKENS, ELECTRICITY, HOURS_PER_DAY, IMAGES, ISL,
    MAX_MODEL_LEN, MEMORY_SHARE, OSL, PREFIX, PREFIX_GROUPS, PUE, RATE, SEQUENCES, STEP_TOKENS,
    USD_PER_DEVICE_HOUR, UTILIZATION, number, whole,
};
use super::limits::{E2E, Limit, TPOT, TTFT, of_flag};
use super::objective::{LatencyLimits, Metric};
use super::offload::OffloadPolicy;
use super::percentile::{Confidence, Percentile};
use super::plan_space::{ServingMode, UnusedDegrees};
use super::price::PriceBasis;
use super::rule::Allowance;

/// Declares the scenario: every field may be absent, and is then taken from another one.
macro_rules! scenario {
    ($($(#[$attribute:meta])* pub $field:ident: $kind:ty,)*) => {
        /// A problem, as flags or as a file. Absent fields have defaults.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[cfg_attr(feature = "cli", derive(clap::Args))]
        #[serde(deny_unknown_fields, default)]
        pub struct Scenario {$(
            $(#[$attribute])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<$kind>,
        )*}

        impl Scenario {
            /// Each field of this scenario, or that of another where it is absent.
            fn fields_or(self, other: Scenario) -> Scenario {
                Scenario { $($field: self.$field.or(other.$field),)* }
            }
        }
    };
}

scenario! {
    /// Model: catalogue name, Hugging Face id, path of a config.json, its folder or a GGUF file, hf:ORG/NAME[:QUANT|/FILE.gguf] or URL
    #[cfg_attr(feature = "cli", arg(short, long, value_name = "M", help_heading = QUESTION))]
    pub model: String,
    /// Hardware: a system, a number of devices, or a system file
    #[cfg_attr(feature = "cli", arg(short = 'H', long, value_name = "H", help_heading = QUESTION, help = HARDWARE))]
    pub hardware: String,
    /// Host: memory as type-speed x channels (ddr5-6000x2), a processor of the catalogue, or both (epyc-9355,ddr5-6400x12) [default: the system's]
    #[cfg_attr(feature = "cli", arg(long, value_name = "HOST", help_heading = QUESTION))]
    pub host: String,
    /// Host memory of a node, e.g. 64GB [default: the system's]
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = QUESTION))]
    pub host_memory: String,
    /// Peer-to-peer between devices on PCIe: yes, no (staged through host memory) or switch (PCIe switches) [default: the system's]
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "yes|no|switch", hide_possible_values = true, help_heading = QUESTION))]
    pub p2p: PeerToPeer,
    /// Link between nodes, one port for each device: ethernet-100g, ib-ndr … [default: the system's, else that of hardware/defaults.json]
    #[cfg_attr(feature = "cli", arg(long, value_name = "LINK", help_heading = QUESTION))]
    pub network: String,
    /// Objective: its id, or path of an objective file
    #[cfg_attr(feature = "cli", arg(long, value_name = "O", help_heading = QUESTION))]
    pub objective: String,
    /// Workload: its id, or path of a workload file; the objective names one
    #[cfg_attr(feature = "cli", arg(long, value_name = "W", help_heading = TRAFFIC))]
    pub workload: String,
    /// Prompt tokens (input sequence length)
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&ISL), allow_negative_numbers = true, help_heading = TRAFFIC))]
    pub isl: u64,
    /// Output tokens (output sequence length)
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&OSL), allow_negative_numbers = true, help_heading = TRAFFIC))]
    pub osl: u64,
    /// Concurrent requests over the whole deployment; chosen by the search where absent
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&CONCURRENCY), allow_negative_numbers = true, help_heading = TRAFFIC))]
    pub concurrency: u64,
    /// Required requests per second
    #[cfg_attr(feature = "cli", arg(long, value_name = "R", value_parser = number(&RATE), allow_negative_numbers = true, help_heading = TRAFFIC))]
    pub rate: f64,
    /// Latency percentile the SLOs apply to; requires --rate [default: p50]
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "p50|p90|p95|p99", hide_possible_values = true, help_heading = TRAFFIC))]
    pub percentile: Percentile,
    /// Odds that the deployment meets all SLOs when measured: a percentile (p50 to p99) or a number (0.8); `median`: each SLO by the prediction itself [default: p75]
    #[cfg_attr(feature = "cli", arg(long, value_name = "ODDS", help_heading = TRAFFIC))]
    pub risk: Confidence,
    /// Plans that may be the answer: those of a measured kind, unless a better one is beyond the interval, or all [default: measured]
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "measured|any", hide_possible_values = true, help_heading = CHOICES))]
    pub evidence: EvidenceRule,
    /// Prefill and decode on the same devices (aggregated) or on different ones (disaggregated) [default: the better]
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "aggregated|disaggregated", hide_possible_values = true, help_heading = CHOICES))]
    pub mode: ServingMode,
    /// Kinds of parallelism that no worker uses, e.g. pp,cp
    #[cfg_attr(feature = "cli", arg(long, value_name = "D,D", help_heading = CHOICES))]
    pub without: UnusedDegrees,
    /// Prompt tokens that every request shares and that are already in the KV cache (prefix cache hits)
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&PREFIX), allow_negative_numbers = true, help_heading = TRAFFIC))]
    pub prefix: u64,
    /// Different prefixes among the requests: each is stored once, by runtimes that share them [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&PREFIX_GROUPS), allow_negative_numbers = true, help_heading = TRAFFIC))]
    pub prefix_groups: u64,
    /// Images per request, for models with a vision encoder; their tokens are added to --isl
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&IMAGES), allow_negative_numbers = true, help_heading = TRAFFIC))]
    pub images: u64,
    /// Pixels of each image, for encoders with dynamic resolution, e.g. 1024x768
    #[cfg_attr(feature = "cli", arg(long, value_name = "WxH", allow_hyphen_values = true, help_heading = TRAFFIC))]
    pub image_size: ImageSize,
    /// Draft for speculative decoding: `mtp`, the model's own module, or the name of a smaller model
    #[cfg_attr(feature = "cli", arg(long, value_name = "mtp|M", help_heading = SPECULATION))]
    pub draft: String,
    /// Draft tokens per step [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&DRAFT_TOKENS), allow_negative_numbers = true, help_heading = SPECULATION))]
    pub draft_tokens: u64,
    /// Accepted draft tokens / draft tokens, as servers report it [default: a range from 0 on]
    #[cfg_attr(feature = "cli", arg(long, value_name = "P", value_parser = number(&ACCEPTANCE), allow_negative_numbers = true, help_heading = SPECULATION))]
    pub acceptance: f64,
    /// TTFT SLO: maximum time to first token, e.g. 500ms; `none` for no limit
    #[cfg_attr(feature = "cli", arg(long, value_name = "T", allow_hyphen_values = true, help_heading = TRAFFIC))]
    pub ttft: String,
    /// TPOT SLO: maximum time per output token, e.g. 40ms; `none` for no limit
    #[cfg_attr(feature = "cli", arg(long, value_name = "T", allow_hyphen_values = true, help_heading = TRAFFIC))]
    pub tpot: String,
    /// E2E SLO: maximum end-to-end latency of a request, e.g. 10s; `none` for no limit
    #[cfg_attr(feature = "cli", arg(long, value_name = "T", allow_hyphen_values = true, help_heading = TRAFFIC))]
    pub e2e: String,
    /// Serving runtime: vllm, sglang, trtllm, llama.cpp, mlx …
    #[cfg_attr(feature = "cli", arg(long, value_name = "R", help_heading = CHOICES))]
    pub runtime: String,
    /// Runtime version, e.g. 0.19.0; unmeasured versions use the average [default: average]
    #[cfg_attr(feature = "cli", arg(long, value_name = "V", help_heading = CHOICES))]
    pub runtime_version: String,
    /// Tokens of one step of the scheduler (chunk size), as vLLM's flag [default: the runtime's on the device]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&STEP_TOKENS), allow_negative_numbers = true, help_heading = CHOICES))]
    pub max_num_batched_tokens: u64,
    /// Sequences of one scheduler at a time, as vLLM's flag [default: the runtime's on the device, or more where they fit]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&SEQUENCES), allow_negative_numbers = true, help_heading = CHOICES))]
    pub max_num_seqs: u64,
    /// Longest request that the server takes, prompt and output, as vLLM's flag: the KV cache must hold one of that length [default: the longest that fits at the load, at least ISL + OSL]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&MAX_MODEL_LEN), allow_negative_numbers = true, help_heading = CHOICES))]
    pub max_model_len: u64,
    /// Fraction of the device memory that the runtime uses, as vLLM's flag [default: the runtime's]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = number(&MEMORY_SHARE), allow_negative_numbers = true, help_heading = CHOICES))]
    pub gpu_memory_utilization: f64,
    /// Weight format: an id, or `any` [default: the checkpoint's own and published ones of at least 8 bits]
    #[cfg_attr(feature = "cli", arg(long, value_name = "F", help_heading = CHOICES))]
    pub weight_format: String,
    /// Weight format of prefill workers, if different: then plans are disaggregated [default: --weight-format]
    #[cfg_attr(feature = "cli", arg(long, value_name = "F", help_heading = CHOICES))]
    pub prefill_weight_format: String,
    /// Weight format of decode workers, if different: then plans are disaggregated [default: --weight-format]
    #[cfg_attr(feature = "cli", arg(long, value_name = "F", help_heading = CHOICES))]
    pub decode_weight_format: String,
    /// KV cache format: an id, or `any` [default: 16 bits, or the format that the checkpoint has scales for]
    #[cfg_attr(feature = "cli", arg(long, value_name = "F", help_heading = CHOICES))]
    pub kv_format: String,
    /// Offload of weights, experts or KV cache to host memory [default: auto, wherever it can help]
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "auto|never|always", hide_possible_values = true, help_heading = CHOICES))]
    pub offload: OffloadPolicy,
    /// Extend the search: custom-router, heterogeneous workers in one pool; unmeasured, devices of vendors without any measurement
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "custom-router|unmeasured", hide_possible_values = true, value_delimiter = ',', help_heading = CHOICES))]
    pub allow: Vec<Allowance>,
    /// Lift the rules of the runtime: any plan that the model's shape and the devices allow
    #[cfg_attr(feature = "cli", arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false", help_heading = CHOICES))]
    pub theoretical: bool,
    /// Metrics of the Pareto front, separated by commas [default: the objective's]
    #[cfg_attr(feature = "cli", arg(long, value_name = "METRICS", value_delimiter = ',', help_heading = CHOICES))]
    #[schemars(with = "Option<Vec<Metric>>")]
    pub pareto: Vec<String>,
    /// Price of owned or of rented devices, for every offer of a comparison [default: owned at home; else rented where every offer has a rent]
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "owned|rented", hide_possible_values = true, help_heading = MONEY))]
    pub price_basis: PriceBasis,
    /// Rent of one device, USD/h
    #[cfg_attr(feature = "cli", arg(long, value_name = "USD", value_parser = number(&USD_PER_DEVICE_HOUR), allow_negative_numbers = true, help_heading = MONEY))]
    pub usd_per_device_hour: f64,
    /// Electricity price, USD/kWh
    #[cfg_attr(feature = "cli", arg(long, value_name = "USD", value_parser = number(&ELECTRICITY), allow_negative_numbers = true, help_heading = MONEY))]
    pub electricity_usd_per_kwh: f64,
    /// Power usage effectiveness (PUE): power of the facility over power of its machines
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = number(&PUE), allow_negative_numbers = true, help_heading = MONEY))]
    pub pue: f64,
    /// Amortization period of a purchase, in months
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = number(&AMORTIZATION), allow_negative_numbers = true, help_heading = MONEY))]
    pub amortization_months: f64,
    /// Fraction of the amortization period in which the hardware serves
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = number(&UTILIZATION), allow_negative_numbers = true, help_heading = MONEY))]
    pub utilization: f64,
    /// Hours per day in which the hardware serves: rented hardware costs only these, the price of owned hardware is spread over them [default: 24]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = number(&HOURS_PER_DAY), allow_negative_numbers = true, help_heading = MONEY))]
    pub hours_per_day: f64,
    /// Override a value of the model's config.json, or of the file of a device, system or runtime (repeatable)
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE.KEY=VALUE", allow_hyphen_values = true, help_heading = CHANGED))]
    pub set: Vec<String>,
    /// A given deployment, for `estimate` and `explain`; `optimize` chooses its own
    #[cfg_attr(feature = "cli", arg(skip))]
    pub deployment: super::deployment::Deployment,
}

const HARDWARE: &str =
    "Hardware: system id, [NODESx]COUNTxDEVICE (8xh100-sxm, 16x8xh100), path of a system file, or `local`";
const QUESTION: &str = "Problem";
const TRAFFIC: &str = "Traffic and SLOs";
const SPECULATION: &str = "Speculative decoding";
const CHOICES: &str = "Search space";
const MONEY: &str = "Prices";
const CHANGED: &str = "Assumptions";

impl Scenario {
    /// Whether it allows this.
    pub fn allows(&self, what: Allowance) -> bool {
        self.allow.iter().flatten().any(|one| *one == what)
    }

    /// A model on hardware, with every other input by default.
    pub fn of(model: &str, hardware: &str) -> Scenario {
        Scenario { model: Some(model.into()), hardware: Some(hardware.into()), ..Scenario::default() }
    }

    /// This scenario; unset fields come from `other`.
    pub fn or(self, other: Scenario) -> Scenario {
        // Rate and concurrency exclude each other: setting one replaces the other.
        let other = Scenario {
            rate: other.rate.filter(|_| self.concurrency.is_none()),
            concurrency: other.concurrency.filter(|_| self.rate.is_none()),
            ..other
        };
        // Overrides add up; the later one of a key counts.
        let set = [other.set.clone(), self.set.clone()].into_iter().flatten().flatten();
        let set: Vec<String> = set.collect();
        let set = (!set.is_empty()).then_some(set);
        let this = Scenario { set, ..self };
        this.fields_or(other)
    }

    /// The SLOs of this scenario over `others`; `none` removes one of `others`.
    pub fn limits(&self, others: LatencyLimits) -> Result<LatencyLimits, Error> {
        let time = |limit: &Limit, text: &Option<String>, other: Option<f64>| {
            let key = limit.name;
            let refused = |found: String| {
                let fix = "write e.g. `500ms`, `2 s`, or `none` for no limit";
                Error::new(key, found, format!("a time with its unit, {}", limit.range()), fix)
            };
            let text = match text.as_deref().map(str::trim) {
                None => return Ok(other),
                Some("none") => return Ok(None),
                Some(text) => text,
            };
            let meant = |fix: String, found: String| Error { fix, ..refused(found) };
            match (read::<Seconds>(text), correction::<Seconds>(text)) {
                (Ok(seconds), _) if limit.holds(seconds) => Ok(Some(seconds)),
                (Ok(_), _) => Err(refused(format!("`{text}`"))),
                // A bare number is most likely in milliseconds.
                (Err(_), _) if text.parse::<f64>().is_ok_and(|number| number > 0.0) => {
                    let fix = format!("write `{text}ms`, `{text}s`, or `none` for no limit");
                    Err(meant(fix, format!("`{text}`, without a unit")))
                }
                (Err(why), Some(time)) => Err(meant(format!("write `{time}`, or `none` for no limit"), why)),
                (Err(why), None) => Err(refused(why)),
            }
        };
        Ok(LatencyLimits {
            ttft: time(&TTFT, &self.ttft, others.ttft)?,
            tpot: time(&TPOT, &self.tpot, others.tpot)?,
            e2e: time(&E2E, &self.e2e, others.e2e)?,
        })
    }

    /// Checks every number of the scenario, from a flag, a file or a saved result.
    pub fn check(&self) -> Result<(), Error> {
        let fields = serde_json::to_value(self).expect("a scenario has only text keys");
        for (key, value) in fields.as_object().into_iter().flatten() {
            let flag = of_flag(&key.replace('_', "-")).or_else(|| of_flag(key));
            // JSON has no word for what is no number.
            let number = if value.is_null() { Some(f64::NAN) } else { value.as_f64() };
            let (Some(limit), Some(number)) = (flag, number) else { continue };
            limit.check(key, number)?;
        }
        if self.hours_per_day.is_some() && self.utilization.is_some() {
            let found = "both hours_per_day and utilization";
            let fix = "remove one: utilization is hours_per_day / 24";
            return Err(Error::new("hours_per_day", found, "one of them", fix));
        }
        Ok(())
    }

    /// The metrics of the Pareto front, where the scenario sets them.
    pub fn axes(&self) -> Result<Option<Vec<Metric>>, Error> {
        let Some(names) = &self.pareto else { return Ok(None) };
        let mut axes = Vec::new();
        for name in names {
            let metric = Metric::parse(name).map_err(|fault| Error { key: "pareto".into(), ..fault })?;
            if !axes.contains(&metric) {
                axes.push(metric);
            }
        }
        if axes.is_empty() {
            return Err(Error::new("pareto", "no axis", "at least one metric", "add one, e.g. `tpot`"));
        }
        Ok(Some(axes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_and_what_is_out_of_range_are_refused_under_their_keys() {
        let rate = |rate| Scenario { rate: Some(rate), ..Scenario::default() }.check();
        assert!(rate(2.5).is_ok());
        for wrong in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(rate(wrong).unwrap_err().key, "rate", "{wrong}");
        }
        let price = Scenario { usd_per_device_hour: Some(-1.0), ..Scenario::default() };
        assert_eq!(price.check().unwrap_err().key, "usd_per_device_hour");
    }

    #[test]
    fn flags_win_over_the_file_and_a_rate_takes_the_place_of_a_concurrency() {
        let file = Scenario { isl: Some(8), osl: Some(9), concurrency: Some(4), ..Scenario::default() };
        let flags = Scenario { isl: Some(1), rate: Some(2.5), ..Scenario::default() };
        let both = flags.or(file);
        assert_eq!((both.isl, both.osl, both.concurrency, both.rate), (Some(1), Some(9), None, Some(2.5)));
    }

    #[test]
    fn limits_are_times_and_none_lifts_them() {
        let others = LatencyLimits { ttft: Some(2.0), tpot: Some(0.05), e2e: None };
        let of = |ttft: &str| Scenario { ttft: Some(ttft.into()), ..Scenario::default() }.limits(others);
        assert_eq!(of("500ms").unwrap(), LatencyLimits { ttft: Some(0.5), ..others });
        assert_eq!(of("1.5 s").unwrap().ttft, Some(1.5));
        assert_eq!(of("none").unwrap(), LatencyLimits { ttft: None, ..others });
        assert!(of("2sec").unwrap_err().fix.contains("`2 s`"));
        for wrong in ["500", "500 GB", "-1 s", "0 s", "NaN s", "soon", ""] {
            let error = of(wrong).unwrap_err();
            assert_eq!(error.key, "ttft", "{wrong}");
            assert!(error.fix.contains("500ms"), "{error}");
        }
    }

    #[test]
    fn axes_are_metrics_each_once() {
        let of = |names: &[&str]| {
            let pareto = Some(names.iter().map(|name| name.to_string()).collect());
            Scenario { pareto, ..Scenario::default() }.axes()
        };
        assert_eq!(
            of(&["ttft", "usd_per_mtok", "ttft_ms"]).unwrap(),
            Some(vec![Metric::Ttft, Metric::UsdPerMtok])
        );
        assert!(of(&["ttfd"]).unwrap_err().fix.contains("ttft"));
        assert_eq!(of(&[]).unwrap_err().key, "pareto");
    }

    #[test]
    fn a_saved_scenario_reads_back_the_same() {
        let scenario = Scenario {
            model: Some("a/b".into()),
            rate: Some(0.1),
            offload: Some(OffloadPolicy::Never),
            pareto: Some(vec!["tpot".into()]),
            ..Scenario::default()
        };
        let text = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
        assert!(!text.contains("null"), "{text}");
    }
}
