use super::*;

/// Skewed resources where there are some, as `group/version=number`, with these servers alive.
fn skew(cluster: &Cluster, live: &[&str]) -> Vec<String> {
    let skew = cluster.table().skew(live.contains(&"local"), |peer| live.contains(&peer.hostname.as_str()));
    let some = skew.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(group_version, count)| format!("{group_version}={count}")).collect()
}

#[test]
fn resources_that_only_some_live_servers_serve_are_skewed() {
    let cluster = Cluster::new();
    let everything = ["certificates.k8s.io/v1=1", "storage.k8s.io/v1=1"];
    assert_eq!(skew(&cluster, &["local", "one", "two"]), everything, "a resource, and a subresource alone");
    assert_eq!(skew(&cluster, &["one", "two"]), ["storage.k8s.io/v1=1"]);
    assert_eq!(skew(&cluster, &["local", "two"]), ["certificates.k8s.io/v1=1"]);
    for alone in ["local", "one", "two"] {
        assert!(skew(&cluster, &[alone]).is_empty(), "{alone} differs from nobody");
    }
    assert!(skew(&cluster, &[]).is_empty());
}

#[test]
fn what_is_left_to_the_local_server_or_not_known_is_not_counted() {
    let mut cluster = Cluster::new();
    cluster.two.insert_unread_group_version("certificates.k8s.io", "v1");
    let all = ["local", "one", "two"];
    let counted = cluster.table().skew(true, |_| true);
    let group_versions: Vec<_> = counted.keys().map(ToString::to_string).collect();
    assert_eq!(group_versions, ["v1", "authentication.k8s.io/v1", "example.com/v1", "storage.k8s.io/v1"]);
    assert_eq!(skew(&cluster, &all), ["storage.k8s.io/v1=1"], "custom resources are never taken from peers");
}

#[test]
fn routes_are_counted_by_peer() {
    let table = Cluster::new().table();
    let counted: Vec<_> = table.routes_by_peer().map(|(peer, count)| (&*peer.hostname, count)).collect();
    assert_eq!(counted, [("one", 12), ("two", 8)]);
}
