//! The client side: connections to upstream and peers, verified before the first byte.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::client::WebPkiServerVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{ALPN_PEERFRONT, Error, material, provider};
use crate::settings::KeyPairFiles;

/// Time for the TCP connection: control-plane nodes are milliseconds apart, and one lost SYN, sent again after 1 s,
/// must not count as a dead node.
const DIAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for the TLS handshake: longer, because a busy server has accepted the connection and only lacks CPU time.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle time before probes: as client-go, so that a vanished node ends a quiet watch.
/// Source: <https://github.com/kubernetes/client-go/blob/v0.36.3/transport/cache.go> (`KeepAlive`)
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Time between probes, and how many of them: a client cannot see that the node behind its watch is gone, so the front
/// has to, 15 s after the first probe.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;

/// Connects to servers of one role with the newest good configuration.
#[derive(Debug)]
pub struct Connector {
    config: ArcSwap<ClientConfig>,
    server_name: ServerName<'static>,
}

/// A connection that did not come about. Whatever the variant, nothing of a request was sent.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The TCP connection failed.
    #[error("cannot connect to {address}")]
    Dial {
        /// Where to.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The TCP connection or the handshake took too long.
    #[error("no connection to {address} within {} s", after.as_secs())]
    Timeout {
        /// Where to.
        address: SocketAddr,
        /// The limit that passed.
        after: Duration,
    },
    /// The server's certificate or the handshake was refused by one side.
    #[error("TLS handshake with {address} failed")]
    Handshake {
        /// Where to.
        address: SocketAddr,
        /// What rustls said.
        source: io::Error,
    },
}

impl Connector {
    /// Reads the roots that servers must chain to and the client certificate to present, if any.
    ///
    /// Every server must carry `server_name`, whatever address is dialed. `protocols` is the ALPN list, in order of
    /// preference.
    ///
    /// # Errors
    /// If a file is unusable or the name cannot stand in a certificate.
    pub fn load(
        roots: &Path,
        identity: Option<&KeyPairFiles>,
        server_name: &str,
        protocols: &[&[u8]],
    ) -> Result<Self, Error> {
        let server_name = ServerName::try_from(server_name.to_owned())
            .map_err(|source| Error::ServerName { name: server_name.to_owned(), source })?;
        let config = config(roots, identity, protocols)?;
        Ok(Self { config: ArcSwap::from_pointee(config), server_name })
    }

    /// Opens a connection whose server is verified.
    ///
    /// # Errors
    /// [`ConnectError`], which says what failed; no byte of a request has left by then.
    pub async fn connect(&self, address: SocketAddr) -> Result<TlsStream<TcpStream>, ConnectError> {
        let stream = within(DIAL_TIMEOUT, address, TcpStream::connect(address)).await?;
        let stream = stream.and_then(tuned).map_err(|source| ConnectError::Dial { address, source })?;
        let connector = TlsConnector::from(self.config.load_full());
        let handshake = connector.connect(self.server_name.clone(), stream);
        let stream = within(HANDSHAKE_TIMEOUT, address, handshake).await?;
        stream.map_err(|source| ConnectError::Handshake { address, source })
    }
}

/// Whether a front answers on this connection, as far as its connector has asked.
#[must_use]
pub fn is_front(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(ALPN_PEERFRONT)
}

async fn within<T>(limit: Duration, address: SocketAddr, step: impl Future<Output = T>) -> Result<T, ConnectError> {
    timeout(limit, step).await.map_err(|_| ConnectError::Timeout { address, after: limit })
}

fn tuned(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(PROBE_INTERVAL).with_retries(PROBES);
    SockRef::from(&stream).set_tcp_keepalive(&keep_alive)?;
    Ok(stream)
}

fn config(roots: &Path, identity: Option<&KeyPairFiles>, protocols: &[&[u8]]) -> Result<ClientConfig, Error> {
    let provider = provider();
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(root_store(roots)?), Arc::clone(&provider))
        .build()
        .map_err(|source| Error::BuildVerifier { path: roots.to_owned(), source })?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|source| Error::Configure { source })?
        .with_webpki_verifier(verifier);
    let mut config = match identity {
        Some(files) => {
            let key = Arc::new(material::key_pair(files, &provider)?);
            builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(key)))
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

fn root_store(path: &Path) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for (certificate, index) in material::certificates(path)?.into_iter().zip(1..) {
        store.add(certificate).map_err(|source| Error::TrustAnchor { path: path.to_owned(), index, source })?;
    }
    Ok(store)
}
