//! Predictions of loads with several requests at a time: one simulation, before the run and of its record afterwards.

use mantile::request::simulate::{SimulatedTraffic, simulate};
use mantile::request::validate::predict::predict;
use mantile::spec::objective::Metric;
use mantile::spec::run::RunRepeats;
use mantile::validate::summary::Prediction;

use super::*;

/// Llama-3.2-1B by llama.cpp on a GPU, whose closed form does not follow its scheduler.
fn scenario() -> Scenario {
    Scenario {
        model: Some("Llama-3.2-1B".to_owned()),
        hardware: Some("1xrtx-4090".to_owned()),
        runtime: Some("llama.cpp".to_owned()),
        deployment: Some(Deployment { plan: Some("1 x tp1".to_owned()), ..Deployment::default() }),
        ..Scenario::default()
    }
}

/// The run of a load against a server of no particular speed, as if its repeats had agreed; and its estimate.
fn run_of(load: PointLoad) -> (RunRecord, BenchMetrics) {
    run_on(scenario(), load)
}

fn run_on(scenario: Scenario, load: PointLoad) -> (RunRecord, BenchMetrics) {
    let (_, address) = ScriptedServer::start(quick);
    let subject = BenchSubject::of(catalog(), scenario).unwrap();
    let point = LoadPoint { isl: 512, osl: 2, load };
    let found = subject.estimate(&point).unwrap().unwrap();
    let session = BenchSession::begin(settings(address)).unwrap();
    let run = session.measure(&subject, &point, Some(&found), Arc::new(|| {}));
    let closed = found.candidate.metrics.as_ref().unwrap();
    let of = |metric| closed.get(metric, None);
    let [ttft_ms_p50, tpot_ms_p50] = [Metric::Ttft, Metric::Tpot].map(of);
    let closed = BenchMetrics { ttft_ms_p50, tpot_ms_p50, ..BenchMetrics::default() };
    let repeats = run.repeats.map(|repeats| RunRepeats { stable: true, ..repeats });
    (RunRecord { repeats, ..run }, closed)
}

/// The prediction of a record, or the reason why there is none.
fn predicted_again(run: &RunRecord, given: &GivenRunFacts) -> Result<Prediction, String> {
    let table = MeasuredTable { name: "runs.jsonl".to_owned(), csv: serde_json::to_string(run).unwrap() };
    let rows = usable_rows(&[table], given).unwrap().rows;
    assert_eq!(rows.len(), 1);
    predict(catalog(), rows).remove(0).predicted
}

fn is_near(one: Option<f64>, other: Option<f64>, by: f64) {
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!((one / other - 1.0).abs() <= by, "{one} and {other}");
}

#[test]
fn one_client_is_predicted_in_closed_form() {
    let (run, closed) = run_of(PointLoad::Clients(1));
    let made = run.prediction.unwrap();
    is_near(made.ttft_ms, closed.ttft_ms_p50, 1e-12);
    is_near(made.tpot_ms, closed.tpot_ms_p50, 1e-12);
}

/// Clients with equal requests keep in step: none waits in its answer for the prompt of another. The record, the command
/// `simulate` and `validate` say the same.
#[test]
fn several_clients_are_predicted_by_the_simulation_of_their_requests() {
    let (run, closed) = run_of(PointLoad::Clients(3));
    let made = run.prediction.clone().unwrap();
    let question = Scenario { isl: Some(512), osl: Some(2), concurrency: Some(3), ..scenario() };
    let requests = run.requests.clone().unwrap();
    let traffic = SimulatedTraffic {
        requests: Some(requests.sent + requests.warm_up),
        warm_up: Some(requests.warm_up),
        ..SimulatedTraffic::default()
    };
    let question = SimulateRequest { scenario: question, traffic, ..SimulateRequest::default() };
    let report = simulate(catalog(), &question, &UNCONTROLLED).unwrap();
    let median = |metric: &str| report.latencies.iter().find(|row| row.metric == metric).unwrap().p50_ms;
    is_near(made.ttft_ms, median("ttft"), 1e-9);
    is_near(made.tpot_ms, median("tpot"), 1e-9);
    // All prompts of one moment are in one batch, and all answers end together.
    for metric in ["ttft", "tpot", "e2e"] {
        let row = report.latencies.iter().find(|row| row.metric == metric).unwrap();
        is_near(row.p99_ms, row.p50_ms, 1e-9);
    }
    let [low, high] = made.tpot_ms_interval.unwrap();
    assert!((low..high).contains(&made.tpot_ms.unwrap()), "{made:?}");
    let ratio = closed.tpot_ms_p50.unwrap() / made.tpot_ms.unwrap();
    assert!(ratio > 1.2, "the closed form is {ratio} of the simulation");

    let predicted = predicted_again(&run, &GivenRunFacts::default()).unwrap();
    // The server counted the tokens of the prompts.
    is_near(Some(predicted.tpot_ms), made.tpot_ms, 0.01);
    is_near(Some(predicted.ttft_ms), made.ttft_ms, 0.03);
    assert!(predicted.tpot_interval.is_some() && predicted.e2e_ms.is_some(), "{predicted:?}");
}

