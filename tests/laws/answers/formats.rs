//! The launch loads the weights in the format that was priced, or there is none; the quality of formats is one order.

use std::collections::BTreeMap;

use std::cmp::Ordering;

use fastrand::Rng;
use mantile::launch::back::read_launch;
use mantile::launch::settings_file::NamedFiles;
use mantile::launch::shell::commands;
use mantile::report::recommend::report::RecommendReport;
use mantile::request::recommend::{RecommendRequest, recommend};
use mantile::request::{UNCONTROLLED, entry};
use mantile::spec::format::NumberFormat;
use mantile::spec::precision::WeightQuality;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use mantile::store::resolved_scenario::ResolvedScenario;
use serde_json::{Value, json};

use super::one;
use crate::draw::{between, cases};

/// Hardware on which most models and formats run.
const HARDWARE: [&str; 4] = ["8xb200-sxm", "8xh200", "8xmi355x", "8xa100"];

/// The weight format that a command loads: that of the checkpoint that it names, or the one that it converts to.
fn loaded(catalog: &Catalog, command: &str, hardware: &str) -> String {
    let known = catalog.launches().unwrap();
    let read =
        read_launch(&known, &commands(command, &NamedFiles::new(), &BTreeMap::new()).0, &NamedFiles::new())
            .unwrap();
    let read = read.scenario(Scenario::default(), None, None).unwrap();
    let model = catalog.model(read.model.as_deref().unwrap()).unwrap();
    if let (Some(made), true) = (&read.weight_format, model.config.quantization.is_none()) {
        return made.clone();
    }
    let scenario = Scenario { weight_format: None, hardware: Some(hardware.to_owned()), ..read };
    let resolved = ResolvedScenario::resolve(catalog, &scenario).unwrap();
    resolved.weight_formats[0].format.id.clone()
}

/// The command of a plan over all devices, and the file's text where the user has the model.
fn launched(catalog: &Catalog, requested: &Value) -> Option<Value> {
    let found =
        (entry("estimate").unwrap().answer)(catalog, &json!({ "scenario": requested }), &UNCONTROLLED)
            .ok()?;
    found["launch"].is_object().then_some(found)
}

#[test]
fn a_launch_loads_the_format_that_was_priced() {
    let catalog = Catalog::default();
    let models: Vec<String> = catalog.entries(CatalogKind::Models).into_keys().collect();
    let formats: Vec<String> = catalog.entries(CatalogKind::Formats).into_keys().collect();
    let mut random = Rng::with_seed(349);
    let (mut launches, mut refused, mut tried) = (0, 0, 0);
    while launches < cases(24) {
        tried += 1;
        assert!(tried < 200 * cases(24), "{launches} launch, {refused} do not");
        let hardware = one(&mut random, &HARDWARE);
        let (model, format) =
            (&models[random.usize(0..models.len())], &formats[random.usize(0..formats.len())]);
        let requested = json!({
            "model": model, "hardware": hardware, "runtime": one(&mut random, &["vllm", "sglang", "trtllm"]),
            "weight_format": format, "concurrency": 1, "deployment": { "both": { "tp": 8 } },
        });
        let Some(found) = launched(&catalog, &requested) else { continue };
        let unsupported = found["launch"]["unsupported"].as_array().unwrap();
        if !unsupported.is_empty() {
            assert_eq!(found["launch"]["files"], json!([]), "{requested}");
            refused += usize::from(unsupported.iter().any(|why| why.to_string().contains(" weights of ")));
            continue;
        }
        let command = found["launch"]["workers"][0]["command"].as_str().unwrap();
        let priced =
            found["candidate"]["weight_format"].as_str().or(found["weight_format"].as_str()).unwrap();
        assert_eq!(loaded(&catalog, command, hardware), priced, "{requested}\n{command}");
        launches += 1;
    }
    assert!(refused > 0, "some formats have no checkpoint");
}

