//! The library as a WebAssembly module without generated glue: `mantile.mjs` has all of its JavaScript.
//!
//! A call passes UTF-8 texts through the module's memory. The result begins with its length in four bytes, little
//! endian, and its kind in one: 0 an answer, 1 a problem, 2 no such format.

use std::slice;

use mantile::{
    Catalog, Control, Error, Format, ProgressSteps, RequestControl, StoppedBy, entry, from_json, pretty,
};
use serde_json::{Value, json};

#[link(wasm_import_module = "mantile")]
unsafe extern "C" {
    /// Receives steps done and in all.
    safe fn progress(done: u32, all: u32);
    /// Whether to stop: not 0.
    safe fn stopped() -> u32;
}

/// Memory for a text of `length` bytes, which [`release`] gives back.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    Box::into_raw(vec![0u8; length].into_boxed_slice()).cast()
}

/// Gives back what [`reserve`] or [`answer`] returned.
///
/// # Safety
/// `start` and `length` are those of one such block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(start: *mut u8, length: usize) {
    // SAFETY: the caller passes a block as it was made, once.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, length)) });
}

/// The answer to a request: its name, its format (json, csv, svg, html, section) and its body.
///
/// # Safety
/// Each pair is the start and length of a block of [`reserve`] that is filled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(
    name: *const u8,
    name_length: usize,
    format: *const u8,
    format_length: usize,
    body: *const u8,
    body_length: usize,
) -> *mut u8 {
    // SAFETY: the caller fills the blocks before the call and gives them back after it.
    let [name, format, body] = [(name, name_length), (format, format_length), (body, body_length)]
        .map(|(start, length)| String::from_utf8_lossy(unsafe { slice::from_raw_parts(start, length) }));
    let (kind, text) = match answered(&name, &format, &body) {
        Ok(Some(text)) => (0, text),
        Err(fault) => (1, problem(&fault)),
        Ok(None) => (2, String::new()),
    };
    let mut result = (text.len() as u32).to_le_bytes().to_vec();
    result.push(kind);
    result.extend(text.into_bytes());
    Box::into_raw(result.into_boxed_slice()).cast()
}

fn problem(fault: &Error) -> String {
    json!(fault).to_string()
}

fn answered(name: &str, format: &str, body: &str) -> Result<Option<String>, Error> {
    let request: Value = from_json(body, "a request in JSON")?;
    let steps = ProgressSteps::default();
    let shown = |done: usize, all: usize| {
        if steps.reaches(done, all) {
            progress(done as u32, all as u32);
        }
    };
    let stop = || stopped() != 0;
    let control = RequestControl {
        search: Control { progress: &shown, stop: &stop },
        stopped_by: &|| stop().then_some(StoppedBy::Interrupt),
    };
    let entry = entry(name)?;
    // A browser has no files and no address that a request may name.
    let catalog = Catalog::default().closed(false);
    let answer = (entry.answer)(&catalog, &request, &control)?;
    match Format::parse(format)? {
        Format::Json => Ok(Some(pretty(&answer))),
        format => {
            Ok(entry.formatted(&catalog, &answer, format)?.and_then(|bytes| String::from_utf8(bytes).ok()))
        }
    }
}
