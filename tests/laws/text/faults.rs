//! Faults of requests say what is wrong in words of the question, not of the program.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use mantile::report::format::Format;
use mantile::request::wording::{Door, keys_of};
use mantile::request::{REQUESTS, RequestControl, UNCONTROLLED};
use mantile::search::run::Control;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use crate::draw::cases;
use crate::requests::{LINES, request};

/// Words of the reader of JSON that are no words of a question.
pub const INTERNAL: [&str; 22] = [
    "invalid type",
    "invalid value:",
    "invalid length",
    "did not match any variant",
    "untagged",
    "unknown field",
    "unknown variant",
    "missing field",
    "duplicate field",
    "expected struct",
    "as struct",
    "of struct",
    "expected enum",
    "tuple variant",
    "newtype",
    "u64",
    "usize",
    "f64",
    "i64",
    "a sequence",
    "a map",
    "string or map",
];

/// Values of every kind.
fn any(random: &mut Rng) -> Value {
    let values = [
        Value::Null,
        json!(true),
        json!(-5),
        json!(5),
        json!(0.5),
        json!(1e20),
        json!("x"),
        json!(""),
        json!([]),
        json!([1, "a"]),
        json!({}),
        json!({"x": 1}),
        json!({"value": [], "source": 3}),
        json!([[]]),
        json!("all"),
    ];
    random.choice(&values).unwrap().clone()
}

/// A part of `value`, itself included.
fn part<'a>(value: &'a mut Value, random: &mut Rng) -> &'a mut Value {
    let parts = match &*value {
        Value::Array(items) => items.len(),
        Value::Object(items) => items.len(),
        _ => 0,
    };
    if parts == 0 || random.u32(..6) == 0 {
        return value;
    }
    let at = random.usize(..parts);
    match value {
        Value::Array(items) => part(&mut items[at], random),
        Value::Object(items) => part(items.values_mut().nth(at).unwrap(), random),
        other => other,
    }
}

/// The request with a value of another type, a key too many, too few, or misspelt.
pub fn spoilt(request: &Value, properties: &[String], random: &mut Rng) -> Value {
    let mut request = request.clone();
    let place = part(&mut request, random);
    match (random.u32(..5), place) {
        (0, Value::Object(keys)) => {
            let name = random.choice(properties).cloned().unwrap_or_default();
            keys.insert(name, any(random));
        }
        (1, Value::Object(keys)) if !keys.is_empty() => {
            let key = keys.keys().nth(random.usize(..keys.len())).unwrap().clone();
            keys.remove(&key);
        }
        (2, Value::Object(keys)) => {
            keys.insert("isll".to_owned(), any(random));
        }
        (_, place) => *place = any(random),
    }
    request
}

/// Nothing is searched: faults are found before.
pub fn stopped() -> RequestControl<'static> {
    RequestControl { search: Control { progress: &|_, _| {}, stop: &|| true }, stopped_by: &|| None }
}

