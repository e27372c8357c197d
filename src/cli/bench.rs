//! `bench`: measures a server under stated loads.

mod dry_run;
mod matrix;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use super::deadline::with_deadline;
use super::defaults::AppliedDefaults;
use super::estimate::PlannedArgs;
use super::output::OutputArgs;
use super::progress::{is_quiet, shown};
use super::runs::named_or_own;
use super::simulate::read_traffic;
use super::token::token;
use super::{CliError, ExitStatus};
use crate::bench::points::{BenchSuite, LoadPoint};
use crate::bench::protocol::Protocol;
use crate::bench::records::RecordFile;
use crate::bench::started::{FailedStart, StartedServer, model_here};
use crate::bench::telemetry::{SAMPLE_EVERY_S, TelemetrySettings};
use crate::bench::trace::BenchTrace;
use crate::bench::{
    AbsentServer, BenchSession, BenchSettings, BenchSubject, Endpoint, LEAST_REPEATS, MODELS,
    REQUEST_TIMEOUT_S, fresh_seed, is_done,
};
use crate::report::launch::LaunchReport;
use crate::report::result::EstimateResult;
use crate::report::runs::runs_table;
use crate::report::sweep::ShardNumber;
use crate::request::optimize::{OptimizeRequest, at, optimize};
use crate::request::runs::lines_of;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::limits::{
    ARRIVAL_VARIATION, CLIENT_TIMEOUT, REPEATS, SEED, SENT, SPEED_UP, START_TIMEOUT, TELEMETRY_EVERY,
    WARM_UP, number, whole,
};
use crate::spec::run::{RunOutcome, RunRecord};
use crate::spec::scenario::Scenario;
use crate::spec::visible::visible;
use crate::store::catalog::Catalog;
use crate::store::file::{read_plain, shown as shown_path};
use crate::store::interrupt::{pressed, with_interrupt};
use crate::store::runs::RunStore;
use dry_run::DryRun;
use matrix::{BenchDeployment, BenchMatrix};

const AFTER: &str = "\
Requests go to the server of --endpoint, and the time of each chunk of their answers is kept: TTFT, TPOT, times between \
chunks, E2E, throughput, errors. Under --rate, requests are sent at their times whether or not earlier ones are answered, \
and latencies count from these times. Prompts are sentences of a public-domain text; each begins with bytes of its own, so \
that no cache has it. With --hardware, the estimate of the deployment is made before the runs, and the table has measured \
over predicted (m/p). Runs whose ten repeats vary by more than 5 % are marked: `validate` and `calibrate` leave them out.

A load is --isl, --osl and --concurrency or --rate, a --suite, every combination of --vary, or the requests of a --trace at \
their times. With --launch, --vary takes the other keys of `sweep` too (model, runtime, weight_format, tp, pp): each \
combination that the rules allow is started, measured and stopped. Each run is a line of JSON in the file of --out (`mantile-opt schema run`), with no prompt and no name of a \
host; a server that cannot be reached, or that ends during a run, is a run with its reason.

