//! A command line as the request of the table, in JSON.

use serde_json::{Value, json};

use super::{Cli, Command};
use crate::request::place::PlaceRequest;
use crate::request::value;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

impl Cli {
    /// Name and JSON of the request that the command line poses.
    ///
    /// # Errors
    /// A file of the flags is faulty, or the command answers no request.
    pub fn request(&self, catalog: &Catalog) -> Result<(&'static str, Value), Error> {
        Ok(match &self.command {
            None => ("optimize", value(&self.optimize.request()?)),
            Some(Command::Optimize(command)) => ("optimize", value(&command.request()?)),
            Some(Command::Estimate(command)) => ("estimate", value(&command.request()?)),
            Some(Command::Deploy(command)) => ("deploy", value(&command.request()?)),
            Some(Command::Place(command)) => {
                ("place", value(&PlaceRequest { scenario: command.scenario(catalog) }))
            }
            Some(Command::Explain(command)) => ("explain", value(&command.request()?)),
            Some(Command::Static(command)) => ("static", value(&command.request()?)),
            Some(Command::Diagnose(command)) => ("diagnose", value(&command.request()?)),
            Some(Command::Nearest(command)) => ("nearest", value(&command.request()?)),
            Some(Command::Audit(command)) => ("audit", value(&command.request()?)),
            Some(Command::Diff(command)) => ("diff", value(&command.request()?)),
            Some(Command::Recommend(command)) => ("recommend", value(&command.request())),
            Some(Command::Fleet(command)) => ("fleet", value(&command.request()?)),
            Some(Command::Inspect(command)) => ("inspect", value(&command.request())),
            Some(Command::Verify(command)) => ("verify", value(&command.request()?)),
            Some(Command::Validate(command)) => ("validate", value(&command.request()?)),
            Some(Command::Calibrate(command)) => ("calibrate", value(&command.request()?)),
            Some(Command::Catalog(command)) => {
                ("catalog", json!({"kind": command.kind, "name": command.name}))
            }
            Some(Command::Detect(command)) => ("detect", value(&command.request())),
            Some(Command::Schema(command)) => ("schema", json!({"name": command.what})),
            Some(Command::Formulas(command)) => ("formulas", json!({"word": command.word})),
            Some(Command::Glossary(_)) => ("glossary", json!({})),
            Some(Command::Sweep(command)) => ("sweep", value(&command.request()?)),
            Some(Command::Compare(command)) => ("compare", value(&command.request()?)),
            #[cfg(feature = "serve")]
            Some(Command::Serve(_)) => return Err(no_request("a server")),
            #[cfg(feature = "site")]
            Some(Command::Site(_)) => return Err(no_request("a page")),
            #[cfg(feature = "mcp")]
            Some(Command::Mcp(_)) => return Err(no_request("a server")),
            Some(Command::Config(_) | Command::Completions(_) | Command::Man | Command::Merge(_)) => {
                return Err(no_request("a command without an answer"));
            }
        })
    }
}

/// The error of a command that makes no bundle.
fn no_request(found: &str) -> Error {
    Error::new("bundle", found, "a request", "omit --bundle, or use a command that answers a question")
}