#[test]
fn a_rate_is_predicted_by_the_simulation_of_its_arrivals() {
    let (run, _) = run_of(PointLoad::Rate { per_s: 40.0, variation: 0.0 });
    let made = run.prediction.unwrap();
    assert!(made.latency_ms.unwrap() >= made.ttft_ms.unwrap() && made.tpot_ms_interval.is_some(), "{made:?}");
}

/// What a record says of its deployment is enough to predict it again: parts on the host are there, and a plan that no row
/// of a table can state is refused.
#[test]
fn a_record_is_predicted_as_the_plan_that_ran() {
    let scenario = |runtime: &str, model: &str, hardware: &str, plan: &str| Scenario {
        model: Some(model.to_owned()),
        hardware: Some(hardware.to_owned()),
        runtime: Some(runtime.to_owned()),
        deployment: Some(Deployment { plan: Some(plan.to_owned()), ..Deployment::default() }),
        ..Scenario::default()
    };
    let at_home = |plan: &str| Scenario {
        host: Some("ryzen-9-7950x,ddr5-6000x2".to_owned()),
        host_memory: Some("96GB".to_owned()),
        ..scenario("llama.cpp", "Qwen3-30B-A3B", "1xrtx-4090", plan)
    };
    for scenario in [
        at_home("1 x tp1, weights gguf-q8_0, kv fp16, host experts 30"),
        at_home("1 x tp1, weights gguf-q8_0, kv fp16, host layers 26"),
        scenario("llama.cpp", "Llama-3.2-1B", "ryzen-9-7950x", "1 x tp1, weights gguf-q4_0, kv fp16"),
        scenario("vllm", "Llama-3.3-70B", "8xh100", "2 x tp4, weights fp8, kv fp8"),
        scenario("sglang", "DeepSeek-V3", "8xh200", "1 x tp1 dp8 ep8, weights fp8, kv bf16"),
    ] {
        let (run, _) = run_on(scenario.clone(), PointLoad::Clients(1));
        let (made, again) =
            (run.prediction.clone().unwrap(), predicted_again(&run, &GivenRunFacts::default()));
        let again = again.unwrap_or_else(|why| panic!("{:?}: {why}", run.plan));
        assert!(again.fits, "{:?}", run.plan);
        // The server counted the tokens of the prompts.
        is_near(Some(again.tpot_ms), made.tpot_ms, 0.01);
        is_near(Some(again.ttft_ms), made.ttft_ms, 0.03);
        // The host of a system is known by the system alone.
        if scenario.host.is_some() {
            let mut of_system = run;
            of_system.env.insert("host".to_owned(), "system".into());
            let why = predicted_again(&of_system, &GivenRunFacts::default()).unwrap_err();
            assert!(why.starts_with("plan: `host ") && why.contains("--hardware local"), "{why}");
            let given = GivenRunFacts { hardware: Some("1xrtx-4090".to_owned()), ..GivenRunFacts::default() };
            assert!(predicted_again(&of_system, &given).is_ok());
        }
    }
    let streamed = "1 x tp1, weights bf16, kv bf16, offload experts";
    let other = Scenario { runtime: Some("vllm".to_owned()), ..at_home(streamed) };
    let (run, _) = run_on(other, PointLoad::Clients(1));
    let why = predicted_again(&run, &GivenRunFacts::default()).unwrap_err();
    assert!(why.starts_with("plan: `") && why.contains("offload experts"), "{why}");
}
