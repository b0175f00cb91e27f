//! Where a message ends, and what belongs to one connection only.

use peerfront::testing::stub::{Exchange, Io, Served};

use crate::client::{self, whole};
use crate::fixture::{Fixture, ok};

/// A script that reads the request and writes these bytes, then goes on.
fn answering(bytes: &'static str) -> impl Fn(Exchange) -> Served + Send + Sync + 'static {
    move |exchange| Box::pin(written(exchange, bytes))
}

async fn written(mut exchange: Exchange, bytes: &'static str) -> Option<Io> {
    exchange.body().await.ok()?;
    exchange.write(bytes).await.ok()?;
    Some(exchange.io)
}

#[tokio::test]
async fn length_beside_chunks_smuggles_nothing() {
    let mut fixture = Fixture::start(ok).await;
    let hidden = "GET /api/v1/secrets HTTP/1.1\r\nHost: front\r\n\r\n";
    let chunked = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
    let total = chunked.len();
    let framings = [
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n".to_owned(),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {total}\r\n"),
        format!("Content-Length: {total}\r\nContent-Length: 0\r\n"),
        "Content-Length: 0, 0\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: identity\r\nContent-Length: 5\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "Content-Length: +5\r\n".to_owned(),
        "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n".to_owned(),
    ];
    for framing in &framings {
        let mut raw = fixture.raw().await;
        let head = format!("POST /api/v1/namespaces/d/configmaps HTTP/1.1\r\nHost: front\r\n{framing}\r\n");
        raw.write(head + &chunked).await;
        raw.head().await;
        raw.until_closed().await;
        for seen in fixture.stub.rest() {
            assert!(!seen.line().contains("secrets"), "{framing} let a hidden request through");
            let both = seen.all("content-length").len() + seen.all("transfer-encoding").len();
            assert!(both <= 1, "{framing} arrived as\n{}", seen.head);
        }
    }
}

#[tokio::test]
async fn headers_of_one_connection_stay_on_it_and_the_servers_is_reused() {
    let mut fixture = Fixture::start(answering(
        "HTTP/1.1 200 OK\r\nConnection: X-Foo\r\nX-Foo: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n\
         Audit-Id: a\r\nWarning: 299 - \"one\"\r\nWarning: 299 - \"two\"\r\nContent-Length: 2\r\n\r\nok",
    ))
    .await;
    let sent = "Connection: close, X-Bar\r\nX-Bar: 1\r\nKeep-Alive: timeout=1\r\nProxy-Connection: close\r\n\
                Proxy-Authorization: Basic eA==\r\nTE: trailers, gzip\r\nTrailer: X-Remote-User\r\nUpgrade: h2c\r\n";
    for _ in 0..20 {
        let mut raw = fixture.raw().await;
        let answer = raw.get("/api/v1/pods", sent).await;
        assert_eq!((answer.code(), answer.text().as_str()), (200, "ok"));
        assert_eq!(answer.all("warning"), ["299 - \"one\"", "299 - \"two\""]);
        for gone in ["x-foo", "keep-alive", "proxy-authenticate"] {
            assert!(answer.all(gone).is_empty(), "{}", answer.head);
        }
        let seen = fixture.stub.next().await;
        for gone in
            ["connection", "x-bar", "keep-alive", "proxy-connection", "proxy-authorization", "trailer", "upgrade"]
        {
            assert!(seen.all(gone).is_empty(), "{gone}:\n{}", seen.head);
        }
        assert!(seen.all("te").is_empty() || seen.all("te") == ["trailers"], "{}", seen.head);
    }
    assert_eq!(fixture.stub.connections(), 1);
    let mut h2 = fixture.h2().await;
    let answer = h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap();
    for gone in ["connection", "keep-alive", "x-foo", "transfer-encoding"] {
        assert!(!answer.headers().contains_key(gone), "{answer:?}");
    }
    assert_eq!(answer.headers().get_all("warning").iter().count(), 2);
}

#[tokio::test]
async fn chunked_answer_with_a_length_is_taken_by_its_chunks() {
    let script =
        answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    let fixture = Fixture::start(script).await;
    assert_eq!(fixture.raw().await.get("/api/v1/pods", "").await.text(), "abc");
    let mut h2 = fixture.h2().await;
    let answer = h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap();
    assert_eq!(whole(answer).await.unwrap(), "abc");
}

