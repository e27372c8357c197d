//! Laws of the figures of a simulation: utilisation, energy and cost are those of the formulas where these hold, records
//! repeat their run, and intervals are those of the prediction.

use mantile::report::result::{EstimateResult, Quantiles};
use mantile::report::simulate::{LatencyWindow, SimulateReport, WindowPercentiles, csv};
use mantile::report::simulated_figures::LatencyIntervals;
use mantile::report::simulated_records::{MOST_RECORDS, RecordFormat, SimulatedRequest};
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::simulate::{SimulateRequest, SimulatedTraffic, simulate, simulated};
use mantile::request::simulated_operation::SimulatedOperation;
use mantile::request::sweep::{SweepRequest, sweep};
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::role::Role;
use mantile::spec::scenario::Scenario;
use mantile::store::streamed_file::StreamedFile;
use mantile::store::traffic_trace::read_trace;
use mantile::traffic::operation::{FaultTimes, OperationSettings};
use mantile::traffic::outcome::RequestOutcome;
use mantile::traffic::run::DeploymentSettings;
use mantile::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource};
use mantile::traffic::step_load::StepLoad;
use mantile::traffic::vllm::VllmSettings;
use serde_json::{Value, json};

use crate::doors::catalog;
use crate::traffic::{AMPLE, pool, records};

fn drawn(arrivals: Arrivals, requests: u64, prompt: u32, output: u32) -> DrawnTraffic {
    DrawnTraffic {
        arrivals,
        requests,
        prompt: LengthDistribution::Fixed(prompt),
        output: LengthDistribution::Fixed(output),
        prefix: 0,
        prefix_groups: 1,
        distinct_prompts: 0,
        sessions: None,
        seed: 5,
    }
}

/// A plan of one device, under a closed loop or a rate.
fn planned(concurrency: Option<u64>, rate: Option<f64>, (isl, osl): (u64, u64)) -> Scenario {
    let both = Degrees { tp: Some(1), ..Degrees::default() };
    Scenario {
        model: Some("Llama-3.1-8B".into()),
        hardware: Some("1xh100".into()),
        runtime: Some("vllm".into()),
        concurrency,
        rate,
        isl: Some(isl),
        osl: Some(osl),
        deployment: Some(Deployment { both, ..Deployment::default() }),
        ..Scenario::default()
    }
}

fn request_of(scenario: &Scenario, requests: u64) -> SimulateRequest {
    let traffic = SimulatedTraffic { requests: Some(requests), ..SimulatedTraffic::default() };
    SimulateRequest { scenario: scenario.clone(), traffic, ..SimulateRequest::default() }
}

fn answer(request: &SimulateRequest) -> SimulateReport {
    simulate(catalog(), request, &UNCONTROLLED).unwrap()
}

fn formulas(scenario: &Scenario) -> EstimateResult {
    estimate(catalog(), &EstimateRequest::of(scenario.clone()), &UNCONTROLLED).unwrap()
}

fn near(found: f64, expected: f64, within: f64, of: &str) {
    assert!((found / expected - 1.0).abs() < within, "{of}: {found} for {expected}");
}

/// Utilisation law: a server is busy for its rate times its service time.
#[test]
fn a_server_is_busy_for_its_load() {
    for load in [0.2, 0.6, 0.9] {
        let traffic = drawn(Arrivals::Rate { per_s: load / 0.04, variation: 1.0 }, 20_000, 10, 4);
        let settings = pool(VllmSettings { max_sequences: 1, ..AMPLE }, 1, 1);
        let (totals, _) = records(&settings, RequestSource::new(traffic), &|_: &[StepLoad]| 0.01);
        let [used] = totals.uses[..] else { panic!("one pool") };
        assert_eq!(used.held_s, totals.replica_seconds);
        near(used.busy_s / used.held_s, load, 0.03, "busy");
        // A request has 10 tokens and then 13 at most, in one block of 16, whenever a step runs.
        let kv = 16.0 / f64::from(AMPLE.blocks * AMPLE.block_tokens);
        near(used.kv_used_s / used.busy_s, kv, 0.2, "KV cache");
    }
}

