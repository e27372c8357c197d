//! From a model's name to its file, its format and what was read: the catalogue's names, then base and format one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use super::catalog::{Catalog, CatalogEntry, EntryLabel, LookupError, PublishedId};
use super::kind::CatalogKind;
use super::model_name::{ModelName, adds_no_product, packed_format, words};
use super::parsed::SHIPPED;
use crate::spec::error::Error;
use crate::spec::format::NameSuffix;
use crate::spec::text::is_same_name;

/// A model of the catalogue, as a name states it.
#[derive(Clone, Debug)]
pub(super) struct NamedModel {
    pub entry: CatalogEntry,
    /// The name in the catalogue that it is read as, where that is another.
    pub base: Option<String>,
    /// Whether it is another training or date of that one.
    pub varied: bool,
    pub format: StatedFormat,
}

/// The weight format that a name states.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StatedFormat {
    /// None: the checkpoint's own.
    Own,
    /// That of a published checkpoint of the file, by its id.
    Published(String),
    /// An id, and how the checkpoint differs from it.
    Suffix(String, Option<String>),
    /// None, of a packed model.
    Packed,
}

/// How far its variant is from the wanted one, its file, label and name.
type FoundBase = (usize, CatalogEntry, Arc<EntryLabel>, String);

/// The names of a catalogue in parts.
struct NameIndex {
    suffixes: Suffixes,
    ends: BTreeSet<String>,
    known: Vec<KnownName>,
}

/// A name of a model in parts.
struct KnownName {
    /// Id of its file.
    id: String,
    name: String,
    parts: ModelName,
    /// The base with its owner in front, as some publishers write it: `Qwen_Qwen3-32B`.
    owned: String,
}

/// The place of the index among parsed files.
const INDEX: &str = "names of models";

/// Ends of names with the formats that they state.
struct Suffixes(Vec<(NameSuffix, String)>);

impl Suffixes {
    /// All ends, in words joined by `-`.
    fn ends(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|(suffix, _)| suffix.names.iter().map(|name| words(name).join("-"))).collect()
    }

    /// The suffix of `owner` with this end, else that of every publisher, else where no publisher is named that of any, with its
    /// format.
    fn format(&self, end: &str, (owner, named): (&str, bool)) -> Option<&(NameSuffix, String)> {
        let has = |suffix: &NameSuffix| suffix.names.iter().any(|name| words(name).join("-") == end);
        let of = |suffix: &NameSuffix| suffix.owners.iter().any(|known| known.eq_ignore_ascii_case(owner));
        let owned = self.0.iter().find(|(suffix, _)| has(suffix) && of(suffix));
        let general = || self.0.iter().find(|(suffix, _)| has(suffix) && suffix.owners.is_empty());
        let any = || self.0.iter().find(|(suffix, _)| has(suffix) && !named);
        owned.or_else(general).or_else(any)
    }
}

fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn owner(name: &str) -> &str {
    name.split_once('/').map_or("", |(owner, _)| owner)
}

/// The names of a label, the first one first.
fn names(label: &EntryLabel) -> impl Iterator<Item = &String> {
    [&label.name].into_iter().chain(&label.aliases)
}

impl Catalog {
    /// A model of the catalogue, as `named_model` finds it.
    pub fn known_model(&self, text: &str) -> Result<CatalogEntry, LookupError> {
        self.named_model(text).map(|named| named.entry)
    }

    /// A model of the catalogue: by id, name or alias, with or without the organisation, in any case; by a published
    /// checkpoint; by such a name with a variant of one architecture and a format; or by a unique beginning of a name
    /// that leaves out sizes and trainings alone.
    pub(super) fn named_model(&self, text: &str) -> Result<NamedModel, LookupError> {
        let whole = |entry| NamedModel { entry, base: None, varied: false, format: StatedFormat::Own };
        // A tag of Ollama is a format too.
        let tag = text.contains(':') && !text.contains('/');
        let same = |name: &str| !tag && (is_same_name(name, text) || is_same_name(short(name), text));
        let only = |found| self.only(CatalogKind::Models, text, found, "a unique name");
        let exact =
            self.matching(CatalogKind::Models, text, |label, _| names(label).any(|name| same(name)))?;
        if !exact.is_empty() {
            return only(exact).map(whole);
        }
        if let Some((entry, id)) = self.published_as(text) {
            return Ok(NamedModel { entry, base: None, varied: false, format: StatedFormat::Published(id) });
        }
        let index = self.name_index();
        let name = ModelName::parse(text, &index.ends);
        if let Some((distance, entry, label, base)) = self.base_of(&name, &index)? {
            let format = stated(&name, (&base, &label), &index)?;
            return Ok(NamedModel { entry, base: Some(base), varied: distance > 0, format });
        }
        let begun = self.matching(CatalogKind::Models, text, |label, _| {
            // A beginning ends at a separator: `Llama-3.3` of `Llama-3.3-70B`.
            names(label).map(|name| short(name)).any(|name| {
                let mut ends = name.match_indices('-').map(|(at, _)| at);
                ends.any(|at| !tag && is_same_name(&name[..at], text) && adds_no_product(&name[at..]))
            })
        })?;
        if !begun.is_empty() {
            return only(begun).map(whole);
        }
        let near =
            if name.format.is_some() || name.packed { name.base.join("-") } else { text.trim().into() };
        Err(LookupError::Unknown(self.unknown_name(CatalogKind::Models, text, &near)))
    }

