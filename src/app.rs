//! Joins every part by channels and runs them under one drain.

use std::collections::BTreeSet;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::apimachinery::peer::{Peer, Trouble};
use crate::apimachinery::server_id::ServerId;
use crate::authn::Authenticator;
use crate::authz::Authorizer;
use crate::forward::{Connectors, Forwarder, Mark};
use crate::metrics::Registry;
use crate::peers::{Controller, LeaseSetup, Trust};
use crate::server::{Front, Listener, Metrics, Reroutes, Workers};
use crate::settings::{LogFormat, Peering, Settings, StaticPeer, UpstreamSettings};
use crate::telemetry::MIXED_VERSION_PROXY;
use crate::tls::{ALPN_HTTP_1_1, ALPN_PEERFRONT, Acceptor, Connector, PEER_SERVER_NAME};
use crate::view::ViewReader;
use crate::{admin, drain, peers, telemetry};

/// What is spoken with upstream and peers; `forward` says why.
const PROTOCOLS: &[&[u8]] = &[ALPN_HTTP_1_1];

/// The same with peers, which tell by it whether they are fronts.
const PEER_PROTOCOLS: &[&[u8]] = &[ALPN_PEERFRONT, ALPN_HTTP_1_1];

/// Reports of requests that met trouble at a peer which may wait; more are dropped, since one is as good as ten.
const TROUBLES: usize = 64;

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
    leases: drain::Trigger,
    trigger: drain::Trigger,
    finished: drain::Trigger,
}

impl Bound {
    /// Takes this front's Lease back, stops accepting, lets open requests end within their deadline, then ends
    /// everything else; what servers served last is on disk then.
    pub async fn stop(self) {
        self.leases.start();
        self.leases.drained().await;
        self.trigger.start();
        self.trigger.drained().await;
        self.finished.start();
        self.finished.drained().await;
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
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!("effective settings:\n{settings}");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONTROL_THREADS)
        .thread_name("control")
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut signals = Signals::install()?;
        let bound = tokio::select! {
            bound = start(settings, workers()) => bound?,
            () = signals.next() => return Ok(()),
        };
        signals.next().await;
        tracing::info!("stopping");
        tokio::select! {
            () = bound.stop() => {}
            () = signals.next() => tracing::warn!("told to stop a second time: open requests are cut off"),
        }
        Ok(())
    })
}

/// What tells the process to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn install() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Starts a front on the current runtime, with so many workers.
///
/// # Errors
/// If a file cannot be used or a port cannot be taken.
pub async fn start(settings: &Settings, workers: usize) -> Result<Bound, BoxError> {
    let registry = Arc::new(Registry::new());
    let acceptor = Arc::new(Acceptor::load(&settings.serving, &settings.authentication)?);
    let authenticator = Arc::new(Authenticator::load(&settings.authentication, &registry)?);
    let connectors = connectors(settings)?;
    let listener = Listener::bind(&settings.serving.bind_addresses, settings.serving.secure_port).await?;
    let admin_listener = admin::bind(settings.admin_bind_address).await?;
    let (addresses, admin_address) = (listener.addresses(), admin_listener.local_addr()?);

    let (trigger, drain) = drain::channel();
    let (finished, control_drain) = drain::channel();
    let (troubles, met) = mpsc::channel(TROUBLES);
    let (leases, lease_drain) = drain::channel();
    let (mut controller, view) = control_loops(settings, &connectors, &registry, met);
    controller.find_peers(lease_setup(settings, &addresses), lease_drain);
    tokio::spawn(controller.run(control_drain.clone()));
    tokio::spawn(follow_version(view.clone(), Arc::clone(&authenticator)));

    let metrics = Arc::new(Metrics::register(Arc::clone(&registry)));
    let authorizer = Arc::new(Authorizer::default());
    let names = Arc::new(settings.authentication.identity_headers.clone());
    let mark = if matches!(settings.peering, Peering::On(_)) { Mark::Set } else { Mark::Unset };
    let front = || Front {
        authenticator: Arc::clone(&authenticator),
        authorizer: Arc::clone(&authorizer),
        view: view.clone(),
        forwarder: Forwarder::new(settings.upstream.address, Arc::clone(&names), mark, &connectors),
        metrics: Arc::clone(&metrics),
        reroutes: Reroutes::register(Arc::clone(&registry), troubles.clone()),
        http2_max_streams: settings.serving.http2_max_streams_per_connection,
    };
    let workers = Workers::start((0..workers).map(|_| front()).collect(), &acceptor, &drain)?;
    listener.run(&workers, &drain);
    let admin = admin::Admin {
        registry,
        view,
        drain: trigger.observer(),
        hostname: settings.hostname.clone(),
        started: admin::Started::now(),
    };
    tokio::spawn(admin::run(admin_listener, admin, control_drain));
    for address in &addresses {
        tracing::info!(%address, upstream = %settings.upstream.address, admin = %admin_address, "listening");
    }
    Ok(Bound { addresses, admin_address, leases, trigger, finished })
}

