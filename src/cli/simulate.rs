//! `simulate`: a deployment under traffic.

use std::path::PathBuf;

use super::estimate::PlannedArgs;
use super::fleet::traced_in;
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::{CliError, ExitStatus};
use crate::report::svg::simulate::simulate_picture;
use crate::request::UNCONTROLLED;
use crate::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use crate::request::simulated_operation::SimulatedOperation;
use crate::request::simulated_tiers::SimulatedTiers;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};
use crate::store::session_trace::read_sessions;

const AFTER: &str = "\
Every request passes the scheduler of its replica, step by step: each step costs what the formulas of `estimate` say for \
its batch. With --rate, requests arrive at that rate; without it, as many clients as the plan has concurrent requests send \
one after the other. Without a plan, the best one is found first.

With --turns, requests are turns of sessions: each prompt is the one before it, its output, and new tokens, sent a think \
time after the answer. Clients have one session at a time; with --rate, sessions start at that rate divided by the turns, \
so that requests come at the rate once sessions end as often as they start.

With --client-timeout, clients give up; with --fault-at or --mtbf, replicas fail, and their requests are sent again; with \
--autoscale, replicas come and go with the load. The answer then has the requests without an answer, and device-hours.

With --kv-host-memory, and with --kv-store behind it, prompts find in host memory and in a store what the devices no longer have, and load it. The answer then has the hit rate by tier.

Examples:
  mantile-opt simulate --model Llama-3.1-8B --hardware 1xh100 --tp 1 --rate 10
  mantile-opt simulate --model Llama-3.1-8B --hardware 1xh100 --tp 1 --concurrency 64
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --rate 8 --isl-variation 0.8 --osl-variation 1 --detail
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --tp 1 --concurrency 16 --turns 10 --turn-isl 1500
  mantile-opt simulate --model Qwen3-14B --hardware 2xh100 --tp 1 --rate 12 --fault-at 60 --startup-time 90
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --tp 1 --rate 12 --autoscale requests --autoscale-target 32 --max-replicas 4 --startup-time 90
  mantile-opt simulate --model Qwen3-14B --hardware 1xh100 --tp 1 --concurrency 64 --turns 10 --turn-isl 1500 --kv-host-memory 200";

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
    #[command(flatten)]
    pub tiers: SimulatedTiers,
    /// Show the slowest requests, and why they were
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
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
        let report = simulate(catalog, &request, &UNCONTROLLED)?;
        self.plot.write(|| simulate_picture(&report))?;
        self.output.answer(&report, self.detail)?;
        Ok(ExitStatus::Success)
    }

    pub fn request(&self) -> Result<SimulateRequest, Error> {
        let mut traffic = self.traffic.clone();
        if let Some(path) = &self.trace {
            let text = file::read_most(path, FileSizeLimit::Table)?;
            let fault = |fault: Error| fault.in_file(file::shown(path));
            match read_sessions(&text).map_err(fault)? {
                Some(sessions) => traffic.sessions = sessions,
                None => traffic.trace = traced_in(&text).map_err(fault)?,
            }
        }
        let (operation, tiers) = (self.operation.clone(), self.tiers.clone());
        Ok(SimulateRequest { scenario: self.planned.scenario()?, traffic, operation, tiers })
    }
}
