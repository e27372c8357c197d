//! Names in the catalogue: by id, name or alias, whatever their case and separators.

use std::convert::Infallible;
use std::sync::Arc;

use super::catalog::{Catalog, CatalogEntry, EntryLabel, LookupError};
use super::kind::CatalogKind;
use super::parsed::SHIPPED;
use crate::spec::error::Error;
use crate::spec::near::suggest;
use crate::spec::text::is_same_name;

/// A file with its identifying keys.
pub(super) struct LabelledEntry {
    entry: CatalogEntry,
    pub(super) label: Result<Arc<EntryLabel>, Error>,
}

impl LabelledEntry {
    pub(super) fn id(&self) -> &str {
        &self.entry.id
    }

    /// The file in `catalog`, which records its uses.
    pub(super) fn entry(&self, catalog: &Catalog) -> CatalogEntry {
        catalog.using(&self.entry)
    }
}

impl Catalog {
    /// Every file of a kind in the order of ids; listed once, if no file is the user's.
    pub(super) fn labelled(&self, kind: CatalogKind) -> Arc<Vec<LabelledEntry>> {
        let of = || {
            let files = self.entries(kind).into_values();
            files.map(|entry| LabelledEntry { label: self.label(&entry), entry }).collect::<Vec<_>>()
        };
        if !self.is_shipped(kind) {
            return Arc::new(of());
        }
        let Ok(listed) = SHIPPED.once(kind.folder(), || Ok::<_, Infallible>(of()));
        listed
    }

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
        let listed = self.labelled(kind);
        let exact = |one: &&LabelledEntry| one.id().eq_ignore_ascii_case(wanted);
        let alike = |one: &&LabelledEntry| is_same_name(one.id(), wanted);
        if let Some(one) = listed.iter().find(exact).or_else(|| listed.iter().find(alike)) {
            return Ok(vec![one.entry(self)]);
        }
        let (mut found, mut broken) = (Vec::new(), None);
        for one in listed.iter() {
            match &one.label {
                Ok(label) if matches(label, wanted) => found.push(one.entry(self)),
                Ok(_) => {}
                Err(fault) => broken = Some(fault.clone()),
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
        let listed = self.labelled(kind);
        let named = listed.iter().filter_map(|one| Some((one.id(), one.label.as_ref().ok()?)));
        let known = named.flat_map(|(id, label)| {
            [id, &label.name].into_iter().chain(label.aliases.iter().map(String::as_str))
        });
        let list = format!("mantile-opt catalog {}", kind.plural());
        let fix = suggest(part, known, &list);
        let found = format!("unknown name `{}`", name.trim());
        Error::new(kind.singular(), found, kind.expected(), fix)
    }
}

/// Whether a label has this name or alias, whatever its case and separators.
pub(super) fn is_labelled(label: &EntryLabel, wanted: &str) -> bool {
    let mut names = [&label.name].into_iter().chain(&label.aliases);
    names.any(|known| is_same_name(known, wanted))
}
