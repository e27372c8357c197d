//! Answers as HTML: every answer has a page, markup in a name is text, and nothing is loaded from elsewhere.

use mantile::report::format::Format;
use mantile::report::page::has_template;
use mantile::request::{UNCONTROLLED, entry};
use mantile::site::{NAMES, PageEngine, files};
use mantile::store::catalog::Catalog;
use serde_json::Value;

use crate::requests::{LINES, request};

const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x>";

/// Keys whose values are free text.
const FREE: [&str; 16] = [
    "model",
    "hardware",
    "name",
    "label",
    "notation",
    "why",
    "source",
    "reason",
    "text",
    "path",
    "summary",
    "symbol",
    "command",
    "words",
    "bottleneck",
    "member",
];

/// The answer with markup in every free text.
fn hostile(answer: &Value) -> Value {
    match answer {
        Value::Object(all) => {
            let changed = all.iter().map(|(key, value)| {
                let free = value.is_string() && FREE.contains(&key.as_str());
                (key.clone(), if free { MARKUP.into() } else { hostile(value) })
            });
            Value::Object(changed.collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(hostile).collect()),
        other => other.clone(),
    }
}

#[test]
fn every_answer_is_a_page_and_markup_in_it_is_text() {
    let infeasible: &[&str] =
        &["optimize", "--model", "Llama-3.3-70B", "--hardware", "1xl40s", "--offload", "never"];
    let decided: &[&str] = &["optimize", "--model", "Llama-3.1-8B", "--hardware", "2xl40s", "--why"];
    let mut seen = 0;
    for line in LINES.iter().copied().chain([infeasible, decided]) {
        let answer =
            (entry(line[0]).unwrap().answer)(&Catalog::default(), &request(line), &UNCONTROLLED).unwrap();
        let made = |answer: &Value, format| {
            let page = entry(line[0]).unwrap().formatted(&Catalog::default(), answer, format);
            let page = page.unwrap_or_else(|fault| panic!("{line:?}: {fault}")).unwrap();
            String::from_utf8(page).unwrap()
        };
        let page = made(&answer, Format::Html);
        seen += usize::from(has_template(line[0]));
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<main>"), "{line:?}");
        for loaded in ["src=\"http", "href=\"http", "@import", "url("] {
            assert!(!page.contains(loaded), "{line:?} loads {loaded}");
        }
        let page = made(&hostile(&answer), Format::Section);
        assert!(!page.contains("<script") && !page.contains("<img"), "{line:?} has markup of a name");
    }
    assert!(seen > 12, "{seen} answers have a template");
}

#[test]
fn the_page_names_its_files_and_no_other_place() {
    for engine in [PageEngine::Server, PageEngine::Module] {
        let made = files(&Catalog::default(), engine).unwrap();
        let names: Vec<&str> = made.iter().map(|file| file.name).collect();
        assert!(NAMES.iter().all(|name| names.contains(name)) && names.len() == NAMES.len(), "{names:?}");
        for file in &made {
            let text = file.text.replace("http://www.w3.org/2000/svg", "");
            let scripts = file.name != "index.html";
            assert!(!scripts || !(text.contains("http://") || text.contains("https://")), "{}", file.name);
            // A module imports only what is next to it.
            for part in text.split(" from \"").skip(1).filter(|_| file.name.ends_with(".mjs")) {
                let name = part.split('"').next().unwrap().trim_start_matches("./");
                assert!(NAMES.contains(&name), "{} imports {name}", file.name);
            }
        }
        let bytes: usize = made
            .iter()
            .map(|file| miniz_oxide::deflate::compress_to_vec(file.text.as_bytes(), 9).len())
            .sum();
        assert!(bytes < 150_000, "{bytes} bytes compressed, at most 150 kB");
    }
}
