//! The command as its users meet it: console sessions, and what no session can show.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const MANTILE: &str = env!("CARGO_BIN_EXE_mantile-opt");

/// The command, with nobody's own catalogue and no colours asked for.
fn mantile(args: &[&str]) -> Command {
    let mut command = Command::new(MANTILE);
    command
        .args(args)
        .env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE");
    command
}

fn run(args: &[&str]) -> Output {
    mantile(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn console_sessions_read_as_written() {
    trycmd::TestCases::new()
        .env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/cli/*.md")
        .case("README.md")
        .case("docs/*.md");
}

#[test]
fn every_command_has_its_help_in_the_reference() {
    let reference = fs::read_to_string("docs/cli.md").unwrap();
    for command in <mantile::cli::Cli as clap::CommandFactory>::command().get_subcommands() {
        let line = format!("$ mantile-opt {} --help", command.get_name());
        assert!(reference.contains(&line), "docs/cli.md has no `{line}`");
    }
}

#[test]
fn json_goes_to_standard_output_alone_and_the_same_each_time() {
    for args in [
        ["inspect", "gpt-oss-20b", "--format", "json"].as_slice(),
        &["catalog", "devices", "--format", "json"],
        &["catalog", "systems", "dgx-h100", "--format", "json"],
        &["glossary", "--format", "json"],
        &["schema", "scenario"],
    ] {
        let (first, second) = (run(args), run(args));
        assert!(first.status.success() && first.stderr.is_empty(), "{args:?}");
        assert_eq!(first.stdout, second.stdout, "{args:?}");
        serde_json::from_slice::<Value>(&first.stdout).unwrap_or_else(|fault| panic!("{args:?}: {fault}"));
    }
}

/// An answer with flags from a file, and from standard input.
fn with_flags(text: &str) -> [Output; 2] {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flags.txt");
    fs::write(&path, text).unwrap();
    let file = format!("--arguments-file={}", path.display());
    let open = fs::File::open(&path).unwrap();
    let piped = mantile(&["estimate", "--arguments-file", "-", "--slo"]).stdin(open).output().unwrap();
    [run(&["estimate", &file, "--slo"]), piped]
}

#[test]
fn flags_of_a_file_are_words_as_of_a_shell_on_any_number_of_lines() {
    let plan = "1 x tp1 @8";
    let flags = [
        "estimate",
        "--model",
        "Llama-3.1-8B",
        "--hardware",
        "1xh100",
        "--plan",
        plan,
        "--ttft",
        "1ms",
        "--slo",
    ];
    let expected = run(&flags);
    assert_eq!(expected.status.code(), Some(3));
    let written = format!(
        "# a model\r\n--model Llama-3.1-8B \\\n --hardware '1xh100'\n\n--plan \"{plan}\" # one \\\n--ttft\n1ms"
    );
    for output in with_flags(&written) {
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), text(&expected.stdout)));
    }
    for (faulty, reason) in [
        ("--ttft '1s", "a quote without its end"),
        ("--ttft 1s\nunused", "unexpected argument 'unused'"),
        ("--ttft $(id)", "$(id)"),
        ("--arguments-file flags.txt", "another --arguments-file"),
    ] {
        for output in with_flags(faulty) {
            assert_eq!(output.status.code(), Some(2), "{faulty}");
            assert!(text(&output.stderr).contains(reason), "{faulty}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn inspect_has_the_documented_keys() {
    let value: Value =
        serde_json::from_slice(&run(&["inspect", "DeepSeek-V3", "--format", "json"]).stdout).unwrap();
    let parameters = &value["parameters"];
    assert_eq!(parameters["unique"], 671_026_404_352_u64);
    assert_eq!(parameters["buffers"], 58 * 256);
    for key in ["active", "mtp"] {
        assert!(parameters[key].as_u64().unwrap() > 0, "{key}");
    }
    assert_eq!(value["kv_bytes_per_token"], 61 * (512 + 64) * 2);
    let tensors = value["tensors"].as_array().unwrap();
    assert!(tensors.iter().all(|tensor| tensor["shape"].is_array() && tensor["name"].is_string()));
}

#[test]
fn placements_are_described_by_their_schema() {
    let schema: Value = serde_json::from_slice(&run(&["schema", "placement"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let place = |rest: &[&str]| {
        let common = ["place", "--model", "Llama-3.1-8B", "--format", "json"];
        serde_json::from_slice::<Value>(&run(&[&common, rest].concat()).stdout).unwrap()
    };
    for (rest, status) in [
        (["--hardware", "spark-mac-studio", "--objective", "request"].as_slice(), "optimal"),
        (&["--hardware", "mac-five", "--objective", "throughput", "--concurrency", "6"], "optimal"),
        (&["--device", "rtx-3060", "--weight-format", "bf16"], "infeasible"),
    ] {
        let answer = place(rest);
        let faults: Vec<String> = validator.iter_errors(&answer).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{rest:?}: {faults:?}");
        assert_eq!(answer["status"], status, "{rest:?}");
        assert_eq!(answer["infeasible"].is_null(), status != "infeasible");
    }
    assert!(!validator.is_valid(&Value::Array(vec![])), "a schema that takes anything would take this too");
}

#[test]
fn a_closed_pipe_is_no_fault() {
    let mut child = mantile(&["inspect", "DeepSeek-V3", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // More than a pipe holds is still to come when the reader leaves.
    let mut start = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_full_disk_is_a_fault() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let output = mantile(&["glossary"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("could not be written"));
}

#[test]
fn an_empty_command_line_shows_this_machine_or_examples() {
    // Without the tools of vendors, no accelerator is found.
    let bare = mantile(&[]).env("PATH", "").output().unwrap();
    assert_eq!(bare.status.code(), Some(0));
    assert!(text(&bare.stdout).contains("mantile-opt recommend --model"), "{}", text(&bare.stdout));
    let requested = run(&["--objective", "throughput"]);
    let answer = |output: &[u8]| text(output).split("\ndefaults").next().unwrap().to_owned();
    assert_eq!(answer(&requested.stdout), answer(&run(&["optimize"]).stdout));
}

/// A tool that prints what it was recorded to print.
#[cfg(unix)]
#[test]
fn an_empty_command_line_on_a_machine_with_a_gpu_recommends_models_for_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let row = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/detect/machines/rtx-4090-desktop/nvidia-smi");
    let tool = folder.path().join("nvidia-smi");
    let script = "case $1 in --query-gpu*) while read -r line; do echo \"$line\"; done <";
    fs::write(&tool, format!("#!/bin/sh\n{script}'{}';; *) exit 1;; esac\n", row.display())).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let on_it = |words: &[&str]| mantile(words).env("PATH", folder.path()).output().unwrap();
    let (bare, requested) = (on_it(&[]), on_it(&["recommend", "--hardware", "local"]));
    assert_eq!(bare.status.code(), Some(0), "{}", text(&bare.stderr));
    // What the host has free changes from one to the other, and with it the smallest models of the list.
    let question = |output: &Output| {
        let answer = text(&output.stdout);
        answer
            .lines()
            .find(|line| line.starts_with("this machine: NVIDIA GeForce RTX 4090"))
            .map(str::to_owned)
    };
    assert!(question(&bare).is_some());
    assert_eq!(question(&bare), question(&requested));
    assert!(text(&bare.stderr).contains("Other questions"), "{}", text(&bare.stderr));
}

#[test]
fn exit_codes_say_how_far_an_answer_is_proved() {
    let one = ["--model", "Llama-3.1-8B", "--hardware", "1xl40s"];
    for (rest, code) in [
        (["--isl", "512"].as_slice(), 0),
        (&["--isl", "0"], 2),
        (&["--tpot", "1ms"], 3),
        (&["--time-limit", "0"], 5),
    ] {
        let output = run(&[&one[..], rest].concat());
        assert_eq!(output.status.code(), Some(code), "{rest:?}: {}", text(&output.stderr));
    }
    for command in
        [["--help"].as_slice(), &["place", "--help"], &["fleet", "--help"], &["recommend", "--help"]]
    {
        let help = run(command);
        let words = text(&help.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("4 feasible"), "{command:?}");
    }
}

#[test]
fn a_saved_answer_is_estimated_again_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answer.json");
    let path = path.to_str().unwrap();
    let requested = ["--model", "Llama-3.1-8B", "--hardware", "2xh100-sxm", "--isl", "700", "--tpot", "30ms"];
    assert!(run(&[&requested[..], &["--format", "json", "--out", path]].concat()).status.success());
    let answer: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let metrics = |args: &[&str]| -> Value {
        let output = run(&[&["estimate", "--format", "json"], args].concat());
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["metrics"].clone()
    };
    assert_eq!(metrics(&["--plan-from", path]), answer["best"]["metrics"]);
    let last = answer["front"].as_array().unwrap().len() - 1;
    let row = format!("front/{last}");
    assert_eq!(metrics(&["--plan-from", path, "--pick", &row]), answer["front"][last]["metrics"]);
    // By hand, and from a file of the plan alone.
    let plan = answer["best"]["notation"].as_str().unwrap();
    let typed: Vec<&str> = requested.iter().copied().chain(["--plan", plan]).collect();
    assert_eq!(metrics(&typed), answer["best"]["metrics"]);
    let alone = folder.path().join("plan.json");
    fs::write(&alone, serde_json::json!({ "plan": plan }).to_string()).unwrap();
    let typed: Vec<&str> =
        requested.iter().copied().chain(["--plan-from", alone.to_str().unwrap()]).collect();
    assert_eq!(metrics(&typed), answer["best"]["metrics"]);
    let missing = run(&["estimate", "--plan-from", path, "--pick", "front/999999"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stdout));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let plain = run(&["--isl", "0"]);
    assert!(!text(&plain.stderr).contains('\u{1b}'));
    let forced = mantile(&["--isl", "0"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(text(&forced.stderr).contains('\u{1b}'));
    let refused = mantile(&["--isl", "0"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert_eq!(text(&refused.stderr), text(&plain.stderr));
}

#[test]
fn a_saved_scenario_requests_the_same_and_flags_come_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    let path = path.to_str().unwrap();
    let requested =
        ["--model", "Qwen3-32B", "--hardware", "4xl40s", "--isl", "1000", "--ttft", "900ms", "--rate", "0.5"];
    let saved = run(&[&requested[..], &["--save-scenario", path]].concat());
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    assert_eq!(run(&["--scenario", path]).stdout, saved.stdout);
    assert_eq!(run(&requested).stdout, saved.stdout);
    let other = run(&["--scenario", path, "--isl", "2000"]);
    assert!(other.status.success());
    assert_ne!(other.stdout, saved.stdout);

    let deployment =
        ["estimate", "--prefill-tp", "2", "--decode-tp", "4", "--decode-pp", "1", "--save-scenario", path];
    let saved = run(&deployment);
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    assert_eq!(run(&["estimate", "--scenario", path]).stdout, saved.stdout);
    let value: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(value["deployment"]["decode"]["tp"], 4);
}

#[test]
fn every_estimate_says_how_sure_it_is() {
    let one = ["--model", "Llama-3.1-8B", "--concurrency", "4", "--format", "json"];
    for (deployment, near) in [
        (["--hardware", "1xh100-sxm", "--runtime", "vllm"].as_slice(), "hardware_and_runtime"),
        (&["--hardware", "8xh100-sxm", "--prefill-tp", "2", "--decode-tp", "4"], "split"),
        // Measured with one request at a time.
        (&["--hardware", "1xrtx-4090", "--runtime", "llama.cpp", "--weight-format", "q4_k_m"], "load"),
        (&["--hardware", "1xm4-max", "--runtime", "mlx", "--weight-format", "mlx-4bit"], "load"),
        (&["--hardware", "1xm4-max", "--runtime", "exo", "--weight-format", "mlx-4bit"], "nothing"),
        (&["--hardware", "1xa100-sxm-80gb", "--runtime", "hf-transformers"], "nothing"),
        (&["--hardware", "1xrtx-4090", "--runtime", "hf-transformers", "--weight-format", "bf16"], "nothing"),
    ] {
        let output = run(&[&["estimate"], &one[..], deployment].concat());
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let found = &value;
        assert_eq!(found["intervals"]["near"], near, "{deployment:?}: {}", text(&output.stderr));
        for (metric, of) in [("ttft_ms", "metrics"), ("tpot_ms", "metrics"), ("output_tok_s", "metrics")] {
            let [low, high] = ["p10", "p90"].map(|p| found["intervals"][metric][p].as_f64().unwrap());
            let shown = found[of][metric].as_f64().unwrap();
            assert!(
                0.0 < low && low < high && high > 0.2 * shown,
                "{deployment:?} {metric}: {low} {shown} {high}"
            );
        }
        let held = &found["memory"];
        if !held["interval"].is_null() {
            let [low, high] = ["p10", "p90"].map(|p| held["interval"][p].as_f64().unwrap());
            assert!(held["kv_cache_bytes"].as_f64().unwrap() < low && low < high, "{held}");
        }
    }
    let csv = run(&["estimate", "--model", "Llama-3.1-8B", "--hardware", "1xh100-sxm", "--format", "csv"]);
    let header = text(&csv.stdout).lines().next().unwrap();
    for column in ["ttft_ms_p10", "tpot_ms_p90", "output_tok_s_p90", "memory_total_bytes_p10"] {
        assert!(header.contains(column), "{header}");
    }
}

#[test]
fn an_answer_goes_to_a_file_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("glossary.txt");
    let output = run(&["glossary", "--out", path.to_str().unwrap()]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(fs::read(&path).unwrap(), run(&["glossary"]).stdout);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_users_folder_is_found_by_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("mantile/objectives");
    fs::create_dir_all(&folder).unwrap();
    let shipped = run(&["catalog", "objectives", "latency", "--format", "json"]).stdout;
    fs::write(folder.join("mine.json"), text(&shipped).replace("\"latency\"", "\"mine\"")).unwrap();
    let own = |variable: &str, value: &std::path::Path| {
        let mut command = Command::new(MANTILE);
        command.args(["catalog", "objectives"]).env_remove("MANTILE_HOME").env_remove("XDG_CONFIG_HOME");
        command.env("HOME", "/nonexistent").env(variable, value);
        text(&command.output().unwrap().stdout).contains("mine *")
    };
    assert!(own("MANTILE_HOME", &home.path().join("mantile")));
    assert!(own("XDG_CONFIG_HOME", home.path()));
    assert!(!own("XDG_CONFIG_HOME", &home.path().join("elsewhere")));
}

#[test]
fn a_model_without_a_network_says_what_to_do() {
    let cache = tempfile::tempdir().unwrap();
    let output = mantile(&["inspect", "hf:org/name"])
        .env("HF_ENDPOINT", "http://127.0.0.1:1")
        .env("XDG_CACHE_HOME", cache.path())
        .env("HF_HOME", cache.path())
        .env_remove("HF_HUB_CACHE")
        .envs(
            ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"]
                .map(|name| (name, "")),
        )
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let fault = text(&output.stderr);
    assert!(fault.contains("no response") && fault.contains("download config.json by hand"), "{fault}");
}

#[test]
fn completions_and_the_manual_name_the_commands() {
    for args in
        [["completions", "bash"].as_slice(), &["completions", "zsh"], &["completions", "fish"], &["man"]]
    {
        let output = run(args);
        assert!(output.status.success(), "{args:?}");
        assert!(text(&output.stdout).contains("estimate"), "{args:?}");
    }
}
