use anyhow::{Context as _, Result};

use super::{Cluster, Server};
use crate::components::{self, Context};
use crate::programs;
use crate::topology::Version;

/// The newest release when this was written.
const VERSION: Version = Version { major: 3, minor: 16, patch: 0 };

impl Cluster {
    /// Starts a Prometheus with this configuration. Dropping it ends it.
    ///
    /// # Errors
    /// If it cannot be built or started; a configuration that it does not understand is in its log.
    pub async fn start_prometheus(&self, config: &str) -> Result<Server> {
        let program = programs::build(&[("prometheus", VERSION)], &self.records).await?.swap_remove(0);
        let path = self.directory().join("prometheus.yaml");
        std::fs::write(&path, config).with_context(|| format!("write {}", path.display()))?;
        let address = self.block.prometheus();
        let context = Context { directory: self.directory(), pki: &self.pki, records: &self.records };
        let prometheus = Server::new(address, components::prometheus(&context, program, address, &path));
        prometheus.start().await?;
        Ok(prometheus)
    }
}
