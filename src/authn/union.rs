//! The order in which credentials count.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/authentication/request/union/union.go>,
//! <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/authentication/group/authenticated_group_adder.go>

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::request::Parts;
use metrics::Counter;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::chain::Authorities;
use super::connection::{Connection, FrontProxyTrust, Trust, Verdict};
use super::x509::Compatibility;
use super::{Caller, CallerKind, Error, bearer_token, request_header};
use crate::apimachinery::peer::{Hop, PEER_PROXIED};
use crate::apimachinery::user::{ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, UserInfo};
use crate::metrics::Registry;
use crate::settings::{AuthenticationSettings, IdentityHeaderNames};

/// Tells who calls; see the room's documentation.
pub struct Authenticator {
    trust: ArcSwap<Trust>,
    names: IdentityHeaderNames,
    counters: Counters,
}

impl Authenticator {
    /// Reads the CA bundles.
    ///
    /// # Errors
    /// If a bundle cannot be read or holds a certificate that cannot be used.
    pub fn load(settings: &AuthenticationSettings, registry: &Registry) -> Result<Self, Error> {
        let client = settings.client_ca_file.as_deref().map(Authorities::load).transpose()?;
        let mut front_proxy = None;
        if let Some(settings) = &settings.request_header {
            let authorities = Authorities::load(&settings.client_ca_file)?;
            front_proxy = Some(FrontProxyTrust { authorities, allowed_names: settings.allowed_names.clone() });
        }
        warn_of_universal_proxies(client.as_ref(), front_proxy.as_ref());
        let trust = Trust {
            generation: 0,
            client: client.map(Arc::new),
            front_proxy: front_proxy.map(Arc::new),
            compatibility: Compatibility::default(),
        };
        let counters = Counters::register(registry);
        Ok(Self { trust: ArcSwap::from_pointee(trust), names: settings.identity_headers.clone(), counters })
    }

    /// Reads certificates as the kube-apiserver of Kubernetes 1.`minor` does: since 1.32 it adds the credential ID,
    /// since 1.33 the UID. Until this is called, both are added.
    pub fn set_compatibility(&self, minor: u32) {
        let compatibility = Compatibility::of_minor(minor);
        self.trust.rcu(|trust| Trust {
            generation: trust.generation + 1,
            client: trust.client.clone(),
            front_proxy: trust.front_proxy.clone(),
            compatibility,
        });
    }

    /// Judges a connection's certificates, leaf first, whose key the handshake has proven. Once per connection.
    #[must_use]
    pub fn judge(&self, peer_certificates: &[CertificateDer<'static>]) -> Connection {
        self.judge_at(peer_certificates, UnixTime::now())
    }

    /// Who sends this request.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] if a credential was offered and none holds, or one holds that cannot be passed on.
    pub fn authenticate(&self, connection: &Connection, head: &Parts) -> Result<Caller, Error> {
        self.authenticate_at(connection, head, UnixTime::now())
    }

    fn judge_at(&self, peer_certificates: &[CertificateDer<'static>], now: UnixTime) -> Connection {
        Connection::judge(peer_certificates, &self.trust.load(), now)
    }

    fn authenticate_at(&self, connection: &Connection, head: &Parts, now: UnixTime) -> Result<Caller, Error> {
        let verdict = connection.verdict(&self.trust.load(), now);
        let marked = verdict.front_proxy && is_marked(head);
        let hop = if marked { Hop::Last } else { Hop::First };
        let result = self.kind(&verdict, head, hop);
        self.counters.count(&result);
        Ok(Caller { kind: result?, front_proxy: verdict.front_proxy, hop })
    }

    fn kind(&self, verdict: &Verdict, head: &Parts, hop: Hop) -> Result<CallerKind, Error> {
        if verdict.front_proxy
            && let Some(user) = request_header::user(&head.headers, &self.names)?
        {
            return Ok(CallerKind::User(Arc::new(user)));
        }
        let has_token = bearer_token::is_present(&head.headers);
        if hop == Hop::Last {
            // Invariant: between two fronts the certificate only carries the mark; it is never a user there.
            return Ok(if has_token { CallerKind::Bearer } else { CallerKind::Anonymous });
        }
        if let Some(user) = verdict.user.as_ref().map_err(Clone::clone)? {
            return Ok(CallerKind::User(Arc::clone(user)));
        }
        match &verdict.refusal {
            _ if has_token => Ok(CallerKind::Bearer),
            Some(refusal) => Err(refusal.clone()),
            None => Ok(CallerKind::Anonymous),
        }
    }
}

/// Adds the group of everyone who proved an identity, where kube-apiserver adds it.
pub(super) fn with_authenticated_group(mut user: UserInfo) -> UserInfo {
    let settled = |group: &String| group == ALL_AUTHENTICATED || group == ALL_UNAUTHENTICATED;
    if user.name != ANONYMOUS && !user.groups.iter().any(settled) {
        user.groups.push(ALL_AUTHENTICATED.to_owned());
    }
    user
}

fn is_marked(head: &Parts) -> bool {
    head.headers.get(PEER_PROXIED).is_some_and(|value| value == "true")
}

/// kube-apiserver takes such settings as well, so peerfront does; but nobody should have them unknowingly.
fn warn_of_universal_proxies(client: Option<&Authorities>, front_proxy: Option<&FrontProxyTrust>) {
    if every_user_is_a_front_proxy(client, front_proxy) {
        tracing::warn!(
            "every user with a client certificate can pass for anyone: client and request-header CA are the same and no \
             name is required of front proxies; set --requestheader-allowed-names"
        );
    }
}

fn every_user_is_a_front_proxy(client: Option<&Authorities>, front_proxy: Option<&FrontProxyTrust>) -> bool {
    let (Some(client), Some(front_proxy)) = (client, front_proxy) else { return false };
    front_proxy.allowed_names.is_empty() && client.shares_one_with(&front_proxy.authorities)
}

struct Counters {
    user: Counter,
    bearer: Counter,
    anonymous: Counter,
    refused: Counter,
}

impl Counters {
    fn register(registry: &Registry) -> Self {
        const NAME: &str = "peerfront_authentications_total";
        registry.describe_counter(NAME, "Requests by how their caller is known here; tokens are judged by the server.");
        let counter = |result| registry.counter(NAME, &[("result", result)]);
        Self {
            user: counter("user"),
            bearer: counter("bearer"),
            anonymous: counter("anonymous"),
            refused: counter("refused"),
        }
    }

    fn count(&self, result: &Result<CallerKind, Error>) {
        let counter = match result {
            Ok(CallerKind::User(_)) => &self.user,
            Ok(CallerKind::Bearer) => &self.bearer,
            Ok(CallerKind::Anonymous) => &self.anonymous,
            Err(_) => &self.refused,
        };
        counter.increment(1);
    }
}

#[cfg(test)]
mod tests;
