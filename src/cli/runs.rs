//! `runs`: the store of measured runs.

use std::path::{Path, PathBuf};

use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::report::number::count;
use crate::report::runs::{compared_runs, listed_runs, shown_run};
use crate::report::table::table;
use crate::request::retrain::medians_table;
use crate::request::runs::read_runs;
use crate::request::validate::given::GivenRunFacts;
use crate::spec::calibration_version::CalibrationVersion;
use crate::spec::error::Error;
use crate::spec::run::RunRecord;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};
use crate::store::runs::signature::{SignatureLine, SigningKeyFile};
use crate::store::runs::{RunStore, StoreCheck, user_store};
use crate::validate::imported::{imported_runs, is_imported};

const AFTER: &str = "\
A store is a file to which runs are only appended: by `bench --store`, `runs import` and `serve --store`. The user's own is \
$XDG_DATA_HOME/mantile/runs.sqlite (~/.local/share; on macOS ~/Library/Application Support; on Windows %LOCALAPPDATA%).

Examples:
  mantile-opt runs import runs.jsonl
  mantile-opt runs list --model Qwen3-8B --runtime vllm
  mantile-opt runs show 3f2a
  mantile-opt runs compare 3f2a 91bc
  mantile-opt runs export --out export.jsonl --key key.txt
  mantile-opt runs verify
  mantile-opt runs sign --key key.txt
  mantile-opt runs versions 2 --out vllm.json
  mantile-opt validate ~/.local/share/mantile/runs.sqlite";

/// The store of a command.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StoreArgs {
    /// The store of runs [default: the user's own]
    #[arg(long, value_name = "FILE", global = true)]
    pub store: Option<PathBuf>,
}

impl StoreArgs {
    /// Where it is.
    ///
    /// # Errors
    /// None is named, and the system names no folder for data.
    pub fn path(&self) -> Result<PathBuf, Error> {
        named_or_own(self.store.as_deref())
    }

    fn existing(&self) -> Result<RunStore, Error> {
        RunStore::existing(&self.path()?)
    }
}

