//! Discovery documents: which of them a request gets, once the server has allowed its caller to read them.

use http::header::{ACCEPT, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

use super::error::Error;
use super::{Answer, Call};
use crate::apimachinery::discovery_path::DiscoveryPath;
use crate::authz::Verdict;
use crate::discovery::{self, Form, Found, V2Beta1};
use crate::forward::StreamedBody;
use crate::routing::{Candidates, NotFound};
use crate::view::Discovery;

impl Call<'_> {
    /// Answers with a merged document, once the server has allowed this caller to read it; `None` if there is none in the
    /// form that is asked for.
    pub(super) async fn discovery(&self, path: &DiscoveryPath, head: &Parts) -> Result<Option<Answer>, Error> {
        let found = match &self.view.discovery {
            Discovery::Merged(documents) => documents.find(path, &head.headers, &head.uri),
            Discovery::Awaited => match discovery::negotiate(&head.headers, &head.uri, path, V2Beta1::Given) {
                Form::Local => return Ok(self.left_as_local()),
                Form::LeftToUpstream => return Ok(None),
                _ => return Err(Error::Unavailable("not every server has said yet what it serves")),
            },
            Discovery::LeftToUpstream => return Ok(None),
        };
        let page = match found {
            Found::Page(page) => Some(page),
            Found::Unavailable => None,
            Found::Local => return Ok(self.left_as_local()),
            Found::LeftToUpstream => return Ok(None),
        };
        let reader = match self.front.authorizer.reader(self.caller, head, self.ask_for(path, head)).await? {
            Verdict::Allowed(reader) => reader,
            Verdict::Refused(answer) => return Ok(Some(Answer::Streamed(answer))),
        };
        let page = page.ok_or(Error::Unavailable("no server that serves this group version can be reached"))?;
        if page.is_aggregated() {
            self.front.metrics.discovery.merged.increment(1);
        }
        Ok(Some(Answer::Made(discovery::serve(&reader, &page, &head.headers))))
    }

    /// No answer of its own to a request for the local server's list.
    fn left_as_local(&self) -> Option<Answer> {
        self.front.metrics.discovery.local.increment(1);
        None
    }

    /// What the server says to this request, asked so that its answer is small where that is possible.
    async fn ask_for(&self, path: &DiscoveryPath, head: &Parts) -> Result<Response<StreamedBody>, Error> {
        let etag = match path {
            DiscoveryPath::Api => &self.view.local.api_etag,
            DiscoveryPath::Apis => &self.view.local.apis_etag,
            // That it has no such document is an answer as well.
            _ => return self.ask(head.clone(), NotFound::Pass).await,
        };
        let answer = self.ask(conditional(head, etag.as_ref()), NotFound::Unavailable).await?;
        match answer.status() {
            // A refusal in the form that the client accepts: what was asked just now accepts another.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_ACCEPTABLE => {
                self.ask(head.clone(), NotFound::Unavailable).await
            }
            _ => Ok(answer),
        }
    }

    /// The server's own answer to a request for a document.
    pub(super) async fn ask(&self, head: Parts, not_found: NotFound) -> Result<Response<StreamedBody>, Error> {
        let prepared = self.front.forwarder.prepare_bodiless(self.caller, self.context.client, head)?;
        self.to_upstream(prepared, not_found, self.stand_ins().map(Candidates::as_judges)).await
    }
}

/// The client's own request for a document, asking for the local view and for it only if it has changed.
fn conditional(head: &Parts, etag: Option<&HeaderValue>) -> Parts {
    let mut head = head.clone();
    let accept = discovery::accept_local_of(&head.headers);
    head.headers.insert(ACCEPT, accept);
    head.headers.remove(IF_NONE_MATCH);
    if let Some(etag) = etag {
        head.headers.insert(IF_NONE_MATCH, etag.clone());
    }
    head
}
