//! The catalogue with the values that a scenario overrides.

use std::borrow::Cow;

use serde_json::Value;

use super::catalog::{Catalog, CatalogEntry};
use super::hardware::Shorthand;
use super::kind::{CatalogKind, Entry};
use super::resolved_scenario::{DEFAULT_HARDWARE, DEFAULT_MODEL};
use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::overrides::{OverriddenFile, Override};
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;

impl Catalog {
    /// The catalogue in which the values of `--set` are replaced; itself without any.
    ///
    /// # Errors
    /// A path names no key, or a value does not fit its key.
    pub fn overridden(&self, scenario: &Scenario) -> Result<Cow<'_, Catalog>, Error> {
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
                OverriddenFile::Model => catalog.with_model_key(scenario, one),
                OverriddenFile::Device => catalog
                    .with_key::<Device>(one, |catalog| Ok(catalog.hardware(hardware(scenario))?.device.id)),
                OverriddenFile::System => {
                    catalog.with_key::<System>(one, |catalog| catalog.system_of(hardware(scenario)))
                }
                OverriddenFile::Runtime => catalog.with_key::<Runtime>(one, |catalog| {
                    let cluster = catalog.hardware(hardware(scenario))?;
                    Ok(catalog.chosen_runtime(scenario, &cluster)?.id)
                }),
            }?;
        }
        Ok(Cow::Owned(catalog))
    }

    /// The catalogue with one key of the model's configuration replaced.
    fn with_model_key(mut self, scenario: &Scenario, one: &Override) -> Result<Catalog, Error> {
        let name = scenario.model.as_deref().unwrap_or(DEFAULT_MODEL).trim();
        let mut model = self.model(name)?;
        let renamed = |fault: Error| Error { key: "set".into(), ..fault };
        model.config = model.config.with(&one.keys.join("."), one.json()).map_err(renamed)?;
        model.published_total = None;
        model.source = format!("{}; --set {one}", model.source);
        self.changed_models.insert(name.to_owned(), model);
        Ok(self)
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
        let text = entry.text()?;
        let mut file: Value = serde_json::from_str(&text).map_err(|error| {
            Error::new("set", format!("a file that is not JSON: {error}"), "JSON", "correct it")
                .in_file(&entry.file)
        })?;
        one.apply(&mut file)?;
        let catalog = self.with_entry(T::KIND, &id, &file.to_string());
        let named = |fault: Error| Error { file: format!("--set {one}"), ..fault };
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

fn hardware(scenario: &Scenario) -> &str {
    scenario.hardware.as_deref().unwrap_or(DEFAULT_HARDWARE)
}
