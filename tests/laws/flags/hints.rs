//! Corrections are made of the user's own value, and from the set that fits.

use fastrand::Rng;
use mantile::quantity::unit::{COUNT, parse};
use mantile::spec::figure::{ByteRate, Bytes, DollarRate, Dollars, Seconds, Watts, corrected, read};
use mantile::spec::limits::{CONTEXT, ISL, RATE, number, suffixed, whole};
use mantile::spec::scenario::Scenario;
use mantile::spec::vary::VariedKey;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;

use crate::draw;

/// The last text in backticks.
fn quoted(text: &str) -> &str {
    text.rsplit('`').nth(1).unwrap_or_default()
}

#[test]
fn a_suggested_figure_is_the_users_number_and_is_read() {
    let mut random = Rng::with_seed(3);
    let units = [
        "", "sec", "seconds", "SEC", "msec", "millis", "min", "hours", "gb", "GIB", "gbps", "GB/sec", "tb/s",
        "watts", "dollars", "usd/hr", "usd/hour", "parsec", "x", "$",
    ];
    for _ in 0..draw::cases(400) {
        let number = random.u32(1..999);
        let text = format!("{number}{}{}", ["", " "][random.usize(..2)], random.choice(&units).unwrap());
        let shown = [
            read::<Seconds>(&text).err().map(|_| corrected::<Seconds>(&text)),
            read::<Bytes>(&text).err().map(|_| corrected::<Bytes>(&text)),
            read::<ByteRate>(&text).err().map(|_| corrected::<ByteRate>(&text)),
            read::<Watts>(&text).err().map(|_| corrected::<Watts>(&text)),
            read::<Dollars>(&text).err().map(|_| corrected::<Dollars>(&text)),
            read::<DollarRate>(&text).err().map(|_| corrected::<DollarRate>(&text)),
        ];
        for shown in shown.iter().flatten() {
            let own = shown.starts_with(&number.to_string());
            assert!(own, "{text}: {shown}");
            assert!(parse(shown).is_ok_and(|(_, unit)| unit != COUNT), "{text}: {shown}");
        }
    }
    let shown = |text: &str| Scenario { ttft: Some(text.into()), ..Scenario::default() };
    let fix = shown("2sec").limits(Default::default()).unwrap_err().fix;
    assert!(fix.contains("`2 s`"), "{fix}");
    assert_eq!(quoted(&read::<Bytes>("64").unwrap_err()), "64 GiB");
}

#[test]
fn a_suffix_means_the_same_in_every_flag() {
    for (text, value) in [
        ("15k", 15e3),
        ("15K", 15e3),
        ("2m", 2e6),
        ("2M", 2e6),
        ("16Ki", 16384.0),
        ("16ki", 16384.0),
        ("1_000", 1e3),
        ("1.5k", 1500.0),
    ] {
        assert_eq!(suffixed(text), Some(value), "{text}");
        assert_eq!(whole(&ISL)(text), Ok(value as u64), "{text}");
        assert_eq!(whole(&CONTEXT)(text), Ok(value as u64), "{text}");
        assert_eq!(number(&RATE)(text), Ok(value), "{text}");
        assert_eq!(
            mantile::request::recommend::requirements::dollars(&mantile::spec::limits::BUDGET, text),
            Ok(value)
        );
        let varied = VariedKey::parse(&format!("isl={text}")).unwrap();
        assert_eq!(varied.values, [serde_json::json!(value as u64)], "{text}");
    }
    for wrong in ["k", "1.5", "-1k", "1kk", "1e3", "", "1.0005k"] {
        assert!(whole(&ISL)(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn names_are_suggested_from_those_that_run_here() {
    let catalog = Catalog::default();
    let fault = |scenario: Scenario| ResolvedScenario::resolve(&catalog, &scenario).unwrap_err();
    let names = ["ollama", "int4", "bf", "fp4", "vlm", "q4", "trt", "mlx-lm", "nosuch", "kv8"];
    let mut random = Rng::with_seed(5);
    for _ in 0..draw::cases(60) {
        let hardware = ["1xl40s", "1xm4-max", "1xmi300x", "8xh100", "1xrtx-4090"][random.usize(..5)];
        let scenario = Scenario::of("Llama-3.1-8B", hardware);
        let name = (*random.choice(&names).unwrap()).to_owned();
        for faulty in [
            Scenario { runtime: Some(name.clone()), ..scenario.clone() },
            Scenario { kv_format: Some(name.clone()), ..scenario.clone() },
            Scenario { weight_format: Some(name.clone()), ..scenario.clone() },
        ] {
            let Err(fault) = ResolvedScenario::resolve(&catalog, &faulty) else { continue };
            if !fault.found.starts_with("unknown name") || !fault.fix.starts_with("did you mean") {
                continue;
            }
            for suggested in fault.fix.split('`').skip(1).step_by(2) {
                let with = match fault.key.as_str() {
                    "runtime" => Scenario { runtime: Some(suggested.into()), ..scenario.clone() },
                    "kv-format" => Scenario { kv_format: Some(suggested.into()), ..scenario.clone() },
                    _ => Scenario { weight_format: Some(suggested.into()), ..scenario.clone() },
                };
                let again = ResolvedScenario::resolve(&catalog, &with);
                assert!(again.is_ok(), "{hardware} {name}: {suggested}: {}", again.err().unwrap());
            }
        }
    }
    let ollama = fault(Scenario { runtime: Some("ollama".into()), ..Scenario::of("Llama-3.1-8B", "1xl40s") });
    assert!(ollama.fix.contains("llama.cpp") && ollama.expected.contains("vllm"), "{ollama}");
    let int4 = fault(Scenario { kv_format: Some("int4".into()), ..Scenario::of("Llama-3.1-8B", "1xl40s") });
    assert!(
        int4.key == "kv-format" && int4.expected.contains("fp8") && !int4.to_string().contains("awq"),
        "{int4}"
    );
}