Examples:
  mantile-opt bench --endpoint http://127.0.0.1:8000 --suite smoke
  mantile-opt bench --endpoint http://127.0.0.1:8000 --model Qwen3-8B --hardware 1xl40s --tp 1 --suite standard --out runs.jsonl
  mantile-opt bench --endpoint http://127.0.0.1:8000 --isl 2048 --osl 128 --vary concurrency=1..64*2 --out runs.jsonl --resume
  mantile-opt bench --endpoint http://127.0.0.1:8000 --vary rate=1,2,4 --arrival-variation 0 --requests 200
  mantile-opt bench --endpoint http://127.0.0.1:8000 --trace requests.csv --speed-up 2 --out runs.jsonl
  mantile-opt bench --endpoint http://127.0.0.1:8080 --protocol llama.cpp --suite smoke --json
  mantile-opt bench --launch --model Qwen3-8B --hardware 1xl40s --suite standard --out runs.jsonl
  mantile-opt bench --launch --model Qwen3-8B --hardware 2xl40s --vary tp=1,2 --vary weight_format=bf16,fp8 --suite smoke --out runs.jsonl --resume
  mantile-opt bench --endpoint http://127.0.0.1:8000 --hardware 1xl40s --model Qwen3-8B --suite full --dry-run
  mantile-opt validate runs.jsonl";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Bench {
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// Address of the server
    #[arg(long, value_name = "URL", required_unless_present = "launch", help_heading = "Measurement")]
    pub endpoint: Option<String>,
    /// Start the server on this host from the files of `deploy`, wait until it is ready, and stop it at the end
    #[arg(long, conflicts_with = "endpoint", help_heading = "Measurement")]
    pub launch: bool,
    /// Longest wait until a started server is ready
    #[arg(long, value_name = "S", default_value = "1800", value_parser = number(&START_TIMEOUT), allow_negative_numbers = true, requires = "launch", help_heading = "Measurement")]
    pub start_timeout: f64,
    /// A file for the output of a started server [default: none is kept]
    #[arg(long, value_name = "FILE", requires = "launch", help_heading = "Measurement")]
    pub log: Option<PathBuf>,
    /// Interface of the server
    #[arg(
        long,
        value_enum,
        value_name = "chat|completions|llama.cpp|ollama",
        default_value = "chat",
        hide_possible_values = true,
        help_heading = "Measurement"
    )]
    pub protocol: Protocol,
    /// Name of the model in requests [default: the first that the server lists]
    #[arg(long, value_name = "NAME", help_heading = "Measurement")]
    pub served_model: Option<String>,
    /// A file with the bearer token that requests carry
    #[arg(long, value_name = "FILE", help_heading = "Measurement")]
    pub token_file: Option<PathBuf>,
    /// A file of certificates (PEM) that are trusted in addition to the public authorities, for an address with https://
    #[arg(long, value_name = "FILE.pem", requires = "endpoint", help_heading = "Measurement")]
    pub ca_file: Option<PathBuf>,
    /// A prepared list of loads
    #[arg(long, value_enum, value_name = "smoke|standard|full", help_heading = "Measurement")]
    pub suite: Option<BenchSuite>,
    /// Vary a key as in `sweep`, once per key: of the load (isl, osl, concurrency or rate), or with --launch any other, each of whose values is started: tp=1,2
    #[arg(long, value_name = "KEY=VALUES", help_heading = "Measurement")]
    pub vary: Vec<String>,
    /// Measure only part I of N: deployments I, I + N, … of several, else loads; `merge` joins the files
    #[arg(long, value_name = "I/N", conflicts_with = "trace", help_heading = "Measurement")]
    pub shard: Option<ShardNumber>,
    /// Send the requests of a trace at their times, with its lengths: CSV with arrival (seconds), isl, osl, or one of Azure, BurstGPT, Mooncake or vLLM bench
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["suite", "arrival_variation", "repeats", "isl", "osl", "concurrency", "rate"],
        help_heading = "Measurement"
    )]
    pub trace: Option<PathBuf>,
    /// Time of a trace that passes in a second [default: 1]
    #[arg(long, value_name = "X", value_parser = number(&SPEED_UP), allow_negative_numbers = true, requires = "trace", help_heading = "Measurement")]
    pub speed_up: Option<f64>,
    /// Coefficient of variation of the gaps between arrivals under a rate: 0 for even gaps, 1 for Poisson arrivals, above for bursts
    #[arg(long, value_name = "X", default_value_t = POISSON, value_parser = number(&ARRIVAL_VARIATION), allow_negative_numbers = true, help_heading = "Measurement")]
    pub arrival_variation: f64,
    /// Parts of a run whose agreement is measured
    #[arg(long, value_name = "N", default_value_t = LEAST_REPEATS, value_parser = whole(&REPEATS), allow_negative_numbers = true, help_heading = "Measurement")]
    pub repeats: u64,
    /// Requests of a load that count [default: one of each client for each repeat; 10 for each repeat under a rate; all of a trace]
    #[arg(long, value_name = "N", value_parser = whole(&SENT), allow_negative_numbers = true, help_heading = "Measurement")]
    pub requests: Option<u64>,
    /// Requests before these [default: one for each client; 5 % under a rate; none of a trace]
    #[arg(long, value_name = "N", value_parser = whole(&WARM_UP), allow_negative_numbers = true, help_heading = "Measurement")]
    pub warm_up: Option<u64>,
    /// Longest time of a request; a longer one counts as timed out
    #[arg(long, value_name = "S", default_value_t = REQUEST_TIMEOUT_S, value_parser = number(&CLIENT_TIMEOUT), allow_negative_numbers = true, help_heading = "Measurement")]
    pub client_timeout: f64,
    /// Send no keys beyond those of the interface: answers may end early
    #[arg(long, help_heading = "Measurement")]
    pub plain: bool,
    /// Seed of prompts and arrivals [default: another one for each command, so that no cache has the prompts]
    #[arg(long, value_name = "N", value_parser = whole(&SEED), allow_negative_numbers = true, help_heading = "Measurement")]
    pub seed: Option<u64>,
    /// Time between two samples of this machine during a run: processors, memory, disks, network, GPUs, power; 0 for none
    #[arg(long, value_name = "S", default_value_t = SAMPLE_EVERY_S, value_parser = number(&TELEMETRY_EVERY), allow_negative_numbers = true, help_heading = "Measurement")]
    pub telemetry_every: f64,
    /// Print the loads with their predicted time and cost; send nothing
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Append each run to a file, a line of JSON each, when it ends
    #[arg(long, value_name = "FILE.jsonl", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Append each run to a store of runs as well, when it ends [default of FILE: the user's own store, see `runs`]
    #[arg(long, value_name = "FILE", num_args = 0..=1, help_heading = "Output")]
    pub store: Option<Option<PathBuf>>,
    /// Leave out loads that the file of --out has
    #[arg(long, requires = "out", help_heading = "Output")]
    pub resume: bool,
    /// Print the runs as lines of JSON in place of a table
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[arg(skip)]
    pub applied: AppliedDefaults,
}

