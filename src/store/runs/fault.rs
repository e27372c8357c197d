//! Faults of SQLite in the words of the program.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::spec::error::Error;
use crate::store::file::shown;

/// Kinds of faults, and how to correct each.
const FIXES: [(ErrorCode, &str, &str); 7] = [
    (ErrorCode::DiskFull, "the disk is full", "free the disk; what was acknowledged is stored"),
    (ErrorCode::DatabaseBusy, "another program writes to it", "try again when the other one is done"),
    (ErrorCode::DatabaseLocked, "another program writes to it", "try again when the other one is done"),
    (ErrorCode::ReadOnly, "a file that may not be written", "correct its permissions, or name another file"),
    (ErrorCode::CannotOpen, "a file that cannot be opened", "check the path and its permissions"),
    (
        ErrorCode::DatabaseCorrupt,
        "a damaged file",
        "`mantile-opt runs verify` lists the faults; restore the file from a copy",
    ),
    (
        ErrorCode::NotADatabase,
        "a file that is no store",
        "name another file: a store is made where there is none",
    ),
];

/// A fault of SQLite.
pub(super) fn of_sqlite(path: &Path, error: &rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    let known = FIXES.iter().find(|(kind, ..)| code == Some(*kind));
    let text = error.to_string();
    let (found, fix) =
        known.map_or((text.as_str(), "check the path and the disk"), |(_, found, fix)| (*found, *fix));
    Error::new(STORE, found, "a store of runs that can be read and written", fix).in_file(shown(path))
}

/// The key of faults of a store itself, whatever is stored in it.
const STORE: &str = "store";

/// Why a store takes no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// Its disk is full.
    Full,
    /// Another program writes to it.
    Busy,
    /// It cannot be read or written.
    Broken,
}

impl StoreFault {
    /// The kind of a fault; `None` where it is that of a run, not of the store.
    pub fn of(fault: &Error) -> Option<StoreFault> {
        let known = FIXES.iter().find(|(_, found, _)| *found == fault.found).map(|(code, ..)| *code);
        let kind = match known {
            Some(ErrorCode::DiskFull) => StoreFault::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreFault::Busy,
            _ => StoreFault::Broken,
        };
        (fault.key == STORE).then_some(kind)
    }
}

/// Whether another program has the file.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_store_has_its_kind_and_one_of_a_run_has_none() {
        let of = |code: i32| {
            let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            StoreFault::of(&of_sqlite(Path::new("x"), &error))
        };
        assert_eq!(of(rusqlite::ffi::SQLITE_FULL), Some(StoreFault::Full));
        assert_eq!(of(rusqlite::ffi::SQLITE_BUSY), Some(StoreFault::Busy));
        assert_eq!(of(rusqlite::ffi::SQLITE_CORRUPT), Some(StoreFault::Broken));
        assert_eq!(of(rusqlite::ffi::SQLITE_MISUSE), Some(StoreFault::Broken));
        assert_eq!(StoreFault::of(&Error::new("run_id", "the disk is full", "", "")), None);
    }
}