/// Of replicas and ranks without a request none is busy, and a request that grows holds its mean length.
#[test]
fn one_request_keeps_one_rank_busy_and_its_own_tokens() {
    let traffic = drawn(Arrivals::Clients(1), 20, 1600, 3200);
    for (replicas, ranks) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
        let source = RequestSource::new(traffic.clone());
        let (totals, _) = records(&pool(AMPLE, replicas, ranks), source, &|_: &[StepLoad]| 0.01);
        let [used] = totals.uses[..] else { panic!("one pool") };
        let each = (replicas * ranks) as f64;
        near(used.busy_s / used.held_s, 1.0 / each, 1e-9, "busy");
        let cache = f64::from(AMPLE.blocks * AMPLE.block_tokens);
        near(used.kv_used_s / used.held_s, 3200.0 / cache / each, 0.02, "mean");
        near(used.kv_used_most, 4800.0 / cache / ranks as f64, 0.01, "most");
    }
}

/// A replica that failed is held and not busy while it starts.
#[test]
fn a_replica_that_starts_is_held_and_not_busy() {
    let faults = FaultTimes::At { times_s: vec![5.0], replica: 0 };
    let operation = OperationSettings {
        faults: Some(faults),
        startup_s: 20.0,
        retries: 5,
        ..OperationSettings::default()
    };
    let settings = DeploymentSettings { operation, ..pool(AMPLE, 1, 1) };
    let traffic = drawn(Arrivals::Clients(4), 200, 100, 50);
    let (totals, _) = records(&settings, RequestSource::new(traffic), &|_: &[StepLoad]| 0.01);
    let [used] = totals.uses[..] else { panic!("one pool") };
    near(used.held_s - used.busy_s, 20.0, 0.01, "idle");
}

/// In a closed loop of long outputs, steps have the batch of the formulas: power, energy, bandwidth and cost are theirs.
#[test]
fn a_full_batch_has_the_power_of_the_formulas() {
    let scenario = planned(Some(64), None, (128, 2000));
    let found = answer(&request_of(&scenario, 64 * 12));
    let closed = formulas(&scenario);
    let metrics = closed.candidate.metrics.as_ref().unwrap();
    let energy = found.energy.as_ref().unwrap();
    near(energy.watts, metrics.watts.unwrap(), 0.05, "watts");
    near(energy.joules_per_output_token, 1.0 / metrics.tok_per_joule.unwrap(), 0.05, "joules per token");
    near(energy.wh_per_request, energy.joules_per_output_token * 2000.0 / 3600.0, 1e-9, "Wh per request");
    near(energy.facility_watts.unwrap(), metrics.facility_watts.unwrap(), 0.05, "facility");
    let [used] = &found.utilization[..] else { panic!("one pool") };
    assert_eq!(used.role, Role::Aggregated);
    assert!(used.busy > 0.98 && used.busy <= 1.0, "{}", used.busy);
    assert!(0.0 < used.kv_used_mean && used.kv_used_mean < used.kv_used_max && used.kv_used_max < 1.0);
    let decode = &closed.detail.as_ref().unwrap().phases[1];
    near(used.mbu, decode.mbu, 0.05, "MBU");
    near(used.mfu, decode.mfu, 0.1, "MFU");
    let cost = found.cost.as_ref().unwrap();
    near(cost.usd_per_mtok.unwrap(), metrics.usd_per_mtok.unwrap(), 0.05, "USD");
    near(cost.usd_per_mtok_total.unwrap(), metrics.usd_per_mtok_total.unwrap(), 0.05, "USD in total");
    near(cost.usd.unwrap() / cost.device_hours, metrics.usd_per_hour.unwrap(), 1e-9, "USD per hour");
}

/// Idle devices draw idle power: ten times fewer requests take less power, and more energy for each.
#[test]
fn idle_time_costs_energy() {
    let of = |rate: f64| answer(&request_of(&planned(None, Some(rate), (500, 50)), 300)).energy.unwrap();
    let [few, many] = [0.5, 5.0].map(of);
    assert!(few.watts < many.watts && few.wh_per_request > 2.0 * many.wh_per_request);
    // Almost all of the power is idle power then, which the formulas have at no load.
    let closed = formulas(&planned(None, Some(0.01), (500, 50)));
    let idle = closed.candidate.metrics.unwrap().watts.unwrap();
    assert!(few.watts > 0.99 * idle && few.watts < 1.5 * idle, "{} for {idle}", few.watts);
}

