//! Reference output: schemas, glossary, completions, manual page.

use clap::builder::{PossibleValue, PossibleValuesParser};

use super::output::OutputArgs;
use super::{CliError, ExitStatus, command, command_line};
use crate::report::formulas::formulas;
use crate::report::help::glossary as words;
use crate::report::pretty::pretty;
use crate::request::UNCONTROLLED;
use crate::request::reference::{FormulasRequest, SchemaRequest, other_schema_names, schema, schema_names};
use crate::spec::device::Device;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;

/// The names of schemas; those that have another name are not listed.
fn schema_values() -> impl Iterator<Item = PossibleValue> {
    let files: Vec<String> = schema_names().collect();
    let others = other_schema_names()
        .filter(|name| !files.iter().any(|known| known == name))
        .map(|name| PossibleValue::new(name).hide(true));
    schema_names().map(PossibleValue::new).chain(others.collect::<Vec<_>>())
}

#[derive(Clone, Debug, clap::Args)]
pub struct SchemaArgs {
    /// Name of the schema
    #[arg(value_parser = PossibleValuesParser::new(schema_values()), value_name = "WHAT")]
    pub what: String,
    /// Write it to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<std::path::PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Clone, Debug, Default, clap::Args)]
pub struct FormulasArgs {
    /// Only formulas whose symbol, unit, reason, citation or module contains this word
    #[arg(value_name = "WORD")]
    pub word: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl FormulasArgs {
    pub fn run(&self, _catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.output.answer(&formulas(self.word.as_deref()), false)
    }

    pub fn request(&self) -> FormulasRequest {
        FormulasRequest { word: self.word.clone() }
    }
}

impl SchemaArgs {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let known = schema(catalog, &self.request(), &UNCONTROLLED)?;
        OutputArgs { out: self.out.clone(), ..OutputArgs::default() }.plain(&pretty(&known), &known, None)
    }

    pub fn request(&self) -> SchemaRequest {
        SchemaRequest { name: self.what.clone() }
    }
}

impl Completions {
    pub fn run(&self, _catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "mantile-opt", &mut script);
        OutputArgs::default().write(&String::from_utf8_lossy(&script))
    }
}

/// Version of the program, and size and latest price of its catalogue, for `--version`.
pub fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    if !command_line::words().iter().any(|word| matches!(word.as_str(), "--version" | "-V")) {
        return version.to_owned();
    }
    let catalog = Catalog::default();
    let count = |kind| catalog.entries(kind).len();
    let devices = catalog.entries(CatalogKind::Devices);
    let devices = devices.keys().filter_map(|id| catalog.load::<Device>(id).ok());
    let dates = devices.flat_map(|device| {
        [device.price.purchase.and_then(|price| price.date), device.price.rent.and_then(|price| price.date)]
    });
    let latest = dates.flatten().max().unwrap_or_default();
    format!(
        "{version}\ncatalogue: {} models, {} devices, {} systems, {} runtimes; latest price {latest}",
        count(CatalogKind::Models),
        count(CatalogKind::Devices),
        count(CatalogKind::Systems),
        count(CatalogKind::Runtimes)
    )
}

/// The manual page has no flags.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ManualPage {}

impl ManualPage {
    pub fn run(&self, _catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let mut page = Vec::new();
        clap_mangen::Man::new(command()).render(&mut page)?;
        OutputArgs::default().write(&String::from_utf8_lossy(&page))
    }
}

#[derive(Clone, Debug, Default, clap::Args)]
pub struct GlossaryArgs {
    #[command(flatten)]
    pub output: OutputArgs,
}

impl GlossaryArgs {
    pub fn run(&self, _catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.output.answer(&words(), false)
    }
}
