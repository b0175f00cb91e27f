//! Who a caller is: the same at every node as directly at its server, here and on a peer.

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster, Identity, Response, Server, Subject};
use serde_json::{Value, json};

use crate::support::{BUNDLES, NOTICED, ensure_same, eventually};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// May list trust bundles, through its group or by its own name.
const READERS: &str = "bundle-readers";

/// Somebody who calls.
struct Caller {
    /// How it proves who it is.
    what: &'static str,
    /// The name that servers know it by.
    name: &'static str,
    identity: Identity,
    headers: Vec<(&'static str, &'static str)>,
    is_reader: bool,
}

impl Caller {
    fn client(&self, cluster: &Cluster, server: &Server) -> Client {
        let client = cluster.client(server, &self.identity);
        self.headers.iter().fold(client, |client, (name, value)| client.with_header(name, value))
    }

    /// Over both versions of HTTP.
    fn clients(&self, cluster: &Cluster, server: &Server) -> [Client; 2] {
        let client = self.client(cluster, server);
        [client.clone(), client.h2()]
    }
}

/// One caller of each kind.
async fn callers(cluster: &Cluster) -> Result<Vec<Caller>> {
    let pki = cluster.pki();
    let user = |subject: Subject| pki.client(&subject).map(|pair| Identity::certificate(&pair));
    let front_proxy = || Identity::certificate(pki.front_proxy_client());
    let token = cluster.service_account_token("default", "robot").await?;
    let alice = Subject::new("alice").group(READERS).group("ops").uid("0f2c-42");
    Ok(vec![
        Caller {
            what: "certificate with groups and UID",
            name: "alice",
            identity: user(alice)?,
            headers: vec![],
            is_reader: true,
        },
        Caller {
            what: "certificate of a name alone",
            name: "carol",
            identity: user(Subject::new("carol"))?,
            headers: vec![],
            is_reader: false,
        },
        Caller {
            what: "service account",
            name: "system:serviceaccount:default:robot",
            identity: Identity::bearer(token),
            headers: vec![],
            is_reader: true,
        },
        Caller {
            what: "user whom a front proxy asserts, with everything",
            name: "bob",
            identity: front_proxy(),
            headers: vec![
                ("X-Remote-User", "bob"),
                ("X-Remote-Group", READERS),
                ("X-Remote-Uid", "7-11"),
                ("X-Remote-Extra-Example.org%2fteam", "blue"),
            ],
            is_reader: true,
        },
        Caller {
            what: "user whom a front proxy asserts, without groups",
            name: "dave",
            identity: front_proxy(),
            headers: vec![("X-Remote-User", "dave")],
            is_reader: false,
        },
        Caller {
            what: "nobody",
            name: "system:anonymous",
            identity: Identity::anonymous(),
            headers: vec![],
            is_reader: false,
        },
    ])
}

/// Grants group `bundle-readers` and the service account what their names say, and waits until the newest server knows.
async fn grant(cluster: &Cluster) -> Result<()> {
    let kubectl = cluster.kubectl_direct("node-c");
    let role = ["create", "clusterrole", READERS, "--verb=get,list", "--resource=clustertrustbundles"];
    let binding = [
        "create",
        "clusterrolebinding",
        READERS,
        "--clusterrole=bundle-readers",
        "--group=bundle-readers",
        "--serviceaccount=default:robot",
    ];
    for command in [role.as_slice(), &binding] {
        let output = kubectl.run(command).await?;
        ensure!(output.success || output.stderr.contains("already exists"), "{}", output.stderr);
    }
    let reader = cluster.pki().client(&Subject::new("first").group(READERS))?;
    let reader = cluster.client(cluster.node("node-c").upstream(), &Identity::certificate(&reader));
    eventually(NOTICED, async || reader.get(BUNDLES).await?.success().map(drop)).await
}

async fn who_am_i(client: &Client) -> Result<Response> {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    client.post(REVIEWS, &review).await
}

/// The user in the answer, or the answer itself if it is a refusal.
fn user_in(answer: &Response) -> Result<Value> {
    let answer = answer.json()?;
    Ok(if answer["kind"] == "Status" { answer } else { answer["status"]["userInfo"].clone() })
}

