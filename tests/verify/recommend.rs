//! Saved recommendations.

use mantile::report::verify::Verified;
use mantile::request::verify::{RandomSample, rerun};
use mantile::store::catalog::Catalog;
use serde_json::Value;

use super::{Spoiling, caught, more, saved, times};

fn check(value: &Value) -> Verified {
    let catalog = Catalog::default();
    let again = rerun(&catalog, value).unwrap_or_else(|fault| panic!("{fault}"));
    again.check(value, RandomSample { count: 200, seed: 5 }).unwrap_or_else(|fault| panic!("{fault}"))
}

const SMALL: [&str; 7] = [
    "recommend",
    "--model",
    "Qwen3-32B",
    "--only",
    "nvidia-rtx-4090,nvidia-l40s,nvidia-rtx-3060-12gb",
    "--users",
    "3",
];

#[test]
fn recommendations_for_models_and_machines_hold() {
    saved(&[
        "recommend",
        "--model",
        "gpt-oss-20b",
        "--only",
        "nvidia-rtx-3090,apple-m4-max",
        "--budget",
        "6000usd",
    ]);
    saved(&["recommend", "--hardware", "rtx-4090-x2", "--target-tok-s", "30"]);
}

#[test]
fn a_spoilt_recommendation_is_shown_by_what_is_wrong_with_it() {
    let value = saved(&SMALL);
    let builds = value["builds"].as_array().unwrap();
    assert!(builds.len() > 2 && !value["missed"].as_array().unwrap().is_empty());
    let dominated = builds.iter().position(|build| build["standing"] == "dominated").unwrap();
    let front = builds.iter().position(|build| build["standing"] == "front").unwrap();
    let serving = builds[builds.len() - 1].clone();
    let dearer = builds.iter().rfind(|build| build["keeps_quality"] == true).unwrap().clone();
    assert_ne!(dearer, value["minimum"]);
    let spoilings: &[Spoiling] = &[
        ("a price", "builds", &|v| times(v, "/builds/0/money/usd_per_hour", 0.5)),
        ("a month", "builds", &|v| times(v, "/builds/0/money/usd_per_month", 0.5)),
        ("power", "builds", &|v| times(v, "/builds/0/watts", 0.5)),
        ("a pace", "builds", &|v| times(v, "/builds/0/tok_s_per_user", 1.1)),
        ("users", "builds", &|v| more(v, "/builds/0/most_users", 1)),
        ("copies", "builds", &|v| more(v, "/builds/0/copies", 1)),
        ("a metric", "builds", &|v| times(v, "/builds/0/each/metrics/tpot_ms", 0.9)),
        ("replicas", "builds", &|v| more(v, "/builds/0/each/plan/decode/replicas", 7)),
        ("a system", "builds", &|v| v["builds"][0]["system"] = "abacus".into()),
        ("what is dominated", "standing", &|v| v["builds"][dominated]["standing"] = "front".into()),
        ("by what", "standing", &|v| v["builds"][dominated]["because"] = "nobody, bf16".into()),
        ("what is not", "standing", &|v| v["builds"][front]["standing"] = "dominated".into()),
        ("the minimum", "named", &|v| v["minimum"] = dearer.clone()),
        ("a tier of nobody", "named", &|v| {
            v["tiers"] = Value::Array(vec![v["minimum"].clone(), {
                let mut other = v["minimum"].clone();
                other["name"] = "a tier of nobody".into();
                other
            }])
        }),
        ("what serves after all", "sample", &|v| {
            let name = serving["name"].as_str().unwrap();
            let name = name.split_once(" copies of ").map_or(name, |(_, name)| name).to_string();
            let mut miss = v["missed"][0].clone();
            miss["name"] = name.into();
            v["missed"] = Value::Array(vec![miss]);
        }),
        ("a target", "question", &|v| times(v, "/sought/target_tok_s", 0.5)),
        ("users that are sought", "search", &|v| more(v, "/sought/users", 200)),
        ("a build left out", "search", &|v| {
            v["builds"].as_array_mut().unwrap().pop();
        }),
    ];
    caught(&value, spoilings, check);
}
