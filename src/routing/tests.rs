use std::collections::BTreeSet;
use std::sync::Arc;

use http::{Method, Uri};
use tokio::time::{Duration, Instant};

use super::*;
use crate::apimachinery::gvr::{GroupVersion, GroupVersionResource};
use crate::apimachinery::peer::{Hop, Peer, PeerKind};
use crate::apimachinery::server_id::ServerId;
use crate::request_info::RequestInfo;

mod counts;

const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// A local server of an older version, and two newer peers.
struct Cluster {
    local: ServedResources,
    one: ServedResources,
    two: ServedResources,
    local_read: bool,
    local_reachable: bool,
    one_available: bool,
    two_available: bool,
    two_heard: bool,
    exclusions: Exclusions,
}

impl Cluster {
    fn new() -> Self {
        let mut local = ServedResources::new();
        local.insert("", "v1", "pods", None, ALL);
        local.insert("", "v1", "pods", Some("exec"), &["create", "get"]);
        local.insert("", "v1", "services", None, ALL);
        local.insert("", "v1", "services", Some("proxy"), ALL);
        local.insert("storage.k8s.io", "v1", "csinodes", None, ALL);
        local.insert("example.com", "v1", "widgets", None, ALL);
        local.insert("authentication.k8s.io", "v1", "tokenreviews", None, &["create"]);
        let mut one = local.clone();
        one.insert("storage.k8s.io", "v1", "csinodes", Some("status"), &["get", "patch", "update"]);
        one.insert("certificates.k8s.io", "v1", "clustertrustbundles", None, ALL);
        one.insert("authentication.k8s.io", "v1", "tokenreviews", None, &["create", "list"]);
        one.insert("example.com", "v1", "gadgets", None, ALL);
        one.insert("storage.k8s.io", "v1", "customs", None, ALL);
        one.insert("metrics.k8s.io", "v1beta1", "pods", None, &["get", "list"]);
        let mut two = local.clone();
        two.insert("certificates.k8s.io", "v1", "clustertrustbundles", None, ALL);
        let mut exclusions = Exclusions::default();
        let now = Instant::now();
        let resources = [
            gvr("example.com", "v1", "widgets"),
            gvr("example.com", "v1", "gadgets"),
            gvr("storage.k8s.io", "v1", "customs"),
        ];
        exclusions.set_custom_resources(resources.into(), now);
        exclusions.set_api_services([GroupVersion::new("metrics.k8s.io", "v1beta1")].into(), now);
        Self {
            local,
            one,
            two,
            local_read: true,
            local_reachable: true,
            one_available: true,
            two_available: true,
            two_heard: true,
            exclusions,
        }
    }

    fn table(&self) -> RoutingTable {
        let two = self.two_heard.then_some(&self.two);
        let peers = [(peer("one"), Some(&self.one)), (peer("two"), two)];
        let table = Table::build(self.local_read.then_some(&self.local), &peers, &self.exclusions);
        let circuit = |available| if available { Circuit::Closed } else { Circuit::Open };
        let standing = Standing {
            local_reachable: self.local_reachable,
            local_share: Share::ALL,
            circuits: vec![circuit(self.one_available), circuit(self.two_available)],
            unheard: !self.two_heard,
        };
        RoutingTable::new(Arc::new(table), standing)
    }

    fn check(&self, request: &str, expected: &str) {
        self.check_hop(Hop::First, request, expected);
    }

    fn check_hop(&self, hop: Hop, request: &str, expected: &str) {
        let (method, target) = request.split_once(' ').unwrap();
        let (method, uri): (Method, Uri) = (method.parse().unwrap(), target.parse().unwrap());
        let info = RequestInfo::parse(&method, &uri).unwrap();
        let table = self.table();
        assert_eq!(display(&decide(&info, hop, &table)), expected, "{hop:?} {request}");
    }

    /// Checks what becomes of a request for a document in a form that is not given here.
    fn check_unmerged(&self, hop: Hop, request: &str, expected: &str) {
        let (method, target) = request.split_once(' ').unwrap();
        let (method, uri): (Method, Uri) = (method.parse().unwrap(), target.parse().unwrap());
        let info = RequestInfo::parse(&method, &uri).unwrap();
        let table = self.table();
        assert_eq!(display(&unmerged(&info, hop, &table)), expected, "{hop:?} {request}");
    }
}