pub(crate) async fn every_caller_is_at_every_node_who_it_is_directly(cluster: &Cluster) -> Result<()> {
    for caller in callers(cluster).await? {
        for node in cluster.nodes() {
            let expected = user_in(&who_am_i(&caller.client(cluster, node.upstream())).await?)?;
            ensure!(expected.to_string().contains(caller.name), "{}: {expected}", caller.what);
            for client in caller.clients(cluster, node.front()) {
                let seen = user_in(&who_am_i(&client).await?)?;
                ensure!(seen == expected, "{} at {}: {seen} instead of {expected}", caller.what, node.name());
            }
        }
    }
    Ok(())
}

pub(crate) async fn kubectl_says_who_each_caller_is(cluster: &Cluster) -> Result<()> {
    let alice = cluster.pki().client(&Subject::new("alice").group("dev").group("ops").uid("0f2c-42"))?;
    let token = cluster.service_account_token("default", "robot").await?;
    let authority = cluster.pki().file("ca.crt");
    for node in cluster.nodes() {
        let mut said = Vec::new();
        for server in [node.upstream(), node.front()] {
            let file = cluster.write_kubeconfig(&format!("alice-{}", server.process().name()), server, &alice)?;
            let certificate = whoami(cluster, &["--kubeconfig", &file.to_string_lossy()]).await?;
            let [server, authority] = [
                format!("--server=https://{}", server.address()),
                format!("--certificate-authority={}", authority.display()),
            ];
            let bearer = whoami(cluster, &[&server, &authority, &format!("--token={token}")]).await?;
            said.push([certificate, bearer]);
        }
        ensure!(said[0] == said[1], "at {}: {} instead of {}", node.name(), json!(said[1]), json!(said[0]));
        ensure!(said[1][0]["groups"] == json!(["dev", "ops", "system:authenticated"]), "{}", said[1][0]);
        ensure!(said[1][1]["username"] == "system:serviceaccount:default:robot", "{}", said[1][1]);
    }
    Ok(())
}

async fn whoami(cluster: &Cluster, flags: &[&str]) -> Result<Value> {
    let mut arguments = vec!["auth", "whoami", "-o", "json"];
    arguments.extend(flags);
    let nothing = cluster.kubectl_with("/dev/null".into());
    let said: Value = serde_json::from_str(&nothing.run(&arguments).await?.success()?)?;
    Ok(said["status"]["userInfo"].clone())
}

/// What is allowed and what a refusal says tells who arrived.
pub(crate) async fn rights_on_a_rerouted_resource_are_those_of_the_caller(cluster: &Cluster) -> Result<()> {
    grant(cluster).await?;
    for caller in callers(cluster).await? {
        let direct = caller.client(cluster, cluster.node("node-c").upstream()).get(BUNDLES).await?;
        ensure!((direct.status == 200) == caller.is_reader, "{}: {}", caller.what, direct.text());
        for node in ["node-a", "node-b"] {
            for client in caller.clients(cluster, cluster.node(node).front()) {
                let seen = client.get(BUNDLES).await?;
                let what = format!("{} through {node}", caller.what);
                if caller.is_reader {
                    ensure!(seen.status == 200, "{what}: {}", seen.text());
                    continue;
                }
                ensure_same(&what, &seen, &direct)?;
                let message = seen.json()?["message"].clone();
                let named = format!("User \"{}\"", caller.name);
                ensure!(
                    seen.status == 403 && message.as_str().is_some_and(|m| m.contains(&named)),
                    "{what}: {message}"
                );
            }
        }
    }
    Ok(())
}

/// What somebody would send to be taken for somebody else, or to get past the routing.
const FORGED: [(&str, &str); 8] = [
    ("X-Remote-User", "kubernetes-admin"),
    ("X-Remote-Group", "system:masters"),
    ("X-Remote-Uid", "1"),
    ("X-Remote-Extra-Scopes", "all"),
    ("X_Remote_User", "kubernetes-admin"),
    ("X-Kubernetes-Peer-Proxied", "true"),
    ("X-Kubernetes-APIServer-Rerouted", "true"),
    ("X-Forwarded-For", "127.0.0.1"),
];

