//! From a scenario to a problem: every name resolved, every default filled in, no costs yet.

use crate::spec::offload::OffloadPolicy;
use std::sync::Arc;

use super::catalog::Catalog;
use super::model::ResolvedModel;
use crate::graph::image_inputs::ImageInputs;
use crate::graph::model::ModelGraph;
use crate::plan::rules::RuntimeRules;
use crate::serving::terms::Lengths;
use crate::spec::cluster::Cluster;
use crate::spec::defaults::{Defaults, Economics};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::evidence::EvidenceRule;
use crate::spec::format::NumberFormat;
use crate::spec::objective::{MOST_TOKENS, Objective, Workload};
use crate::spec::percentile::Confidence;
use crate::spec::plan_space::{ServingMode, UnusedDegrees};
use crate::spec::precision::{FormatOption, Precision};
use crate::spec::rule::Allowance;
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;

/// Default model of a run without arguments.
pub const DEFAULT_MODEL: &str = "meta-llama/Llama-3.3-70B-Instruct";
pub const DEFAULT_HARDWARE: &str = "dgx-h100";
pub const DEFAULT_OBJECTIVE: &str = "throughput";
/// The objective at a given request rate: the load is fixed, so that the cost is what remains to be chosen.
pub const DEFAULT_OBJECTIVE_AT_RATE: &str = "least-cost";
pub const DEFAULT_OBJECTIVE_AT_HOME: &str = "single-user";

/// A problem with all its inputs.
#[derive(Clone, Debug)]
pub struct ResolvedScenario {
    pub model: ResolvedModel,
    pub graph: Arc<ModelGraph>,
    pub cluster: Cluster,
    pub runtime: Arc<Runtime>,
    pub runtime_version: Option<String>,
    /// Maximum number of sequences of a scheduler, where the scenario limits it.
    pub max_num_seqs: Option<u64>,
    /// Longest request that the server takes, where the scenario states it.
    pub max_model_len: Option<u64>,
    /// Whether the rules of the runtime are lifted.
    pub theoretical: bool,
    /// Whether heterogeneous workers may share the requests of a pool.
    pub custom_router: bool,
    /// Whether devices of vendors without any measurement compete in a comparison.
    pub unmeasured_allowed: bool,
    /// The 16-bit format of activations and of unquantized weights.
    pub native: FormatOption,
    /// Candidate weight formats, the checkpoint's own first.
    pub weight_formats: Vec<FormatOption>,
    /// The weight format of prefill workers, where it was requested.
    pub prefill_weights: Option<FormatOption>,
    /// Lower weight formats, which were not requested.
    pub lower_formats: Vec<FormatOption>,
    pub kv_formats: Vec<FormatOption>,
    /// The traffic; its SLOs are those of the objective.
    pub workload: Workload,
    /// The objective, with the effective SLOs and axes.
    pub objective: Objective,
    /// Whether the scenario states the axes of the front.
    pub stated_axes: bool,
    /// Prices, energy and service life.
    pub economics: Economics,
    /// The defaults behind the prices.
    pub defaults: Defaults,
    /// Offload of weights, experts or KV cache to host memory.
    pub offload: OffloadPolicy,
    /// Acceptance rate of draft tokens, with speculative decoding: accepted / drafted.
    pub acceptance: Option<f64>,
    /// Whether the scenario has a draft and states no rate: then it counts as 0.
    pub unstated_acceptance: bool,
    pub confidence: Confidence,
    pub evidence: EvidenceRule,
    pub mode: Option<ServingMode>,
    pub without: UnusedDegrees,
    pub deployment: Option<Deployment>,
}

impl AsRef<ResolvedScenario> for ResolvedScenario {
    fn as_ref(&self) -> &ResolvedScenario {
        self
    }
}

impl ResolvedScenario {
    /// Resolves a scenario.
    pub fn resolve(catalog: &Catalog, scenario: &Scenario) -> Result<ResolvedScenario, Error> {
        let catalog = &*catalog.overridden(scenario)?;
        let found = catalog.built(scenario.model.as_deref().unwrap_or(DEFAULT_MODEL))?;
        let cluster = catalog.cluster_of(scenario)?;
        ResolvedScenario::placed(catalog, scenario, found, cluster)
    }