#[tokio::test]
async fn switch_that_nobody_asked_for_is_an_error() {
    let script = answering("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let fixture = Fixture::start(script).await;
    let mut raw = fixture.raw().await;
    assert_eq!(raw.get("/api/v1/pods", "").await.code(), 503);
    assert_eq!(raw.get("/api/v1/pods", "Connection: Upgrade\r\nUpgrade: h2c\r\n").await.code(), 503);
    let mut h2 = fixture.h2().await;
    assert_eq!(h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap().status(), 503);
}

#[tokio::test]
async fn answers_without_a_body_stay_so() {
    let mut fixture = Fixture::start(|exchange| {
        let line = exchange.seen.line().to_owned();
        let answer = match line.split(['/', ' ']).nth(2).unwrap() {
            "length" => "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n",
            "chunked" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "304" => "HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\n\r\n",
            "204" => "HTTP/1.1 204 No Content\r\n\r\n",
            other => panic!("{other}"),
        };
        Box::pin(written(exchange, answer))
    })
    .await;
    let mut h2 = fixture.h2().await;
    let mut raw = fixture.raw().await;
    for (method, path, code, length) in [
        ("HEAD", "/length", 200, Some("12345")),
        ("HEAD", "/chunked", 200, None),
        ("GET", "/304", 304, None),
        ("GET", "/204", 204, None),
    ] {
        raw.write(format!("{method} {path} HTTP/1.1\r\nHost: front\r\n\r\n")).await;
        let head = raw.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {code}")), "{head}");
        let found = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        assert_eq!(found, length, "{method} {path}: {head}");
        let mut request = client::request(path, &[]);
        *request.method_mut() = method.parse().unwrap();
        let answer = h2.send_request(request).await.unwrap();
        assert_eq!(answer.status(), code);
        let found = answer.headers().get("content-length").map(|value| value.to_str().unwrap());
        assert_eq!(found, length, "{method} {path}: {answer:?}");
        assert!(whole(answer).await.unwrap().is_empty());
    }
    assert_eq!(fixture.stub.rest().len(), 8);
    assert_eq!(fixture.stub.connections(), 2, "an answer without a body gives its connection back");
}

#[tokio::test]
async fn odd_targets_reach_the_server_or_are_refused() {
    let mut fixture = Fixture::start(ok).await;
    for (line, host, arrives) in [
        ("OPTIONS * HTTP/1.1", "front", Some(("OPTIONS * HTTP/1.1", "front"))),
        ("GET https://other:1/api?x=%2F HTTP/1.1", "front", Some(("GET /api?x=%2F HTTP/1.1", "other:1"))),
        ("GET https://u@other/x HTTP/1.1", "front", Some(("GET /x HTTP/1.1", "other"))),
        ("CONNECT a:443 HTTP/1.1", "front", None),
        ("CONNECT /x HTTP/1.1", "front", None),
        ("GET front HTTP/1.1", "front", None),
        // The HTTP library takes no such target.
        ("GET /a`b HTTP/1.1", "front", None),
        ("GET /a<b> HTTP/1.1", "front", None),
        ("GET front:443 HTTP/1.1", "front", None),
    ] {
        let mut raw = fixture.raw().await;
        raw.write(format!("{line}\r\nHost: {host}\r\n\r\n")).await;
        let answer = raw.answer().await;
        match arrives {
            Some((line, host)) => {
                assert_eq!(answer.code(), 200);
                let seen = fixture.stub.next().await;
                assert_eq!((seen.line(), seen.all("host")), (line, vec![host]));
            }
            None => {
                assert!([400, 405].contains(&answer.code()), "{line}: {}", answer.head);
                assert!(answer.text().contains(r#""kind":"Status""#), "{line}: {}", answer.text());
                assert!(fixture.stub.rest().is_empty(), "{line}");
            }
        }
    }
}

#[tokio::test]
async fn body_is_asked_for_once_and_arrives_whole() {
    let mut fixture = Fixture::start(ok).await;
    let mut raw = fixture.raw().await;
    raw.write(
        "POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: front\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    )
    .await;
    assert!(raw.head().await.starts_with("HTTP/1.1 100"));
    raw.write("abc").await;
    assert_eq!(raw.answer().await.code(), 200);
    let seen = fixture.stub.next().await;
    assert!(seen.all("expect").is_empty());
    assert_eq!(seen.all("content-length"), ["3"]);
    let mut h2 = fixture.h2().await;
    for (length, header, framing) in
        [(5, true, "content-length"), (5, false, "transfer-encoding"), (0, false, "content-length")]
    {
        let mut request = client::request("/api/v1/namespaces/d/pods", &[]).map(|_| client::unsized_body(length));
        *request.method_mut() = http::Method::POST;
        if header {
            request.headers_mut().insert("content-length", length.into());
        }
        assert_eq!(h2.send_request(request).await.unwrap().status(), 200);
        let seen = fixture.stub.next().await;
        let found: Vec<_> = seen
            .names()
            .into_iter()
            .filter(|name| ["content-length", "transfer-encoding"].contains(&name.as_str()))
            .collect();
        assert_eq!(found, [framing]);
    }
}

#[tokio::test]
async fn cookies_split_by_http2_are_one_header_again() {
    let mut fixture = Fixture::start(ok).await;
    let mut h2 = fixture.h2().await;
    let request = client::request("/api/v1/namespaces/d/services/s/proxy/", &[("cookie", "a=1"), ("cookie", "b=2")]);
    h2.send_request(request).await.unwrap();
    assert_eq!(fixture.stub.next().await.all("cookie"), ["a=1; b=2"]);
}
