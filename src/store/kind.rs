//! The kinds of catalogue files: where each lies and what it is read as. Knows nothing of their contents.

use include_dir::{Dir, include_dir};
use serde::de::DeserializeOwned;

use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::format::Format;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::objective::{Objective, Workload};
use crate::spec::ranges;
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;

static MODELS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/models");
static HARDWARE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/hardware");
static OBJECTIVES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/objectives");

/// A kind of catalogue file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Kind {
    /// Models.
    Models,
    /// Accelerators.
    Devices,
    /// Devices in nodes and networks.
    Systems,
    /// Unlike devices and the links between them.
    Rigs,
    /// Fabrics and buses.
    Links,
    /// Number formats.
    Formats,
    /// Serving engines.
    Runtimes,
    /// What to look for.
    Objectives,
    /// Traffic.
    Workloads,
}

/// Every kind.
pub const KINDS: [Kind; 9] = [
    Kind::Models,
    Kind::Devices,
    Kind::Systems,
    Kind::Rigs,
    Kind::Links,
    Kind::Formats,
    Kind::Runtimes,
    Kind::Objectives,
    Kind::Workloads,
];

impl Kind {
    /// Its folder, in the repository and in the user's folder alike.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Models => "models",
            Kind::Devices => "hardware/devices",
            Kind::Systems => "hardware/systems",
            Kind::Rigs => "hardware/rigs",
            Kind::Links => "hardware/links",
            Kind::Formats => "hardware/formats",
            Kind::Runtimes => "hardware/runtimes",
            Kind::Objectives => "objectives",
            Kind::Workloads => "objectives/workloads",
        }
    }

    /// Its name in commands.
    pub fn plural(self) -> &'static str {
        self.folder().rsplit('/').next().unwrap_or_default()
    }

    /// One of it, in messages.
    pub fn singular(self) -> &'static str {
        match self {
            Kind::Models => "model",
            Kind::Devices => "device",
            Kind::Systems => "system",
            Kind::Rigs => "rig",
            Kind::Links => "link",
            Kind::Formats => "format",
            Kind::Runtimes => "runtime",
            Kind::Objectives => "objective",
            Kind::Workloads => "workload",
        }
    }

    /// Ids and texts of the files that are built in, sorted by id.
    pub fn shipped(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let folder = match self {
            Kind::Models => Some(&MODELS),
            Kind::Objectives => Some(&OBJECTIVES),
            Kind::Workloads => OBJECTIVES.get_dir("workloads"),
            _ => HARDWARE.get_dir(self.plural()),
        };
        folder.into_iter().flat_map(Dir::files).filter_map(|file| {
            let id = file.path().file_name()?.to_str()?.strip_suffix(".json")?;
            Some((id, file.contents_utf8()?))
        })
    }
}

/// Text of the built-in `hardware/defaults.json`.
pub fn shipped_defaults() -> &'static str {
    HARDWARE.get_file("defaults.json").and_then(|file| file.contents_utf8()).unwrap_or_default()
}

/// A type that catalogue files are read as.
pub trait Entry: DeserializeOwned + Clone + Send + Sync + 'static {
    /// Its kind.
    const KIND: Kind;

    /// The id that it states, where it states one.
    fn id(&self) -> Option<&str>;

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// What is wrong.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Declares which type is of which kind.
macro_rules! entries {
    ($($Type:ident is $kind:ident $(, checked by $check:expr)?;)*) => {$(
        impl Entry for $Type {
            const KIND: Kind = Kind::$kind;
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
    Link is Links, checked by ranges::link;
    Format is Formats, checked by ranges::format;
    Runtime is Runtimes, checked by ranges::runtime;
    Objective is Objectives, checked by Objective::check;
    Workload is Workloads, checked by Workload::check;
}

impl Entry for ModelFile {
    const KIND: Kind = Kind::Models;

    fn id(&self) -> Option<&str> {
        None
    }
}
