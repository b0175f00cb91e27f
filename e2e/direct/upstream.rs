//! A stub of a kube-apiserver about whose resources its peer is mistaken.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Incoming;
use peerfront::testing::api_server::{ApiServer, PeerCertificates, Reply, reply};
use peerfront::testing::pki::ControlPlane;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// What the peer takes it to serve.
pub(crate) const BELIEVED: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A running stub and the requests for the resource that have reached it.
pub(crate) struct Upstream {
    server: ApiServer,
    requests: mpsc::UnboundedReceiver<Arrived>,
}

/// A request for the resource.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// Whether the connection was made with a client certificate.
    pub(crate) certified: bool,
}

impl Upstream {
    pub(crate) async fn start(plane: &ControlPlane, ip: IpAddr) -> Self {
        let (sender, requests) = mpsc::unbounded_channel();
        let sender = Arc::new(sender);
        let answer = move |request: Request<Incoming>| {
            let sender = Arc::clone(&sender);
            async move { answer(&request, &sender) }
        };
        Self { server: ApiServer::start(plane, SocketAddr::new(ip, 0), answer).await, requests }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The requests that have arrived since this was last asked.
    pub(crate) fn arrived(&mut self) -> Vec<Arrived> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }

    pub(crate) async fn stop(self) {
        self.server.stop().await;
    }
}

fn answer(request: &Request<Incoming>, arrived: &mpsc::UnboundedSender<Arrived>) -> Reply {
    // Its own front reads it without this header; what comes from the peer has passed the front.
    let is_from_peer = request.headers().contains_key("x-forwarded-for");
    match request.uri().path() {
        "/apis" => reply(StatusCode::OK, AGGREGATED, list(&[group(is_from_peer)])),
        "/api" => reply(StatusCode::OK, AGGREGATED, list(&[])),
        "/version" => reply(StatusCode::OK, "application/json", r#"{"minor":"35","gitVersion":"v1.35.4"}"#),
        // It keeps no Leases, so that there is nothing to wait for.
        path if path.starts_with("/apis/coordination.k8s.io/") => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403});
            reply(StatusCode::FORBIDDEN, "application/json", status.to_string())
        }
        "/readyz" => reply(StatusCode::OK, "text/plain", "ok"),
        path => {
            if path.starts_with(BELIEVED) {
                let certificates = request.extensions().get::<PeerCertificates>();
                let certified = certificates.is_some_and(|presented| !presented.0.is_empty());
                let (method, headers) = (request.method().clone(), request.headers().clone());
                arrived.send(Arrived { method, headers, certified }).unwrap();
            }
            reply(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
        }
    }
}

fn list(groups: &[Value]) -> String {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups,
    })
    .to_string()
}

fn group(with_believed: bool) -> Value {
    let resource = |name: &str| {
        json!({
            "resource": name, "scope": "Cluster", "singularResource": "", "verbs": ["get", "list", "create", "watch"],
            "responseKind": { "group": "certificates.k8s.io", "version": "v1", "kind": "Any" },
        })
    };
    let mut resources = vec![resource("certificatesigningrequests")];
    resources.extend(with_believed.then(|| resource("clustertrustbundles")));
    let version = json!({ "version": "v1", "freshness": "Current", "resources": resources });
    json!({ "metadata": { "name": "certificates.k8s.io" }, "versions": [version] })
}
