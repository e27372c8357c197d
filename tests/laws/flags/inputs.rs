//! Unknown keys of configurations, degrees of `inspect`, and files of other planners.

use fastrand::Rng;
use mantile::graph::model::ModelGraph;
use mantile::request::UNCONTROLLED;
use mantile::request::inspect::{InspectReport, InspectRequest, inspect};
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::model::ModelConfig;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use crate::draw;

/// Any degrees end in a graph, in reasons, or in an error.
#[test]
fn inspect_answers_any_degrees() {
    let catalog = Catalog::default();
    let mut random = Rng::with_seed(21);
    let models = [
        "Llama-3.1-8B",
        "Qwen3-30B-A3B",
        "DeepSeek-V2-Lite",
        "gemma-3-27b-it",
        "Nemotron-H-8B",
        "TinyLlama-1.1B",
    ];
    let hardware = ["4xl40s", "8xh100", "2x8xh100", "1xm4-max", "2xmi300x"];
    let (mut graphs, mut refused) = (0, 0);
    for _ in 0..draw::cases(200) {
        let mut degree = || {
            (random.u32(..6) == 0).then(|| [1, 1, 2, 2, 2, 3, 4, 4, 6, 8, 16, 1 << 20][random.usize(..12)])
        };
        let mut degrees = || Degrees {
            tp: degree(),
            pp: degree(),
            dp: degree(),
            cp: degree(),
            dcp: degree(),
            ep: degree(),
            moe_tp: degree(),
            ffn_tp: degree(),
            vocab_tp: degree(),
            replicas: degree(),
            ..Degrees::default()
        };
        let both = degrees();
        let (prefill, decode) = (degrees(), degrees());
        let deployment = match random.u32(..4) {
            0 => Deployment { prefill, decode, ..Deployment::default() },
            _ => Deployment { both, ..Deployment::default() },
        };
        let request = InspectRequest {
            model: draw::name(&mut random, &models).unwrap(),
            hardware: draw::name(&mut random, &hardware),
            deployment: Some(deployment),
            ..InspectRequest::default()
        };
        match inspect(&catalog, &request, &UNCONTROLLED) {
            Ok(InspectReport::Parallel(graph)) => {
                assert_ne!(graph.pools.is_empty(), graph.violations.is_empty(), "{request:?}");
                graphs += usize::from(graph.violations.is_empty());
                refused += usize::from(!graph.violations.is_empty());
            }
            Ok(other) => panic!("{request:?}: {other:?}"),
            Err(fault) => assert!(!fault.fix.is_empty(), "{request:?}: {fault}"),
        }
    }
    println!("{graphs} graphs, {refused} refused");
    assert!(graphs > 5 && refused > 5, "{graphs} graphs, {refused} refused");
}

const PLAIN: &str = r#"{"model_type": "llama", "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 4,
    "num_attention_heads": 4, "intermediate_size": 32, "torch_dtype": "bfloat16"}"#;

/// A key warns, unless one of its words is a feature of a known architecture.
#[test]
fn unknown_keys_warn_unless_they_name_a_feature() {
    let plain = [
        "my",
        "company",
        "tag",
        "release",
        "owner",
        "build",
        "pipeline2",
        "note",
        "ticket",
        "eval",
        "wandb",
        "run",
    ];
    let features = [
        "attention",
        "experts",
        "layers",
        "window",
        "rank",
        "heads",
        "latent",
        "gated",
        "conv",
        "state",
        "router",
    ];
    let mut random = Rng::with_seed(8);
    for case in 0..draw::cases(200) {
        let shapes = case % 2 == 0;
        let mut words: Vec<&str> = (0..random.usize(1..4)).map(|_| *random.choice(&plain).unwrap()).collect();
        if shapes {
            words.insert(random.usize(..=words.len()), random.choice(&features).unwrap());
        }
        let key = words.join(["_", "-", "."][random.usize(..3)]);
        let value = [json!(3), json!("x"), json!([1, 2]), json!({"owner": "x"}), json!(true)]
            [random.usize(..5)]
        .clone();
        let mut config: Value = serde_json::from_str(PLAIN).unwrap();
        config[&key] = value;
        let built = ModelConfig::parse(&config.to_string()).and_then(|config| ModelGraph::build(&config));
        match built {
            Ok(graph) => {
                assert!(!shapes, "{key} is taken");
                assert_eq!(graph.ignored_keys, [key]);
            }
            Err(fault) => assert!(shapes && fault.key == key, "{key}: {fault}"),
        }
    }
}

