//! Laws of the command line: every set of flags ends in an answer or an error.

mod hints;
mod inputs;
mod readers;

use std::io::Read;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, Command};
use fastrand::Rng;
use mantile::spec::limits::of_flag;

use crate::draw;

/// Commands that never end by themselves, or whose work is this machine's.
const LEFT_OUT: [&str; 3] = ["serve", "mcp", "detect"];
/// A command that serves until it is stopped, and the time after which it has begun to: it reads its flags first.
const SERVES: (&str, Duration) = ("mock", Duration::from_secs(20));
/// Exit codes of the documents.
const CODES: [i32; 5] = [0, 2, 3, 4, 5];
/// Time that any command may take in a build for development on a busy machine.
const LONGEST: Duration = Duration::from_secs(100);

const NUMBERS: [&str; 22] = [
    "1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "16",
    "64",
    "1024",
    "4k",
    "32Ki",
    "0",
    "-1",
    "0.5",
    "0.9",
    "1e-9",
    "1e9",
    "1e308",
    "NaN",
    "inf",
    "18446744073709551616",
    "",
];
const TIMES: [&str; 9] = ["500ms", "20 ms", "2sec", "none", "0s", "-1s", "1e-9 s", "1e9 s", "5"];
const MODELS: [&str; 9] = [
    "Qwen3-0.6B",
    "Llama-3.1-8B",
    "gpt-oss-20b",
    "Qwen3-30B-A3B",
    "DeepSeek-V2-Lite",
    "gemma-3-27b-it",
    "TinyLlama-1.1B",
    "nosuch",
    "/dev/null",
];
const HARDWARE: [&str; 12] = [
    "1xl40s",
    "4xl40s",
    "2xh100",
    "1xrtx-4090",
    "rtx-4090-3090",
    "3xl40s",
    "1xm4-max",
    "2x2xh100",
    "0xh100",
    "nosuch",
    ".",
    "spark-mac-studio",
];
const WORDS: [&str; 18] = [
    "throughput",
    "latency",
    "chat",
    "vllm",
    "sglang",
    "llama.cpp",
    "vllm-0.8.5-cuda12.4",
    "bf16",
    "fp8",
    "int4",
    "any",
    "mtp",
    "tpot,ttft",
    "1 x tp2 @4, weights fp8",
    "prefill 1 x tp1 @1, decode 1 x tp1 @8",
    "tp=1,2",
    "device.memory.bandwidth=1 TB/s",
    "model.num_hidden_layers=3",
];
const HOSTILE: [&str; 12] = [
    "\u{1b}[2J",
    "$(touch pwned)",
    "é漢😀",
    "--",
    "{",
    "[1,",
    "a=b",
    "=",
    "../../..",
    "x,y,,z",
    "\u{202e}\u{7}",
    "%s%n",
];
const FILES: [&str; 6] = ["out.json", "out.csv", "out.svg", "no/such/folder/out.txt", "/dev/null", "."];

/// A valid value of a flag, for flags that need no file.
fn tame(random: &mut Rng, arg: &Arg) -> Option<String> {
    let long = arg.get_long().unwrap_or_default();
    let named = arg.get_possible_values();
    if !named.is_empty() {
        return Some(random.choice(&named)?.get_name().to_owned());
    }
    if let Some(limit) = of_flag(long).filter(|_| !["ttft", "tpot", "e2e", "image-size"].contains(&long)) {
        let numbers = ["0.5", "0.9", "1", "2", "3", "4", "8", "16", "64", "300"];
        let fits = numbers.into_iter().filter(|text| text.parse().is_ok_and(|number| limit.holds(number)));
        return draw::name(random, &fits.collect::<Vec<_>>());
    }
    let list: &[&str] = match long {
        "model" | "" => &MODELS[..6],
        "hardware" => &HARDWARE[..8],
        "device" => &["l40s", "rtx-4090", "2xh100"],
        "link" => &["10gbe", "pcie4x16"],
        "ttft" | "tpot" | "e2e" => &["500ms", "30 ms", "none", "20s"],
        "objective" => &["throughput", "latency"],
        "runtime" => &["vllm", "llama.cpp", "vllm-0.8.5-cuda12.4"],
        "weight-format" | "kv-format" => &["any", "bf16"],
        "pareto" => &["tpot,ttft"],
        "plan" => &["1 x tp2 @4", "prefill 1 x tp1 @1, decode 1 x tp1 @8"],
        "vary" => &["tp=1,2", "isl=1k..8k*2"],
        "set" => &["device.memory.bandwidth=1 TB/s"],
        "out" => &["out.txt"],
        _ => return None,
    };
    draw::name(random, list)
}

