//! Rows of a sweep to a file or standard output, as they are evaluated; a file can be continued.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::cli::CliError;
use crate::report::sweep::{SweepRow, csv_header, csv_line};
use crate::request::sweep::PreparedSweep;
use crate::request::sweep::merge::RowFormat;
use crate::spec::error::Error;
use crate::spec::visible::visible_json;
use crate::store::closed_output::check_stdout;
use crate::store::file;

pub(super) struct RowWriter {
    format: RowFormat,
    path: Option<PathBuf>,
    out: Box<dyn Write + Send>,
}

fn fault(path: &Path, error: &io::Error) -> Error {
    let fix = "choose a path in an existing, writable folder";
    Error::new("out", file::spell(error), "a file that can be read and written", fix)
        .in_file(file::shown(path))
}

/// Lines of a file, without line ends.
///
/// # Errors
/// It cannot be opened; a line that cannot be read is an error itself.
pub(super) fn lines_of(path: &Path) -> Result<impl Iterator<Item = Result<String, Error>> + use<>, Error> {
    let file = File::open(path).map_err(|error| fault(path, &error))?;
    let path = path.to_owned();
    Ok(BufReader::new(file).lines().map(move |line| line.map_err(|error| fault(&path, &error))))
}

impl RowWriter {
    pub(super) fn new(format: RowFormat, out: Option<&Path>) -> RowWriter {
        let path = out.filter(|path| path.as_os_str() != "-").map(Path::to_owned);
        RowWriter { format, path, out: Box::new(io::stdout()) }
    }

    pub(super) fn create(&mut self) -> Result<(), Error> {
        if let Some(path) = &self.path {
            let file = File::create(path).map_err(|error| fault(path, &error))?;
            self.out = Box::new(BufWriter::new(file));
        }
        Ok(())
    }

    /// Opens the destination, and writes a header where it has none. Returns the number of rows that are kept.
    pub(super) fn open(&mut self, sweep: &PreparedSweep, resume: bool) -> Result<u64, CliError> {
        if self.path.is_none() {
            check_stdout()?;
        }
        let header = match self.format {
            RowFormat::Csv => {
                let head = sweep.head();
                csv_header(&head.vary, head.traffic.is_some())
            }
            RowFormat::JsonLines => String::new(),
        };
        let kept = match self.path.clone() {
            Some(path) if resume && path.exists() => self.kept(&path, &header, sweep)?,
            Some(_) if resume => None,
            _ => None,
        };
        if let Some(rows) = kept {
            return Ok(rows);
        }
        self.create()?;
        self.text(&header)?;
        self.flush()?;
        Ok(0)
    }

    /// Number of whole rows in an interrupted file, which is cut after them; `None` where it has no header.
    fn kept(&mut self, path: &Path, header: &str, sweep: &PreparedSweep) -> Result<Option<u64>, Error> {
        let wrong = |error: io::Error| fault(path, &error);
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(wrong)?;
        let mut reader = BufReader::new(file);
        let (mut length, mut rows, mut headed) = (0, 0, header.is_empty());
        let mut line = String::new();
        let own = sweep.fingerprint();
        loop {
            line.clear();
            let bytes = reader.read_line(&mut line).map_err(wrong)?;
            // A line without its end was being written.
            if bytes == 0 || !line.ends_with('\n') {
                break;
            }
            if headed {
                let row = self.format.identity(line.trim_end());
                let row = row.map_err(|fault| fault.in_file(file::shown(path)))?;
                if row.sweep != own || row.point != sweep.point(rows) || rows >= sweep.count() {
                    return Err(other(path));
                }
                rows += 1;
            } else if line != header {
                return Err(other(path));
            }
            headed = true;
            length += bytes as u64;
        }
        let file = reader.into_inner();
        file.set_len(length).map_err(wrong)?;
        self.out = Box::new(BufWriter::new(file));
        Ok(headed.then_some(rows))
    }

    pub(super) fn write(&mut self, rows: &[SweepRow]) -> Result<(), CliError> {
        for row in rows {
            match self.format {
                RowFormat::Csv => self.text(&csv_line(row))?,
                RowFormat::JsonLines => {
                    let line = serde_json::to_string(row).expect("reports have only text keys");
                    self.text(&format!("{}\n", visible_json(&line)))?;
                }
            }
        }
        self.flush()
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), CliError> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        Ok(self.out.flush()?)
    }
}

fn other(path: &Path) -> Error {
    let fix = "omit --resume to write it anew, or name the file of this sweep";
    let found = "rows of another sweep, shard or version";
    Error::new("resume", found, "rows of the same sweep", fix).in_file(file::shown(path))
}
