//! Launches of the catalogue with their option tables.

use super::catalog::Catalog;
use super::kind::CatalogKind;
use crate::launch::back::KnownLaunch;
use crate::spec::error::Error;
use crate::spec::launch::Launch;

impl Catalog {
    /// Every launch with its option table.
    pub fn launches(&self) -> Result<Vec<KnownLaunch>, Error> {
        let ids = self.entries(CatalogKind::Launches).into_keys();
        ids.map(|id| self.with_table(self.load(&id)?)).collect()
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
