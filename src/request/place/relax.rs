//! Relaxations for a model that does not fit, which need the catalogue: lower weight formats, host memory.

use super::solve::PlacementRequest;
use crate::report::place::TriedChange;
use crate::search::placement::solve::fits;
use crate::spec::format::NumberFormat;
use crate::spec::offload::OffloadPolicy;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::rig::ResolvedRig;

impl PlacementRequest<'_> {
    /// The highest lower formats in which the model fits, and host memory where the scenario excludes it.
    pub(super) fn formats(&self, rigged: &ResolvedRig) -> Vec<TriedChange> {
        let catalog = self.catalog;
        let scenario = Scenario { model: Some(rigged.model.name.clone()), ..self.scenario.scenario() };
        let holds = |scenario: &Scenario| {
            let concurrency = rigged.problems.first().map_or(1, |problem| problem.concurrency);
            let again = ResolvedRig::resolve(catalog, scenario, rigged.rig.clone(), concurrency);
            again.is_ok_and(|rigged| rigged.problems.iter().chain(&rigged.offloaded).any(fits))
        };
        let weights = rigged.runtimes.iter().map(|runtime| runtime.weight_formats.as_slice()).collect();
        let weights = lower(catalog, weights, &rigged.weights.format);
        let kv = rigged.runtimes.iter().map(|runtime| runtime.kv_formats.as_slice()).collect();
        let kv = lower(catalog, kv, &rigged.kv.format);
        let in_weights =
            |id: &String| holds(&Scenario { weight_format: Some(id.clone()), ..scenario.clone() });
        let in_kv = |id: &String| holds(&Scenario { kv_format: Some(id.clone()), ..scenario.clone() });
        let mut tried = vec![TriedChange {
            change: "--weight-format".into(),
            stated: rigged.weights.format.id.clone(),
            needed: weights.into_iter().find(in_weights),
        }];
        if !kv.is_empty() {
            tried.push(TriedChange {
                change: "--kv-format".into(),
                stated: rigged.kv.format.id.clone(),
                needed: kv.into_iter().find(in_kv),
            });
        }
        if self.scenario.offload == Some(OffloadPolicy::Never)
            && rigged.rig.hosts.values().any(|host| host.memory.is_some())
        {
            let with = holds(&Scenario { offload: None, ..scenario });
            tried.push(TriedChange {
                change: "--offload".into(),
                stated: "never".into(),
                needed: with.then(|| "auto".to_owned()),
            });
        }
        tried
    }
}

/// Formats that all runtimes support and that take fewer bits than `now`, most bits first.
fn lower(catalog: &Catalog, runtimes: Vec<&[String]>, now: &NumberFormat) -> Vec<String> {
    let Some((first, others)) = runtimes.split_first() else { return vec![] };
    let common = first.iter().filter(|id| others.iter().all(|other| other.contains(id)));
    let loaded = common.filter_map(|id| catalog.load::<NumberFormat>(id).ok());
    let bits = |format: &NumberFormat| format.bits_per_element.value;
    let mut lower: Vec<NumberFormat> = loaded.filter(|format| bits(format) < bits(now)).collect();
    lower.sort_by(|a, b| bits(b).total_cmp(&bits(a)).then(a.id.cmp(&b.id)));
    lower.into_iter().map(|format| format.id).collect()
}
