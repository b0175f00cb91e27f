//! Requests for OpenAPI documents: answered from the snapshot, or by a server that publishes the document.

use http::StatusCode;
use http::request::Parts;

use super::error::Error;
use super::{Answer, Call};
use crate::authz::Verdict;
use crate::forward::{Prepared, StreamedBody};
use crate::openapi;
use crate::routing::NotFound;

impl Call<'_> {
    /// Answers with an OpenAPI document, once the server has allowed this caller to read it.
    pub(super) async fn openapi(&self, page: &openapi::Page, head: &Parts) -> Result<Answer, Error> {
        let asked = openapi::serve::conditional(head);
        // That it has no such document is an answer as well.
        let ask = self.ask(asked.clone(), NotFound::Pass);
        match self.front.authorizer.reader(self.caller, &asked, ask).await? {
            Verdict::Allowed(reader) => Ok(Answer::Made(openapi::serve(&reader, page, head))),
            Verdict::Refused(answer) => Ok(Answer::Streamed(answer)),
        }
    }

    /// Sends a request for an OpenAPI document to the co-located server. That there is none is passed on only if the
    /// index does not list it and no other server may have it.
    pub(super) async fn to_publisher(
        &self,
        prepared: Prepared,
        is_listed: bool,
    ) -> Result<http::Response<StreamedBody>, Error> {
        let response = self.to_upstream(prepared, NotFound::Pass, self.stand_ins()).await?;
        if response.status() == StatusCode::NOT_FOUND && (is_listed || self.view.routes.incomplete()) {
            return Err(Error::Unavailable("no server that publishes this document can be reached"));
        }
        Ok(response)
    }
}