/// A value of a flag: mostly of its kind.
fn value(random: &mut Rng, arg: &Arg) -> String {
    if random.u32(..12) == 0 {
        let long = "x".repeat(random.usize(..5000));
        return HOSTILE.iter().map(|text| (*text).to_owned()).chain([long]).nth(random.usize(..13)).unwrap();
    }
    let named = arg.get_possible_values();
    if !named.is_empty() {
        return random.choice(&named).unwrap().get_name().to_owned();
    }
    let name = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    let list: &[&str] = match (arg.get_long().unwrap_or_default(), name) {
        ("hardware" | "device" | "only" | "offers", _) | (_, "H" | "SYSTEM") => &HARDWARE,
        ("model" | "draft", _) | (_, "M" | "MODEL" | "A") => &MODELS,
        (_, "T") => &TIMES,
        (_, "N" | "R" | "P" | "X" | "S" | "USD" | "TOKENS" | "WxH" | "SIZE") if random.u32(..4) > 0 => {
            &NUMBERS
        }
        (_, text) if text.contains("FILE") || text == "DIR" => &FILES,
        _ => &WORDS,
    };
    (*random.choice(list).unwrap()).to_owned()
}

/// A command line of `command` from its own definition.
fn line(random: &mut Rng, command: &Command) -> Vec<String> {
    // Half of the lines have valid values and few flags: most of these are answered.
    let is_tame = random.bool();
    let mut line = vec![command.get_name().to_owned()];
    let all: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_global_set()).collect();
    for arg in &all {
        let usual = match arg.get_long() {
            Some("model" | "hardware") if is_tame => 12,
            Some("model" | "hardware") => 4,
            Some("help" | "version" | "refresh") => 0,
            Some("tp" | "pp" | "dp" | "dcp" | "ep" | "ffn-tp" | "plan" | "concurrency" | "ttft" | "rate") => {
                2
            }
            _ => 1,
        };
        let needed = arg.is_required_set() || arg.is_positional();
        if random.u32(..if needed { 5 } else { 12 }) >= if needed { 4 } else { usual } {
            continue;
        }
        let values = match arg.get_action() {
            ArgAction::Set | ArgAction::Append => {
                arg.get_num_args().map_or(1, |range| range.max_values().min(2))
            }
            _ => 0,
        };
        if is_tame && usual == 1 && random.u32(..2) == 0 {
            continue;
        }
        let values: Option<Vec<String>> =
            (0..values).map(|_| if is_tame { tame(random, arg) } else { Some(value(random, arg)) }).collect();
        let Some(values) = values else { continue };
        match (arg.get_long(), &values[..]) {
            (None, values) => line.extend(values.iter().filter(|text| !text.starts_with('-')).cloned()),
            (Some(long), []) => line.push(format!("--{long}")),
            (Some(long), [one]) => line.push(format!("--{long}={one}")),
            (Some(long), several) => {
                line.push(format!("--{long}"));
                line.extend(several.iter().filter(|text| !text.starts_with('-')).cloned());
            }
        }
    }
    // A search ends in seconds.
    if all.iter().any(|arg| arg.get_long() == Some("time-limit")) {
        line.retain(|word| !word.starts_with("--time-limit"));
        line.push("--time-limit=1".to_owned());
    }
    line
}

