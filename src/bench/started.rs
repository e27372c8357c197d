//! A server that is started from the files of its launch, and stopped after the measurement.
//!
//! All its processes are one group, so that none outlives it. Its output is a file, in which a failed start is read.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Builder;

use super::client::Endpoint;
use super::points::LoadPoint;
use super::subject::{BenchSubject, UnmeasuredRun};
use crate::launch::failure::{FailureReason, failure_in};
use crate::report::launch::LaunchReport;
use crate::report::result::EstimateResult;
use crate::spec::error::Error;
use crate::spec::run::{RunOutcome, RunRecord};
use crate::store::catalog::is_path;
use crate::store::file::{shown, spell};

/// The file of a launch that starts all processes of one host.
const SCRIPT: &str = "start.sh";
/// The variable of that script for the model.
const MODEL: &str = "MODEL";
/// The file of a model's folder that questions name.
const CONFIGURATION: &str = "config.json";
/// Time between two questions whether the server is ready.
const BETWEEN: Duration = Duration::from_millis(200);
/// Longest wait for an answer to one.
const WITHIN: Duration = Duration::from_secs(5);
/// Time that the processes have to end by themselves.
const GRACE: Duration = Duration::from_secs(20);
/// Bytes at the end of the output in which a failure is read.
const TAIL: u64 = 1 << 20;

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct StartedServer {
    child: Child,
    /// Its address.
    pub address: String,
    log: PathBuf,
    _folder: TempDir,
}

/// A start that failed, or the end of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedStart {
    /// The reason, where the output states a known one.
    pub reason: FailureReason,
    /// When it failed, as the reader of failures names it.
    pub stage: String,
    /// The line that states it, or the last one.
    pub line: String,
}

/// The model of a question, or of the variable that replaces it, as a server finds it from any folder; `None` where it is no
/// file or folder of this host.
pub fn model_here(question: Option<&str>) -> Option<PathBuf> {
    let stated = std::env::var_os(MODEL).map(PathBuf::from);
    let path =
        stated.or_else(|| question.filter(|text| is_path(text)).map(PathBuf::from))?.canonicalize().ok()?;
    let is_configuration = path.file_name().is_some_and(|name| name == CONFIGURATION);
    Some(if is_configuration { path.parent()?.to_owned() } else { path })
}

