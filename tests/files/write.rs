//! What is written: whole or not at all, where the path leads, with the mode that was, and nothing is left beside it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use mantile::store::file;
use mantile::store::interrupt::{made, making};
use proptest::prelude::*;

use super::*;

/// What lies at the path before.
#[derive(Clone, Debug)]
enum Before {
    Nothing,
    File(u32),
    Link(u32),
    LinkToNothing,
}

fn before() -> impl Strategy<Value = Before> {
    let mode = prop::sample::select(vec![0o600, 0o640, 0o644, 0o660, 0o664, 0o755, 0o200, 0o622]);
    prop_oneof![
        Just(Before::Nothing),
        mode.clone().prop_map(Before::File),
        mode.prop_map(Before::Link),
        Just(Before::LinkToNothing),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_write_keeps_mode_link_and_folder(before in before(), texts in prop::collection::vec(".{0,99}", 1..4)) {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path().join("a.json");
        let far = elsewhere.path().join("far.json");
        let (target, mode) = match before {
            Before::Nothing => (path.clone(), None),
            Before::File(mode) => (path.clone(), Some(mode)),
            Before::Link(mode) => (far.clone(), Some(mode)),
            Before::LinkToNothing => (far.clone(), None),
        };
        if let Some(mode) = mode {
            fs::write(&target, "what was there before, and long").unwrap();
            fs::set_permissions(&target, PermissionsExt::from_mode(mode)).unwrap();
        }
        if target == far {
            symlink(&far, &path).unwrap();
        }
        for text in &texts {
            file::write(&path, text).unwrap();
        }
        // Read as whoever may: some modes allow writing alone.
        let found = fs::metadata(&target).unwrap();
        if let Some(mode) = mode {
            prop_assert_eq!(found.mode() & 0o777, mode);
        } else {
            prop_assert_eq!(found.mode() & 0o111, 0);
            prop_assert!(found.mode() & 0o600 == 0o600);
        }
        prop_assert_eq!(fs::symlink_metadata(&path).unwrap().is_symlink(), target == far);
        fs::set_permissions(&target, PermissionsExt::from_mode(0o600)).unwrap();
        prop_assert_eq!(&fs::read_to_string(&target).unwrap(), texts.last().unwrap());
        prop_assert_eq!(names_in(folder.path()), ["a.json"]);
        prop_assert!(names_in(elsewhere.path()).len() <= 1);
    }
}

#[test]
fn what_is_read_only_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.txt");
    fs::write(&path, "kept").unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    let fault = refused(&run(&["glossary", "--out", path.to_str().unwrap()]));
    assert!(fault.contains("permission denied"), "{fault}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
    assert_eq!(names_in(folder.path()), ["kept.txt"]);
    let fault = refused(&run(&["glossary", "--out", folder.path().to_str().unwrap()]));
    assert!(fault.contains("a folder"), "{fault}");
}

/// A table that every command of measurements takes.
fn table(folder: &Path) -> String {
    let path = folder.join("t.csv");
    let rows = "model,hardware,runtime,isl,osl,concurrency,tp,tpot_ms,mode\nLlama-3.1-8B,h100-sxm,vllm,128,64,4,1,9.0,agg\n";
    fs::write(&path, rows).unwrap();
    path.to_str().unwrap().to_owned()
}

const REQUESTED: [&str; 8] =
    ["--model", "Llama-3.1-8B", "--hardware", "1xh100", "--isl", "100", "--osl", "10"];

#[test]
fn a_dash_is_standard_output_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(folder.path());
    let here = |args: &[&str]| {
        let output = mantile(args).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(here(&["validate", &table, "--rows", "-"]).contains("Llama-3.1-8B,"));
    assert!(here(&["validate", &table, "--plot", "-"]).contains("<svg"));
    assert!(here(&[&REQUESTED[..], &["--pareto-out", "-"]].concat()).contains("\"ttft_ms\""));
    assert!(here(&[&REQUESTED[..], &["--save-scenario", "-"]].concat()).contains("\"hardware\": \"1xh100\""));
    assert_eq!(here(&["glossary", "--out", "-"]), here(&["glossary"]));
    assert_eq!(here(&["schema", "scenario", "--out", "-"]), here(&["schema", "scenario"]));
    assert_eq!(names_in(folder.path()), ["t.csv"]);
}

#[test]
fn a_full_disk_fails_every_output_in_words() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    for args in [
        ["--help"].as_slice(),
        &["--version"],
        &["fleet", "--help"],
        &["glossary"],
        &["man"],
        &["completions", "bash"],
        &["schema", "scenario"],
        &["catalog", "links", "--format", "csv"],
        &["catalog", "links", "--format", "json"],
    ] {
        let output = mantile(args).stdout(full.try_clone().unwrap()).output().unwrap();
        let fault = refused(&output);
        assert!(fault.contains("could not be written: no room"), "{args:?}: {fault}");
    }
    let folder = tempfile::tempdir().unwrap();
    let table = table(folder.path());
    // The ending of a picture selects its format.
    let picture = folder.path().join("full.svg");
    symlink("/dev/full", &picture).unwrap();
    let picture = picture.to_str().unwrap();
    for args in [
        ["glossary", "--out", "/dev/full"].as_slice(),
        &["validate", &table, "--rows", "/dev/full"],
        &["validate", &table, "--plot", picture],
    ] {
        let fault = refused(&run(args));
        let path = args.last().unwrap();
        assert!(fault.contains(path) && fault.contains("no room"), "{args:?}: {fault}");
    }
}

