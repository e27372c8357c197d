//! Bundles: an answer with every file that it rests on, so that it can be made again bit for bit.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{RequestControl, entry};
use crate::report::verify::{CheckResult, Verified};
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::used_files::{DOWNLOADS, FileKey, PATHS};

const FORMAT: u64 = 1;

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundledFile {
    /// Its folder in the catalogue; `path` for a file of the user, `hf` for a download.
    pub folder: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of its text, in hexadecimal digits.
    pub sha256: String,
    /// Its text.
    pub text: String,
}

/// An answer with its request and every file that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// Version of this format.
    pub bundle: u64,
    /// Version of the program that made it.
    pub program: String,
    /// Name of the request.
    pub request: String,
    /// The request.
    pub question: Value,
    /// The answer.
    pub answer: Value,
    /// SHA-256 of the answer as JSON without spaces.
    pub answer_sha256: String,
    /// The files.
    pub files: Vec<BundledFile>,
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Answers a request and records every file that the answer rests on.
///
/// # Errors
/// The request is faulty, or its answer cannot be made again from files alone.
pub fn bundle(
    catalog: &Catalog,
    request: &str,
    question: &Value,
    control: &RequestControl,
) -> Result<Bundle, Error> {
    let (recording, used) = catalog.recording();
    let answer = (entry(request)?.answer)(&recording, question, control)?;
    let files = used.files().into_iter().map(|((folder, name), text)| BundledFile {
        folder,
        name,
        sha256: sha256(&text),
        text,
    });
    let bundle = Bundle {
        bundle: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        request: request.to_owned(),
        question: question.clone(),
        answer_sha256: sha256(&answer.to_string()),
        answer,
        files: files.collect(),
    };
    let checks = verify_bundle(&bundle, control)?;
    // A stopped search ends elsewhere the next time.
    if (control.stopped_by)().is_some() {
        let expected = "an answer that can be made again";
        let fix = "set a higher time limit, or none: the search runs to make the answer and to check it";
        return Err(Error::new("bundle", "a search that was stopped", expected, fix));
    }
    let fault = checks.checks.iter().flat_map(|check| &check.faults).next();
    match fault {
        None => Ok(bundle),
        Some(fault) => {
            let fix = "name files instead of this machine or a service, e.g. `mantile-opt detect --out machine.json`";
            Err(Error::new("bundle", fault.as_str(), "an answer that files alone decide", fix))
        }
    }
}

/// Whether the value is a bundle, of any version.
pub fn is_bundle(value: &Value) -> bool {
    value.get("bundle").is_some() && value.get("files").is_some()
}

/// The bundle in a JSON value.
///
/// # Errors
/// It is of another version, or a field is missing or unknown.
pub fn read_bundle(value: &Value) -> Result<Bundle, Error> {
    let version = value.get("bundle").and_then(Value::as_u64);
    if version != Some(FORMAT) {
        let found = value.get("bundle").map(Value::to_string).unwrap_or_default();
        let fix = "read it with the program that wrote it: its version is in `program`";
        return Err(Error::new("bundle", format!("format {found}"), format!("format {FORMAT}"), fix));
    }
    from_json(&value.to_string(), "a bundle")
}

/// Makes the answer again from the files of the bundle alone, and compares.
pub fn verify_bundle(bundle: &Bundle, control: &RequestControl) -> Result<Verified, Error> {
    let edited = |file: &&BundledFile| sha256(&file.text) != file.sha256;
    let edited = bundle.files.iter().filter(edited);
    let edited = edited.map(|file| format!("{}/{} is not the file that was bundled", file.folder, file.name));
    let edited: Vec<String> = edited.collect();
    let answered = sha256(&bundle.answer.to_string()) == bundle.answer_sha256;
    let answer_faults = if answered { vec![] } else { vec!["the answer was edited or truncated".to_owned()] };
    let files: BTreeMap<FileKey, String> = bundle
        .files
        .iter()
        .map(|file| ((file.folder.clone(), file.name.clone()), file.text.clone()))
        .collect();
    let again = (entry(&bundle.request)?.answer)(&Catalog::sealed(files), &bundle.question, control);
    let mut numbers = match again {
        Ok(again) => unequal("", &bundle.answer, &again),
        Err(fault) => vec![format!("the request no longer has an answer: {fault}")],
    };
    let program = env!("CARGO_PKG_VERSION");
    if !numbers.is_empty() && bundle.program != program {
        numbers.insert(0, format!("made by version {}, this is version {program}", bundle.program));
    }
    let numbers_of = count(&bundle.answer);
    Ok(Verified::of(
        vec![
            CheckResult::new("files: each has its SHA-256", bundle.files.len(), edited),
            CheckResult::new("answer: it has its SHA-256", 1, answer_faults),
            CheckResult::new(
                "numbers: the files alone give the same answer, bit for bit",
                numbers_of,
                numbers,
            ),
        ],
        None,
    ))
}

/// The files of a bundle that this catalogue has with another text, or not at all.
pub fn changed_files(catalog: &Catalog, bundle: &Bundle) -> Vec<String> {
    let changed = bundle.files.iter().filter(|file| {
        let outside = [PATHS, DOWNLOADS].contains(&file.folder.as_str());
        !outside && catalog.text_of(&file.folder, &file.name).as_ref() != Some(&file.text)
    });
    changed.map(|file| format!("{}/{}", file.folder, file.name)).collect()
}

fn count(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 1,
    }
}

/// The paths at which two values differ, numbers by their bits.
fn unequal(path: &str, saved: &Value, again: &Value) -> Vec<String> {
    match (saved, again) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            let null = Value::Null;
            names
                .flat_map(|name| {
                    let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    unequal(&below, a.get(name).unwrap_or(&null), b.get(name).unwrap_or(&null))
                })
                .collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.flat_map(|(at, (a, b))| unequal(&format!("{path}.{at}"), a, b)).collect()
        }
        (a, b) if a == b => vec![],
        (a, b) => vec![format!("{path}: bundled {a}, now {b}")],
    }
}
