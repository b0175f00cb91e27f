//! The cluster, the users, and every way in which they can talk to the pod.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use peerfront_e2e::runner::Fixture;
use peerfront_e2e::{Cluster, Kubectl, KubectlOutput, Node, Pod, Subject, Topology, Version};
use serde_json::json;

/// Older than any that upstream supports beside these servers, and still found on machines.
const OLD_KUBECTL: Version = Version { major: 1, minor: 32, patch: 9 };

/// The state of the server beside the front that clients talk to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LocalServer {
    /// It serves.
    Running,
    /// It is stopped: what is asked of it goes to the peer.
    Stopped,
}

/// What a session speaks after the upgrade.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transport {
    /// kubectl's own choice.
    WebSocket,
    /// What it spoke before 1.31, and falls back to.
    Spdy,
}

/// How a user proves who it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Credential {
    /// The front reads the certificate and asserts its user.
    Certificate,
    /// The server reads the token.
    Token,
}

/// A user with the rights to talk to the pod, and one who may only look at it.
struct Users {
    credential: Credential,
    allowed: PathBuf,
    limited: PathBuf,
    /// Name of the limited one, as servers name it.
    limited_name: &'static str,
}

/// Two nodes behind fronts, and a pod.
pub(crate) struct Streaming {
    // Dropped first: it calls nobody, and the cluster's directory holds its files.
    pod: Pod,
    pub(crate) cluster: Cluster,
    users: [Users; 2],
    kubectls: Vec<Version>,
}

/// One way to talk to the pod.
pub(crate) struct Session<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) transport: Transport,
    /// kubectl as the user who may.
    pub(crate) kubectl: Kubectl,
    /// kubectl as the user who may not.
    pub(crate) limited: Kubectl,
    pub(crate) limited_name: &'static str,
    name: String,
}

impl fmt::Display for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Streaming {
    pub(crate) async fn start() -> Result<Self> {
        let versions = ["1.36.3", "1.37.2"].map(str::parse).into_iter().collect::<Result<Vec<Version>, _>>()?;
        let mut topology = Topology::load("mixed")?.with_versions(&versions)?;
        topology.controller_manager = None;
        let mut kubectls = vec![topology.kubectl_version()];
        if std::env::var("E2E_FULL").is_ok_and(|full| full == "1") {
            kubectls.push(OLD_KUBECTL);
        }
        let cluster =
            Cluster::builder(topology).peerfront(env!("CARGO_BIN_EXE_peerfront")).show_progress().start().await?;
        let pod = cluster.start_pod().await?;
        grant(&cluster).await?;
        let users = [certificate_users(&cluster)?, token_users(&cluster).await?];
        Ok(Self { pod, cluster, users, kubectls })
    }

    /// The node whose front clients talk to.
    pub(crate) fn node(&self) -> &Node {
        self.cluster.node("node-a")
    }

    /// Brings the local server into this state.
    pub(crate) async fn bring(&self, local: LocalServer) -> Result<()> {
        let upstream = self.node().upstream();
        match (local, upstream.process().pid()) {
            (LocalServer::Running, None) => upstream.start().await,
            (LocalServer::Stopped, Some(_)) => upstream.stop().await,
            _ => Ok(()),
        }
    }

    /// Brings the local server into this state and runs a test in every kind of session.
    pub(crate) async fn each_session(
        &self,
        local: LocalServer,
        test: impl AsyncFn(&Session<'_>) -> Result<()>,
    ) -> Result<()> {
        self.bring(local).await?;
        for version in &self.kubectls {
            for users in &self.users {
                for transport in [Transport::WebSocket, Transport::Spdy] {
                    let session = self.session(version, users, transport).await?;
                    test(&session).await.with_context(|| session.to_string())?;
                }
            }
        }
        Ok(())
    }

    async fn session(&self, version: &Version, users: &Users, transport: Transport) -> Result<Session<'_>> {
        let value = match transport {
            Transport::WebSocket => "true",
            Transport::Spdy => "false",
        };
        let kubectl = self.cluster.kubectl("node-a").version(version).await?;
        let kubectl = kubectl
            .variable("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", value)
            .variable("KUBECTL_PORT_FORWARD_WEBSOCKETS", value);
        Ok(Session {
            pod: &self.pod,
            transport,
            limited: kubectl.clone().kubeconfig(&users.limited),
            kubectl: kubectl.kubeconfig(&users.allowed),
            limited_name: users.limited_name,
            name: format!("kubectl {version} over {transport:?} as a user with a {:?}", users.credential),
        })
    }
}

impl Fixture for Streaming {
    async fn stop(self) -> Result<()> {
        self.pod.kubelet().stop().await?;
        self.cluster.stop().await
    }
}

impl Session<'_> {
    /// Runs a command in the container.
    pub(crate) async fn exec(&self, command: &[&str], input: &str) -> Result<KubectlOutput> {
        let arguments = [&["exec", "-i", Pod::NAME, "--"], command].concat();
        self.kubectl.run_with_input(&arguments, input).await
    }
}

fn certificate_users(cluster: &Cluster) -> Result<Users> {
    let front = cluster.node("node-a").front();
    let write = |name| cluster.write_kubeconfig(name, front, &cluster.pki().client(&Subject::new(name))?);
    Ok(Users {
        credential: Credential::Certificate,
        allowed: write("operator")?,
        limited: write("onlooker")?,
        limited_name: "onlooker",
    })
}

async fn token_users(cluster: &Cluster) -> Result<Users> {
    let front = cluster.node("node-a").front();
    let write = async |name| {
        let token = cluster.service_account_token("default", name).await?;
        cluster.write_kubeconfig(&format!("{name}-token"), front, peerfront_e2e::User::Token(&token))
    };
    Ok(Users {
        credential: Credential::Token,
        allowed: write("operator").await?,
        limited: write("onlooker").await?,
        limited_name: "system:serviceaccount:default:onlooker",
    })
}

/// Operators may talk to pods, onlookers may look at them.
async fn grant(cluster: &Cluster) -> Result<()> {
    let role = |name: &str, rules: serde_json::Value| {
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": name, "namespace": "default" }, "rules": rules })
    };
    let binding = |name: &str| {
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": name, "namespace": "default" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name },
                { "kind": "ServiceAccount", "namespace": "default", "name": name }] })
    };
    let look = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] });
    let talk = json!({ "apiGroups": [""],
        "resources": ["pods/exec", "pods/attach", "pods/portforward"], "verbs": ["get", "create"] });
    let read = json!({ "apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"] });
    let items = [
        role("operator", json!([look, talk, read])),
        role("onlooker", json!([look])),
        binding("operator"),
        binding("onlooker"),
    ];
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
    cluster.kubectl_direct("node-a").run_with_input(&["apply", "-f", "-"], &list).await?.success().map(drop)
}
