//! A `Status` as a protobuf message.
//!
//! Upstream's encoder writes every scalar field, also an empty one; that is why all are optional here and always set.
//!
//! Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/apis/meta/v1/generated.proto>

use prost::Message;

use super::Status;

/// `k8s.io.apimachinery.pkg.apis.meta.v1.Status`.
#[derive(Message)]
pub(super) struct Failure {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(string, optional, tag = "2")]
    status: Option<String>,
    #[prost(string, optional, tag = "3")]
    message: Option<String>,
    #[prost(string, optional, tag = "4")]
    reason: Option<String>,
    #[prost(message, optional, tag = "5")]
    details: Option<Details>,
    #[prost(int32, optional, tag = "6")]
    code: Option<i32>,
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta`, of which a failure sets nothing.
#[derive(Message)]
struct ListMeta {
    #[prost(string, optional, tag = "1")]
    self_link: Option<String>,
    #[prost(string, optional, tag = "2")]
    resource_version: Option<String>,
    #[prost(string, optional, tag = "3")]
    r#continue: Option<String>,
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.StatusDetails`.
#[derive(Message)]
struct Details {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    group: Option<String>,
    #[prost(string, optional, tag = "3")]
    kind: Option<String>,
    #[prost(message, repeated, tag = "4")]
    causes: Vec<Cause>,
    #[prost(int32, optional, tag = "5")]
    retry_after_seconds: Option<i32>,
    #[prost(string, optional, tag = "6")]
    uid: Option<String>,
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.StatusCause`.
#[derive(Message)]
struct Cause {
    #[prost(string, optional, tag = "1")]
    reason: Option<String>,
    #[prost(string, optional, tag = "2")]
    message: Option<String>,
    #[prost(string, optional, tag = "3")]
    field: Option<String>,
}

impl Failure {
    pub(super) fn of(status: &Status) -> Self {
        Self {
            metadata: Some(ListMeta { self_link: text(""), resource_version: text(""), r#continue: text("") }),
            status: text("Failure"),
            message: text(&status.message),
            reason: text(status.reason.as_str()),
            details: status.details.as_ref().map(|details| Details {
                name: text(&details.name),
                group: text(&details.group),
                kind: text(&details.kind),
                causes: details.causes.iter().map(Cause::of).collect(),
                retry_after_seconds: Some(i32::from(details.retry_after_seconds)),
                uid: text(&details.uid),
            }),
            code: Some(i32::from(status.code)),
        }
    }
}

impl Cause {
    fn of(cause: &super::StatusCause) -> Self {
        Self { reason: text(&cause.reason), message: text(&cause.message), field: text(&cause.field) }
    }
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}
