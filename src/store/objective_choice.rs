//! The objective of a scenario with its workload: by name, or the default of the load and the devices.

use super::catalog::Catalog;
use super::resolved_scenario::{DEFAULT_OBJECTIVE, DEFAULT_OBJECTIVE_AT_HOME, DEFAULT_OBJECTIVE_AT_RATE};
use crate::spec::error::Error;
use crate::spec::objective::{LatencyLimits, Objective, Workload};
use crate::spec::scenario::Scenario;

impl Catalog {
    /// The objective and its workload. SLOs: the scenario's, else the objective's, else the workload's, unless the
    /// objective ignores the workload's. Without an objective: the least cost at a given rate, one request at a time
    /// on a home or edge device, else the throughput.
    pub fn objective_and_workload(
        &self,
        scenario: &Scenario,
        home: bool,
    ) -> Result<(Objective, Workload), Error> {
        scenario.check()?;
        let usual = match (scenario.rate, home) {
            (Some(_), _) => DEFAULT_OBJECTIVE_AT_RATE,
            (None, true) => DEFAULT_OBJECTIVE_AT_HOME,
            (None, false) => DEFAULT_OBJECTIVE,
        };
        let single = home && scenario.objective.is_none();
        let objective: Objective = self.load_or_read(scenario.objective.as_deref().unwrap_or(usual))?;
        let name = scenario.workload.as_deref().unwrap_or(&objective.workload);
        let workload: Workload = self.load_or_read(name)?;
        let limits =
            if objective.ignore_workload_limits { LatencyLimits::default() } else { workload.limits };
        let limits = scenario.limits(objective.limits.or(limits))?;
        let either = scenario.rate.is_some() || scenario.concurrency.is_some();
        let workload = Workload {
            isl: scenario.isl.unwrap_or(workload.isl),
            osl: scenario.osl.unwrap_or(workload.osl),
            prefix: scenario.prefix.unwrap_or(workload.prefix),
            prefix_groups: scenario.prefix_groups.or(workload.prefix_groups),
            images: scenario.images.unwrap_or(workload.images),
            image_size: scenario.image_size.or(workload.image_size),
            concurrency: match either {
                true => scenario.concurrency,
                false => workload.concurrency.or(single.then_some(1)),
            },
            rate: if either { scenario.rate } else { workload.rate },
            percentile: scenario.percentile.or(workload.percentile),
            limits,
            ..workload
        };
        workload.check()?;
        let pareto = scenario.axes()?.unwrap_or_else(|| objective.pareto.clone());
        Ok((Objective { limits, pareto, ..objective }, workload))
    }
}
