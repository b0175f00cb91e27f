//! What is really stored, past every API server.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::Client;

/// Reads and writes keys through etcd's JSON gateway.
// Source: https://github.com/etcd-io/etcd/blob/v3.6.16/api/etcdserverpb/rpc.proto (KV.Range)
#[derive(Clone, Debug)]
pub struct EtcdClient {
    client: Client,
}

impl EtcdClient {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// All keys under a prefix such as `/registry/pods/`, in order.
    ///
    /// # Errors
    /// If etcd does not answer.
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        let request = json!({
            "key": STANDARD.encode(prefix),
            "range_end": STANDARD.encode(end_of(prefix)),
            "keys_only": true,
        });
        let answer = self.client.post("/v3/kv/range", &request).await?.success()?.json()?;
        let empty = Vec::new();
        let pairs = answer.get("kvs").and_then(Value::as_array).unwrap_or(&empty);
        pairs.iter().map(|pair| decode(pair.get("key"))).collect()
    }

    /// Stores a value.
    ///
    /// # Errors
    /// If etcd does not do it.
    pub async fn put(&self, key: &str, value: &str) -> Result<()> {
        let request = json!({ "key": STANDARD.encode(key), "value": STANDARD.encode(value) });
        self.client.post("/v3/kv/put", &request).await?.success().map(drop)
    }
}

/// The first key after all that begin with the prefix.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    // Text has no byte 0xff, so the last one can always be raised. The empty prefix ends nowhere, which is one zero.
    match end.last_mut() {
        Some(last) => *last += 1,
        None => end.push(0),
    }
    end
}

fn decode(key: Option<&Value>) -> Result<String> {
    let text = key.and_then(Value::as_str).context("a key in etcd's answer")?;
    Ok(String::from_utf8_lossy(&STANDARD.decode(text)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_ends_after_the_prefix() {
        assert_eq!(end_of("/registry/pods/"), b"/registry/pods0");
        assert_eq!(end_of(""), [0]);
    }
}
