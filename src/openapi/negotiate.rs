//! In which form a document is asked for, decided as upstream decides.
//!
//! Sources: <https://github.com/kubernetes/kube-openapi/blob/43fb72c5454a/pkg/handler3/handler.go> (`HandleGroupVersion`),
//! <https://github.com/kubernetes/kube-openapi/blob/43fb72c5454a/pkg/handler/handler.go>

use http::HeaderMap;

use super::merge::Kind;
use crate::apimachinery::media_type;

/// What is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    Json,
    Protobuf,
}

impl Form {
    /// Its `Content-Type`. The older name of protobuf is only asked for, never sent.
    pub(super) fn content_type(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Json, _) => "application/json",
            (Self::Protobuf, Kind::V3) => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
            (Self::Protobuf, Kind::V2) => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        }
    }
}

/// What an `Accept` header comes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Negotiated {
    /// This form.
    Form(Form),
    /// None that there is.
    NotAcceptable,
    /// It names no media type at all.
    Unreadable,
}

/// Finds the form that is liked best.
pub(super) fn negotiate(headers: &HeaderMap, kind: Kind, has_protobuf: bool) -> Negotiated {
    let subs: [(&str, Form); 3] = match kind {
        Kind::V3 => [
            ("json", Form::Json),
            ("com.github.proto-openapi.spec.v3.v1.0+protobuf", Form::Protobuf),
            ("com.github.proto-openapi.spec.v3@v1.0+protobuf", Form::Protobuf),
        ],
        Kind::V2 => [
            ("json", Form::Json),
            ("com.github.proto-openapi.spec.v2@v1.0+protobuf", Form::Protobuf),
            ("com.github.proto-openapi.spec.v2.v1.0+protobuf", Form::Protobuf),
        ],
    };
    let header = match media_type::accept_header(headers) {
        "" => "*/*",
        header => header,
    };
    let clauses = media_type::accept(header);
    if clauses.is_empty() {
        return Negotiated::Unreadable;
    }
    let wanted =
        clauses.iter().map(|clause| &clause.media_type).filter(|one| one.main == "application" || one.main == "*");
    for wanted in wanted {
        let is_wanted = |(sub, _): &&(&str, Form)| wanted.sub == *sub || wanted.sub == "*";
        let mut found = subs.iter().filter(is_wanted).map(|(_, form)| *form);
        if let Some(form) = found.find(|form| *form == Form::Json || has_protobuf) {
            return Negotiated::Form(form);
        }
    }
    Negotiated::NotAcceptable
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::ACCEPT;
    use proptest::prelude::*;

    use super::*;

    fn check(accept: &str, kind: Kind, expected: Negotiated) {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accept).unwrap())]);
        assert_eq!(negotiate(&headers, kind, true), expected, "{accept}");
    }

    #[test]
    fn form_is_that_of_upstream() {
        let (json, protobuf) = (Negotiated::Form(Form::Json), Negotiated::Form(Form::Protobuf));
        for kind in [Kind::V2, Kind::V3] {
            assert_eq!(negotiate(&HeaderMap::new(), kind, true), json);
            for accept in ["", "*/*", "application/*", "*/json", "application/json;q=0.1", "text/html,application/json"]
            {
                check(accept, kind, json);
            }
            for accept in ["text/html", "application/yaml", "text/*"] {
                check(accept, kind, Negotiated::NotAcceptable);
            }
            for accept in [",", "foo"] {
                check(accept, kind, Negotiated::Unreadable);
            }
        }
        for accept in [
            "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
            "application/json;q=0.5,application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        ] {
            check(accept, Kind::V3, protobuf);
            check(&accept.replace("v3", "v2"), Kind::V2, protobuf);
        }
        check("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", Kind::V3, Negotiated::NotAcceptable);
    }

    #[test]
    fn form_that_is_not_there_is_passed_over() {
        let ask = |accept: &'static str| {
            negotiate(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]), Kind::V3, false)
        };
        assert_eq!(ask("application/com.github.proto-openapi.spec.v3@v1.0+protobuf"), Negotiated::NotAcceptable);
        let both = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf,application/json;q=0.1";
        assert_eq!(ask(both), Negotiated::Form(Form::Json));
    }

    proptest! {
        #[test]
        fn no_header_panics(accept in "[ -~]{0,60}") {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(&accept).unwrap())]);
            let _ = negotiate(&headers, Kind::V3, true);
        }
    }
}
