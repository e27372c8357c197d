//! `nearest`: the published measurements that are nearest to a deployment.

use crate::spec::role::Role;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::audit::planned;
use super::estimate::{EstimateRequest, estimate};
use super::validate::predict::{format as format_id, predict, runtime as runtime_id};
use super::validate::table::rows;
use crate::graph::model::ModelGraph;
use crate::report::nearest::{NearestReport, NearestRow};
use crate::report::result::ReportedDeployment;
use crate::spec::error::Error;
use crate::spec::limits::LISTED;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::kind::measured_tables;
use crate::store::resolved_scenario::ResolvedScenario;
use crate::validate::measured::MeasuredRow;
use crate::validate::summary::ScoredRow;

/// Rows of a report, if the request names no number.
const MOST: u64 = 5;

/// A request of `nearest`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NearestRequest {
    /// The problem; without a `deployment`, the best one is compared.
    pub scenario: Scenario,
    /// Number of measurements.
    pub most: u64,
    /// Measurements of every model on every device, in place of this model on this device.
    pub any: bool,
}

impl Default for NearestRequest {
    fn default() -> NearestRequest {
        NearestRequest { scenario: Scenario::default(), most: MOST, any: false }
    }
}

/// Finds them among the published measurements that the program contains.
pub fn nearest(
    catalog: &Catalog,
    request: &NearestRequest,
    control: &RequestControl,
) -> Result<NearestReport, Error> {
    LISTED.check_whole("most", request.most)?;
    let scenario = planned(catalog, &request.scenario, control)?;
    let estimate = estimate(catalog, &EstimateRequest::of(scenario.clone()), control)?;
    let resolved = ResolvedScenario::resolve(catalog, &scenario)?;
    let device = resolved.cluster.device.measured_as();
    let mut found = Vec::new();
    for table in measured_tables() {
        // The distance has a concurrency.
        let near = |row: &MeasuredRow| (request.any || row.hardware == device) && row.traffic.is_none();
        found.extend(rows(table)?.into_iter().filter(near));
    }
    let mut same: BTreeMap<String, bool> = BTreeMap::new();
    let mut is_same = |row: &MeasuredRow| {
        *same.entry(row.model.clone()).or_insert_with(|| same_model(catalog, &resolved.graph, &row.model))
    };
    found.retain(|row| request.any || is_same(row));
    let known = found.len() as u64;
    let here = MeasuredPlace::of_deployment(&estimate.candidate, &resolved);
    // Another model, or another device, counts as another kind does.
    let mut distance = |row: &MeasuredRow| {
        let others = [!is_same(row), row.hardware != device].into_iter().filter(|differs| *differs).count();
        here.distance(&MeasuredPlace::of_row(row)) + others as f64
    };
    let mut near: Vec<(f64, MeasuredRow)> = found.into_iter().map(|row| (distance(&row), row)).collect();
    near.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    near.truncate(request.most as usize);
    let (distances, near): (Vec<f64>, Vec<MeasuredRow>) = near.into_iter().unzip();
    let scored = predict(catalog, near);
    Ok(NearestReport {
        scenario: estimate.scenario,
        question: estimate.question,
        notation: estimate.candidate.notation,
        known,
        rows: distances.into_iter().zip(&scored).map(|(distance, one)| row(distance, one)).collect(),
    })
}

/// Whether a name of a table is a model of this shape: checkpoints of one architecture cost the same.
fn same_model(catalog: &Catalog, graph: &ModelGraph, name: &str) -> bool {
    catalog.built(name).is_ok_and(|(_, other)| {
        let shape = |of: &ModelGraph| {
            (of.model_type.clone(), of.hidden.value, of.layers.value, of.unique_parameters())
        };
        shape(graph) == shape(&other)
    })
}

/// Where a run lies among others.
#[derive(Clone, Debug, PartialEq)]
struct MeasuredPlace {
    /// Runtime, weight format, and whether prefill has devices of its own.
    kinds: (String, String, bool),
    /// ISL, OSL, devices of a replica or decode worker, concurrency per device.
    sizes: [f64; 4],
}

