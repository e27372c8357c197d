//! `detect`: shows this machine, and writes it to a file that `--hardware` reads.

use std::path::PathBuf;

use super::output::{OutputArgs, parser};
use super::terminal::width;
use super::{CliError, ExitStatus};
use crate::report::format::Format;
use crate::report::machine::MachineFile;
use crate::report::pretty::pretty;
use crate::report::rendered::EVERY;
use crate::report::text::machine::machine;
use crate::request::UNCONTROLLED;
use crate::request::detect::{DetectRequest, detect};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::file;

const AFTER: &str = "\
Devices come from nvidia-smi, amd-smi or rocm-smi, or system_profiler; processor and memory from the operating system. \
A device is identified by its whole name and its memory size; one that the catalogue lacks is left out and reported. \
`--hardware local` in other commands is the same machine with the same figures: its memory bandwidth is measured \
once and kept, and `detect` measures it anew.

Examples:
  mantile-opt detect
  mantile-opt detect --out machine.json && mantile-opt --model Qwen3-8B --hardware machine.json
  mantile-opt --model Qwen3-8B --hardware local
  mantile-opt detect --no-stream --json

Exit codes: 0 an answer; 2 bad input, or no file can describe the machine.";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct DetectArgs {
    /// Do not measure the memory bandwidth of the host, which takes about a second
    #[arg(long)]
    pub no_stream: bool,
    /// Write the machine to a system file, or to a rig file where its devices differ
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_parser = parser(EVERY), value_name = "FORMAT", hide_possible_values = true, help_heading = "Output")]
    pub format: Option<Format>,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub json: bool,
}

impl DetectArgs {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let report = detect(catalog, &self.request(), &UNCONTROLLED)?;
        let written = match (&self.out, &report.file) {
            (None, _) => None,
            (Some(path), Some(found)) => Some(write(path, found)?),
            (Some(path), None) => {
                let why = report.notes.last().cloned().unwrap_or_default();
                let fix = "run `mantile-opt detect` for the details, and write the file by hand (`mantile-opt schema system`)";
                return Err(Error::new("", why, "a machine with known figures", fix)
                    .in_file(file::shown(path))
                    .into());
            }
        };
        let output = OutputArgs { format: self.format, json: self.json, ..OutputArgs::default() };
        match output.format() {
            Format::Table => output.write(&machine(&report, written.as_deref(), width())),
            _ => output.answer(&report, false),
        }
    }

    pub fn request(&self) -> DetectRequest {
        DetectRequest { stream: !self.no_stream }
    }
}

/// Writes the file under the id of its name, so that it may also lie in a catalogue folder.
fn write(path: &std::path::Path, found: &MachineFile) -> Result<String, Error> {
    let mut content = found.content.clone();
    let id = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| !stem.is_empty());
    if let (Some(id), Some(known)) = (id.filter(|_| path.as_os_str() != "-"), content.get_mut("id")) {
        *known = id.into();
    }
    file::write(path, &pretty(&content))?;
    Ok(file::shown(path))
}
