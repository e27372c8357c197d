//! The runtime of a scenario: by name, or the default of the devices.

use std::sync::Arc;

use super::catalog::{Catalog, EntryLabel, LookupError, is_path};
use super::kind::CatalogKind;
use crate::spec::cluster::Cluster;
use crate::spec::error::Error;
use crate::spec::format::NumberFormat;
use crate::spec::near::suggest;
use crate::spec::precision::ANY;
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;

impl Catalog {
    /// The runtime of a scenario: by name; else the default of the devices, or where this does not run the given weight
    /// format, the first runtime that does.
    pub(super) fn chosen_runtime(
        &self,
        scenario: &Scenario,
        cluster: &Cluster,
    ) -> Result<Arc<Runtime>, Error> {
        let home = if scenario.runtime.is_none() { self.home_runtime(cluster)? } else { None };
        let usual = home.map_or_else(|| self.runtime(scenario.runtime.as_deref(), cluster), Ok)?;
        let format = scenario.weight_format.as_deref().filter(|name| *name != ANY);
        let Some(format) = format.filter(|_| scenario.runtime.is_none()) else { return Ok(usual) };
        // An unknown format is refused with the formats of the usual runtime.
        let Ok(format) = self.shared::<NumberFormat>(format) else { return Ok(usual) };
        let runs = |runtime: &Runtime| {
            let listed = runtime.weight_formats.contains(&format.id) || format.runtimes.contains(&runtime.id);
            listed && runtime.runs_on(&cluster.device) && !runtime.excludes(&cluster.device, &format.id)
        };
        if runs(&usual) {
            return Ok(usual);
        }
        for id in &format.runtimes {
            let other: Arc<Runtime> = self.shared(id)?;
            if runs(&other) {
                return Ok(other);
            }
        }
        Ok(usual)
    }

    /// Ids of the runtimes that are compared on these devices: of those with constants for their generation and
    /// predictions that were compared with measurements (or all with constants, where there is none), at home the
    /// defaults of some vendor, elsewhere those not made for home machines.
    pub fn compared_runtimes(&self, cluster: &Cluster) -> Result<Vec<String>, Error> {
        let device = &cluster.device;
        let runtimes = self.all_shared::<Runtime>()?;
        let known = |runtime: &Runtime| {
            let mut constants = runtime.constants.iter();
            runtime.runs_on(device)
                && constants.any(|one| {
                    one.devices.iter().any(|id| id == device.measured_as())
                        || one.families.contains(&device.family)
                })
        };
        let measured =
            |runtime: &Runtime| runtime.serving_fit.as_ref().is_some_and(|fit| !fit.measured_on.is_empty());
        let runtimes = runtimes.iter().map(|runtime| &**runtime);
        let (measured, unmeasured): (Vec<&Runtime>, Vec<&Runtime>) =
            runtimes.filter(|runtime| known(runtime)).partition(|runtime| measured(runtime));
        let usable = if measured.is_empty() { unmeasured } else { measured };
        let home = device.is_home();
        let of_class = |runtime: &&&Runtime| {
            let usual = !runtime.default_for.is_empty() || !runtime.default_at_home.is_empty();
            if home { usual } else { runtime.weights_at_home.is_empty() }
        };
        let compared: Vec<&Runtime> = usable.iter().filter(of_class).copied().collect();
        let compared = if compared.is_empty() { usable } else { compared };
        Ok(compared.into_iter().map(|runtime| runtime.id.clone()).collect())
    }

    /// The default runtime of home and edge devices of this vendor; `None` for other devices.
    fn home_runtime(&self, cluster: &Cluster) -> Result<Option<Arc<Runtime>>, Error> {
        if !cluster.device.is_home() {
            return Ok(None);
        }
        self.default_runtime(cluster.device.vendor.name(), |label| &label.default_at_home)
    }

    /// The first runtime whose label lists `name` among its defaults.
    fn default_runtime(
        &self,
        name: &str,
        defaults: fn(&EntryLabel) -> &Vec<String>,
    ) -> Result<Option<Arc<Runtime>>, Error> {
        for one in self.labelled(CatalogKind::Runtimes).iter() {
            if defaults(&*one.label.clone()?).iter().any(|known| known == name) {
                return self.shared(one.id()).map(Some);
            }
        }
        Ok(None)
    }

    /// Ids of the runtimes that run on these devices.
    fn running(&self, cluster: &Cluster) -> Result<Vec<String>, Error> {
        let runtimes = self.all_shared::<Runtime>()?;
        let running = runtimes.iter().filter(|runtime| runtime.runs_on(&cluster.device));
        Ok(running.map(|runtime| runtime.id.clone()).collect())
    }

    /// The runtime of the catalogue by name; an unknown name is compared with those of the devices.
    fn named_runtime(&self, name: &str, cluster: &Cluster) -> Result<Arc<Runtime>, Error> {
        if let Ok((runtime, _)) = self.runtime_by_id(name) {
            return Ok(runtime);
        }
        match self.find(CatalogKind::Runtimes, name) {
            Ok(_) => self.shared(name),
            Err(LookupError::Unknown(fault)) => {
                let running = self.running(cluster)?;
                let expected = format!("a runtime for {}: {}", cluster.device.name, running.join(", "));
                let fix = suggest(name, running.iter().map(String::as_str), "mantile-opt catalog runtimes");
                Err(Error::new("runtime", fault.found, expected, fix))
            }
            Err(other) => Err(other.into()),
        }
    }

    /// The runtime by name, or the default of the devices' generation or vendor.
    pub(super) fn runtime(&self, name: Option<&str>, cluster: &Cluster) -> Result<Arc<Runtime>, Error> {
        let vendor = cluster.device.vendor.name();
        if let Some(name) = name {
            let runtime: Arc<Runtime> = if is_path(name) {
                self.load_or_read(name).map(Arc::new)
            } else {
                self.named_runtime(name, cluster)
            }?;
            if !runtime.runs_on(&cluster.device) {
                let found = if cluster.device.is_processor() && runtime.host.is_none() {
                    format!("{}, which is priced on accelerators alone", runtime.name)
                } else {
                    format!("{}, which does not run on devices of {vendor}", runtime.name)
                };
                let fix = "choose one of them, or omit the runtime for the default";
                let running = self.running(cluster)?.join(", ");
                let expected = format!("a runtime for {}: {running}", cluster.device.name);
                return Err(Error::new("runtime", found, expected, fix));
            }
            return Ok(runtime);
        }
        // A default for a generation precedes a default for a vendor.
        for name in [cluster.device.family.as_str(), vendor] {
            if let Some(runtime) = self.default_runtime(name, |label| &label.default_for)? {
                return Ok(runtime);
            }
        }
        Err(Error::new(
            "runtime",
            format!("{}, which no runtime of the catalogue supports", cluster.device.name),
            "a runtime that lists its vendor or generation",
            format!(
                "write a runtime's file with \"{vendor}\" in `vendors` and `default_for` and constants of its own \
                 (`mantile-opt schema runtime`), and put it into your own hardware/runtimes"
            ),
        ))
    }
}
