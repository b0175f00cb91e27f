//! Sets of documents: what a real server lists in other orders, with parts left out and put in, and made ones. The same
//! in every run.

use serde_json::{Value, json};

/// Ending of the groups that a CRD or an APIService defines.
const DEFINED: &str = "example.com";

/// All that upstream alters of what a peer lists: servers before 1.34 write this of every group, with nothing in it, and
/// the merged list does not have it.
const NORMALIZED: &str = "creationTimestamp";

/// Ways to make a set of what a server lists.
pub(crate) const WAYS: usize = 5;

/// The group by which a set is known to have arrived.
pub(crate) fn mark(set: usize, peer: usize) -> String {
    format!("set{set}.peer{peer}.k8s.io")
}

/// What the peer of this number lists in the set of this number, while the server itself lists `captured`.
///
/// What CRDs and APIServices define stays behind what is built in, where every server has it, and is left out where what
/// stands before it is unknown to the server. Upstream leaves it out of its peers' lists and with that forgets what stood
/// before it, so that its servers list in different orders; fronts list in one, that of the server which knows both.
pub(crate) fn groups(set: usize, peer: usize, captured: &[Value]) -> Vec<Value> {
    let is_defined = |group: &Value| group["metadata"]["name"].as_str().is_some_and(|name| name.ends_with(DEFINED));
    let (defined, built_in): (Vec<Value>, Vec<Value>) = captured.iter().cloned().partition(is_defined);
    let mut groups = built_in_groups(set, peer, &built_in);
    if groups.last().is_some_and(|last| built_in.contains(last)) {
        groups.extend(defined);
    }
    groups
}

fn built_in_groups(set: usize, peer: usize, captured: &[Value]) -> Vec<Value> {
    let mut random = Random(set as u64 * 7919 + peer as u64 * 104_729 + 1);
    let mut groups = match set % WAYS {
        0 => captured.to_vec(),
        1 => random.shuffled(captured),
        2 => captured.iter().rev().cloned().collect(),
        3 => captured.iter().filter(|_| random.below(3) > 0).cloned().collect(),
        _ => Vec::new(),
    };
    if set % 2 == 1 {
        groups.iter_mut().for_each(|group| thin_out(group, &mut random));
    }
    for number in 0..random.below(6) {
        let at = random.below(groups.len() + 1);
        // Some names are made by several peers, with other versions and resources.
        groups.insert(at, made(&format!("made{}.k8s.io", random.below(4) * 10 + number), &mut random));
    }
    let at = random.below(groups.len() + 1);
    groups.insert(at, made(&mark(set, peer), &mut random));
    groups
}

/// Takes out and turns round some of what a group lists.
fn thin_out(group: &mut Value, random: &mut Random) {
    let Some(versions) = group["versions"].as_array_mut() else { return };
    if random.below(4) == 0 {
        versions.reverse();
    }
    for version in versions {
        if let Some(resources) = version["resources"].as_array_mut() {
            if random.below(3) == 0 {
                resources.reverse();
            }
            resources.retain(|_| random.below(10) > 0);
        }
    }
}

fn made(name: &str, random: &mut Random) -> Value {
    let all = ["v1", "v2", "v1beta1", "v1alpha1", "v2beta2"];
    let versions: Vec<&str> = random.shuffled(&all).into_iter().take(1 + random.below(3)).collect();
    let versions: Vec<Value> = versions.into_iter().map(|version| made_version(name, version, random)).collect();
    let mut metadata = json!({ "name": name });
    if random.below(2) == 0 {
        metadata[NORMALIZED] = Value::Null;
    }
    json!({ "metadata": metadata, "versions": versions })
}

fn made_version(group: &str, version: &str, random: &mut Random) -> Value {
    let names = ["apples", "pears", "plums", "nuts", "figs"];
    let count = 1 + random.below(names.len());
    let resources: Vec<Value> = random
        .shuffled(&names)
        .into_iter()
        .take(count)
        .map(|name| made_resource(group, version, name, random))
        .collect();
    json!({ "version": version, "resources": resources, "freshness": "Current" })
}

fn made_resource(group: &str, version: &str, name: &str, random: &mut Random) -> Value {
    let kind = json!({ "group": group, "version": version, "kind": name.to_uppercase() });
    let mut resource = json!({
        "resource": name,
        "responseKind": kind,
        "scope": if random.below(2) == 0 { "Namespaced" } else { "Cluster" },
        "singularResource": name.trim_end_matches('s'),
        "verbs": ["create", "delete", "get", "list", "watch"],
    });
    if random.below(2) == 0 {
        resource["shortNames"] = json!([&name[..2]]);
        resource["categories"] = json!(["all", "fruit"]);
    }
    if random.below(2) == 0 {
        resource["subresources"] =
            json!([{ "subresource": "status", "responseKind": kind, "verbs": ["get", "patch"] }]);
    }
    resource
}

/// Numbers that are the same in every run. Source: <https://prng.di.unimi.it/splitmix64.c>
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap_or_default()
    }

    fn shuffled<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let mut all = of.to_vec();
        for last in (1..all.len()).rev() {
            let other = self.below(last + 1);
            all.swap(last, other);
        }
        all
    }
}