/// Every step, pool by pool, where prompts have workers of their own.
#[test]
fn workers_of_each_role_have_their_own_utilization() {
    let deployment = Deployment {
        prefill: Degrees { tp: Some(1), replicas: Some(1), ..Degrees::default() },
        decode: Degrees { tp: Some(1), replicas: Some(1), ..Degrees::default() },
        ..Deployment::default()
    };
    let scenario = Scenario {
        hardware: Some("2xh100".into()),
        deployment: Some(deployment),
        ..planned(None, Some(6.0), (2000, 200))
    };
    let found = answer(&request_of(&scenario, 400));
    let [prefill, decode] = &found.utilization[..] else { panic!("two pools") };
    assert_eq!([prefill.role, decode.role], [Role::Prefill, Role::Decode]);
    assert!(prefill.mfu > decode.mfu && prefill.mbu < decode.mbu);
    assert!(prefill.busy < 1.0 && decode.busy < 1.0);
}

/// The records of a run as an answer has them, and what else it says.
fn with_records(request: SimulateRequest) -> (Vec<SimulatedRequest>, SimulateReport) {
    let mut found = answer(&SimulateRequest { records: true, ..request });
    let kept = found.records.take().unwrap();
    assert_eq!(kept.left_out, 0);
    (kept.requests, found)
}

fn trace_of(rows: &[SimulatedRequest]) -> String {
    let lines = rows.iter().map(|one| RecordFormat::Csv.line(one));
    std::iter::once(RecordFormat::Csv.head()).chain(lines).collect()
}

/// The same traffic without its load, from its records.
fn again(request: &SimulateRequest, rows: &[SimulatedRequest]) -> Vec<SimulatedRequest> {
    let trace = read_trace(&trace_of(rows)).unwrap();
    let traffic = SimulatedTraffic { trace, ..SimulatedTraffic::default() };
    with_records(SimulateRequest { traffic, ..request.clone() }).0
}

/// The text of a trace is the run of its requests, in a sweep too; next to them it is refused, and so is no trace.
#[test]
fn the_text_of_a_trace_is_its_requests() {
    let text = "arrival,isl,osl\n0,900,20\n0.5,300,40\n0.75,1200,10\n4,700,30\n";
    let named = SimulatedTraffic { trace_text: Some(text.into()), ..SimulatedTraffic::default() };
    let listed = SimulatedTraffic { trace: read_trace(text).unwrap(), ..SimulatedTraffic::default() };
    let scenario = Scenario { isl: None, osl: None, ..planned(None, None, (1, 1)) };
    let request = |traffic: &SimulatedTraffic| SimulateRequest {
        scenario: scenario.clone(),
        traffic: traffic.clone(),
        ..SimulateRequest::default()
    };
    let run = |traffic: &SimulatedTraffic| simulate(catalog(), &request(traffic), &UNCONTROLLED);
    assert_eq!(json!(run(&named).unwrap()), json!(run(&listed).unwrap()));
    assert_eq!(run(&named).unwrap().traffic.requests, 4);
    let swept = |traffic: &SimulatedTraffic| {
        let vary = vec!["tp=1".to_owned()];
        let traffic = Some(traffic.clone());
        let request = SweepRequest { scenario: scenario.clone(), vary, shard: None, traffic };
        json!(sweep(catalog(), &request, &UNCONTROLLED).unwrap().rows)
    };
    assert_eq!(swept(&named), swept(&listed));
    let both = SimulatedTraffic { trace_text: named.trace_text.clone(), ..listed };
    assert_eq!(run(&both).unwrap_err().key, "trace_text");
    let none =
        SimulatedTraffic { trace_text: Some("arrival,isl\n0,many\n".into()), ..SimulatedTraffic::default() };
    assert!(run(&none).is_err());
}

