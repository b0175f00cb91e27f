use anyhow::{Result, ensure};
use peerfront_e2e::Pod;

use crate::session::Session;

/// The server refuses the caller by name: it was not asked by somebody else in its stead.
pub(crate) async fn names_the_caller(session: &Session<'_>) -> Result<()> {
    session.limited.run(&["get", "pod", Pod::NAME]).await?.success()?;
    for arguments in [
        &["exec", Pod::NAME, "--", "true"][..],
        &["attach", "-i", Pod::NAME],
        &["port-forward", Pod::NAME, ":1"],
        &["logs", Pod::NAME],
    ] {
        let complaint = session.limited.run(arguments).await?.failure()?;
        let named = format!("User \"{}\" cannot", session.limited_name);
        ensure!(complaint.to_lowercase().contains("forbidden"), "{arguments:?}: {complaint}");
        // In a refusal of SPDY the message is quoted once more.
        ensure!(complaint.replace('\\', "").contains(&named), "{arguments:?}: {complaint}");
    }
    Ok(())
}