#[test]
fn a_reader_that_leaves_before_an_answer_is_shown_by_the_exit_code() {
    for args in
        ["--help", "man", "completions zsh", "inspect DeepSeek-V3 --format json", "schema scenario --out -"]
    {
        // The reader is gone before anything comes.
        let script = format!("{{ sleep 0.3; \"$0\" {args}; echo $? >&2; }} | :");
        let mut command = Command::new("sh");
        command.args(["-c", &script, MANTILE]).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"));
        let output = command.output().unwrap();
        let lost =
            "error: the output could not be written: its reader closed the pipe before the answer\n2\n";
        // The help is no answer; an answer of which nothing was read is no success.
        let expected = if args == "--help" { "0\n" } else { lost };
        assert_eq!(text(&output.stderr), expected, "{args}");
    }
}

/// An answer is not lost in silence where standard output is closed; output that a caller discards is no fault.
#[test]
#[cfg(target_os = "linux")]
fn a_closed_standard_output_is_a_fault_and_a_discarded_one_is_not() {
    let small = "--model Qwen3-0.6B --hardware 1xl40s";
    let commands = [
        format!("optimize {small}"),
        format!("estimate {small} --json"),
        format!("inspect Qwen3-0.6B {}", "--format csv"),
        format!("estimate {small} --format svg"),
        format!("estimate {small} --format xlsx"),
        "place --model Qwen3-0.6B --device rtx-4090 --device rtx-3090".to_owned(),
        format!("sweep {small} --vary concurrency=1,2 --format csv"),
        "catalog devices".to_owned(),
        "schema scenario --out -".to_owned(),
        "glossary".to_owned(),
        "--help".to_owned(),
    ];
    for args in &commands {
        let ran = |ending: &str, null: bool| {
            let mut command = Command::new("sh");
            let script = format!("\"$0\" {args} {ending}; echo $? >&2");
            command.args(["-c", &script, MANTILE]).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"));
            // Node.js and Python open it for reading and writing.
            let both = fs::File::options().read(true).write(true).open("/dev/null").unwrap();
            let command = if null { command.stdout(both) } else { &mut command };
            text(&command.output().unwrap().stderr)
        };
        let lost = "error: the output could not be written: standard output is closed\n2\n";
        let found = ran(">&-", false);
        assert!(found.ends_with(lost), "{args}: {found}");
        for (ending, null) in [(">/dev/null", false), ("", false), ("", true), ("| cat >/dev/null", true)] {
            let found = ran(ending, null);
            assert!(found.ends_with("0\n") && !found.contains("closed"), "{args} {ending}: {found}");
        }
    }
    // Without a shell.
    let both = fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    let mut command = Command::new(MANTILE);
    command.arg("glossary").env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).stdout(both);
    assert!(command.status().unwrap().success());
}

/// The folder that a second run of this very test makes a file in.
const FOLDER: &str = "MANTILE_TEST_MAKES_IN";

/// Makes a file and waits for its end, where another test asked for it.
#[test]
fn a_file_in_the_making() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut file = making(tempfile::Builder::new().prefix(".making"), &PathBuf::from(folder)).unwrap();
    std::io::Write::write_all(&mut file, b"half of it").unwrap();
    sleep(Duration::from_secs(60));
    made(|| file.close()).unwrap();
}

fn maker(folder: &Path, before: &str) -> std::process::Child {
    let this = std::env::current_exe().unwrap();
    let script = format!("{before} exec \"$0\" --exact files::write::a_file_in_the_making --nocapture");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(this).env(FOLDER, folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while names_in(folder).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it made a file");
        sleep(Duration::from_millis(10));
    }
    child
}

fn send(child: &std::process::Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_signal_removes_the_file_in_the_making_and_ends_the_program_as_it_would() {
    // A run in the background ignores some from its beginning, and so does all that it starts.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.map_or(0, |bits| u64::from_str_radix(bits.trim(), 16).unwrap());
    for (name, number) in [("-TERM", 15), ("-HUP", 1), ("-INT", 2)] {
        if ignored >> (number - 1) & 1 == 1 {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut child = maker(folder.path(), "");
        send(&child, name);
        assert_eq!(child.wait().unwrap().signal(), Some(number), "{name}");
        assert_eq!(names_in(folder.path()), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = maker(folder.path(), "trap '' HUP;");
    send(&child, "-HUP");
    sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none() && names_in(folder.path()).len() == 1);
    send(&child, "-TERM");
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(names_in(folder.path()), Vec::<String>::new());
}