fn display_of(cluster: &Cluster, request: &str) -> String {
    let (method, target) = request.split_once(' ').unwrap();
    let (method, uri): (Method, Uri) = (method.parse().unwrap(), target.parse().unwrap());
    display(&decide(&RequestInfo::parse(&method, &uri).unwrap(), Hop::First, &cluster.table()))
}

fn display(decision: &Decision<'_>) -> String {
    match decision {
        Decision::Discovery(_) => "here".to_owned(),
        Decision::OpenApi => "openapi".to_owned(),
        Decision::Metrics => "metrics".to_owned(),
        Decision::Upstream { why, not_found, otherwise } => {
            let otherwise = otherwise.map(|candidates| format!(", else {}", names(&candidates))).unwrap_or_default();
            format!("local {why:?}, 404 {not_found:?}{otherwise}")
        }
        Decision::Peer(candidates) => {
            let not_found = match candidates.not_found() {
                NotFound::Unavailable => String::new(),
                other => format!(", 404 {other:?}"),
            };
            format!("{} {:?}{not_found}", names(candidates), candidates.why())
        }
        Decision::Unavailable(unavailable) => format!("nobody {:?}", unavailable.why),
    }
}

fn names(candidates: &Candidates<'_>) -> String {
    candidates.iter().map(|peer| peer.hostname.as_str()).collect::<Vec<_>>().join("+")
}

fn peer(name: &str) -> Arc<Peer> {
    let address = "127.0.0.1:1".parse().unwrap();
    Arc::new(Peer { id: ServerId::from_hostname(name), hostname: name.to_owned(), address, kind: PeerKind::Front })
}

fn gvr(group: &str, version: &str, resource: &str) -> GroupVersionResource {
    GroupVersionResource { group_version: GroupVersion::new(group, version), resource: resource.to_owned() }
}

#[test]
fn openapi_documents_are_looked_for_here_on_the_first_hop() {
    let cluster = Cluster::new();
    for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openapi/v3/apis/apps/v1?hash=A"] {
        cluster.check(&format!("GET {path}"), "openapi");
        cluster.check(&format!("HEAD {path}"), "openapi");
        cluster.check(&format!("POST {path}"), "openapi");
        cluster.check_hop(Hop::Last, &format!("GET {path}"), "local NonResource, 404 Pass");
    }
    for path in ["/openapi", "/openapi/v2/", "/openapi/v3x", "//openapi/v3"] {
        cluster.check(&format!("GET {path}"), "local NonResource, 404 Pass");
    }
}

#[test]
fn discovery_is_answered_here_at_the_first_hop() {
    let cluster = Cluster::new();
    for request in [
        "GET /api",
        "GET /api/",
        "GET /apis?timeout=32s",
        "HEAD /apis",
        "GET /apis/",
        "GET /apis/x",
        "HEAD /apis/apps/",
        "GET /api/v1",
        "GET /apis/apps/v1",
        "GET /apis/x/v1/",
    ] {
        cluster.check(request, "here");
        cluster.check_hop(Hop::Last, request, "local NonResource, 404 Pass");
    }
    for request in ["HEAD /api", "POST /apis", "GET /healthz", "HEAD /api/v1", "get /api", "GET //apis"] {
        let decision = display_of(&cluster, request);
        assert!(decision.starts_with("local NonResource, 404 Pass"), "{request}: {decision}");
    }
    // What an APIService serves has a document of its own.
    cluster.check("GET /apis/metrics.k8s.io/v1beta1", "local NonResource, 404 Pass");
}

#[test]
fn metrics_of_a_front_are_read_from_it_alone() {
    let mut cluster = Cluster::new();
    for reachable in [true, false] {
        cluster.local_reachable = reachable;
        for request in ["GET /peerfront/metrics", "HEAD /peerfront/metrics?x=1"] {
            cluster.check(request, "metrics");
            cluster.check_hop(Hop::Last, request, "local NonResource, 404 Pass");
        }
        for request in
            ["POST /peerfront/metrics", "GET /peerfront/metrics/", "GET /peerfront", "GET //peerfront/metrics"]
        {
            cluster.check(request, "local NonResource, 404 Pass");
        }
    }
    let table = cluster.table();
    for (path, is_stood_in_for) in [("/peerfront/metrics", false), ("/peerfront/x", false), ("/peerfronts", true)] {
        let uri: Uri = path.parse().unwrap();
        let info = RequestInfo::parse(&Method::GET, &uri).unwrap();
        assert_eq!(stand_ins(&info, Hop::First, &table).is_some(), is_stood_in_for, "{path}");
    }
}

