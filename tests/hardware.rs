//! The figures of `hardware/` against each other and against what was published elsewhere: whatever is odd
//! is listed here with its reason, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mantile::quantity::unit::{humanize, parse};
use mantile::spec::cluster::System;
use mantile::spec::device::Device;
use mantile::spec::format::NumberFormat;
use mantile::spec::link::Link;
use mantile::spec::plausible::{self, Warning};
use mantile::spec::runtime::Runtime;
use mantile::store::catalog::{Catalog, read_entry};
use mantile::store::kind::{Entry, KINDS};
use serde_json::Value;

fn all<T: Entry>() -> Vec<T> {
    let shelf = Catalog::default().entries(T::KIND);
    shelf.values().map(|file| read_entry(file).unwrap_or_else(|fault| panic!("{fault}"))).collect()
}

fn links() -> BTreeMap<String, Link> {
    all::<Link>().into_iter().map(|link| (link.id.clone(), link)).collect()
}

/// Fails unless exactly the `known` doubts are raised, each by `id key`.
fn only_known(doubts: Vec<(String, Warning)>, known: &[(&str, &str)]) {
    let found: BTreeMap<String, String> =
        doubts.into_iter().map(|(id, doubt)| (format!("{id} {}", doubt.key), doubt.why)).collect();
    let known: BTreeSet<&str> = known.iter().map(|(what, _)| *what).collect();
    let new: Vec<String> = found
        .iter()
        .filter(|(what, _)| !known.contains(what.as_str()))
        .map(|(what, why)| format!("{what}: {why}"))
        .collect();
    assert!(new.is_empty(), "doubtful:\n{}", new.join("\n"));
    let stale: Vec<&&str> = known.iter().filter(|what| !found.contains_key(**what)).collect();
    assert!(stale.is_empty(), "no longer doubtful: {stale:?}");
}

#[test]
fn peaks_memories_and_links_of_devices_agree() {
    let links = links();
    let doubts = all::<Device>().into_iter().flat_map(|device| {
        let found = plausible::device(&device, |id| links.get(id).cloned());
        found.into_iter().map(move |doubt| (device.id.clone(), doubt))
    });
    only_known(
        doubts.collect(),
        &[
            ("amd-mi100 peak.fp16", "bf16 is half of fp16, as AMD prints it"),
            ("amd-mi455x peak.fp8", "as AMD prints it: narrow formats gained more than bf16"),
            ("aws-trainium3 peak.fp8", "MXFP8 runs at 3.75 times bf16 as AWS prints it"),
            ("intel-gaudi3 peak.fp16", "the matrix engine is built for bf16; fp16 is a quarter"),
            ("nvidia-b300-sxm peak.fp4", "Blackwell Ultra raised FP4 alone, by half"),
            ("nvidia-b300-sxm peak.int8", "Blackwell Ultra gave INT8 up"),
            ("nvidia-gb300 peak.fp4", "Blackwell Ultra raised FP4 alone, by half"),
            ("nvidia-gb300 peak.int8", "Blackwell Ultra gave INT8 up"),
            ("nvidia-rtx-5060 peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5060-ti-16gb peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5060-ti-8gb peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5070 peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5070-ti peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5080 peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5090 peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-jetson-orin-nano-4gb memory.bandwidth", "4.3 Gb/s a pin within its 10 W"),
            ("nvidia-rtx-5050 peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5050-laptop peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5060-laptop peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5070-laptop peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5070-ti-laptop peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5080-laptop peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5090-d peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5090-d-v2 peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-5090-laptop peak.fp4", "FP32 accumulation halves fp8 on GeForce, not FP4"),
            ("nvidia-rtx-pro-2000-blackwell memory.bandwidth", "18 Gb/s a pin within its 70 W"),
            ("nvidia-rubin-sxm peak.fp8", "as announced: narrow formats gained more than bf16"),
            ("nvidia-rubin-sxm peak.int8", "as announced: INT8 is on its way out"),
        ],
    );
}

#[test]
fn links_run_as_their_generations_do() {
    let doubts = links()
        .into_values()
        .flat_map(|link| plausible::link(&link).into_iter().map(move |doubt| (link.id.clone(), doubt)));
    only_known(doubts.collect(), &[]);
}