pub(crate) async fn forged_headers_change_nothing(cluster: &Cluster) -> Result<()> {
    grant(cluster).await?;
    for caller in callers(cluster).await?.into_iter().filter(|caller| caller.headers.is_empty()) {
        let node = cluster.node("node-a");
        let expected = user_in(&who_am_i(&caller.client(cluster, node.upstream())).await?)?;
        for client in caller.clients(cluster, node.front()) {
            let forged = FORGED.iter().fold(client, |client, (name, value)| client.with_header(name, value));
            let seen = user_in(&who_am_i(&forged).await?)?;
            ensure!(seen == expected, "{}: {seen} instead of {expected}", caller.what);
            // The mark of a hop would keep the request at a server that does not know the resource.
            let expected = if caller.is_reader { 200 } else { 403 };
            let seen = forged.get(BUNDLES).await?;
            ensure!(seen.status == expected, "{}: {}", caller.what, seen.text());
        }
    }
    Ok(())
}

pub(crate) async fn impersonation_works_on_local_and_rerouted_resources(cluster: &Cluster) -> Result<()> {
    grant(cluster).await?;
    let (node, newest) = (cluster.node("node-a"), cluster.node("node-c").upstream());
    let ordinary = Identity::certificate(&cluster.pki().client(&Subject::new("carol"))?);
    let reader = [("Impersonate-User", "erin"), ("Impersonate-Group", READERS)];
    let stranger = [("Impersonate-User", "frank"), ("Impersonate-Extra-scopes", "none")];
    for (identity, headers, expected) in [
        (cluster.admin(), reader, 200),
        (cluster.admin(), stranger, 403),
        (ordinary.clone(), reader, 403),
        (ordinary, stranger, 403),
    ] {
        let at = |server| {
            let client = cluster.client(server, &identity);
            headers.iter().fold(client, |client, (name, value)| client.with_header(name, value))
        };
        let seen = at(node.front()).get(BUNDLES).await?;
        let direct = at(newest).get(BUNDLES).await?;
        ensure!(seen.status == expected && direct.status == expected, "{headers:?}: {} {}", seen.text(), direct.text());
        if expected == 403 {
            ensure_same("refusal on the peer", &seen, &direct)?;
        }
        let (seen, direct) = (who_am_i(&at(node.front())).await?, who_am_i(&at(node.upstream())).await?);
        ensure!(user_in(&seen)? == user_in(&direct)?, "{headers:?}: {} {}", seen.text(), direct.text());
    }
    let group = format!("--as-group={READERS}");
    let kubectl = cluster.kubectl("node-a");
    kubectl.run(&["get", "clustertrustbundles", "--as=erin", &group]).await?.success()?;
    let refused = kubectl.run(&["get", "clustertrustbundles", "--as=frank"]).await?.failure()?;
    ensure!(refused.contains("User \"frank\""), "{refused}");
    Ok(())
}

/// While the local server is down, a peer says who arrived, in full.
pub(crate) async fn every_caller_arrives_unchanged_at_a_peer(cluster: &Cluster) -> Result<()> {
    let callers = callers(cluster).await?;
    let node = cluster.node("node-a");
    node.upstream().kill().await?;
    let checked = arrives_unchanged(cluster, &callers).await;
    node.upstream().start().await?;
    checked
}

async fn arrives_unchanged(cluster: &Cluster, callers: &[Caller]) -> Result<()> {
    for caller in callers {
        let direct = who_am_i(&caller.client(cluster, cluster.node("node-b").upstream())).await?;
        let expected = user_in(&direct)?;
        for client in caller.clients(cluster, cluster.node("node-a").front()) {
            let seen = who_am_i(&client).await.context(caller.what)?;
            ensure!(seen.status == direct.status, "{}: {}", caller.what, seen.text());
            let seen = user_in(&seen)?;
            ensure!(seen == expected, "{} at a peer: {seen} instead of {expected}", caller.what);
        }
    }
    Ok(())
}
