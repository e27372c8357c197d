//! A search on the threads of the server, within its limits.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};

use super::problem::Refusal;
use super::state::ServerState;
use crate::admission::flights::ProgressSender;
use crate::request::RequestControl;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// Preferences of a client, and those that are met: RFC 7240.
pub(super) const PREFER: HeaderName = HeaderName::from_static("prefer");
pub(super) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The longest that a client waits, in whole seconds: `Prefer: wait=2`. A preference that is not understood is ignored,
/// as RFC 7240 demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PreferredWait(pub(super) u64);

impl PreferredWait {
    pub(super) fn of(headers: &HeaderMap) -> Option<PreferredWait> {
        let lines = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
        lines.flat_map(|line| line.split(',')).find_map(|preference| {
            let (name, value) = preference.split(';').next()?.split_once('=')?;
            let seconds = value.trim().trim_matches('"').parse().ok()?;
            name.trim().eq_ignore_ascii_case("wait").then_some(PreferredWait(seconds))
        })
    }

    /// The same as it is written in a header.
    pub(super) fn text(self) -> String {
        format!("wait={}", self.0)
    }
}

/// The result of `work`, and whether the time limit left it whole.
pub(super) async fn searched<T: Send + 'static>(
    state: &ServerState,
    progress: ProgressSender,
    work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send + 'static,
) -> Result<(T, bool), Refusal> {
    searched_within(state, (progress, None), work).await
}

/// The same within the time that the client waits, too.
pub(super) async fn searched_within<T: Send + 'static>(
    state: &ServerState,
    (progress, wait): (ProgressSender, Option<PreferredWait>),
    work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send + 'static,
) -> Result<(T, bool), Refusal> {
    let wait = wait.map(|wait| Duration::from_secs(wait.0));
    Ok(state.admission.searched((progress, wait), work).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_among_other_preferences() {
        let of = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(PREFER, line.parse().expect("a header"));
            }
            PreferredWait::of(&headers).map(|wait| wait.0)
        };
        assert_eq!(of(&["wait=2"]), Some(2));
        assert_eq!(of(&["respond-async, Wait = \"10\"; x=1"]), Some(10));
        assert_eq!(of(&["return=minimal", "wait=3, wait=4"]), Some(3));
        for none in ["wait", "wait=", "wait=-1", "wait=1.5", "waiting=1"] {
            assert_eq!(of(&[none]), None, "{none}");
        }
        assert_eq!(of(&[]), None);
    }
}
