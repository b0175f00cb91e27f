//! A line in the log for each request that is answered here: the audit log of the server does not see it.

use bytes::Bytes;
use http::Response;

use super::error::{AUDIT_ID, Wording};
use crate::authn::{Caller, CallerKind};
use crate::request_info::RequestInfo;
use crate::telemetry::AGGREGATED_DISCOVERY;

/// Says who asked for what and what came of it. Whose token it was only the server knows.
pub(super) fn answered_here(
    caller: &Caller,
    info: Option<&RequestInfo<'_>>,
    wording: &Wording,
    response: &Response<Bytes>,
) {
    let user = match caller.kind() {
        CallerKind::User(user) => user.name.as_str(),
        CallerKind::Bearer => "bearer of a token",
        CallerKind::Anonymous => "system:anonymous",
    };
    let (verb, path) = info.map_or(("", ""), |info| (info.verb.as_ref(), info.path.as_ref()));
    let audit_id = response.headers().get(AUDIT_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    tracing::info!(target: AGGREGATED_DISCOVERY, user, user_agent = wording.user_agent(), verb, path,
        code = response.status().as_u16(), audit_id, "answered here");
}
