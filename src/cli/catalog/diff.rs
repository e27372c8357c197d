//! `catalog diff`: compares two entries of a kind, figure by figure.

use std::path::Path;

use serde_json::Value;

use crate::cli::output::{OutputArgs, OutputFormat, csv, json};
use crate::cli::{CliError, ExitStatus};
use crate::report::diff::{difference, text};
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::{Catalog, CatalogEntry, LookupError, is_path};
use crate::store::check::recognise;
use crate::store::kind::{CatalogKind, KINDS};

/// The flags of `catalog diff`.
#[derive(Clone, Debug, clap::Args)]
pub struct DiffEntries {
    /// An entry by name, or a file
    #[arg(value_name = "A")]
    pub a: String,
    /// Another entry of the same kind
    #[arg(value_name = "B")]
    pub b: String,
    /// Kind of both, where a name matches entries of several kinds
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    pub kind: Option<CatalogKind>,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl DiffEntries {
    /// Compares the two entries.
    ///
    /// # Errors
    /// One is unknown, they are of different kinds, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let (a, b) = self.both(catalog)?;
        let found = difference(&a, &b);
        self.output.found(&match self.output.format {
            OutputFormat::Table => text([&self.a, &self.b], &found),
            OutputFormat::Json => json(&found),
            OutputFormat::Csv => {
                let row = |d: crate::report::diff::Difference| {
                    let ratio = d.ratio.map(|ratio| ratio.to_string()).unwrap_or_default();
                    vec![d.key, d.a.unwrap_or_default(), d.b.unwrap_or_default(), ratio]
                };
                csv(&["key", &self.a, &self.b, "ratio"], found.into_iter().map(row))?
            }
        })
    }

    /// Both entries, of the first kind that contains both.
    fn both(&self, catalog: &Catalog) -> Result<(Value, Value), Error> {
        let mut first: Option<Error> = None;
        let mut one: Option<(CatalogKind, &str)> = None;
        for kind in self.kind.map_or_else(|| KINDS.to_vec(), |kind| vec![kind]) {
            match (entry(catalog, kind, &self.a), entry(catalog, kind, &self.b)) {
                (Ok(a), Ok(b)) => return Ok((a, b)),
                (Ok(_), Err(fault)) => {
                    one.get_or_insert((kind, &self.a));
                    first.get_or_insert(fault);
                }
                (Err(fault), Ok(_)) => {
                    one.get_or_insert((kind, &self.b));
                    first.get_or_insert(fault);
                }
                (Err(_), Err(_)) => {}
            }
        }
        Err(match (first, one) {
            (Some(fault), Some((kind, name))) => {
                Error { expected: format!("{}, the kind of `{name}`", kind.article()), ..fault }
            }
            _ => Error::new(
                "diff",
                format!("`{}` and `{}`, both unknown", self.a, self.b),
                "two entries of one kind",
                "`mantile-opt catalog KIND` lists the names",
            ),
        })
    }
}

/// The entry of a kind that a name or path refers to.
fn entry(catalog: &Catalog, kind: CatalogKind, name: &str) -> Result<Value, Error> {
    if is_path(name) {
        let (found, map) = recognise(Path::new(name))?;
        if found != kind {
            let fix = "compare two entries of the same kind";
            return Err(Error::new("diff", found.article(), kind.article(), fix).in_file(name));
        }
        return Ok(Value::Object(map));
    }
    let shelved: CatalogEntry = match kind {
        CatalogKind::Models => catalog.known_model(name).map_err(Error::from)?,
        CatalogKind::Devices => {
            let device = catalog.device(name).map_err(Error::from)?;
            catalog.find(kind, &device.id).map_err(Error::from)?
        }
        kind => catalog.find(kind, name).map_err(|miss: LookupError| Error::from(miss))?,
    };
    from_json(&shelved.text()?, kind.article()).map_err(|fault| fault.in_file(&shelved.file))
}
