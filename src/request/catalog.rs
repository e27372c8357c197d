//! `catalog`: the entries of a kind, or one entry.

pub mod diff;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use crate::report::catalog::{CatalogLine, Listed};
use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::format::NumberFormat;
use crate::spec::launch::Launch;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::objective::{Objective, Workload};
use crate::spec::option_table::OptionTable;
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;
use crate::spec::text::from_json;
use crate::store::catalog::{Catalog, CatalogEntry, read_entry};
use crate::store::kind::{CatalogKind, Entry};

/// A request of `catalog`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CatalogRequest {
    /// Kind of entries.
    pub kind: CatalogKind,
    /// One entry, with every figure and its source.
    #[serde(default)]
    pub name: Option<String>,
}

/// A report of `catalog`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CatalogReport {
    /// All entries of the kind, one line each.
    Entries(Vec<CatalogLine>),
    /// The file of the entry.
    Entry(Value),
}

/// Lists the entries of a kind, or returns one entry.
pub fn catalog(
    catalog: &Catalog,
    request: &CatalogRequest,
    _: &RequestControl,
) -> Result<CatalogReport, Error> {
    let kind = request.kind;
    let Some(name) = &request.name else {
        let shelf = catalog.entries(kind);
        let lines = shelf.values().map(|entry| line_of(kind, entry));
        return Ok(CatalogReport::Entries(lines.collect::<Result<_, Error>>()?));
    };
    let shelved = match kind {
        CatalogKind::Models => catalog.known_model(name),
        // The file of a device by a short form, or with a memory size in its name.
        CatalogKind::Devices => catalog.find(kind, name).or_else(|miss| {
            catalog.device(name).map_or(Err(miss), |device| catalog.find(kind, device.measured_as()))
        }),
        kind => catalog.find(kind, name),
    };
    let shelved = shelved.map_err(Error::from)?;
    line_of(kind, &shelved)?;
    Ok(CatalogReport::Entry(from_json(&shelved.text()?, kind.article())?))
}

/// The line of a file, which is read whole: every listed entry can be used.
fn line_of(kind: CatalogKind, shelved: &CatalogEntry) -> Result<CatalogLine, Error> {
    fn of<T: Entry + Listed>(shelved: &CatalogEntry) -> Result<CatalogLine, Error> {
        let line = read_entry::<T>(shelved)?.line();
        Ok(CatalogLine { id: shelved.id.clone(), user: shelved.user, ..line })
    }
    match kind {
        CatalogKind::Models => of::<ModelFile>(shelved),
        CatalogKind::Devices => of::<Device>(shelved),
        CatalogKind::Systems => of::<System>(shelved),
        CatalogKind::Rigs => of::<Rig>(shelved),
        CatalogKind::Links => of::<Link>(shelved),
        CatalogKind::Formats => of::<NumberFormat>(shelved),
        CatalogKind::Runtimes => of::<Runtime>(shelved),
        CatalogKind::Launches => of::<Launch>(shelved),
        CatalogKind::Options => of::<OptionTable>(shelved),
        CatalogKind::Objectives => of::<Objective>(shelved),
        CatalogKind::Workloads => of::<Workload>(shelved),
    }
}
