//! The longest request that a server takes: the launch states it, the plan holds it, and what does not start says what
//! would.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{answer, one, plan, problem, whole, with_plan};
use crate::draw::cases;

/// The question with a longest request of `tokens`.
fn taking(requested: &Value, tokens: u64) -> Value {
    let mut requested = requested.clone();
    requested["max_model_len"] = json!(tokens);
    requested
}

/// The estimate of a plan.
fn estimate(requested: &Value, plan: &str) -> Option<Value> {
    answer("estimate", &json!({ "scenario": with_plan(requested, plan) }))
}

/// Tokens of a request of the question.
fn least(requested: &Value) -> u64 {
    requested["isl"].as_u64().unwrap() + requested["osl"].as_u64().unwrap()
}

/// The longest request that a refusal says is held.
fn held(found: &Value) -> Option<u64> {
    // Each pool has its own.
    let reasons = found["violations"].as_array()?.iter().filter_map(Value::as_str);
    let reasons = reasons.filter(|why| why.contains("max-model-len is"));
    reasons.filter_map(|reason| reason.rsplit(' ').next()?.parse().ok()).min()
}

/// The length that each command of an answer states, of one slot.
fn launched(found: &Value) -> Vec<u64> {
    let workers = found["launch"]["workers"].as_array().cloned().unwrap_or_default();
    let of_worker = |worker: &Value| {
        let words = worker["options"].as_array()?.iter().filter_map(|option| option["words"].as_str());
        let words: Vec<&str> = words.collect();
        let after = |flag: &str| words.iter().find_map(|word| word.strip_prefix(flag)?.parse::<u64>().ok());
        let stated = after("--max-model-len ").or(after("--context-length "));
        stated.or_else(|| Some(after("-c ")? / after("-np ")?))
    };
    workers.iter().filter_map(of_worker).collect()
}

#[test]
fn a_plan_starts_with_the_longest_request_that_its_reason_names_and_no_longer() {
    let mut random = Rng::with_seed(345);
    let (mut started, mut refused, mut tried) = (0, 0, 0);
    while started.min(refused) < cases(2) {
        tried += 1;
        assert!(tried < 300 * cases(4), "{started} start, {refused} do not");
        let requested = problem(&mut random);
        let plan = plan(&mut random);
        let Some(bare) = estimate(&requested, &plan).filter(|found| !found["metrics"].is_null()) else {
            continue;
        };
        let tokens = whole(&mut random, least(&requested) as f64, 1e6).max(least(&requested));
        let plan = bare["notation"].as_str().unwrap();
        let found = estimate(&taking(&requested, tokens), plan).unwrap();
        let said = format!("{tokens}: {requested} {plan} {}", found["violations"]);
        if !found["metrics"].is_null() {
            assert!(found["metrics"]["max_context_tokens"].as_f64().unwrap() <= tokens as f64, "{said}");
            assert!(launched(&found).iter().all(|one| *one == tokens), "{said} {:?}", launched(&found));
            started += 1;
            continue;
        }
        assert!(found["launch"].is_null(), "{said}");
        let Some(most) = held(&found) else {
            let of_model = found["violations"].to_string().contains("the model supports at most");
            let in_host = found["violations"].to_string().contains("host memory");
            assert!(of_model || in_host || plan.contains("offload"), "{said}");
            continue;
        };
        assert!(most < tokens, "{said}");
        // A shorter limit is refused for its own reason.
        if most > least(&requested) {
            let longest = estimate(&taking(&requested, most), plan).unwrap();
            assert!(!longest["metrics"].is_null(), "{most} of {said} {}", longest["violations"]);
            let longer = estimate(&taking(&requested, most + 1), plan).unwrap();
            assert!(longer["metrics"].is_null(), "{most} and one of {said}");
            refused += 1;
        }
    }
}

#[test]
fn a_longest_request_below_those_of_the_workload_is_refused_with_both_numbers() {
    let mut random = Rng::with_seed(346);
    for _ in 0..cases(20) {
        let requested = problem(&mut random);
        let needed = least(&requested);
        let tokens = whole(&mut random, 2.0, (needed - 1) as f64);
        let request = json!({ "scenario": taking(&requested, tokens), "max_front_points": 0 });
        let Some(found) = answer("optimize", &request) else { continue };
        assert_eq!(found["status"], "infeasible", "{tokens}: {requested}");
        let why = found["conflict"]["conflicts"][0]["why"].as_str().unwrap_or_default();
        assert!(why.contains(&needed.to_string()) && why.contains(&tokens.to_string()), "{why}");
    }
}

