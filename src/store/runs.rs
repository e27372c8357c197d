//! The store of measured runs: an SQLite file to which records are only appended.
//!
//! A record is acknowledged once its transaction is on the disk. Each has the hash of its text, chained with that of the
//! record before it, so that a change of any is found by [`RunStore::verify`].

mod chain;
mod fault;
mod identifiers;
mod place;
pub mod signature;
pub mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::spec::error::Error;
use crate::spec::run::RunRecord;
use crate::store::file::{make_folder, shown};
use chain::{ChainLink, Digest, canonical};
pub use fault::StoreFault;
use fault::of_sqlite;
use identifiers::without_identifiers;
pub use place::{is_store, user_store};
use signature::{HeadSignature, signatures};

/// `MANT`, so that other programs and [`is_store`] know the file.
const APPLICATION_ID: i32 = 0x4d41_4e54;
/// The form of the tables below.
const FORM: i32 = 1;
/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(20);
/// Time between two attempts.
const AGAIN: Duration = Duration::from_millis(10);
/// Bytes of the salt of a store: a digest of SHA-256 has as many (RFC 2104, section 3).
const SALT_BYTES: usize = 32;

/// Tables whose rows are neither changed nor removed.
const TABLES: &str = "
CREATE TABLE salts(salt BLOB NOT NULL) STRICT;
CREATE TABLE runs(seq INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, record TEXT NOT NULL, hash BLOB NOT NULL,
    chain BLOB NOT NULL) STRICT;
CREATE TABLE versions(seq INTEGER PRIMARY KEY, record TEXT NOT NULL, hash BLOB NOT NULL, chain BLOB NOT NULL) STRICT;
CREATE TABLE signatures(seq INTEGER NOT NULL, chain BLOB NOT NULL, key BLOB NOT NULL, signature BLOB NOT NULL) STRICT;
CREATE TRIGGER runs_once BEFORE INSERT ON runs
    WHEN EXISTS(SELECT 1 FROM runs WHERE seq = NEW.seq OR run_id = NEW.run_id)
    BEGIN SELECT RAISE(ABORT, 'the store has this run'); END;
CREATE TRIGGER versions_once BEFORE INSERT ON versions WHEN EXISTS(SELECT 1 FROM versions WHERE seq = NEW.seq)
    BEGIN SELECT RAISE(ABORT, 'the store has this version'); END;
";

/// The triggers of a table that keep its rows as they are.
fn kept(table: &str) -> String {
    ["UPDATE", "DELETE"]
        .map(|change| {
            format!(
                "CREATE TRIGGER {table}_{change} BEFORE {change} ON {table} BEGIN SELECT RAISE(ABORT, '{table} are \
                 only appended'); END;\n"
            )
        })
        .concat()
}

/// The outcome of an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct AppendedRuns {
    /// Runs that were not there.
    pub added: u64,
    /// Runs that were there with the same content.
    pub known: u64,
}

/// The outcome of [`RunStore::verify`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct StoreCheck {
    /// Records that were read.
    pub runs: u64,
    /// Versions that were read.
    pub versions: u64,
    /// Signatures that were read.
    pub signatures: u64,
    /// The chained hash of the last record, in hex; empty without one.
    pub head: String,
    /// Each fault; none of a store that is as it was written.
    pub faults: Vec<String>,
}

/// The end of the chain: the number of the last record, and the chained hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainHead {
    pub seq: i64,
    pub chain: Digest,
}

/// A store that is open.
#[derive(Debug)]
pub struct RunStore {
    connection: Connection,
    path: PathBuf,
    salt: Vec<u8>,
}