#[test]
fn document_in_a_form_that_is_not_given_here_comes_from_whoever_serves_it() {
    let mut cluster = Cluster::new();
    cluster.check_unmerged(Hop::First, "GET /apis/certificates.k8s.io/v1", "one+two GroupVersion");
    cluster.check("POST /apis/certificates.k8s.io/v1", "one+two GroupVersion");
    cluster.check_unmerged(Hop::First, "GET /apis/certificates.k8s.io", "one+two GroupVersion");
    cluster.check_unmerged(Hop::Last, "GET /apis/certificates.k8s.io/v1", "local NonResource, 404 Pass");
    cluster.check_unmerged(Hop::First, "GET /api/v1", "local NonResource, 404 Pass, else one+two");
    cluster.check_unmerged(Hop::First, "GET /apis", "local NonResource, 404 Pass");
    // What only a peer still lists of CRDs is nobody's.
    cluster.one.insert("gone.com", "v1", "gone", None, ALL);
    cluster.exclusions.set_custom_resources([gvr("gone.com", "v1", "gone")].into(), Instant::now());
    cluster.check_unmerged(Hop::First, "GET /apis/gone.com/v1", "local NonResource, 404 Pass");
    cluster.check_unmerged(Hop::First, "GET /apis/metrics.k8s.io/v1beta1", "local NonResource, 404 Pass");
    (cluster.one_available, cluster.two_available) = (false, false);
    cluster.check_unmerged(Hop::First, "GET /apis/certificates.k8s.io/v1", "nobody GroupVersion");
}

#[test]
fn local_server_comes_first() {
    let cluster = Cluster::new();
    cluster.check("GET /api/v1/pods", "local ServesIt, 404 PlainUnavailable, else one+two");
    cluster.check("GET /api/v1/namespaces/a/pods/b/exec", "local ServesIt, 404 PlainUnavailable, else one+two");
    cluster.check("HEAD /api/v1/namespaces/a/pods/b", "local ServesIt, 404 PlainUnavailable, else one+two");
    cluster.check("OPTIONS /api/v1/pods", "local ServesIt, 404 PlainUnavailable, else one+two");
    cluster.check("GET /api/v1/proxy/namespaces/a/services/b", "local ServesIt, 404 Pass, else one+two");
    cluster.check("GET /api/v1/namespaces/a/services/b/proxy/x", "local ServesIt, 404 Pass, else one+two");
    cluster.check("GET //api/v1/pods", "local ServesIt, 404 Pass, else one+two");
}

#[test]
fn peer_serves_what_the_local_server_does_not() {
    let cluster = Cluster::new();
    cluster.check("GET /apis/certificates.k8s.io/v1/clustertrustbundles", "one+two Resource");
    cluster.check("PATCH /apis/storage.k8s.io/v1/csinodes/n/status", "one Subresource");
    cluster.check("DELETE /apis/storage.k8s.io/v1/csinodes/n/status", "one Subresource");
    cluster.check("GET /apis/authentication.k8s.io/v1/tokenreviews", "one Verb");
    cluster.check("OPTIONS /apis/certificates.k8s.io/v1/clustertrustbundles", "one+two Resource");
    let unknown_verb = "local VerbUnknown, 404 PlainUnavailable, else one+two";
    cluster.check("PUT /apis/authentication.k8s.io/v1/tokenreviews/a", unknown_verb);
    cluster.check("PATCH /api/v1/namespaces/a/pods/b/exec", unknown_verb);
}

