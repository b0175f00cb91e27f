//! What a front's admin port counts.

use anyhow::{Context as _, Result};
use peerfront_e2e::Cluster;

/// Requests sent to a peer, under upstream's name and labels.
pub(crate) const REROUTED: &str = "apiserver_rerouted_request_total";

/// One scrape.
pub(crate) struct Scrape(String);

/// Scrapes the node's front.
pub(crate) async fn read(cluster: &Cluster, node: &str) -> Result<Scrape> {
    Ok(Scrape(cluster.admin_port(node).get("/metrics").await?.success()?.text()))
}

impl Scrape {
    /// The value of a series; absent if there is no such series.
    pub(crate) fn get(&self, family: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let series = self.0.lines().find(|line| {
            line.strip_prefix(family).is_some_and(|rest| rest.starts_with('{'))
                && wanted.iter().all(|label| line.contains(label))
        });
        series?.rsplit(' ').next()?.parse().ok()
    }

    /// The same, zero for a series that has not been counted yet.
    pub(crate) fn value(&self, family: &str, labels: &[(&str, &str)]) -> f64 {
        self.get(family, labels).unwrap_or_default()
    }

    /// The value of a series that must be there from the start.
    pub(crate) fn known(&self, family: &str, labels: &[(&str, &str)]) -> Result<f64> {
        self.get(family, labels).with_context(|| format!("no series {family} {labels:?} in\n{}", self.0))
    }
}
