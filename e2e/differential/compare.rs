//! What is equal, and the one list of what need not be.

use std::sync::LazyLock;

use anyhow::{Result, ensure};
use peerfront::apimachinery::discovery_path::DiscoveryPath;
use regex::bytes::Regex;

use crate::exchange::Answer;
use crate::table::Request;

/// Whether a header may differ in these two answers.
type May = fn(&Request, &Answer, &Answer) -> bool;

/// Headers whose value may differ, each with the reason; they must still be there on both sides, and as often.
const VALUES_MAY_DIFFER: [(&str, May, &str); 4] = [
    ("date", always, "it is the time of the answer"),
    ("audit-id", not_chosen, "it is random unless the client chooses it"),
    (
        "last-modified",
        always,
        "the server builds OpenAPI documents when they are first asked for, and again as it likes",
    ),
    ("content-length", is_length_of_body, "it says what is compared anyway: the length of the body, which holds UIDs"),
];

/// Headers that may be missing from peerfront's answer, each with the reason.
const MAY_BE_MISSING: [(&str, May, &str); 4] = [
    ("content-length", is_medium_over_h2, "Go states it up to 4 KiB over HTTP/2, but only up to 2 KiB over HTTP/1.1"),
    ("connection", closes, "the server ends a connection of its own; the client's may go on"),
    ("x-kubernetes-pf-flowschema-uid", is_merged, "peerfront answers itself, so the server has put it in no flow"),
    ("x-kubernetes-pf-prioritylevel-uid", is_merged, "as above"),
];

/// Headers that peerfront's answer may have besides, each with the reason.
const MAY_BE_ADDED: [(&str, May, &str); 1] = [(
    "transfer-encoding",
    ends_with_connection,
    "a body that ends with the connection needs another end if that goes on",
)];

fn always(_: &Request, _: &Answer, _: &Answer) -> bool {
    true
}

fn not_chosen(request: &Request, _: &Answer, _: &Answer) -> bool {
    !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("audit-id"))
}

fn is_length_of_body(_: &Request, direct: &Answer, front: &Answer) -> bool {
    let states = |answer: &Answer| answer.header("content-length") == Some(answer.length.to_string().as_bytes());
    states(direct) && states(front)
}

/// A body whose length Go states over HTTP/2, but not over the HTTP/1.1 that peerfront speaks to it.
fn is_medium_over_h2(_: &Request, direct: &Answer, _: &Answer) -> bool {
    let is_h2 = !direct.status.contains(' ');
    let length = direct.header("content-length").and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
    is_h2 && length.is_some_and(|length: usize| (2049..=4096).contains(&length))
}

fn closes(_: &Request, direct: &Answer, _: &Answer) -> bool {
    direct.header("connection") == Some(b"close")
}

fn ends_with_connection(_: &Request, direct: &Answer, front: &Answer) -> bool {
    let is_framed = direct.header("content-length").or(direct.header("transfer-encoding")).is_some();
    !is_framed && front.header("transfer-encoding") == Some(b"chunked")
}

/// A merged document, or the word that the client has it; or what the table says that peerfront answers itself.
fn is_merged(request: &Request, direct: &Answer, _: &Answer) -> bool {
    let path = request.target.split('?').next().unwrap_or_default();
    let is_given = direct.status.starts_with("200") || direct.status.starts_with("304");
    let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    request.answered_here || is_given && DiscoveryPath::parse(&path).is_some()
}

/// The word to go on may come from peerfront where the server refuses before it wants the body.
fn is_told_to_go_on(direct: &Answer, front: &Answer) -> bool {
    direct.interim.is_empty() && front.interim == [100] && closes(&Request::default(), direct, front)
}

/// How the answers differ; `None` if they are equal.
pub(crate) fn difference(request: &Request, namespaces: [&str; 2], direct: &Answer, front: &Answer) -> Option<String> {
    if let Some(code) = &request.front {
        let is_other = !front.status.starts_with(&**code);
        return is_other.then(|| format!("{} instead of {code}", front.status));
    }
    let mut differences = Vec::new();
    let is_same_interim = direct.interim == front.interim || is_told_to_go_on(direct, front);
    if direct.status != front.status || !is_same_interim {
        let status = |answer: &Answer| format!("{} after {:?}", answer.status, answer.interim);
        differences.push(format!("status\n    direct: {}\n    front:  {}", status(direct), status(front)));
    }
    let [expected, got] = [(direct, namespaces[0]), (front, namespaces[1])]
        .map(|(of, namespace)| headers(request, direct, front, of, namespace));
    if expected != got {
        let only = |these: &[String], those: &[String]| {
            let only: Vec<_> = these.iter().filter(|line| count(these, line) > count(those, line)).cloned().collect();
            only.join("; ")
        };
        differences.push(format!(
            "headers\n    only direct: {}\n    only front:  {}",
            only(&expected, &got),
            only(&got, &expected)
        ));
    }
    if request.unstable {
        if direct.body.is_empty() != front.body.is_empty() {
            differences.push("one has no body".to_owned());
        }
    } else if direct.body != front.body {
        // Only now, as it takes time: most bodies are equal as they are.
        let [direct, front] = [(direct, namespaces[0]), (front, namespaces[1])].map(|(of, ns)| forget(&of.body, ns));
        if direct != front {
            differences.push(format!("body\n{}", body_difference(&direct, &front)));
        }
    }
    (!differences.is_empty()).then(|| format!("\n  {}", differences.join("\n  ")))
}