#[test]
fn group_version_that_a_server_has_not_told_of_is_not_known_to_lack_anything() {
    let mut cluster = Cluster::new();
    cluster.one.insert_unread_group_version("batch", "v1");
    cluster.one.insert_unread_group_version("metrics.k8s.io", "v1beta1");
    cluster.check("GET /apis/batch/v1/jobs", "local ServedByNobody, 404 Unavailable");
    cluster.check_unmerged(Hop::First, "GET /apis/batch/v1", "local NonResource, 404 Unavailable");
    cluster.check_unmerged(Hop::First, "GET /apis/batch", "local NonResource, 404 Unavailable");
    cluster.check("GET /apis/batch/v2/jobs", "local ServedByNobody, 404 Pass");
    cluster.check_unmerged(Hop::First, "GET /apis/batch/v2", "local NonResource, 404 Pass");
    cluster.check("GET /apis/metrics.k8s.io/v1beta1/nodes", "local LeftToIt(ApiService), 404 Pass");
    cluster.local.insert_unread_group_version("policy", "v1");
    cluster.check("GET /apis/policy/v1/things", "local ServedByNobody, 404 Unavailable");
}

#[test]
fn local_server_has_the_last_word_on_what_nobody_serves() {
    let mut cluster = Cluster::new();
    for request in ["GET /apis/new.com/v1/things", "GET /api/v1/pods/a/new", "GET /apis/storage.k8s.io/v2/csinodes"] {
        cluster.check(request, "local ServedByNobody, 404 Pass");
        cluster.two_heard = false;
        cluster.check(request, "local ServedByNobody, 404 Unavailable");
        cluster.two_heard = true;
    }
    cluster.check_unmerged(Hop::First, "GET /apis/x/v1", "local NonResource, 404 Pass");
    cluster.two_heard = false;
    for request in ["GET /apis", "GET /apis/x", "GET /apis/x/v1/", "GET /apis/metrics.k8s.io/v1beta1", "GET /healthz/x"]
    {
        let may_be_served = request.starts_with("GET /apis/x");
        let not_found = if may_be_served { "Unavailable" } else { "Pass" };
        cluster.check_unmerged(Hop::First, request, &format!("local NonResource, 404 {not_found}"));
    }
    cluster.check("GET /apis/new.com/v1/things/a/proxy", "local ServedByNobody, 404 Pass");
}

#[test]
fn forwarded_request_stays_here() {
    let cluster = Cluster::new();
    let last = |request, expected| cluster.check_hop(Hop::Last, request, expected);
    last("GET /api/v1/pods", "local AlreadyForwarded, 404 PlainUnavailable");
    last("GET /apis/certificates.k8s.io/v1/clustertrustbundles", "local AlreadyForwarded, 404 Unavailable");
    last("GET /apis/storage.k8s.io/v1/csinodes/n/status", "local AlreadyForwarded, 404 Unavailable");
    last("GET /apis/nobody.com/v1/things", "local AlreadyForwarded, 404 Unavailable");
    last("GET /apis/example.com/v1/gadgets", "local AlreadyForwarded, 404 Pass");
}

#[test]
fn excluded_resources_are_left_to_the_local_server() {
    let mut cluster = Cluster::new();
    cluster.two_heard = false;
    cluster.check("GET /apis/example.com/v1/gadgets", "local LeftToIt(CustomResource), 404 Pass");
    cluster.check("GET /apis/storage.k8s.io/v1/customs", "local LeftToIt(CustomResource), 404 Pass");
    cluster.check("GET /apis/metrics.k8s.io/v1beta1/pods", "local LeftToIt(ApiService), 404 Pass");
    cluster.check("GET /apis/metrics.k8s.io/v1beta1/nodes", "local LeftToIt(ApiService), 404 Pass");
    // A CRD in a built-in group does not hide the built-in part.
    cluster.check("PATCH /apis/storage.k8s.io/v1/csinodes/n/status", "one Subresource");
}

#[test]
fn without_rights_only_built_in_groups_are_taken_from_peers() {
    let mut cluster = Cluster::new();
    cluster.exclusions = Exclusions::default();
    cluster.check("GET /apis/certificates.k8s.io/v1/clustertrustbundles", "one+two Resource");
    cluster.check("GET /apis/example.com/v1/gadgets", "local LeftToIt(NotBuiltIn), 404 Pass");
    cluster.check("GET /apis/metrics.k8s.io/v1beta1/pods", "local LeftToIt(NotBuiltIn), 404 Pass");
    cluster.check("GET /apis/nobody.com/v1/things", "local LeftToIt(NotBuiltIn), 404 Pass");
    cluster.check("GET /apis/example.com/v1/widgets", "local ServesIt, 404 Pass, else one+two");
}