impl RunStore {
    /// Opens a store, which is made where there is none.
    ///
    /// # Errors
    /// The file cannot be read or written, or is no store.
    pub fn open(path: &Path) -> Result<RunStore, Error> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make_folder(folder)?;
        }
        RunStore::connected(path, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a store that is there.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn existing(path: &Path) -> Result<RunStore, Error> {
        match fs::metadata(path) {
            Ok(_) if is_store(path) => RunStore::connected(path, OpenFlags::empty()),
            Ok(_) => Err(no_store(path)),
            Err(error) => {
                let fix = "name a store with --store FILE, or make one with `bench --store` or `runs import`";
                let found = super::file::spell(&error);
                Err(Error::new("store", found, "a store of runs", fix).in_file(shown(path)))
            }
        }
    }

    fn connected(path: &Path, more: OpenFlags) -> Result<RunStore, Error> {
        let fault = |error| of_sqlite(path, &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let mut connection = Connection::open_with_flags(path, flags).map_err(fault)?;
        connection.busy_timeout(BUSY).map_err(fault)?;
        if !is_named(&connection).map_err(fault)? {
            return Err(no_store(path));
        }
        let set = |name: &str, value: &str| connection.pragma_update(None, name, value);
        patient(|| set("journal_mode", "WAL")).map_err(fault)?;
        // A transaction is on the disk when its commit returns: https://sqlite.org/pragma.html#pragma_synchronous
        set("synchronous", "FULL").map_err(fault)?;
        // A replacement of a row fires the triggers of its removal.
        set("recursive_triggers", "ON").map_err(fault)?;
        set("trusted_schema", "OFF").map_err(fault)?;
        let transaction = begun(&mut connection).map_err(fault)?;
        let form: i32 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(fault)?;
        match form {
            0 => made(&transaction).map_err(fault)?,
            FORM => {}
            other => {
                let fix = "use the version of the program that wrote it, or a newer one";
                let found = format!("form {other} of a store");
                return Err(Error::new("store", found, format!("form {FORM}"), fix).in_file(shown(path)));
            }
        }
        let salt = transaction.query_row("SELECT salt FROM salts", [], |row| row.get(0)).map_err(fault)?;
        transaction.commit().map_err(fault)?;
        Ok(RunStore { connection, path: path.to_owned(), salt })
    }

    fn fault(&self) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.clone();
        move |error| of_sqlite(&path, &error)
    }

    /// Appends runs: all or none. They are on the disk when this returns. One that is there with the same content changes
    /// nothing. Texts that identify a machine are replaced by their salted hash.
    ///
    /// # Errors
    /// A run of this id is there with other content, or the disk is full or fails.
    pub fn append(&mut self, runs: &[RunRecord]) -> Result<AppendedRuns, Error> {
        let (fault, path) = (self.fault(), self.path.clone());
        let transaction = begun(&mut self.connection).map_err(&fault)?;
        let mut head = head_of(&transaction).map_err(&fault)?;
        let mut appended = AppendedRuns::default();
        for run in runs {
            let (id, text) = (&run.run_id, canonical(&without_identifiers(run, &self.salt)));
            let stored: Option<String> = transaction
                .query_row("SELECT record FROM runs WHERE run_id = ?1", [id], |row| row.get(0))
                .optional()
                .map_err(&fault)?;
            match stored {
                Some(stored) if stored == text => appended.known += 1,
                Some(_) => return Err(other_content(id).in_file(shown(&path))),
                None => {
                    let link = ChainLink::of(&text, head.chain);
                    head = ChainHead { seq: head.seq + 1, chain: link.chain };
                    let row = params![head.seq, id, text, link.hash.as_slice(), link.chain.as_slice()];
                    transaction
                        .execute(
                            "INSERT INTO runs(seq, run_id, record, hash, chain) VALUES (?1, ?2, ?3, ?4, ?5)",
                            row,
                        )
                        .map_err(&fault)?;
                    appended.added += 1;
                }
            }
        }
        transaction.commit().map_err(&fault)?;
        Ok(appended)
    }

    /// Every run, in the order in which they were appended.
    ///
    /// # Errors
    /// The file cannot be read, or a record was changed so that it is no run.
    pub fn runs(&self) -> Result<Vec<RunRecord>, Error> {
        self.selected("")
    }

    /// The run whose id begins so.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn run(&self, start: &str) -> Result<RunRecord, Error> {
        let mut found = self.selected(start)?;
        if let Some(at) = found.iter().position(|run| run.run_id == start) {
            return Ok(found.swap_remove(at));
        }
        let several = |found: &[RunRecord]| {
            let ids: Vec<&str> = found.iter().take(4).map(|run| run.run_id.as_str()).collect();
            format!("{} runs begin with `{start}`: {}", found.len(), ids.join(", "))
        };
        match (found.len(), found.pop()) {
            (1, Some(run)) => Ok(run),
            (0, _) => Err(no_run(format!("no run begins with `{start}`")).in_file(shown(&self.path))),
            (_, last) => {
                found.extend(last);
                Err(no_run(several(&found)).in_file(shown(&self.path)))
            }
        }
    }

    /// The text of every run, in the order in which they were appended.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn texts(&self) -> Result<Vec<String>, Error> {
        self.selected_texts("")
    }

    /// The texts of runs whose ids begin so.
    fn selected_texts(&self, start: &str) -> Result<Vec<String>, Error> {
        let fault = self.fault();
        let query = "SELECT record FROM runs WHERE substr(run_id, 1, length(?1)) = ?1 ORDER BY seq";
        let mut statement = self.connection.prepare(query).map_err(&fault)?;
        let rows = statement.query_map([start], |row| row.get(0)).map_err(&fault)?;
        rows.collect::<Result<_, _>>().map_err(&fault)
    }

    fn selected(&self, start: &str) -> Result<Vec<RunRecord>, Error> {
        let read = |text: &String| {
            serde_json::from_str(text).map_err(|broken| {
                let fix = "`mantile-opt runs verify` lists every fault; restore the file from a copy";
                Error::new("record", broken.to_string(), "a run", fix).in_file(shown(&self.path))
            })
        };
        self.selected_texts(start)?.iter().map(read).collect()
    }

    /// Reads every record and computes its hash and the chain again, checks every signature, and lets SQLite check the
    /// file.
    pub fn verify(&self) -> StoreCheck {
        let mut check =
            StoreCheck { runs: 0, versions: 0, signatures: 0, head: String::new(), faults: vec![] };
        let file = self.connection.prepare("PRAGMA integrity_check").and_then(|mut statement| {
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            lines.collect::<Result<Vec<String>, _>>()
        });
        match file {
            Ok(lines) => check.faults.extend(lines.into_iter().filter(|line| line != "ok")),
            Err(error) => check.faults.push(error.to_string()),
        }
        let mut heads = vec![];
        let run_id = |text: &str| serde_json::from_str::<RunRecord>(text).map(|run| run.run_id);
        match chain::verified(&self.connection, "runs", "run_id", &run_id) {
            Ok(read) => {
                check.faults.extend(read.faults);
                heads = read.heads;
            }
            Err(error) => check.faults.push(format!("runs: {error}")),
        }
        check.runs = heads.len() as u64;
        check.head = heads.last().map(chain::hex).unwrap_or_default();
        match chain::verified(&self.connection, "versions", "seq", &|_| Ok(String::new())) {
            Ok(read) => {
                check.versions = read.heads.len() as u64;
                check.faults.extend(read.faults);
            }
            Err(error) => check.faults.push(format!("versions: {error}")),
        }
        match signatures(&self.connection) {
            Ok(found) => {
                check.signatures = found.len() as u64;
                check.faults.extend(found.iter().filter_map(|one| one.fault(&heads)));
            }
            Err(error) => check.faults.push(format!("signatures: {error}")),
        }
        check
    }

    /// Signs the end of the chain, so that a store that lost its last records is found.
    ///
    /// # Errors
    /// The store is empty or cannot be written, or the key cannot be read.
    pub fn sign(&mut self, key: &signature::SigningKeyFile) -> Result<HeadSignature, Error> {
        let fault = self.fault();
        let transaction = begun(&mut self.connection).map_err(&fault)?;
        let head = head_of(&transaction).map_err(&fault)?;
        if head.seq == 0 {
            let fix = "add a run first: `bench --store` or `runs import`";
            return Err(Error::new("store", "no run", "a run to sign", fix).in_file(shown(&self.path)));
        }
        let signed = key.signed(head);
        let row =
            params![signed.seq, signed.chain.as_slice(), signed.key.as_slice(), signed.signature.as_slice()];
        transaction
            .execute("INSERT INTO signatures(seq, chain, key, signature) VALUES (?1, ?2, ?3, ?4)", row)
            .map_err(&fault)?;
        transaction.commit().map_err(&fault)?;
        Ok(signed)
    }

    /// Limits the number of pages of the file, as a full disk does.
    #[cfg(feature = "internals")]
    pub fn limit_pages(&self, most: u64) {
        // A limit that cannot be set leaves the file without one, which the test then sees.
        let _ = self.connection.pragma_update(None, "max_page_count", most as i64);
    }
}