fn count(lines: &[String], line: &str) -> usize {
    lines.iter().filter(|other| *other == line).count()
}

/// An answer's headers as lines, sorted, without what may differ.
fn headers(request: &Request, direct: &Answer, front: &Answer, of: &Answer, namespace: &str) -> Vec<String> {
    let applies = |list: &[(&str, May, &str)], name: &str| {
        list.iter().any(|(listed, may, _)| name.eq_ignore_ascii_case(listed) && may(request, direct, front))
    };
    let missing = |name: &str| applies(&MAY_BE_MISSING, name) && front.header(name).is_none();
    let added = |name: &str| applies(&MAY_BE_ADDED, name) && direct.header(name).is_none();
    let kept = of.headers.iter().filter(|(name, _)| !missing(name) && !added(name));
    let mut lines: Vec<_> = kept
        .map(|(name, value)| {
            let differs = applies(&VALUES_MAY_DIFFER, name);
            let value = if differs {
                "(may differ)".to_owned()
            } else {
                String::from_utf8_lossy(value).replace(namespace, "NAMESPACE")
            };
            format!("{name}: {value}")
        })
        .collect();
    lines.sort();
    lines
}

fn body_difference(direct: &[u8], front: &[u8]) -> String {
    let at = direct.iter().zip(front).position(|(one, other)| one != other).unwrap_or(direct.len().min(front.len()));
    let around = |bytes: &[u8]| {
        let start = at.saturating_sub(60);
        String::from_utf8_lossy(&bytes[start..bytes.len().min(at + 200)]).escape_debug().to_string()
    };
    let lengths = (direct.len(), front.len());
    format!("    at byte {at} of {lengths:?}\n    direct: {}\n    front:  {}", around(direct), around(front))
}

/// What a server makes up anew for each object or moment, and what stands for it in a comparison.
static MADE_UP: LazyLock<Vec<(Regex, &[u8])>> = LazyLock::new(|| {
    let rules: [(&str, &[u8]); 9] = [
        // Tokens, and the places where a list goes on; both hold other things of this list.
        (r"eyJ[A-Za-z0-9_-]{20,}(\.[A-Za-z0-9_-]+)*=*", b"TOKEN"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"UID"),
        (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", b"TIME"),
        // The same in protobuf: seconds since 1970 as a varint of five bytes, then nanoseconds.
        (r"(?s)\x08[\x80-\xff]{4}\x06\x10.", b"TIME"),
        (r#"resourceVersion("?:\s*")\d+"#, b"resourceVersion${1}RV"),
        (r"(?i)(resource version: |current: |resourceVersion=)\d+", b"${1}RV"),
        // Protobuf: the sixth field of ObjectMeta after the fifth, and the second of ListMeta after an empty first.
        (r"(UID|\x0a\x00)([\x32\x12])[\x01-\x0a]\d+", b"${1}${2}RV"),
        (r"\b(gen|kube-api-access)-[a-z0-9]{5}\b", b"${1}-NAME"),
        // Ages in tables.
        (r#""\d+s""#, b"AGE"),
    ];
    rules
        .into_iter()
        .map(|(pattern, name)| (Regex::new(&format!("(?-u){pattern}")).expect("a regular expression"), name))
        .collect()
});

/// Replaces what cannot be equal: the side's namespace and what a server makes up.
fn forget(body: &[u8], namespace: &str) -> Vec<u8> {
    let namespace = Regex::new(namespace).expect("a namespace");
    let body = namespace.replace_all(body, &b"NAMESPACE"[..]).into_owned();
    MADE_UP.iter().fold(body, |body, (pattern, name)| pattern.replace_all(&body, *name).into_owned())
}

/// The comparison itself can fail: each header of an answer counts, and how often it is there.
pub(crate) fn one_header_more_or_less_is_a_difference() -> Result<()> {
    let header = |name: &str| (name.to_owned(), b"1".to_vec());
    let names = ["Audit-Id", "Cache-Control", "Content-Length", "Content-Type", "Date", "Vary", "X-Anything"];
    let answer = Answer {
        status: "200 OK".to_owned(),
        headers: names.iter().map(|name| header(name)).collect(),
        ..Answer::default()
    };
    let differ = |one: &Answer, other: &Answer| difference(&Request::default(), ["x", "y"], one, other).is_some();
    ensure!(!differ(&answer, &answer), "an answer differs from itself");
    for index in 0..names.len() {
        let mut other = answer.clone();
        let removed = other.headers.remove(index);
        ensure!(differ(&answer, &other) && differ(&other, &answer), "{} may be missing", removed.0);
        other.headers.extend([removed.clone(), removed.clone()]);
        ensure!(differ(&answer, &other) && differ(&other, &answer), "{} may be there twice", removed.0);
    }
    Ok(())
}
