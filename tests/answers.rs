//! Every answer in every format, compared with the hashes of the last version: an answer changes only where a change
//! names it. The questions are those of every request, random ones, and one deployment of every fourth model on systems
//! that hold it.
//!
//! `MANTILE_ANSWERS=update` writes the hashes anew; `MANTILE_ANSWERS=FOLDER` writes every body there, so that `diff -r`
//! of two such folders shows what changed.

mod draw;

use std::fmt::Write;
use std::path::Path;
use std::process::Command as Process;
use std::sync::LazyLock;

use mantile::report::format::Format;
use mantile::report::pretty::pretty;
use mantile::request::{REQUESTS, UNCONTROLLED, entry};
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use rayon::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::requests::{LINES, request};

/// Number of random questions.
const DRAWN: u64 = 75;
/// Widths of text, in columns.
const WIDTHS: [u16; 3] = [80, 100, 140];
/// Parts of an answer that the lines of the other tests do not show.
const MORE: [&str; 12] = [
    "optimize --model Qwen3-32B --hardware 4xl40s --objective perf-per-dollar --detail",
    "optimize --model Mixtral-8x7B --hardware 2xh100 --rate 2 --percentile p90 --risk p90",
    "optimize --model gpt-oss-120b --hardware 1xrtx-4090 --host-memory 128GB --weight-format any",
    "optimize --model DeepSeek-V3 --hardware 8xh200 --runtime any --pareto ttft,output_tok_s",
    "optimize --model Llama-3.1-8B --hardware rtx-4090-3090",
    "estimate --model Qwen3-30B-A3B --hardware 8xh100 --tp 1 --dp 8 --ep 8 --concurrency 64 --detail",
    "estimate --hardware 4xh100 --plan prefill\u{a0}2\u{a0}x\u{a0}tp1\u{a0}@1,\u{a0}decode\u{a0}1\u{a0}x\u{a0}tp2\u{a0}@24 --model Qwen3-32B",
    "estimate --hardware 4xh100 --command vllm\u{a0}serve\u{a0}Qwen/Qwen3-32B\u{a0}-tp\u{a0}4\u{a0}--max-num-seqs\u{a0}64",
    "place --model Llama-3.3-70B --hardware spark-mac-studio --objective throughput --detail",
    "recommend --model Llama-3.3-70B --target-tok-s 30 --users 8 --context 16k --only consumer,unified",
    "deploy --model Llama-3.3-70B --hardware 2x8xh100-sxm --plan prefill\u{a0}2\u{a0}x\u{a0}tp4\u{a0}@1,\u{a0}decode\u{a0}1\u{a0}x\u{a0}tp8\u{a0}@64",
    "inspect DeepSeek-V3 --hardware 8xh200 --tp 8",
];

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::default);

/// The answer to each of the lines, which several tests read.
static ANSWERED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let answer =
        |line: &&[&str]| (entry(line[0]).unwrap().answer)(&CATALOG, &request(line), &UNCONTROLLED).unwrap();
    LINES.par_iter().with_max_len(1).map(answer).collect()
});

/// The words of a line; a no-break space is a space within a word.
fn words(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('\u{a0}', " ")).collect()
}

/// A body of an answer: its format and the text.
type Body = (String, String);

/// The answer of the table in every format that is made from it.
fn of_table(name: &str, body: &Value) -> Vec<Body> {
    match (entry(name).unwrap().answer)(&CATALOG, body, &UNCONTROLLED) {
        Ok(answer) => in_every_format(name, &answer),
        Err(fault) => vec![("fault".into(), fault.to_string())],
    }
}

fn in_every_format(name: &str, answer: &Value) -> Vec<Body> {
    let formats = [
        ("csv", Format::Csv),
        ("svg", Format::Svg),
        ("html", Format::Html),
        ("text", Format::Table),
        ("md", Format::Markdown),
    ];
    let made = formats.into_iter().filter_map(|(ending, format)| {
        let body = entry(name).unwrap().formatted(&CATALOG, answer, format).transpose()?;
        let body = body.unwrap_or_else(|fault| panic!("{name} in {ending}: {fault}"));
        Some((ending.into(), String::from_utf8(body).unwrap()))
    });
    std::iter::once(("json".into(), pretty(answer))).chain(made).collect()
}

/// What people read, at a width.
fn text(line: &[String], width: u16) -> Body {
    let done = Process::new(env!("CARGO_BIN_EXE_mantile-opt"))
        .args(line)
        .arg("--no-config")
        .env_remove("MANTILE_HOME")
        .env("COLUMNS", width.to_string())
        .output()
        .unwrap();
    let parts = [&done.stdout, &done.stderr].map(|part| String::from_utf8_lossy(part).into_owned());
    (format!("text{width}"), parts.concat())
}

