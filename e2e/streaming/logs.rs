use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::Pod;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::{Instant, timeout};

use crate::session::Session;

/// Longer than kubectl takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn come_whole(session: &Session<'_>) -> Result<()> {
    let log = session.kubectl.run(&["logs", Pod::NAME]).await?.success()?;
    let expected: String = (1..=10).map(|line| format!("line {line}\n")).collect();
    ensure!(log == expected, "{log}");
    let log = session.kubectl.run(&["logs", "--tail=2", Pod::NAME]).await?.success()?;
    ensure!(log == "line 9\nline 10\n", "{log}");
    Ok(())
}

/// The pod writes a line every 200 ms; nothing on the way waits for more than one.
pub(crate) async fn are_followed_line_by_line(session: &Session<'_>) -> Result<()> {
    let mut child = session.kubectl.spawn(&["logs", "-f", "--tail=1", Pod::NAME])?;
    let mut lines = BufReader::new(child.stdout.take().context("stdout")?).lines();
    let first = timeout(PATIENCE, lines.next_line()).await.context("no first line")??;
    ensure!(first.as_deref() == Some("line 10"), "{first:?}");
    let mut arrivals = vec![Instant::now()];
    for number in 11..=15 {
        let line = timeout(PATIENCE, lines.next_line()).await.with_context(|| format!("no line {number}"))??;
        ensure!(line == Some(format!("line {number}")), "{line:?} for line {number}");
        arrivals.push(Instant::now());
    }
    // Lines that were held back would have come together.
    let together = arrivals.windows(2).filter(|pair| pair[1] - pair[0] < Duration::from_millis(20)).count();
    ensure!(together <= 1, "{together} of five lines came together with the one before");
    child.kill().await?;
    Ok(())
}
