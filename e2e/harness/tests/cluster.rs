//! The harness against one real kube-apiserver.
#![allow(clippy::unwrap_used, reason = "helpers of tests, which may")]

use std::time::Duration;

use peerfront_e2e::{Cluster, Identity, Subject, Topology};
use serde_json::json;

/// One cluster for everything that must work on it: a start takes most of a test.
#[tokio::test]
async fn cluster_serves_every_kind_of_caller_and_leaves_nothing_behind() {
    let cluster = Cluster::start(Topology::load("single").unwrap()).await.unwrap();
    let node = cluster.node("node-a");

    who_am_i_is_answered(&cluster).await;
    watch_delivers_line_by_line(&cluster).await;
    kubectl_works(&cluster).await;

    let keys = cluster.etcd().keys("/registry/configmaps/default/").await.unwrap();
    assert!(keys.contains(&"/registry/configmaps/default/watched".to_owned()), "{keys:?}");

    let before = node.upstream().process().pid().unwrap();
    node.upstream().kill().await.unwrap();
    let admin = cluster.client(node.upstream(), &cluster.admin());
    assert!(admin.get("/version").await.is_err());
    node.upstream().start().await.unwrap();
    assert_ne!(node.upstream().process().pid().unwrap(), before);
    assert_eq!(admin.get("/version").await.unwrap().json().unwrap()["gitVersion"], "v1.37.2");

    let directory = cluster.directory().to_owned();
    let pid = node.upstream().process().pid().unwrap();
    drop(cluster);
    assert!(!directory.exists());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

async fn who_am_i_is_answered(cluster: &Cluster) {
    let upstream = cluster.node("node-a").upstream();
    let alice = cluster.pki().client(&Subject::new("alice").group("dev").group("ops").uid("42")).unwrap();
    let token = cluster.service_account_token("default", "robot").await.unwrap();
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    for (identity, name) in [
        (cluster.admin(), "kubernetes-admin"),
        (Identity::certificate(&alice), "alice"),
        (Identity::bearer(token), "system:serviceaccount:default:robot"),
    ] {
        let client = cluster.client(upstream, &identity);
        for client in [client.clone(), client.h2()] {
            let answer = client.post(path, &review).await.unwrap().success().unwrap().json().unwrap();
            let user = &answer["status"]["userInfo"];
            assert_eq!(user["username"], name);
            if name == "alice" {
                assert_eq!(user["groups"], json!(["dev", "ops", "system:authenticated"]));
                assert_eq!(user["uid"], "42");
            }
        }
    }
    let asserted = cluster
        .client(upstream, &Identity::certificate(cluster.pki().front_proxy_client()))
        .with_header("X-Remote-User", "bob");
    let answer = asserted.post(path, &review).await.unwrap().success().unwrap().json().unwrap();
    assert_eq!(answer["status"]["userInfo"]["username"], "bob");
    let nobody = cluster.client(upstream, &Identity::anonymous());
    assert_eq!(nobody.get("/api/v1/nodes").await.unwrap().status, 403);
    assert_eq!(cluster.client(upstream, &Identity::bearer("wrong")).get("/api").await.unwrap().status, 401);
}

async fn watch_delivers_line_by_line(cluster: &Cluster) {
    let admin = cluster.client(cluster.node("node-a").upstream(), &cluster.admin()).h2();
    let maps = "/api/v1/namespaces/default/configmaps";
    let version = admin.get(maps).await.unwrap().json().unwrap()["metadata"]["resourceVersion"].clone();
    let version = version.as_str().unwrap();
    let mut watch = admin.stream(&format!("{maps}?watch=true&resourceVersion={version}")).await.unwrap();
    assert_eq!(watch.status(), 200);
    admin.post(maps, &json!({ "metadata": { "name": "watched" } })).await.unwrap().success().unwrap();
    let event = watch.next_line(Duration::from_secs(10)).await.unwrap().unwrap();
    let event: serde_json::Value = serde_json::from_str(&event).unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"]["name"], "watched");
}

async fn kubectl_works(cluster: &Cluster) {
    let kubectl = cluster.kubectl_direct("node-a");
    let said = kubectl.run(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await.unwrap();
    assert_eq!(said.success().unwrap(), "kubernetes-admin");
    let manifest = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "applied" } }).to_string();
    kubectl.run_with_input(&["apply", "-f", "-"], &manifest).await.unwrap().success().unwrap();
    let missing = kubectl.run(&["get", "no-such-things"]).await.unwrap().failure().unwrap();
    assert!(missing.contains("no-such-things"), "{missing}");
}

#[tokio::test]
async fn server_that_cannot_start_fails_with_its_log() {
    let mut topology = Topology::load("single").unwrap();
    topology.node_mut("node-a").kube_apiserver_flags.push("--no-such-flag".to_owned());
    let error = Cluster::start(topology).await.unwrap_err().to_string();
    assert!(error.contains("node-a-upstream ended") && error.contains("no-such-flag"), "{error}");
}

#[tokio::test]
async fn directory_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let topology = Topology::load("single").unwrap();
    let error = Cluster::builder(topology).directory(folder.path()).start().await.unwrap_err().to_string();
    assert!(error.contains("something else"), "{error}");
    assert!(folder.path().join("thesis.txt").is_file());
}