/// The law of records: a run is repeated from its own.
#[test]
fn a_run_is_repeated_from_its_records() {
    let spread = |requests, warm_up| SimulatedTraffic {
        requests: Some(requests),
        warm_up: Some(warm_up),
        isl_variation: Some(0.7),
        osl_variation: Some(0.5),
        ..SimulatedTraffic::default()
    };
    // The first clients send at 0 s, as a trace begins.
    let closed = SimulateRequest {
        scenario: planned(Some(24), None, (700, 120)),
        traffic: spread(300, 0),
        ..SimulateRequest::default()
    };
    let (rows, report) = with_records(closed.clone());
    assert_eq!(rows.len(), 300);
    assert!(rows.iter().enumerate().all(|(at, one)| one.id == at as u64));
    assert_eq!(again(&closed, &rows), rows);
    let mean = rows.iter().map(|one| one.ttft_ms.unwrap()).sum::<f64>() / 300.0;
    near(mean, report.latencies[0].mean_ms.unwrap(), 1e-9, "mean TTFT");
    for one in &rows {
        let parts = [one.queue_ms, one.prefill_ms, one.transfer_ms, one.decode_ms, one.preempted_ms];
        let sum: f64 = parts.iter().map(|part| part.unwrap()).sum();
        near(sum, one.e2e_ms.unwrap(), 1e-9, "parts");
    }
    // Under a rate the first comes later: all times are moved by that.
    let open = SimulateRequest { scenario: planned(None, Some(12.0), (700, 120)), ..closed };
    let (rows, _) = with_records(open.clone());
    let moved = again(&open, &rows);
    assert_eq!(moved.len(), rows.len());
    for (one, other) in rows.iter().zip(&moved) {
        assert_eq!((one.id, one.isl, one.osl), (other.id, other.isl, other.osl));
        assert!((one.arrival - rows[0].arrival - other.arrival).abs() < 1e-9);
        near(other.e2e_ms.unwrap(), one.e2e_ms.unwrap(), 1e-6, "E2E");
    }
    assert_eq!(again(&open, &moved), moved);
}

/// Records are those of the counted requests, and change no figure.
#[test]
fn records_are_of_counted_requests_and_change_nothing() {
    let request = request_of(&planned(None, Some(10.0), (400, 60)), 400);
    let (rows, report) = with_records(request.clone());
    assert_eq!(rows.len() as u64, report.traffic.measured);
    assert_eq!(rows[0].id, 400 - report.traffic.measured);
    assert_eq!(json!(report), json!(answer(&request)));
    let mut streamed = vec![];
    let mut each = |one: &SimulatedRequest| streamed.push(one.clone());
    simulated(catalog(), &request, Some(&mut each), &UNCONTROLLED).unwrap();
    assert_eq!(streamed, rows);
    for one in &rows {
        let line = RecordFormat::JsonLines.line(one);
        assert_eq!(serde_json::from_str::<SimulatedRequest>(&line).unwrap(), *one);
    }
    let long = request_of(&planned(Some(100), None, (4, 1)), MOST_RECORDS as u64 + 150);
    let kept = answer(&SimulateRequest { records: true, ..long }).records.unwrap();
    // One request of each client warms the servers up.
    assert_eq!((kept.requests.len(), kept.left_out), (MOST_RECORDS, 50));
}