    /// The file with a published checkpoint of this name, and the checkpoint's id.
    fn published_as(&self, text: &str) -> Option<(CatalogEntry, String)> {
        let is = |one: &&PublishedId| {
            is_same_name(&one.id, text) || !text.contains('/') && is_same_name(short(&one.id), text)
        };
        self.labelled(CatalogKind::Models).iter().find_map(|one| {
            let id = one.label.as_ref().ok()?.published.iter().find(is)?.id.clone();
            Some((one.entry(self), id))
        })
    }

    /// The file whose base `name` has, and its name for the nearest variant.
    fn base_of(&self, name: &ModelName, index: &NameIndex) -> Result<Option<FoundBase>, LookupError> {
        let mut nearest: BTreeMap<&str, (usize, bool, &str)> = BTreeMap::new();
        for known in &index.known {
            let same = name.core == known.parts.core || name.core == known.owned;
            if !same || name.redates(&known.parts) {
                continue;
            }
            // Of two names the one with its publisher is shown.
            let here = (name.distance(&known.parts), !known.name.contains('/'), known.name.as_str());
            let best = nearest.entry(&known.id).or_insert(here);
            *best = here.min(*best);
        }
        let mut found: Vec<_> = nearest.into_iter().collect();
        found.sort_by_key(|(_, (distance, ..))| *distance);
        if let [(_, first), (_, second), ..] = &found[..]
            && first.0 == second.0
        {
            let found = format!("a name between {} and {}", first.2, second.2);
            let fault = Error::new("model", found, "the variant of one of them", "use one of those names");
            return Err(LookupError::Unclear(fault));
        }
        let Some((id, (distance, _, base))) = found.first() else { return Ok(None) };
        let listed = self.labelled(CatalogKind::Models);
        let Some(one) = listed.iter().find(|one| one.id() == *id) else { return Ok(None) };
        let label = one.label.clone().map_err(LookupError::Unclear)?;
        Ok(Some((*distance, one.entry(self), label, (*base).to_owned())))
    }

    /// The names of the catalogue's models in parts; made once, if no file is the user's.
    fn name_index(&self) -> Arc<NameIndex> {
        let of = || {
            let suffixes = self.suffixes();
            let ends = suffixes.ends();
            let mut known = Vec::new();
            for one in self.labelled(CatalogKind::Models).iter() {
                let Ok(label) = &one.label else { continue };
                known.extend(names(label).map(|name| {
                    let parts = ModelName::parse(name, &ends);
                    let owned = words(owner(name)).concat() + &parts.core;
                    KnownName { id: one.id().to_owned(), name: name.clone(), parts, owned }
                }));
            }
            NameIndex { suffixes, ends, known }
        };
        if !(self.is_shipped(CatalogKind::Models) && self.is_shipped(CatalogKind::Formats)) {
            return Arc::new(of());
        }
        let Ok(index) = SHIPPED.once(INDEX, || Ok::<_, Infallible>(of()));
        index
    }

    fn suffixes(&self) -> Suffixes {
        let formats = self.entries(CatalogKind::Formats).into_values();
        let read = formats.filter_map(|entry| Some((self.label(&entry).ok()?, entry.id)));
        let each = |(label, id): (Arc<EntryLabel>, String)| {
            label.suffixes.iter().map(|suffix| (suffix.clone(), id.clone())).collect::<Vec<_>>()
        };
        Suffixes(read.flat_map(each).collect())
    }
}

/// The format that `name` states: as its publisher named another checkpoint of the model, as that publisher means the
/// end, or as all do. A name without a publisher is the model's own publisher's.
fn stated(
    name: &ModelName,
    (base, label): (&str, &EntryLabel),
    index: &NameIndex,
) -> Result<StatedFormat, LookupError> {
    let Some(end) = &name.format else {
        return Ok(if name.packed { StatedFormat::Packed } else { StatedFormat::Own });
    };
    let owner_of = name.owner.as_deref().unwrap_or_else(|| owner(base));
    let like = |one: &&PublishedId| {
        owner(&one.id).eq_ignore_ascii_case(owner_of)
            && ModelName::parse(&one.id, &index.ends).format.as_ref() == Some(end)
    };
    if let Some(published) = label.published.iter().find(like) {
        return Ok(StatedFormat::Suffix(published.weight_format.clone(), None));
    }
    match index.suffixes.format(end, (owner_of, name.owner.is_some())) {
        Some((suffix, format)) if !name.unpriced => {
            Ok(StatedFormat::Suffix(format.clone(), suffix.differs.clone()))
        }
        _ => {
            let found = format!("{base} in {end}, a format without figures in the catalogue");
            let expected = "a checkpoint in a format of `mantile-opt catalog formats`";
            let fix = format!("write --model {base} and a --weight-format of about as many bits");
            Err(LookupError::Unclear(Error::new("model", found, expected, fix)))
        }
    }
}

impl NamedModel {
    /// The format's id, and how the checkpoint differs from it, where the name states another than `own`, the format of
    /// the configuration.
    pub fn format(&self, own: Option<&str>) -> Option<(&str, Option<&str>)> {
        let stated = match &self.format {
            StatedFormat::Own | StatedFormat::Published(_) => None,
            StatedFormat::Suffix(id, differs) => Some((id.as_str(), differs.as_deref())),
            StatedFormat::Packed => packed_format(own).map(|id| (id, None)),
        };
        stated.filter(|(id, differs)| Some(*id) != own || differs.is_some())
    }
}