/// The named store, else the user's own.
pub fn named_or_own(named: Option<&Path>) -> Result<PathBuf, Error> {
    named.map(Path::to_owned).or_else(user_store).ok_or_else(|| {
        Error::new(
            "store",
            "no folder for data: HOME is not set",
            "the path of a store",
            "name it: --store FILE",
        )
    })
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Runs {
    #[command(subcommand)]
    pub action: RunsAction,
    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub enum RunsAction {
    /// List the runs, oldest first
    List(ListedRuns),
    /// Show everything of a run
    Show(ShownRun),
    /// Compare two runs: their figures with the ratio, and the prediction of each
    Compare(RunPair),
    /// Write the runs to a file, a line of JSON each, without identifiers of hardware
    Export(ExportedRuns),
    /// Append the runs of files: JSON Lines of `bench` or of `runs export`
    Import(Box<ImportedRuns>),
    /// Check every hash, the chain of hashes and every signature. Exit code 2 where one is wrong
    Verify(CheckedStore),
    /// Sign the last record, and with it all before it (Ed25519)
    Sign(SignedStore),
    /// List the versions of calibrations that `drift --retrain` and `serve` made, or show one
    Versions(ListedVersions),
    /// Make the profile of an older version the newest one
    Restore(RestoredVersion),
}

#[derive(Clone, Debug, clap::Args)]
pub struct ListedRuns {
    /// Only runs of models whose name has this text
    #[arg(long, value_name = "TEXT")]
    pub model: Option<String>,
    /// Only runs on hardware whose name has this text
    #[arg(long, value_name = "TEXT")]
    pub hardware: Option<String>,
    /// Only runs of runtimes whose name has this text
    #[arg(long, value_name = "TEXT")]
    pub runtime: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ShownRun {
    /// Id of the run, or its beginning
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RunPair {
    /// Id of a run, or its beginning
    #[arg(value_name = "A")]
    pub first: String,
    /// Id of the other run, or its beginning
    #[arg(value_name = "B")]
    pub second: String,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ExportedRuns {
    /// Write to this file
    #[arg(long, value_name = "FILE.jsonl")]
    pub out: PathBuf,
    /// Sign with this key, which is made where there is none; the signature is in FILE.jsonl.sig
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ImportedRuns {
    /// Files of runs, or of other benchmark tools as `validate` reads them; one with a signature next to it (FILE.sig) is
    /// read only where that holds
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub given: GivenRunFacts,
    /// Runtime of the server, where the file does not state one
    #[arg(long, value_name = "NAME", help_heading = "Runs of bench and of benchmark files")]
    pub runtime: Option<String>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct CheckedStore {
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct SignedStore {
    /// The key, which is made where there is none; its owner alone may read it
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ListedVersions {
    /// Show this version; --out writes its profile
    #[arg(value_name = "NUMBER")]
    pub number: Option<u64>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RestoredVersion {
    /// The version
    #[arg(value_name = "NUMBER")]
    pub number: u64,
}

impl Runs {
    pub fn run(&self, _: &Catalog) -> Result<ExitStatus, CliError> {
        let store = &self.store;
        match &self.action {
            RunsAction::List(list) => list.run(&store.existing()?),
            RunsAction::Show(show) => {
                let run = store.existing()?.run(&show.id)?;
                show.output.plain(&shown_run(&run), &run, None)
            }
            RunsAction::Compare(pair) => {
                let store = store.existing()?;
                let found = compared_runs([&store.run(&pair.first)?, &store.run(&pair.second)?]);
                pair.output.plain(&found.text(), &found, None)
            }
            RunsAction::Export(export) => export.run(&store.existing()?),
            RunsAction::Import(import) => import.run(&store.path()?),
            RunsAction::Verify(verify) => {
                let check = store.existing()?.verify();
                verify.output.plain(&check_text(&check), &check, None)?;
                Ok(if check.faults.is_empty() { ExitStatus::Success } else { ExitStatus::CheckFailed })
            }
            RunsAction::Sign(sign) => {
                let mut store = store.existing()?;
                let signed = store.sign(&SigningKeyFile::open(&sign.key)?)?.line();
                let SignatureLine { signed_runs, public_key, .. } = &signed;
                say(&format!("{} signed by {public_key}\n", count(signed_runs.unsigned_abs(), "run")))
            }
            RunsAction::Versions(list) => list.run(&store.existing()?),
            RunsAction::Restore(restore) => {
                let mut store = store.existing()?;
                let older = store.version(restore.number)?;
                let restored = CalibrationVersion { restores: Some(older.number), ..older };
                let CalibrationVersion { number, runtime, .. } = store.add_version(restored)?;
                say(&format!("version {number} of {runtime} has the profile of version {}\n", restore.number))
            }
        }
    }
}

fn say(text: &str) -> Result<ExitStatus, CliError> {
    OutputArgs::default().write(text)
}

impl ListedRuns {
    fn run(&self, store: &RunStore) -> Result<ExitStatus, CliError> {
        let has = |name: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|part| name.to_lowercase().contains(&part.to_lowercase()))
        };
        let mut runs = store.runs()?;
        runs.retain(|run| {
            has(&run.model_id, &self.model)
                && has(run.hardware_id.as_deref().unwrap_or_default(), &self.hardware)
                && has(&run.runtime_id, &self.runtime)
        });
        let text = format!("{}\n{}\n", listed_runs(&runs), count(runs.len() as u64, "run"));
        self.output.plain(&text, &runs, None)
    }
}

/// Where the signature of a file of runs is.
fn signature_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

impl ExportedRuns {
    fn run(&self, store: &RunStore) -> Result<ExitStatus, CliError> {
        let texts = store.texts()?;
        let text: String = texts.iter().map(|text| format!("{text}\n")).collect();
        let key = self.key.as_deref().map(SigningKeyFile::open).transpose()?;
        file::write(&self.out, &text)?;
        if let Some(key) = key {
            let line =
                serde_json::to_string(&key.of_texts(&texts).line()).expect("a signature has only text keys");
            file::write(&signature_of(&self.out), &(line + "\n"))?;
        }
        say(&format!("{} written to {}\n", count(texts.len() as u64, "run"), file::shown(&self.out)))
    }
}

impl ImportedRuns {
    fn run(&self, store: &Path) -> Result<ExitStatus, CliError> {
        let given = GivenRunFacts { runtime: self.runtime.clone(), ..self.given.clone() };
        let runs: Vec<Vec<RunRecord>> =
            self.files.iter().map(|path| imported(path, &given)).collect::<Result<_, Error>>()?;
        let appended = RunStore::open(store)?.append(&runs.concat())?;
        say(&format!("{} added, {} known before\n", count(appended.added, "run"), appended.known))
    }
}

/// The runs of a file, whose signature holds where it has one.
fn imported(path: &Path, given: &GivenRunFacts) -> Result<Vec<RunRecord>, Error> {
    let text = file::read_most(path, FileSizeLimit::Table)?;
    let name = file::shown(path);
    let signature = signature_of(path);
    if signature.exists() {
        let line: SignatureLine = from_json(&file::read(&signature)?, "a signature")
            .map_err(|fault| fault.in_file(file::shown(&signature)))?;
        let texts: Vec<String> = text.lines().map(str::to_owned).collect();
        if !line.holds(&texts) {
            let fix = "get the file again; or remove the signature, to read the file in spite of it";
            let found = "lines that were changed after they were signed";
            return Err(Error::new("", found, "the lines that were signed", fix).in_file(name));
        }
    }
    if !is_imported(&text) {
        return read_runs(&text, &name);
    }
    let known = |run| given.applied(run)?.complete().cloned();
    let runs: Result<_, Error> = imported_runs(&text, &name)?.runs.into_iter().map(known).collect();
    runs.map_err(|fault| fault.in_file(name))
}

fn check_text(check: &StoreCheck) -> String {
    let counts = [(check.runs, "run"), (check.versions, "version"), (check.signatures, "signature")];
    let counts = counts.map(|(number, noun)| count(number, noun)).join(", ");
    let faults: String = check.faults.iter().map(|fault| format!("  {fault}\n")).collect();
    match check.faults.is_empty() {
        true => format!("{counts}: as written\n"),
        false => format!("{counts}: {}\n{faults}", count(check.faults.len() as u64, "fault")),
    }
}

impl ListedVersions {
    fn run(&self, store: &RunStore) -> Result<ExitStatus, CliError> {
        let Some(number) = self.number else {
            let versions = store.versions()?;
            return self.output.plain(&versions_text(&versions), &versions, None);
        };
        let version = store.version(number)?;
        if let Some(path) = &self.output.out {
            file::write(path, &version.profile)?;
            return Ok(ExitStatus::Success);
        }
        let text =
            format!("{}\n{}", versions_text(std::slice::from_ref(&version)), medians_table(&version.medians));
        self.output.plain(&text, &version, None)
    }
}

fn versions_text(versions: &[CalibrationVersion]) -> String {
    const HEADER: [&str; 8] =
        ["version", "time", "runtime", "its versions", "drivers", "CUDA", "runs", "restores"];
    let rows = versions.iter().map(|version| {
        let lists = [&version.runtime_versions, &version.drivers, &version.cuda].map(|list| list.join(", "));
        let start = [version.number.to_string(), version.created_utc.clone(), version.runtime.clone()];
        let end =
            [version.runs.to_string(), version.restores.map_or(String::new(), |number| number.to_string())];
        [&start[..], &lists, &end].concat()
    });
    table(&HEADER, rows)
}