/// The answer to a command line, with its text at these widths.
fn of_line(line: &[String], widths: &[u16]) -> Vec<Body> {
    let plain: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut bodies = match LINES.iter().position(|known| *known == plain) {
        Some(at) => in_every_format(plain[0], &ANSWERED[at]),
        None => of_table(plain[0], &request(&plain)),
    };
    bodies.extend(widths.iter().map(|width| text(line, *width)));
    bodies
}

/// Requests that no command line without files makes.
fn of_bodies() -> Vec<(String, Vec<Body>)> {
    let answer = |line: &str| {
        let words = words(line);
        let plain: Vec<&str> = words.iter().map(String::as_str).collect();
        (entry(plain[0]).unwrap().answer)(&CATALOG, &request(&plain), &UNCONTROLLED).unwrap()
    };
    let one = answer("optimize --model Llama-3.1-8B --hardware 1xl40s");
    let two = answer("optimize --model Llama-3.1-8B --hardware 1xh100");
    let placed = answer("place --model Llama-3.1-8B --hardware rtx-4090-3090");
    let link = json!({"request": "optimize", "scenario": {"model": "Qwen3-0.6B", "hardware": "1xh100"}});
    let mut rows = vec![
        (
            "verify an answer of optimize".to_owned(),
            of_table("verify", &json!({"result": one, "sample": 20})),
        ),
        ("verify an answer of place".to_owned(), of_table("verify", &json!({"result": placed}))),
        ("diff two answers".to_owned(), of_table("diff", &json!({"a": one, "b": two}))),
        ("permalink".to_owned(), of_table("permalink", &link)),
    ];
    rows.extend(
        mantile::request::reference::schema_names()
            .map(|name| (format!("schema {name}"), of_table("schema", &json!({"name": name})))),
    );
    rows
}

/// The structure of a model, and one deployment on systems that hold it: on one of so many of the catalogue, others for
/// each model.
fn of_model(at: usize, model: &str) -> (String, Vec<Body>) {
    const EACH: usize = 151;
    let systems = CATALOG.entries(CatalogKind::Systems);
    let mut all = String::new();
    for system in systems.keys().skip(at % EACH).step_by(EACH) {
        let scenario = json!({"model": model, "hardware": system, "deployment": {"both": {"tp": 1}}});
        let bodies = of_table("estimate", &json!({ "scenario": scenario }));
        writeln!(all, "{system}: {}", bodies[0].1).unwrap();
    }
    let mut bodies = of_table("inspect", &json!({ "model": model }));
    bodies.push(("estimates".into(), all));
    (format!("structure and estimates of {model}"), bodies)
}

/// Every question with its bodies.
fn answers() -> Vec<(String, Vec<Body>)> {
    // Before a thread of the pool waits for them: it computes them.
    LazyLock::force(&ANSWERED);
    let lines = LINES.iter().map(|line| line.iter().map(|word| (*word).to_owned()).collect());
    let fixed: Vec<Vec<String>> = lines.chain(MORE.iter().map(|line| words(line))).collect();
    let mut random = fastrand::Rng::with_seed(35);
    let drawn: Vec<Vec<String>> = (0..DRAWN).map(|_| draw::question(&mut random)).collect();
    let fixed = fixed.par_iter().with_max_len(1).map(|line| (line.join(" "), of_line(line, &WIDTHS)));
    let drawn = drawn.par_iter().enumerate().with_max_len(1).map(|(at, line)| {
        // A text is another run of the program: of every third question, in each width in turn.
        let width = (at % 3 == 0).then(|| WIDTHS[at / 3 % WIDTHS.len()]);
        (line.join(" "), of_line(line, width.as_slice()))
    });
    let entries = CATALOG.entries(CatalogKind::Models);
    let models: Vec<&String> = entries.keys().step_by(8).collect();
    let models = models.par_iter().enumerate().with_max_len(1).map(|(at, model)| of_model(at, model));
    let mut all: Vec<(String, Vec<Body>)> = fixed.collect();
    all.extend(drawn.collect::<Vec<_>>());
    all.extend(models.collect::<Vec<_>>());
    all.extend(of_bodies());
    all
}

