//! `inspect`: the structure of a model, or the differences of two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use super::given_plan::planned_problem;
use crate::graph::inspect::Inspection;
use crate::graph::model::ModelGraph;
use crate::report::inspect::Inspected;
use crate::report::inspect::compare::Comparison;
use crate::report::inspect::total::Reconciliation;
use crate::report::parallel::{ParallelGraph, parallel_graph};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A request of `inspect`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InspectRequest {
    /// The model.
    pub model: String,
    /// Another model, or another revision, to compare it with.
    pub compared_with: Option<String>,
    /// Overrides of keys of config.json, as `model.KEY=VALUE`.
    pub overrides: Vec<String>,
    /// Hardware on which to show the parallelised model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// The deployment on that hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployment>,
}

/// A report of `inspect`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum InspectReport {
    /// Structure of a model.
    Model(Box<Inspected>),
    /// Differences between two models.
    Comparison(Comparison),
    /// The parallelised model on given hardware.
    Parallel(ParallelGraph),
}

/// Reports the structure of a model, or the differences of two.
pub fn inspect(
    catalog: &Catalog,
    request: &InspectRequest,
    _: &RequestControl,
) -> Result<InspectReport, Error> {
    if request.hardware.is_none() && request.deployment.is_some() {
        let fix = "add --hardware, e.g. --hardware 8xh100";
        return Err(Error::new("hardware", "a deployment without hardware", "the hardware of it", fix));
    }
    if let Some(hardware) = &request.hardware {
        return parallelised(catalog, request, hardware).map(InspectReport::Parallel);
    }
    let one = inspected(catalog, &request.model, &request.overrides)?;
    Ok(match &request.compared_with {
        None => InspectReport::Model(Box::new(one)),
        Some(other) => {
            let two = inspected(catalog, other, &[])?;
            InspectReport::Comparison(Comparison::of([&request.model, other], [&one, &two]))
        }
    })
}

/// The parallelised model of a request.
fn parallelised(catalog: &Catalog, request: &InspectRequest, hardware: &str) -> Result<ParallelGraph, Error> {
    let scenario = Scenario {
        model: Some(request.model.clone()),
        hardware: Some(hardware.to_owned()),
        set: (!request.overrides.is_empty()).then(|| request.overrides.clone()),
        deployment: request.deployment.clone(),
        // The graph is that of the model's shape and the devices: no runtime and no lengths are part of the request.
        theoretical: Some(true),
        isl: Some(1),
        osl: Some(1),
        ..Scenario::default()
    };
    let (_, problem, candidate) = planned_problem(catalog, &scenario)?;
    Ok(parallel_graph(&problem, &candidate, request.model.clone()))
}

/// The structure of the model that `name` refers to.
fn inspected(catalog: &Catalog, name: &str, overrides: &[String]) -> Result<Inspected, Error> {
    let model = catalog.model(name)?;
    let in_file = |fault: Error| fault.in_file(&model.source);
    let (mut config, mut keys) = (model.config.clone(), vec![]);
    for stated in overrides {
        // The path as in a scenario, or the key alone.
        let Some((key, value)) = stated.strip_prefix("model.").unwrap_or(stated).split_once('=') else {
            let fix = "write e.g. --set model.sliding_window=4096";
            return Err(Error::new("set", stated.as_str(), "model.KEY=VALUE", fix));
        };
        // Values that are not JSON are texts.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        config = config.with(key, value).map_err(in_file)?.into();
        keys.push(key.to_owned());
    }
    let graph = ModelGraph::build(&config).map_err(in_file)?;
    catalog.unknown_keys.check(&model.source, &graph.ignored_keys)?;
    let named = model.named.as_ref().map(|published| published.weight_format.as_str());
    // A checkpoint known only by name may have another layout than this configuration.
    let inspection = match named {
        None => Inspection::of_checkpoint(&graph, &config),
        Some(_) => Inspection::of(&graph),
    };
    // The published count is that of the unmodified file.
    let total = model.published_total.as_ref().filter(|_| keys.is_empty());
    Ok(Inspected {
        weight_format: named.or(config.weight_format()).map(str::to_owned),
        published_total: total.map(|total| Reconciliation::of(&inspection, total)),
        inspection: inspection.overridden(&keys),
        name: model.name,
        source: match model.read_as {
            Some(base) => format!("read as {base}: {}", model.source),
            None => model.source,
        },
    })
}
