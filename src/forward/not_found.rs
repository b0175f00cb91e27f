//! Telling a 404 about a type from a 404 about an object.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt;

use super::body::StreamedBody;

/// How a server denies that it serves what was asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Denial {
    /// Plain text `404 page not found`: it has no such path.
    /// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/mux/pathrecorder.go> (`http.NotFound`)
    Path,
    /// A `Status` that names no object: it has the group version, but no such resource or subresource.
    /// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/responsewriters/errors.go>
    Resource,
}

/// The plain text, with its line end. To HEAD it is not sent, only its length.
const PAGE_NOT_FOUND: &[u8] = b"404 page not found\n";

/// The message of the `Status`, in whatever form that is encoded.
const RESOURCE_NOT_FOUND: &[u8] = b"the server could not find the requested resource";

/// Bodies longer than this say more than that something is missing; in bytes.
const LONGEST_DENIAL: u64 = 2048;

/// Looks into a short 404 to a request of this method whether it denies the type; any other answer passes untouched.
pub async fn denial(response: Response<StreamedBody>, method: &Method) -> (Response<StreamedBody>, Option<Denial>) {
    let length = length(&response).filter(|length| *length <= LONGEST_DENIAL);
    let Some(length) = length.filter(|_| response.status() == StatusCode::NOT_FOUND) else {
        return (response, None);
    };
    let is_text = response.headers().get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/plain"));
    if method == Method::HEAD {
        let is_denial = is_text && length == PAGE_NOT_FOUND.len() as u64;
        return (response, is_denial.then_some(Denial::Path));
    }
    let (head, body) = response.into_parts();
    let (bytes, body) = match body.collect().await {
        Ok(collected) => {
            let bytes = collected.to_bytes();
            (bytes.clone(), StreamedBody::read(bytes))
        }
        Err(error) => return (Response::from_parts(head, StreamedBody::broken(error)), None),
    };
    let denial = if is_text && bytes == PAGE_NOT_FOUND {
        Some(Denial::Path)
    } else if !is_text && contains(&bytes, RESOURCE_NOT_FOUND) {
        Some(Denial::Resource)
    } else {
        None
    };
    (Response::from_parts(head, body), denial)
}

fn length(response: &Response<StreamedBody>) -> Option<u64> {
    response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
