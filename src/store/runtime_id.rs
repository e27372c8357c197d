//! Runtimes by ids that name a version.

use std::borrow::Cow;
use std::sync::Arc;

use super::catalog::{Catalog, is_path};
use super::kind::CatalogKind;
use crate::spec::error::Error;
use crate::spec::runtime::Runtime;
use crate::spec::runtime_id::RuntimeId;
use crate::spec::scenario::Scenario;

impl Catalog {
    /// The runtime that an id names, and the version in the id.
    ///
    /// # Errors
    /// The catalogue has no such runtime; the fix suggests near names.
    pub fn runtime_by_id(&self, id: &str) -> Result<(Arc<Runtime>, Option<String>), Error> {
        let id = id.trim();
        // The id of a file may have the form itself.
        let filed = self.entries(CatalogKind::Runtimes).contains_key(id);
        let mut parts = RuntimeId::parse(id).filter(|_| !filed);
        let found = parts.find_map(|parts| Some((self.shared(parts.name).ok()?, parts.version.to_owned())));
        match found {
            Some((runtime, version)) => Ok((runtime, Some(version))),
            None => Ok((self.shared(id)?, None)),
        }
    }

    /// The scenario with the runtime and the version of its runtime's id.
    pub(super) fn with_version<'s>(&self, scenario: &'s Scenario) -> Result<Cow<'s, Scenario>, Error> {
        let named = scenario.runtime.as_deref().filter(|name| !is_path(name));
        let Some(Ok((runtime, Some(version)))) = named.map(|name| self.runtime_by_id(name)) else {
            return Ok(Cow::Borrowed(scenario));
        };
        if let Some(stated) = scenario.runtime_version.as_ref().filter(|stated| **stated != version) {
            let found = format!("{stated}, and {version} in the id of the runtime");
            return Err(Error::new("runtime-version", found, "one version", "omit one of them"));
        }
        Ok(Cow::Owned(Scenario {
            runtime: Some(runtime.id.clone()),
            runtime_version: Some(version),
            ..scenario.clone()
        }))
    }
}
