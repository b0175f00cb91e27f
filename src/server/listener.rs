//! The public port: accept, choose a worker, hand the connection over.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::connection;
use super::{Front, cutoff};
use crate::drain;
use crate::forward::Forwarder;
use crate::tls::Acceptor;

/// Pause after an accept that failed for want of descriptors or memory: trying at once would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for another program to leave the port: on a node that gets a front, the kube-apiserver which the kubelet is moving
/// to 127.0.0.1. A start that failed would be tried again later and later.
const BIND_PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at it.
const BIND_PAUSE: Duration = Duration::from_millis(50);

/// Connections that may wait in the system for being accepted: tokio's choice.
const BACKLOG: usize = 1024;

/// The port could not be taken.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot listen on {address}: is another program (a kube-apiserver not yet moved to 127.0.0.1?) using it, and does \
     the address exist on this node?"
)]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
}

/// Sockets that clients connect to.
pub struct Listener {
    sockets: Vec<TcpListener>,
}

impl Listener {
    /// Binds the port on every address. Where another program has it, that one gets a minute to leave it.
    ///
    /// # Errors
    /// If one of them cannot be bound.
    pub async fn bind(addresses: &[IpAddr], port: u16) -> Result<Self, BindError> {
        let mut sockets = Vec::new();
        for address in addresses {
            sockets.push(bind(SocketAddr::new(*address, port)).await?);
        }
        Ok(Self { sockets })
    }

    /// The addresses bound, with the port that was taken where 0 was asked for.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }

    /// Accepts until the drain starts, takes what waits by then, and closes the sockets.
    pub fn run(self, workers: &Arc<Workers>, drain: &drain::Watcher) {
        for socket in self.sockets {
            tokio::spawn(accept(socket, Arc::clone(workers), drain.clone()));
        }
    }
}

/// Takes one address.
async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let is_taken = |bound: &io::Result<_>| bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
    let mut bound = TcpListener::bind(address).await;
    if is_taken(&bound) {
        tracing::warn!(%address, patience = ?BIND_PATIENCE, "another program has this port; waiting until it leaves");
    }
    let until = Instant::now() + BIND_PATIENCE;
    while is_taken(&bound) && Instant::now() < until {
        sleep(BIND_PAUSE).await;
        bound = TcpListener::bind(address).await;
    }
    bound.map_err(|source| BindError { address, source })
}

async fn accept(socket: TcpListener, workers: Arc<Workers>, mut drain: drain::Watcher) {
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = drain.draining() => return accept_waiting(socket, &workers),
        };
        match accepted {
            Ok((stream, client)) => {
                if let Ok(stream) = stream.into_std() {
                    workers.deal(stream, client);
                }
            }
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Takes the connections that the system has accepted already: to their clients they are open, and closing the socket
/// would reset them.
fn accept_waiting(socket: TcpListener, workers: &Workers) {
    let Ok(socket) = socket.into_std() else { return };
    for _ in 0..BACKLOG {
        match socket.accept() {
            Ok((stream, client)) if stream.set_nonblocking(true).is_ok() => workers.deal(stream, client),
            Err(error) if !is_of_the_connection(&error) => return,
            _ => {}
        }
    }
}

/// The client gave up before it was accepted: nothing is wrong here.
fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The threads of the data path, one single-threaded runtime each.
pub struct Workers {
    workers: Vec<Worker>,
}

struct Worker {
    connections: mpsc::UnboundedSender<(std::net::TcpStream, SocketAddr)>,
    open: Arc<AtomicUsize>,
}

impl Workers {
    /// Starts a worker for each front.
    ///
    /// # Errors
    /// If a thread or its runtime cannot be made.
    pub fn start(fronts: Vec<Front>, acceptor: &Arc<Acceptor>, drain: &drain::Watcher) -> io::Result<Arc<Self>> {
        let mut workers = Vec::new();
        for (number, front) in fronts.into_iter().enumerate() {
            let (connections, receiver) = mpsc::unbounded_channel();
            let open = Arc::new(AtomicUsize::new(0));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let run = run(front, Arc::clone(acceptor), receiver, Arc::clone(&open), drain.clone());
            std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || runtime.block_on(run))?;
            workers.push(Worker { connections, open });
        }
        Ok(Arc::new(Self { workers }))
    }

    /// Gives a connection to the worker with the fewest open ones.
    fn deal(&self, stream: std::net::TcpStream, client: SocketAddr) {
        let Some(worker) = self.workers.iter().min_by_key(|worker| worker.open.load(Ordering::Relaxed)) else { return };
        worker.open.fetch_add(1, Ordering::Relaxed);
        // It goes on as long as connections are dealt.
        let _ = worker.connections.send((stream, client));
    }
}

/// An open connection of a worker, which waits for it to be dropped before it ends.
pub(super) struct Open {
    count: Arc<AtomicUsize>,
    _alive: mpsc::Sender<Infallible>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves connections until no more are dealt, which is when the drain has started, then lets them end.
async fn run(
    front: Front,
    acceptor: Arc<Acceptor>,
    mut connections: mpsc::UnboundedReceiver<(std::net::TcpStream, SocketAddr)>,
    open: Arc<AtomicUsize>,
    drain: drain::Watcher,
) {
    let front = Arc::new(front);
    let mut prune = tokio::time::interval(Forwarder::PRUNE_INTERVAL);
    let (alive, mut all_gone) = mpsc::channel(1);
    loop {
        tokio::select! {
            dealt = connections.recv() => {
                let Some((stream, client)) = dealt else { break };
                let open = Open { count: Arc::clone(&open), _alive: alive.clone() };
                let (front, acceptor) = (Arc::clone(&front), Arc::clone(&acceptor));
                tokio::spawn(connection::serve(front, acceptor, stream, client, open, drain.clone()));
            }
            _ = prune.tick() => front.prune(),
        }
    }
    drop(alive);
    let _ = timeout(cutoff::DEADLINE, all_gone.recv()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other_program() -> (std::net::TcpListener, SocketAddr) {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        (other, address)
    }

    #[tokio::test(start_paused = true)]
    async fn port_is_taken_as_soon_as_another_program_leaves_it() {
        let (other, address) = other_program();
        let began = Instant::now();
        let leaves = async {
            sleep(BIND_PATIENCE / 2).await;
            drop(other);
        };
        let addresses = [address.ip()];
        let (bound, ()) = tokio::join!(Listener::bind(&addresses, address.port()), leaves);
        assert_eq!(bound.unwrap().addresses(), [address]);
        assert!(began.elapsed() <= BIND_PATIENCE / 2 + BIND_PAUSE, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn port_that_nobody_leaves_is_an_error_that_says_who_it_may_be() {
        let (_other, address) = other_program();
        let began = Instant::now();
        let error = Listener::bind(&[address.ip()], address.port()).await.err().unwrap().to_string();
        assert!(error.starts_with(&format!("cannot listen on {address}: is another program (a kube-api")), "{error}");
        assert!(began.elapsed() >= BIND_PATIENCE, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn address_that_is_not_of_this_node_is_an_error_at_once() {
        let began = Instant::now();
        let address = "192.0.2.1".parse().unwrap();
        assert!(Listener::bind(&[address], 6443).await.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
