//! Who is calling. The only maker of [`Caller`].
//!
//! Takes a connection's certificates and a request's head, gives the caller, in the order and with the answers of
//! kube-apiserver: an asserted user of a front proxy, else the certificate's own user, else a token, else nobody.
//! Tokens are never looked into: the server that gets the request judges them. Sync and without I/O after
//! [`Authenticator::load`].
//!
//! Source: <https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubeapiserver/authenticator/config.go> (`New`)
//!
//! # Where this differs from kube-apiserver
//!
//! * A name, group, UID or extra that an HTTP header cannot carry unchanged (leading or trailing space, control
//!   characters, an empty group, bytes that are not UTF-8) is refused with 401, because identity travels on in headers.
//! * A leaf that is itself a CA or in the version 1 format is taken when a certificate of the CA file signed it
//!   directly; behind intermediates it is refused.
//! * A critical certificate-policies extension is refused instead of evaluated.
//! * RSA keys below 2048 bits and curves other than P-256, P-384, P-521 and Ed25519 are refused.

mod bearer_token;
mod chain;
mod connection;
pub mod identity_headers;
mod request_header;
mod union;
mod x509;

use std::path::PathBuf;
use std::sync::Arc;

pub use bearer_token::has_subprotocol_token;
pub use connection::Connection;
pub use union::Authenticator;

use crate::apimachinery::peer::Hop;
use crate::apimachinery::user::UserInfo;
use crate::tls;

/// The proven answer to "who asks". Its fields are private: whoever holds one got it from [`Authenticator::authenticate`].
#[derive(Clone, Debug)]
pub struct Caller {
    kind: CallerKind,
    front_proxy: bool,
    hop: Hop,
}

/// How much is known of a caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CallerKind {
    /// Proven here, by certificate or by a front proxy's word.
    User(Arc<UserInfo>),
    /// Carries a token, which the server that gets the request judges.
    Bearer,
    /// Carries no credential at all.
    Anonymous,
}

impl Caller {
    /// How much is known of the caller.
    #[must_use]
    pub fn kind(&self) -> &CallerKind {
        &self.kind
    }

    /// Whether the connection's certificate is that of an allowed front proxy.
    #[must_use]
    pub fn is_front_proxy(&self) -> bool {
        self.front_proxy
    }

    /// [`Hop::Last`] if a front proxy marked the request as forwarded; everyone else's mark means nothing.
    #[must_use]
    pub fn hop(&self) -> Hop {
        self.hop
    }
}

/// Why there is no authenticator, or no caller.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A CA bundle could not be read.
    #[error("cannot load the CA bundle of callers")]
    LoadAuthorities(#[source] Arc<tls::Error>),
    /// A certificate of a CA bundle cannot be used.
    #[error("certificate {index} in {path} cannot be used as a CA: replace or remove it (the first one is number 1)")]
    ParseAuthority {
        /// The bundle.
        path: PathBuf,
        /// Place in the bundle, from 1.
        index: usize,
    },
    /// The caller's credential does not hold. The client may see no more of it than 401 and "Unauthorized".
    #[error("unauthorized")]
    Unauthorized(#[source] Arc<Refusal>),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Unauthorized(Arc::new(refusal))
    }
}

/// What was wrong with a credential; for the log.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The certificate is not one of the client CA.
    #[error("the client certificate is not accepted: {0}")]
    Certificate(chain::Error),
    /// The certificate is not one of the request-header CA; the answer only where the client CA has no opinion of it.
    #[error("the certificate is not that of a front proxy: {0}")]
    FrontProxy(chain::Error),
    /// The front proxy's certificate is good, but its common name is not in the list.
    #[error("the front proxy's common name is not an allowed one")]
    NameNotAllowed,
    /// The certificate's subject holds a UID more than once, of the wrong type or empty.
    #[error("the certificate's UID must be one string that is not empty")]
    Uid,
    /// Part of the identity would arrive changed.
    #[error("the {0} cannot be carried unchanged by an HTTP header")]
    NotPortable(&'static str),
}

pub use chain::Error as CertificateError;