    /// The problem of a resolved model and cluster; their names in the scenario are ignored.
    pub fn placed(
        catalog: &Catalog,
        scenario: &Scenario,
        found: (ResolvedModel, ModelGraph),
        cluster: Cluster,
    ) -> Result<ResolvedScenario, Error> {
        if let Some(stated) = scenario.p2p.filter(|_| !cluster.has_bus()) {
            let found = format!("{}, and {} without links over PCIe", stated.name(), cluster.name);
            return Err(Error::new("p2p", found, "devices that meet over PCIe", "omit it"));
        }
        let cluster = catalog.with_host(cluster, scenario)?;
        ResolvedScenario::on_host(catalog, scenario, found, cluster)
    }

    /// The same on a cluster whose host is that of the scenario.
    pub(super) fn on_host(
        catalog: &Catalog,
        scenario: &Scenario,
        (model, mut graph): (ResolvedModel, ModelGraph),
        cluster: Cluster,
    ) -> Result<ResolvedScenario, Error> {
        let scenario = &*catalog.with_version(scenario)?;
        let acceptance = catalog.speculation(scenario, &mut graph)?;
        let runtime = catalog.chosen_runtime(scenario, &cluster)?.started(&cluster.device, scenario);
        let (objective, workload) = catalog.objective_and_workload(scenario, cluster.device.is_home())?;
        if !graph.generates {
            let found = format!("{}, a model without a language-model head", model.name);
            let fix = "choose a model that generates text; `mantile-opt inspect` shows its structure";
            return Err(Error::new("model", found, "a model that generates text", fix));
        }
        if graph.reads_foreign_caches() {
            let found =
                format!("{}, a draft that reads the KV cache of its target and keeps none", model.name);
            let fix = "choose its target as the model, and this one with --draft";
            return Err(Error::new("model", found, "a model with a KV cache of its own", fix));
        }
        let graph = Arc::new(graph.with_images(workload.images, workload.image_size)?);
        let load = |id: &str| catalog.load::<NumberFormat>(id);
        let precision = Precision {
            layout: model.layout(&graph),
            config: &model.config,
            published: &model.published,
            named: model.named.as_ref(),
            runtime: &runtime,
            device: &cluster.device,
            at_home: cluster.device.is_home(),
            load: &load,
        };
        let decode = scenario.decode_weight_format.as_ref().or(scenario.weight_format.as_ref());
        let weight_formats = precision.weights(decode.map(String::as_str))?;
        let prefill = scenario.prefill_weight_format.as_ref().or(scenario.weight_format.as_ref());
        let differs = scenario.prefill_weight_format.is_some() || scenario.decode_weight_format.is_some();
        let prefill_weights = match prefill.filter(|_| differs) {
            Some(prefill) => precision.weights(Some(prefill))?.into_iter().next(),
            None => None,
        };
        let lower_formats = precision.lower(&weight_formats)?;
        let kv_formats = precision.kv(scenario.kv_format.as_deref())?;
        let native = precision.native()?;
        let defaults = catalog.defaults()?;
        let economics = Economics::new(&defaults, &cluster, scenario)?;
        let deployment = scenario.deployment.clone().filter(Deployment::is_stated);
        let problem = ResolvedScenario {
            graph,
            native,
            weight_formats,
            prefill_weights,
            lower_formats,
            kv_formats,
            workload,
            objective,
            stated_axes: scenario.pareto.is_some(),
            economics,
            defaults,
            offload: scenario.offload.unwrap_or_default(),
            acceptance,
            unstated_acceptance: scenario.draft.is_some() && scenario.acceptance.is_none(),
            confidence: scenario.risk.unwrap_or_default(),
            evidence: scenario.evidence.unwrap_or_default(),
            mode: scenario.mode,
            without: scenario.without.unwrap_or_default(),
            deployment,
            model,
            cluster,
            runtime,
            runtime_version: scenario.runtime_version.clone(),
            max_num_seqs: scenario.max_num_seqs,
            max_model_len: scenario.max_model_len,
            theoretical: scenario.theoretical.unwrap_or(false),
            custom_router: scenario.allows(Allowance::CustomRouter),
            unmeasured_allowed: scenario.allows(Allowance::Unmeasured),
        };
        problem.prompt_fits()?;
        Ok(problem)
    }
}

