//! One document of one server, in both forms.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderValue, StatusCode};
use tokio::sync::Semaphore;

use super::super::client::ServerClient;
use super::super::fetch::{self, Condition, FetchError, get};
use crate::apimachinery::server_id::ServerId;
use crate::openapi::Held;
use crate::openapi::index::Location;
use crate::openapi::merge::{Kind, check};

/// Bounds of what is taken.
#[derive(Clone, Copy, Debug)]
pub(in crate::peers) struct Limits {
    /// For an index: 5 s and 4 MiB, some four times that of a cluster with ten thousand CRDs.
    pub(super) index: fetch::Limits,
    /// For a document: 30 s, because a server makes it when it is first asked for, and 64 MiB, some ten times
    /// `/openapi/v2` of a cluster with a thousand CRDs.
    pub(super) document: fetch::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        let common = fetch::Limits::default();
        Self {
            index: fetch::Limits { bytes: 4 << 20, ..common },
            document: fetch::Limits { document: Duration::from_secs(30), bytes: 64 << 20, ..common },
        }
    }
}

/// A document that is to be fetched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Wanted {
    pub(super) server: ServerId,
    pub(super) document: Document,
    /// Whether the server publishes it by turns with another one.
    pub(super) comes_by_turns: bool,
}

/// Which one.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Document {
    /// Below `/openapi/v3`, with this content.
    V3(Location),
    /// `/openapi/v2`.
    V2,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) wanted: Wanted,
    pub(super) outcome: Result<Held, String>,
}

/// How often a document is asked for at once. The rarer of two that come by turns, one time of eight, is missed as often
/// in one of 5,000 cases.
const TURNS: u32 = 64;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Document {
    fn path(&self) -> &str {
        match self {
            Self::V3(location) => &location.url,
            Self::V2 => "/openapi/v2",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::V3(_) => Kind::V3,
            Self::V2 => Kind::V2,
        }
    }

    /// The older name of protobuf, which every server knows.
    fn protobuf(&self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::V3(_) => "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
            Self::V2 => "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        })
    }
}

/// Fetches a document when one of the server's permits is free.
pub(super) async fn fetch(client: ServerClient, permits: Arc<Semaphore>, wanted: Wanted, limits: Limits) -> Fetched {
    let _permit = permits.acquire().await;
    let turns = if wanted.comes_by_turns { TURNS } else { 1 };
    let outcome = both_forms(&client, &wanted.document, &limits.document, turns).await;
    Fetched { outcome: outcome.map_err(|error| super::super::chain(&error)), wanted }
}

async fn both_forms(
    client: &ServerClient,
    document: &Document,
    limits: &fetch::Limits,
    turns: u32,
) -> Result<Held, FetchError> {
    let path = document.path();
    let refused = |why: &'static str| FetchError::decode(path, why);
    let ask = |accept| by_turns(client, path, accept, limits, turns);
    let json = ask(JSON).await?.ok_or_else(|| refused("it is not answered"))?;
    let etag = json.etag.ok_or_else(|| refused("it has no entity tag"))?;
    let protobuf = match ask(document.protobuf()).await {
        Ok(answer) => {
            answer.filter(|answer| answer.etag.as_ref() == Some(&etag)).ok_or_else(|| refused("it changes"))?
        }
        // An extension server need not have this form.
        Err(FetchError::Status { status: StatusCode::NOT_ACCEPTABLE, .. }) => {
            return pack(document, &etag, &json.body, None).map_err(refused);
        }
        Err(error) => return Err(error),
    };
    let (document, path) = (document.clone(), path.to_owned());
    let packing = tokio::task::spawn_blocking(move || pack(&document, &etag, &json.body, Some(&protobuf.body)));
    match packing.await {
        Ok(packed) => packed.map_err(|why| FetchError::decode(&path, why)),
        Err(error) => Err(FetchError::decode(&path, error)),
    }
}

/// Asks up to so many times while the server has another document under this name.
async fn by_turns(
    client: &ServerClient,
    path: &str,
    accept: HeaderValue,
    limits: &fetch::Limits,
    turns: u32,
) -> Result<Option<fetch::Answer>, FetchError> {
    for _ in 1..turns {
        match get(client, path, Condition { accept: accept.clone(), if_none_match: None }, limits).await {
            Err(FetchError::Status { status: StatusCode::MOVED_PERMANENTLY, .. }) => {}
            answer => return answer,
        }
    }
    get(client, path, Condition { accept, if_none_match: None }, limits).await
}

/// Checks and compresses.
fn pack(document: &Document, etag: &HeaderValue, json: &[u8], protobuf: Option<&[u8]>) -> Result<Held, &'static str> {
    if check(document.kind(), json, None).is_err() {
        return Err("it is no OpenAPI document");
    }
    // Without a sound protobuf form there is the JSON all the same.
    let protobuf = protobuf.filter(|bytes| check(document.kind(), json, Some(bytes)).is_ok());
    let held = Held::of_server(etag, json, protobuf, SystemTime::now()).ok_or("its entity tag is none")?;
    match document {
        Document::V3(location) if location.hash().is_some_and(|hash| hash != held.hash) => {
            Err("it is another one by now")
        }
        _ => Ok(held),
    }
}
