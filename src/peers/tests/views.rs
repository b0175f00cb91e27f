//! What views say of servers, for people.

use std::collections::BTreeMap;

use super::*;
use crate::view::{Origin, Renewal};

#[tokio::test(start_paused = true)]
async fn view_says_how_each_peer_is_known_and_when_its_lease_was_renewed() {
    let mut fixture = Fixture::new(&["static", "leased", "remembered"]);
    let id = |name| ServerId::from_hostname(name);
    fixture.cluster.static_peers = [id("static")].into();
    let renewal = Renewal::new(Instant::now());
    let leases = BTreeMap::from([(id("static"), renewal.clone()), (id("leased"), renewal.clone())]);
    assert!(fixture.take_due());
    fixture.cluster.take_leases(leases.clone());
    assert!(fixture.take_due());
    fixture.cluster.take_leases(leases);
    assert!(!fixture.take_due(), "nothing is new");
    let view = fixture.view();
    let of = |name: &str| view.peers.iter().find(|state| state.peer.hostname == name).unwrap();
    assert_eq!((of("static").origin, of("leased").origin), (Origin::Static, Origin::Lease));
    assert_eq!((of("remembered").origin, &of("remembered").lease), (Origin::Remembered, &None));
    advance(SECOND * 3).await;
    renewal.renewed(Instant::now());
    advance(SECOND * 2).await;
    assert_eq!(of("leased").lease.as_ref().map(|lease| lease.age(Instant::now())), Some(SECOND * 2));
}

#[tokio::test(start_paused = true)]
async fn peer_is_skewed_while_it_is_there_and_has_said_what_it_serves() {
    let mut fixture = Fixture::new(&["node-b"]);
    let batch = GroupVersion::new("batch", "v1");
    fixture.cluster.exclude(listed(&[], &[]), Instant::now());
    fixture.report("node-a", reading(&["apps/v1=deployments"]));
    assert_eq!(fixture.view().skew().get(&batch), None);
    fixture.report("node-b", reading(&["apps/v1=deployments", "batch/v1=jobs"]));
    assert_eq!(fixture.view().skew()[&batch], 1);
    for (failures, skewed) in [(1, 1), (2, 0)] {
        advance(SECOND).await;
        fixture.fail("node-b", Failure::Down);
        assert_eq!(fixture.view().skew()[&batch], skewed, "after {failures} failed reads");
    }
    advance(SECOND).await;
    fixture.report("node-b", reading(&["batch/v1=jobs"]));
    let skew = fixture.view().skew();
    assert_eq!((skew[&batch], skew[&GroupVersion::new("apps", "v1")]), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn without_peering_the_local_documents_are_left_to_the_local_server() {
    let mut fixture = Fixture::new(&[]);
    fixture.builder = Builder::new(Some("no --peer-ca-file".to_owned()));
    fixture.report("node-a", reading(&["apps/v1=deployments"]));
    let view = fixture.view();
    assert!(view.documents().is_none() && view.is_ready());
    let expected = "peers are left alone: no --peer-ca-file".to_owned();
    assert_eq!(condition(&view, "peer-discovery"), (ConditionState::Degraded, expected));
}