#[test]
fn prices_lie_between_their_bounds() {
    let devices = all::<Device>().into_iter().map(|device| (device.id, device.price));
    let systems = all::<System>().into_iter().map(|system| (system.id, system.price));
    let mut bounded = 0;
    for (id, price) in devices.chain(systems) {
        price.check().unwrap_or_else(|fault| panic!("{id}: {fault}"));
        let wide = |low: f64, high: f64| assert!(low < high, "{id}: bounds without room");
        price.purchase_bounds.iter().for_each(|both| wide(both.low.value, both.high.value));
        price.rent_bounds.iter().for_each(|both| wide(both.low.value, both.high.value));
        bounded += usize::from(price.purchase_bounds.is_some()) + usize::from(price.rent_bounds.is_some());
    }
    assert!(bounded >= 14, "{bounded} prices have bounds");
    let wrong = r#"{"rent": {"value": "3 USD/h", "source": "one"}, "rent_bounds": {
        "low": {"value": "4 USD/h", "source": "two"}, "high": {"value": "5 USD/h", "source": "two"}}}"#;
    let wrong: mantile::spec::device::Price = serde_json::from_str(wrong).unwrap();
    assert_eq!(wrong.check().unwrap_err().key, "price.rent_bounds");
    let alone = mantile::spec::device::Price { rent: None, ..wrong };
    assert!(alone.check().is_err(), "bounds of no price");
}

#[test]
fn systems_are_no_faster_than_their_links() {
    let links = links();
    let doubts = all::<System>().into_iter().flat_map(|system| {
        let found = plausible::system(&system, |id| links.get(id).cloned());
        found.into_iter().map(move |doubt| (system.id.clone(), doubt))
    });
    only_known(
        doubts.collect(),
        &[
            ("mac-studio-m3-ultra-x4 tiers[0].bandwidth", "three cables, one to each of the others"),
            ("mac-studio-m4-max-x4 tiers[0].bandwidth", "three cables, one to each of the others"),
        ],
    );
}

#[test]
fn formats_are_as_large_as_their_names_say() {
    let doubts = all::<NumberFormat>().into_iter().flat_map(|format| {
        plausible::format(&format).into_iter().map(move |doubt| (format.id.clone(), doubt))
    });
    only_known(doubts.collect(), &[]);
}

/// What a published file of Llama 3 8B weighs, in GiB, against what the format says.
#[test]
fn bits_per_weight_are_those_of_published_files() {
    const PARAMETERS: f64 = 8_030_261_248.0;
    let mut reader = csv::Reader::from_path(root().join("tests/hardware/gguf_files.csv")).unwrap();
    let mut seen = BTreeSet::new();
    for row in reader.records() {
        let row = row.unwrap();
        let (id, gib, tolerance): (&str, f64, f64) =
            (&row[0], row[1].parse().unwrap(), row[2].parse().unwrap());
        let format: NumberFormat = Catalog::default().load(id).unwrap();
        let predicted = format.bits_per_element.value * PARAMETERS / f64::from(1 << 30);
        let error = predicted / gib - 1.0;
        assert!(
            error.abs() <= tolerance,
            "{id}: {predicted:.3} GiB against {gib} published, off by {error:+.4}"
        );
        seen.insert(id.to_owned());
    }
    let of_files = all::<NumberFormat>().into_iter().map(|format| format.id);
    // Nobody printed the size of a dense file in these.
    const UNPRINTED: [&str; 5] = ["gguf-mxfp4_moe", "gguf-q1_0", "gguf-q2_0", "gguf-tq1_0", "gguf-tq2_0"];
    let missing: Vec<String> = of_files
        .filter(|id| id.starts_with("gguf-") && !UNPRINTED.contains(&id.as_str()) && !seen.contains(id))
        .collect();
    assert!(missing.is_empty(), "no published file for {missing:?}");
}

/// What a figure of five digits may lose.
const ROUNDED: f64 = 1e-4;

