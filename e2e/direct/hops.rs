//! At most one hop, whoever calls and whatever two fronts believe of each other.

use std::time::Duration;

use http::HeaderMap;
use peerfront_e2e::{Client, Identity};
use tokio::time::{Instant, sleep};

use crate::fronts::{Node, Pair};
use crate::upstream::{Arrived, BELIEVED};

const MARK: &str = "x-kubernetes-peer-proxied";

/// What a client may send to be taken for a front that has forwarded already.
const MARKS_OF_CLIENTS: [&[(&str, &str)]; 5] = [
    &[],
    &[(MARK, "true")],
    &[(MARK, "TRUE")],
    &[(MARK, "false"), (MARK, "true")],
    &[("X-Kubernetes-APIServer-Rerouted", "true")],
];

#[tokio::test(flavor = "multi_thread")]
async fn fronts_that_are_mistaken_about_each_other_forward_once_and_answer_503() {
    let mut pair = Pair::start().await;
    let callers = [
        ("certificate", pair.user("alice", &["dev", "ops"])),
        ("token", Identity::bearer("of-somebody")),
        ("nobody", Identity::anonymous()),
    ];
    for node in [&pair.a, &pair.b] {
        wait_until_mistaken(&pair, node).await;
    }
    let _ = (pair.a.upstream.arrived(), pair.b.upstream.arrived());
    for (kind, identity) in callers {
        for marks in MARKS_OF_CLIENTS {
            let marked =
                |client| marks.iter().fold(client, |client: Client, (name, value)| client.with_header(name, value));
            let (at_a, at_b) = (pair.client(&pair.a, &identity), pair.client(&pair.b, &identity));
            for (client, from_a) in [(at_a.clone(), true), (at_a.h2(), true), (at_b.clone(), false), (at_b.h2(), false)]
            {
                let answer = marked(client).get(BELIEVED).await.unwrap();
                assert_eq!(answer.status, 503, "{kind} {marks:?}: {}", answer.text());
                assert_eq!(answer.header("retry-after"), Some("1"));
                assert_eq!(answer.json().unwrap()["reason"], "ServiceUnavailable");
                let (here, there) = (pair.a.upstream.arrived(), pair.b.upstream.arrived());
                let (here, there) = if from_a { (here, there) } else { (there, here) };
                assert!(here.is_empty(), "{kind} {marks:?}: the request came back: {here:?}");
                assert_eq!(there.len(), 1, "{kind} {marks:?}: {there:?}");
                assert_is_caller(kind, &there[0]);
            }
        }
    }
    pair.stop().await;
}

/// The request is at the peer's server what it would be at its own.
fn assert_is_caller(kind: &str, arrived: &Arrived) {
    let Arrived { method, headers, certified } = arrived;
    assert_eq!(method, "GET");
    assert_eq!(values(headers, MARK), ["true"]);
    let (user, groups, token): (&[&str], &[&str], &[&str]) = match kind {
        "certificate" => (&["alice"], &["dev", "ops", "system:authenticated"], &[]),
        "token" => (&[], &[], &["Bearer of-somebody"]),
        _ => (&[], &[], &[]),
    };
    assert_eq!(values(headers, "x-remote-user"), user, "{kind}");
    assert_eq!(values(headers, "x-remote-group"), groups, "{kind}");
    assert_eq!(values(headers, "authorization"), token, "{kind}");
    assert_eq!(
        *certified,
        kind == "certificate",
        "{kind}: only who is asserted comes with a front proxy's certificate"
    );
}

fn values<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
}

/// A front reads its peer every two seconds and says nothing when it has.
async fn wait_until_mistaken(pair: &Pair, node: &Node) {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let client = pair.client(node, &pair.user("reader", &[])).with_header("accept", accept);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = client.get("/apis").await.unwrap();
        if answer.text().contains("clustertrustbundles") {
            return;
        }
        assert!(Instant::now() < deadline, "the peer's resource is not listed: {}", answer.text());
        sleep(Duration::from_millis(50)).await;
    }
}
