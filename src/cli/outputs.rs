//! The files that a command writes: no two outputs go to one place.

use std::path::{Path, PathBuf};

use clap::ArgMatches;

use crate::spec::error::Error;
use crate::store::file;

/// Flags that name a file or a folder to write, by their ids.
const FLAGS: [&str; 9] =
    ["bundle", "emit", "out", "pareto_out", "plot", "records", "residuals", "save_scenario", "trace"];

pub type Output = (String, PathBuf);

/// The outputs of a command line, except standard output.
pub fn outputs(matches: &ArgMatches) -> Vec<Output> {
    let mut found = matches.subcommand().map(|(_, below)| outputs(below)).unwrap_or_default();
    for id in FLAGS {
        let flag = id.replace('_', "-");
        // A global flag is known to both commands.
        let known = found.iter().any(|(known, _)| *known == flag);
        if let (false, Ok(Some(path))) = (known, matches.try_get_one::<PathBuf>(id))
            && path.as_os_str() != "-"
        {
            found.push((flag, path.clone()));
        }
    }
    found
}

/// Checks that each output has a place of its own, whatever links and dots are in its path.
pub fn check_distinct(outputs: &[Output]) -> Result<(), Error> {
    for (at, (flag, path)) in outputs.iter().enumerate() {
        for (other, taken) in &outputs[..at] {
            let fix = "name another file";
            if file::is_same(path, taken) {
                let found = format!("`{}`, which --{other} writes too", file::shown(path));
                return Err(Error::new(flag, found, "a file of its own", fix));
            }
            let folder = |name: &str, place: &Path, inner: &Path| name == "emit" && file::is_in(inner, place);
            if folder(other, taken, path) || folder(flag, path, taken) {
                let found = format!("`{}` and `{}`", file::shown(path), file::shown(taken));
                let expected = format!("no file of --{other} in the folder of --{flag}, nor the other way");
                return Err(Error::new(flag, found, expected, fix));
            }
        }
    }
    Ok(())
}
