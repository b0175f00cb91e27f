//! The second listener, plain HTTP on loopback: `/livez`, `/readyz`, `/metrics`, `/statusz`.
//!
//! It speaks of the front alone. The public port's `/livez` and `/readyz` are the server's answers.

mod probe;
mod readiness;
mod statusz;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::drain;
use crate::metrics::{Registry, TEXT_FORMAT};
use crate::view::ViewReader;

pub use probe::{ProbeError, ask};

/// How often histogram samples are folded into their buckets.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// The admin port could not be taken.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} (--admin-bind-address): is another peerfront using it?")]
pub struct BindError {
    address: SocketAddr,
    source: std::io::Error,
}

/// What the admin handlers read.
pub struct Admin {
    /// Where the metrics are.
    pub registry: Arc<Registry>,
    /// The cluster as this front sees it.
    pub view: ViewReader,
    /// Whether the front is stopping.
    pub drain: drain::Observer,
    /// Host name of the co-located kube-apiserver.
    pub hostname: String,
    /// When the front started.
    pub started: Started,
}

/// When the front started.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    time: SystemTime,
    clock: Instant,
}

impl Started {
    /// Just now.
    #[must_use]
    pub fn now() -> Self {
        Self { time: SystemTime::now(), clock: Instant::now() }
    }
}

/// Binds the admin port.
///
/// # Errors
/// If the address cannot be bound.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|source| BindError { address, source })
}

/// Serves until `finished`, when everything else has ended.
pub async fn run(listener: TcpListener, admin: Admin, mut finished: drain::Watcher) {
    let registry = Arc::clone(&admin.registry);
    let upkeep = tokio::spawn(async move {
        let mut tick = tokio::time::interval(METRICS_UPKEEP);
        loop {
            tick.tick().await;
            registry.run_upkeep();
        }
    });
    let router = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/statusz", get(statusz))
        .with_state(Arc::new(admin));
    tokio::select! {
        ended = axum::serve(listener, router) => tracing::error!(?ended, "admin listener ended"),
        () = finished.draining() => {}
    }
    upkeep.abort();
}

async fn readyz(State(admin): State<Arc<Admin>>) -> Response {
    readiness::report(&admin.view.load(), admin.drain.is_draining())
}

async fn statusz(State(admin): State<Arc<Admin>>) -> Response {
    statusz::page(&admin.hostname, admin.started, &admin.view.load(), admin.drain.is_draining()).into_response()
}

async fn metrics(State(admin): State<Arc<Admin>>) -> Response {
    ([(CONTENT_TYPE, TEXT_FORMAT)], admin.registry.render()).into_response()
}
