//! Requests of traces, sent at their times; servers that are not there, or end during a run.

use std::net::Shutdown;
use std::path::Path;

use mantile::bench::trace::BenchTrace;
use mantile::spec::fleet::TracedRequest;
use sha2::{Digest, Sha256};

use super::*;

fn row(arrival: f64, isl: u64, osl: u64) -> TracedRequest {
    TracedRequest { arrival, isl, osl, content: vec![] }
}

fn point_of(rows: Vec<TracedRequest>, speed_up: f64) -> LoadPoint {
    LoadPoint::of_trace(Arc::new(BenchTrace::of("trace", rows, speed_up)))
}

/// The bodies of the requests of a load, without those that fit the length of its prompts.
fn sent_bodies(server: &ScriptedServer) -> Vec<Value> {
    let bodies = server.bodies.lock().unwrap();
    bodies.iter().filter(|body| body["max_tokens"] != 1).cloned().collect()
}

fn prompt(body: &Value) -> &str {
    body["messages"][0]["content"].as_str().unwrap()
}

#[test]
fn a_trace_is_sent_at_its_times_with_its_lengths() {
    let (server, address) = ScriptedServer::start(quick);
    let mut random = fastrand::Rng::with_seed(21);
    let rows: Vec<TracedRequest> =
        (0..30).map(|_| row(100.0 + random.f64() * 1.2, random.u64(40..600), random.u64(2..9))).collect();
    let point = point_of(rows.clone(), 2.0);
    let begun = Instant::now();
    let run = measured(settings(address), &point);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let requests = run.requests.clone().unwrap();
    assert_eq!((requests.sent, requests.answered, requests.warm_up), (30, 30, 0), "{requests:?}");
    // Each request has the lengths of a row: the server counts four bytes a token.
    let mut sent: Vec<(u64, u64)> = sent_bodies(&server)
        .iter()
        .map(|body| {
            assert!(body["min_tokens"] == body["max_tokens"] && body["ignore_eos"] == true, "{body}");
            (prompt(body).len() as u64 / 4, body["max_tokens"].as_u64().unwrap())
        })
        .collect();
    let mut stated: Vec<(u64, u64)> = rows.iter().map(|row| (row.isl, row.osl)).collect();
    sent.sort_unstable();
    stated.sort_unstable();
    for ((isl, osl), (stated_isl, stated_osl)) in sent.iter().zip(&stated) {
        assert!(isl.abs_diff(*stated_isl) <= 1 && osl == stated_osl, "{sent:?} {stated:?}");
    }
    // No request is sent before its time.
    let mut arrived: Vec<Instant> = server.sent.lock().unwrap().iter().map(|one| one.arrived).collect();
    arrived.sort_unstable();
    let mut times: Vec<f64> = rows.iter().map(|row| row.arrival).collect();
    times.sort_by(f64::total_cmp);
    for (number, at) in arrived.iter().enumerate() {
        let (waited, planned) = ((*at - begun).as_secs_f64(), (times[number] - times[0]) / 2.0);
        assert!(waited >= planned, "request {number} came after {waited} s, not {planned} s");
    }
    let trace = run.method.as_ref().unwrap().trace.clone().unwrap();
    assert_eq!((trace.requests, trace.speed_up), (30, 2.0));
    assert!((trace.seconds - (times[29] - times[0]) / 2.0).abs() < 1e-9, "{trace:?}");
    assert_eq!((run.rate_per_s, run.concurrency, run.repeats), (None, None, None));
    assert_eq!(run.doubt().as_deref(), Some("its load is that of a trace"));
    assert_eq!(run.load(), "trace of 30 requests");
}

/// A server that answers one after another: latencies of a burst count from the times of the trace.
#[test]
fn latencies_of_a_burst_count_from_its_times() {
    let (_, address) = ScriptedServer::start(in_turn);
    let rows = (0..12).map(|number| row(f64::from(number) * 1e-3, 60, 2)).collect();
    let run = measured(settings(address), &point_of(rows, 1.0));
    let (first, last) = (run.metrics.latency_ms_p50.unwrap(), run.metrics.latency_ms_p99.unwrap());
    assert!(first > 5.0 * 50.0 && last > 10.0 * 50.0, "{first} {last}: 50 ms each, one after another");
}