/// Runs a line in a folder: its exit code, or what is wrong with its end.
fn end(folder: &Path, line: &[String]) -> Result<i32, String> {
    let err = folder.join("stderr.txt");
    let mut child = Process::new(env!("CARGO_BIN_EXE_mantile-opt"))
        .args(["--no-config", "--quiet"])
        .args(line)
        .current_dir(folder)
        .env_remove("MANTILE_HOME")
        .env("HF_ENDPOINT", "http://127.0.0.1:1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let serves = line[0] == SERVES.0;
    let limit = if serves { SERVES.1 } else { LONGEST };
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() > limit => {
                child.kill().unwrap();
                child.wait().unwrap();
                return if serves { Ok(0) } else { Err(format!("no end within {limit:?}")) };
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let text = String::from_utf8_lossy(&std::fs::read(&err).unwrap()).into_owned();
    let known = status.code().filter(|code| CODES.contains(code) && !text.contains("panicked"));
    known.ok_or_else(|| format!("{status}: {text}"))
}

/// Every command that takes `--set` says how many values are overridden before it says anything else.
#[test]
fn a_run_with_overrides_begins_with_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let deployed = ["--model=TinyLlama-1.1B-Chat-v1.0", "--hardware=1xh100", "--time-limit=20"];
    let command = mantile::cli::command();
    let mut tried = 0;
    for one in command.get_subcommands() {
        let has = |name: &str| one.get_arguments().any(|arg| arg.get_long() == Some(name));
        // These read a file of an earlier answer, or several devices.
        if !has("set") || ["compare", "fleet", "place"].contains(&one.get_name()) {
            continue;
        }
        for number in 1..=2 {
            let mut line = vec![one.get_name().to_owned()];
            let known = |flag: &str| has(flag.trim_start_matches("--").split('=').next().unwrap_or_default());
            match one.get_name() {
                "inspect" => line.push("TinyLlama-1.1B-Chat-v1.0".to_owned()),
                _ => line.extend(deployed.into_iter().filter(|flag| known(flag)).map(str::to_owned)),
            }
            line.extend(match one.get_name() {
                "explain" => vec!["--number=tpot".to_owned(), "--tp=1".to_owned()],
                "sweep" => vec!["--vary=concurrency=1".to_owned()],
                "diagnose" => vec!["--measured-tpot=30ms".to_owned()],
                _ => vec![],
            });
            line.push("--set=model.num_hidden_layers=20".to_owned());
            if number == 2 {
                line.push("--set=model.max_position_embeddings=2048".to_owned());
                line.retain(|word| !word.starts_with("--isl"));
            }
            let run = Process::new(env!("CARGO_BIN_EXE_mantile-opt"))
                .args(["--no-config", "--quiet"])
                .args(&line)
                .current_dir(folder.path())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&run.stdout).into_owned();
            if run.status.code() == Some(2) {
                // Another needed flag is missing: nothing was answered.
                assert!(text.is_empty(), "{line:?}: {text}");
                continue;
            }
            tried += 1;
            let words = if number == 1 { "1 override: " } else { "2 overrides: " };
            assert!(text.starts_with(words), "{line:?}: {text}");
        }
    }
    assert!(tried >= 14, "{tried}");
}

#[test]
fn any_flags_of_any_command_end_in_an_answer_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let command = mantile::cli::command();
    let mut commands: Vec<&Command> = command.get_subcommands().collect();
    commands.retain(|one| !LEFT_OUT.contains(&one.get_name()));
    let mut random = Rng::with_seed(11);
    let (mut faults, mut answers) = (Vec::new(), 0);
    let cases = draw::cases(60);
    for case in 0..cases {
        let one = commands[case as usize % commands.len()];
        let line = line(&mut random, one);
        match end(folder.path(), &line) {
            Ok(code) => answers += u64::from(code != 2),
            Err(fault) => faults.push(format!("{line:?}\n{fault}")),
        }
    }
    println!("{cases} command lines, {answers} answered");
    assert!(faults.is_empty(), "{} of {cases}:\n{}", faults.len(), faults.join("\n\n"));
    assert!(answers * 10 > cases, "only {answers} of {cases} are answered")
}

