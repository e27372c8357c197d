//! The compiled part of the Python package: one function for every request, and the command line.

mod prepared;
mod searching;

use std::sync::Arc;

use mantile::{
    Catalog, Door, Error, FORMATS, Format, REQUESTS, ThisMachine, entry, from_json, merge_reports, pretty,
    sweep_fingerprint,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

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
        let named = |text: &String| Ok((String::new(), from_json(text, "an answer")?));
        merge_reports(shards.iter().map(named).collect::<Result<_, Error>>()?).map(|whole| pretty(&whole))
    })
    .map_err(|fault| raised(py, fault))
}

/// What the files of the shards of one sweep are named by: it is of the contents of all that the sweep reads.
#[pyfunction]
fn fingerprint(py: Python<'_>, body: &str) -> PyResult<String> {
    py.detach(|| sweep_fingerprint(&catalog()?, &from_json(body, "a request")?))
        .map_err(|fault| raised(py, fault))
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

/// The formats of answers with the endings of their files, as JSON.
#[pyfunction]
fn formats() -> String {
    let rows: serde_json::Map<String, Value> =
        FORMATS.iter().map(|entry| (entry.name.to_owned(), json!(entry.endings))).collect();
    json!(rows).to_string()
}

/// The format of a file, by its ending.
#[pyfunction]
fn format_of(name: &str) -> PyResult<&'static str> {
    Format::of_ending(name).map(|format| format.entry().name).ok_or_else(|| {
        let endings: Vec<&str> = FORMATS.iter().flat_map(|entry| entry.endings).copied().collect();
        PyValueError::new_err(format!("`{name}` has no ending of a format; one of .{}", endings.join(", .")))
    })
}

#[pymodule]
fn _mantile(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(answer, module)?)?;
    module.add_function(wrap_pyfunction!(render, module)?)?;
    module.add_function(wrap_pyfunction!(merged, module)?)?;
    module.add_function(wrap_pyfunction!(fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(formats, module)?)?;
    module.add_function(wrap_pyfunction!(format_of, module)?)?;
    module.add_class::<prepared::PreparedPlan>()?;
    module.add_class::<prepared::StepTime>()?;
    module.add_function(wrap_pyfunction!(requests, module)?)
}
