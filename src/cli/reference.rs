//! What the program says of itself: schemas, glossary, completions, manual page.

use clap::builder::PossibleValuesParser;

use super::output::{Format, Output, csv, json};
use super::{Fault, Verdict, command};
use crate::report::help::{glossary as words, glossary_text};
use crate::report::schema::{SCHEMAS, schema};
use crate::spec::error::Error;

/// The flags of `schema`.
#[derive(Clone, Debug, clap::Args)]
pub struct SchemaOf {
    /// Of what
    #[arg(value_parser = PossibleValuesParser::new(SCHEMAS.iter().map(|(name, _)| *name)), value_name = "WHAT")]
    pub what: String,
    /// Write it to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<std::path::PathBuf>,
}

/// The flags of `completions`.
#[derive(Clone, Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

fn standard() -> Output {
    Output::default()
}

impl SchemaOf {
    /// Prints a schema.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn run(&self) -> Result<Verdict, Fault> {
        let known = schema(&self.what).ok_or_else(|| {
            Error::new("schema", &self.what, "a known name", "see `mantile-opt schema --help`")
        })?;
        Output { out: self.out.clone(), ..standard() }.found(&json(&known))
    }
}

impl Completions {
    /// Prints a completion script.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn run(&self) -> Result<Verdict, Fault> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "mantile-opt", &mut script);
        standard().found(&String::from_utf8_lossy(&script))
    }
}

/// Prints the manual page.
///
/// # Errors
/// It cannot be written.
pub fn man() -> Result<Verdict, Fault> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command()).render(&mut page)?;
    standard().found(&String::from_utf8_lossy(&page))
}

/// Prints what the words mean.
///
/// # Errors
/// It cannot be written.
pub fn glossary(output: &Output) -> Result<Verdict, Fault> {
    output.found(&match output.format {
        Format::Table => glossary_text(),
        Format::Json => json(&words()),
        Format::Csv => {
            csv(&["word", "meaning"], words().iter().map(|term| vec![term.term.into(), term.meaning.into()]))?
        }
    })
}
