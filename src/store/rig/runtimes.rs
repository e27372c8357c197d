//! The runtimes of a rig: each way to serve it, with the runtime of every device that takes part.

use std::sync::Arc;

use super::PlacedMember;
use crate::spec::error::Error;
use crate::spec::format::NumberFormat;
use crate::spec::precision::ANY;
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;

/// The runtime of every seat; `None` for those left out.
pub(super) type RuntimeChoice = Vec<Option<String>>;

/// The runtimes that may join devices whose defaults differ, with those of the devices.
struct RigRuntimes<'a> {
    seats: &'a [PlacedMember],
    defaults: Vec<String>,
    format: Option<NumberFormat>,
}

impl RigRuntimes<'_> {
    /// Whether `runtime` may drive the device of a seat.
    fn runs(&self, runtime: &Runtime, at: usize) -> bool {
        let seat = &self.seats[at];
        let free = seat.runtime.is_none() && runtime.runs_on(&seat.device);
        let format = self.format.as_ref().is_none_or(|format| {
            runtime.weight_formats.contains(&format.id) || format.runtimes.contains(&runtime.id)
        });
        self.defaults[at] == runtime.id || (free && format)
    }

    /// `runtime` on every device that it may drive.
    fn on_all(&self, runtime: &Runtime) -> RuntimeChoice {
        (0..self.seats.len()).map(|at| self.runs(runtime, at).then(|| runtime.id.clone())).collect()
    }
}

impl Catalog {
    /// The ways to serve the seats: the requested runtime; else every device's default, as for that device alone, on
    /// all devices that it runs on. Where none of them runs on all, first the runtime that does, or with the runtimes
    /// that the rig names, or with the devices' own.
    pub(super) fn runtime_choices(
        &self,
        seats: &[PlacedMember],
        scenario: &Scenario,
    ) -> Result<Vec<RuntimeChoice>, Error> {
        if let Some(named) = &scenario.runtime {
            return Ok(vec![vec![Some(named.clone()); seats.len()]]);
        }
        let requested = scenario.weight_format.as_deref().filter(|name| *name != ANY);
        let format = requested.map(|name| self.load::<NumberFormat>(name)).transpose()?;
        let mut used: Vec<Runtime> = Vec::new();
        let mut defaults = Vec::new();
        for seat in seats {
            let cluster = seat.cluster(&Rig::default(), 1)?;
            let own = Scenario { runtime: seat.runtime.clone(), ..scenario.clone() };
            let runtime = self.chosen_runtime(&own, &cluster)?;
            if used.iter().all(|known| known.id != runtime.id) {
                used.push((*runtime).clone());
            }
            defaults.push(runtime.id.clone());
        }
        let rig = RigRuntimes { seats, defaults, format };
        let mut choices: Vec<RuntimeChoice> = used.iter().map(|runtime| rig.on_all(runtime)).collect();
        // Of several, the one with the most devices first.
        choices.sort_by_key(|choice| choice.iter().filter(|runtime| runtime.is_none()).count());
        if choices.first().is_some_and(|first| first.iter().any(Option::is_none)) {
            choices.insert(0, self.joining(&rig)?);
        }
        choices.dedup();
        Ok(choices)
    }

    /// The runtime of all devices for which the rig names none, and the named ones of the others; where no runtime
    /// runs on all, the default of each.
    fn joining(&self, rig: &RigRuntimes) -> Result<RuntimeChoice, Error> {
        let free: Vec<usize> = (0..rig.seats.len()).filter(|&at| rig.seats[at].runtime.is_none()).collect();
        let mut all: Vec<Runtime> = Vec::new();
        for file in self.entries(CatalogKind::Runtimes).into_values() {
            let runtime: Runtime = Arc::unwrap_or_clone(self.read(&file)?);
            if free.iter().all(|&at| rig.runs(&runtime, at)) {
                all.push(runtime);
            }
        }
        // The runtime of the most vendors is the likeliest to join heterogeneous devices; of several, the usual one.
        let usual = |runtime: &Runtime| runtime.default_for.len() + runtime.default_at_home.len();
        let widest = all.iter().rev().max_by_key(|runtime| (runtime.vendors.len(), usual(runtime)));
        let mut chosen: RuntimeChoice = rig.defaults.iter().cloned().map(Some).collect();
        if let Some(widest) = widest {
            free.iter().for_each(|&at| chosen[at] = Some(widest.id.clone()));
        }
        Ok(chosen)
    }
}