#[test]
fn unreachable_peers_are_passed_over() {
    let mut cluster = Cluster::new();
    cluster.one_available = false;
    cluster.check("GET /apis/certificates.k8s.io/v1/clustertrustbundles", "two Resource");
    cluster.check("PATCH /apis/storage.k8s.io/v1/csinodes/n/status", "nobody Subresource");
    cluster.check("GET /apis/authentication.k8s.io/v1/tokenreviews", "nobody Verb");
    cluster.two_available = false;
    cluster.check("GET /apis/certificates.k8s.io/v1/clustertrustbundles", "nobody Resource");
    cluster.check("GET /api/v1/pods", "local ServesIt, 404 PlainUnavailable");
}

#[test]
fn peers_stand_in_for_a_local_server_that_is_down() {
    let mut cluster = Cluster::new();
    cluster.local_reachable = false;
    cluster.check("GET /api/v1/pods", "one+two LocalUnreachable, 404 PlainUnavailable");
    cluster.check("POST /api/v1/namespaces/a/pods/b/exec", "one+two LocalUnreachable, 404 PlainUnavailable");
    cluster.check("GET /apis/certificates.k8s.io/v1/clustertrustbundles", "one+two Resource");
    cluster.check("GET /apis/example.com/v1/widgets", "one+two LocalUnreachable, 404 Pass");
    cluster.check("GET /apis/example.com/v1/gadgets", "local LeftToIt(CustomResource), 404 Pass");
    cluster.check("GET /api/v1/namespaces/a/services/b/proxy", "one+two LocalUnreachable, 404 Pass");
    cluster.check("GET /readyz", "local NonResource, 404 Pass");
    cluster.check_hop(Hop::Last, "GET /api/v1/pods", "local AlreadyForwarded, 404 PlainUnavailable");
    cluster.local_read = false;
    cluster.check("GET /api/v1/pods", "one+two LocalUnreachable, 404 PlainUnavailable");
    (cluster.one_available, cluster.two_available) = (false, false);
    cluster.check("GET /api/v1/pods", "nobody LocalUnreachable");
}

#[test]
fn local_server_not_read_yet_may_serve_anything() {
    let mut cluster = Cluster::new();
    cluster.local_read = false;
    cluster.check("GET /api/v1/pods", "local NotRead, 404 Unavailable, else one+two");
    cluster.check("GET /apis/nobody.com/v1/things", "local NotRead, 404 Unavailable");
    cluster.check_unmerged(Hop::First, "GET /apis/x", "local NonResource, 404 Unavailable");
}

#[test]
fn key_comes_from_the_table() {
    let (cluster, method) = (Cluster::new(), Method::GET);
    let uri: Uri = "/apis/certificates.k8s.io/v1/clustertrustbundles/a".parse().unwrap();
    let table = cluster.table();
    let Decision::Peer(candidates) = decide(&RequestInfo::parse(&method, &uri).unwrap(), Hop::First, &table) else {
        panic!("not for a peer");
    };
    assert_eq!(candidates.key(), &gvr("certificates.k8s.io", "v1", "clustertrustbundles"));
}

#[test]
fn peers_are_asked_by_rank_and_those_that_failed_a_short_while_ago_last() {
    let (cluster, method) = (Cluster::new(), Method::GET);
    let uri: Uri = "/apis/certificates.k8s.io/v1/clustertrustbundles".parse().unwrap();
    let info = RequestInfo::parse(&method, &uri).unwrap();
    let order = |circuits: [Circuit; 2], first: &str| {
        let standing = Standing { local_reachable: true, circuits: circuits.into(), ..Standing::default() };
        let table = RoutingTable::new(cluster.table().shared(), standing);
        let Decision::Peer(candidates) = decide(&info, Hop::First, &table) else { panic!("not for a peer") };
        let ranked = candidates.ranked(|peer| peer.hostname != first);
        ranked.iter().map(|peer| peer.hostname.clone()).collect::<Vec<_>>()
    };
    assert_eq!(order([Circuit::Closed, Circuit::Closed], "one"), ["one", "two"]);
    assert_eq!(order([Circuit::Closed, Circuit::Closed], "two"), ["two", "one"]);
    assert_eq!(order([Circuit::HalfOpen, Circuit::Closed], "one"), ["two", "one"]);
    assert_eq!(order([Circuit::HalfOpen, Circuit::Open], "two"), ["one"]);
}

