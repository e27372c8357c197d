//! The kinds of catalogue files: folder and type of each. Independent of their contents.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::shipped::shipped_files;
use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::format::NumberFormat;
use crate::spec::launch::Launch;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::objective::{Objective, Workload};
use crate::spec::option_table::OptionTable;
use crate::spec::ranges;
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;

/// Ids and texts of the built-in files of each kind, read on first use.
static SHIPPED: [OnceLock<Vec<(&'static str, &'static str)>>; KINDS.len()] =
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

/// Every kind.
pub const KINDS: [CatalogKind; 11] = [
    CatalogKind::Models,
    CatalogKind::Devices,
    CatalogKind::Systems,
    CatalogKind::Rigs,
    CatalogKind::Links,
    CatalogKind::Formats,
    CatalogKind::Runtimes,
    CatalogKind::Launches,
    CatalogKind::Options,
    CatalogKind::Objectives,
    CatalogKind::Workloads,
];

impl CatalogKind {
    /// Its folder, the same in the repository and in the user's folder.
    pub fn folder(self) -> &'static str {
        match self {
            CatalogKind::Models => "models",
            CatalogKind::Devices => "hardware/devices",
            CatalogKind::Systems => "hardware/systems",
            CatalogKind::Rigs => "hardware/rigs",
            CatalogKind::Links => "hardware/links",
            CatalogKind::Formats => "hardware/formats",
            CatalogKind::Runtimes => "hardware/runtimes",
            CatalogKind::Launches => "hardware/launches",
            CatalogKind::Options => "hardware/options",
            CatalogKind::Objectives => "objectives",
            CatalogKind::Workloads => "objectives/workloads",
        }
    }

    /// Its name in commands.
    pub fn plural(self) -> &'static str {
        self.folder().rsplit('/').next().unwrap_or_default()
    }

    /// Singular, for messages.
    pub fn singular(self) -> &'static str {
        match self {
            CatalogKind::Models => "model",
            CatalogKind::Devices => "device",
            CatalogKind::Systems => "system",
            CatalogKind::Rigs => "rig",
            CatalogKind::Links => "link",
            CatalogKind::Formats => "format",
            CatalogKind::Runtimes => "runtime",
            CatalogKind::Launches => "launch",
            CatalogKind::Options => "option-table",
            CatalogKind::Objectives => "objective",
            CatalogKind::Workloads => "workload",
        }
    }

    /// With its article, for messages.
    pub fn article(self) -> &'static str {
        match self {
            CatalogKind::Models => "a model",
            CatalogKind::Devices => "a device",
            CatalogKind::Systems => "a system",
            CatalogKind::Rigs => "a rig",
            CatalogKind::Links => "a link",
            CatalogKind::Formats => "a format",
            CatalogKind::Runtimes => "a runtime",
            CatalogKind::Launches => "a launch",
            CatalogKind::Options => "an option table",
            CatalogKind::Objectives => "an objective",
            CatalogKind::Workloads => "a workload",
        }
    }

    /// Description of a valid name, for messages.
    pub(super) fn expected(self) -> &'static str {
        match self {
            CatalogKind::Models => {
                "a catalogue name, a Hugging Face id that the catalogue knows, a path, or hf:ORG/NAME"
            }
            CatalogKind::Systems => {
                "a system, [NODESx]COUNTxDEVICE such as 8xh100-sxm, or the path of a system file"
            }
            CatalogKind::Rigs => "the id of a rig, or the path of a rig file",
            CatalogKind::Devices => "the id of a device",
            CatalogKind::Links => "the id of a link",
            CatalogKind::Formats => "the id of a format",
            CatalogKind::Runtimes | CatalogKind::Launches => "the id of a runtime",
            CatalogKind::Options => "the id of an option table: runtime and version",
            CatalogKind::Objectives => "the id of an objective, or the path of an objective file",
            CatalogKind::Workloads => "the id of a workload, or the path of a workload file",
        }
    }

    /// Ids and texts of the built-in files, sorted by id.
    pub fn shipped(self) -> &'static [(&'static str, &'static str)] {
        SHIPPED[self as usize].get_or_init(|| {
            let files = shipped_files(self.folder()).iter();
            let mut files: Vec<_> =
                files.filter_map(|(name, text)| Some((name.strip_suffix(".json")?, *text))).collect();
            files.sort_unstable();
            files
        })
    }
}

/// The built-in tables of published measurements, in CSV.
pub fn measured_tables() -> impl Iterator<Item = &'static str> {
    let files = shipped_files("hardware/measured").iter();
    files.filter(|(name, _)| name.ends_with(".csv")).map(|(_, text)| *text)
}

/// Text of the built-in `hardware/defaults.json`.
pub fn shipped_defaults() -> &'static str {
    let files = shipped_files("hardware").iter();
    files.filter(|(name, _)| *name == "defaults.json").map(|(_, text)| *text).next().unwrap_or_default()
}

/// A type of catalogue files.
pub trait Entry: DeserializeOwned + Clone + Send + Sync + 'static {
    /// Its kind.
    const KIND: CatalogKind;

    /// Its id, if given.
    fn id(&self) -> Option<&str>;

    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// Names the fault.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Maps types to kinds.
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
