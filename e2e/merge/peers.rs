//! Peers that list what they are told: found by upstream's proxy and by fronts as a kube-apiserver is that runs it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use peerfront::apimachinery::server_id::ServerId;
use peerfront_e2e::{Client, Cluster};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// One peer.
pub(crate) struct Peer {
    id: ServerId,
    groups: watch::Sender<Vec<Value>>,
    address: SocketAddr,
}

impl Peer {
    /// Starts it; it lists nothing yet, and nobody knows it.
    pub(crate) async fn start(cluster: &Cluster, name: &str) -> Result<Self> {
        let pki = |file: &str| cluster.pki().file(file);
        let chain = CertificateDer::pem_file_iter(pki("apiserver.crt"))?.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_file(pki("apiserver.key"))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = config.with_no_client_auth().with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (groups, listed) = watch::channel(Vec::new());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, listed) = (acceptor.clone(), listed.clone());
                tokio::spawn(async move {
                    let stream = acceptor.accept(stream).await.ok()?;
                    let answer = service_fn(move |request| {
                        let answer = answer(&request, &listed.borrow());
                        async move { Ok::<_, std::convert::Infallible>(answer) }
                    });
                    http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await.ok()
                });
            }
        });
        Ok(Self { id: ServerId::from_hostname(name), groups, address })
    }

    /// Tells the cluster where it is: upstream's proxy reads the address in etcd, a front in the Lease.
    pub(crate) async fn register(&self, cluster: &Cluster, admin: &Client) -> Result<()> {
        let endpoints = json!({
            "kind": "Endpoints",
            "apiVersion": "v1",
            "metadata": { "labels": { "apiserverIdentity": self.id.to_string() } },
            "subsets": [{
                "addresses": [{ "ip": self.address.ip() }],
                "ports": [{ "name": "https", "port": self.address.port(), "protocol": "TCP" }],
            }],
        });
        let key = format!("/registry/peerserverleases/{}", self.id);
        cluster.etcd().put(&key, &endpoints.to_string()).await?;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self.id.to_string(),
                "labels": { "apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "made" },
                "annotations": { "kubernetes.io/peer-advertise-address": self.address.to_string() },
            },
            "spec": { "holderIdentity": format!("{}_0", self.id), "leaseDurationSeconds": 3600,
                      "renewTime": "2090-01-01T00:00:00.000000Z" },
        });
        admin.post(LEASES, &lease).await?.success().map(drop)
    }

    /// Lists these groups from now on, and makes upstream's proxy read them, which it does after a restart.
    pub(crate) async fn list(&self, admin: &Client, groups: Vec<Value>, number: usize) -> Result<()> {
        self.groups.send_replace(groups);
        let patch = json!({ "spec": { "holderIdentity": format!("{}_{number}", self.id) } });
        let path = format!("{LEASES}/{}", self.id);
        let answer = admin.patch(&path, "application/merge-patch+json", &patch).await?;
        answer.success().map(drop).context("a new holder of the Lease")
    }
}

fn answer(request: &Request<Incoming>, groups: &[Value]) -> Response<Full<Bytes>> {
    let list = |items: &[Value]| {
        let list = json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
                           "metadata": {}, "items": items });
        (StatusCode::OK, AGGREGATED, list.to_string())
    };
    let (status, content_type, body) = match request.uri().path() {
        "/apis" => list(groups),
        "/api" => list(&[]),
        "/readyz" => (StatusCode::OK, "text/plain", "ok".to_owned()),
        "/version" => (StatusCode::OK, "application/json", r#"{"minor":"37","gitVersion":"v1.37.2"}"#.to_owned()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "404 page not found\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static(content_type));
    response
}
