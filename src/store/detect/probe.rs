//! Runs the tools of this machine and reads its files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::amd::amd_smi;
use super::stream;
use super::tools::{
    MachineOutputs, MachineProbe, MachineTool, StreamTest, TOOLS, ToolEntry, ToolOutput, ToolWay,
};
use crate::report::machine::MeasuredBandwidth;
use crate::report::pretty::pretty;
use crate::spec::error::Error;
use crate::spec::visible::elided;
use crate::store::file::{self, bounded, spell};
use crate::store::hub::user_cache;

/// A tool that takes longer is stopped: a driver that hangs must not.
const MOST_TIME: Duration = Duration::from_secs(20);
/// Maximum size of an output, in bytes.
const MOST_OUTPUT: u64 = 4 << 20;
/// Maximum length of a message, in characters.
const MOST_MESSAGE: usize = 200;

/// This machine; its tools run once, and its memory is measured once, and again on request.
#[derive(Debug)]
pub struct ThisMachine {
    outputs: OnceLock<MachineOutputs>,
    /// Where the last measurement lies, so that the next command answers for the same machine.
    kept: Option<PathBuf>,
    /// Two measurements at once would halve each other.
    measuring: Mutex<()>,
}

impl Default for ThisMachine {
    fn default() -> ThisMachine {
        ThisMachine {
            outputs: OnceLock::new(),
            kept: user_cache().map(|cache| cache.join("mantile/machine")),
            measuring: Mutex::default(),
        }
    }
}

/// A measurement and the machine that it is of.
#[derive(Serialize, Deserialize)]
struct KeptMeasurement {
    machine: String,
    measured: MeasuredBandwidth,
}

const STREAM: &str = "stream.json";

/// The measurement of `machine` in a folder; none where there is none, or it is of another.
fn kept(folder: &Path, machine: &str) -> Option<MeasuredBandwidth> {
    let text = file::read(&folder.join(STREAM)).ok()?;
    let kept: KeptMeasurement = serde_json::from_str(&text).ok()?;
    (kept.machine == machine && kept.measured.best().is_finite() && kept.measured.best() > 0.0)
        .then_some(kept.measured)
}

fn keep(folder: &Path, machine: &str, measured: MeasuredBandwidth) -> Result<(), Error> {
    let kept = KeptMeasurement { machine: machine.to_owned(), measured };
    file::make_folder(folder)?;
    file::write(&folder.join(STREAM), &pretty(&kept))
}

impl MachineProbe for ThisMachine {
    fn outputs(&self) -> MachineOutputs {
        self.outputs.get_or_init(outputs).clone()
    }

    fn bandwidth(&self, machine: &str, most: f64, wanted: StreamTest) -> Option<MeasuredBandwidth> {
        let _alone = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.kept.as_deref();
        let known = match wanted {
            StreamTest::None => return None,
            StreamTest::Once => folder.and_then(|folder| kept(folder, machine)),
            StreamTest::Now => None,
        };
        let measured = known.or_else(|| stream::bandwidth(most))?;
        if let Some(folder) = folder.filter(|_| known.is_none()) {
            // Without a cache the next command measures again; this one still answers.
            let _ = keep(folder, machine, measured);
        }
        Some(measured)
    }
}

fn outputs() -> MachineOutputs {
    let mut outputs = MachineOutputs::default();
    for entry in TOOLS.iter().filter(|entry| entry.systems.contains(&std::env::consts::OS)) {
        if is_needed(entry.tool, &outputs) {
            outputs.0.insert(entry.tool, output(entry));
        }
    }
    outputs
}

/// Whether the outputs so far do not already answer.
fn is_needed(tool: MachineTool, so_far: &MachineOutputs) -> bool {
    match tool {
        MachineTool::NvidiaTopology => {
            so_far.text(MachineTool::NvidiaSmi).is_some_and(|gpus| gpus.lines().count() > 1)
        }
        MachineTool::RocmSmi => {
            so_far.text(MachineTool::AmdSmi).and_then(amd_smi).is_none_or(|gpus| gpus.is_empty())
        }
        _ => true,
    }
}

/// The output of the first way that has one, else the first failure.
fn output(entry: &ToolEntry) -> ToolOutput {
    let mut failure = ToolOutput::Missing;
    for way in entry.ways {
        let found = match way {
            ToolWay::Run(program, arguments) => run(program, arguments),
            ToolWay::Read(path) => read(path),
        };
        match found {
            ToolOutput::Text(text) => return ToolOutput::Text(text),
            ToolOutput::Failed(why) if failure == ToolOutput::Missing => failure = ToolOutput::Failed(why),
            ToolOutput::Failed(_) | ToolOutput::Missing => {}
        }
    }
    failure
}

