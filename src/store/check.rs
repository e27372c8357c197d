//! Checks user files: the kind of each, whether it parses, whether its references exist, and doubtful figures.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::catalog::{Catalog, CatalogEntry, read_entry};
use super::file;
use super::kind::{CatalogKind, Entry};
use crate::graph::model::ModelGraph;
use crate::report::catalog::{CatalogLine, Listed};
use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::format::NumberFormat;
use crate::spec::launch::Launch;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::near::suggest;
use crate::spec::objective::{Objective, Workload};
use crate::spec::option_table::OptionTable;
use crate::spec::plausible::{self, Warning};
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;
use crate::spec::text::from_json;

#[derive(Clone, Debug, Serialize)]
pub struct CheckedFile {
    pub file: String,
    pub kind: &'static str,
    pub name: String,
    pub summary: String,
    pub doubts: Vec<Warning>,
}

/// Keys that determine the kind: the first key that a file has.
const SIGNS: [(CatalogKind, &str); 12] = [
    (CatalogKind::Models, "config"),
    (CatalogKind::Models, "model_type"),
    (CatalogKind::Systems, "devices_per_node"),
    (CatalogKind::Rigs, "members"),
    (CatalogKind::Runtimes, "vendors"),
    (CatalogKind::Launches, "settings"),
    (CatalogKind::Options, "options"),
    (CatalogKind::Formats, "bits_per_element"),
    (CatalogKind::Objectives, "optimize"),
    (CatalogKind::Workloads, "isl"),
    (CatalogKind::Devices, "memory"),
    (CatalogKind::Links, "bandwidth"),
];

/// The JSON object in a file, and its kind, from its keys.
pub fn recognise(path: &Path) -> Result<(CatalogKind, Map<String, Value>), Error> {
    let name = file::shown(path);
    let map: Map<String, Value> =
        from_json(&file::read_plain(path)?, "a catalogue file").map_err(|fault| fault.in_file(&name))?;
    let kind = SIGNS.iter().find(|(_, key)| map.contains_key(*key)).map(|(kind, _)| *kind);
    let kind = kind.ok_or_else(|| {
        let signs: Vec<String> =
            SIGNS.iter().map(|(kind, key)| format!("{key} ({})", kind.singular())).collect();
        let found = map.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        Error::new(
            "",
            if found.is_empty() { "no keys".to_owned() } else { format!("keys {found}") },
            format!("a key that determines its kind: {}", signs.join(", ")),
            "start from an entry of its kind (`mantile-opt catalog KIND NAME --format json`), or set --kind",
        )
        .in_file(&name)
    })?;
    Ok((kind, map))
}

/// Maximum number of folder entries to visit: a folder with more is not a folder of catalogue files.
const MOST_ENTRIES: usize = 100_000;

/// Every catalogue file at `path`: the file itself, or those in a folder and its subfolders, each once.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut folders, mut seen) = (Vec::new(), vec![path.to_owned()], BTreeSet::new());
    let mut entries = 0;
    while let Some(folder) = folders.pop() {
        let fault = |error: std::io::Error| {
            let fix = "check the path and its permissions";
            Error::new("", file::spell(&error), "a folder that can be read", fix)
                .in_file(file::shown(&folder))
        };
        // A link may lead back to its own folder.
        if !seen.insert(fs::canonicalize(&folder).map_err(fault)?) {
            continue;
        }
        for entry in fs::read_dir(&folder).map_err(fault)? {
            let inner = entry.map_err(fault)?.path();
            entries += 1;
            if entries > MOST_ENTRIES {
                let fix = "name a folder with only the catalogue files";
                let found = format!("more than {MOST_ENTRIES} files and folders");
                return Err(
                    Error::new("", found, "a folder of catalogue files", fix).in_file(file::shown(path))
                );
            }
            let json = inner.extension().is_some_and(|extension| extension == "json");
            if inner.is_dir() {
                folders.push(inner);
            } else if json && inner.file_name().is_none_or(|name| name != "defaults.json") {
                found.push(inner);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        let fix = "name a .json file, or a folder with .json files";
        return Err(Error::new("", "no .json file", "a catalogue file", fix).in_file(file::shown(path)));
    }
    Ok(found)
}

/// The line of a file in the catalogue, and its doubtful figures.
type Content = (CatalogLine, Vec<Warning>);

/// The targets of references in a checked file.
pub struct FileChecker<'a> {
    pub catalog: &'a Catalog,
    /// Ids of files that are checked in the same run.
    pub neighbours: BTreeSet<String>,
}

