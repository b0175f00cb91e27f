//! A `Status` as bytes, equal to upstream's.
//!
//! Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/runtime/serializer/json/json.go>

use serde::Serialize;

use super::negotiation::Form;
use super::{Reason, Status, StatusDetails, protobuf};

pub(super) fn encode(status: &Status, form: Form) -> Vec<u8> {
    let document = Document::of(status);
    match form {
        Form::Json => {
            let mut json = escape_html(serde_json::to_vec(&document).unwrap_or_default());
            json.push(b'\n');
            json
        }
        Form::PrettyJson => escape_html(serde_json::to_vec_pretty(&document).unwrap_or_default()),
        // Through a JSON value, whose map sorts its keys as upstream's YAML does.
        Form::Yaml => {
            let value = serde_json::to_value(&document).unwrap_or_default();
            serde_norway::to_string(&value).unwrap_or_default().into_bytes()
        }
        Form::Protobuf => protobuf::encode(status),
    }
}

/// Fields in upstream's order. Invariant: none of them can fail to be serialized.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'s> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta,
    status: &'static str,
    message: &'s str,
    #[serde(skip_serializing_if = "is_unknown")]
    reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'s StatusDetails>,
    code: u16,
}

/// Always empty, always there.
#[derive(Serialize)]
struct ListMeta {}

impl<'s> Document<'s> {
    fn of(status: &'s Status) -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: ListMeta {},
            status: "Failure",
            message: &status.message,
            reason: status.reason,
            details: status.details.as_ref(),
            code: status.code,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_unknown(reason: &Reason) -> bool {
    *reason == Reason::Unknown
}

/// Escapes what Go's JSON encoder escapes and serde_json does not. These characters occur only within strings.
fn escape_html(json: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&json) else { return json };
    let special = |c| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    if !text.contains(special) {
        return json;
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if special(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped.into_bytes()
}