/// Coefficient of variation of the gaps between Poisson arrivals.
const POISSON: f64 = 1.0;
/// An address to which nothing is sent.
const NOWHERE: &str = "http://127.0.0.1";
/// The name of a model that neither the command nor the server states.
const UNKNOWN_MODEL: &str = "unknown";

/// Where runs are kept when they end.
struct RunPlaces {
    file: Option<RecordFile>,
    store: Option<RunStore>,
}

impl RunPlaces {
    fn append(&mut self, run: &RunRecord) -> Result<(), Error> {
        if let Some(file) = &mut self.file {
            file.append(run)?;
        }
        if let Some(store) = &mut self.store {
            store.append(std::slice::from_ref(run))?;
        }
        Ok(())
    }
}

/// The start of a server.
enum LaunchedServer {
    Ready(StartedServer),
    Failed(Box<RunRecord>),
}

/// The question with the best plan, where it states none.
fn with_best_plan(catalog: &Catalog, scenario: Scenario) -> Result<Scenario, Error> {
    if scenario.deployment.as_ref().is_some_and(Deployment::is_stated) {
        return Ok(scenario);
    }
    let request = OptimizeRequest::best_of(scenario.clone());
    let best = with_deadline(None, |control| optimize(catalog, &request, control))?;
    let none = || {
        let fix = "see `mantile-opt optimize` for the reasons, or state a plan";
        Error::new("launch", "no plan that meets the limits", "a plan that runs", fix)
    };
    best.best.as_ref().map(|found| at(&scenario, found)).ok_or_else(none)
}

