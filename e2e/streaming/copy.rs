use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::Pod;

use crate::session::Session;

const BYTES: usize = 3 << 20;

/// Bytes without a pattern that a lost or repeated piece could leave intact.
fn bytes() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..BYTES / 8).flat_map(|_| step().to_le_bytes()).collect()
}

pub(crate) async fn brings_files_there_and_back(session: &Session<'_>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (there, back) = (folder.path().join("there.bin"), folder.path().join("back.bin"));
    let in_pod = session.pod.root().join("copied.bin");
    let bytes = bytes();
    std::fs::write(&there, &bytes)?;
    let remote = format!("{}:copied.bin", Pod::NAME);
    let local = |path: &std::path::Path| path.to_string_lossy().into_owned();

    session.kubectl.run(&["cp", &local(&there), &remote]).await?.success().context("to the pod")?;
    ensure!(std::fs::read(&in_pod)? == bytes, "the file in the pod differs");
    session.kubectl.run(&["cp", &remote, &local(&back)]).await?.success().context("from the pod")?;
    ensure!(std::fs::read(&back)? == bytes, "the file from the pod differs");
    std::fs::remove_file(in_pod)?;
    Ok(())
}
