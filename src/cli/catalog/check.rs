//! `catalog check`: checks user files and reports their content.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::output::OutputArgs;
use crate::cli::{CliError, ExitStatus};
use crate::spec::error::Error;
use crate::spec::visible::visible;
use crate::store::catalog::Catalog;
use crate::store::check::{CheckedFile, FileChecker, files};
use crate::store::kind::CatalogKind;

#[derive(Clone, Debug, clap::Args)]
pub struct CheckFiles {
    /// A file of any kind, or a folder of files
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Kind of the file, where its keys do not determine it
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    pub kind: Option<CatalogKind>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl CheckFiles {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let paths = files(&self.path)?;
        let stem = |path: &PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        let neighbours: BTreeSet<String> = paths.iter().filter_map(stem).collect();
        // A folder with the structure of a user catalogue is read as one.
        let own = Catalog::at(Some(self.path.clone()));
        let has_catalog_layout =
            ["hardware", "models", "objectives"].iter().any(|name| self.path.join(name).is_dir());
        let check = FileChecker { catalog: if has_catalog_layout { &own } else { catalog }, neighbours };
        let results: Vec<Result<CheckedFile, Error>> =
            paths.iter().map(|path| check.file(path, self.kind)).collect();
        let text = results.iter().map(spell).collect::<Vec<_>>().join("\n");
        self.output.plain(&text, &results.iter().map(value).collect::<Vec<_>>(), None)?;
        Ok(if results.iter().any(Result::is_err) { ExitStatus::CheckFailed } else { ExitStatus::Success })
    }
}

fn spell(result: &Result<CheckedFile, Error>) -> String {
    match result {
        Err(fault) => format!("{fault}\n"),
        Ok(good) => {
            let mut text = format!(
                "{}: OK, a {}\n  {}\n  {}\n",
                good.file,
                good.kind,
                visible(&good.name),
                visible(&good.summary)
            );
            for doubt in &good.doubts {
                text.push_str(&format!("  doubtful: `{}`: {}\n", visible(&doubt.key), visible(&doubt.why)));
            }
            text
        }
    }
}

fn value(result: &Result<CheckedFile, Error>) -> serde_json::Value {
    match result {
        Ok(good) => json!({"ok": true, "understood": good}),
        Err(fault) => json!({
            "ok": false,
            "file": fault.file,
            "key": fault.key,
            "found": fault.found,
            "expected": fault.expected,
            "fix": fault.fix,
        }),
    }
}