/// A limit of no time ends at once: what comes before and after a search does not take longer.
#[test]
fn a_time_limit_bounds_the_whole_command() {
    const LIMIT: f64 = 0.2;
    // Reading the catalogue and writing the answer, in a build for development on a busy machine.
    const REST: f64 = 4.0;
    let lines: [&[&str]; 6] = [
        &[
            "--model",
            "Mixtral-8x7B",
            "--hardware",
            "256x8xh100",
            "--rate",
            "0.5",
            "--isl",
            "200000",
            "--runtime",
            "any",
            "--why",
        ],
        &["--model", "DeepSeek-V3", "--hardware", "gb200-nvl72", "--pareto", "ttft,tpot,usd_per_mtok"],
        &["--model", "Llama-3.3-70B", "--hardware", "64x8xh100", "--ttft", "1ms", "--why"],
        &[
            "place",
            "--model",
            "Qwen3-235B-A22B",
            "--objective",
            "throughput",
            "--link",
            "10gbe",
            "--device",
            "2xh100",
            "--device",
            "mi300x",
            "--device",
            "8xl40s",
            "--device",
            "a100",
            "--device",
            "rtx-4090",
            "--device",
            "m4-max",
            "--device",
            "h100",
            "--device",
            "dgx-spark",
            "--device",
            "4xm3-ultra",
            "--device",
            "4xrtx-3090",
            "--device",
            "l40s",
            "--device",
            "rtx-5090",
        ],
        &[
            "sweep",
            "--model",
            "DeepSeek-V3",
            "--hardware",
            "2x8xb200",
            "--vary",
            "isl=1k..64k*2",
            "--vary",
            "rate=1..10+1",
        ],
        &["--model", "DeepSeek-V3", "--hardware", "2x8xb200", "--bundle", "bundle.json"],
    ];
    let folder = tempfile::tempdir().unwrap();
    for line in lines {
        let limit = LIMIT.to_string();
        let begun = Instant::now();
        let line: Vec<String> =
            line.iter().chain(&["--time-limit", &limit]).map(|word| (*word).to_string()).collect();
        let end = end_of_limited(folder.path(), &line);
        let took = begun.elapsed().as_secs_f64();
        // A bundle holds an answer that can be made again: that of a stopped search is refused.
        let refused = line.iter().any(|word| word == "--bundle");
        assert!(end.as_ref().is_ok_and(|code| (*code == 2) == refused), "{line:?}: {end:?}");
        assert!(took < LIMIT + REST, "{line:?}: {took} s");
    }
}

/// As [`end`], for a line that may begin with flags of the default command.
fn end_of_limited(folder: &Path, line: &[String]) -> Result<i32, String> {
    match line[0].starts_with("--") {
        true => end(folder, &[&["optimize".to_owned()], line].concat()),
        false => end(folder, line),
    }
}

fn mantile(line: &[&str]) -> Process {
    let mut command = Process::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(["--no-config", "--quiet"]).args(line).env_remove("MANTILE_HOME");
    command
}

/// The verdict stands where a reader leaves early; an answer that nobody could read is no success.
#[test]
fn the_exit_code_says_what_became_of_an_answer_whose_pipe_is_closed() {
    let gone = |line: &[&str]| {
        let mut child = mantile(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) =
        gone(&["optimize", "--model", "Llama-3.3-70B", "--hardware", "1xl40s", "--offload", "never"]);
    assert_eq!((code, text.as_str()), (3, ""));
    let (code, text) = gone(&["estimate", "--model", "Qwen3-0.6B", "--hardware", "1xl40s"]);
    assert!(code == 2 && text.contains("closed the pipe"), "{code}: {text}");
    // One that has read something has what it wanted, however little of a table or of JSON it was.
    for (format, _) in
        ["table", "json", "csv"].into_iter().flat_map(|format| (0..8).map(move |at| (format, at)))
    {
        let line =
            ["estimate", "--model", "Qwen3-0.6B", "--hardware", "1xl40s", "--detail", "--format", format];
        let mut child = mantile(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.as_str()), (Some(0), ""), "{format}");
    }
}

/// Flags of every command may be before its name; those of the default command may not.
#[test]
fn global_flags_are_before_or_after_the_command() {
    let json = ["optimize", "--model", "Qwen3-0.6B", "--hardware", "1xl40s", "--format", "csv"];
    let after = mantile(&json).output().unwrap();
    let before = Process::new(env!("CARGO_BIN_EXE_mantile-opt"))
        .args(["--strict", "--no-config", "-q"])
        .args(json)
        .output()
        .unwrap();
    assert!(after.status.success() && after.stdout == before.stdout);
    let misplaced = mantile(&["--model", "Qwen3-0.6B", "estimate", "--hardware", "1xl40s"]).output().unwrap();
    let text = String::from_utf8_lossy(&misplaced.stderr).into_owned();
    assert_eq!(misplaced.status.code(), Some(2));
    assert!(text.contains("--model <M>") && text.contains("after its name"), "{text}");
}
