//! Laws of what the program writes and says: whole folders, a place for each output, and no line of a file that is not
//! its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fastrand::Rng;
use mantile::spec::visible::acts;

use super::{HIDDEN, PAYLOADS};
use crate::draw::cases;

fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(words).current_dir(folder).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env("NO_COLOR", "1").output().unwrap()
}

/// Every file below a folder with its text.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in folder.read_dir().unwrap().map(Result::unwrap) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            let below = contents(&entry.path());
            found.insert(format!("{name}/"), String::new());
            found.extend(below.into_iter().map(|(path, text)| (format!("{name}/{path}"), text)));
        } else {
            found.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
    found
}

const ESTIMATE: [&str; 10] = [
    "estimate",
    "--model",
    "Llama-3.1-8B",
    "--hardware",
    "1xl40s",
    "--tp",
    "1",
    "--concurrency",
    "4",
    "--quiet",
];

fn estimate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ESTIMATE.iter().copied().chain(more.iter().copied()).collect()
}

/// Law 7: launch files are written all or none, whatever file cannot be replaced, and files of others remain.
#[test]
#[cfg(unix)]
fn a_folder_of_launch_files_is_whole_or_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(run(here, &estimate(&["--emit", "out", "--out", "answer"])).status.success());
    let whole = contents(&here.join("out"));
    assert!(whole.contains_key("server.sh") && whole.contains_key("files.json"), "{:?}", whole.keys());
    assert!(!whole.keys().any(|name| name.contains(".tmp")), "{:?}", whole.keys());
    let names: Vec<&String> = whole.keys().collect();
    let mut rng = Rng::with_seed(7);
    for case in 0..cases(5) as usize {
        let out = here.join(format!("out-{case}"));
        fs::create_dir(&out).unwrap();
        fs::write(out.join("files.json"), &whole["files.json"]).unwrap();
        fs::write(out.join("notes of mine"), "mine").unwrap();
        for name in &names {
            if rng.bool() && name.as_str() != "files.json" {
                fs::write(out.join(name), "before").unwrap();
            }
        }
        // One that cannot be replaced, in half of the cases.
        let barred = if rng.bool() { Some(*rng.choice(&names).unwrap()) } else { None };
        if let Some(name) = barred.filter(|name| name.as_str() != "files.json") {
            let _ = fs::remove_file(out.join(name));
            fs::create_dir(out.join(name)).unwrap();
            fs::write(out.join(name).join("kept"), "kept").unwrap();
        }
        let barred = barred.filter(|name| name.as_str() != "files.json");
        let before = contents(&out);
        let name = format!("out-{case}");
        let ran = run(here, &estimate(&["--emit", &name, "--out", "answer"]));
        let after = contents(&out);
        assert_eq!(ran.status.success(), barred.is_none(), "{}", String::from_utf8_lossy(&ran.stderr));
        if barred.is_some() {
            assert_eq!(after, before, "{barred:?}");
        } else {
            assert!(whole.iter().all(|(name, text)| after[name] == *text), "{:?}", after.keys());
            assert_eq!(after["notes of mine"], "mine");
            assert_eq!(after.len(), whole.len() + 1);
        }
    }
}

/// Law 8: two outputs to one place are refused before anything is written, through dots and links too.
#[test]
#[cfg(unix)]
fn each_output_has_a_place_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("below")).unwrap();
    fs::write(here.join("there"), "before").unwrap();
    std::os::unix::fs::symlink("x.json", here.join("link.json")).unwrap();
    std::os::unix::fs::symlink(".", here.join("round")).unwrap();
    let spellings =
        ["x.json", "./x.json", "below/../x.json", "link.json", "round/x.json", "round/./link.json"];
    let flags = ["--out", "--bundle", "--save-scenario", "--plot", "--emit"];
    let before = contents(&here.join("below"));
    let mut rng = Rng::with_seed(8);
    for _ in 0..cases(6) {
        let at = rng.usize(..flags.len());
        let other = (at + 1 + rng.usize(..flags.len() - 1)) % flags.len();
        let [one, two] = [0, 1].map(|_| *rng.choice(spellings).as_ref().unwrap());
        let ran = run(here, &estimate(&[flags[at], one, flags[other], two]));
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{} {one} {} {two}: {said}", flags[at], flags[other]);
        assert!(said.contains("a file of its own"), "{said}");
        assert!(!here.join("x.json").exists() && contents(&here.join("below")) == before);
    }
    let inside = run(here, &estimate(&["--emit", "round/new", "--out", "new/answer"]));
    assert_eq!(inside.status.code(), Some(2), "{}", String::from_utf8_lossy(&inside.stderr));
    let separate = run(here, &estimate(&["--out", "a.json", "--bundle", "b.json", "--json"]));
    assert!(separate.status.success(), "{}", String::from_utf8_lossy(&separate.stderr));
}