impl StartedServer {
    /// Starts the processes of a launch on this host. `log` is the file of their output, `model` the file or folder of the
    /// model, where it is one of this host.
    ///
    /// # Errors
    /// The launch has no script for one host, or a file cannot be written.
    pub fn start(
        launch: &LaunchReport,
        log: Option<&Path>,
        model: Option<&Path>,
    ) -> Result<StartedServer, Error> {
        if launch.file(SCRIPT).is_none() {
            let fix =
                "state a plan on the devices of this host, or start the server yourself and use --endpoint";
            let found = match launch.infeasible.iter().chain(&launch.unsupported).next() {
                Some(reason) => format!("a launch that cannot run: {reason}"),
                None => "a launch over several hosts".to_owned(),
            };
            return Err(Error::new("launch", found, "a launch on this host", fix));
        }
        let fault = |error: io::Error| {
            Error::new(
                "launch",
                spell(&error),
                "processes that start on this host",
                "free the disk and the port",
            )
        };
        let folder = tempfile::tempdir().map_err(fault)?;
        for file in &launch.files {
            fs::write(folder.path().join(&file.path), &file.text).map_err(fault)?;
        }
        let log = log.map_or_else(|| folder.path().join("server.log"), Path::to_owned);
        let output = File::create(&log).map_err(|error| {
            let fix = "choose a path in an existing, writable folder";
            Error::new("log", spell(&error), "a file that can be written", fix).in_file(shown(&log))
        })?;
        let port = free_port().map_err(fault)?;
        let mut command = Command::new("bash");
        command.arg(SCRIPT).current_dir(folder.path()).env("HOST", "127.0.0.1").env("PORT", port.to_string());
        command.envs(model.map(|path| (MODEL, path)));
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(fault)?).stderr(output);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(fault)?;
        Ok(StartedServer { child, address: format!("http://127.0.0.1:{port}"), log, _folder: folder })
    }

    /// Waits until the server answers at `health`.
    ///
    /// # Errors
    /// It ended, or is not ready after `within`; the outer error is one of this machine.
    pub fn ready(&mut self, health: &str, within: Duration) -> Result<Result<(), FailedStart>, Error> {
        let made = Builder::new_current_thread().enable_all().build();
        let runtime = made.map_err(|fault| {
            Error::new("", fault.to_string(), "a thread for the client", "raise the limit of threads")
        })?;
        let endpoint = Endpoint::parse(&self.address, None)?;
        let begun = Instant::now();
        loop {
            let answer = runtime.block_on(endpoint.answered(health, WITHIN));
            if answer.is_ok_and(|(status, _)| status == 200) {
                return Ok(Ok(()));
            }
            let ended = self.has_ended();
            if ended || begun.elapsed() > within {
                return Ok(Err(self.failed(ended)));
            }
            sleep(BETWEEN);
        }
    }

    /// Why it ended, as its output states it; `None` where it runs on. A server that answers no more may take a while
    /// to end.
    pub fn ended(&mut self) -> Option<FailedStart> {
        let begun = Instant::now();
        while !self.has_ended() && begun.elapsed() < GRACE {
            sleep(BETWEEN);
        }
        self.has_ended().then(|| self.failed(true))
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    fn failed(&self, ended: bool) -> FailedStart {
        let text = tail(&self.log).unwrap_or_default();
        if let Some(found) = failure_in(&text, None) {
            return FailedStart { reason: found.reason, stage: found.stage, line: found.line };
        }
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
        let stage = if ended { "ended" } else { "waited" };
        FailedStart { reason: FailureReason::Other, stage: stage.to_owned(), line: last.trim().to_owned() }
    }

    /// Sends a signal to all its processes.
    fn signal(&mut self, name: &str) {
        if cfg!(unix) {
            let group = format!("-{}", self.child.id());
            let _ = Command::new("kill").args([name, "--", &group]).stderr(Stdio::null()).status();
        } else {
            let _ = self.child.kill();
        }
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        self.signal("-TERM");
        let begun = Instant::now();
        while begun.elapsed() < GRACE && !self.has_ended() {
            sleep(BETWEEN);
        }
        self.signal("-KILL");
        let _ = self.child.wait();
    }
}

impl FailedStart {
    /// Whether memory did not suffice.
    fn is_out_of_memory(&self) -> bool {
        use FailureReason::{KvTooSmall, OomLoad, OomProfile, OutOfHostMemory, TooFewBlocks};
        [OomLoad, OomProfile, KvTooSmall, TooFewBlocks, OutOfHostMemory].contains(&self.reason)
    }

    /// The reason as a record has it.
    fn reason(&self, outcome: RunOutcome) -> UnmeasuredRun {
        let failure = serde_json::to_value(self.reason).unwrap_or_default();
        UnmeasuredRun { outcome, failure, stage: self.stage.clone() }
    }

    /// The start as a record: its outcome with the reason, and no line of the output.
    pub fn record(&self, subject: &BenchSubject<'_>, point: &LoadPoint, found: &EstimateResult) -> RunRecord {
        let outcome = if self.is_out_of_memory() { RunOutcome::Oom } else { RunOutcome::NotStarted };
        subject.unmeasured(point, ("", Some(found)), self.reason(outcome))
    }

    /// Adds the reason to the record of a run that the end of the server cut off.
    pub fn explain(&self, run: &mut RunRecord) {
        self.reason(run.outcome).explain(run);
    }
}

/// The last bytes of a file.
fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A port that nothing listens on.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
