//! `--records`: one record for each request of a simulation, in a file.

use std::path::{Path, PathBuf};

use crate::report::simulated_records::{RecordFormat, SimulatedRequest};
use crate::spec::error::Error;
use crate::store::file;
use crate::store::streamed_file::StreamedFile;

/// Where records are written.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RecordArgs {
    /// Write one record for each counted request to a file; the ending selects CSV, which --trace reads, or JSON lines
    #[arg(long, value_name = "FILE.csv|.jsonl", help_heading = "Output")]
    pub records: Option<PathBuf>,
}

/// Records on their way to a file.
pub struct RecordWriter {
    file: StreamedFile,
    format: RecordFormat,
}

impl RecordArgs {
    /// Begins the file, if one is requested, before anything is computed.
    pub fn begun(&self) -> Result<Option<RecordWriter>, Error> {
        let Some(path) = &self.records else { return Ok(None) };
        let format = format_of(path)?;
        let mut file = StreamedFile::begun(path)?;
        file.write(&format.head());
        Ok(Some(RecordWriter { file, format }))
    }
}

impl RecordWriter {
    /// Adds a record.
    pub fn add(&mut self, one: &SimulatedRequest) {
        self.file.write(&self.format.line(one));
    }

    /// All records are written.
    pub fn finish(self) -> Result<(), Error> {
        self.file.finish()
    }
}

fn format_of(path: &Path) -> Result<RecordFormat, Error> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.and_then(RecordFormat::of_ending).ok_or_else(|| {
        let found = format!("`{}`", file::shown(path));
        let fix = "write e.g. --records requests.csv";
        Error::new("records", found, "a file that ends in .csv or .jsonl", fix)
    })
}
