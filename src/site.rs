//! The page: HTML, style sheets and modules of our own. Its answers come from the WebAssembly module or from a server.
//!
//! The default question is answered in the HTML itself, so that a browser shows it before anything is loaded.

mod bundle;

use std::io::Read;

use flate2::Compression;
use flate2::read::GzEncoder;
use minijinja::context;
use minijinja::value::Serde;
use serde_json::{Value, json};

use self::bundle::bundled;
use crate::report::format::Format;
use crate::report::page::{rendered_text, style};
use crate::request::{UNCONTROLLED, entry};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEngine {
    Server,
    Module,
}

impl PageEngine {
    fn name(self) -> &'static str {
        match self {
            PageEngine::Server => "http",
            PageEngine::Module => "wasm",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFile {
    pub name: &'static str,
    pub media_type: &'static str,
    pub text: String,
    /// The text by gzip.
    pub packed: Vec<u8>,
}

impl PageFile {
    fn of(name: &'static str, media_type: &'static str, text: String) -> Result<PageFile, Error> {
        Ok(PageFile { name, media_type, packed: gzipped(text.as_bytes())?, text })
    }
}

/// Name of a file's compressed copy, which servers of files send where a browser takes it.
pub fn compressed_name(name: &str) -> String {
    format!("{name}.gz")
}

/// The bytes by gzip, the same for the same bytes.
///
/// # Errors
/// They could not be compressed.
pub fn gzipped(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut packed = Vec::new();
    GzEncoder::new(bytes, Compression::best()).read_to_end(&mut packed).map_err(|fault| {
        Error::new("site", fault.to_string(), "a file that can be compressed", "try again")
    })?;
    Ok(packed)
}

const HTML: &str = include_str!("site/index.html");
const STYLE: &str = include_str!("site/site.css");
const SCRIPT: &str = "text/javascript; charset=utf-8";

pub const INDEX: &str = "index.html";
/// Names of all files but the WebAssembly module.
pub const NAMES: [&str; 2 + SCRIPTS.len()] = {
    let mut names = [INDEX; 2 + SCRIPTS.len()];
    names[1] = SHEET;
    let mut at = 0;
    while at < SCRIPTS.len() {
        names[2 + at] = SCRIPTS[at].0;
        at += 1;
    }
    names
};
const SHEET: &str = "page.css";
pub const MODULE: &str = "mantile.wasm";
const OFFLINE: &str = "offline.mjs";
const ENTRY: &str = "app.mjs";
const APP: &str = include_str!("site/app.mjs");
/// Scripts that the page or its worker loads; the first has all modules.
const SCRIPTS: [(&str, &str); 4] = [
    (ENTRY, APP),
    ("mantile.mjs", include_str!("site/mantile.mjs")),
    (OFFLINE, include_str!("site/offline.mjs")),
    ("worker.mjs", include_str!("site/worker.mjs")),
];
const MODULES: [(&str, &str); 36] = [
    ("accuracy.mjs", include_str!("site/accuracy.mjs")),
    ("buy.mjs", include_str!("site/buy.mjs")),
    ("canvas.mjs", include_str!("site/canvas.mjs")),
    ("card.mjs", include_str!("site/card.mjs")),
    ("causes.mjs", include_str!("site/causes.mjs")),
    ("chart.mjs", include_str!("site/chart.mjs")),
    ("chips.mjs", include_str!("site/chips.mjs")),
    ("compare.mjs", include_str!("site/compare.mjs")),
    ("engine.mjs", include_str!("site/engine.mjs")),
    ("fabric.mjs", include_str!("site/fabric.mjs")),
    ("figures.mjs", include_str!("site/figures.mjs")),
    ("forms.mjs", include_str!("site/forms.mjs")),
    ("front.mjs", include_str!("site/front.mjs")),
    ("groups.mjs", include_str!("site/groups.mjs")),
    ("kept.mjs", include_str!("site/kept.mjs")),
    ("layers.mjs", include_str!("site/layers.mjs")),
    ("library.mjs", include_str!("site/library.mjs")),
    ("link.mjs", include_str!("site/link.mjs")),
    ("meters.mjs", include_str!("site/meters.mjs")),
    ("numbers.mjs", include_str!("site/numbers.mjs")),
    ("palette.mjs", include_str!("site/palette.mjs")),
    ("pasted.mjs", include_str!("site/pasted.mjs")),
    ("phrases.mjs", include_str!("site/phrases.mjs")),
    ("pinboard.mjs", include_str!("site/pinboard.mjs")),
    ("pins.mjs", include_str!("site/pins.mjs")),
    ("play.mjs", include_str!("site/play.mjs")),
    ("replay.mjs", include_str!("site/replay.mjs")),
    ("roofline.mjs", include_str!("site/roofline.mjs")),
    ("shortcuts.mjs", include_str!("site/shortcuts.mjs")),
    ("states.mjs", include_str!("site/states.mjs")),
    ("tables.mjs", include_str!("site/tables.mjs")),
    ("toast.mjs", include_str!("site/toast.mjs")),
    ("tools.mjs", include_str!("site/tools.mjs")),
    ("traffic.mjs", include_str!("site/traffic.mjs")),
    ("why.mjs", include_str!("site/why.mjs")),
    ("wire.mjs", include_str!("site/wire.mjs")),
];

const VIEWS: [(&str, &str); 12] = [
    ("ask", "Ask"),
    ("answer", "Answer"),
    ("why", "Why"),
    ("numbers", "Numbers"),
    ("where", "Where"),
    ("traffic", "Traffic"),
    ("assumptions", "Assumptions"),
    ("buy", "Buy"),
    ("compare", "Compare"),
    ("layers", "Layers"),
    ("library", "Library"),
    ("accuracy", "Accuracy"),
];

/// Points of the front in the answer to the default question.
const POINTS: u64 = 40;

/// Entries whose figures the page offers for overrides, with the first part of their paths.
const OVERRIDDEN: [(&str, &str, &str); 3] =
    [("device", "devices", "h100-sxm"), ("system", "systems", "8xh100"), ("runtime", "runtimes", "vllm")];

/// Paths of the figures of a file: objects with a `value`.
fn figures(file: &Value, path: &str, found: &mut Vec<String>) {
    match file.as_object() {
        Some(object) if object.contains_key("value") => found.push(path.to_owned()),
        Some(object) => {
            object.iter().for_each(|(key, value)| figures(value, &format!("{path}.{key}"), found))
        }
        None => {}
    }
}

/// A script without indents and the lines that are comments alone: they are for who reads the source, and a tenth of the
/// page.
fn compacted(text: &str) -> String {
    let mut inside = false;
    let is_code = |line: &&str| {
        let opened = inside || line.starts_with("/*");
        inside = opened && !line.ends_with("*/");
        !opened && !line.starts_with("//")
    };
    text.lines().map(str::trim).filter(is_code).map(|line| format!("{line}\n")).collect()
}

/// The answer that is shown until the script has it: its first view, without the texts of the launch files.
fn first_screen(catalog: &Catalog, mut first: Value) -> Result<String, Error> {
    for file in first.pointer_mut("/launch/files").and_then(Value::as_array_mut).into_iter().flatten() {
        file["text"] = json!("");
    }
    let whole = entry("optimize")?.formatted(catalog, &first, Format::Section)?.unwrap_or_default();
    let whole = String::from_utf8(whole).unwrap_or_default();
    let end = whole.find("<section data-view=\"why\"").unwrap_or(whole.len());
    Ok(whole[..end].to_owned())
}

/// All files of the page but the module.
pub fn files(catalog: &Catalog, engine: PageEngine) -> Result<Vec<PageFile>, Error> {
    let answered = |name: &str, body: Value| (entry(name)?.answer)(catalog, &body, &UNCONTROLLED);
    let listed = |kind: &str| answered("catalog", json!({"kind": kind}));
    let answer =
        first_screen(catalog, answered("optimize", json!({"scenario": {}, "max_front_points": POINTS}))?)?;
    let mut paths = vec!["model.num_hidden_layers".to_owned()];
    for (part, kind, name) in OVERRIDDEN {
        figures(&answered("catalog", json!({"kind": kind, "name": name}))?, part, &mut paths);
    }
    let html = rendered_text(
        INDEX,
        HTML,
        context! {
            engine => engine.name(),
            version => env!("CARGO_PKG_VERSION"),
            views => VIEWS,
            answer => minijinja::Value::from_safe_string(answer),
            paths,
            models => Serde(listed("models")?),
            systems => Serde(listed("systems")?),
            rigs => Serde(listed("rigs")?),
            runtimes => Serde(listed("runtimes")?),
            formats => Serde(listed("formats")?),
            objectives => Serde(listed("objectives")?),
            workloads => Serde(listed("workloads")?),
        },
    )?;
    let page = [
        PageFile::of(INDEX, "text/html; charset=utf-8", html),
        PageFile::of(SHEET, "text/css; charset=utf-8", style() + STYLE),
    ];
    // The other files of the site, which its script keeps for a reload without a network.
    let kept = || {
        let all = NAMES.into_iter().filter(|name| *name != OFFLINE).chain([MODULE]);
        all.collect::<Vec<_>>().join(" ")
    };
    let modules = MODULES.map(|(name, text)| (name, compacted(text)));
    let modules: Vec<(&str, &str)> = modules.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let script = |(name, text): (&'static str, &str)| {
        let text = compacted(text);
        let text = if name == ENTRY { bundled((name, &text), &modules) } else { text };
        let text = if name == OFFLINE { text.replace("{{ files }}", &kept()) } else { text };
        PageFile::of(name, SCRIPT, text)
    };
    page.into_iter().chain(SCRIPTS.map(script)).collect()
}
