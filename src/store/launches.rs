//! Launches of the catalogue with their option tables.

use super::catalog::Catalog;
use super::kind::CatalogKind;
use crate::launch::back::KnownLaunch;
use crate::spec::error::Error;
use crate::spec::launch::Launch;

impl Catalog {
    /// Every launch with its option table.
    pub fn launches(&self) -> Result<Vec<KnownLaunch>, Error> {
        self.launches_at(None)
    }

    /// The same, by the options of a version of the runtime: of the tables that the catalogue has, the newest that is not
    /// newer, or the oldest.
    pub fn launches_at(&self, version: Option<&str>) -> Result<Vec<KnownLaunch>, Error> {
        self.launches_by(|launch| self.table_near(launch, version?, false))
    }

    /// The same by the oldest table that is newer than a version, which has the options of builds between two tables.
    pub fn launches_after(&self, version: &str) -> Result<Vec<KnownLaunch>, Error> {
        self.launches_by(|launch| self.table_near(launch, version, true))
    }

    fn launches_by(&self, table: impl Fn(&Launch) -> Option<String>) -> Result<Vec<KnownLaunch>, Error> {
        let ids = self.entries(CatalogKind::Launches).into_keys();
        ids.map(|id| {
            let mut launch: Launch = self.load(&id)?;
            if let Some(table) = table(&launch) {
                launch.table = table;
            }
            self.with_table(launch)
        })
        .collect()
    }

    /// The id of the option table of a launch in a version, or the one after it; none where its versions are no numbers.
    fn table_near(&self, launch: &Launch, version: &str, after: bool) -> Option<String> {
        let (runtime, _) = launch.table.rsplit_once('-')?;
        let wanted = numbers(version)?;
        let ids = self.entries(CatalogKind::Options).into_keys();
        let mut known: Vec<(Vec<u64>, String)> = ids
            .filter_map(|id| {
                let (_, version) = id.rsplit_once('-').filter(|(of, _)| *of == runtime)?;
                Some((numbers(version)?, id.clone()))
            })
            .collect();
        known.sort();
        let newest = known.iter().rev().find(|(version, _)| *version <= wanted).or(known.first());
        let next = known.iter().find(|(version, _)| after && *version > wanted);
        next.or(newest).map(|(_, id)| id.clone())
    }

    /// The launch of a runtime with its option table; `None` where the catalogue has none.
    pub fn launch_of(&self, runtime: &str) -> Result<Option<KnownLaunch>, Error> {
        for id in self.entries(CatalogKind::Launches).into_keys() {
            let launch: Launch = self.load(&id)?;
            if launch.runtimes.iter().any(|known| known == runtime) {
                return self.with_table(launch).map(Some);
            }
        }
        Ok(None)
    }

    fn with_table(&self, launch: Launch) -> Result<KnownLaunch, Error> {
        let table = self.load(&launch.table)?;
        Ok((launch, table))
    }
}

/// The numbers of a version, e.g. of `0.4.6.post5`; `None` where it does not begin with one.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let parts = version.split('.').map_while(|part| part.parse().ok());
    let numbers: Vec<u64> = parts.collect();
    (!numbers.is_empty() && version.contains('.')).then_some(numbers)
}
