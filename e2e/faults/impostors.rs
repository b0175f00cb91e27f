//! Leases that name somebody who is no peer: one without a certificate, one with a certificate of another authority,
//! and one with the cluster's certificate for another name. Beside them somebody who proves to be a peer, and is asked.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront::apimachinery::server_id::ServerId;
use peerfront_e2e::pki::{Authority, KeyPair};
use peerfront_e2e::{Client, Cluster};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

use crate::leases::{ADDRESS, FOUND, LEASES, lease_of};
use crate::scenarios::{at, served};
use crate::traffic::Traffic;

/// Bytes of a TLS record that starts a handshake begin so.
const HANDSHAKE: u8 = 22;
/// How many visits of fronts are looked at.
const VISITS: usize = 5;
/// The name that a peer must prove.
const PEER: &str = "kubernetes.default.svc";

/// What somebody who listened heard of one visitor.
#[derive(Debug)]
enum Heard {
    /// Without TLS: the first bytes.
    Greeting(Vec<u8>),
    /// The visitor did not go on with the handshake.
    NoHandshake,
    /// It did: the first bytes of what it said then, and whether it showed a certificate.
    Words(Vec<u8>, bool),
}

/// Somebody whom a Lease calls a front.
struct Impostor {
    name: &'static str,
    address: SocketAddr,
    heard: mpsc::UnboundedReceiver<Heard>,
}

impl Impostor {
    /// Listens, with a certificate or without TLS.
    async fn start(cluster: &Cluster, name: &'static str, certificate: Option<KeyPair>) -> Result<Self> {
        let acceptor = certificate.map(|pair| acceptor(cluster, &pair)).transpose()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (told, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, told) = (acceptor.clone(), told.clone());
                tokio::spawn(async move { told.send(listen(stream, acceptor).await) });
            }
        });
        Ok(Self { name, address, heard })
    }

    fn lease_name(&self) -> String {
        ServerId::from_hostname(self.name).to_string().replacen("apiserver-", "kube-peerfront-", 1)
    }

    /// Says in a Lease that a front is here.
    async fn forge(&self, admin: &Client) -> Result<()> {
        let mut lease = lease_of(admin, "node-c").await?;
        let metadata = lease["metadata"].take();
        lease["metadata"] = json!({ "name": self.lease_name(), "labels": metadata["labels"],
                                    "annotations": metadata["annotations"] });
        lease["metadata"]["labels"]["kubernetes.io/hostname"] = json!(self.name);
        lease["metadata"]["annotations"][ADDRESS] = json!(self.address);
        admin.post(LEASES, &lease).await?.success().map(drop)
    }

    async fn next(&mut self) -> Result<Heard> {
        let heard = timeout(FOUND, self.heard.recv()).await;
        heard.ok().flatten().with_context(|| format!("nobody comes to {}", self.name))
    }
}

/// As a kube-apiserver's: it asks for a certificate of the front proxy.
fn acceptor(cluster: &Cluster, pair: &KeyPair) -> Result<TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cluster.pki().file("front-proxy-ca.crt"))?)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let clients = clients.allow_unauthenticated().build()?;
    let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_client_cert_verifier(clients).with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn listen(mut stream: TcpStream, acceptor: Option<TlsAcceptor>) -> Heard {
    let Some(acceptor) = acceptor else { return Heard::Greeting(first_bytes(&mut stream).await) };
    let Ok(mut stream) = acceptor.accept(stream).await else { return Heard::NoHandshake };
    let words = first_bytes(&mut stream).await;
    let has_certificate = stream.get_ref().1.peer_certificates().is_some();
    Heard::Words(words, has_certificate)
}

/// What a visitor says before it waits for an answer; nothing if it leaves.
async fn first_bytes(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let read = timeout(Duration::from_secs(10), stream.read(&mut bytes)).await;
    bytes.truncate(read.ok().and_then(Result::ok).unwrap_or_default());
    bytes
}

/// Last of all: whoever has had a Lease is remembered.
pub(crate) async fn forged_lease_gets_no_byte_of_a_request(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-a");
    served(&admin).await?;
    let stranger = Authority::new("kubernetes")?.serving("kube-apiserver", &[PEER], &[])?;
    let misnamed = cluster.pki().ca().serving("kube-apiserver", &["wrong.example"], &[])?;
    let peer = cluster.pki().ca().serving("kube-apiserver", &[PEER], &[])?;
    let mut impostors = [
        Impostor::start(cluster, "node-mute", None).await?,
        Impostor::start(cluster, "node-stranger", Some(stranger)).await?,
        Impostor::start(cluster, "node-misnamed", Some(misnamed)).await?,
    ];
    let mut proven = Impostor::start(cluster, "node-proven", Some(peer)).await?;
    let traffic = Traffic::start(&admin, "forged");
    let began = Instant::now();
    for forged in impostors.iter().chain([&proven]) {
        forged.forge(&admin).await?;
    }
    for impostor in &mut impostors {
        for _ in 0..VISITS {
            let heard = impostor.next().await?;
            let is_greeting = matches!(&heard, Heard::Greeting(bytes) if bytes.first() == Some(&HANDSHAKE));
            ensure!(is_greeting || matches!(heard, Heard::NoHandshake), "{} heard {heard:?}", impostor.name);
        }
    }
    let heard = proven.next().await?;
    let is_asked =
        matches!(&heard, Heard::Words(words, true) if words.starts_with(b"GET ") || words.starts_with(b"PRI "));
    ensure!(is_asked, "who proves to be a peer heard {heard:?}");
    served(&admin).await?;
    let _ = writeln!(std::io::stderr(), "forged: {VISITS} visits each after {:?}", began.elapsed());
    for forged in impostors.iter().chain([&proven]) {
        admin.delete(&format!("{LEASES}/{}", forged.lease_name())).await?.success()?;
    }
    let ledgers = traffic.finish().await?;
    ensure!(ledgers.iter().all(|ledger| ledger.refused == 0 && ledger.unknown == 0), "{ledgers:?}");
    Ok(())
}
