//! `validate` on runs under a request rate, which the simulation of traffic predicts.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use mantile::calibrate::fit::UNCHANGED;
use mantile::request::validate::predict::{ProfileFit, ready};
use mantile::request::validate::table::rows;
use mantile::spec::constant::CalibratedConstant;
use mantile::store::catalog::Catalog;
use mantile::store::kind::measured_tables;
use serde_json::Value;

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(args).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).output().unwrap()
}

const HEADER: &str = "id,model,precision,hardware,devices,runtime,version,mode,isl,osl,rate,arrival,num_prompts,\
                      ttft_mean_ms,ttft_p99_ms,tpot_mean_ms,e2e_mean_ms,distinct_prompts,max_num_seqs";

/// The report on a table, and the predicted rows by column.
fn validated(folder: &Path, rows: &[&str]) -> (Value, Vec<Box<dyn Fn(&str) -> f64>>) {
    let (table, out) = (folder.join("table.csv"), folder.join("rows.csv"));
    fs::write(&table, format!("{HEADER}\n{}\n", rows.join("\n"))).unwrap();
    let (table, out) = (table.to_str().unwrap(), out.to_str().unwrap());
    let output = run(&["validate", table, "--format", "json", "--rows", out]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut reader = csv::Reader::from_path(out).unwrap();
    let header = reader.headers().unwrap().clone();
    let cells = |row: csv::StringRecord| {
        let header = header.clone();
        Box::new(move |name: &str| {
            let at = header.iter().position(|column| column == name).unwrap();
            row[at].parse().unwrap_or(f64::NAN)
        }) as Box<dyn Fn(&str) -> f64>
    };
    let rows = reader.records().map(Result::unwrap).map(cells).collect();
    (serde_json::from_slice(&output.stdout).unwrap(), rows)
}

/// Below and above the rate that one device serves.
#[test]
fn a_rate_is_predicted_whether_or_not_it_can_be_served() {
    let folder = tempfile::tempdir().unwrap();
    let row = |id: &str, rate: &str, rest: &str| {
        format!(
            "{id},Qwen/Qwen3-14B,bf16,nvidia-h100-sxm,1,vllm,0.23.0,agg,986,128,{rate},Poisson,200,{rest}"
        )
    };
    let rows = [row("calm", "6", "80,200,15.2,2010,,256"), row("flood", "500", "9000,20000,60,17000,,256")];
    let (found, rows) = validated(folder.path(), &rows.each_ref().map(String::as_str));
    assert_eq!(
        (found["overall"]["n"].as_u64(), found["overall"]["unsupported"].as_u64()),
        (Some(1), Some(0))
    );
    assert_eq!(found["above_capacity"]["n"], 1);
    for metric in ["ttft", "tpot", "e2e", "ttft_p99"] {
        assert_eq!(found["overall"][metric]["n"], 1, "{metric}");
        assert_eq!(
            found["overall"][metric]["coverage_80"],
            Value::Null,
            "intervals are those of closed loops"
        );
    }
    for row in &rows {
        let [ttft, p99, tpot, e2e] =
            ["ttft_ms", "ttft_p99_ms", "tpot_ms", "e2e_ms"].map(|figure| row(&format!("{figure}_predicted")));
        assert!(ttft > 0.0 && p99 > ttft && tpot > 0.0, "{ttft} {p99} {tpot}");
        assert!((e2e / (ttft + 127.0 * tpot) - 1.0).abs() < 1e-4, "all have 128 tokens: {e2e} {ttft} {tpot}");
    }
    let ttft = |row: usize| rows[row]("ttft_ms_predicted");
    assert!(ttft(0) < 1000.0 && ttft(1) > 10.0 * ttft(0), "{} {}", ttft(0), ttft(1));
    let table = folder.path().join("table.csv");
    let shown = run(&["validate", table.to_str().unwrap()]).stdout;
    assert!(String::from_utf8_lossy(&shown).contains("under a rate"));
}

#[test]
fn prompts_that_come_again_are_in_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let row = |id: &str, distinct: &str| {
        format!(
            "{id},Qwen/Qwen3-14B,bf16,nvidia-h100-sxm,1,vllm,0.23.0,agg,4000,16,2,constant,100,90,200,15,300,{distinct},"
        )
    };
    let rows = [row("cold", ""), row("again", "5")];
    let (_, rows) = validated(folder.path(), &rows.each_ref().map(String::as_str));
    let ttft = |row: usize| rows[row]("ttft_ms_predicted");
    assert!(ttft(1) < 0.5 * ttft(0), "{} {}", ttft(0), ttft(1));
}

#[test]
fn a_row_that_is_not_simulated_has_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        "a,Qwen/Qwen3-14B,bf16,nvidia-h100-sxm,1,hf-transformers,,agg,986,128,6,Poisson,200,80,200,15.2,2010,,",
        "b,Qwen/Qwen3-14B,bf16,nvidia-h100-sxm,1,vllm,,agg,986,128,,Poisson,200,80,200,15.2,2010,,",
        "c,Qwen/Qwen3-14B,bf16,nvidia-h100-sxm,1,vllm,,agg,90000000,128,1,Poisson,20,80,200,15.2,2010,,",
    ];
    let (found, _) = validated(folder.path(), &rows);
    assert_eq!(found["overall"]["n"], 0);
    let reasons: Vec<&str> =
        found["unsupported"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect();
    for expected in
        ["the scheduler of this runtime is not simulated", "concurrency: missing", "the KV cache holds no"]
    {
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "{expected}: {reasons:?}");
    }
}

/// A fit expands the latencies of a simulated run in the constants: at the constants of the simulation these are the
/// latencies of its records, and a little away those of another simulation.
#[test]
fn a_fit_sees_the_latencies_of_the_runs_that_it_simulates() {
    let catalog = Catalog::default();
    let measured: Vec<_> = measured_tables().flat_map(|table| rows(table).unwrap()).collect();
    let measured: Vec<_> = measured.into_iter().filter(|row| row.traffic.is_some()).step_by(3).collect();
    let mut compared = 0;
    for ready in ready(&catalog, &measured, ProfileFit::Shipped) {
        let ready = ready.unwrap();
        let simulated = ready.simulated.unwrap();
        let machine = ready.problem.formats[0].plain();
        let run = simulated.of_one_replica(true).unwrap();
        let found = run.expand(machine, &UNCHANGED).unwrap();
        let near =
            |one: f64, other: f64, part: f64| assert!((one / other - 1.0).abs() < part, "{one} {other}");
        if simulated.pool.replicas == 1 && simulated.sends(run.traffic.requests) {
            let (latencies, _) = simulated.latencies().unwrap();
            let times = found.times(&UNCHANGED);
            near(times.tpot, latencies.tpot.mean().unwrap(), 1e-2);
            near(times.ttft, latencies.ttft.mean().unwrap(), 1e-2);
            compared += 1;
        }
        for of in [
            CalibratedConstant::GemmMemory,
            CalibratedConstant::HostPerStep,
            CalibratedConstant::RequestOverhead,
        ] {
            let mut changes = UNCHANGED;
            changes[of as usize] = 0.05;
            let [before, after] =
                [&found, &run.expand(machine, &changes).unwrap()].map(|one| one.times(&changes));
            // Slower steps find more requests: the next simulation counts these.
            near(before.tpot, after.tpot, 0.04);
            near(before.ttft, after.ttft, 0.04);
        }
    }
    assert!(compared > 2, "{compared}");
}
