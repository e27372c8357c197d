//! Versions of calibrations in a store of runs.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::params;

use super::chain::{ChainLink, Digest, canonical};
use super::{RunStore, begun};
use crate::spec::calibration_version::CalibrationVersion;
use crate::spec::error::Error;
use crate::spec::text::in_utc;
use crate::store::catalog::Catalog;
use crate::store::file::shown;
use crate::store::kind::CatalogKind;

impl RunStore {
    /// Appends a version, which gets the next number and the time.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn add_version(&mut self, version: CalibrationVersion) -> Result<CalibrationVersion, Error> {
        let fault = self.fault();
        let transaction = begun(&mut self.connection).map_err(&fault)?;
        let last =
            transaction.query_row("SELECT seq, chain FROM versions ORDER BY seq DESC LIMIT 1", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Digest>(1)?))
            });
        let (last, before) = match last {
            Err(rusqlite::Error::QueryReturnedNoRows) => (0, Digest::default()),
            other => other.map_err(&fault)?,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let version =
            CalibrationVersion { number: last.unsigned_abs() + 1, created_utc: in_utc(now), ..version };
        let text = canonical(&version);
        let link = ChainLink::of(&text, before);
        let row = params![last + 1, text, link.hash.as_slice(), link.chain.as_slice()];
        transaction
            .execute("INSERT INTO versions(seq, record, hash, chain) VALUES (?1, ?2, ?3, ?4)", row)
            .map_err(&fault)?;
        transaction.commit().map_err(&fault)?;
        Ok(version)
    }

    /// Every version, oldest first.
    ///
    /// # Errors
    /// The file cannot be read, or a version was changed so that it is none.
    pub fn versions(&self) -> Result<Vec<CalibrationVersion>, Error> {
        let fault = self.fault();
        let mut statement =
            self.connection.prepare("SELECT record FROM versions ORDER BY seq").map_err(&fault)?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(&fault)?;
        rows.map(|row| {
            serde_json::from_str(&row.map_err(&fault)?).map_err(|broken| {
                let fix = "`mantile-opt runs verify` lists every fault; restore the file from a copy";
                Error::new("versions", broken.to_string(), "a version", fix).in_file(shown(&self.path))
            })
        })
        .collect()
    }

    /// The version with this number.
    ///
    /// # Errors
    /// There is none, or the file cannot be read.
    pub fn version(&self, number: u64) -> Result<CalibrationVersion, Error> {
        let mut versions = self.versions()?;
        let there = versions.len();
        match usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) {
            Some(at) if at < there => Ok(versions.swap_remove(at)),
            _ => {
                let found = format!("{number}, of {there} versions");
                let fix = "`mantile-opt runs versions` lists them";
                Err(Error::new("version", found, "the number of a version", fix).in_file(shown(&self.path)))
            }
        }
    }

    /// The catalogue with the newest version of each runtime in place of its profile.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn in_force(&self, catalog: &Catalog) -> Result<Catalog, Error> {
        let newest: BTreeMap<String, String> =
            self.versions()?.into_iter().map(|version| (version.runtime, version.profile)).collect();
        Ok(newest.iter().fold(catalog.clone(), |catalog, (runtime, profile)| {
            catalog.with_entry(CatalogKind::Runtimes, runtime, profile)
        }))
    }
}
