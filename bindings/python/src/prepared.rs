//! A prepared plan: prices single steps in microseconds, for simulators that schedule requests themselves.

use mantile::{Door, PricedPlan, PricedStep, UNCONTROLLED, from_json};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::{catalog, raised};

/// Time of a step, in seconds.
#[pyclass(frozen, get_all, module = "mantile")]
#[derive(Clone, Copy)]
pub struct StepTime {
    /// Until every request of the step has its tokens.
    seconds: f64,
    /// Until one micro-batch has passed all pipeline stages; the same without a pipeline.
    pass_s: f64,
    /// For which the slowest pipeline stage is taken by a micro-batch.
    stage_s: f64,
    /// In which the arithmetic of a device is busy.
    compute_s: f64,
    /// In which the memory of a device is busy.
    memory_s: f64,
}

#[pymethods]
impl StepTime {
    fn __repr__(&self) -> String {
        let StepTime { seconds, pass_s, stage_s, compute_s, memory_s } = self;
        format!(
            "StepTime(seconds={seconds:?}, pass_s={pass_s:?}, stage_s={stage_s:?}, compute_s={compute_s:?}, \
             memory_s={memory_s:?})"
        )
    }
}

/// A plan whose steps are priced one by one, with the numbers of `estimate`. Every number is that of one replica.
#[pyclass(frozen, module = "mantile")]
pub struct PreparedPlan {
    body: String,
    plan: PricedPlan,
}

/// Tokens as a caller states them.
fn tokens(name: &str, value: f64) -> PyResult<f64> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => Err(PyValueError::new_err(format!("{name}: {value} is no number of tokens"))),
    }
}

/// New tokens of a prompt.
fn new_tokens(value: f64) -> PyResult<f64> {
    match tokens("tokens", value)? {
        0.0 => Err(PyValueError::new_err("tokens: a prompt has one new token at least")),
        value => Ok(value),
    }
}

/// Seconds, or all times.
fn shown(py: Python<'_>, step: PricedStep, breakdown: bool) -> PyResult<Py<PyAny>> {
    let PricedStep { seconds, pass_s, stage_s, compute_s, memory_s } = step;
    Ok(match breakdown {
        true => Py::new(py, StepTime { seconds, pass_s, stage_s, compute_s, memory_s })?.into_any(),
        false => seconds.into_pyobject(py)?.into_any().unbind(),
    })
}

#[pymethods]
impl PreparedPlan {
    #[new]
    fn new(py: Python<'_>, body: String) -> PyResult<PreparedPlan> {
        let plan = py.detach(|| {
            let request: Value = from_json(&body, "a request in JSON")?;
            PricedPlan::of_json(Door::Python, &catalog()?, &request, &UNCONTROLLED)
        });
        Ok(PreparedPlan { plan: plan.map_err(|fault| raised(py, fault))?, body })
    }

    /// Seconds of a step with these prompts, each as (new tokens, cached tokens), and these decoding requests, each as
    /// its cached tokens; all times of it with `breakdown`.
    #[pyo3(signature = (prefill=vec![], decode=vec![], *, breakdown=false))]
    fn step(
        &self,
        py: Python<'_>,
        prefill: Vec<(f64, f64)>,
        decode: Vec<f64>,
        breakdown: bool,
    ) -> PyResult<Py<PyAny>> {
        for (new, cached) in &prefill {
            new_tokens(*new)?;
            tokens("context", *cached)?;
        }
        decode.iter().try_for_each(|cached| tokens("context", *cached).map(drop))?;
        shown(py, self.plan.step(&prefill, &decode), breakdown)
    }

    /// Seconds of a decode step of `batch` requests with `context` cached tokens each.
    #[pyo3(signature = (batch, context, *, breakdown=false))]
    fn decode(&self, py: Python<'_>, batch: u64, context: f64, breakdown: bool) -> PyResult<Py<PyAny>> {
        shown(py, self.plan.decode(batch, tokens("context", context)?), breakdown)
    }

    /// Seconds of the prefill of a prompt of `tokens` new tokens after `context` cached ones; of `batch` such prompts.
    #[pyo3(signature = (tokens, context=0.0, *, batch=1, breakdown=false))]
    fn prefill(
        &self,
        py: Python<'_>,
        tokens: f64,
        context: f64,
        batch: u64,
        breakdown: bool,
    ) -> PyResult<Py<PyAny>> {
        let cached = self::tokens("context", context)?;
        shown(py, self.plan.prefill(batch, new_tokens(tokens)?, cached), breakdown)
    }

    /// The plan in one line.
    #[getter]
    fn notation(&self) -> &str {
        &self.plan.notation
    }

    /// Tokens that the KV cache holds.
    #[getter]
    fn kv_tokens(&self) -> u64 {
        self.plan.kv_tokens
    }

    /// Requests at a time; None where the runtime has no limit.
    #[getter]
    fn max_num_seqs(&self) -> Option<u64> {
        self.plan.most_requests
    }

    /// New tokens that the scheduler puts into one step.
    #[getter]
    fn max_num_batched_tokens(&self) -> u64 {
        self.plan.most_step_tokens
    }

    fn __repr__(&self) -> String {
        format!("<mantile plan {}, {} tokens of KV cache>", self.plan.notation, self.plan.kv_tokens)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().body.clone(),))
    }
}
