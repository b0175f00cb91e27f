//! WebSockets of clients that are no kubectl: watches, and browsers that can send a token in a subprotocol only.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use peerfront_e2e::{Client, Identity, Pod};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use crate::session::{LocalServer, Streaming};

/// Longer than an event takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

const BUNDLES: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";
const BEARER: &str = "base64url.bearer.authorization.k8s.io";

/// What a server says to a request for a WebSocket, and the stream that follows if it agrees.
struct Handshake {
    status: StatusCode,
    protocol: Option<String>,
    stream: Option<TokioIo<hyper::upgrade::Upgraded>>,
}

async fn ask(client: &Client, path: &str, protocols: &[String]) -> Result<Handshake> {
    let mut request = Request::get(path)
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("Sec-WebSocket-Version", "13")
        // Without one, kube-apiserver refuses watches by WebSocket.
        .header("Origin", format!("https://{}", client.address()));
    for line in protocols {
        request = request.header("Sec-WebSocket-Protocol", line);
    }
    let mut connection = client.connect().await?;
    let answer = timeout(PATIENCE, connection.send(request.body(Bytes::new())?)).await.context("no answer")??;
    let status = answer.status();
    let protocol = answer.headers().get("sec-websocket-protocol").map(|value| value.to_str()).transpose()?;
    let protocol = protocol.map(str::to_owned);
    let stream = match status {
        StatusCode::SWITCHING_PROTOCOLS => Some(TokioIo::new(hyper::upgrade::on(answer.into_inner()).await?)),
        _ => None,
    };
    Ok(Handshake { status, protocol, stream })
}

/// Reads frames until a text, which servers send unmasked, has come.
async fn wait_for(handshake: Handshake, text: &str) -> Result<()> {
    let mut stream = handshake.stream.with_context(|| format!("no WebSocket but {}", handshake.status))?;
    let mut read = Vec::new();
    let wait = async {
        while !read.windows(text.len()).any(|window| window == text.as_bytes()) {
            if stream.read_buf(&mut read).await? == 0 {
                bail!("the stream ends");
            }
        }
        Ok(())
    };
    timeout(PATIENCE, wait)
        .await
        .context("nothing comes")
        .and_then(|done| done)
        .with_context(|| format!("waiting for {text:?} after {}", String::from_utf8_lossy(&read)))
}

/// Of what the local server serves, with it and without it, and of what only a peer serves.
pub(crate) async fn watches_deliver(streaming: &Streaming) -> Result<()> {
    streaming.bring(LocalServer::Running).await?;
    let cluster = &streaming.cluster;
    let client = cluster.client(streaming.node().front(), &cluster.admin());
    let bundle = json!({ "apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle",
        "metadata": { "name": "watched" }, "spec": { "trustBundle": cluster.pki().ca().certificate() } });
    let answer = client.post(BUNDLES, &bundle).await?;
    ensure!(answer.status == 201 || answer.status == 409, "{}: {}", answer.status, answer.text());
    for local in [LocalServer::Running, LocalServer::Stopped] {
        streaming.bring(local).await?;
        let pods = ask(&client, "/api/v1/namespaces/default/pods?watch=true", &[]).await?;
        wait_for(pods, &format!("\"name\":\"{}\"", Pod::NAME)).await.with_context(|| format!("pods, {local:?}"))?;
        let bundles = ask(&client, &format!("{BUNDLES}?watch=true"), &[]).await?;
        wait_for(bundles, "\"name\":\"watched\"").await.with_context(|| format!("bundles, {local:?}"))?;
    }
    Ok(())
}

/// Good or bad, in every form, a subprotocol token has the outcome that it has without a front.
pub(crate) async fn tokens_in_a_subprotocol_mean_what_they_mean_directly(streaming: &Streaming) -> Result<()> {
    let cluster = &streaming.cluster;
    streaming.bring(LocalServer::Running).await?;
    let token = cluster.service_account_token("default", "operator").await?;
    let token = data_encoding::BASE64URL_NOPAD.encode(token.as_bytes());
    let path = format!("/api/v1/namespaces/default/pods/{}/exec?command=echo&command=hello&stdout=true", Pod::NAME);
    let v5 = "v5.channel.k8s.io";
    let cases = [
        vec![format!("{BEARER}.{token}, {v5}")],
        vec![v5.to_owned(), format!("{BEARER}.{token}")],
        vec![format!("{BEARER}.{token}")],
        vec![format!("{BEARER}.{token}==, {v5}")],
        vec![format!("{BEARER}.!!!, {v5}")],
        vec![format!("{BEARER}.bm90YXRva2Vu, {v5}")],
        vec![format!("{BEARER}., {v5}")],
        vec![format!("{BEARER}.{token}, {BEARER}.{token}, {v5}")],
        vec![v5.to_owned()],
    ];
    let nobody = Identity::anonymous();
    for local in [LocalServer::Running, LocalServer::Stopped] {
        streaming.bring(local).await?;
        let front = cluster.client(streaming.node().front(), &nobody);
        let direct = cluster.client(cluster.node("node-b").upstream(), &nobody);
        for (number, case) in cases.iter().enumerate() {
            let (ours, theirs) = (ask(&front, &path, case).await?, ask(&direct, &path, case).await?);
            let what = format!("case {number}, local server {local:?}");
            ensure!(ours.status == theirs.status, "{what}: {} instead of {}", ours.status, theirs.status);
            ensure!(ours.protocol == theirs.protocol, "{what}: {:?} instead of {:?}", ours.protocol, theirs.protocol);
            let is_good = number < 2;
            ensure!((ours.status == 101) == is_good, "{what}: {}", ours.status);
            if is_good {
                ensure!(ours.protocol.as_deref() == Some(v5), "{what}: {:?}", ours.protocol);
                wait_for(ours, "hello\n").await.context(what)?;
            }
        }
    }
    let logs = [cluster.node("node-a"), cluster.node("node-b")].map(|node| node.front().process().log_text());
    ensure!(logs.iter().all(|log| !log.contains(&token)), "the token stands in a front's log");
    Ok(())
}