/// Says why a server did not start, or why it ended.
fn show_failure(what: &str, failed: &FailedStart) -> Result<(), CliError> {
    let line = visible(&failed.line);
    writeln!(anstream::stderr(), "The server {what}: {}. {line}", failed.reason.words())?;
    Ok(())
}

/// The server at an address, with the bearer token and the certificates of files.
fn server_at(address: &str, token_file: Option<&Path>, ca_file: Option<&Path>) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::parse(address, token_file.map(token).transpose()?)?;
    match ca_file {
        Some(path) => {
            let pem = read_plain(path)?;
            endpoint.trusting(&pem).map_err(|fault| fault.in_file(shown_path(path)))
        }
        None => Ok(endpoint),
    }
}

/// The run of a server under the load of a problem, without a prediction of it. Settings are the defaults of `bench`.
///
/// # Errors
/// The server cannot be reached, or answers no request.
pub fn measured_now(
    catalog: &Catalog,
    scenario: &Scenario,
    endpoint: &str,
    token_file: Option<&Path>,
    ca_file: Option<&Path>,
) -> Result<RunRecord, CliError> {
    let settings = BenchSettings::of(server_at(endpoint, token_file, ca_file)?);
    let session = BenchSession::begin(settings.clone())?;
    show_notes(&session)?;
    let Scenario { isl, osl, concurrency, rate, .. } = scenario.clone();
    let load = Scenario { isl, osl, concurrency, rate, ..Scenario::default() };
    let subject = BenchSubject::of(catalog, load)?;
    let point = subject.point(POISSON);
    show_load((0, 1), &point)?;
    let run = with_progress(settings.counted(&point).count(), |progress| {
        session.measure(&subject, &point, None, progress)
    });
    if run.outcome != RunOutcome::Measured {
        let fix = "see its log, or the outcome of `mantile-opt bench` on it";
        return Err(
            Error::new("endpoint", "a server that answered no request", "one that answers", fix).into()
        );
    }
    Ok(run)
}

/// A load with its estimate.
type Estimated = (LoadPoint, Option<EstimateResult>);

/// The deployments and loads that are measured.
struct BenchPlan<'a> {
    catalog: &'a Catalog,
    trace: StatedTrace,
    matrix: BenchMatrix,
}

/// A deployment with its plan, the loads that it carries, and the others with their reasons.
struct AllowedLoads {
    scenario: Scenario,
    points: Vec<Estimated>,
    refused: Vec<(String, String)>,
}

/// A server to measure: its address, and its processes where they were started here.
type MeasuredServer<'a> = (&'a str, Option<&'a mut StartedServer>);
/// The trace of a command, where it has one.
type StatedTrace = Option<Arc<BenchTrace>>;

