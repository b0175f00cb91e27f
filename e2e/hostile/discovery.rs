//! Who may read the merged documents is the server's word, kept for seconds and for the very same caller only.

use peerfront::app;
use peerfront::testing::raw::Raw;
use peerfront::testing::stub::{Exchange, Served, Stub};

use crate::fixture::{Place, until_ready};

const ACCEPT: &str = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n";
const SERVED: &[&str] = &["admissionregistration.k8s.io/v1=mutatingadmissionpolicies"];

/// A script that lets those with the token `good` read, in their own name or as bob.
fn judge(mut exchange: Exchange) -> Served {
    Box::pin(async move {
        let is_good = exchange.seen.all("authorization") == ["Bearer good"];
        let as_bob = ["bob".to_owned()] == *exchange.seen.all("impersonate-user");
        if is_good && (as_bob || exchange.seen.all("impersonate-user").is_empty()) {
            return exchange.ok("Content-Type: application/json\r\n", "{}").await;
        }
        exchange.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await.ok()?;
        Some(exchange.io)
    })
}

#[tokio::test]
async fn server_is_asked_about_each_caller_and_its_refusal_is_not_kept() {
    let place = Place::new();
    let mut stub = Stub::start(&place.plane, &["apps/v1=deployments"], judge).await;
    let peer = Stub::start(&place.plane, SERVED, judge).await;
    let mut settings = place.settings(stub.address);
    settings.peering = place.peering(peer.address);
    let front = app::start(&settings, 1).await.unwrap();
    until_ready(front.admin_address).await;
    let mut raw = Raw::open(&place.plane, front.addresses[0], None).await;
    let good = "Authorization: Bearer good\r\n";
    // A refusal is asked for once more, in the form that the client accepts.
    for (path, credential, code, asked) in [
        ("/apis", good.to_owned(), 200, 1),
        ("/apis", good.to_owned(), 200, 0),
        ("/api", good.to_owned(), 200, 1),
        ("/apis", "Authorization: Bearer bad\r\n".to_owned(), 403, 2),
        ("/apis", "Authorization: Bearer bad\r\n".to_owned(), 403, 2),
        ("/apis", String::new(), 403, 2),
        ("/apis", format!("{good}Impersonate-User: bob\r\n"), 200, 1),
        ("/apis", format!("{good}Impersonate-User: eve\r\n"), 403, 2),
        ("/apis", format!("{good}Impersonate-User: bob\r\nImpersonate-Group: x\r\n"), 200, 1),
        ("/apis", format!("{good}Connection: impersonate-user\r\nImpersonate-User: eve\r\n"), 403, 2),
        ("/apis", good.to_owned(), 200, 0),
    ] {
        let answer = raw.get(path, &format!("{ACCEPT}{credential}")).await;
        assert_eq!(answer.code(), code, "{path} {credential}: {}", answer.text());
        assert_eq!(stub.rest().len(), asked, "{path} {credential}");
        if (path, code) == ("/apis", 200) {
            let text = answer.text();
            assert!(text.contains("deployments") && text.contains("mutatingadmissionpolicies"), "{text}");
        }
    }
}
