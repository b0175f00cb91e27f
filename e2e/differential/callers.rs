//! Who sends the requests: every way to be somebody, to be nobody, and to fail at either.

use anyhow::Result;
use peerfront_e2e::pki::{Authority, Validity};
use peerfront_e2e::{Cluster, Identity, Subject};
use serde_json::json;

/// A kind of caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// Client certificate of an administrator.
    Admin,
    /// Client certificate of a user with few rights.
    User,
    /// Token of a service account with few rights.
    Token,
    /// The same token beside a certificate that nobody knows.
    TokenAndStranger,
    /// A front proxy that asserts a user with groups and extra.
    Asserted,
    /// No credential.
    Anonymous,
    /// A token that is none.
    BadToken,
    /// An expired client certificate.
    Expired,
    /// A client certificate of an authority that nobody knows.
    Stranger,
    /// A front proxy's certificate that asserts nobody.
    Proxy,
}

impl Role {
    pub(crate) const ALL: [Self; 10] = [
        Self::Admin,
        Self::User,
        Self::Token,
        Self::TokenAndStranger,
        Self::Asserted,
        Self::Anonymous,
        Self::BadToken,
        Self::Expired,
        Self::Stranger,
        Self::Proxy,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Token => "token",
            Self::TokenAndStranger => "token-and-stranger",
            Self::Asserted => "asserted",
            Self::Anonymous => "anonymous",
            Self::BadToken => "bad-token",
            Self::Expired => "expired",
            Self::Stranger => "stranger",
            Self::Proxy => "proxy",
        }
    }
}

/// A caller's credentials and what it adds to each request.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) identity: Identity,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// All of them, with their rights in place.
#[derive(Debug)]
pub(crate) struct Callers(Vec<Caller>);

impl Callers {
    pub(crate) async fn create(cluster: &Cluster) -> Result<Self> {
        grant(cluster).await?;
        let token = cluster.service_account_token("default", "differential").await?;
        Ok(Self(Role::ALL.into_iter().map(|role| caller(cluster, role, &token)).collect::<Result<_>>()?))
    }

    pub(crate) fn get(&self, role: Role) -> &Caller {
        &self.0[role as usize]
    }
}

fn caller(cluster: &Cluster, role: Role, token: &str) -> Result<Caller> {
    let pki = cluster.pki();
    let alice = Subject::new("alice").group("dev").group("ops");
    let stranger = || Authority::new("nobody")?.client(&alice, Validity::default());
    let (identity, headers): (_, &[(&'static str, &str)]) = match role {
        Role::Admin => (Identity::certificate(pki.admin()), &[]),
        Role::User => (Identity::certificate(&pki.client(&alice)?), &[]),
        Role::Token => (Identity::anonymous(), &[]),
        Role::TokenAndStranger | Role::Stranger => (Identity::certificate(&stranger()?), &[]),
        Role::Asserted => (
            Identity::certificate(pki.front_proxy_client()),
            &[
                ("X-Remote-User", "alice"),
                ("X-Remote-Group", "dev"),
                ("X-Remote-Group", "ops"),
                ("X-Remote-Extra-Scopes", "one"),
                ("X-Remote-Extra-Scopes", "two"),
            ],
        ),
        Role::Anonymous | Role::BadToken => (Identity::anonymous(), &[]),
        Role::Expired => {
            let validity = Validity { remaining: -Validity::default().since / 2, ..Validity::default() };
            (Identity::certificate(&pki.ca().client(&alice, validity)?), &[])
        }
        Role::Proxy => (Identity::certificate(pki.front_proxy_client()), &[]),
    };
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    match role {
        Role::Token | Role::TokenAndStranger => headers.push(("Authorization", format!("Bearer {token}"))),
        Role::BadToken => headers.push(("Authorization", "Bearer nobody".to_owned())),
        _ => {}
    }
    Ok(Caller { identity, headers })
}

/// Gives those with few rights what lets both refusals and successes happen.
async fn grant(cluster: &Cluster) -> Result<()> {
    let admin = cluster.client(cluster.node("node-a").upstream(), &cluster.admin());
    let rule =
        |resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [""], "resources": resources, "verbs": verbs });
    let role = json!({
        "metadata": { "name": "differential" },
        "rules": [
            rule(&["configmaps"], &["*"]),
            rule(&["namespaces", "serviceaccounts"], &["get", "list"]),
            rule(&["pods", "pods/log", "pods/exec", "services/proxy"], &["get", "list", "watch", "create"]),
            rule(&["serviceaccounts/token"], &["create"]),
        ],
    });
    let binding = json!({
        "metadata": { "name": "differential" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "differential" },
        "subjects": [
            { "kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "dev" },
            { "kind": "ServiceAccount", "namespace": "default", "name": "differential" },
        ],
    });
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await?.success()?;
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await?.success()?;
    Ok(())
}
