//! The store of runs: what is acknowledged is there after any end of a writer, and what is changed is found; drift and
//! retraining of planted errors; the commands and the server on a store.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mantile::http::ServerOptions;
use mantile::http::stored::StoredRuns;
use mantile::request::drift::{DriftFigure, drift};
use mantile::request::retrain::{published, retrain};
use mantile::request::runs::lines_of;
use mantile::request::validate::predict::predict;
use mantile::request::validate::table::rows;
use mantile::spec::run::{RunOrigin, RunOutcome, RunRecord};
use mantile::store::catalog::Catalog;
use mantile::store::runs::RunStore;
use serde_json::{Value, json};

use crate::http::{Running, options};

/// A run of a small model on one device, with figures of its own.
fn run(id: &str, concurrency: u64) -> RunRecord {
    let mut run = RunRecord {
        run_id: id.to_owned(),
        timestamp_utc: "2026-02-07T21:00:00Z".to_owned(),
        origin: RunOrigin::Own,
        model_id: "meta-llama/Llama-3.1-8B-Instruct".to_owned(),
        runtime_id: "vllm".to_owned(),
        runtime_version: Some("0.10.2".to_owned()),
        hardware_id: Some("nvidia-h100-sxm".to_owned()),
        devices: Some(1),
        quant: Some("bf16".to_owned()),
        context_tokens: 1024,
        output_tokens: 256,
        concurrency: Some(concurrency),
        ..RunRecord::default()
    };
    run.env.insert("driver".to_owned(), json!("550.120"));
    run.parallelism.tensor_parallel = Some(1);
    (run.metrics.ttft_ms_p50, run.metrics.tpot_ms_p50) = (Some(50.0), Some(9.0));
    run
}

fn ids(store: &RunStore) -> Vec<String> {
    store.runs().unwrap().into_iter().map(|run| run.run_id).collect()
}

fn is_whole(store: &RunStore) {
    assert_eq!(store.verify().faults, Vec::<String>::new());
}

/// The variable with the store of the child below.
const CHILD: &str = "MANTILE_APPEND_TO";
/// Begins a line with the id of an acknowledged run.
const ACKNOWLEDGED: &str = "acknowledged ";

/// Appends until it is killed; only as a child of the next test.
#[test]
#[ignore = "appends without an end where its variable is set"]
fn a_child_that_appends() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let mut store = RunStore::open(Path::new(&path)).unwrap();
    let mut random = fastrand::Rng::new();
    loop {
        let id = format!("{:032x}", random.u128(..));
        store.append(&[run(&id, 8)]).unwrap();
        println!("{ACKNOWLEDGED}{id}");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn no_acknowledged_run_is_lost_at_any_kill() {
    const KILLS_OF_A_STORE: usize = 20;
    let kills = std::env::var("MANTILE_KILLS").map_or(20, |count| count.parse().unwrap());
    let mut acknowledged = 0;
    for _ in 0..usize::div_ceil(kills, KILLS_OF_A_STORE) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let mut known = BTreeSet::new();
        for _ in 0..KILLS_OF_A_STORE {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["runs::a_child_that_appends", "--exact", "--ignored", "--nocapture"])
                .env(CHILD, &path)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap());
            let (written, first) = std::sync::mpsc::channel::<()>();
            // One in four ends at any moment since its start, the others in the midst of their writes.
            let waits = fastrand::u8(0..4) > 0;
            let killed = std::thread::spawn(move || {
                if waits {
                    let _ = first.recv_timeout(Duration::from_secs(60));
                }
                std::thread::sleep(Duration::from_micros(fastrand::u64(0..80_000)));
                child.kill().unwrap();
                child.wait().unwrap();
            });
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 0 {
                // A line without an end was read by no one whole.
                if let Some((_, id)) = line.strip_suffix('\n').and_then(|line| line.split_once(ACKNOWLEDGED))
                {
                    known.insert(id.to_owned());
                    let _ = written.send(());
                }
                line.clear();
            }
            killed.join().unwrap();
            if path.exists() && !known.is_empty() {
                let store = RunStore::open(&path).unwrap();
                is_whole(&store);
                let there: BTreeSet<String> = ids(&store).into_iter().collect();
                let lost: Vec<&String> = known.difference(&there).collect();
                assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), known.len());
            }
        }
        acknowledged += known.len();
    }
    assert!(acknowledged > kills, "{acknowledged} runs were acknowledged");
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let path = &path;
            scope.spawn(move || {
                let mut store = RunStore::open(path).unwrap();
                for number in 0..20 {
                    store
                        .append(&[run(&format!("{writer}-{number}"), 8), run(&format!("both-{number}"), 8)])
                        .unwrap();
                }
            });
        }
    });
    let store = RunStore::existing(&path).unwrap();
    is_whole(&store);
    assert_eq!(ids(&store).len(), 80);
}

