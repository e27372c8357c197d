//! The HTTP server: every entry of [`REQUESTS`](crate::request::REQUESTS) as a route, with the bytes of the command
//! line.
//!
//! A request of a stranger opens no path and fetches no address: the catalogue is [`closed`](Catalog::closed). Searches
//! run on a pool of their own; a search ends when its client leaves.

mod answer;
mod answer_cache;
mod body;
mod connections;
mod estimator;
mod guard;
mod log;
mod mantile;
mod metrics;
pub mod mock;
mod negotiate;
pub mod openapi;
mod page;
mod problem;
mod routes_page;
mod search;
mod sites;
mod state;
pub mod stored;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::TimeoutLayer;

use crate::admission::RequestLimits;
use crate::store::catalog::Catalog;
pub use connections::ConnectionLimits;
pub use sites::Sites;
use state::{AccessGuards, ServerState};
use stored::StoredRuns;

/// Who reaches a server, and how.
#[derive(Clone, Debug)]
pub struct ServerAccess {
    pub listen: SocketAddr,
    /// The bearer token that every request has to carry, except those for health.
    pub token: Option<String>,
    /// Names and origins that are allowed in addition to the server's own.
    pub sites: Sites,
    pub connections: ConnectionLimits,
    /// Writes a line of the log: JSON with time, method, route, status and duration of a response.
    pub log: Option<fn(&str)>,
}

#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub access: ServerAccess,
    pub limits: RequestLimits,
    /// Where measured runs are kept; in memory without it.
    pub store: Option<Arc<StoredRuns>>,
}

pub fn router(catalog: Catalog, options: &ServerOptions) -> io::Result<Router> {
    let state = ServerState::new(catalog, options)?;
    let limits = &options.limits;
    let routes = Router::new()
        .route("/v2", get(answer::list))
        .route("/v2/{request}", post(answer::answer).get(answer::describe))
        .route("/openapi.json", get(openapi::document))
        .route("/docs", get(routes_page::page))
        .route("/metrics", get(metrics::metrics))
        .merge(mantile::routes())
        .merge(estimator::routes())
        .layer(from_fn_with_state(state.clone(), body::read));
    let routes = guarded(routes, page::routes(), &WORDS, (&state.guards, limits.message_bytes));
    let routes = match limits.time {
        Some(time) => {
            let time = options.access.connections.body.saturating_add(time);
            routes.layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, time))
        }
        None => routes,
    };
    Ok(routes.with_state(state))
}

/// The words of a server for what all servers have.
struct RouteWords {
    /// The route of its health.
    health: &'static str,
    /// Where its routes are listed.
    no_route: &'static str,
    /// Where their methods are.
    no_method: &'static str,
}

const WORDS: RouteWords = RouteWords {
    health: "/healthz",
    no_route: "GET /v2 lists the requests",
    no_method: "GET /openapi.json lists the methods of each route",
};

/// Routes behind the guards of a server: those that carry its token, and `open` ones, which need none. Health is
/// answered under any name.
fn guarded<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    open: Router<S>,
    words: &RouteWords,
    (guards, message_bytes): (&Arc<AccessGuards>, usize),
) -> Router<S> {
    let RouteWords { no_route, no_method, .. } = *words;
    let routes = routes.layer(from_fn_with_state(guards.clone(), guard::token));
    let routes = match guards.access.sites.shared() {
        Some(shared) => routes.layer(shared),
        None => routes,
    };
    routes
        .merge(open)
        .layer(from_fn_with_state(guards.clone(), sites::known))
        .route(words.health, get(|| async { "ok\n" }))
        .fallback(move || async move { problem::no_route(no_route) })
        .method_not_allowed_fallback(move || async move { problem::no_method(no_method) })
        .layer(DefaultBodyLimit::max(message_bytes))
        .layer(from_fn(guard::headers))
        .layer(from_fn_with_state(guards.clone(), metrics::count))
        .layer(from_fn_with_state(guards.clone(), log::log))
        .layer(CatchPanicLayer::custom(problem::panicked))
}

/// Serves until `stopped` resolves; requests that are being answered then are finished within the stop time. `bound`
/// receives the address.
///
/// # Errors
/// The address is in use, or is not one of this machine.
pub fn serve(
    catalog: Catalog,
    options: &ServerOptions,
    bound: impl FnOnce(SocketAddr),
    stopped: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = router(catalog, options)?;
    listen(router, &options.access, options.limits.running + 2, bound, stopped)
}

/// Serves the routes on two threads, and on others for work that blocks.
fn listen(
    router: Router,
    access: &ServerAccess,
    blocking: usize,
    bound: impl FnOnce(SocketAddr),
    stopped: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(blocking)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(access.listen).await?;
        bound(listener.local_addr()?);
        connections::connections(listener, router, &access.connections, stopped).await;
        Ok::<(), io::Error>(())
    })?;
    // A search that ignores its end must not hold the program.
    runtime.shutdown_background();
    Ok(())
}
