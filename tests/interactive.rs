//! `--interactive` on a terminal: the real program in a pseudo-terminal, driven by keys.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time for an answer between keys.
const ANSWERED: Duration = Duration::from_secs(6);

/// What the program wrote in a terminal of util-linux's `script`, with keys between which it answers; and its exit code.
fn in_terminal(words: &str, keys: &[&str]) -> (String, Option<i32>) {
    let line =
        format!("stty rows 30 cols 140; exec {} --no-config {words}", env!("CARGO_BIN_EXE_mantile-opt"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("util-linux has `script`");
    let mut typed = child.stdin.take().unwrap();
    for key in keys {
        std::thread::sleep(ANSWERED);
        typed.write_all(key.as_bytes()).unwrap();
    }
    let found = child.wait_with_output().unwrap();
    drop(typed);
    (String::from_utf8_lossy(&found.stdout).into_owned(), found.status.code())
}

#[test]
fn keys_change_the_question_and_the_program_ends_with_its_command() {
    let words = "-m Llama-3.1-8B -H 1xh100 -i";
    let (shown, code) = in_terminal(words, &["s/fp8\r", ":isl 300\r", ":isk 4\r", "d\r"]);
    assert_eq!(code, Some(0), "{shown}");
    for part in ["with `fp8`", "`--isk`", "usd_per_month"] {
        assert!(shown.contains(part), "no {part}: {shown:?}");
    }
    // After the terminal is as it was.
    let (_, after) = shown.rsplit_once("\u{1b}[?1049l").expect("the other screen is left");
    let lines: Vec<&str> = after.lines().filter(|line| line.contains("mantile-opt")).map(str::trim).collect();
    let question = "mantile-opt --no-config -m Llama-3.1-8B -H 1xh100 --isl 300";
    assert_eq!(lines.len(), 2, "{after:?}");
    assert!(lines[0].ends_with(question), "{after:?}");
    assert!(
        lines[1].starts_with("mantile-opt estimate --no-config -m Llama-3.1-8B")
            && lines[1].contains("--plan '1 x tp1 @"),
        "{after:?}"
    );
    // The command of the row is one that runs.
    let words = shlex::split(lines[1]).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_mantile-opt")).args(&words[1..]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn it_needs_a_terminal_and_an_answer() {
    let found = Command::new(env!("CARGO_BIN_EXE_mantile-opt")).args(["recommend", "-i"]).output().unwrap();
    let fault = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(found.status.code() == Some(2) && fault.contains("interactive"), "{fault}");
    let (shown, code) = in_terminal("completions bash -i", &[]);
    assert!(code == Some(2) && shown.contains("one that answers no question"), "{shown}");
}
