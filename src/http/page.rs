//! The page at `/`, from the files of the site.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::state::ServerState;
use crate::site::{INDEX, NAMES, PageEngine, files};
use crate::store::catalog::Catalog;

/// Scripts and styles of our own, requests to this server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> Router<ServerState> {
    let parts = NAMES.iter().fold(Router::new(), |router, name| {
        router.route(&format!("/{name}"), get(move |state: State<ServerState>| file(state, name)))
    });
    parts.route("/", get(|state: State<ServerState>| file(state, INDEX)))
}

/// A file of the page; the page is made at the first request for it. Everyone may see it: where answers need a token, it
/// lists the built-in catalogue alone.
async fn file(State(state): State<ServerState>, name: &'static str) -> Response {
    let of = state.clone();
    let made = tokio::task::spawn_blocking(move || {
        let built_in = of.token.as_ref().map(|_| Catalog::default().closed(false));
        let listed = built_in.as_ref().unwrap_or(&of.admission.catalog);
        of.page
            .get_or_init(|| files(listed, PageEngine::Server).map_err(|fault| Box::new(fault.into())))
            .clone()
    });
    match made.await {
        Ok(Ok(files)) => {
            let file = files.iter().find(|file| file.name == name).cloned();
            let (kind, text) =
                file.map_or(("text/plain", String::new()), |file| (file.media_type, file.text));
            ([(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, POLICY)], text).into_response()
        }
        Ok(Err(problem)) => problem.into_response(),
        Err(fault) => super::problem::panicked(Box::new(fault)),
    }
}
