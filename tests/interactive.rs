//! `--interactive` on a terminal: the real program in a pseudo-terminal, driven by keys.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// How the program takes the screen of a terminal, when it has its first answer.
const SCREEN: &[u8] = b"\x1b[?1049h";

/// What the program wrote in a terminal of util-linux's `script`, with keys after its first answer; and its exit code.
/// Keys that are typed during later answers wait for these.
fn in_terminal(words: &str, keys: &str) -> (String, Option<i32>) {
    let line =
        format!("stty rows 30 cols 140; exec {} --no-config {words}", env!("CARGO_BIN_EXE_mantile-opt"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("util-linux has `script`");
    let (mut typed, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    let mut is_typed = keys.is_empty();
    loop {
        let length = output.read(&mut part).unwrap();
        if length == 0 {
            break;
        }
        shown.extend_from_slice(&part[..length]);
        if !is_typed && shown.windows(SCREEN.len()).any(|window| window == SCREEN) {
            typed.write_all(keys.as_bytes()).unwrap();
            is_typed = true;
        }
    }
    let status = child.wait().unwrap();
    (String::from_utf8_lossy(&shown).into_owned(), status.code())
}

#[test]
fn keys_change_the_question_and_the_program_ends_with_its_command() {
    let words = "-m Llama-3.1-8B -H 1xh100 -i";
    let (shown, code) = in_terminal(words, "s/fp8\r:isl 300\r:isk 4\rd\r");
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
    let (shown, code) = in_terminal("completions bash -i", "");
    assert!(code == Some(2) && shown.contains("one that answers no question"), "{shown}");
}
