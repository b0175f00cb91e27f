//! Upgrades: exec, attach, port-forward and every WebSocket, on HTTP/1.1 connections of their own.
//!
//! A tunnel begins only after a 101 that names the protocol that was asked for; until then, and after any other answer,
//! nothing is passed through raw.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::UPGRADE;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

use super::body::{RequestBody, StreamedBody};
use super::headers::set_upgrade;
use super::pool::{Error, Pool, SendError};
use crate::apimachinery::upgrade::{WEB_SOCKET, is_protocol, is_upgrade};

/// Protocols that kube-apiserver speaks after an upgrade; any other `Upgrade` is not one.
const PROTOCOLS: [&str; 2] = [WEB_SOCKET, "spdy/3.1"];

/// Time to tell both sides of a tunnel that it ends.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(500);

/// A client's wish to switch protocols, taken out of its request.
pub struct Upgrade {
    protocol: HeaderValue,
    name: &'static str,
    client: OnUpgrade,
}

impl Upgrade {
    /// Takes the upgrade out of a request that asks for one as kube-apiserver sees it: HTTP/1.1, `upgrade` somewhere in
    /// `Connection`, and a known protocol in the first `Upgrade`.
    pub(super) fn take(request: &mut Request<RequestBody>) -> Option<Self> {
        if request.version() != Version::HTTP_11 || !is_upgrade(request.headers()) {
            return None;
        }
        let protocol = request.headers().get(UPGRADE)?.clone();
        let name = PROTOCOLS.into_iter().find(|known| is_protocol(&protocol, known))?;
        Some(Self { protocol, name, client: hyper::upgrade::on(request) })
    }

    /// Writes the two headers that ask the server for the upgrade, the protocol spelled as the client spelled it.
    pub(super) fn set_headers(&self, headers: &mut HeaderMap) {
        set_upgrade(headers, self.protocol.clone());
    }
}

/// Sends an upgrade request on a new connection; after a 101 the answer's body holds the tunnel.
pub(super) async fn send(
    pool: &Arc<Pool>,
    address: SocketAddr,
    request: Request<RequestBody>,
    upgrade: Upgrade,
) -> Result<Response<StreamedBody>, (SendError, Option<Upgrade>)> {
    let mut sender = match pool.connect(address).await {
        Ok(sender) => sender,
        Err(cause) => return Err((SendError::Unsent(Box::new(request), cause), Some(upgrade))),
    };
    let interrupted = |error| (SendError::Interrupted(error), None);
    let mut response = sender.send_request(request).await.map_err(|error| interrupted(error.into()))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        // The connection ends with the answer: it is not pooled, and dropping the sender lets it finish.
        return Ok(response.map(|incoming| StreamedBody::new(incoming, None)));
    }
    let switched = response.headers().get(UPGRADE).is_some_and(|to| is_protocol(to, upgrade.name));
    if !switched {
        return Err(interrupted(Error::UnexpectedProtocol));
    }
    let tunnel = Tunnel { client: upgrade.client, server: hyper::upgrade::on(&mut response) };
    Ok(response.map(|_| StreamedBody::switched(tunnel)))
}

/// A connection that left HTTP although nobody asked for an upgrade, by a 101 or by accepting a CONNECT: clients would
/// take what follows for another protocol.
pub(super) fn refuse_unasked(response: Response<StreamedBody>) -> Result<Response<StreamedBody>, SendError> {
    if response.extensions().get::<OnUpgrade>().is_some() {
        return Err(SendError::Interrupted(Error::UnexpectedProtocol));
    }
    Ok(response)
}

/// Two connections to be joined once the head of a 101 is out.
pub struct Tunnel {
    client: OnUpgrade,
    server: OnUpgrade,
}

impl Tunnel {
    /// Carries bytes both ways until both ways have ended or `cutoff` is reached; those read past either head belong to
    /// the stream.
    pub async fn run(self, cutoff: impl Future<Output = ()>) {
        let cutoff = std::pin::pin!(cutoff);
        let (Ok(client), Ok(server)) = tokio::join!(self.client, self.server) else {
            return; // One side left before the switch; the other is closed by dropping it.
        };
        let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
        tokio::select! {
            // A tunnel has no answer to put an error into: whichever side failed, both are closed here.
            _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
            () = cutoff => {
                let goodbye = futures_util::future::join(client.shutdown(), server.shutdown());
                let _ = tokio::time::timeout(GOODBYE_TIMEOUT, goodbye).await;
            }
        }
    }
}
