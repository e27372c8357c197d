//! A machine that gives less than asked: no more threads, little memory. The answer stays the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use serde_json::Value;

const MANTILE: &str = env!("CARGO_BIN_EXE_mantile-opt");

const QUESTION: [&str; 8] =
    ["--model", "Qwen3-0.6B", "--hardware", "1xrtx-4090", "--objective", "latency", "--format", "json"];

/// Runs the question behind `before`, which limits what it may take.
fn limited(before: &[&str], binary: &str) -> Output {
    let mut line = before.iter().copied().chain([binary]).chain(QUESTION);
    let mut command = Command::new(line.next().unwrap());
    command.args(line).env("MANTILE_HOME", "").env("HOME", "/");
    command.output().unwrap_or_else(|fault| panic!("{before:?}: {fault}"))
}

/// The answer, which must be one.
fn answer(output: &Output) -> Value {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {complaint}", output.status);
    assert!(!complaint.contains("panicked"), "{complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn note(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_user_who_may_start_no_thread_gets_the_same_answer() {
    // Root may start what it likes: somebody else asks, from a folder that anybody may enter.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("mantile-opt");
    fs::copy(MANTILE, &copy).unwrap();
    let copy = copy.to_str().unwrap();
    let root = Command::new("id").arg("-u").output().unwrap().stdout.starts_with(b"0\n");
    let somebody: &[&str] =
        if root { &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] } else { &[] };
    let before = [somebody, &["prlimit", "--nproc=1:1"]].concat();
    let (free, one) = (limited(&[], MANTILE), limited(&before, copy));
    assert_eq!(answer(&one), answer(&free));
    assert!(note(&one).contains("no further thread can be started; 1 at work"), "{}", note(&one));
    assert_eq!(note(&free), "");
}

#[test]
fn more_threads_than_memory_for_their_stacks_are_fewer_threads() {
    let limited = limited(&["env", "RAYON_NUM_THREADS=512", "prlimit", "--as=1500000000"], MANTILE);
    answer(&limited);
    assert!(note(&limited).contains("no further thread can be started"), "{}", note(&limited));
}
