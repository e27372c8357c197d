//! Limits of the requests of a server, the same flags for every protocol.

use std::time::Duration;

use crate::admission::{MESSAGE_BYTES, RequestLimits};
use crate::spec::limits::{RUNNING, TIME_LIMIT, WAITING, number, whole};

#[derive(Clone, Debug, clap::Args)]
pub struct LimitArgs {
    /// Requests that are answered at the same time
    #[arg(long, value_name = "N", default_value = "4", value_parser = whole(&RUNNING), allow_negative_numbers = true)]
    pub running: u64,
    /// Requests that wait; further ones are refused, over HTTP with status 429
    #[arg(long, value_name = "N", default_value = "64", value_parser = whole(&WAITING), allow_negative_numbers = true)]
    pub waiting: u64,
    /// Longest search; its best answer so far is returned then
    #[arg(long, value_name = "S", default_value = "60", value_parser = number(&TIME_LIMIT), allow_negative_numbers = true)]
    pub time_limit: f64,
}

impl LimitArgs {
    pub(super) fn limits(&self) -> RequestLimits {
        RequestLimits {
            message_bytes: MESSAGE_BYTES,
            running: self.running as usize,
            waiting: self.waiting as usize,
            time: Duration::try_from_secs_f64(self.time_limit).ok(),
        }
    }
}
