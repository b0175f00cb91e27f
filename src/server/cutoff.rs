//! When a front that stops ends what does not end by itself.
//!
//! Clients of a watch go on elsewhere where it ended, so that it need not be waited for; a short request has nobody else
//! to finish it.

use std::time::Duration;

use aws_lc_rs::rand;

use crate::drain;

/// The ends of watches, logs and tunnels are spread over this time: all clients coming back at once would be a burden for
/// the other nodes. It is short, because as long as they last the front that comes next has no port.
const SPREAD: Duration = Duration::from_secs(3);

/// How long short requests have; kube-apiserver's default limit for one.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/config.go> (`RequestTimeout`)
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until one long-running request is to end: a random part of the spread after the start of the drain.
pub(super) async fn reached(mut drain: drain::Watcher) {
    drain.draining().await;
    let mut random = [0; 2];
    if rand::fill(&mut random).is_ok() {
        tokio::time::sleep(SPREAD * u32::from(u16::from_be_bytes(random)) / u32::from(u16::MAX)).await;
    }
}
