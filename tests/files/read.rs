//! What is read: bounded whatever its length is said to be, and told in words where it is no file.

use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;

/// Every way into the program for a file; `{}` is its path.
const READERS: [&[&str]; 9] = [
    &["inspect", "{}"],
    &["--scenario", "{}"],
    &["--hardware", "{}"],
    &["--objective", "{}"],
    &["place", "--hardware", "{}"],
    &["validate", "{}"],
    &["verify", "{}"],
    &["fleet", "--file", "{}"],
    &["fleet", "--trace", "{}"],
];

fn args<'a>(reader: &[&'a str], path: &'a str) -> Vec<&'a str> {
    reader.iter().map(|part| if *part == "{}" { path } else { part }).collect()
}

/// What `catalog check` says of a path that is no file, on standard output as of any file.
fn checked(path: &str) -> String {
    let output = run(&["catalog", "check", path]);
    assert_eq!(output.status.code(), Some(2));
    text(&output.stdout) + &text(&output.stderr)
}

/// The command in so much address space that a file read whole would not fit.
fn confined(args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 1500000; exec \"$0\" \"$@\"", MANTILE]).args(args);
    command.env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).env("RAYON_NUM_THREADS", "1");
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn what_never_ends_is_read_to_a_bound_everywhere() {
    for reader in READERS {
        // A path that ends in .json is a path in every flag.
        let folder = tempfile::tempdir().unwrap();
        let endless = folder.path().join("endless.json");
        symlink("/dev/zero", &endless).unwrap();
        let fault = refused(&confined(&args(reader, endless.to_str().unwrap())));
        assert!(fault.contains("bytes") || fault.contains("device"), "{reader:?}: {fault}");
        assert!(fault.contains("endless.json"), "{reader:?}: {fault}");
    }
    assert!(checked("/dev/zero").contains("a pipe or a device"));
}

#[test]
fn a_pipe_is_read_and_one_that_never_ends_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let fed = |script: &str| {
        let mut feeder = Command::new("sh").args(["-c", script]).arg(&pipe).spawn().unwrap();
        let output = confined(&["--scenario", pipe.to_str().unwrap(), "--isl", "100", "--osl", "10"]);
        feeder.wait().unwrap();
        output
    };
    let good = fed("echo '{\"model\": \"Llama-3.1-8B\", \"hardware\": \"1xh100\"}' > \"$0\"");
    assert!(good.status.success(), "{}", text(&good.stderr));
    let fault = refused(&fed("cat /dev/zero > \"$0\" 2>/dev/null"));
    assert!(fault.contains("more than"), "{fault}");
}

#[test]
fn a_pipe_in_a_catalogue_is_not_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let devices = home.path().join("hardware/devices");
    fs::create_dir_all(&devices).unwrap();
    assert!(Command::new("mkfifo").arg(devices.join("pipe.json")).status().unwrap().success());
    let mut child = mantile(&["catalog", "devices"])
        .env("MANTILE_HOME", home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..600 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let waits = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    assert!(!waits, "it waits for the pipe");
    assert!(refused(&child.wait_with_output().unwrap()).contains("pipe.json"));
}

#[test]
fn rings_of_links_and_folders_are_shown_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.json"), folder.path().join("two.json"));
    symlink(&one, &two).unwrap();
    symlink(&two, &one).unwrap();
    let inner = folder.path().join("folder.json");
    fs::create_dir(&inner).unwrap();
    for reader in READERS {
        let fault = refused(&run(&args(reader, one.to_str().unwrap())));
        assert!(fault.contains("ring of symbolic links"), "{reader:?}: {fault}");
        let fault = refused(&run(&args(reader, inner.to_str().unwrap())));
        // A folder may be a model's, or one of catalogue files, and then holds nothing here.
        assert!(
            ["folder", "no such file", "no .json"].iter().any(|w| fault.contains(w)),
            "{reader:?}: {fault}"
        );
    }
    assert!(checked(one.to_str().unwrap()).contains("ring of symbolic links"));
    assert!(checked(inner.to_str().unwrap()).contains("no .json file"));
    let out = refused(&run(&["glossary", "--out", one.to_str().unwrap()]));
    assert!(out.contains("ring of symbolic links"), "{out}");
}