impl MeasuredPlace {
    fn of_deployment(of: &ReportedDeployment, resolved: &ResolvedScenario) -> MeasuredPlace {
        let decode = &of.plan.decode;
        let workload = &resolved.workload;
        MeasuredPlace {
            kinds: (
                resolved.runtime.id.clone(),
                of.weight_format.clone(),
                of.plan.prefill.role == Role::Prefill,
            ),
            sizes: [
                workload.isl as f64,
                workload.osl as f64,
                decode.plan.devices() as f64,
                of.concurrency / of.devices.max(1) as f64,
            ],
        }
    }

    fn of_row(row: &MeasuredRow) -> MeasuredPlace {
        let decode = row.pools.last();
        let each = decode.map_or(1, |pool| pool.tp * pool.pp * pool.dp);
        MeasuredPlace {
            kinds: (runtime_id(&row.runtime), format_id(&row.weight_format), row.pools.len() > 1),
            sizes: [
                row.isl as f64,
                row.osl as f64,
                each as f64,
                row.concurrency.unwrap_or(1) as f64 / row.devices.unwrap_or(each).max(1) as f64,
            ],
        }
    }

    /// The sum of the absolute logarithms of the ratios of sizes; another runtime, weight format or mode counts as much as
    /// a ratio of e each.
    fn distance(&self, other: &MeasuredPlace) -> f64 {
        let ((runtime, format, split), (other_runtime, other_format, other_split)) =
            (&self.kinds, &other.kinds);
        let kinds = [runtime != other_runtime, format != other_format, split != other_split];
        let sizes =
            self.sizes.iter().zip(other.sizes).map(|(a, b)| libm::log(a.max(1e-3) / b.max(1e-3)).abs());
        sizes.sum::<f64>() + kinds.into_iter().filter(|differs| *differs).count() as f64
    }
}

fn row(distance: f64, scored: &ScoredRow) -> NearestRow {
    let ScoredRow { measured, predicted } = scored;
    let known = predicted.as_ref().ok();
    let version = if measured.version.is_empty() { String::new() } else { format!(" {}", measured.version) };
    NearestRow {
        distance,
        id: measured.id.clone(),
        model: measured.model.clone(),
        hardware: measured.hardware.clone(),
        devices: measured.devices.or(known.map(|made| made.devices)).unwrap_or(1),
        runtime: format!("{}{version}", measured.runtime),
        weight_format: measured.weight_format.clone(),
        mode: measured.mode.clone(),
        plan: plan(measured),
        isl: measured.isl,
        osl: measured.osl,
        concurrency: measured.concurrency,
        ttft_ms: measured.outcome.ttft_ms,
        predicted_ttft_ms: known.map(|made| made.ttft_ms),
        tpot_ms: measured.outcome.tpot_ms,
        predicted_tpot_ms: known.map(|made| made.tpot_ms),
        source: measured.source.clone(),
    }
}

/// Degrees above 1 of each pool: `prefill 2 x tp4, decode tp8 ep8`.
fn plan(of: &MeasuredRow) -> String {
    let names: &[&str] = if of.pools.len() > 1 { &["prefill ", "decode "] } else { &[""] };
    let each = of.pools.iter().zip(names).map(|(pool, name)| {
        let degrees = [("tp", pool.tp), ("pp", pool.pp), ("dp", pool.dp), ("ep", pool.ep)];
        let parts: Vec<String> = degrees
            .iter()
            .filter(|(name, degree)| *degree > 1 || *name == "tp")
            .map(|(name, degree)| format!("{name}{degree}"))
            .collect();
        let workers = pool.workers.filter(|workers| *workers > 1);
        let workers = workers.map_or_else(String::new, |workers| format!("{workers} x "));
        format!("{name}{workers}{}", parts.join(" "))
    });
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_a_metric() {
        let place = |runtime: &str, isl: f64| MeasuredPlace {
            kinds: (runtime.to_owned(), "fp8".to_owned(), false),
            sizes: [isl, 512.0, 2.0, 32.0],
        };
        let all = [place("vllm", 1e3), place("vllm", 8e3), place("sglang", 2e3)];
        for a in &all {
            assert_eq!(a.distance(a), 0.0);
            for b in &all {
                assert!((a.distance(b) - b.distance(a)).abs() < 1e-12);
                for c in &all {
                    assert!(a.distance(c) <= a.distance(b) + b.distance(c) + 1e-12);
                }
            }
        }
        assert!((all[0].distance(&all[2]) - (1.0 + libm::log(2.0))).abs() < 1e-12);
    }
}