/// Windows have every counted request once. Their percentiles are in order, between the least and the greatest of the run,
/// within the width of the buckets of a distribution.
#[test]
fn windows_are_of_counted_requests_and_between_those_of_the_run() {
    let scenario = planned(None, Some(6.0), (1000, 100));
    for (requests, warm_up, variation) in [(20, 0, 1.0), (400, 20, 4.0), (3000, 150, 0.0)] {
        let (warm_up, arrival_variation) = (Some(warm_up), Some(variation));
        let plain = request_of(&scenario, requests);
        let traffic = SimulatedTraffic { warm_up, arrival_variation, ..plain.traffic.clone() };
        let (rows, report) = with_records(SimulateRequest { traffic, ..plain });
        let all = &report.windows;
        assert!((1..=60).contains(&all.len()), "{} windows", all.len());
        assert_eq!(all.iter().map(|one| one.requests).sum::<u64>(), report.traffic.measured);
        assert!(all.windows(2).all(|two| two[0].to_s == two[1].from_s), "neighbours");
        let width = all[0].to_s - all[0].from_s;
        assert!(all.iter().all(|one| one.to_s - one.from_s == width), "equal");
        let within = |times: Vec<f64>, of: &dyn Fn(&LatencyWindow) -> Option<WindowPercentiles>| {
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            let most = times.iter().copied().fold(0.0, f64::max);
            for one in all.iter().filter_map(of) {
                let in_order = [least / 1.001, one.p50_ms, one.p90_ms, one.p99_ms, most * 1.001];
                assert!(in_order.is_sorted(), "{in_order:?}");
            }
        };
        within(rows.iter().filter_map(|one| one.ttft_ms).collect(), &|one| one.ttft.clone());
        within(rows.iter().filter_map(|one| one.tpot_ms).collect(), &|one| one.tpot.clone());
        assert!(all.iter().all(|one| (one.requests == 0) == one.ttft.is_none()), "none of nothing");
    }
}

/// Requests without an answer have a record that says so, and no latency.
#[test]
fn requests_without_an_answer_have_records_too() {
    let operation = SimulatedOperation {
        client_timeout: Some(1.0),
        fault_at: vec![10.0],
        startup_time: Some(5.0),
        retries: Some(0),
        ..SimulatedOperation::default()
    };
    let mut request = request_of(&planned(None, Some(20.0), (800, 100)), 600);
    request.traffic.warm_up = Some(0);
    let (rows, report) = with_records(SimulateRequest { operation, ..request });
    let of = report.operation.as_ref().unwrap();
    let count = |outcome| rows.iter().filter(|one| one.outcome == outcome).count() as u64;
    assert!(of.aborted > 0 && of.faults.as_ref().unwrap().failed > 0);
    assert_eq!(count(RequestOutcome::GivenUp), of.aborted);
    assert_eq!(count(RequestOutcome::Failed), of.faults.as_ref().unwrap().failed);
    assert_eq!(count(RequestOutcome::Answered), report.traffic.measured);
    assert_eq!(rows.len(), 600);
    assert!(rows.windows(2).all(|pair| pair[0].id + 1 == pair[1].id));
    for one in &rows {
        assert_eq!(one.e2e_ms.is_some(), one.outcome == RequestOutcome::Answered);
    }
    // More than a cache holds is refused at once.
    let trace = read_trace("arrival,isl,osl\n0,900,10\n1,100000000,10\n2,900,10\n").unwrap();
    let traffic = SimulatedTraffic { trace, ..SimulatedTraffic::default() };
    let scenario = planned(Some(8), None, (900, 10));
    let (rows, _) = with_records(SimulateRequest { scenario, traffic, ..SimulateRequest::default() });
    let outcomes: Vec<&str> = rows.iter().map(|one| one.outcome.name()).collect();
    assert_eq!(outcomes, ["answered", "refused", "answered"]);
}

fn with_draws(request: &SimulateRequest, draws: u64) -> SimulateReport {
    answer(&SimulateRequest { draws: Some(draws), ..request.clone() })
}

/// Its mean and its percentiles, with those of the run itself.
fn ends<'a>(
    report: &'a SimulateReport,
    row: &'a LatencyIntervals,
) -> impl Iterator<Item = (f64, Quantiles)> + 'a {
    let plain = report.latencies.iter().find(|one| one.metric == row.metric).unwrap();
    let both = plain.values().into_iter().zip(row.values());
    both.map(|(plain, drawn)| (plain.unwrap(), drawn.unwrap()))
}