/// Law 9: shards that others edited are merged without formulas and without characters that act; honest ones as they are.
#[test]
fn merged_rows_hold_no_formula_and_nothing_that_acts() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut rng = Rng::with_seed(9);
    for case in 0..cases(6) as usize {
        let hostile = |rng: &mut Rng| match case % 2 {
            0 => PAYLOADS[rng.usize(..PAYLOADS.len())].to_owned(),
            _ => HIDDEN[rng.usize(..HIDDEN.len())].replace(['\n', '\r'], ""),
        };
        let cells: Vec<String> = (0..3).map(|_| hostile(&mut rng)).collect();
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let own: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        let csv = format!("sweep,point,points,{}\nabc,0,2,{}\nabc,1,2,1.5,-2,x\n", own[0], own.join(","));
        let header = format!("sweep,point,points,{},b,c\n", own[0]);
        let rows = csv.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>();
        fs::write(here.join("a.csv"), header + &rows).unwrap();
        let ran = run(here, &["merge", "a.csv"]);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let merged = String::from_utf8(ran.stdout).unwrap();
        assert!(!merged.chars().any(|c| acts(c) && c != '\n'), "{merged:?}");
        for cell in csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(merged.as_bytes())
            .records()
            .next()
            .unwrap()
            .unwrap()
            .iter()
        {
            let formula = cell.starts_with(['=', '+', '@', '\t'])
                || (cell.starts_with('-') && cell.parse::<f64>().is_err() && cell.len() > 1);
            assert!(!formula, "{cell:?} in {merged}");
        }
        assert!(merged.ends_with("abc,1,2,1.5,-2,x\n"), "{merged}");
        let row = serde_json::json!({"sweep": "abc", "point": 0, "points": 1, "x": cells[0]});
        fs::write(here.join("a.jsonl"), format!("{row}\n")).unwrap();
        let merged = String::from_utf8(run(here, &["merge", "a.jsonl"]).stdout).unwrap();
        assert!(!merged.chars().any(|c| acts(c) && c != '\n'), "{merged:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&merged).unwrap(), row);
    }
}

/// Law 10: no door quotes the lines of a file that it cannot read.
#[test]
fn a_fault_quotes_no_line_of_a_file() {
    const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6";
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let files = [
        format!("apiVersion: v1\nkind: Config\nusers:\n- user: {{token: {TOKEN}\n"),
        format!("apiVersion: v1\nkind: Config\nusers:\n- user:\n    token: \"{TOKEN}\n"),
        format!("apiVersion: v1\nkind: Config\nusers:\n- token: {TOKEN}\n   user: x\n"),
        format!("a: &a {TOKEN}\nb: *{TOKEN}\n"),
        format!("a: !!int {TOKEN}\n"),
        format!("{{\"users\": [{{\"token\": \"{TOKEN}\"}}]}}"),
        format!("{{\"token\": \"{TOKEN}"),
        format!("\"{TOKEN}\""),
        format!("[\"{TOKEN}\"]"),
        format!("token = \"{TOKEN}\"\ntoken = = 2\n"),
        format!("token = {TOKEN}\n"),
        TOKEN.to_owned(),
        format!("sweep,point\n{TOKEN},{TOKEN}\n"),
    ];
    let doors: [&[&str]; 12] = [
        &["estimate", "--model", "Llama-3.1-8B", "--hardware", "FILE.yaml", "--tp", "1"],
        &["estimate", "--model", "Llama-3.1-8B", "--hardware", "FILE.json", "--tp", "1"],
        &["estimate", "--model", "FILE.json", "--hardware", "1xl40s", "--tp", "1"],
        &["estimate", "--command", "FILE.yaml", "--hardware", "1xl40s"],
        &["estimate", "--scenario", "FILE.json"],
        &["estimate", "--plan-from", "FILE.json"],
        &["verify", "FILE.json"],
        &["compare", "FILE.json", "FILE.json"],
        &["diff", "FILE.json", "FILE.json"],
        &["merge", "FILE.csv"],
        &["place", "--model", "Llama-3.1-8B", "--hardware", "FILE.json"],
        &["validate", "FILE.csv"],
    ];
    let mut rng = Rng::with_seed(10);
    let all: Vec<(usize, usize)> =
        (0..files.len()).flat_map(|file| (0..doors.len()).map(move |door| (file, door))).collect();
    for case in 0..cases(40) as usize {
        let (file, door) =
            if case < all.len() { all[(case * 41) % all.len()] } else { *rng.choice(&all).unwrap() };
        for ending in ["yaml", "json", "csv"] {
            fs::write(here.join(format!("FILE.{ending}")), &files[file]).unwrap();
        }
        let text = &files[file];
        let words: Vec<&str> = doors[door]
            .iter()
            .map(|word| if doors[door].contains(&"--command") && *word == "FILE.yaml" { text } else { *word })
            .collect();
        if words.contains(&"--command") && !text.contains("apiVersion") {
            continue;
        }
        let ran = run(here, &words);
        let said =
            format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(!ran.status.success(), "{:?} took {:?}", doors[door], files[file]);
        assert!(!said.contains(TOKEN), "{:?} of {:?}:\n{said}", doors[door], files[file]);
    }
    let defaults = here.join("defaults");
    fs::create_dir(&defaults).unwrap();
    for text in [&files[9], &files[10], &files[11]] {
        fs::write(defaults.join("defaults.toml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        let ran = command.args(ESTIMATE).env("MANTILE_HOME", &defaults).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(!ran.status.success() && !said.contains(TOKEN), "{text}: {said}");
    }
}