#[test]
fn a_folder_that_holds_itself_is_checked_once() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        symlink(folder.path(), folder.path().join(name)).unwrap();
    }
    let link = text(&run(&["catalog", "links", "pcie5x16", "--format", "json"]).stdout);
    assert!(link.contains("\"id\""), "{link}");
    fs::write(folder.path().join("pcie5x16.json"), &link).unwrap();
    let checked = run(&["catalog", "check", folder.path().to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert_eq!(text(&checked.stdout).matches(": OK").count(), 1, "{}", text(&checked.stdout));
}

#[test]
fn a_byte_order_mark_is_no_fault_and_a_key_twice_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    let scenario = |text: &str| {
        fs::write(&path, text).unwrap();
        run(&["--scenario", path.to_str().unwrap()])
    };
    let plain = "{\"model\": \"Llama-3.1-8B\",\n \"hardware\": \"1xh100\", \"isl\": 100, \"osl\": 10}";
    let found = scenario(plain);
    assert!(found.status.success(), "{}", text(&found.stderr));
    assert_eq!(scenario(&format!("\u{feff}{plain}")).stdout, found.stdout);
    let fault = refused(&scenario("{\"isl\": 100,\n \"osl\": 10,\n \"isl\": 200}"));
    assert!(fault.contains("s.json") && fault.contains("`isl`") && fault.contains("line 3"), "{fault}");

    let config = text(&run(&["catalog", "models", "Qwen3-8B", "--format", "json"]).stdout);
    let config = serde_json::from_str::<serde_json::Value>(&config).unwrap()["config"].to_string();
    let model = folder.path().join("config.json");
    fs::write(&model, format!("\u{feff}{config}")).unwrap();
    assert!(run(&["inspect", model.to_str().unwrap()]).status.success());
    fs::write(&model, config.replacen('{', "{\"hidden_size\": 1,\n", 1)).unwrap();
    let fault = refused(&run(&["inspect", model.to_str().unwrap()]));
    assert!(
        fault.contains("config.json") && fault.contains("`hidden_size`") && fault.contains("line 2"),
        "{fault}"
    );

    let table = folder.path().join("t.csv");
    fs::write(&table, "\u{feff}model,hardware,runtime,isl\nQwen3-8B,h100,vllm,x\n").unwrap();
    assert!(refused(&run(&["validate", table.to_str().unwrap()])).contains("row 2: isl"));
}

#[test]
fn long_values_are_cut_and_errors_stay_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    let long = "x".repeat(100_000);
    for text in [
        format!("{{\"isl\": \"{long}\"}}"),
        format!("{{\"{long}\": 1}}"),
        format!("{{\"model\": \"{long}\"}}"),
        format!("{{\"hardware\": \"{long}\"}}"),
        format!("{{\"objective\": \"{long}\"}}"),
        format!("{{\"isl\": [{long}"),
    ] {
        fs::write(&path, &text).unwrap();
        let fault = refused(&run(&["--scenario", path.to_str().unwrap()]));
        assert!(fault.chars().count() < 6000, "{} characters", fault.chars().count());
    }
}

#[test]
fn a_catalogue_that_is_named_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for home in [folder.path().join("none"), file.clone()] {
        let fault = refused(&mantile(&["catalog", "devices"]).env("MANTILE_HOME", &home).output().unwrap());
        assert!(fault.contains("MANTILE_HOME") && fault.contains(home.to_str().unwrap()), "{fault}");
        // What needs no catalogue does without.
        assert!(mantile(&["glossary"]).env("MANTILE_HOME", &home).output().unwrap().status.success());
    }
    fs::create_dir(folder.path().join("hardware")).unwrap();
    fs::write(folder.path().join("hardware/devices"), "").unwrap();
    let fault =
        refused(&mantile(&["catalog", "devices"]).env("MANTILE_HOME", folder.path()).output().unwrap());
    assert!(fault.contains("hardware/devices") && fault.contains("a file where a folder"), "{fault}");
}
