//! The catalogue with the values that a scenario overrides.

use std::borrow::Cow;
use std::sync::Arc;

use super::catalog::{Catalog, CatalogEntry};
use super::hardware::Shorthand;
use super::kind::{CatalogKind, Entry};
use super::model::ResolvedModel;
use super::resolved_scenario::{DEFAULT_HARDWARE, DEFAULT_MODEL};
use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::overrides::{OverriddenFile, Override};
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;
use crate::spec::text::texts_shown;

/// The files that an override without a name changes.
#[derive(Clone, Copy)]
struct OverriddenProblem<'a> {
    scenario: &'a Scenario,
    /// Whether absent names are the defaults; else an override has to name its file.
    filled: bool,
}

impl OverriddenProblem<'_> {
    /// The name of the file: that of the override, of the problem, or the default.
    fn name(self, one: &Override, of_problem: Option<&String>, default: &str) -> Result<String, Error> {
        let absent = || self.filled.then(|| default.to_owned());
        one.name.clone().or_else(|| of_problem.cloned()).or_else(absent).ok_or_else(|| {
            let kind = one.file.name();
            let found = format!("`{one}`, where more than one {kind} is considered");
            let fix = format!("write --set {kind}[NAME].{}='{}'", one.keys.join("."), one.value);
            Error::new("set", found, format!("the name of one {kind}"), fix)
        })
    }

    fn hardware(self, one: &Override) -> Result<String, Error> {
        self.name(one, self.scenario.hardware.as_ref(), DEFAULT_HARDWARE)
    }
}

impl Catalog {
    /// The catalogue in which the values of `--set` are replaced; itself without any.
    ///
    /// # Errors
    /// A path names no key, or a value does not fit its key.
    pub fn overridden(&self, scenario: &Scenario) -> Result<Cow<'_, Catalog>, Error> {
        self.replaced(OverriddenProblem { scenario, filled: true })
    }

    /// The same for a problem with several models or devices: what the scenario leaves open, an override has to name.
    ///
    /// # Errors
    /// An override without a name, a path that names no key, or a value that does not fit its key.
    pub fn overridden_by_name(&self, scenario: &Scenario) -> Result<Cow<'_, Catalog>, Error> {
        self.replaced(OverriddenProblem { scenario, filled: false })
    }

    fn replaced(&self, problem: OverriddenProblem<'_>) -> Result<Cow<'_, Catalog>, Error> {
        let scenario = problem.scenario;
        let texts = scenario.set.iter().flatten();
        let mut all = texts.map(|text| text.parse()).collect::<Result<Vec<Override>, Error>>()?;
        if all.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        // The device decides on the system, both decide on the runtime.
        all.sort_by_key(|one| one.file);
        let mut catalog = self.clone();
        for one in &all {
            catalog = match one.file {
                OverriddenFile::Model => {
                    let name = problem.name(one, scenario.model.as_ref(), DEFAULT_MODEL)?;
                    catalog.with_model_key(&name, one)
                }
                OverriddenFile::Device => catalog.with_key::<Device>(one, |catalog| match &one.name {
                    Some(name) => Ok(catalog.device(name)?.id),
                    None => Ok(catalog.hardware(&problem.hardware(one)?)?.device.id),
                }),
                OverriddenFile::System => {
                    catalog.with_key::<System>(one, |catalog| catalog.system_of(&problem.hardware(one)?))
                }
                OverriddenFile::Runtime => catalog.with_key::<Runtime>(one, |catalog| {
                    if let Some(name) = one.name.as_ref().or(scenario.runtime.as_ref()) {
                        return Ok(catalog.runtime_by_id(name)?.0.id.clone());
                    }
                    let cluster = catalog.hardware(&problem.hardware(one)?)?;
                    Ok(catalog.chosen_runtime(scenario, &cluster)?.id.clone())
                }),
            }?;
        }
        Ok(Cow::Owned(catalog))
    }

    /// The catalogue with one key of the configuration of a model replaced.
    fn with_model_key(mut self, name: &str, one: &Override) -> Result<Catalog, Error> {
        self.changed_models.entry(self.model_key(name)).or_default().push(one.clone());
        self.model(name)?;
        Ok(self)
    }

    /// One key for all names of a model of the catalogue.
    fn model_key(&self, text: &str) -> String {
        self.known_model(text.trim()).map_or_else(|_| text.trim().to_owned(), |entry| entry.id)
    }

    pub(super) fn changed(&self, text: &str, mut model: ResolvedModel) -> Result<ResolvedModel, Error> {
        if self.changed_models.is_empty() {
            return Ok(model);
        }
        for one in self.changed_models.get(&self.model_key(text)).into_iter().flatten() {
            let renamed = |fault: Error| Error { key: "set".into(), ..fault };
            model.config = model.config.with(&one.keys.join("."), one.json()).map_err(renamed)?.into();
            model.published_total = None;
            model.source = format!("{}; --set {one}", model.source);
        }
        Ok(model)
    }

    /// The catalogue with one key of the entry replaced whose id `find` gives.
    fn with_key<T: Entry>(
        self,
        one: &Override,
        find: impl FnOnce(&Catalog) -> Result<String, Error>,
    ) -> Result<Catalog, Error> {
        let id = find(&self)?;
        let entry: Option<CatalogEntry> = self.entries(T::KIND).remove(&id);
        let entry = entry.ok_or_else(|| {
            let fix =
                format!("change the file that has the {}, or name one of the catalogue", one.file.name());
            Error::new("set", format!("`{id}`, which is not in the catalogue"), T::KIND.article(), fix)
        })?;
        let value = entry.value().map_err(|fault| Error { key: "set".into(), ..fault })?;
        let named = |fault: Error| Error { file: format!("--set {one}"), ..fault };
        // The texts of a built-in file are shown as they are.
        if entry.user {
            texts_shown("", &value).map_err(|fault| fault.in_file(&entry.file))?;
        }
        let mut file = Arc::unwrap_or_clone(value);
        one.apply(&mut file)?;
        texts_shown(&one.keys.join("."), &one.json()).map_err(named)?;
        let catalog = self.with_value(T::KIND, &id, file);
        catalog.load::<T>(&id).map_err(named)?;
        Ok(catalog)
    }

    /// The id of the system that holds the devices of `text`.
    fn system_of(&self, text: &str) -> Result<String, Error> {
        if let Ok(entry) = self.find(CatalogKind::Systems, text) {
            return Ok(entry.id);
        }
        let short = Shorthand::parse(text)?;
        Ok(self.host(&self.device(short.device)?, &short)?.id)
    }
}
