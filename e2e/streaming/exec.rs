use anyhow::{Result, ensure};
use peerfront_e2e::Pod;

use crate::session::{Session, Transport};

/// kubectl falls back from WebSocket to SPDY without a word; with many words it says which one it speaks.
pub(crate) async fn speaks_the_transport_asked_for(session: &Session<'_>) -> Result<()> {
    let output = session.kubectl.run(&["exec", "-v=8", Pod::NAME, "--", "true"]).await?;
    ensure!(output.success, "{}", output.stderr);
    let is_web_socket = output.stderr.contains("Sec-Websocket-Protocol") && !output.stderr.contains("fallback");
    ensure!(is_web_socket == (session.transport == Transport::WebSocket), "{}", output.stderr);
    Ok(())
}

pub(crate) async fn carries_streams_and_exit_code(session: &Session<'_>) -> Result<()> {
    let output = session.exec(&["sh", "-c", "cat; echo trouble >&2; exit 42"], "some input\n").await?;
    ensure!(output.code == Some(42), "exit code {:?}: {}", output.code, output.stderr);
    ensure!(output.stdout == "some input\n", "stdout {:?}", output.stdout);
    ensure!(output.stderr.contains("trouble\n"), "stderr {:?}", output.stderr);

    let output = session.exec(&["sh", "-c", "kill -KILL $$"], "").await?;
    ensure!(output.code == Some(137), "exit code {:?} of a killed command: {}", output.code, output.stderr);
    Ok(())
}

/// The end of the input reaches the command, and everything before it as well.
pub(crate) async fn carries_megabytes_both_ways(session: &Session<'_>) -> Result<()> {
    let input: String = (0..200_000).map(|number| format!("line {number}\n")).collect();
    let output = session.exec(&["cat"], &input).await?.success()?;
    ensure!(output == input, "{} bytes came back of {}", output.len(), input.len());
    Ok(())
}
