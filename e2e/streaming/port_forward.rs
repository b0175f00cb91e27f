use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::Pod;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::session::{Session, Transport};

/// Longer than the transfer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

const BYTES: usize = 1 << 20;

/// Several connections one after another over one session, each with a megabyte there and back.
pub(crate) async fn carries_connections(session: &Session<'_>) -> Result<()> {
    let server = TcpListener::bind("127.0.0.1:0").await?;
    let port = server.local_addr()?.port();
    let echo = tokio::spawn(echo(server));
    let mut child =
        session.kubectl.spawn(&["port-forward", "-v=4", Pod::NAME, &format!(":{port}"), "--address=127.0.0.1"])?;
    let mut lines = BufReader::new(child.stdout.take().context("stdout")?).lines();
    let announced = timeout(PATIENCE, lines.next_line()).await.context("no port announced")??;
    let Some(line) = announced else {
        let output = child.wait_with_output().await?;
        anyhow::bail!("no port forwarded: {}", String::from_utf8_lossy(&output.stderr));
    };
    // "Forwarding from 127.0.0.1:40123 -> 8080"
    let address = line.split(' ').nth(2).context("no address")?.parse().with_context(|| line.clone())?;
    for _ in 0..3 {
        timeout(PATIENCE, exchange(address)).await.context("the megabyte does not come back")??;
    }
    child.start_kill()?;
    echo.abort();
    let output = child.wait_with_output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_web_socket = said.contains("WebSocket Upgrade Connection") && !said.contains("fallback");
    ensure!(is_web_socket == (session.transport == Transport::WebSocket), "{said}");
    Ok(())
}

async fn exchange(address: SocketAddr) -> Result<()> {
    let sent: Vec<u8> = (0..BYTES).map(|index| (index % 251) as u8).collect();
    let (mut reader, mut writer) = TcpStream::connect(address).await?.into_split();
    let to_send = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&to_send).await?;
        writer.shutdown().await
    });
    let mut received = Vec::new();
    reader.read_to_end(&mut received).await?;
    writing.await??;
    ensure!(received == sent, "{} bytes came back of {}", received.len(), sent.len());
    Ok(())
}

/// Sends back what comes, until it ends.
async fn echo(server: TcpListener) {
    while let Ok((stream, _)) = server.accept().await {
        tokio::spawn(async move {
            let (mut reader, mut writer) = stream.into_split();
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        });
    }
}
