use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::Pod;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use crate::session::Session;

/// Longer than an echo takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Each line comes back before the next is sent, and the end of the input ends the session.
pub(crate) async fn echoes(session: &Session<'_>) -> Result<()> {
    let mut child = session.kubectl.spawn(&["attach", "-i", Pod::NAME])?;
    let mut stdin = child.stdin.take().context("stdin")?;
    let mut lines = BufReader::new(child.stdout.take().context("stdout")?).lines();
    for line in ["first", "second"] {
        stdin.write_all(format!("{line}\n").as_bytes()).await?;
        let echo = timeout(PATIENCE, lines.next_line()).await.with_context(|| format!("no echo of {line}"))??;
        ensure!(echo.as_deref() == Some(line), "{echo:?} for {line}");
    }
    drop(stdin);
    let status = timeout(PATIENCE, child.wait()).await.context("the session does not end with its input")??;
    ensure!(status.success(), "attach ended with {status}");
    Ok(())
}