/// Whether the file is a store, or is empty and becomes one: its first bytes say so before there is a write-ahead log, in
/// which they would be missed by [`is_store`].
fn is_named(connection: &Connection) -> rusqlite::Result<bool> {
    let id = || connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0));
    if id()? == 0 {
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        if tables == 0 {
            patient(|| connection.pragma_update(None, "application_id", APPLICATION_ID))?;
        }
    }
    Ok(id()? == APPLICATION_ID)
}

/// The result of `work`, which is tried again while another program has the file: SQLite does not wait by itself where the
/// kind of its log changes.
fn patient<T>(work: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        match work() {
            Err(error) if fault::is_busy(&error) && begun.elapsed() < BUSY => std::thread::sleep(AGAIN),
            other => return other,
        }
    }
}

/// A transaction that is the only one that writes, from its beginning.
fn begun(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Makes the tables of a new store.
fn made(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(TABLES)?;
    for table in ["salts", "runs", "versions", "signatures"] {
        transaction.execute_batch(&kept(table))?;
    }
    transaction.execute("INSERT INTO salts(salt) VALUES (?1)", [fresh_salt()?])?;
    transaction.pragma_update(None, "user_version", FORM)
}

fn fresh_salt() -> rusqlite::Result<Vec<u8>> {
    let mut salt = vec![0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    Ok(salt)
}

fn head_of(connection: &Connection) -> rusqlite::Result<ChainHead> {
    let last = connection
        .query_row("SELECT seq, chain FROM runs ORDER BY seq DESC LIMIT 1", [], |row| {
            Ok(ChainHead { seq: row.get(0)?, chain: row.get(1)? })
        })
        .optional()?;
    Ok(last.unwrap_or_default())
}

fn no_store(path: &Path) -> Error {
    let fix = "name another file: a store is made where there is none";
    Error::new("store", "a file that is no store", "a store of runs", fix).in_file(shown(path))
}

fn other_content(id: &str) -> Error {
    let fix = "give the new run an id of its own: what is stored is never changed";
    Error::new("run_id", format!("`{id}`, which the store has with other content"), "a new id", fix)
}

fn no_run(found: String) -> Error {
    Error::new("run_id", found, "the beginning of one id", "`mantile-opt runs list` lists the ids")
}