#[test]
fn part_of_a_trace_counts_and_prompts_share_what_the_trace_shares() {
    let (server, address) = ScriptedServer::start(quick);
    let with = |arrival, content: &[u64]| TracedRequest {
        content: content.to_vec(),
        ..row(arrival, 512 * content.len() as u64 + 40, 2)
    };
    let rows = vec![with(0.0, &[1, 2]), with(0.01, &[1, 2, 3]), with(0.02, &[5]), row(0.03, 300, 2)];
    let settings = BenchSettings { warm_up: Some(1), requests: Some(2), ..settings(address) };
    let run = measured(settings, &point_of(rows, 1.0));
    let requests = run.requests.unwrap();
    assert_eq!((requests.warm_up, requests.sent, requests.answered), (1, 2, 2));
    let bodies = sent_bodies(&server);
    let of = |tokens: usize| {
        bodies.iter().map(prompt).find(|prompt| prompt.len().abs_diff(4 * tokens) < 8).unwrap()
    };
    let [one, other, alone] = [512 * 2 + 40, 512 * 3 + 40, 512 + 40].map(of);
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    assert!((4 * 1024 - 8..4 * 1024 + 24).contains(&common(one, other)), "{}", common(one, other));
    assert!(common(one, alone) < 16);
}

fn command(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    let found = command.arg("bench").args(words).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (found.status.code(), text(&found.stdout), text(&found.stderr))
}

#[test]
fn the_command_names_the_trace_by_its_content_and_refuses_faulty_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (_, address) = ScriptedServer::start(quick);
    let endpoint = format!("http://{address}");
    let text = "arrival,isl,osl\n0.5,64,4\n0,32,2\n1.5,32,2\n";
    std::fs::write(folder.path().join("trace.csv"), text).unwrap();
    let run =
        |more: &[&str]| command(folder.path(), &[&["--endpoint", endpoint.as_str()][..], more].concat());
    let (code, table, faults) = run(&["--trace", "trace.csv", "--speed-up", "3", "--dry-run"]);
    assert!(code == Some(0) && table.contains("trace of 3 requests"), "{table}{faults}");
    // Half a second: 1.5 s of the trace, three times as fast.
    assert!(
        table.lines().any(|line| line.contains("trace of 3 requests") && line.contains("0.5")),
        "{table}"
    );
    let (code, _, faults) = run(&["--trace", "trace.csv", "--speed-up", "3", "--out", "runs.jsonl"]);
    assert_eq!(code, Some(0), "{faults}");
    let kept: RunRecord =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("runs.jsonl")).unwrap()).unwrap();
    let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = kept.method.unwrap().trace.unwrap();
    assert_eq!((trace.sha256, trace.requests, trace.speed_up, trace.seconds), (hash, 3, 3.0, 0.5));
    // The same trace is done, at another speed it is not.
    let (_, lines, _) =
        run(&["--trace", "trace.csv", "--speed-up", "3", "--out", "runs.jsonl", "--resume", "--json"]);
    assert_eq!(lines.trim(), "");
    let sessions = r#"{"timestamp": 0, "input_length": 9, "output_length": 2, "session_id": "a"}"#;
    for (name, text, words) in [
        ("cell.csv", "arrival,isl,osl\n0,64,4\n1,x,2\n", ["cell.csv", "line 3", "`x`", "correct that line"]),
        ("zero.csv", "arrival,isl,osl\n0,64,0\n1,8,2\n", ["zero.csv", "line 2: osl", "1 to", "remove such"]),
        ("sessions.jsonl", sessions, ["sessions.jsonl", "trace", "sessions", "simulate --trace"]),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
        let (code, _, faults) = run(&["--trace", name]);
        assert_eq!(code, Some(2), "{faults}");
        words.iter().for_each(|word| assert!(faults.contains(word), "{name}, {word}: {faults}"));
    }
    let (code, _, faults) = run(&["--trace", "trace.csv", "--warm-up", "3"]);
    assert!(code == Some(2) && faults.contains("fewer requests than the trace has"), "{faults}");
    for more in [["--rate", "2"], ["--isl", "9"], ["--concurrency", "2"], ["--suite", "smoke"]] {
        let (code, _, faults) = run(&[&["--trace", "trace.csv"][..], &more[..]].concat());
        assert!(code == Some(2) && faults.contains("cannot be used with"), "{more:?}: {faults}");
    }
}