fn connectors(settings: &Settings) -> Result<Connectors, BoxError> {
    let UpstreamSettings { ca_file, server_name, .. } = &settings.upstream;
    let identity = Some(&settings.proxy_client);
    let load =
        |ca: &Path, identity, name: &str, protocols| Connector::load(ca, identity, name, protocols).map(Arc::new);
    let (peer_identified, peer_plain) = match &settings.peering {
        Peering::Off(_) => (None, None),
        Peering::On(peering) => {
            let identified = load(&peering.ca_file, identity, PEER_SERVER_NAME, PEER_PROTOCOLS)?;
            (Some(identified), Some(load(&peering.ca_file, None, PEER_SERVER_NAME, PROTOCOLS)?))
        }
    };
    Ok(Connectors {
        upstream_identified: load(ca_file, identity, server_name, PROTOCOLS)?,
        upstream_plain: load(ca_file, None, server_name, PROTOCOLS)?,
        peer_identified,
        peer_plain,
    })
}

/// Makes the loops that read every server and keep the view.
fn control_loops(
    settings: &Settings,
    connectors: &Connectors,
    registry: &Arc<Registry>,
    troubles: mpsc::Receiver<(ServerId, Trouble)>,
) -> (Controller, ViewReader) {
    let (peering, known) = match (&settings.peering, &connectors.peer_identified) {
        (Peering::On(peering), Some(connector)) => {
            let known = peering.static_peers.iter().map(peer).map(Arc::new).collect();
            (peers::Peering::On(Arc::clone(connector)), known)
        }
        (Peering::Off(reason), _) => {
            tracing::warn!(target: MIXED_VERSION_PROXY, reason, "peers are left alone: requests go to the local server only");
            (peers::Peering::Off(reason.clone()), Vec::new())
        }
        (Peering::On(_), None) => (peers::Peering::Off("peers cannot be connected to".to_owned()), Vec::new()),
    };
    Controller::new(peers::Setup {
        hostname: settings.hostname.clone(),
        upstream_address: settings.upstream.address,
        upstream: Arc::clone(&connectors.upstream_identified),
        peering,
        static_peers: known,
        identity_headers: settings.authentication.identity_headers.clone(),
        troubles,
        cache_dir: settings.cache_dir.clone(),
        route_sync: settings.route_sync,
        intervals: peers::Intervals::default(),
        registry: Arc::clone(registry),
    })
}

/// What this front tells the others of itself. Nobody else may be where it and its server listen.
fn lease_setup(settings: &Settings, addresses: &[SocketAddr]) -> LeaseSetup {
    let mut own: BTreeSet<SocketAddr> = addresses.iter().copied().collect();
    own.extend([settings.upstream.address, settings.admin_bind_address]);
    let (mut address, cidrs) = match &settings.peering {
        Peering::On(peering) => (peering.advertise_address, peering.cidrs.clone()),
        Peering::Off(_) => (settings.admin_bind_address, Vec::new()), // Told to nobody.
    };
    if address.port() == 0 {
        address.set_port(addresses.first().map_or(0, SocketAddr::port));
    }
    own.insert(address);
    LeaseSetup { address, trust: Trust { cidrs, own } }
}

fn peer(configured: &StaticPeer) -> Peer {
    let StaticPeer { hostname, address, kind } = configured.clone();
    Peer { id: ServerId::from_hostname(&hostname), hostname, address, kind }
}

/// Certificates are read as the co-located version reads them, so a new version is told to the authenticator.
async fn follow_version(mut view: ViewReader, authenticator: Arc<Authenticator>) {
    let mut known = None;
    loop {
        let minor = view.load().local.version.as_ref().map(|version| version.minor);
        if let Some(minor) = minor.filter(|minor| known != Some(*minor)) {
            authenticator.set_compatibility(minor);
            known = Some(minor);
        }
        if !view.changed().await {
            return;
        }
    }
}
