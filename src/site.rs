//! The page: HTML, style sheets and modules of our own. Its answers come from the WebAssembly module or from a server.
//!
//! The default question is answered in the HTML itself, so that a browser shows it before anything is loaded.

use minijinja::context;
use minijinja::value::Serde;
use serde_json::{Value, json};

use crate::report::page::{rendered_text, section, style};
use crate::request::{UNCONTROLLED, entry};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// Where a page gets its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEngine {
    /// The server that serves it.
    Server,
    /// The WebAssembly module next to it.
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

/// A file of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFile {
    /// Name in its folder.
    pub name: &'static str,
    /// Media type.
    pub media_type: &'static str,
    /// Content.
    pub text: String,
}

const HTML: &str = include_str!("site/index.html");
const STYLE: &str = include_str!("site/site.css");
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Name of the page.
pub const INDEX: &str = "index.html";
/// Names of all files but the WebAssembly module.
pub const NAMES: [&str; 11] = [
    INDEX,
    "page.css",
    "app.mjs",
    "engine.mjs",
    "forms.mjs",
    "link.mjs",
    "mantile.mjs",
    "palette.mjs",
    "pasted.mjs",
    "tables.mjs",
    "worker.mjs",
];
/// Name of the file of the WebAssembly module.
pub const MODULE: &str = "mantile.wasm";
/// Names of the modules of the page.
const SCRIPTS: [(&str, &str); 9] = [
    ("app.mjs", include_str!("site/app.mjs")),
    ("engine.mjs", include_str!("site/engine.mjs")),
    ("forms.mjs", include_str!("site/forms.mjs")),
    ("link.mjs", include_str!("site/link.mjs")),
    ("mantile.mjs", include_str!("../bindings/wasm/mantile.mjs")),
    ("palette.mjs", include_str!("site/palette.mjs")),
    ("pasted.mjs", include_str!("site/pasted.mjs")),
    ("tables.mjs", include_str!("site/tables.mjs")),
    ("worker.mjs", include_str!("site/worker.mjs")),
];

/// Ids and titles of the views.
const VIEWS: [(&str, &str); 11] = [
    ("ask", "Ask"),
    ("answer", "Answer"),
    ("why", "Why"),
    ("numbers", "Numbers"),
    ("layers", "Layers"),
    ("where", "Where"),
    ("assumptions", "Assumptions"),
    ("compare", "Compare"),
    ("library", "Library"),
    ("accuracy", "Accuracy"),
    ("buy", "Buy"),
];

/// Points of the front in the answer to the default question.
const POINTS: u64 = 40;

/// All files of the page but the module.
///
/// # Errors
/// A file of the catalogue is faulty.
pub fn files(catalog: &Catalog, engine: PageEngine) -> Result<Vec<PageFile>, Error> {
    let answered = |name: &str, body: Value| (entry(name)?.answer)(catalog, &body, &UNCONTROLLED);
    let listed = |kind: &str| answered("catalog", json!({"kind": kind}));
    let first = answered("optimize", json!({"scenario": {}, "max_front_points": POINTS}))?;
    let answer = section("optimize", &first)?.unwrap_or_default();
    let html = rendered_text(
        INDEX,
        HTML,
        context! {
            engine => engine.name(),
            version => env!("CARGO_PKG_VERSION"),
            views => VIEWS,
            answer => minijinja::Value::from_safe_string(answer),
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
        PageFile { name: INDEX, media_type: "text/html; charset=utf-8", text: html },
        PageFile { name: "page.css", media_type: "text/css; charset=utf-8", text: style() + STYLE },
    ];
    let script =
        |(name, text): (&'static str, &str)| PageFile { name, media_type: SCRIPT, text: text.to_owned() };
    Ok(page.into_iter().chain(SCRIPTS.map(script)).collect())
}