/// 11. No fault of a spoilt request names types of the program.
#[test]
fn faults_of_spoilt_requests_are_in_plain_words() {
    let mut random = Rng::with_seed(11);
    let catalog = Catalog::default().closed(false);
    let mut bodies: Vec<(&str, Value)> = LINES.iter().map(|line| (line[0], request(line))).collect();
    bodies.push(("permalink", json!({"request": "optimize", "scenario": {"model": "Qwen3-0.6B"}})));
    bodies.push(("permalink", json!({"link": "m1.x"})));
    bodies.push(("schema", json!({"name": "device"})));
    for (name, body) in &mut bodies {
        // What is still valid ends at a name that nothing has.
        for key in ["model", "left_out"] {
            let place = if key == "model" { body.get_mut("scenario") } else { Some(&mut *body) };
            if let Some(place) = place.and_then(|place| place.get_mut(key)) {
                *place = json!("none");
            }
        }
        assert!(*name != "validate" || body["left_out"] == "none");
    }
    let device: Value =
        serde_json::from_str(include_str!("../../../hardware/devices/nvidia-l40s.json")).unwrap();
    let with_files = json!({
        "scenario": {"model": "Qwen3-0.6B", "hardware": "1xl40s"}, "files": {"hardware/devices/nvidia-l40s": device},
    });
    bodies.push(("estimate", with_files));
    let keys: BTreeMap<&str, Vec<String>> = REQUESTS
        .iter()
        .filter(|entry| bodies.iter().any(|(name, _)| *name == entry.name))
        .map(|entry| (entry.name, keys_of(&Value::from((entry.request)())).into_iter().collect()))
        .collect();
    let (mut faults, mut of_the_command_line) = (0, BTreeSet::new());
    for _ in 0..cases(300) {
        let (name, body) = random.choice(&bodies).unwrap();
        let entry = REQUESTS.iter().find(|entry| entry.name == *name).unwrap();
        let body = spoilt(body, &keys[name], &mut random);
        let Err(fault) = (entry.answer)(&catalog, &body, &stopped()) else { continue };
        faults += 1;
        let text = fault.to_string();
        for word in INTERNAL {
            assert!(!text.contains(word), "`{word}` in the answer to {name} {body}:\n{text}");
        }
        // Nor a flag of the command line: who asks in JSON sets keys.
        // What was found is quoted, but no spoilt value holds a flag.
        for said in [&fault.key, &fault.found, &fault.expected, &fault.fix] {
            let flag = said.split([' ', '`', '(']).any(|word| word.starts_with("--") && word.len() > 2);
            if flag || said.contains("mantile-opt") {
                of_the_command_line.insert(text.clone());
            }
        }
    }
    assert!(faults > 0);
    assert!(of_the_command_line.is_empty(), "{of_the_command_line:#?}");
}

/// The fix for what is no request, and for what is no answer, names a schema that there is, at every door.
#[test]
fn faults_name_schemas_that_exist() {
    let schema = REQUESTS.iter().find(|entry| entry.name == "schema").unwrap();
    let catalog = Catalog::default().closed(false);
    for (door, before) in [(Door::Json, "request `schema "), (Door::Python, "`mantile.schema(\"")] {
        for entry in REQUESTS {
            let request = (entry.answer_at)(door, &catalog, &json!(3), &stopped()).unwrap_err();
            let answer = entry.formatted_at(door, &catalog, &json!(3), Format::Csv).err();
            for fault in std::iter::once(request).chain(answer) {
                let (_, named) = fault.fix.split_once(before).unwrap_or_else(|| panic!("{fault}"));
                let name = named.split(['"', '`']).next().unwrap();
                (schema.answer)(&catalog, &json!({"name": name}), &UNCONTROLLED).unwrap();
            }
        }
    }
}

/// 15. An objective with any list of metrics is answered, or refused with the key: no list is too long for the search.
#[test]
fn objectives_with_any_metrics_are_answered_or_refused() {
    let mut random = Rng::with_seed(15);
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..cases(40) {
        let metrics = ["tpot", "ttft", "devices", "e2e", "output_tok_s"];
        let longest = *random.choice(&[3, 6, 40]).unwrap();
        let mut drawn =
            || (0..random.usize(1..longest)).map(|_| *random.choice(&metrics).unwrap()).collect::<Vec<_>>();
        let (objectives, pareto) = (drawn(), drawn());
        let objectives: Vec<Value> =
            objectives.iter().map(|metric| json!({"metric": metric, "direction": "minimize"})).collect();
        let objective = json!({"id": "mine", "description": "d", "workload": "chat", "optimize": objectives, "pareto": pareto});
        let body = json!({
            "scenario": {"model": "Qwen3-0.6B", "hardware": "1xl40s", "objective": "mine"},
            "files": {"objectives/mine": objective},
        });
        let entry = REQUESTS.iter().find(|entry| entry.name == "optimize").unwrap();
        match (entry.answer)(&Catalog::default().closed(false), &body, &UNCONTROLLED) {
            Ok(_) => answered += 1,
            Err(fault) => {
                assert!(fault.expected.contains("each metric once"), "{fault}");
                refused += 1;
            }
        }
    }
    assert!(answered > 0 && refused > 0, "{answered} answered, {refused} refused");
}
