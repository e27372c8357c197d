//! `mock`: a server of OpenAI's interface that answers at the predicted speed.

use super::access::{AccessArgs, not_bound, show_listening, stopped};
use super::defaults::AppliedDefaults;
use super::estimate::PlannedArgs;
use super::{CliError, ExitStatus};
use crate::http::mock::{MockDeployment, serve_mock};
use crate::request::UNCONTROLLED;
use crate::request::simulate::{SimulateRequest, SimulatedTraffic};
use crate::request::simulated_operation::SimulatedOperation;
use crate::request::simulated_tiers::SimulatedTiers;
use crate::spec::limits::{SPEED_UP, number};
use crate::store::catalog::Catalog;
use crate::traffic::router::RoutePolicy;

const AFTER: &str = "\
Gateways, load generators and clients can be tried against it without a GPU. A request reaches the deployment of `simulate` \
at the time at which it arrives, and each of its tokens is sent when the simulated step ends that makes it: TTFT, the times \
between tokens and the queue are those of the requests that it has at that time. The text is one word again and again.

POST /v1/chat/completions, POST /v1/completions, GET /v1/models, GET /metrics (names of vLLM), GET /health. A prompt has a \
token for every four bytes of text, and one for the role of each message; lists of tokens are exact. Without `max_tokens`, \
an answer has --osl tokens. Beyond this machine a token is required, which clients send as their API key. Without a plan, \
the best one is found first.

Examples:
  mantile-opt mock --model Llama-3.1-8B --hardware 1xh100 --tp 1
  mantile-opt mock --model Qwen3-32B --hardware 4xh100 --tp 2 --replicas 2 --router prefix --speed-up 10
  curl -sN localhost:8000/v1/completions --json '{\"prompt\": \"How are you?\", \"max_tokens\": 20, \"stream\": true}'";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Mock {
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// How requests are spread over replicas and their attention ranks; requests of one `user` are a session [default: least-requests]
    #[arg(long, value_name = "POLICY")]
    pub router: Option<RoutePolicy>,
    /// Simulated time that passes in a second [default: 1]
    #[arg(long, value_name = "X", value_parser = number(&SPEED_UP), allow_negative_numbers = true)]
    pub speed_up: Option<f64>,
    /// A name of the model in requests, instead of --model and its Hugging Face id
    #[arg(long, value_name = "NAME")]
    pub served_model_name: Vec<String>,
    #[command(flatten)]
    pub access: AccessArgs,
    #[arg(skip)]
    pub applied: AppliedDefaults,
}

impl Mock {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let access = self.access.access()?;
        let (router, speed_up) = (self.router, self.speed_up);
        let traffic = SimulatedTraffic { router, speed_up, ..SimulatedTraffic::default() };
        let request = SimulateRequest {
            scenario: self.planned.scenario()?,
            traffic,
            operation: SimulatedOperation::default(),
            tiers: SimulatedTiers::default(),
        };
        self.planned.problem.save(catalog, &request.scenario)?;
        let deployment = MockDeployment::new(catalog, &request, &self.served_model_name, &UNCONTROLLED)?;
        let hint = format!("{} as {}", deployment.model(), deployment.notation());
        let shown = |address| show_listening(address, &hint);
        serve_mock(deployment, &access, shown, stopped()).map_err(|error| not_bound(&error))?;
        Ok(ExitStatus::Success)
    }
}