impl FileChecker<'_> {
    /// Reads a file and summarises it.
    pub fn file(&self, path: &Path, kind: Option<CatalogKind>) -> Result<CheckedFile, Error> {
        let (kind, map) = match kind {
            Some(kind) => (kind, Map::new()),
            None => recognise(path)?,
        };
        let shelved = CatalogEntry::at(path)?;
        let name = file::shown(path);
        if kind == CatalogKind::Models && map.contains_key("model_type") {
            return self.config(path);
        }
        let content = self.content(path, &shelved, kind, &map);
        let (line, doubts) = content.map_err(|fault| fault.in_file(&name))?;
        Ok(CheckedFile { file: name, kind: kind.singular(), name: line.name, summary: line.summary, doubts })
    }

    fn content(
        &self,
        path: &Path,
        shelved: &CatalogEntry,
        kind: CatalogKind,
        map: &Map<String, Value>,
    ) -> Result<Content, Error> {
        match kind {
            CatalogKind::Models => self.model(shelved),
            CatalogKind::Systems => self.system(path, map),
            CatalogKind::Devices => self.plain::<Device>(shelved, |device| self.device(device)),
            CatalogKind::Links => self.plain::<Link>(shelved, |link| Ok(plausible::link(link))),
            CatalogKind::Options => self.plain::<OptionTable>(shelved, |_| Ok(vec![])),
            CatalogKind::Workloads => self.plain::<Workload>(shelved, |_| Ok(vec![])),
            CatalogKind::Rigs => self.plain::<Rig>(shelved, |rig| self.rig(rig).map(|()| vec![])),
            CatalogKind::Formats => self.plain::<NumberFormat>(shelved, |format| {
                let mut runtimes = format.runtimes.iter();
                runtimes.try_for_each(|id| self.refers("runtimes", CatalogKind::Runtimes, id))?;
                Ok(plausible::format(format))
            }),
            CatalogKind::Runtimes => self.plain::<Runtime>(shelved, |runtime| {
                let mut formats = runtime.weight_formats.iter().chain(&runtime.kv_formats);
                formats.try_for_each(|id| self.refers("weight_formats", CatalogKind::Formats, id))?;
                self.catalog.unknown_makers(runtime)
            }),
            CatalogKind::Launches => self.plain::<Launch>(shelved, |launch| {
                self.refers("id", CatalogKind::Runtimes, &launch.id)?;
                self.refers("table", CatalogKind::Options, &launch.table).map(|()| vec![])
            }),
            CatalogKind::Objectives => self.plain::<Objective>(shelved, |objective| {
                self.refers("workload", CatalogKind::Workloads, &objective.workload).map(|()| vec![])
            }),
        }
    }

    fn plain<T: Entry + Listed>(
        &self,
        shelved: &CatalogEntry,
        doubts: impl Fn(&T) -> Result<Vec<Warning>, Error>,
    ) -> Result<Content, Error> {
        let entry: T = read_entry(shelved)?;
        Ok((entry.line(), doubts(&entry)?))
    }

    fn link(&self, id: &str) -> Option<Link> {
        self.catalog.load(id).ok()
    }

    /// A reference in a file must have a target.
    fn refers(&self, key: &str, kind: CatalogKind, id: &str) -> Result<(), Error> {
        if self.neighbours.contains(id) || self.catalog.find(kind, id).is_ok() {
            return Ok(());
        }
        let shelf = self.catalog.entries(kind);
        let fix =
            suggest(id, shelf.keys().map(String::as_str), &format!("mantile-opt catalog {}", kind.plural()));
        let expected = format!("the id of {}", kind.article());
        Err(Error::new(key, format!("unknown id `{id}`"), expected, fix))
    }

    fn device(&self, device: &Device) -> Result<Vec<Warning>, Error> {
        for (key, link) in [
            ("scale_up.link", device.scale_up.as_ref().map(|up| &up.link)),
            ("host_link.link", device.host_link.as_ref().map(|host| &host.link)),
        ] {
            link.iter().try_for_each(|link| self.refers(key, CatalogKind::Links, link))?;
        }
        device.system.iter().try_for_each(|system| self.refers("system", CatalogKind::Systems, system))?;
        let mut doubts = plausible::device(device, |id| self.link(id));
        let missing = |key: &&str| Warning {
            key: (*key).to_owned(),
            why: "missing: problems that need it are rejected".into(),
        };
        doubts.extend(device.missing().iter().map(missing));
        doubts.extend(self.catalog.unknown_family(device)?);
        let (mut served, mut measured) = (false, false);
        for runtime in self.catalog.all::<Runtime>()? {
            served |= runtime.runs_on(device);
            measured |= runtime
                .constants
                .iter()
                .any(|c| c.devices.contains(&device.id) || c.families.contains(&device.family));
        }
        if !served {
            let why = format!(
                "no runtime serves devices of {}: add the vendor to a runtime's `vendors`",
                device.vendor.name()
            );
            doubts.push(Warning { key: "vendor".into(), why });
        } else if !measured {
            let why = format!("no runtime has constants for {}: the nearest ones are used", device.family);
            doubts.push(Warning { key: "family".into(), why });
        }
        Ok(doubts)
    }

    fn system(&self, path: &Path, map: &Map<String, Value>) -> Result<Content, Error> {
        let mut map = if map.is_empty() { recognise(path)?.1 } else { map.clone() };
        let mut doubts = Vec::new();
        if let Some(inline @ Value::Object(_)) = map.get("device") {
            let device: Device = from_json(&inline.to_string(), "a device")?;
            doubts = self
                .device(&device)
                .map_err(|fault| Error { key: format!("device.{}", fault.key), ..fault })?;
            doubts.iter_mut().for_each(|doubt| doubt.key = format!("device.{}", doubt.key));
            map.insert("device".into(), device.id.into());
        }
        let system: System = from_json(&Value::Object(map).to_string(), "a system")?;
        for (at, tier) in system.tiers.iter().enumerate() {
            self.refers(&format!("tiers[{at}].link"), CatalogKind::Links, &tier.link)?;
        }
        system
            .network
            .iter()
            .try_for_each(|tier| self.refers("network.link", CatalogKind::Links, &tier.link))?;
        if !self.neighbours.contains(&system.device) {
            self.catalog.hardware(&path.to_string_lossy())?;
        }
        doubts.extend(plausible::system(&system, |id| self.link(id)));
        Ok((system.line(), doubts))
    }

    /// A rig's references must exist, and its links must join its members.
    fn rig(&self, rig: &Rig) -> Result<(), Error> {
        for (at, post) in rig.members.iter().enumerate() {
            self.refers(&format!("members[{at}].device"), CatalogKind::Devices, &post.device)?;
            post.runtime.iter().try_for_each(|runtime| {
                self.refers(&format!("members[{at}].runtime"), CatalogKind::Runtimes, runtime)
            })?;
            post.joined.iter().try_for_each(|wire| {
                self.refers(&format!("members[{at}].joined.link"), CatalogKind::Links, &wire.link)
            })?;
        }
        for (at, wire) in rig.links.iter().enumerate() {
            self.refers(&format!("links[{at}].link"), CatalogKind::Links, &wire.link)?;
        }
        rig.edges(&rig.names(|post| post.device.clone())).map(|_| ())
    }

    fn model(&self, shelved: &CatalogEntry) -> Result<Content, Error> {
        let model: ModelFile = read_entry(shelved)?;
        let graph = ModelGraph::build(&model.model_config()?)?;
        let counted = graph.parameters().unique;
        let doubts = (counted != model.parameters).then(|| Warning {
            key: "parameters".into(),
            why: format!("{} in the file, {counted} from the configuration", model.parameters),
        });
        Ok((model.line(), doubts.into_iter().collect()))
    }

    fn config(&self, path: &Path) -> Result<CheckedFile, Error> {
        let file = file::shown(path);
        let model = self.catalog.model(&path.to_string_lossy())?;
        let graph = ModelGraph::build(&model.config).map_err(|fault| fault.in_file(&file))?;
        let counted = crate::report::table::grouped(graph.parameters().unique);
        let summary = format!("a config.json with {counted} parameters");
        Ok(CheckedFile {
            file,
            kind: CatalogKind::Models.singular(),
            name: model.name,
            summary,
            doubts: vec![],
        })
    }
}
