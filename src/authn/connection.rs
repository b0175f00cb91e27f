//! What one TLS connection's certificate proves. Judged once, and again when time or trust have changed the answer.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::chain::{Authorities, Facts};
use super::x509::{self, Compatibility};
use super::{Error, Refusal};
use crate::apimachinery::user::UserInfo;

/// The certificates of a connection and what they prove at present.
#[derive(Debug)]
pub struct Connection {
    certificates: Vec<CertificateDer<'static>>,
    verdict: ArcSwap<Verdict>,
}

impl Connection {
    /// Judges a chain, leaf first, whose key the handshake has proven; an empty one proves nothing.
    pub(super) fn judge(certificates: &[CertificateDer<'static>], trust: &Trust, now: UnixTime) -> Self {
        let verdict = Verdict::of(certificates, trust, now);
        Self { certificates: certificates.to_vec(), verdict: ArcSwap::from_pointee(verdict) }
    }

    /// The verdict that holds now.
    pub(super) fn verdict(&self, trust: &Trust, now: UnixTime) -> arc_swap::Guard<Arc<Verdict>> {
        let verdict = self.verdict.load();
        if verdict.generation == trust.generation && now.as_secs() < verdict.holds_until {
            return verdict;
        }
        self.verdict.store(Arc::new(Verdict::of(&self.certificates, trust, now)));
        self.verdict.load()
    }
}

/// In whose certificates to believe, and what to read off them. Replaced as a whole.
pub(super) struct Trust {
    /// Differs in every trust of one authenticator.
    pub(super) generation: u64,
    pub(super) client: Option<Arc<Authorities>>,
    pub(super) front_proxy: Option<Arc<FrontProxyTrust>>,
    pub(super) compatibility: Compatibility,
}

/// Whose word counts.
pub(super) struct FrontProxyTrust {
    pub(super) authorities: Authorities,
    /// Empty: every certificate of the authorities.
    pub(super) allowed_names: Vec<String>,
}

/// What a chain proves from the moment it was judged until `holds_until`.
#[derive(Debug)]
pub(super) struct Verdict {
    generation: u64,
    /// First second, since 1970, at which a certificate begins or ceases to be valid.
    holds_until: u64,
    /// Whether the connection is a front proxy's.
    pub(super) front_proxy: bool,
    /// The certificate's own user, an error that no other credential makes good, or nothing.
    pub(super) user: Result<Option<Arc<UserInfo>>, Error>,
    /// What was wrong, if anything: the answer where no other credential is offered.
    pub(super) refusal: Option<Error>,
}

impl Verdict {
    fn of(chain: &[CertificateDer<'static>], trust: &Trust, now: UnixTime) -> Self {
        let holds_until = holds_until(chain, trust, now);
        let mut verdict =
            Self { generation: trust.generation, holds_until, front_proxy: false, user: Ok(None), refusal: None };
        let Some(leaf) = chain.first() else { return verdict };
        if let Some(trust) = &trust.front_proxy {
            match judge_front_proxy(chain, trust, now) {
                Ok(()) => verdict.front_proxy = true,
                Err(refusal) => verdict.refusal = Some(refusal.into()),
            }
        }
        if let Some(authorities) = &trust.client {
            let user = authorities.verify(chain, now).map_err(Refusal::Certificate);
            match user.and_then(|()| x509::user(leaf, trust.compatibility)) {
                Ok(user) => verdict.user = Ok(user.map(Arc::new)),
                // The certificate is good and its user known, only not to be passed on: nobody else may be meant.
                Err(refusal @ Refusal::NotPortable(_)) => verdict.user = Err(refusal.into()),
                Err(refusal) => verdict.refusal = Some(refusal.into()),
            }
        }
        verdict
    }
}

fn judge_front_proxy(chain: &[CertificateDer<'static>], trust: &FrontProxyTrust, now: UnixTime) -> Result<(), Refusal> {
    trust.authorities.verify(chain, now).map_err(Refusal::FrontProxy)?;
    if trust.allowed_names.is_empty() {
        return Ok(());
    }
    let name = chain.first().and_then(x509::common_name).unwrap_or_default();
    if trust.allowed_names.contains(&name) { Ok(()) } else { Err(Refusal::NameNotAllowed) }
}

/// Every moment at which a certificate of the chain or of a bundle begins or ceases to be valid can change the verdict.
fn holds_until(chain: &[CertificateDer<'static>], trust: &Trust, now: UnixTime) -> u64 {
    let presented = chain.iter().flat_map(|der| {
        let parsed = X509Certificate::from_der(der);
        parsed.map_or([u64::MAX; 2], |(_, parsed)| Facts::of(&parsed).turning_points())
    });
    let client = trust.client.iter().flat_map(|authorities| authorities.turning_points());
    let front_proxy = trust.front_proxy.iter().flat_map(|trust| trust.authorities.turning_points());
    let all = presented.chain(client).chain(front_proxy);
    all.filter(|point| *point > now.as_secs()).min().unwrap_or(u64::MAX)
}
