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
    Error::new("store", found, "a store of runs that can be read and written", fix).in_file(shown(path))
}

/// Whether another program has the file.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
