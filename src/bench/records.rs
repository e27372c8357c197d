//! A file of runs: a JSON object a line, appended as each run ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::request::runs::lines_of;
use crate::spec::error::Error;
use crate::spec::run::RunRecord;
use crate::store::file::{shown, spell};

/// A file that runs are appended to.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: File,
    /// The runs that were in it.
    pub earlier: Vec<RunRecord>,
}

impl RecordFile {
    /// Opens a file, which is made where it is not there. A last line without an end is of a run that was cut off: it is
    /// removed.
    ///
    /// # Errors
    /// The file cannot be read or written, or a line of it is no run.
    pub fn open(path: &Path) -> Result<RecordFile, Error> {
        let fault = |error: io::Error| {
            let fix = "choose a path in an existing, writable folder";
            Error::new("", spell(&error), "a file that can be written", fix).in_file(shown(path))
        };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(fault)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(fault)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(fault)?;
            file.seek(SeekFrom::End(0)).map_err(fault)?;
        }
        let earlier = text[..whole].lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|fault: serde_json::Error| {
                let fix = "correct that line, or choose another file";
                let expected = "a run: `mantile-opt schema run`";
                let key = format!("line {}", number + 1);
                Error::new(key, fault.to_string(), expected, fix).in_file(shown(path))
            })
        };
        let earlier = earlier.map(read).collect::<Result<_, Error>>()?;
        Ok(RecordFile { path: path.to_owned(), file, earlier })
    }

    /// Appends a run, which is on the disk afterwards.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&mut self, run: &RunRecord) -> Result<(), Error> {
        let written = self
            .file
            .write_all(lines_of(std::slice::from_ref(run)).as_bytes())
            .and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            let fix = "free the disk, and go on with --resume";
            Error::new("", spell(&error), "a file that can be written", fix).in_file(shown(&self.path))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_appended_and_one_that_was_cut_off_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let run = |id: &str| RunRecord { run_id: id.to_owned(), ..RunRecord::default() };
        let mut file = RecordFile::open(&path).unwrap();
        file.append(&run("a")).unwrap();
        file.append(&run("b")).unwrap();
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"run_id\":\"c").unwrap();
        let mut file = RecordFile::open(&path).unwrap();
        assert_eq!(file.earlier, [run("a"), run("b")]);
        file.append(&run("d")).unwrap();
        let ids: Vec<String> =
            RecordFile::open(&path).unwrap().earlier.into_iter().map(|run| run.run_id).collect();
        assert_eq!(ids, ["a", "b", "d"]);
        std::fs::write(&path, "{}\n").unwrap();
        assert_eq!(RecordFile::open(&path).unwrap_err().key, "line 1");
    }
}