impl Bench {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let scenario = self.planned.scenario()?;
        self.planned.problem.save(catalog, &scenario)?;
        let matrix = BenchMatrix::new(catalog, scenario, &self.vary, self.shard)?;
        let plan = BenchPlan { catalog, trace: self.traced()?, matrix };
        self.check_varied(&plan.matrix)?;
        if self.dry_run {
            return OutputArgs::default().write(&self.plan_table(&plan)?);
        }
        let mut places = self.places()?;
        let mut runs = vec![];
        if let Some(endpoint) = &self.endpoint {
            for deployment in &plan.matrix.deployments {
                let scenario = deployment.scenario.clone();
                runs.extend(self.measured(&plan, scenario, (endpoint.as_str(), None), &mut places)?);
            }
            return self.print(&runs);
        }
        with_interrupt(|| {
            let all = plan.matrix.deployments.len();
            for (place, deployment) in plan.matrix.deployments.iter().enumerate().take_while(|_| !pressed()) {
                show_deployment((place, all), deployment)?;
                runs.extend(self.launched(&plan, deployment, &mut places)?);
            }
            self.print(&runs)
        })
    }

    /// Checks that keys are varied where they can be.
    fn check_varied(&self, matrix: &BenchMatrix) -> Result<(), Error> {
        let fault = |found: &str, expected: &str, fix: &str| Err(Error::new("vary", found, expected, fix));
        if matrix.varies_deployments() && !self.launch {
            let fix = "add --launch, which starts a server for each; or start each yourself, and measure it";
            return fault("keys of the deployment at a server that runs", "keys of the load", fix);
        }
        if !matrix.load_keys.is_empty() && (self.suite.is_some() || self.trace.is_some()) {
            let fix = "omit --suite or --trace, or vary keys of the deployment only";
            return fault("keys of the load, which --suite or --trace states", "one of them", fix);
        }
        if matrix.deployment_keys.iter().any(|key| key == "model") && model_here(None).is_some() {
            let fix = "unset MODEL, or start each model in a command of its own";
            return fault("models, of which the variable MODEL names one", "no variable MODEL", fix);
        }
        Ok(())
    }

    /// Starts a deployment, measures its loads and stops it. Of several deployments, one that the rules forbid is left out.
    fn launched(
        &self,
        plan: &BenchPlan<'_>,
        deployment: &BenchDeployment,
        places: &mut RunPlaces,
    ) -> Result<Vec<RunRecord>, CliError> {
        let allowed = match self.allowed(plan, deployment) {
            Err(fault) if !deployment.name.is_empty() => {
                show_left_out(&deployment.name, &fault.to_string())?;
                return Ok(vec![]);
            }
            found => found?,
        };
        allowed.refused.iter().try_for_each(|(load, reason)| show_left_out(load, reason))?;
        let subject = BenchSubject::of(plan.catalog, allowed.scenario.clone())?;
        let points = self.left(&subject, allowed.points, places);
        let largest = LoadPoint::largest(points.iter().map(|(point, _)| point));
        let Some(largest) = largest else { return Ok(vec![]) };
        match self.started(plan.catalog, &subject, (&allowed.scenario, &largest))? {
            LaunchedServer::Ready(mut server) => {
                let address = server.address.clone();
                self.measured(plan, allowed.scenario, (address.as_str(), Some(&mut server)), places)
            }
            LaunchedServer::Failed(run) => {
                places.append(&run)?;
                Ok(vec![*run])
            }
        }
    }

    /// The plan of a deployment, and the loads that the rules allow.
    ///
    /// # Errors
    /// There is no plan, or it carries none of the loads.
    fn allowed(&self, plan: &BenchPlan<'_>, deployment: &BenchDeployment) -> Result<AllowedLoads, Error> {
        let scenario = with_best_plan(plan.catalog, deployment.scenario.clone())?;
        let subject = BenchSubject::of(plan.catalog, scenario.clone())?;
        let (mut points, mut refused) = (vec![], vec![]);
        for (point, found) in self.estimated(&subject, plan)? {
            let Some(found) = found else {
                let fix = "add --hardware, e.g. --hardware 1xl40s";
                let expected = "the hardware of this host";
                return Err(Error::new("hardware", "a launch without hardware", expected, fix));
            };
            match found.candidate.metrics {
                Some(_) => points.push((point, Some(found))),
                None => {
                    refused.push((load_of(&deployment.name, &point), found.candidate.violations.join("; ")))
                }
            }
        }
        if points.is_empty() {
            let reason = refused.into_iter().next().map(|(_, reason)| reason).unwrap_or_default();
            let fix =
                "state a plan on the devices of this host, or start the server yourself and use --endpoint";
            let found = format!("a launch that cannot run: {reason}");
            return Err(Error::new("launch", found, "a launch on this host", fix));
        }
        Ok(AllowedLoads { scenario, points, refused })
    }

    /// Loads without those that are done already, where the measurement is resumed.
    fn left(
        &self,
        subject: &BenchSubject<'_>,
        mut points: Vec<Estimated>,
        places: &RunPlaces,
    ) -> Vec<Estimated> {
        if let Some(file) = places.file.as_ref().filter(|_| self.resume) {
            points.retain(|(point, found)| {
                !is_done(&file.earlier, subject, (point, found.as_ref()), self.protocol)
            });
        }
        points
    }

    /// Measures the loads at a server. A load that finds no server, or loses it, is the last one.
    fn measured(
        &self,
        plan: &BenchPlan<'_>,
        scenario: Scenario,
        (endpoint, mut server): MeasuredServer<'_>,
        places: &mut RunPlaces,
    ) -> Result<Vec<RunRecord>, CliError> {
        let settings = self.settings(endpoint)?;
        let session = match BenchSession::reached(settings.clone())? {
            Ok(session) => session,
            Err(absent) => return self.absent(plan, scenario, &absent, places),
        };
        show_notes(&session)?;
        let named = scenario.model.clone().or_else(|| Some(session.model().to_owned()));
        let subject = BenchSubject::of(plan.catalog, Scenario { model: named, ..scenario })?;
        let mut points = self.left(&subject, self.estimated(&subject, plan)?, places);
        // A server that was started takes the loads that the rules allow.
        points.retain(|(_, found)| server.is_none() || found.as_ref().is_some_and(runs));
        let mut runs = vec![];
        for (place, (point, found)) in points.iter().enumerate().take_while(|_| !pressed()) {
            show_load((place, points.len()), point)?;
            let requests = settings.counted(point).count();
            let mut run = with_progress(requests, |progress| {
                session.measure(&subject, point, found.as_ref(), progress)
            });
            if let Some(failed) = server.as_mut().filter(|_| is_lost(&run)).and_then(|server| server.ended())
            {
                show_failure("ended", &failed)?;
                failed.explain(&mut run);
            }
            places.append(&run)?;
            runs.push(run);
            if runs.last().is_some_and(is_lost) {
                show_rest(points.len() - place - 1)?;
                break;
            }
        }
        Ok(runs)
    }

    /// Keeps the record of a server that is absent, under the first of the loads.
    fn absent(
        &self,
        plan: &BenchPlan<'_>,
        scenario: Scenario,
        absent: &AbsentServer,
        places: &mut RunPlaces,
    ) -> Result<Vec<RunRecord>, CliError> {
        let (found, fix) = (visible(&absent.fault.found), &absent.fault.fix);
        writeln!(anstream::stderr(), "The server is not measured: {found}; {fix}")?;
        // Without a server, the model may be unknown: the record has no prediction then.
        let hardware = scenario.hardware.clone().filter(|_| scenario.model.is_some());
        let subject = BenchSubject::of(plan.catalog, Scenario { hardware, ..scenario })?;
        let points = self.points(&subject, plan)?;
        let point = points.first().cloned().unwrap_or_else(|| subject.point(self.arrival_variation));
        let estimate = subject.estimate(&point)?;
        let named = self.served_model.as_deref().or(subject.model());
        let run = absent.record(&subject, &point, (named.unwrap_or(UNKNOWN_MODEL), estimate.as_ref()));
        places.append(&run)?;
        Ok(vec![run])
    }

    fn print(&self, runs: &[RunRecord]) -> Result<ExitStatus, CliError> {
        let text = if self.json { lines_of(runs) } else { runs_table(runs) };
        OutputArgs::default().write(&text)?;
        Ok(ExitStatus::of(runs.iter().all(|run| run.outcome == RunOutcome::Measured)))
    }

    /// The file and the store, where they are stated.
    fn places(&self) -> Result<RunPlaces, Error> {
        let file = self.out.as_deref().map(RecordFile::open).transpose()?;
        let store = self.store.as_ref().map(|named| named_or_own(named.as_deref())).transpose()?;
        Ok(RunPlaces { file, store: store.as_deref().map(RunStore::open).transpose()? })
    }

    /// Starts the server that all loads are sent to, for the largest of them.
    fn started(
        &self,
        catalog: &Catalog,
        subject: &BenchSubject<'_>,
        (scenario, largest): (&Scenario, &LoadPoint),
    ) -> Result<LaunchedServer, CliError> {
        let Some(found) = subject.estimate(largest)? else {
            return Err(
                Error::new("hardware", "no hardware", "the hardware of this host", "add --hardware").into()
            );
        };
        let refused = || LaunchReport::refused(&found.question.runtime, found.candidate.violations.clone());
        let launch = found.launch.clone().unwrap_or_else(refused);
        let health = match (&launch.router, catalog.launch_of(&launch.runtime)?) {
            (None, Some((known, _))) => known.health,
            _ => MODELS.to_owned(),
        };
        let model = model_here(scenario.model.as_deref());
        let mut server = StartedServer::start(&launch, self.log.as_deref(), model.as_deref())?;
        let within = Duration::try_from_secs_f64(self.start_timeout).unwrap_or(Duration::MAX);
        Ok(match server.ready(&health, within)? {
            Ok(()) => LaunchedServer::Ready(server),
            Err(failed) => {
                show_failure("did not start", &failed)?;
                LaunchedServer::Failed(Box::new(failed.record(subject, largest, &found)))
            }
        })
    }

    fn settings(&self, endpoint: &str) -> Result<BenchSettings, Error> {
        Ok(BenchSettings {
            endpoint: server_at(endpoint, self.token_file.as_deref(), self.ca_file.as_deref())?,
            protocol: self.protocol,
            model: self.served_model.clone(),
            fixed_length: !self.plain,
            repeats: self.repeats,
            requests: self.requests,
            warm_up: self.warm_up,
            timeout_s: self.client_timeout,
            seed: self.seed.unwrap_or_else(fresh_seed),
            telemetry: TelemetrySettings {
                every: Duration::from_secs_f64(self.telemetry_every),
                ..TelemetrySettings::default()
            },
        })
    }

    /// The requests of the trace.
    fn traced(&self) -> Result<StatedTrace, Error> {
        let Some(path) = &self.trace else { return Ok(None) };
        let (text, read) = read_traffic(path)?;
        if read.trace.is_empty() {
            let fix = "give single requests with times, or play the sessions with `simulate --trace`";
            let expected = "requests with times of their own";
            return Err(Error::new("trace", "sessions, which wait for answers", expected, fix)
                .in_file(shown_path(path)));
        }
        let trace = BenchTrace::of(&text, read.trace, self.speed_up.unwrap_or(1.0));
        trace.check(self.warm_up)?;
        Ok(Some(Arc::new(trace)))
    }

    /// The loads of a deployment.
    fn points(&self, subject: &BenchSubject<'_>, plan: &BenchPlan<'_>) -> Result<Vec<LoadPoint>, Error> {
        let keys = &plan.matrix.load_keys;
        let all = match (&plan.trace, self.suite) {
            (Some(trace), _) => vec![LoadPoint::of_trace(trace.clone())],
            (None, Some(suite)) => suite.points(),
            (None, None) => subject.point(self.arrival_variation).varied(self.arrival_variation, keys)?,
        };
        Ok(plan.matrix.of_shard(all))
    }

    /// The loads, each with its estimate.
    fn estimated(&self, subject: &BenchSubject<'_>, plan: &BenchPlan<'_>) -> Result<Vec<Estimated>, Error> {
        let of = |point: LoadPoint| -> Result<Estimated, Error> {
            let found = subject.estimate(&point)?;
            Ok((point, found))
        };
        self.points(subject, plan)?.into_iter().map(of).collect()
    }

    /// The loads of all deployments, with their time and cost by their estimates.
    fn plan_table(&self, plan: &BenchPlan<'_>) -> Result<String, Error> {
        let settings = self.settings(self.endpoint.as_deref().unwrap_or(NOWHERE))?;
        let mut table = DryRun::new(settings, plan.matrix.varies_deployments());
        for deployment in &plan.matrix.deployments {
            if !self.launch {
                let subject = BenchSubject::of(plan.catalog, deployment.scenario.clone())?;
                table.add(&deployment.name, &self.estimated(&subject, plan)?);
                continue;
            }
            match self.allowed(plan, deployment) {
                Ok(allowed) => {
                    table.add(&deployment.name, &allowed.points);
                    table.left_out.extend(allowed.refused);
                }
                Err(fault) if !deployment.name.is_empty() => {
                    table.left_out.push((deployment.name.clone(), fault.to_string()));
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(table.text())
    }
}

/// Whether a run found no server, or lost it: those after it would find none.
fn is_lost(run: &RunRecord) -> bool {
    matches!(run.outcome, RunOutcome::Unreachable | RunOutcome::Died)
}

/// Says how many loads are not measured after the server has ended.
fn show_rest(loads: usize) -> Result<(), CliError> {
    if loads > 0 {
        let left = if loads == 1 { "a load is".to_owned() } else { format!("{loads} loads are") };
        writeln!(anstream::stderr(), "The server is gone, and {left} not measured; --resume goes on.")?;
    }
    Ok(())
}

/// Whether a deployment runs under a load.
fn runs(found: &EstimateResult) -> bool {
    found.candidate.metrics.is_some()
}

/// A load of a deployment in words.
fn load_of(deployment: &str, point: &LoadPoint) -> String {
    let load = format!("ISL {}, OSL {}, {}", point.isl, point.osl, point.load_text());
    if deployment.is_empty() { load } else { format!("{deployment}, {load}") }
}

/// Says what the rules leave out, and why.
fn show_left_out(what: &str, reason: &str) -> Result<(), CliError> {
    writeln!(anstream::stderr(), "Not measured: {}: {}", visible(what), visible(reason))?;
    Ok(())
}

/// Shows on a terminal which of several deployments is started.
fn show_deployment((place, all): (usize, usize), deployment: &BenchDeployment) -> Result<(), CliError> {
    if all > 1 && !is_quiet() && std::io::stderr().is_terminal() {
        writeln!(anstream::stderr(), "deployment {} of {all}: {}", place + 1, deployment.name)?;
    }
    Ok(())
}

/// Shows on a terminal which load is measured.
fn show_load((place, all): (usize, usize), point: &LoadPoint) -> Result<(), CliError> {
    if !is_quiet() && std::io::stderr().is_terminal() {
        let (isl, osl, load) = (point.isl, point.osl, point.load_text());
        writeln!(anstream::stderr(), "load {} of {all}: ISL {isl}, OSL {osl}, {load}", place + 1)?;
    }
    Ok(())
}

/// Says once what is not read during the runs.
fn show_notes(session: &BenchSession) -> Result<(), CliError> {
    for note in session.notes().iter().filter(|_| !is_quiet()) {
        writeln!(anstream::stderr(), "{note}")?;
    }
    Ok(())
}

/// Time between two updates of the progress.
const UPDATE: Duration = Duration::from_millis(100);

/// Runs `work`, which reports the end of each of `requests` requests, with progress on a terminal.
fn with_progress<T>(requests: usize, work: impl FnOnce(Arc<dyn Fn() + Send + Sync>) -> T) -> T {
    shown(|progress| {
        let (ended, over) = (Arc::new(AtomicUsize::new(0)), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    progress(ended.load(Relaxed), requests);
                    std::thread::sleep(UPDATE);
                }
            });
            let count = ended.clone();
            let found = work(Arc::new(move || {
                count.fetch_add(1, Relaxed);
            }));
            over.store(true, Relaxed);
            found
        })
    })
}