impl ResolvedScenario {
    /// Lengths of a request; the tokens of its images are part of the prompt.
    pub fn lengths(&self) -> Lengths {
        let Workload { isl, osl, prefix, .. } = self.workload;
        let images = self.graph.image_inputs.as_ref().map_or(0, ImageInputs::all_tokens);
        Lengths { isl: isl.saturating_add(images), osl, prefix }
    }

    /// Bits per weight of the model's checkpoint; 16 where its format is unknown here.
    pub fn checkpoint_bits(&self) -> f64 {
        let formats = self.weight_formats.iter().chain(&self.lower_formats);
        formats.filter(|choice| choice.own).map(FormatOption::bits).next().unwrap_or(16.0)
    }

    /// Rules of the runtime for this model on these devices.
    pub fn rules(&self) -> RuntimeRules {
        let version = self.runtime_version.as_deref();
        let rules = RuntimeRules::of(&self.runtime, version, &self.graph, &self.cluster);
        if self.theoretical { rules.lifted() } else { rules }
    }

    /// Lengths without images were checked with the workload.
    pub(super) fn prompt_fits(&self) -> Result<(), Error> {
        let Some(seen) = &self.graph.image_inputs else { return Ok(()) };
        if self.lengths().isl <= MOST_TOKENS {
            return Ok(());
        }
        let found = format!("{} images of {} tokens each", seen.images.value, seen.tokens.value);
        let expected = format!("a prompt of at most {MOST_TOKENS} tokens");
        Err(Error::new("images", found, expected, "use fewer or smaller images"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::price::PriceBasis;

    fn resolve(scenario: &Scenario) -> ResolvedScenario {
        ResolvedScenario::resolve(&Catalog::default(), scenario).unwrap_or_else(|error| panic!("{error}"))
    }

    fn ids(choices: &[FormatOption]) -> Vec<&str> {
        choices.iter().map(|choice| choice.format.id.as_str()).collect()
    }

    #[test]
    fn an_empty_scenario_is_the_documented_question() {
        let problem = resolve(&Scenario::default());
        assert_eq!(problem.graph.parameters().unique, 70_553_706_496);
        assert_eq!((problem.cluster.devices(), problem.cluster.device.id.as_str()), (8, "nvidia-h100-sxm"));
        assert_eq!((problem.workload.isl, problem.workload.osl), (2048, 512));
        let limits = problem.objective.limits;
        assert_eq!((limits.ttft, limits.tpot, limits.e2e), (Some(2.0), Some(0.05), None));
        assert_eq!(problem.runtime.id, "vllm");
        assert_eq!(ids(&problem.weight_formats), ["bf16", "fp8"]);
        assert_eq!(ids(&problem.kv_formats), ["bf16"]);
        assert_eq!(problem.lower_formats[0].format.id, "nvfp4");
    }

    #[test]
    fn every_quantized_checkpoint_runs_in_its_own_format_unless_requested_otherwise() {
        let catalog = Catalog::default();
        let shelf = catalog.entries(crate::store::kind::CatalogKind::Models).into_iter();
        let quantized = shelf.filter(|(_, file)| file.text().unwrap().contains("\"quantization_config\""));
        for (id, _) in quantized {
            let problem = resolve(&Scenario::of(&id, "dgx-b200"));
            let first = &problem.weight_formats[0];
            assert!(first.why.starts_with("the checkpoint's own"), "{id}: {}", first.why);
            assert!(first.format.runtimes.contains(&problem.runtime.id), "{id}: {}", first.format.id);
        }
        let first = |model: &str| resolve(&Scenario::of(model, "dgx-b200")).weight_formats[0].format.clone();
        let kimi = first("moonshotai/Kimi-K2.5");
        assert_eq!((kimi.id.as_str(), 8.0 * kimi.bits_per_element.value), ("int4-gptq", 4.5));
        assert!(kimi.leaves.iter().any(|role| role == "attention"));
        let mixed = first("deepseek-ai/DeepSeek-V4-Flash");
        assert!(mixed.bits_per_element.value * 8.0 > 4.25, "fp8 beside the experts' fp4");
    }

    #[test]
    fn a_draft_without_a_cache_is_refused_alone_and_taken_by_its_target() {
        let catalog = Catalog::default();
        let text = r#"{"model_type": "gemma4_assistant", "backbone_hidden_size": 1536, "text_config": {
            "model_type": "gemma4_text", "num_hidden_layers": 2, "num_kv_shared_layers": 2,
            "hidden_size_per_layer_input": 0, "layer_types": ["sliding_attention", "full_attention"]}}"#;
        let draft = ModelGraph::build(&crate::spec::model::ModelConfig::parse(text).unwrap()).unwrap();
        let scenario = Scenario::of("google/gemma-4-31B-it", "8xh100");
        let placed = |graph: ModelGraph| {
            let (model, _) = catalog.built("google/gemma-4-31B-it").unwrap();
            let cluster = catalog.hardware("8xh100").unwrap();
            ResolvedScenario::placed(&catalog, &scenario, (model, graph), cluster)
        };
        let (_, target) = catalog.built("google/gemma-4-31B-it").unwrap();
        let (name, graph) = ("assistant".to_owned(), Box::new(draft.clone()));
        let with = crate::graph::draft::Draft { name, graph, tokens: 1 };
        placed(ModelGraph { draft: Some(with), ..target }).unwrap();
        let alone = placed(draft).map(|_| "accepted").unwrap_err();
        assert!(alone.key == "model" && alone.fix.contains("--draft"), "{alone}");
    }

    #[test]
    fn quality_is_not_traded_silently() {
        let weights = |model: &str, hardware: &str| {
            ids(&resolve(&Scenario::of(model, hardware)).weight_formats).join(" ")
        };
        assert_eq!(weights("Llama-3.1-8B", "8xh100"), "bf16 fp8");
        assert_eq!(weights("Llama-3.1-8B", "8xa100"), "bf16", "fp8 is not native to Ampere");
        assert_eq!(weights("Llama-3.1-8B", "dgx-b200"), "bf16 fp8");
        assert_eq!(weights("DeepSeek-V3", "8xh200"), "fp8-block");
        assert_eq!(weights("gpt-oss-120b", "8xh100"), "mxfp4");
        assert_eq!(weights("Qwen/Qwen3-32B-AWQ", "8xh100"), "int4-awq");
        assert_eq!(weights("Qwen/Qwen3-8B-FP8", "8xh100"), "fp8-block");
        let any = Scenario { weight_format: Some("any".into()), ..Scenario::of("Llama-3.1-8B", "8xh100") };
        assert_eq!(ids(&resolve(&any).weight_formats)[0], "bf16");
        assert!(ids(&resolve(&any).weight_formats).contains(&"int4-awq"));
        let named = Scenario { weight_format: Some("awq".into()), ..Scenario::of("Llama-3.1-8B", "8xh100") };
        let chosen = &resolve(&named).weight_formats;
        assert_eq!(ids(chosen), ["int4-awq"]);
        assert_eq!(
            chosen[0].checkpoint.as_deref(),
            Some("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4")
        );
    }

    #[test]
    fn what_does_not_run_here_is_refused_with_what_does() {
        let own =
            Scenario { weight_format: Some("fp8-block".into()), ..Scenario::of("DeepSeek-V3", "1xm3-ultra") };
        let mac = ResolvedScenario::resolve(&Catalog::default(), &own).unwrap_err();
        assert!(mac.found.contains("fp8-block") && mac.fix.contains("vllm"), "{mac}");
        let format = |name: &str| Some(name.to_owned());
        let gguf = Scenario { weight_format: format("q8_0"), runtime: format("vllm"), ..Scenario::default() };
        let error = ResolvedScenario::resolve(&Catalog::default(), &gguf).unwrap_err();
        assert!(error.fix.contains("llama.cpp"), "{error}");
        let kv = Scenario { kv_format: Some("int8".into()), ..Scenario::default() };
        assert_eq!(ResolvedScenario::resolve(&Catalog::default(), &kv).unwrap_err().key, "kv-format");
        let runtime = Scenario { runtime: Some("mlx".into()), ..Scenario::default() };
        assert_eq!(ResolvedScenario::resolve(&Catalog::default(), &runtime).unwrap_err().key, "runtime");
    }

    #[test]
    fn defaults_follow_the_class_of_the_hardware() {
        let of = |scenario: &Scenario| {
            let resolved = resolve(scenario);
            let format = resolved.weight_formats[0].format.id.clone();
            (resolved.runtime.id.clone(), format, resolved.objective.id, resolved.workload.concurrency)
        };
        let expected = |runtime: &str, format: &str, objective: &str, concurrency: Option<u64>| {
            (runtime.to_owned(), format.to_owned(), objective.to_owned(), concurrency)
        };
        let home = |hardware: &str| of(&Scenario::of("Llama-3.1-8B", hardware));
        assert_eq!(home("1xrtx-4090"), expected("llama.cpp", "gguf-q4_k_m", "single-user", Some(1)));
        assert_eq!(home("1xm3-ultra"), expected("mlx", "mlx-4bit", "single-user", Some(1)));
        assert_eq!(home("8xh100"), expected("vllm", "bf16", "throughput", None));
        let limits = resolve(&Scenario::of("Llama-3.1-8B", "1xrtx-4090")).objective.limits;
        assert_eq!((limits.ttft, limits.tpot), (None, None), "no SLO acts at home unless given");
        let rate = Scenario { rate: Some(2.0), ..Scenario::of("Llama-3.1-8B", "8xh100") };
        assert_eq!(of(&rate).2, "least-cost");
        let given = Scenario { objective: Some("throughput".into()), ..rate };
        assert_eq!(of(&given).2, "throughput");
        let gguf =
            Scenario { weight_format: Some("q4_k_m".into()), ..Scenario::of("Llama-3.1-8B", "8xh100") };
        assert_eq!(of(&gguf).0, "llama.cpp", "a GGUF format chooses its runtime");
        let quantized = of(&Scenario::of("gpt-oss-20b", "1xrtx-4090"));
        assert_eq!((quantized.0.as_str(), quantized.1.as_str()), ("llama.cpp", "mxfp4"));
        let any =
            Scenario { weight_format: Some("any".into()), ..Scenario::of("Llama-3.1-8B", "1xrtx-4090") };
        assert!(resolve(&any).weight_formats.iter().all(|one| one.format.bits_per_element.value >= 0.5));
    }

    #[test]
    fn limits_come_from_the_flags_then_the_objective_then_the_workload() {
        let interactive = Scenario { objective: Some("interactive".into()), ..Scenario::default() };
        let of = |scenario: &Scenario| {
            let limits = resolve(scenario).objective.limits;
            (limits.ttft, limits.tpot)
        };
        assert_eq!(of(&interactive), (Some(0.5), Some(0.025)));
        let flags = Scenario { tpot: Some("10ms".into()), ttft: Some("none".into()), ..interactive };
        assert_eq!(of(&flags), (None, Some(0.01)));
        let batch = Scenario { workload: Some("batch".into()), ..Scenario::default() };
        assert_eq!(of(&batch), (None, None));
    }

    #[test]
    fn prices_follow_the_scenario_then_the_system_and_energy_follows_the_class() {
        let hall = resolve(&Scenario::default()).economics;
        let desk = resolve(&Scenario::of("Llama-3.1-8B", "2xrtx-4090")).economics;
        assert!(desk.electricity.value > hall.electricity.value && desk.pue.value < hall.pue.value);
        let stated = |scenario: Scenario| resolve(&scenario).economics;
        let rented = stated(Scenario { usd_per_device_hour: Some(1.8), ..Scenario::default() });
        assert_eq!(rented.rent.unwrap().value, 1.8 / 3600.0);
        let owned = stated(Scenario { pue: Some(1.1), ..Scenario::default() });
        assert_eq!((owned.basis, owned.pue.value), (PriceBasis::Owned, 1.1));
        let basis = |scenario: Scenario| resolve(&scenario).economics.basis;
        assert_eq!((hall.basis, desk.basis), (PriceBasis::Rented, PriceBasis::Owned));
        let rented = Some(PriceBasis::Rented);
        assert_eq!(
            Some(basis(Scenario { price_basis: rented, ..Scenario::of("Llama-3.1-8B", "2xrtx-4090") })),
            rented
        );
        for wrong in [
            Scenario { pue: Some(0.5), ..Scenario::default() },
            Scenario { utilization: Some(1.5), ..Scenario::default() },
            Scenario { amortization_months: Some(0.0), ..Scenario::default() },
            Scenario { usd_per_device_hour: Some(f64::NAN), ..Scenario::default() },
            Scenario { usd_per_device_hour: Some(2.0), pue: Some(1.2), ..Scenario::default() },
            Scenario { price_basis: rented, utilization: Some(0.5), ..Scenario::default() },
        ] {
            assert!(ResolvedScenario::resolve(&Catalog::default(), &wrong).is_err(), "{wrong:?}");
        }
    }
}