/// DeepSeek-R1 is stored in blocks of fp8, and nobody publishes it in int8.
#[test]
fn a_format_without_a_checkpoint_has_no_launch() {
    let requested = json!({
        "model": "deepseek-ai/DeepSeek-R1", "hardware": "8xh200", "weight_format": "int8", "concurrency": 1,
        "deployment": { "both": { "tp": 8 } },
    });
    let found = launched(&Catalog::default(), &requested).unwrap();
    let unsupported = found["launch"]["unsupported"].to_string();
    assert!(unsupported.contains("int8 weights of deepseek-ai/DeepSeek-R1"), "{unsupported}");
    assert_eq!((&found["launch"]["files"], &found["launch"]["workers"]), (&json!([]), &json!([])));
}

/// Bits per weight of a format.
fn bits(catalog: &Catalog, format: &str) -> f64 {
    catalog.load::<NumberFormat>(format).unwrap().bits_per_element.value * 8.0
}

#[test]
fn quality_is_one_order_over_all_systems() {
    let catalog = Catalog::default();
    let mut random = Rng::with_seed(350);
    let offers = ["nvidia-rtx-4090", "nvidia-l40s", "nvidia-b200-sxm", "nvidia-h100-sxm", "apple-m4-max"];
    let mut lower = 0;
    for case in 0..cases(4) {
        let model = one(&mut random, &["Llama-3.1-8B", "gpt-oss-20b", "Qwen3-30B-A3B"]);
        let named = one(&mut random, &["gguf-q3_k_s", "gguf-q4_k_m", "nvfp4"]).to_owned();
        let weight_format = if case % 3 == 0 { Some("gguf-q3_k_s".to_owned()) } else { Some(named) };
        let weight_format = weight_format.filter(|_| case % 2 == 0);
        let scenario = Scenario { model: Some(model.to_owned()), weight_format, ..Scenario::default() };
        let only = offers.iter().filter(|_| random.u8(0..4) > 0).map(|offer| (*offer).to_owned()).collect();
        let target_tok_s = Some(between(&mut random, 5.0, 80.0));
        let request = RecommendRequest { scenario, only, target_tok_s, ..RecommendRequest::default() };
        let Ok(RecommendReport::Hardware(found)) = recommend(&catalog, &request, &UNCONTROLLED) else {
            continue;
        };
        let own = catalog.model(model).unwrap().config.weight_format().unwrap_or("bf16");
        for build in &found.builds {
            let format = build.each.weight_format.as_str();
            let kept = format == own || bits(&catalog, format) >= 4.0;
            assert_eq!(build.keeps_quality, kept, "{model} in {format} on {}", build.system);
            lower += usize::from(!kept);
        }
        // A first choice of lower quality has no alternative.
        let first = found.first().is_none_or(|first| first.keeps_quality);
        assert!(first || found.builds.iter().all(|build| !build.keeps_quality || build.standing != "front"));
    }
    assert!(lower > 0, "some builds are of lower quality");
}

#[test]
fn qualities_are_a_strict_weak_order() {
    let mut random = Rng::with_seed(351);
    let mut draw = || WeightQuality { is_kept: random.bool(), bits: between(&mut random, 1.0, 16.0).round() };
    let less = |a: &WeightQuality, b: &WeightQuality| a.partial_cmp(b) == Some(Ordering::Less);
    let alike = |a: &WeightQuality, b: &WeightQuality| !less(a, b) && !less(b, a);
    for _ in 0..cases(2_000) {
        let [a, b, c] = [draw(), draw(), draw()];
        assert!(!less(&a, &a), "{a:?}");
        assert!(!less(&a, &b) || !less(&b, &a), "{a:?} {b:?}");
        assert!(!(less(&a, &b) && less(&b, &c)) || less(&a, &c), "{a:?} {b:?} {c:?}");
        assert!(!(alike(&a, &b) && alike(&b, &c)) || alike(&a, &c), "{a:?} {b:?} {c:?}");
        assert!(!(a.is_kept && less(&a, &b)) || b.is_kept, "{a:?} {b:?}");
    }
}
