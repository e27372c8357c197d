//! `validate` on sessions of agents and on points that other simulators published: a few rows' facts, each with its
//! source.

use std::process::Command;

use serde_json::Value;

const AGENTIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/published/agentic.csv");
const POINTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/published/points.csv");

fn validated(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.arg("validate").args(args).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn report(table: &str) -> Value {
    serde_json::from_str(&validated(&[table, "--format", "json"])).unwrap()
}

/// The compared row of this id and setting.
fn row<'a>(report: &'a Value, id: &str, setting: &str) -> &'a Value {
    let is_it = |row: &&Value| row["id"] == id && row["setting"].as_str().unwrap_or_default() == setting;
    report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{id} {setting}: {report}"))
}

#[test]
fn sessions_that_a_cache_holds_find_their_prompts_and_the_rest_has_reasons() {
    let found = report(AGENTIC);
    let reasons: Vec<&str> =
        found["unsupported"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect();
    for expected in ["with unknown acceptance rate", "mxfp8", "a trace that the table"] {
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "{expected}: {reasons:?}");
    }
    let one = &row(&found, "ix2268-4", "")["hit_rate"];
    let [measured, predicted] = ["measured", "predicted"].map(|side| one[side].as_f64().unwrap());
    assert!((measured - predicted).abs() < 0.05, "{measured} {predicted}");
    let away = &found["sessions"][0];
    assert!(away["name"].as_str().unwrap().contains(">= 0.9") && away["hit_rate"]["n"].as_u64() >= Some(1));
    let assumed = found["assumed"].as_array().unwrap();
    assert!(assumed.iter().any(|one| one["input"].as_str().unwrap().contains("cc-traces-weka-062126")));
    let shown = validated(&[AGENTIC]);
    for part in ["cache hit rate, in points", "Assumed, where rows do not state it", "ix2268-4"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// Prompts that wait for every fourth step leave decoding requests their time between tokens.
#[test]
fn the_flag_of_a_point_reaches_its_scheduler() {
    let found = report(POINTS);
    let predicted = |interval: u32, figure: &str| {
        let setting = format!("prefill_schedule_interval {interval}");
        row(&found, "kimi-k2.5-b300-128", &setting)[figure]["predicted"].as_f64().unwrap()
    };
    assert!(predicted(4, "tpot_ms") < 0.95 * predicted(1, "tpot_ms"), "{found}");
    let assumed = found["assumed"].as_array().unwrap();
    assert!(
        assumed.iter().any(|one| one["input"].as_str().unwrap().contains("publisher's recipe")),
        "{found}"
    );
    let both = row(&found, "minimax-m3-b300-8", "");
    assert!(
        both["ttft_ms"]["predicted"].as_f64() > Some(0.0)
            && both["tpot_ms"]["predicted"].as_f64() > Some(0.0)
    );
}