#[test]
fn an_optimum_holds_the_stated_request_or_a_remedy_says_which_it_holds() {
    let mut random = Rng::with_seed(347);
    let (mut held, mut remedies, mut tried) = (0, 0, 0);
    while held.min(remedies) < cases(2) {
        tried += 1;
        assert!(tried < 300 * cases(4), "{held} hold it, {remedies} have a remedy");
        let mut question = problem(&mut random);
        question.as_object_mut().unwrap().retain(|key, _| !["rate", "tpot"].contains(&key.as_str()));
        let of =
            |question: &Value| answer("optimize", &json!({ "scenario": question, "max_front_points": 0 }));
        if !of(&question).is_some_and(|found| found["best"].is_object()) {
            continue;
        }
        let tokens = whole(&mut random, least(&question) as f64, 1e6).max(least(&question));
        let stated = taking(&question, tokens);
        let found = of(&stated).unwrap();
        if let Some(best) = found["best"]["notation"].as_str() {
            assert!(launched(&found).iter().all(|one| *one == tokens), "{tokens}: {question} {best}");
            let again = estimate(&stated, best).unwrap();
            assert!(!again["metrics"].is_null(), "{tokens}: {question} {best}");
            held += 1;
            continue;
        }
        let all = found["conflict"]["remedies"].as_array().unwrap();
        let shorter = all.iter().find(|one| one["set"]["max_model_len"].is_u64());
        let shorter = shorter.unwrap_or_else(|| panic!("{tokens}: {question} {}", found["conflict"]));
        // Where no length alone helps, another condition is changed with it.
        if shorter["set"].as_object().unwrap().len() > 1 {
            continue;
        }
        let most = shorter["set"]["max_model_len"].as_u64().unwrap();
        assert!(
            most < tokens && of(&taking(&question, most)).unwrap()["best"].is_object(),
            "{most}: {question}"
        );
        assert!(of(&taking(&question, most + 1)).unwrap()["best"].is_null(), "{most} and one: {question}");
        remedies += 1;
    }
}

#[test]
fn a_command_is_checked_with_its_own_length_or_that_of_the_model() {
    let mut random = Rng::with_seed(348);
    let (mut started, mut refused) = (0, 0);
    for _ in 0..cases(10) {
        let (model, most) = [("Llama-3.1-8B", 131_072), ("Qwen/Qwen3-32B", 40_960)][random.usize(0..2)];
        let hardware = one(&mut random, &["1xl4", "1xl40s", "1xh100", "2xh100"]);
        let tp: u64 = if hardware.starts_with('2') { 2 } else { 1 };
        let tokens = random.bool().then(|| whole(&mut random, 600.0, f64::from(most)));
        let option = tokens.map_or(String::new(), |tokens| format!(" --max-model-len {tokens}"));
        let requested = json!({ "hardware": hardware, "isl": 500, "osl": 100, "concurrency": 1 });
        let command = format!("vllm serve {model} -tp {tp}{option}");
        let read = answer("estimate", &json!({ "scenario": requested, "command": command })).unwrap();
        let mut of_flags = taking(&requested, tokens.unwrap_or(u64::from(most as u32)));
        of_flags["model"] = json!(model);
        of_flags["runtime"] = json!("vllm");
        // A server keeps nothing in host memory that its command does not put there.
        of_flags["offload"] = json!("never");
        let flags = estimate(&of_flags, &format!("1 x tp{tp}")).unwrap();
        assert_eq!(read["violations"], flags["violations"], "{command} on {hardware}");
        assert_eq!(read["metrics"], flags["metrics"], "{command} on {hardware}");
        match read["metrics"].is_null() {
            true => refused += 1,
            false => started += 1,
        }
        // Left to the server, the length is what fits.
        let open = format!("vllm serve {model} -tp {tp} --max-model-len auto");
        let open = answer("estimate", &json!({ "scenario": requested, "command": open })).unwrap();
        assert!(read["metrics"].is_null() || !open["metrics"].is_null(), "{command} on {hardware}");
    }
    assert!(started > 1 && refused > 1, "{started} start, {refused} do not");
}
