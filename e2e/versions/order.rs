//! The orders in which servers and fronts start: of every two, each is the first in one of them.

use std::fmt;

use anyhow::Result;
use peerfront_e2e::{Cluster, Node};

/// What starts first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// All servers, then all fronts.
    Servers,
    /// All fronts, then all servers.
    Fronts,
    /// The oldest server, its front, the next server, its front.
    Oldest,
    /// The newest server, its front, the next server, its front.
    Newest,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Servers => "servers_first",
            Self::Fronts => "fronts_first",
            Self::Oldest => "oldest_first",
            Self::Newest => "newest_first",
        })
    }
}

impl Order {
    pub(crate) const ALL: [Self; 4] = [Self::Servers, Self::Fronts, Self::Oldest, Self::Newest];

    /// The one in which the harness starts a cluster.
    pub(crate) const OF_THE_HARNESS: Self = Self::Servers;

    /// Ends all servers and fronts and starts them anew; returns when all fronts are ready.
    pub(crate) async fn restart(self, cluster: &Cluster) -> Result<()> {
        let nodes = cluster.nodes();
        for node in nodes {
            node.front().kill().await?;
            node.upstream().kill().await?;
        }
        match self {
            Self::Servers => {
                each(nodes, async |node| node.upstream().start().await).await?;
                each(nodes, async |node| node.front().process().spawn()).await?;
            }
            Self::Fronts => {
                each(nodes, async |node| node.front().process().spawn()).await?;
                each(nodes, async |node| node.upstream().start().await).await?;
            }
            Self::Oldest => each(nodes, start).await?,
            Self::Newest => each(nodes.iter().rev(), start).await?,
        }
        each(nodes, async |node| node.front().process().wait_ready().await).await
    }
}

/// Starts a node. Its front may not be ready before it has heard the others.
async fn start(node: &Node) -> Result<()> {
    node.upstream().start().await?;
    node.front().process().spawn()
}

async fn each<'a>(nodes: impl IntoIterator<Item = &'a Node>, step: impl AsyncFn(&'a Node) -> Result<()>) -> Result<()> {
    for node in nodes {
        step(node).await?;
    }
    Ok(())
}