/// The first digits of the SHA-256 of a text.
fn hash(text: &str) -> String {
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Writes every body to a file of its own.
fn dump(folder: &Path, answers: &[(String, Vec<Body>)]) {
    for (at, (question, bodies)) in answers.iter().enumerate() {
        let folder = folder.join(format!("{at:04}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("question"), question).unwrap();
        for (format, body) in bodies {
            std::fs::write(folder.join(format), body).unwrap();
        }
    }
}

#[test]
fn answers_are_those_of_the_last_version() {
    // The last bits of logarithms and powers are those of the platform's library.
    if !cfg!(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")) {
        eprintln!("NOT CHECKED: the hashes are those of x86-64 Linux with glibc");
        return;
    }
    let answers = answers();
    // Which zero a maximum has is not defined, so that a negative one is not the same everywhere.
    for (question, bodies) in &answers {
        assert!(!bodies.iter().any(|(_, body)| body.contains("\"-0.0\"")), "{question}: a negative zero");
    }
    let row = |(question, bodies): &(String, Vec<Body>)| {
        let hashes: Vec<String> =
            bodies.iter().map(|(format, body)| format!("{format}={}", hash(body))).collect();
        format!("{question}\t{}", hashes.join(" "))
    };
    let found: Vec<String> = answers.iter().map(row).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/answers/hashes.tsv");
    match std::env::var("MANTILE_ANSWERS") {
        Ok(update) if update == "update" => std::fs::write(path, found.join("\n") + "\n").unwrap(),
        Ok(folder) => dump(Path::new(&folder), &answers),
        Err(_) => {}
    }
    let kept = std::fs::read_to_string(path).unwrap();
    let kept: Vec<&str> = kept.lines().collect();
    let changed: Vec<String> = found
        .iter()
        .enumerate()
        .filter(|(at, row)| kept.get(*at) != Some(&row.as_str()))
        .map(|(at, row)| format!("{at:04} {row}\n  was {}", kept.get(at).unwrap_or(&"nothing")))
        .collect();
    assert!(
        changed.is_empty() && kept.len() == found.len(),
        "{} of {} answers changed; MANTILE_ANSWERS=FOLDER writes the bodies, MANTILE_ANSWERS=update accepts them:\n{}",
        changed.len(),
        found.len(),
        changed[..changed.len().min(40)].join("\n"),
    );
}

/// Why a format is not at a door, where its answer has it.
fn reason(format: Format, door: &str) -> Option<&'static str> {
    Some(match (format, door) {
        (Format::Section, "command line" | "Python") => "a part of a page",
        (Format::Png | Format::Xlsx, "WebAssembly") => {
            "bytes: a page draws the picture itself, and has no fonts"
        }
        (Format::Parquet, "HTTP" | "Python" | "WebAssembly") => "written while rows are made: command line",
        _ => return None,
    })
}

/// Every question has every format at every door; only pictures are of answers that have something to draw. Prints the
/// matrix.
#[test]
fn every_question_has_every_format_at_every_door() {
    let command = mantile::cli::command();
    let mut drawn = std::collections::BTreeSet::new();
    for (line, answer) in LINES.iter().zip(&*ANSWERED) {
        let entry = entry(line[0]).unwrap();
        let subcommand = command.find_subcommand(line[0]).unwrap();
        let flag = subcommand.get_arguments().find(|arg| arg.get_id() == "format").unwrap();
        let offered = flag.get_possible_values();
        let mut cells = Vec::new();
        for format in entry.formats() {
            let name = format.entry().name;
            let made = entry.formatted(&CATALOG, answer, format).unwrap().is_some();
            if format.is_picture() && made {
                drawn.insert(line[0]);
            }
            // A plan that cannot run has no picture and no workbook.
            let may_lack = format.is_picture() || format == Format::Xlsx || reason(format, "HTTP").is_some();
            assert!(made || may_lack, "{line:?} has no {name}");
            let at = offered.iter().any(|value| value.get_name() == name);
            assert!(
                at || reason(format, "command line").is_some(),
                "{line:?}: --format {name} is not offered"
            );
            cells.push(name);
        }
        let more = offered.iter().filter(|value| !cells.contains(&value.get_name())).count();
        assert_eq!(more, 0, "{line:?}: a format is offered that no answer has");
        eprintln!("{:10} {}", line[0], cells.join(" "));
    }
    for entry in REQUESTS {
        let pictures = entry.formats().any(Format::is_picture);
        assert_eq!(pictures, drawn.contains(entry.name), "{}: pictures", entry.name);
    }
}

/// JSON as YAML and back is the same, numbers bit for bit, so that a saved answer in YAML is checked and read like one in
/// JSON.
#[test]
fn an_answer_in_yaml_is_the_answer_in_json() {
    for (line, answer) in LINES.iter().zip(&*ANSWERED) {
        let entry = entry(line[0]).unwrap();
        let yaml = entry.formatted(&CATALOG, answer, Format::Yaml).unwrap().unwrap();
        let again = mantile::spec::text::json_text("answer.yaml", String::from_utf8(yaml).unwrap()).unwrap();
        let again: Value = serde_json::from_str(&again).unwrap();
        assert_eq!(again.to_string(), answer.to_string(), "{line:?}");
    }
}

/// Answers of earlier versions are read: a placement that was stopped had a status of its own.
#[test]
fn the_status_of_a_placement_that_an_earlier_version_stopped_is_read() {
    use mantile::search::outcome::Status;
    for (older, status) in [("time_limit", Status::Feasible), ("interrupted", Status::Feasible)] {
        assert_eq!(serde_json::from_str::<Status>(&format!("\"{older}\"")).unwrap(), status);
    }
}
