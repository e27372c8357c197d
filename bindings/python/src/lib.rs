//! The compiled part of the Python package: one function for every request, and the command line.

mod prepared;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mantile::{
    Catalog, Control, Error, FORMATS, Format, ProgressSteps, REQUESTS, RequestControl, StoppedBy,
    ThisMachine, entry, from_json, pretty,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};

create_exception!(_mantile, MantileError, PyException, "A faulty request: key, found, expected and fix.");

/// How often a search looks for Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The catalogue of the user on this machine, as the command line has it.
fn catalog() -> Result<Catalog, Error> {
    Ok(Catalog::from_env()?.with_machine(Arc::new(ThisMachine::default())))
}

/// The error of a faulty request, with its parts as JSON.
fn raised(fault: &Error) -> PyErr {
    MantileError::new_err((fault.to_string(), json!(fault).to_string()))
}

/// The answer to the request `name`, as the text that the command line prints. `progress(done, all)` is called while it
/// is searched; Ctrl-C ends the search.
#[pyfunction]
#[pyo3(signature = (name, body, progress=None))]
fn answer(py: Python<'_>, name: &str, body: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let interrupted = AtomicBool::new(false);
    let raised_inside: Mutex<Option<PyErr>> = Mutex::new(None);
    let note = |fault: PyErr| {
        interrupted.store(true, Relaxed);
        raised_inside.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(fault);
    };
    let steps = ProgressSteps::default();
    let shown = |done: usize, all: usize| {
        if steps.reaches(done, all)
            && let Some(progress) = &progress
            && let Err(fault) = Python::attach(|py| progress.call1(py, (done, all)).map(drop))
        {
            note(fault);
        }
    };
    let last = Mutex::new(Instant::now());
    let stop = || {
        let due = last.try_lock().is_ok_and(|mut last| {
            let due = last.elapsed() >= SIGNALS_EVERY;
            if due {
                *last = Instant::now();
            }
            due
        });
        if due && let Err(fault) = Python::attach(|py| py.check_signals()) {
            note(fault);
        }
        interrupted.load(Relaxed)
    };
    let control = RequestControl {
        search: Control { progress: &shown, stop: &stop },
        stopped_by: &|| interrupted.load(Relaxed).then_some(StoppedBy::Interrupt),
    };
    let found = py.detach(|| {
        let request: Value = from_json(body, "a request in JSON")?;
        let answer = (entry(name)?.answer)(&catalog()?, &request, &control)?;
        Ok(pretty(&answer))
    });
    if let Some(fault) = raised_inside.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        return Err(fault);
    }
    found.map_err(|fault: Error| raised(&fault))
}

/// The answer to the request `name` in another format: table, json, yaml, csv, markdown or html; svg, png, xlsx or jsonl where the answer has one, else None.
#[pyfunction]
fn render(py: Python<'_>, name: &str, text: &str, format: &str) -> PyResult<Option<Vec<u8>>> {
    let format = Format::parse(format).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    py.detach(|| {
        let answer: Value = from_json(text, "an answer")?;
        entry(name)?.formatted(&catalog()?, &answer, format)
    })
    .map_err(|fault: Error| raised(&fault))
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
    module.add("MantileError", module.py().get_type::<MantileError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(answer, module)?)?;
    module.add_function(wrap_pyfunction!(render, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(formats, module)?)?;
    module.add_function(wrap_pyfunction!(format_of, module)?)?;
    module.add_class::<prepared::PreparedPlan>()?;
    module.add_class::<prepared::StepTime>()?;
    module.add_function(wrap_pyfunction!(requests, module)?)
}
