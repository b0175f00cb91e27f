//! What is listed answers.

use anyhow::{Result, ensure};

use crate::Versions;

pub(crate) async fn for_whatever_is_listed_are_answered(versions: &Versions) -> Result<()> {
    let mut refused = Vec::new();
    let listable = versions.resources.iter().filter(|own| !own.is_subresource() && own.has_verb("list"));
    for resource in listable {
        let path = format!("{}/{}?limit=1", resource.prefix(), resource.name);
        for node in versions.cluster.nodes() {
            let client = versions.cluster.client(node.front(), &versions.cluster.admin());
            let answer = client.get(&path).await?;
            if answer.status != 200 {
                refused.push(format!("{path} through {}: {} {}", node.name(), answer.status, answer.text()));
            }
        }
    }
    ensure!(refused.is_empty(), "{refused:#?}");
    Ok(())
}