#[test]
fn local_server_shares_what_peers_can_answer_as_well() {
    let (cluster, method) = (Cluster::new(), Method::GET);
    let first = |share, path: &str| {
        let circuits = vec![Circuit::Closed; 2];
        let standing = Standing { local_reachable: true, local_share: share, circuits, unheard: false };
        let (table, uri) = (RoutingTable::new(cluster.table().shared(), standing), path.parse::<Uri>().unwrap());
        match decide(&RequestInfo::parse(&method, &uri).unwrap(), Hop::First, &table) {
            Decision::Upstream { otherwise: Some(peers), .. } => {
                (0..100).filter(|client| peers.go_first(|| *client)).count()
            }
            Decision::Upstream { otherwise: None, .. } => 0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(first(Share::ALL, "/api/v1/pods"), 0);
    assert_eq!(first(Share::percent(30), "/api/v1/pods"), 70);
    assert_eq!(first(Share::NONE, "/api/v1/pods"), 100);
    assert_eq!(first(Share::NONE, "/apis/nobody.k8s.io/v1/knows"), 0, "nobody can answer in its stead");
}

#[test]
fn deleted_definitions_count_for_the_grace_period() {
    let start = Instant::now();
    let (widgets, version) = (gvr("a.com", "v1", "widgets"), GroupVersion::new("a.com", "v1"));
    let mut exclusions = Exclusions::default();
    assert!(exclusions.set_api_services(BTreeSet::new(), start));
    assert!(exclusions.set_custom_resources([widgets.clone()].into(), start));
    assert!(!exclusions.set_custom_resources([widgets.clone()].into(), start));
    let excluded = |exclusions: &Exclusions| exclusions.of_resource(&version, "widgets");
    assert_eq!(excluded(&exclusions), Some(Exclusion::CustomResource));
    assert_eq!(exclusions.of_resource(&version, "gadgets"), None);

    assert!(exclusions.set_custom_resources(BTreeSet::new(), start));
    assert_eq!(exclusions.next_expiry(), Some(start + GRACE_PERIOD));
    assert!(!exclusions.expire(start + GRACE_PERIOD - Duration::from_nanos(1)));
    assert_eq!(excluded(&exclusions), Some(Exclusion::CustomResource));
    assert!(exclusions.expire(start + GRACE_PERIOD));
    assert_eq!(excluded(&exclusions), None);
    assert_eq!(exclusions.next_expiry(), None);
}

#[test]
fn definition_made_again_does_not_expire() {
    let start = Instant::now();
    let version = GroupVersion::new("a.com", "v1");
    let mut exclusions = Exclusions::default();
    exclusions.set_custom_resources(BTreeSet::new(), start);
    exclusions.set_api_services([version.clone()].into(), start);
    exclusions.set_api_services(BTreeSet::new(), start);
    exclusions.set_api_services([version.clone()].into(), start);
    assert!(!exclusions.expire(start + GRACE_PERIOD));
    assert_eq!(exclusions.of_group_version(&version), Some(Exclusion::ApiService));
}

#[test]
fn built_in_groups_are_told_by_their_names() {
    for group in ["", "apps", "batch", "storage.k8s.io", "rbac.authorization.k8s.io", "flowcontrol.apiserver.k8s.io"] {
        assert!(exclusion::is_built_in(group), "{group}");
    }
    for group in ["example.com", "metrics.k8s.io", "gateway.networking.k8s.io", "cluster.x-k8s.io", ".k8s.io.x", "app"]
    {
        assert!(!exclusion::is_built_in(group), "{group}");
    }
}

#[test]
fn served_resources_come_out_as_they_went_in() {
    let mut served = ServedResources::new();
    served.insert("", "v1", "pods", Some("status"), &["get", "dance"]);
    served.insert("", "v1", "pods", None, &["watch", "create"]);
    served.insert_group_version("empty", "v1");
    let found: Vec<_> = served
        .iter()
        .map(|one| format!("{} {} {:?} {}", one.group_version, one.resource, one.subresource, one.verbs))
        .collect();
    assert_eq!(found, ["v1 pods None create,watch", "v1 pods Some(\"status\") get"]);
    assert_eq!(served.group_versions().map(ToString::to_string).collect::<Vec<_>>(), ["v1", "empty/v1"]);
}