#[test]
fn a_flipped_bit_in_any_record_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let runs: Vec<RunRecord> = (0..8).map(|number| run(&format!("run-{number:04}"), number + 1)).collect();
    let mut store = RunStore::open(&path).unwrap();
    store.append(&runs).unwrap();
    let texts = store.texts().unwrap();
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let mut tried = 0;
    for text in texts {
        let start =
            whole.windows(text.len()).position(|part| part == text.as_bytes()).expect("a record on one page");
        // The id before the record, and both hashes after it.
        let cell = start - "run-0000".len()..start + text.len() + 64;
        for at in cell.step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << fastrand::u32(0..8);
            let changed = folder.path().join("changed.sqlite");
            std::fs::write(&changed, bytes).unwrap();
            let faults = RunStore::existing(&changed).map(|store| store.verify().faults);
            assert!(!matches!(&faults, Ok(faults) if faults.is_empty()), "byte {at} is not missed");
            tried += 1;
        }
    }
    assert!(tried > 300, "{tried} bytes");
}

#[test]
fn a_full_disk_is_an_error_and_earlier_runs_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut store = RunStore::open(&path).unwrap();
    store.append(&[run("first", 1)]).unwrap();
    store.limit_pages(24);
    let mut stored = vec!["first".to_owned()];
    let fault = loop {
        let id = format!("{:032x}", fastrand::u128(..));
        match store.append(&[run(&id, 8)]) {
            Ok(_) => stored.push(id),
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.found, "the disk is full");
    assert_eq!(ids(&store), stored);
    drop(store);
    let store = RunStore::existing(&path).unwrap();
    is_whole(&store);
    assert_eq!(ids(&store), stored);
}

#[test]
fn nothing_is_changed_or_removed_and_an_id_has_one_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut store = RunStore::open(&path).unwrap();
    assert_eq!(store.append(&[run("a", 8)]).unwrap().added, 1);
    assert_eq!(store.append(&[run("a", 8)]).unwrap().known, 1);
    let fault = store.append(&[run("b", 8), run("a", 9)]).unwrap_err();
    assert!(fault.found.contains("`a`"), "{fault}");
    assert_eq!(ids(&store), ["a"]);
    let raw = rusqlite::Connection::open(&path).unwrap();
    for change in [
        "UPDATE runs SET record = '{}'",
        "DELETE FROM runs",
        "INSERT OR REPLACE INTO runs SELECT seq, run_id, '{}', hash, chain FROM runs",
        "UPDATE salts SET salt = x'00'",
    ] {
        let error = raw.execute(change, []).expect_err(change).to_string();
        assert!(error.contains("only appended") || error.contains("has this run"), "{change}: {error}");
    }
    is_whole(&store);
    // Without the triggers, the hashes tell.
    raw.execute_batch(
        "DROP TRIGGER runs_UPDATE; UPDATE runs SET record = replace(record, '550.120', '550.121')",
    )
    .unwrap();
    assert!(store.verify().faults.iter().any(|fault| fault.contains("hash differs")));
    assert!(RunStore::existing(&folder.path().join("none")).is_err());
    std::fs::write(folder.path().join("text"), "x".repeat(200)).unwrap();
    assert!(RunStore::open(&folder.path().join("text")).unwrap_err().found.contains("no store"));
}

