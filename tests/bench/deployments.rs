//! Several deployments in one command: each is started by its launch file, measured and stopped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use mantile::request::runs::read_runs;
use mantile::spec::run::{RunOutcome, RunRecord};

/// A program with the name of vLLM that keeps its command, and serves the simulated deployment of its tensor parallelism.
const SERVER: &str = r#"#!/usr/bin/env bash
echo "$*" >>"$(dirname "$0")/commands"
tp=1
while (($#)); do
  case $1 in --tensor-parallel-size) tp=$2 ;; --port) port=$2 ;; esac
  shift
done
exec PROGRAM mock --listen "127.0.0.1:$port" --model Qwen3-0.6B --hardware "${tp}xh100" --tp "$tp" --isl 64 --osl 4
"#;

const LAUNCH: &str = "bench --launch --model Qwen3-0.6B --hardware 4xh100 --isl 64 --osl 4 --requests 10 \
                      --telemetry-every 0 --out runs.jsonl";

/// Runs the program in a folder that has the server.
fn run(folder: &Path, words: &str) -> Output {
    let path = [folder.display().to_string(), std::env::var("PATH").unwrap()].join(":");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(words.split_whitespace()).current_dir(folder).env("PATH", path).env_remove("MODEL");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn with_server() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("vllm");
    fs::write(&server, SERVER.replace("PROGRAM", env!("CARGO_BIN_EXE_mantile-opt"))).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn runs(folder: &Path, file: &str) -> Vec<RunRecord> {
    read_runs(&fs::read_to_string(folder.join(file)).unwrap(), file).unwrap()
}

/// Every combination that the rules allow is measured once, whatever was measured before; a shard has its part.
#[test]
fn each_deployment_is_started_measured_and_stopped() {
    let folder = with_server();
    let folder = folder.path();
    let varied = format!("{LAUNCH} --vary tp=1,3,2 --vary concurrency=1,2");
    let first = run(folder, &format!("{varied} --shard 1/3"));
    assert!(first.status.success(), "{}", text(&first.stderr));
    let rest = run(folder, &format!("{varied} --resume"));
    let (said, shown) = (text(&rest.stderr), text(&rest.stdout));
    assert!(rest.status.success(), "{said}");
    assert!(said.contains("Not measured: tp 3: "), "{said}");
    let found = runs(folder, "runs.jsonl");
    let of =
        |run: &RunRecord| (run.parallelism.tensor_parallel.unwrap(), run.concurrency.unwrap(), run.outcome);
    let expected = [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(tp, clients)| (tp, clients, RunOutcome::Measured));
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), expected);
    assert!(
        found.iter().all(|run| run.prediction.is_some() && run.devices == run.parallelism.tensor_parallel)
    );
    // The second command started what the first had not, once for all its loads.
    let commands = fs::read_to_string(folder.join("commands")).unwrap();
    let degrees: Vec<bool> = commands.lines().map(|line| line.contains("--tensor-parallel-size 2")).collect();
    assert_eq!(degrees, [false, true], "{commands}");
    assert!(!shown.contains("tp1") && shown.lines().count() >= 3, "{shown}");
    let again = run(folder, &format!("{varied} --resume"));
    assert!(again.status.success() && runs(folder, "runs.jsonl").len() == 4);
}

#[test]
fn a_dry_run_has_every_deployment_and_what_the_rules_leave_out() {
    let folder = tempfile::tempdir().unwrap();
    let found = run(folder.path(), &format!("{LAUNCH} --suite smoke --vary tp=1,3,2 --dry-run"));
    let shown = text(&found.stdout);
    assert!(found.status.success(), "{}", text(&found.stderr));
    assert_eq!(shown.lines().filter(|line| line.trim_start().starts_with("tp ")).count(), 4, "{shown}");
    assert!(shown.contains("\n4 loads: ") && shown.contains("\nnot measured: tp 3: "), "{shown}");
}

/// Keys of a deployment need a server that is started, and a load is stated in one way.
#[test]
fn what_cannot_be_varied_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |words: &str, reason: &str| {
        let found = run(folder.path(), words);
        let said = text(&found.stderr);
        assert!(found.status.code() == Some(2) && said.contains(reason), "{words}: {said}");
    };
    refused("bench --endpoint http://127.0.0.1:1 --vary tp=1,2", "--launch");
    refused(&format!("{LAUNCH} --suite smoke --vary concurrency=1,2"), "omit --suite");
    refused(&format!("{LAUNCH} --vary weight_format=bf16,fq8"), "fq8");
    refused(&format!("{LAUNCH} --vary tp=1,2 --shard 3/2"), "1/4");
    assert!(!folder.path().join("runs.jsonl").exists());
}

/// Files of shards are one file, in which a run is once; another run with its id is a fault.
#[test]
fn files_of_runs_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let run_of =
        |id: &str, osl| RunRecord { run_id: id.to_owned(), output_tokens: osl, ..RunRecord::default() };
    let write = |name: &str, runs: &[RunRecord]| {
        fs::write(folder.path().join(name), mantile::request::runs::lines_of(runs)).unwrap();
    };
    write("a.jsonl", &[run_of("a", 1), run_of("b", 2)]);
    write("b.jsonl", &[run_of("b", 2), run_of("c", 3)]);
    let merged = run(folder.path(), "merge a.jsonl b.jsonl --out all.jsonl");
    assert!(merged.status.success(), "{}", text(&merged.stderr));
    let ids: Vec<String> = runs(folder.path(), "all.jsonl").into_iter().map(|run| run.run_id).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    write("b.jsonl", &[run_of("b", 5)]);
    let differ = run(folder.path(), "merge a.jsonl b.jsonl");
    assert!(differ.status.code() == Some(2) && text(&differ.stderr).contains("two runs with the id b"));
    assert!(run(folder.path(), "merge a.jsonl b.jsonl --out a.jsonl").status.code() == Some(2));
}
