//! The kinds of catalogue files: folder and type of each. Independent of their contents.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::shipped::{ShippedFile, shipped_files};
use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::evidence::MeasuredKind;
use crate::spec::format::NumberFormat;
use crate::spec::launch::Launch;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::objective::{Objective, Workload};
use crate::spec::option_table::OptionTable;
use crate::spec::ranges;
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;

/// Ids of the built-in files of each kind, and the files; listed on first use.
static SHIPPED: [OnceLock<Vec<(&'static str, &'static ShippedFile)>>; KINDS.len()] =
    [const { OnceLock::new() }; KINDS.len()];

/// A kind of catalogue file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum CatalogKind {
    /// Models.
    Models,
    /// Accelerators.
    Devices,
    /// Devices in nodes and networks.
    Systems,
    /// Heterogeneous devices and the links between them.
    Rigs,
    /// Fabrics and buses.
    Links,
    /// Number formats.
    Formats,
    /// Serving engines.
    Runtimes,
    /// Launch commands of serving engines.
    Launches,
    /// Command-line options of serving engines.
    Options,
    /// Objectives.
    Objectives,
    /// Traffic.
    Workloads,
}

/// Every kind with its folder, its name in messages, that with an article, and the names that are valid of it.
const TABLE: [(CatalogKind, &str, &str, &str, &str); 11] = [
    (
        CatalogKind::Models,
        "models",
        "model",
        "a model",
        "a catalogue name, a Hugging Face id that the catalogue knows, a path, or hf:ORG/NAME",
    ),
    (CatalogKind::Devices, "hardware/devices", "device", "a device", "the id of a device"),
    (
        CatalogKind::Systems,
        "hardware/systems",
        "system",
        "a system",
        "a system, [NODESx]COUNTxDEVICE such as 8xh100-sxm, or the path of a system file",
    ),
    (CatalogKind::Rigs, "hardware/rigs", "rig", "a rig", "the id of a rig, or the path of a rig file"),
    (CatalogKind::Links, "hardware/links", "link", "a link", "the id of a link"),
    (CatalogKind::Formats, "hardware/formats", "format", "a format", "the id of a format"),
    (CatalogKind::Runtimes, "hardware/runtimes", "runtime", "a runtime", "the id of a runtime"),
    (CatalogKind::Launches, "hardware/launches", "launch", "a launch", "the id of a runtime"),
    (
        CatalogKind::Options,
        "hardware/options",
        "option-table",
        "an option table",
        "the id of an option table: runtime and version",
    ),
    (
        CatalogKind::Objectives,
        "objectives",
        "objective",
        "an objective",
        "the id of an objective, or the path of an objective file",
    ),
    (
        CatalogKind::Workloads,
        "objectives/workloads",
        "workload",
        "a workload",
        "the id of a workload, or the path of a workload file",
    ),
];

crate::rows_by_variant!(TABLE);

pub const KINDS: [CatalogKind; TABLE.len()] = {
    let (mut kinds, mut at) = ([CatalogKind::Models; TABLE.len()], 0);
    while at < TABLE.len() {
        kinds[at] = TABLE[at].0;
        at += 1;
    }
    kinds
};

impl CatalogKind {
    /// Its folder, the same in the repository and in the user's folder.
    pub fn folder(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Its name in commands.
    pub fn plural(self) -> &'static str {
        self.folder().rsplit('/').next().unwrap_or_default()
    }

    /// Singular, for messages.
    pub fn singular(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// With its article, for messages.
    pub fn article(self) -> &'static str {
        TABLE[self as usize].3
    }

    /// Description of a valid name, for messages.
    pub(super) fn expected(self) -> &'static str {
        TABLE[self as usize].4
    }

    /// Ids of the built-in files and the files, sorted by id.
    pub fn shipped(self) -> &'static [(&'static str, &'static ShippedFile)] {
        SHIPPED[self as usize].get_or_init(|| {
            let files = shipped_files(self.folder()).iter();
            let mut files: Vec<_> =
                files.filter_map(|file| Some((file.name.strip_suffix(".json")?, file))).collect();
            files.sort_unstable_by_key(|(id, _)| *id);
            files
        })
    }
}

/// The built-in tables of published measurements, in CSV.
pub fn measured_tables() -> impl Iterator<Item = &'static str> {
    let files = shipped_files("hardware/measured").iter();
    files.filter(|file| file.name.ends_with(".csv")).map(ShippedFile::text)
}

#[derive(Default, Deserialize)]
struct KindsFile {
    kinds: Vec<MeasuredKind>,
}

/// The kinds of deployments that were measured, from the built-in `hardware/measured/kinds.json`.
pub fn measured_kinds() -> &'static [MeasuredKind] {
    static KINDS: OnceLock<Vec<MeasuredKind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let files = shipped_files("hardware/measured").iter();
        let text = files.filter(|file| file.name == "kinds.json").map(ShippedFile::text).next();
        // A test reads the file strictly.
        text.and_then(|text| serde_json::from_str::<KindsFile>(text).ok()).unwrap_or_default().kinds
    })
}

/// Text of the built-in `hardware/defaults.json`.
pub fn shipped_defaults() -> &'static str {
    let files = shipped_files("hardware").iter();
    files.filter(|file| file.name == "defaults.json").map(ShippedFile::text).next().unwrap_or_default()
}

pub trait Entry: DeserializeOwned + Clone + Send + Sync + 'static {
    const KIND: CatalogKind;

    fn id(&self) -> Option<&str>;

    /// Checks the constraints that the types do not express.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

macro_rules! entries {
    ($($Type:ident is $kind:ident $(, checked by $check:expr)?;)*) => {$(
        impl Entry for $Type {
            const KIND: CatalogKind = CatalogKind::$kind;
            fn id(&self) -> Option<&str> {
                Some(&self.id)
            }
            $(fn check(&self) -> Result<(), Error> {
                $check(self)
            })?
        }
    )*};
}

entries! {
    Device is Devices, checked by Device::check;
    System is Systems, checked by ranges::system;
    Rig is Rigs, checked by Rig::check;
    Link is Links;
    NumberFormat is Formats, checked by ranges::format;
    Runtime is Runtimes, checked by ranges::runtime;
    Launch is Launches;
    OptionTable is Options;
    Objective is Objectives, checked by Objective::check;
    Workload is Workloads, checked by Workload::check;
}

impl Entry for ModelFile {
    const KIND: CatalogKind = CatalogKind::Models;

    fn id(&self) -> Option<&str> {
        None
    }
}
