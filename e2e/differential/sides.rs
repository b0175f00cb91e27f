//! The two sides of a comparison and what each remembers from answer to answer.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context as _, Result};
use peerfront_e2e::{Client, Cluster, Protocol};
use regex::bytes::{Captures, Regex};
use serde_json::json;

use crate::callers::Caller;
use crate::exchange::{Answer, Wire, exchange};
use crate::table::{Group, Request};

/// Longer than a watch of the table lasts, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A placeholder: a name and up to two arguments.
static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u)\{\{(\w+)(?: (\w+))?(?: (\d+))?\}\}").expect("a regular expression"));

/// Where a list goes on.
static CONTINUE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?-u)"continue":"([^"]+)""#).expect("a regular expression"));

/// Direct and through peerfront.
pub(crate) struct Pair<'a> {
    caller: &'a Caller,
    direct: Side,
    front: Side,
}

struct Side {
    client: Client,
    protocol: Protocol,
    namespace: String,
    /// What later requests use of earlier answers.
    continue_token: Vec<u8>,
    etag: Vec<u8>,
}

impl<'a> Pair<'a> {
    /// Makes each side its namespace, if the group needs one.
    pub(crate) async fn prepare(
        cluster: &Cluster,
        group: &Group,
        caller: &'a Caller,
        protocol: Protocol,
        number: usize,
    ) -> Result<Self> {
        let node = cluster.node("node-a");
        let side = |server, name| Side {
            client: cluster.client(server, &caller.identity).protocol(protocol),
            protocol,
            // Names of the same length keep lengths the same.
            namespace: format!("t{number:03}{name}"),
            continue_token: Vec::new(),
            etag: Vec::new(),
        };
        let pair = Self { caller, direct: side(node.upstream(), 'd'), front: side(node.front(), 'f') };
        if group.needs_namespace() {
            let admin = cluster.client(node.upstream(), &cluster.admin());
            for side in [&pair.direct, &pair.front] {
                make_namespace(&admin, &side.namespace).await?;
            }
        }
        Ok(pair)
    }

    /// Sends a request to both sides at once.
    pub(crate) async fn send(&mut self, request: &Request) -> Result<(Answer, Answer)> {
        let direct = self.direct.send(request, self.caller);
        let front = self.front.send(request, self.caller);
        tokio::try_join!(direct, front).with_context(|| request.name.clone())
    }

    /// The namespaces of both sides, to be told apart no longer.
    pub(crate) fn namespaces(&self) -> [&str; 2] {
        [&self.direct.namespace, &self.front.namespace]
    }
}

async fn make_namespace(admin: &Client, name: &str) -> Result<()> {
    admin.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?.success()?;
    // Pods are admitted only into a namespace with this account; no controller makes it here.
    let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
    admin.post(&accounts, &json!({ "metadata": { "name": "default" } })).await?.success()?;
    Ok(())
}

impl Side {
    async fn send(&mut self, request: &Request, caller: &Caller) -> Result<Answer> {
        let wire = self.wire(request, caller);
        let answer = tokio::time::timeout(TIMEOUT, exchange(&self.client, self.protocol, &wire)).await;
        let answer = answer.context("timed out").and_then(|answer| answer);
        let answer = answer.with_context(|| format!("at {}", self.client.address()))?;
        if let Some(etag) = answer.header("etag") {
            self.etag = etag.to_vec();
        }
        if let Some(token) = CONTINUE.captures(&answer.body).and_then(|captures| captures.get(1)) {
            self.continue_token = token.as_bytes().to_vec();
        }
        Ok(answer)
    }

    fn wire(&self, request: &Request, caller: &Caller) -> Wire {
        if let Some(raw) = &request.raw {
            return Wire::Raw(self.fill(&raw.replace('\n', "\r\n")).into_owned());
        }
        let is_own = |name: &str| request.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let added = caller.headers.iter().filter(|(name, _)| !is_own(name));
        let added = added.map(|(name, value)| ((*name).to_owned(), value.clone().into_bytes()));
        let own = request.headers.iter().map(|(name, value)| (name.clone(), self.fill(value).into_owned()));
        Wire::Request {
            method: request.method.clone(),
            target: String::from_utf8_lossy(&self.fill(&request.target)).into_owned(),
            headers: own.chain(added).collect(),
            body: self.fill(&request.body).into_owned(),
        }
    }

    fn fill<'t>(&self, text: &'t str) -> Cow<'t, [u8]> {
        PLACEHOLDER.replace_all(text.as_bytes(), |captures: &Captures<'_>| {
            let word = |index| captures.get(index).map(|word| String::from_utf8_lossy(word.as_bytes()));
            let argument = word(2).unwrap_or_default();
            match word(1).as_deref() {
                Some("ns") => self.namespace.clone().into_bytes(),
                Some("continue") => self.continue_token.clone(),
                Some("etag") => self.etag.clone(),
                Some("repeat") => {
                    argument.repeat(word(3).and_then(|count| count.parse().ok()).unwrap_or_default()).into_bytes()
                }
                Some("hex") => data_encoding::HEXLOWER.decode(argument.as_bytes()).expect("hexadecimal digits"),
                other => panic!("{other:?} is no variable"),
            }
        })
    }
}
