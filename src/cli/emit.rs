//! Launch files in a folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CliError;
use crate::report::launch::LaunchReport;
use crate::report::pretty::pretty;
use crate::spec::error::Error;
use crate::store::file;
use crate::store::folder::write_all;

/// Where launch files are written.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct EmitArgs {
    /// Write the launch files into a folder: scripts, docker compose, Kubernetes, Dynamo, Slurm, benchmarks
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub emit: Option<PathBuf>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Manifest {
    written_by: String,
    files: Vec<String>,
}

pub(super) const MANIFEST: &str = "files.json";

impl EmitArgs {
    /// Writes the files of launches, each in its folder below, all or none; files of an earlier run that are not written
    /// again are removed.
    ///
    /// # Errors
    /// There is nothing to launch, the folder has files of others, or it cannot be written.
    pub fn write<'a>(
        &self,
        launches: impl IntoIterator<Item = (Option<String>, &'a LaunchReport)>,
    ) -> Result<(), CliError> {
        let Some(folder) = &self.emit else { return Ok(()) };
        let mut files = Vec::new();
        for (below, launch) in launches {
            if let Some(first) = launch.infeasible.first() {
                let fix = "change the plan or the limits, or omit --emit";
                return Err(Error::new("emit", first.as_str(), "a deployment that runs", fix).into());
            }
            if let Some(first) = launch.unsupported.first() {
                let fix = "choose another plan, --runtime or --weight-format, or omit --emit";
                let expected = "a plan that the runtime's options express";
                return Err(Error::new("emit", format!("{first} ({})", launch.runtime), expected, fix).into());
            }
            let below = below.as_deref().map(folder_name);
            let name = |path: &str| below.as_ref().map_or(path.to_owned(), |below| format!("{below}/{path}"));
            files.extend(launch.files.iter().map(|file| (name(&file.path), file.text.clone())));
        }
        if files.is_empty() {
            let fix = "omit --emit, or relax the limits until there is a deployment";
            return Err(Error::new("emit", "no deployment", "a deployment to launch", fix).into());
        }
        let mut stale = earlier(folder)?;
        stale.retain(|path| !files.iter().any(|(known, _)| known == path));
        let paths = files.iter().map(|(path, _)| path.clone()).collect();
        let manifest = Manifest { written_by: env!("CARGO_PKG_VERSION").to_owned(), files: paths };
        files.push((MANIFEST.to_owned(), pretty(&manifest)));
        Ok(write_all(folder, &files, &stale)?)
    }
}

/// The name of a folder below: a system may be named by a path.
fn folder_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

fn earlier(folder: &Path) -> Result<Vec<String>, Error> {
    let list = folder.join(MANIFEST);
    if list.exists() {
        let manifest: Manifest = crate::spec::text::from_json(&file::read(&list)?, "a list of launch files")?;
        // Only names below the folder are ours.
        let below = |path: &String| {
            Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        return Ok(manifest.files.into_iter().filter(below).collect());
    }
    if folder.exists() && !file::names(folder)?.is_empty() {
        let found = format!("`{}` has other files", folder.display());
        return Err(Error::new("emit", found, "a new or empty folder", "choose another folder"));
    }
    Ok(vec![])
}