#[test]
fn draws_change_no_other_figure_and_their_intervals_contain_it() {
    let request = request_of(&planned(None, Some(8.0), (800, 80)), 300);
    let plain = answer(&request);
    assert_eq!(json!(with_draws(&request, 0)), json!(plain));
    let mut drawn = with_draws(&request, 40);
    let intervals = drawn.intervals.take().unwrap();
    assert_eq!(json!(drawn), json!(plain));
    assert_eq!((intervals.draws, intervals.latencies.len()), (40, 5));
    // As rows, three values for one.
    let width = |report: &SimulateReport| csv(report).lines().next().unwrap().split(',').count();
    let whole = SimulateReport { intervals: Some(intervals.clone()), ..plain.clone() };
    assert_eq!([&plain, &whole].map(width), [6, 16]);
    assert!(csv(&whole).lines().all(|line| line.split(',').count() == 16));
    for row in &intervals.latencies {
        for (value, Quantiles { p10, p50, p90 }) in ends(&plain, row) {
            assert!(p10 < value && value < p90 && p10 < p50 && p50 < p90, "{}: {value}", row.metric);
        }
    }
    // At a rate that all draws carry, throughput follows the traffic.
    near(intervals.output_tok_s.p50, plain.output_tok_s, 0.02, "throughput");
    assert_eq!(json!(with_draws(&request, 40).intervals), json!(Some(intervals)));
}

/// One client at a time: TTFT is a prompt's step, TPOT that of decoding.
#[test]
fn intervals_at_low_load_are_those_of_the_formulas() {
    let scenario = planned(Some(1), None, (1000, 60));
    let closed = formulas(&scenario).candidate.intervals.unwrap();
    let report = with_draws(&request_of(&scenario, 6), 600);
    let found = report.intervals.as_ref().unwrap();
    assert_eq!(found.near, closed.near);
    for (metric, formula) in [("ttft", closed.ttft_ms), ("tpot", closed.tpot_ms)] {
        let row = found.latencies.iter().find(|row| row.metric == metric).unwrap();
        let (plain, drawn) = ends(&report, row).next().unwrap();
        for (end, expected) in [(drawn.p10, formula.p10), (drawn.p50, formula.p50), (drawn.p90, formula.p90)]
        {
            near(end / plain, expected / formula.p50, 0.12, metric);
        }
    }
}

/// Of one, two and three draws, the quantiles are the draws themselves.
#[test]
fn further_draws_leave_the_first_ones_as_they_are() {
    let request = request_of(&planned(Some(4), None, (300, 20)), 40);
    let of = |draws| {
        let quantiles = with_draws(&request, draws).intervals.unwrap().latencies[0].mean_ms.unwrap();
        let mut values = vec![quantiles.p10, quantiles.p50, quantiles.p90];
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    };
    let [one, two, three] = [1, 2, 3].map(of);
    assert_eq!([one.len(), two.len(), three.len()], [1, 2, 3]);
    assert!(one.iter().all(|value| two.contains(value)));
    assert!(two.iter().all(|value| three.contains(value)));
    let fault = simulate(catalog(), &SimulateRequest { draws: Some(1001), ..request }, &UNCONTROLLED);
    assert_eq!(fault.unwrap_err().key, "draws");
}

/// A file that is not finished leaves nothing, and what had its name as it was.
#[test]
fn an_unfinished_file_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.csv");
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    let mut file = StreamedFile::begun(&path).unwrap();
    file.write("id\n");
    assert!(!path.exists());
    drop(file);
    assert_eq!(names(), 0);
    let mut file = StreamedFile::begun(&path).unwrap();
    (0..3000).for_each(|number| file.write(&format!("{number}\n")));
    file.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!((text.lines().count(), names()), (3000, 1));
    drop(StreamedFile::begun(&path).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let fault = StreamedFile::begun(&folder.path().join("none/requests.csv")).unwrap_err();
    assert_eq!(fault.found, "no such file or folder");
}

/// Answers that were saved before these figures are still read.
#[test]
fn earlier_answers_are_read() {
    let mut saved = json!(answer(&request_of(&planned(Some(2), None, (100, 10)), 20)));
    let Value::Object(fields) = &mut saved else { panic!("an object") };
    for name in ["utilization", "energy", "cost"] {
        assert!(fields.shift_remove(name).is_some(), "{name}");
    }
    let read: SimulateReport = serde_json::from_value(saved).unwrap();
    assert!(read.utilization.is_empty() && read.energy.is_none() && read.cost.is_none());
}
