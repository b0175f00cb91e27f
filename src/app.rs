//! Joins every part by channels and runs them under one drain.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::authn::Authenticator;
use crate::authz::Authorizer;
use crate::forward::{Connectors, Forwarder, Mark};
use crate::metrics::Registry;
use crate::server::{Front, Listener, Metrics, Reroutes, Workers};
use crate::settings::{LogFormat, Peering, Settings};
use crate::tls::{Acceptor, Connector};
use crate::{admin, drain, peers, telemetry, view};

/// Name that every kube-apiserver's certificate carries and that peers must prove.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controlplane/apiserver/peer.go>
const PEER_SERVER_NAME: &str = "kubernetes.default.svc";

/// Reports of failed connects that may wait; more are dropped, since one is as good as ten.
const FAILED_CONNECTS: usize = 64;

/// Threads for control loops and the admin listener.
const CONTROL_THREADS: usize = 1;

/// A start that failed, with its causes.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A running front.
pub struct Bound {
    /// Where clients connect.
    pub addresses: Vec<SocketAddr>,
    /// Where the admin endpoints are.
    pub admin_address: SocketAddr,
    trigger: drain::Trigger,
    finished: drain::Trigger,
}

impl Bound {
    /// Stops accepting, lets open requests end within their deadline, then ends everything else.
    pub async fn stop(self) {
        self.trigger.start();
        self.trigger.drained().await;
        self.finished.start();
    }
}

/// Runs the front until SIGTERM or SIGINT.
///
/// # Errors
/// If a file cannot be used or a port cannot be taken.
pub fn serve(settings: &Settings) -> Result<(), BoxError> {
    let format = match settings.logging.format {
        LogFormat::Text => telemetry::Format::Text,
        LogFormat::Json => telemetry::Format::Json,
    };
    telemetry::install(format, &settings.logging.filter)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONTROL_THREADS)
        .thread_name("control")
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        let bound = start(settings, workers()).await?;
        tokio::select! {
            _ = terminate.recv() => {}
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        tracing::info!("stopping");
        bound.stop().await;
        Ok(())
    })
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
