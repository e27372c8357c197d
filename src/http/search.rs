//! A search on the threads of the server, within its limits.

use super::problem::Refusal;
use super::state::ServerState;
use crate::admission::flights::ProgressSender;
use crate::request::RequestControl;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// The result of `work`, and whether the time limit left it whole.
pub(super) async fn searched<T: Send + 'static>(
    state: &ServerState,
    progress: ProgressSender,
    work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send + 'static,
) -> Result<(T, bool), Refusal> {
    Ok(state.admission.searched(progress, work).await?)
}
