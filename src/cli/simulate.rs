//! `simulate`: a deployment under traffic.

use std::path::{Path, PathBuf};

use super::estimate::PlannedArgs;
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::simulated_records::RecordArgs;
use super::{CliError, ExitStatus};
use crate::report::simulated_records::SimulatedRequest;
use crate::report::svg::simulate::simulate_picture;
use crate::request::UNCONTROLLED;
use crate::request::simulate::{SimulateRequest, SimulatedTraffic, simulated};
use crate::request::simulated_capacity::CapacityTarget;
use crate::request::simulated_operation::SimulatedOperation;
use crate::request::simulated_tiers::SimulatedTiers;
use crate::spec::error::Error;
use crate::spec::limits::{DRAWS, whole};
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};

const AFTER: &str = "\
Every request passes the scheduler of its replica, step by step: each step costs what the formulas of `estimate` say for \
its batch. With --rate, requests arrive at that rate; without it, as many clients as the plan has concurrent requests send \
one after the other. Without a plan, the best one is found first.

With --turns, requests are turns of sessions: each prompt is the one before it, its output, and new tokens, sent a think \
time after the answer. Clients have one session at a time; with --rate, sessions start at that rate divided by the turns, \
so that requests come at the rate once sessions end as often as they start.

With --client-timeout, clients give up; with --fault-at or --mtbf, replicas fail, and their requests are sent again; with \
--autoscale, replicas come and go with the load. The answer then has the requests without an answer, and device-hours.

With --find, runs bracket and then bisect a limit to 1 %, on the same requests: the highest rate (or speed of a trace), the \
most clients, or the fewest replicas with which --percentile of the requests (90 % by default) are within all SLOs. The \
other figures are those of the run at the value found.

With --kv-host-memory, and with --kv-store behind it, prompts find in host memory and in a store what the devices no longer \
have, and load it. The answer then has the hit rate by tier.

--records has one row for each request, and --trace sends them again. With --draws, every figure has an interval.

Examples:
  mantile-opt simulate --model Llama-3.1-8B --hardware 1xh100 --tp 1 --rate 10
  mantile-opt simulate --model Llama-3.1-8B --hardware 1xh100 --tp 1 --concurrency 64
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --rate 8 --isl-variation 0.8 --osl-variation 1 --detail
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --tp 1 --concurrency 16 --turns 10 --turn-isl 1500
  mantile-opt simulate --model Qwen3-14B --hardware 2xh100 --tp 1 --rate 12 --fault-at 60 --startup-time 90
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --tp 1 --rate 12 --autoscale requests --autoscale-target 32 --max-replicas 4 --startup-time 90
  mantile-opt simulate --model Llama-3.1-8B --hardware 1xh100 --tp 1 --ttft 500ms --tpot 25ms --find rate
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --tp 1 --concurrency 64 --turns 10 --turn-isl 1500 --kv-host-memory 200
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --tp 1 --rate 8 --draws 50 --records requests.csv";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Simulate {
    #[command(flatten)]
    pub planned: PlannedArgs,
    #[command(flatten)]
    pub traffic: SimulatedTraffic,
    /// Send the requests of a trace at their times: CSV with arrival (seconds), isl, osl, or one of Azure, BurstGPT, Mooncake or vLLM bench. Or its sessions: block hashes of agents (Weka, AgentX), agentic Mooncake, Mooncake with session_id; with --concurrency, that number at a time, one after the other
    #[arg(long, value_name = "FILE", help_heading = "Traffic")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub operation: SimulatedOperation,
    /// Search for a limit: the highest rate, or speed of a trace; the most clients; or the fewest replicas, with which the share of requests within all SLOs is that of --percentile [default: p90]. Without SLOs: at which the queue does not grow
    #[arg(long, value_name = "QUANTITY", help_heading = "Search")]
    pub find: Option<CapacityTarget>,
    #[command(flatten)]
    pub tiers: SimulatedTiers,
    /// Show the slowest requests, and why they were
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
    /// Run the same traffic again this often, with step times as uncertain as the prediction, for p10 to p90 of the figures [default: 0]
    #[arg(long, value_name = "N", value_parser = whole(&DRAWS), allow_negative_numbers = true, help_heading = "Output")]
    pub draws: Option<u64>,
    #[command(flatten)]
    pub records: RecordArgs,
    #[command(flatten)]
    pub plot: PlotArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Simulate {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.plot.check()?;
        let request = self.request()?;
        self.planned.problem.save(catalog, &request.scenario)?;
        let mut records = self.records.begun()?;
        let mut write = records.as_mut().map(|records| move |one: &SimulatedRequest| records.add(one));
        let each = write.as_mut().map(|write| write as &mut dyn FnMut(&SimulatedRequest));
        let report = simulated(catalog, &request, each, &UNCONTROLLED)?;
        if let Some(records) = records {
            records.finish()?;
        }
        self.plot.write(|| simulate_picture(&report))?;
        self.output.answer(&report, self.detail)?;
        Ok(ExitStatus::Success)
    }

    pub fn request(&self) -> Result<SimulateRequest, Error> {
        let traffic = with_trace(&self.traffic, self.trace.as_deref())?;
        let (operation, tiers) = (self.operation.clone(), self.tiers.clone());
        let (scenario, find, draws) = (self.planned.scenario()?, self.find, self.draws);
        Ok(SimulateRequest { scenario, traffic, operation, tiers, find, draws, records: false })
    }
}

/// The text of the file of a trace, and the traffic of its requests or of its sessions.
pub(super) fn read_traffic(path: &Path) -> Result<(String, SimulatedTraffic), Error> {
    let text = file::read_most(path, FileSizeLimit::Table)?;
    let given = SimulatedTraffic { trace_text: Some(text.clone()), ..SimulatedTraffic::default() };
    let traffic = given.with_trace().map_err(|fault| fault.in_file(file::shown(path)))?;
    Ok((text, traffic))
}

/// The traffic with the requests or the sessions of a file.
pub(super) fn with_trace(
    traffic: &SimulatedTraffic,
    trace: Option<&Path>,
) -> Result<SimulatedTraffic, Error> {
    let Some(path) = trace else { return Ok(traffic.clone()) };
    let (_, SimulatedTraffic { trace, sessions, .. }) = read_traffic(path)?;
    Ok(SimulatedTraffic { trace, sessions, ..traffic.clone() })
}
