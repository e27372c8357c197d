//! The resolved problems of a sweep: points share as much of them as their scenarios have in common.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::graph::model::ModelGraph;
use crate::search::problem::Problem;
use crate::spec::cluster::Cluster;
use crate::spec::error::Error;
use crate::spec::objective::{Objective, Workload};
use crate::spec::precision::ANY;
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::model::ResolvedModel;
use crate::store::resolved_scenario::{DEFAULT_HARDWARE, DEFAULT_MODEL, ResolvedScenario};

/// A scenario without its deployment, resolved.
#[derive(Clone)]
pub(super) struct ResolvedPoint(Arc<(ResolvedScenario, Problem)>);

impl ResolvedPoint {
    pub(super) fn problem(&self) -> &Problem {
        &self.0.1
    }
}

impl AsRef<ResolvedScenario> for ResolvedPoint {
    fn as_ref(&self) -> &ResolvedScenario {
        &self.0.0
    }
}

/// Values by key, at most [`KEPT`] at a time.
struct SharedValues<T>(Mutex<HashMap<String, T>>);

const KEPT: usize = 64;

impl<T: Clone> SharedValues<T> {
    fn new() -> SharedValues<T> {
        SharedValues(Mutex::new(HashMap::new()))
    }

    /// The value of `key`; two threads may both make it.
    fn get(&self, key: &str, make: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(key) {
            return Ok(known.clone());
        }
        let made = make()?;
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key.to_owned(), made.clone());
        Ok(made)
    }
}

/// Problems by scenario. Those that differ only in the deployment are one; those that differ in lengths, load and SLOs
/// share model, hardware, runtime and machines.
pub(super) struct SharedProblems<'a> {
    catalog: &'a Catalog,
    models: SharedValues<Arc<(ResolvedModel, ModelGraph)>>,
    clusters: SharedValues<Arc<Cluster>>,
    bases: SharedValues<ResolvedPoint>,
    points: SharedValues<ResolvedPoint>,
}

fn key(scenario: &Scenario) -> String {
    serde_json::to_string(scenario).expect("a scenario has only text keys")
}

/// The scenario without lengths, load and SLOs; a given rate stays one, because it determines the objective.
fn without_traffic(scenario: &Scenario) -> Scenario {
    Scenario {
        isl: None,
        osl: None,
        prefix: None,
        concurrency: None,
        rate: scenario.rate.map(|_| 1.0),
        percentile: None,
        ttft: None,
        tpot: None,
        e2e: None,
        ..scenario.clone()
    }
}

impl<'a> SharedProblems<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> SharedProblems<'a> {
        SharedProblems {
            catalog,
            models: SharedValues::new(),
            clusters: SharedValues::new(),
            bases: SharedValues::new(),
            points: SharedValues::new(),
        }
    }

    fn model(&self, scenario: &Scenario) -> Result<Arc<(ResolvedModel, ModelGraph)>, Error> {
        let name = scenario.model.as_deref().unwrap_or(DEFAULT_MODEL);
        self.models.get(name, || self.catalog.built(name).map(Arc::new))
    }

    fn cluster(&self, scenario: &Scenario) -> Result<Arc<Cluster>, Error> {
        let name = scenario.hardware.as_deref().unwrap_or(DEFAULT_HARDWARE);
        self.clusters.get(name, || self.catalog.hardware(name).map(Arc::new))
    }

    pub(super) fn check_names(&self, scenario: &Scenario) -> Result<(), Error> {
        self.model(scenario)?;
        self.cluster(scenario)?;
        if let Some(name) = &scenario.objective {
            self.catalog.load_or_read::<Objective>(name)?;
        }
        if let Some(name) = &scenario.workload {
            self.catalog.load_or_read::<Workload>(name)?;
        }
        if let Some(name) = scenario.runtime.as_ref().filter(|name| name.as_str() != ANY) {
            self.catalog.load::<Runtime>(name)?;
        }
        Ok(())
    }

    /// The problem of a scenario, whose deployment is ignored.
    pub(super) fn of(&self, scenario: &Scenario) -> Result<ResolvedPoint, Error> {
        let scenario = Scenario { deployment: None, ..scenario.clone() };
        self.points.get(&key(&scenario), || {
            let base = without_traffic(&scenario);
            if base == scenario {
                return self.resolved(&scenario);
            }
            // Where the base is faulty, the scenario has the fault, or is none of its kind.
            let Ok(base) = self.bases.get(&key(&base), || self.resolved(&base)) else {
                return self.resolved(&scenario);
            };
            let resolved = base.as_ref().with_traffic(self.catalog, &scenario)?;
            let problem = resolved.problem_as(base.problem())?;
            Ok(ResolvedPoint(Arc::new((resolved, problem))))
        })
    }

    fn resolved(&self, scenario: &Scenario) -> Result<ResolvedPoint, Error> {
        let resolved = if scenario.set.is_some() {
            ResolvedScenario::resolve(self.catalog, scenario)?
        } else {
            let (model, cluster) = (self.model(scenario)?, self.cluster(scenario)?);
            ResolvedScenario::placed(self.catalog, scenario, (*model).clone(), (*cluster).clone())?
        };
        let problem = resolved.problem()?;
        Ok(ResolvedPoint(Arc::new((resolved, problem))))
    }
}