fn failed(error: &io::Error) -> ToolOutput {
    match error.kind() {
        io::ErrorKind::NotFound => ToolOutput::Missing,
        _ => ToolOutput::Failed(spell(error)),
    }
}

fn read(path: &str) -> ToolOutput {
    match File::open(path).and_then(|file| bounded(file, MOST_OUTPUT)) {
        Ok(Some(text)) => ToolOutput::Text(text),
        Ok(None) => ToolOutput::Failed("an output that is too large".into()),
        Err(error) => failed(&error),
    }
}

/// The text of a stream, read at the side so that a full pipe blocks no program.
fn text_of(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, text) = channel();
    let reader = move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            // The part that was read is the message.
            let _ = stream.take(MOST_OUTPUT).read_to_end(&mut bytes);
        }
        // The receiver may have given up.
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    };
    // Without a thread there is no text.
    let _ = thread::Builder::new().spawn(reader);
    text
}

fn run(program: &str, arguments: &[&str]) -> ToolOutput {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return failed(&error),
    };
    let (out, err) = (text_of(child.stdout.take()), text_of(child.stderr.take()));
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < MOST_TIME => thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                // It may have ended in between.
                let _ = child.kill();
                let _ = child.wait();
                return ToolOutput::Failed(format!("no answer within {} s", MOST_TIME.as_secs()));
            }
            Err(error) => return failed(&error),
        }
    };
    let [out, err] = [out, err].map(|text| text.recv_timeout(Duration::from_secs(1)));
    if status.success() {
        return out
            .map_or_else(|_| ToolOutput::Failed("its output could not be read".into()), ToolOutput::Text);
    }
    let [out, err] = [out, err].map(Result::unwrap_or_default);
    let message =
        [&err, &out].into_iter().flat_map(|text| text.lines()).map(str::trim).find(|line| !line.is_empty());
    let message = elided(message.unwrap_or("no message"), MOST_MESSAGE).into_owned();
    ToolOutput::Failed(match status.code() {
        Some(code) => format!("exit code {code}: {message}"),
        None => format!("stopped: {message}"),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_answers_fails_or_is_missing() {
        assert_eq!(run("echo", &["one"]), ToolOutput::Text("one\n".into()));
        assert_eq!(run("no-such-program-here", &[]), ToolOutput::Missing);
        let failed = run("sh", &["-c", "echo gone >&2; exit 9"]);
        assert_eq!(failed, ToolOutput::Failed("exit code 9: gone".into()));
        assert_eq!(read("/no/such/file"), ToolOutput::Missing);
        assert!(matches!(read("/proc"), ToolOutput::Failed(_)));
        let long = run("sh", &["-c", "head -c 3000000 /dev/zero | tr '\\0' x"]);
        assert!(
            matches!(long, ToolOutput::Text(text) if text.len() == 3_000_000),
            "a full pipe blocks no program"
        );
    }

    #[test]
    fn a_measurement_is_kept_for_its_machine() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let folder = folder.path().join("machine");
        let machine = ThisMachine { kept: Some(folder.clone()), ..ThisMachine::default() };
        let at = |name: &str, wanted| machine.bandwidth(name, 2e8, wanted);
        assert_eq!(at("one", StreamTest::None), None);
        let first = at("one", StreamTest::Once);
        assert!(first.is_some());
        assert_eq!(at("one", StreamTest::Once), first, "all digits are kept");
        assert_ne!(at("two", StreamTest::Once), first);
        let now = at("two", StreamTest::Now);
        assert_eq!(at("two", StreamTest::Once), now);
        assert!(file::write(&folder.join(STREAM), "{").is_ok());
        assert!(at("two", StreamTest::Once).is_some(), "a faulty file is measured anew");
        Ok(())
    }

    #[test]
    fn a_later_way_serves_where_the_first_fails() {
        let entry =
            |ways| ToolEntry { tool: MachineTool::NvidiaSmi, name: "x", finds: "x", systems: &[], ways };
        let both = entry(&[ToolWay::Run("false", &[]), ToolWay::Run("echo", &["two"])]);
        assert_eq!(output(&both), ToolOutput::Text("two\n".into()));
        let none = entry(&[ToolWay::Run("no-such-program-here", &[]), ToolWay::Run("sh", &["-c", "exit 3"])]);
        assert_eq!(output(&none), ToolOutput::Failed("exit code 3: no message".into()));
    }
}
