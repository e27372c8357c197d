//! Names in the catalogue: by id, name or alias, whatever their case and separators.

use super::catalog::{Catalog, CatalogEntry, EntryLabel, LookupError};
use super::kind::CatalogKind;
use crate::spec::error::Error;
use crate::spec::near::suggest;
use crate::spec::text::is_same_name;

impl Catalog {
    /// The file with this id, name or alias, whatever its case and separators.
    pub fn find(&self, kind: CatalogKind, name: &str) -> Result<CatalogEntry, LookupError> {
        self.only(kind, name, self.matching(kind, name, is_labelled)?, "a unique name")
    }

    /// The files whose id is `name`, or else whose label matches it; empty where there are none.
    pub(super) fn matching(
        &self,
        kind: CatalogKind,
        name: &str,
        matches: impl Fn(&EntryLabel, &str) -> bool,
    ) -> Result<Vec<CatalogEntry>, LookupError> {
        let wanted = name.trim();
        if let Some(file) = self.shipped_entry(kind, wanted) {
            return Ok(vec![file]);
        }
        let mut shelf = self.entries(kind);
        let exact = |id: &&String| id.eq_ignore_ascii_case(wanted);
        let alike = |id: &&String| is_same_name(id, wanted);
        let id = shelf.keys().find(exact).or_else(|| shelf.keys().find(alike)).cloned();
        if let Some(file) = id.and_then(|id| shelf.remove(&id)) {
            return Ok(vec![file]);
        }
        let (mut found, mut broken) = (Vec::new(), None);
        for file in shelf.into_values() {
            match self.label(&file) {
                Ok(label) if matches(&label, wanted) => found.push(file),
                Ok(_) => {}
                Err(fault) => broken = Some(fault),
            }
        }
        match broken.filter(|_| found.is_empty()) {
            Some(fault) => Err(LookupError::Unclear(fault)),
            None => Ok(found),
        }
    }

    /// The only one of the files that `name` may mean.
    pub(super) fn only(
        &self,
        kind: CatalogKind,
        name: &str,
        mut found: Vec<CatalogEntry>,
        expected: &str,
    ) -> Result<CatalogEntry, LookupError> {
        match found.len() {
            1 => Ok(found.swap_remove(0)),
            0 => Err(LookupError::Unknown(self.unknown_name(kind, name, name.trim()))),
            _ => {
                let ids: Vec<_> = found.into_iter().map(|file| file.id).collect();
                let found = format!("ambiguous name `{}`: {}", name.trim(), ids.join(" or "));
                let fault = Error::new(kind.singular(), found, expected, "use one of those names");
                Err(LookupError::Unclear(fault))
            }
        }
    }

    /// The fault of an unknown name, with the names nearest to `part` of it.
    pub(super) fn unknown_name(&self, kind: CatalogKind, name: &str, part: &str) -> Error {
        let mut known = Vec::new();
        for file in self.entries(kind).into_values() {
            if let Ok(label) = self.label(&file) {
                known.extend([file.id, label.name.clone()].into_iter().chain(label.aliases.clone()));
            }
        }
        let list = format!("mantile-opt catalog {}", kind.plural());
        let fix = suggest(part, known.iter().map(String::as_str), &list);
        let found = format!("unknown name `{}`", name.trim());
        Error::new(kind.singular(), found, kind.expected(), fix)
    }
}

/// Whether a label has this name or alias, whatever its case and separators.
pub(super) fn is_labelled(label: &EntryLabel, wanted: &str) -> bool {
    let mut names = [&label.name].into_iter().chain(&label.aliases);
    names.any(|known| is_same_name(known, wanted))
}