fn program(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(words).current_dir(folder).env("XDG_DATA_HOME", folder).env("HOME", folder);
    let found = command.env("LOCALAPPDATA", folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (found.status.code().unwrap(), text(&found.stdout), text(&found.stderr))
}

#[test]
fn what_is_exported_is_imported_and_signatures_hold() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut runs: Vec<RunRecord> = (0..4).map(|number| run(&format!("run-{number}"), number + 1)).collect();
    runs[1].env.insert("gpu_serial".to_owned(), json!("1320222"));
    std::fs::write(here.join("in.jsonl"), lines_of(&runs)).unwrap();
    let said = |words: &[&str]| {
        let (code, text, errors) = program(here, words);
        assert_eq!(code, 0, "{words:?}: {errors}");
        text
    };
    assert_eq!(said(&["runs", "import", "in.jsonl"]), "4 runs added, 0 known before\n");
    assert_eq!(said(&["runs", "import", "in.jsonl"]), "0 runs added, 4 known before\n");
    said(&["runs", "export", "--out", "out.jsonl", "--key", "key.txt"]);
    let exported = std::fs::read_to_string(here.join("out.jsonl")).unwrap();
    assert!(!exported.contains("1320222") && exported.contains("salted:"), "{exported}");
    said(&["runs", "import", "out.jsonl", "--store", "other.sqlite"]);
    let stores = [here.join("mantile/runs.sqlite"), here.join("other.sqlite")];
    let [one, other] = stores.each_ref().map(|path| RunStore::existing(path).unwrap().texts().unwrap());
    assert_eq!(one, other);
    let list: Value = serde_json::from_str(&said(&["runs", "list", "--model", "llama", "--json"])).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 4);
    assert!(said(&["runs", "list", "--runtime", "sglang"]).contains("0 runs"));
    assert!(said(&["runs", "show", "run-2"]).contains("driver"));
    assert!(program(here, &["runs", "show", "run-"]).2.contains("4 runs begin with"));
    assert!(said(&["runs", "compare", "run-1", "run-2"]).contains("concurrency"));
    said(&["runs", "sign", "--key", "key.txt"]);
    assert!(said(&["runs", "verify"]).contains("1 signature: as written"));
    std::fs::write(here.join("out.jsonl"), exported.replace("550.120", "550.121")).unwrap();
    assert!(program(here, &["runs", "import", "out.jsonl"]).2.contains("changed after they were signed"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(here.join("key.txt")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let table = said(&["validate", "mantile/runs.sqlite", "--json"]);
    let table: Value = serde_json::from_str(&table).unwrap();
    assert_eq!(table["overall"]["n"], 4);
}

#[test]
fn a_store_that_lost_its_last_runs_is_no_longer_the_signed_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut store = RunStore::open(&path).unwrap();
    store.append(&[run("a", 1), run("b", 2)]).unwrap();
    let key = mantile::store::runs::signature::SigningKeyFile::open(&folder.path().join("key")).unwrap();
    store.sign(&key).unwrap();
    is_whole(&store);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("DROP TRIGGER runs_DELETE; DELETE FROM runs WHERE run_id = 'b'").unwrap();
    let faults = store.verify().faults;
    assert!(faults.iter().any(|fault| fault.contains("not the signed one")), "{faults:?}");
}

/// Runs whose TPOT differs from the prediction by a factor, under several loads.
fn planted(catalog: &Catalog, count: usize, factor: f64) -> Vec<RunRecord> {
    let mut runs: Vec<RunRecord> =
        (0..count).map(|number| run(&format!("run-{number}"), [1, 2, 4, 8, 16, 32][number % 6])).collect();
    let predicted = predict(catalog, rows(&lines_of(&runs)).unwrap());
    for (run, row) in runs.iter_mut().zip(predicted) {
        let made = row.predicted.unwrap();
        run.metrics.tpot_ms_p50 = Some(made.tpot_ms * factor);
        run.metrics.ttft_ms_p50 = Some(made.ttft_ms * factor);
    }
    runs
}

/// The factor on a measurement whose prediction has this error.
fn with_error(error: f64) -> f64 {
    1.0 / (1.0 - error)
}

#[test]
fn an_alarm_is_on_at_thirteen_percent_and_not_at_eleven() {
    let catalog = Catalog::default();
    let of = |count, error: f64| drift(&catalog, &planted(&catalog, count, with_error(error)));
    let found = of(10, 0.13);
    let [group] = &found.groups[..] else { panic!("{found:?}") };
    assert_eq!((group.runtime.as_str(), group.hardware.as_str()), ("vllm", "nvidia-h100-sxm"));
    let [decode, ttft] = &group.figures[..] else { panic!("{found:?}") };
    assert_eq!((decode.figure, ttft.figure), (DriftFigure::Decode, DriftFigure::Ttft));
    assert!((decode.median_error - 0.13).abs() < 1e-9 && decode.alarm && !ttft.alarm, "{found:?}");
    assert!(found.alarm && !of(10, 0.11).alarm && !of(9, 0.13).alarm);
    assert!(of(10, 0.19).groups[0].figures[1].alarm);
}

#[test]
fn starts_that_were_predicted_wrongly_are_counted() {
    let catalog = Catalog::default();
    let mut failed = run("oom", 8);
    (failed.outcome, failed.metrics) = (RunOutcome::Oom, Default::default());
    let mut large = run("ran", 8);
    large.model_id = "meta-llama/Llama-3.1-70B-Instruct".to_owned();
    let found = drift(&catalog, &[failed, large, RunRecord { model_id: "none".to_owned(), ..run("x", 8) }]);
    assert_eq!((found.false_positives, found.false_negatives), (1, 1), "{found:?}");
    assert_eq!((found.runs, found.unpredicted.len()), (3, 1));
}

#[test]
fn a_retraining_is_adopted_where_left_out_errors_fall_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let (catalog, mut store) =
        (Catalog::default(), RunStore::open(&folder.path().join("runs.sqlite")).unwrap());
    let exact = retrain(&catalog, &catalog, &planted(&catalog, 6, 1.0));
    assert!(exact[0].version.is_none() && exact[0].kept_because.is_some(), "{exact:?}");
    let runs = planted(&catalog, 12, 1.3);
    store.append(&runs).unwrap();
    assert!(drift(&catalog, &runs).alarm);
    let outcomes = retrain(&catalog, &catalog, &runs);
    let [outcome] = &published(&mut store, outcomes).unwrap()[..] else { panic!("one runtime") };
    let version = outcome.version.as_ref().expect("errors of 30 % fall");
    assert_eq!(
        (version.number, version.runs, version.drivers.as_slice()),
        (1, 12, &["550.120".to_owned()][..])
    );
    assert!(outcome.medians.iter().all(|median| median.after < median.before / 2.0), "{:?}", outcome.medians);
    let in_force = store.in_force(&catalog).unwrap();
    assert!(!drift(&in_force, &runs).alarm);
    assert_eq!(store.versions().unwrap(), std::slice::from_ref(version));
    is_whole(&store);
}

