//! The compiled part of the Python package: one function for every request, and the command line.

mod searching;

use std::sync::Arc;

use mantile::{Catalog, Door, Error, Format, REQUESTS, ThisMachine, entry, from_json, pretty};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value, json};

use searching::searched;

/// The catalogue of the user on this machine, as the command line has it.
fn catalog() -> Result<Catalog, Error> {
    Ok(Catalog::from_env()?.with_machine(Arc::new(ThisMachine::default())))
}

/// The exception of a faulty request, a class of Python, with the parts of the fault.
fn raised(py: Python<'_>, fault: Error) -> PyErr {
    let fault = Door::Python.fault(fault);
    let made = || {
        let parts = PyDict::new(py);
        for (name, part) in [
            ("file", &fault.file),
            ("key", &fault.key),
            ("found", &fault.found),
            ("expected", &fault.expected),
            ("fix", &fault.fix),
        ] {
            parts.set_item(name, part)?;
        }
        py.import("mantile._errors")?.getattr("MantileError")?.call((fault.to_string(),), Some(&parts))
    };
    made().map_or_else(|broken| broken, PyErr::from_value)
}

/// The answer to the request `name`, as the text that the command line prints. `progress(done, all)` is called while it
/// is searched; Ctrl-C ends the search.
#[pyfunction]
#[pyo3(signature = (name, body, progress=None))]
fn answer(py: Python<'_>, name: String, body: String, progress: Option<Py<PyAny>>) -> PyResult<String> {
    searched(py, progress, move |control| {
        let request: Value = from_json(&body, "a request in JSON")?;
        let answer = (entry(&name)?.answer_at)(Door::Python, &catalog()?, &request, control)?;
        Ok(pretty(&answer))
    })?
    .map_err(|fault| raised(py, fault))
}

/// The answer to the request `name` in another format: table, json, yaml, csv, markdown or html; svg, png, xlsx or jsonl where the answer has one, else None.
#[pyfunction]
fn render(py: Python<'_>, name: String, text: String, format: &str) -> PyResult<Option<Vec<u8>>> {
    let format = Format::parse(format).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    searched(py, None, move |_| {
        let answer: Value = from_json(&text, "an answer")?;
        entry(&name)?.formatted_at(Door::Python, &catalog()?, &answer, format)
    })?
    .map_err(|fault| raised(py, fault))
}

/// The whole sweep of its shards, as the text of a sweep without shards.
#[pyfunction]
fn merged(py: Python<'_>, shards: Vec<String>) -> PyResult<String> {
    py.detach(|| {
        let mut parts = shards.iter().map(|text| from_json::<Map<String, Value>>(text, "an answer"));
        let mut whole = parts.next().transpose()?.unwrap_or_default();
        let mut rows = rows_of(&mut whole);
        for part in parts {
            let mut part = part?;
            if part.get("sweep") != whole.get("sweep") {
                let fix = "remove its file from the folder, and repeat the call";
                return Err(Error::new("shards", "a shard of another sweep", "the shards of one sweep", fix));
            }
            rows.extend(rows_of(&mut part));
        }
        rows.sort_by_key(|row| row["point"].as_u64());
        whole.shift_remove("shard");
        whole.insert("rows".to_owned(), rows.into());
        Ok(pretty(&whole))
    })
    .map_err(|fault| raised(py, fault))
}

fn rows_of(answer: &mut Map<String, Value>) -> Vec<Value> {
    match answer.get_mut("rows").map(Value::take) {
        Some(Value::Array(rows)) => rows,
        _ => vec![],
    }
}

/// Runs the command line; the exit code.
#[pyfunction]
fn main(py: Python<'_>, line: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| mantile::main_of(line))
}

/// Name, purpose and schemas of every request, as JSON.
#[pyfunction]
fn requests() -> String {
    let rows: Vec<Value> = REQUESTS
        .iter()
        .map(|entry| {
            json!({
                "name": entry.name, "about": entry.about, "request": (entry.request)(), "report": (entry.report)(),
            })
        })
        .collect();
    json!(rows).to_string()
}

#[pymodule]
fn _mantile(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(answer, module)?)?;
    module.add_function(wrap_pyfunction!(render, module)?)?;
    module.add_function(wrap_pyfunction!(merged, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(requests, module)?)
}
