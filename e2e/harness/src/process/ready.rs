use std::net::SocketAddrV4;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::client::Client;

/// How a process shows that it is ready.
#[derive(Debug)]
pub(crate) enum Ready {
    /// This path answers 200.
    Answers { client: Client, path: String },
    /// It listens here.
    Listens(SocketAddrV4),
}

/// Longer than any server takes that is going to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Ready {
    /// Says why the process is not ready yet.
    pub(crate) async fn check(&self) -> Result<()> {
        match self {
            Self::Answers { client, path } => {
                let response = client.clone().with_timeout(TIMEOUT).get(path).await?;
                ensure!(response.status == 200, "{path} answers {}: {}", response.status, response.text());
                Ok(())
            }
            Self::Listens(address) => Ok(tokio::net::TcpStream::connect(address).await.map(drop)?),
        }
    }
}
