//! The varied keys of a measurement: loads, and with `--launch` deployments, each of which is started for its loads.

use crate::bench::BenchSubject;
use crate::bench::points::LoadPoint;
use crate::report::sweep::ShardNumber;
use crate::request::sweep::grid::SweepGrid;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::vary::VariedKey;
use crate::spec::visible::visible;
use crate::store::catalog::Catalog;

/// A deployment that is measured.
pub(super) struct BenchDeployment {
    /// The values that distinguish it, `tp 2, weight_format fp8`; empty where there is one.
    pub(super) name: String,
    pub(super) scenario: Scenario,
}

/// Deployments, and the varied keys of the loads of each.
pub(super) struct BenchMatrix {
    pub(super) deployments: Vec<BenchDeployment>,
    pub(super) load_keys: Vec<VariedKey>,
    /// The names of the other varied keys.
    pub(super) deployment_keys: Vec<String>,
    /// The part of the loads that is measured, where there is one deployment.
    load_shard: Option<ShardNumber>,
}

impl BenchMatrix {
    /// Every combination of the values of keys that are none of a load; those of a shard.
    ///
    /// # Errors
    /// A key, a value, a name that one leads to, or the shard is faulty.
    pub(super) fn new(
        catalog: &Catalog,
        scenario: Scenario,
        vary: &[String],
        shard: Option<ShardNumber>,
    ) -> Result<BenchMatrix, Error> {
        shard.map_or(Ok(()), ShardNumber::check)?;
        let keys = vary.iter().map(|text| VariedKey::parse(text)).collect::<Result<Vec<_>, Error>>()?;
        let (load_keys, others): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|key| LoadPoint::KEYS.contains(&&*key.key));
        if others.is_empty() {
            let deployments = vec![BenchDeployment { name: String::new(), scenario }];
            return Ok(BenchMatrix { deployments, load_keys, deployment_keys: vec![], load_shard: shard });
        }
        let deployment_keys = others.iter().map(|key| key.key.clone()).collect();
        let grid = SweepGrid::of(&scenario, others)?;
        let of = |point: u64| {
            let values = grid.values(point);
            let words = values.iter().map(|(key, value)| match value.as_str() {
                Some(text) => format!("{key} {}", visible(text)),
                None => format!("{key} {value}"),
            });
            let name = words.collect::<Vec<_>>().join(", ");
            let scenario = grid.at(point)?;
            // A misspelt name ends the command before anything is started.
            BenchSubject::of(catalog, scenario.clone())?;
            Ok(BenchDeployment { name, scenario })
        };
        let within = |point: &u64| shard.is_none_or(|shard| shard.has(*point));
        let deployments = (0..grid.points()).filter(within).map(of).collect::<Result<_, Error>>()?;
        Ok(BenchMatrix { deployments, load_keys, deployment_keys, load_shard: None })
    }

    /// The loads that are in the shard.
    pub(super) fn of_shard(&self, points: Vec<LoadPoint>) -> Vec<LoadPoint> {
        let within = |place: u64| self.load_shard.is_none_or(|shard| shard.has(place));
        (0..).zip(points).filter(|(place, _)| within(*place)).map(|(_, point)| point).collect()
    }

    /// Whether deployments are varied.
    pub(super) fn varies_deployments(&self) -> bool {
        !self.deployment_keys.is_empty()
    }
}
