//! A server that gives no facts before its loads: it cannot be reached, or takes no request of this client.

use std::io;

use super::client::{is_unconnected, unconnected};
use super::points::LoadPoint;
use super::subject::{BenchSubject, UnmeasuredRun};
use crate::report::result::EstimateResult;
use crate::spec::error::Error;
use crate::spec::run::{RunOutcome, RunRecord};

/// A server that is not measured, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentServer {
    /// As requests state theirs: without a name or an address.
    reason: String,
    /// The same in words, with the way to correct it.
    pub fault: Error,
}

/// When the reason was found, as failed starts state it.
const STAGE: &str = "begin";

impl AbsentServer {
    /// A server to which there is no connection, or that does not answer.
    pub(super) fn unreached(fault: &io::Error) -> AbsentServer {
        let found = format!("no answer: {}", fault.kind());
        let fix = "start the server, or correct --endpoint";
        let stated = Error::new("endpoint", found, "a server that answers", fix);
        AbsentServer { reason: unconnected(fault), fault: stated }
    }

    /// A server that refuses this client.
    pub(super) fn refusing(status: u16) -> AbsentServer {
        let reason = format!("status {status}");
        let fault = Error::new("token-file", &reason, "a token that the server takes", "set --token-file");
        AbsentServer { reason, fault }
    }

    /// The record of a load that was not sent. `model` is its name in requests.
    pub fn record(
        &self,
        subject: &BenchSubject<'_>,
        point: &LoadPoint,
        (model, found): (&str, Option<&EstimateResult>),
    ) -> RunRecord {
        let reached = !is_unconnected(&self.reason);
        let outcome = if reached { RunOutcome::Unanswered } else { RunOutcome::Unreachable };
        let failure = self.reason.clone().into();
        subject.unmeasured(point, (model, found), UnmeasuredRun { outcome, failure, stage: STAGE.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::points::PointLoad;
    use crate::spec::scenario::Scenario;
    use crate::store::catalog::Catalog;

    #[test]
    fn an_absent_server_is_a_record_without_figures() {
        let catalog = Catalog::default();
        let subject = BenchSubject::of(&catalog, Scenario::default()).unwrap();
        let point = LoadPoint { isl: 100, osl: 10, load: PointLoad::Clients(4) };
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        for (absent, outcome, reason) in [
            (AbsentServer::unreached(&refused), RunOutcome::Unreachable, "connection: connection refused"),
            (AbsentServer::refusing(401), RunOutcome::Unanswered, "status 401"),
        ] {
            let run = absent.record(&subject, &point, ("m", None));
            assert_eq!((run.outcome, run.model_id.as_str(), run.concurrency), (outcome, "m", Some(4)));
            assert_eq!((&run.env["failure"], &run.env["failure_stage"]), (&json!(reason), &json!(STAGE)));
            assert!(run.doubt().is_some() && run.requests.is_none() && !run.run_id.is_empty());
        }
    }
}