/// The prediction of a trace is that of its simulation, and the record has it.
#[test]
fn a_trace_is_predicted_by_its_simulation() {
    let (_, address) = ScriptedServer::start(quick);
    let scenario = planned("1 x tp1");
    let rows = (0..20).map(|number| row(f64::from(number) * 0.02, 200 + 10 * number as u64, 5)).collect();
    let point = point_of(rows, 1.0);
    let subject = BenchSubject::of(catalog(), scenario).unwrap();
    let found = subject.estimate(&point).unwrap().unwrap();
    let session = BenchSession::begin(settings(address)).unwrap();
    let run = session.measure(&subject, &point, Some(&found), Arc::new(|| {}));
    let made = run.prediction.clone().unwrap();
    assert!(made.ttft_ms.unwrap() > 0.0 && made.tpot_ms.unwrap() > 0.0, "{made:?}");
    assert!(made.latency_ms.unwrap() > made.ttft_ms.unwrap() && made.ttft_ms_interval.is_none(), "{made:?}");
}

/// A server that ends after some answers: its listener and all its connections are closed.
fn mortal(answers: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let server = ScriptedServer {
        script: quick,
        arrived: Arc::default(),
        sent: Arc::default(),
        bodies: Arc::default(),
        turn: Arc::default(),
    };
    std::thread::spawn(move || {
        let mut open = vec![];
        while server.arrived.load(SeqCst) < answers {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            stream.set_nonblocking(false).unwrap();
            open.push(stream.try_clone().unwrap());
            let server = server.clone();
            std::thread::spawn(move || {
                let _ = server.serve(stream);
            });
        }
        drop(listener);
        for stream in open {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
    address
}

#[test]
fn a_server_that_ends_during_a_run_is_a_record_that_is_not_learned_from() {
    let settings = BenchSettings { requests: Some(200), warm_up: Some(0), ..settings(mortal(25)) };
    let load = PointLoad::Clients(2);
    let run = measured(settings, &LoadPoint { isl: 60, osl: 2, load });
    let requests = run.requests.clone().unwrap();
    assert!((10..=25).contains(&requests.answered) && requests.sent < 200, "{requests:?}");
    assert_eq!((run.outcome, &run.metrics), (RunOutcome::Died, &BenchMetrics::default()));
    assert_eq!(run.env["failure_stage"], "run");
    let doubt = run.doubt().unwrap();
    assert!(doubt.starts_with("the server ended during the run; "), "{doubt}");
    let line = serde_json::to_string(&run).unwrap();
    assert!(line.contains("\"outcome\":\"died\"") && !line.contains("127.0.0.1"), "{line}");
}

#[test]
fn a_server_that_is_not_there_is_a_record_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{free}");
    let words =
        ["--endpoint", endpoint.as_str(), "--isl", "64", "--osl", "4", "--out", "runs.jsonl", "--json"];
    let (code, printed, faults) = command(folder.path(), &words);
    assert!(code == Some(3) && faults.contains("start the server"), "{faults}");
    let kept = std::fs::read_to_string(folder.path().join("runs.jsonl")).unwrap();
    assert_eq!(kept, printed);
    let run: RunRecord = serde_json::from_str(&kept).unwrap();
    assert_eq!((run.outcome, run.context_tokens, run.concurrency), (RunOutcome::Unreachable, 64, Some(1)));
    assert_eq!(run.env["failure"], "connection: connection refused");
    assert_eq!(run.doubt().as_deref(), Some("no request was answered"));
    // The loads after the one that loses its server are not tried.
    let endpoint = format!("http://{}", mortal(5));
    let words = ["--endpoint", endpoint.as_str(), "--isl", "64", "--osl", "4", "--vary", "concurrency=1,2,4"];
    let (code, printed, faults) = command(folder.path(), &[&words[..], &["--json"]].concat());
    assert!(code == Some(3) && faults.contains("2 loads are not measured"), "{faults}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
}
