//! The page at `/`, from the files of the site.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
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
        router.route(
            &format!("/{name}"),
            get(move |state: State<ServerState>, headers: HeaderMap| file(state, headers, name)),
        )
    });
    parts.route("/", get(|state: State<ServerState>, headers: HeaderMap| file(state, headers, INDEX)))
}

/// A file of the page; the page is made at the first request for it. Everyone may see it: where answers need a token, it
/// lists the built-in catalogue alone.
async fn file(State(state): State<ServerState>, headers: HeaderMap, name: &'static str) -> Response {
    let of = state.clone();
    let made = tokio::task::spawn_blocking(move || {
        let built_in = of.guards.access.token.as_ref().map(|_| Catalog::default().closed(false));
        let listed = built_in.as_ref().unwrap_or(&of.admission.catalog);
        of.page
            .get_or_init(|| files(listed, PageEngine::Server).map_err(|fault| Box::new(fault.into())))
            .clone()
    });
    match made.await {
        Ok(Ok(files)) => {
            let Some(file) = files.into_iter().find(|file| file.name == name) else {
                return StatusCode::NOT_FOUND.into_response();
            };
            let kinds = [
                (header::CONTENT_TYPE, file.media_type),
                (header::CONTENT_SECURITY_POLICY, POLICY),
                (header::VARY, "accept-encoding"),
            ];
            match takes_gzip(&headers) {
                true => (kinds, [(header::CONTENT_ENCODING, "gzip")], file.packed).into_response(),
                false => (kinds, file.text).into_response(),
            }
        }
        Ok(Err(problem)) => problem.into_response(),
        Err(fault) => super::problem::panicked(Box::new(fault)),
    }
}

/// Whether a client reads gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let (coding, weight) = one.split_once(';').unwrap_or((one, ""));
        let refused = weight.trim().strip_prefix("q=").and_then(|text| text.parse().ok()) == Some(0.0);
        coding.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}
