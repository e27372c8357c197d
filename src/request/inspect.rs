//! `inspect`: the structure of a model, or the differences of two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use crate::graph::inspect::Inspection;
use crate::graph::model::ModelGraph;
use crate::report::inspect::Inspected;
use crate::report::inspect::compare::Comparison;
use crate::report::inspect::total::Reconciliation;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// A request of `inspect`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InspectRequest {
    /// The model.
    pub model: String,
    /// Another model, or another revision, to compare it with.
    pub compared_with: Option<String>,
    /// Overrides of keys of config.json, as `KEY=VALUE`.
    pub overrides: Vec<String>,
}

/// A report of `inspect`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum InspectReport {
    /// Structure of a model.
    Model(Box<Inspected>),
    /// Differences between two models.
    Comparison(Comparison),
}

/// Reports the structure of a model, or the differences of two.
///
/// # Errors
/// A model is not found or not supported, or an override is faulty.
pub fn inspect(
    catalog: &Catalog,
    request: &InspectRequest,
    _control: &RequestControl,
) -> Result<InspectReport, Error> {
    let one = inspected(catalog, &request.model, &request.overrides)?;
    Ok(match &request.compared_with {
        None => InspectReport::Model(Box::new(one)),
        Some(other) => {
            let two = inspected(catalog, other, &[])?;
            InspectReport::Comparison(Comparison::of([&request.model, other], [&one, &two]))
        }
    })
}

/// The structure of the model that `name` refers to.
fn inspected(catalog: &Catalog, name: &str, overrides: &[String]) -> Result<Inspected, Error> {
    let model = catalog.model(name)?;
    let in_file = |fault: Error| fault.in_file(&model.source);
    let (mut config, mut keys) = (model.config.clone(), vec![]);
    for stated in overrides {
        let Some((key, value)) = stated.split_once('=') else {
            let fix = "write e.g. --override sliding_window=4096";
            return Err(Error::new("override", stated.as_str(), "KEY=VALUE", fix));
        };
        // Values that are not JSON are texts.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        config = config.with(key, value).map_err(in_file)?;
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
        source: model.source,
    })
}