#[test]
fn a_server_keeps_runs_over_its_end_and_retrains_on_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let start = || {
        let store = StoredRuns::new(RunStore::open(&path).unwrap(), Catalog::default().closed(false));
        Running::under(ServerOptions { store: Some(store), ..options() }, Catalog::default())
    };
    let send = |server: &Running, method: &str, body: &str| {
        let (status, _, text) =
            server.send(method, "/v1/calibrate", &[("content-type", "application/json")], body);
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let catalog = Catalog::default();
    let runs = planted(&catalog, 10, 1.3);
    let text = |run: &RunRecord| serde_json::to_string(run).unwrap();
    {
        let server = start();
        let (status, first) = send(&server, "POST", &text(&runs[0]));
        assert_eq!(
            (status, &first["known"], &first["accepted"]),
            (200, &json!(false), &json!(true)),
            "{first}"
        );
        assert!((first["errors"]["decode"].as_f64().unwrap() - (1.0 / 1.3 - 1.0)).abs() < 1e-9, "{first}");
        assert_eq!(send(&server, "POST", &text(&runs[0])).1["known"], true);
        let other = RunRecord { concurrency: Some(64), ..runs[0].clone() };
        assert_eq!(send(&server, "POST", &text(&other)).0, 422);
    }
    let server = start();
    assert_eq!(send(&server, "GET", "").1["accepted"], 1);
    for run in &runs[1..] {
        assert_eq!(send(&server, "POST", &text(run)).0, 200);
    }
    let end = Instant::now() + Duration::from_secs(240);
    let last = loop {
        let (_, found) = send(&server, "GET", "");
        if !found["stored"]["versions"].as_array().unwrap().is_empty() {
            break found;
        }
        assert!(Instant::now() < end, "no version: {found}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!((&last["accepted"], &last["refit_due"]), (&json!(10), &json!(false)), "{last}");
    let dated = last["stored"]["dated"].as_array().unwrap();
    assert_eq!(dated.len(), 10, "{last}");
    assert!(dated.iter().all(|one| one["errors"]["decode"].as_f64().unwrap().abs() < 0.12), "{last}");
    let (_, _, metrics) = server.send("GET", "/metrics", &[], "");
    assert!(metrics.contains("mantile_runs_stored_total 10\n"), "{metrics}");
    assert!(
        metrics.contains("mantile_drift_alarm{runtime=\"vllm\",hardware=\"nvidia-h100-sxm\","),
        "{metrics}"
    );
}

#[test]
fn a_full_disk_is_a_problem_of_the_server_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let store = RunStore::open(&path).unwrap();
    store.limit_pages(24);
    let store = StoredRuns::new(store, Catalog::default().closed(false));
    let server = Running::under(ServerOptions { store: Some(store), ..options() }, Catalog::default());
    let post = |run: &RunRecord| {
        let json = [("content-type", "application/json")];
        let (status, _, text) =
            server.send("POST", "/v1/calibrate", &json, &serde_json::to_string(run).unwrap());
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let mut stored = vec![];
    let problem = loop {
        let mut one = run(&format!("{:032x}", fastrand::u128(..)), 8);
        one.env.insert("notes".to_owned(), json!("x".repeat(8000)));
        match post(&one) {
            (200, _) => stored.push(one.run_id),
            (status, problem) => break (status, problem),
        }
    };
    let (status, problem) = problem;
    assert_eq!((status, &problem["title"]), (507, &json!("Insufficient Storage")), "{problem}");
    assert_eq!(problem["found"], "the disk is full");
    assert!(problem["fix"].as_str().unwrap().contains("free the disk"), "{problem}");
    assert!(problem["field"].is_null() && !problem.to_string().contains("runs.sqlite"), "{problem}");
    // What was acknowledged is there, and a fault of a run is one of the request.
    assert_eq!(ids(&RunStore::existing(&path).unwrap()), stored);
    let mut wrong = run("wrong", 8);
    wrong.metrics.ttft_ms_p50 = Some(-1.0);
    assert_eq!(post(&wrong).0, 422);
}