/// Text and number of every figure, there and back.
#[test]
fn units_round_trip() {
    let mut figures = 0;
    for kind in KINDS {
        for file in Catalog::default().entries(kind).values() {
            let value: Value = serde_json::from_str(&file.text().unwrap()).unwrap();
            each_figure(&value, &mut |text| {
                let (number, unit) = parse(text).unwrap_or_else(|why| panic!("{}: {text}: {why}", file.file));
                let (again, same) = parse(&humanize(number, unit)).unwrap();
                assert_eq!(unit, same, "{}: {text}", file.file);
                assert!(
                    (again - number).abs() <= ROUNDED * number.abs(),
                    "{}: {text} came back as {again}",
                    file.file
                );
                figures += 1;
            });
        }
    }
    assert!(figures > 3000, "{figures} figures");
}

fn each_figure(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::Object(map) if map.contains_key("source") && !map.contains_key("metric") => {
            if let Some(text) = map.get("value").and_then(Value::as_str) {
                see(text);
            }
            map.values().for_each(|inner| each_figure(inner, see));
        }
        Value::Object(map) => map.values().for_each(|inner| each_figure(inner, see)),
        Value::Array(values) => values.iter().for_each(|inner| each_figure(inner, see)),
        _ => {}
    }
}

#[test]
fn every_runtime_knows_the_generations_it_is_the_default_for() {
    let devices = all::<Device>();
    for runtime in all::<Runtime>() {
        let known = |name: &String| devices.iter().any(|d| d.vendor.name() == *name || d.family == *name);
        for name in runtime.vendors.iter().chain(&runtime.default_for) {
            assert!(known(name), "{} names `{name}`, which no device is of", runtime.id);
        }
        for exclusion in &runtime.excludes {
            exclusion
                .families
                .iter()
                .for_each(|name| assert!(known(name), "{} excludes `{name}`", runtime.id));
            for format in &exclusion.formats {
                let listed = runtime.weight_formats.contains(format) || runtime.kv_formats.contains(format);
                assert!(listed, "{} excludes `{format}`, which it does not list", runtime.id);
            }
        }
        for format in &runtime.weight_formats {
            let covered =
                runtime.constants.iter().any(|c| c.weight_formats.iter().any(|f| f == format || f == "*"));
            assert!(covered, "{} has no constants for {format}", runtime.id);
        }
        for format in
            runtime.host.iter().flat_map(|host| &host.compute_alone).flat_map(|own| &own.weight_formats)
        {
            let listed = runtime.weight_formats.contains(format);
            assert!(listed, "{} computes `{format}` on the host, which it does not list", runtime.id);
        }
    }
}

#[test]
fn rules_of_a_runtime_are_named_once_and_about_what_there_is() {
    let devices = all::<Device>();
    let known = |name: &String| devices.iter().any(|device| device.family == *name);
    let runtimes = all::<Runtime>();
    assert!(runtimes.iter().all(|runtime| !runtime.rules.is_empty()), "a runtime without rules");
    for runtime in runtimes {
        let mut ids: Vec<&str> = runtime.rules.iter().map(|rule| rule.id.as_str()).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{}: {ids:?}", runtime.id);
        for rule in &runtime.rules {
            let of = format!("{} of {}", rule.id, runtime.id);
            assert!(rule.when.devices.iter().all(known), "{of}");
            assert!(!rule.words.is_empty() && !rule.source.is_empty(), "{of}");
            // A rule about both sides holds for every pair: it has no condition on one worker.
            let one_side =
                !rule.when.roles.is_empty() || !rule.when.above_one.is_empty() || rule.when.several_hosts;
            assert!(rule.needs.of_both_sides().is_none() || !one_side, "{of}");
        }
        assert!(runtime.units.iter().all(|unit| unit.ranks > 1 && unit.families.iter().all(known)));
    }
}

/// A measurement above the peak would say that the peak is wrong.
#[test]
fn nothing_measured_is_above_its_peak() {
    for device in all::<Device>() {
        for measured in &device.measured {
            let (value, unit) = parse(measured.value.as_str().unwrap()).unwrap();
            let most = match unit {
                unit if unit == parse("1 FLOP/s").unwrap().1 => {
                    device.peak.values().map(|peak| peak.value).fold(0.0, f64::max)
                }
                unit if unit == parse("1 B/s").unwrap().1 => device.bandwidth().unwrap().value,
                _ => continue,
            };
            assert!(value <= most, "{}: {} measured", device.id, measured.value);
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