/// The eight keys of the first files of BLIS, and those of today, act with their source.
#[test]
fn constants_of_blis_act_with_their_source() {
    use mantile::spec::constant::CalibratedConstant as Of;
    let folder = tempfile::tempdir().unwrap();
    let catalog = Catalog::default();
    let mut random = Rng::with_seed(13);
    for case in 0..draw::cases(20) {
        let mut share = || f64::from(random.u32(5..95)) / 100.0;
        let (memory, prefill, decode) = (share(), share(), share());
        let (step, layer, collective) = (random.u32(1..900), random.u32(1..90), random.u32(1..90));
        let [flops, rate] =
            if case % 2 == 0 { ["TFlopsEff", "BwEffTBs"] } else { ["TFlopsPeak", "BwPeakTBs"] };
        let file = json!({"H100": {
            flops: 989.5, rate: 3.35, "BwEffConstant": memory, "TOverheadMicros": step, "perLayerOverhead": layer,
            "mfuPrefill": prefill, "mfuDecode": decode, "allReduceLatency": collective,
        }});
        let path = folder.path().join("hardware_config.json");
        std::fs::write(&path, file.to_string()).unwrap();
        let device = catalog.hardware(path.to_str().unwrap()).unwrap().device;
        let micros = |text: u32| f64::from(text) * 1e-6;
        for (of, value) in [
            (Of::GemmMemory, memory),
            (Of::AttentionMemory, memory),
            (Of::MoeMemory, memory),
            (Of::GemmCompute, prefill),
            (Of::AttentionCompute, prefill),
            (Of::MoeCompute, prefill),
            (Of::HostPerStep, micros(step)),
            (Of::LaunchPerLayer, micros(layer)),
            (Of::KernelLaunch, 0.0),
            (Of::CollectiveLatency, micros(collective)),
        ] {
            let datum = device.constants.datum(of).unwrap();
            assert!((datum.value - value).abs() <= 1e-12, "{of:?}: {} is not {value}", datum.value);
            assert!(datum.source.text.contains("BLIS"), "{:?}", datum.source);
        }
        assert_eq!(device.constants.decode_compute.as_ref().unwrap().value, decode);
    }
}

/// Every id of the form `runtime-version[-cudaN]` is the runtime in that version, wherever a runtime is named.
#[test]
fn ids_with_a_version_are_the_runtime_in_that_version() {
    use mantile::report::catalog::CatalogLine;
    use mantile::request::catalog::{CatalogReport, CatalogRequest, catalog as listed};
    use mantile::request::estimate::{EstimateRequest, estimate};
    use mantile::spec::scenario::Scenario;
    use mantile::store::kind::CatalogKind;
    let catalog = Catalog::default();
    let mut random = Rng::with_seed(29);
    let runtimes = ["vllm", "sglang", "trtllm", "llama.cpp", "hf-transformers"];
    for _ in 0..draw::cases(12) {
        let runtime = draw::name(&mut random, &runtimes).unwrap();
        let version = format!("{}.{}.{}", random.u32(..2), random.u32(..40), random.u32(..9));
        let build = ["", "-cuda12.4", "-cu128"][random.usize(..3)];
        let answer = |runtime: String, version: Option<String>| {
            let scenario = Scenario {
                runtime: Some(runtime),
                runtime_version: version,
                concurrency: Some(4),
                ..Scenario::of("Llama-3.1-8B", "1xl40s")
            };
            estimate(&catalog, &EstimateRequest::of(scenario), &UNCONTROLLED)
        };
        let (id, parts) = (format!("{runtime}-{version}{build}"), (runtime.clone(), Some(version.clone())));
        let (by_id, by_parts) = (answer(id.clone(), None).unwrap(), answer(parts.0, parts.1).unwrap());
        let numbers = |one: &mantile::report::result::EstimateResult| {
            serde_json::to_string(&(&one.candidate.metrics, &one.question)).unwrap()
        };
        assert_eq!(numbers(&by_id), numbers(&by_parts), "{id}");
        assert_eq!(
            (by_id.question.runtime.as_str(), by_id.question.runtime_version.as_deref()),
            (&*runtime, Some(&*version))
        );
        let mean = numbers(&by_id)
            .replace(&format!(",\"runtime_version\":\"{version}\""), "")
            .replace(",\"version_counts_as_mean\":true", "");
        let fitted = !by_id.question.version_counts_as_mean;
        assert!(fitted || runtime == "vllm" || mean == numbers(&answer(runtime, None).unwrap()), "{id}");
        let other = answer(id.clone(), Some("99.0".into())).unwrap_err();
        assert_eq!(other.key, "runtime-version", "{id}: {other}");
    }
    let lines = |kind| match listed(&catalog, &CatalogRequest { kind, name: None }, &UNCONTROLLED).unwrap() {
        CatalogReport::Entries(lines) => lines,
        CatalogReport::Entry(_) => vec![],
    };
    let of = |lines: Vec<CatalogLine>, id: &str| lines.into_iter().find(|line| line.id == id).unwrap().facts;
    let vllm = of(lines(CatalogKind::Runtimes), "vllm");
    assert!(vllm.formats.contains(&"fp8".to_owned()) && vllm.scheduler.is_some());
    assert_eq!(vllm.builds[0].cuda_version.as_deref(), Some("12.4"));
    let models = lines(CatalogKind::Models);
    for line in &models {
        assert!(line.facts.layers.is_some_and(|layers| layers > 0), "{}: {:?}", line.id, line.facts);
        // Checkpoints of state spaces in float32 have neither.
        let known = !line.facts.formats.is_empty() || line.facts.attention.is_some();
        assert!(known || line.id.starts_with("state-spaces--"), "{}", line.id);
    }
    let qwen = of(models, "Qwen--Qwen2-57B-A14B-Instruct");
    assert_eq!(
        (qwen.layers, qwen.attention.as_deref(), qwen.rope_theta),
        (Some(28), Some("full"), Some(1e6))
    );
}
