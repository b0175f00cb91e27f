//! Everything that reads what strangers write, fed with seeds that were tampered with. Nothing may panic, and what was
//! understood must survive being written and read again.
//!
//! `cargo test` runs each target a fixed number of times. To search for hours, guided by what code an input reaches:
//! `cargo install cargo-bolero`, then `cargo bolero test --package peerfront-fuzz --sanitizer NONE TARGET`.

mod edits;
mod openapi;

use std::collections::BTreeMap;
use std::sync::Arc;

use bolero::check;
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use peerfront::apimachinery::discovery_path::DiscoveryPath;
use peerfront::apimachinery::gvr::GroupVersion;
use peerfront::apimachinery::media_type;
use peerfront::apimachinery::server_id::ServerId;
use peerfront::discovery::legacy::LegacyWalk;
use peerfront::discovery::negotiate::Version;
use peerfront::discovery::parse::{Document, is_v2beta1, parse_api_versions, parse_legacy_resources};
use peerfront::discovery::{self, ApiGroupDiscoveryList, Documents, Form, Found, Inputs, V2Beta1};
use peerfront::request_info::RequestInfo;

use edits::Edits;

/// Inputs of one target in a bounded run.
const RUNS: usize = 10_000;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const ACCEPT_SEED: &str = include_str!("seeds/accept.txt");
const DOCUMENTS: [&str; 4] = [
    include_str!("seeds/aggregated.json"),
    include_str!("seeds/versions.json"),
    include_str!("seeds/groups.json"),
    include_str!("seeds/resources.json"),
];

#[test]
fn accept_negotiation() {
    check!().with_type::<(Edits, Edits, Edits, bool)>().with_iterations(RUNS).for_each(
        |(accept, agent, query, is_given)| {
            let mut headers = HeaderMap::new();
            for (name, value) in [(ACCEPT, accept.of(ACCEPT_SEED)), (USER_AGENT, agent.of("Mozilla/5.0 curl/8"))] {
                headers.extend(HeaderValue::from_bytes(&value).map(|value| (name, value)));
            }
            let target = [b"/apis?", &*query.of("pretty=true&timeout=32s")].concat();
            let Ok(uri) = Uri::try_from(target) else { return };
            let v2beta1 = if *is_given { V2Beta1::Given } else { V2Beta1::Gone };
            for path in [DiscoveryPath::Api, DiscoveryPath::Apis, DiscoveryPath::ApisSlash] {
                let form = discovery::negotiate(&headers, &uri, &path, v2beta1);
                let is_gone = v2beta1 == V2Beta1::Gone;
                assert!(!(is_gone && matches!(form, Form::Aggregated(Version::V2Beta1, _))));
            }
            let header = media_type::accept_header(&headers);
            assert!(media_type::accept(header).len() <= header.split(',').count());
        },
    );
}

#[test]
fn media_types() {
    check!().with_type::<Edits>().with_iterations(RUNS).for_each(|edits| {
        let text = edits.of(AGGREGATED);
        if let Some(media_type) = media_type::MediaType::parse(&String::from_utf8_lossy(&text)) {
            assert!(media_type.includes(&media_type.main, &media_type.sub));
        }
    });
}

#[test]
fn discovery_documents() {
    check!().with_type::<(u8, Edits)>().with_iterations(RUNS).for_each(|(seed, edits)| {
        let body = edits.of(DOCUMENTS[usize::from(*seed) % DOCUMENTS.len()]);
        let _ = parse_api_versions(&body, None);
        let _ = is_v2beta1(&body, None);
        match discovery::parse(&body, Some("application/json")) {
            Ok(Document::Aggregated(list)) => survives(list),
            Ok(Document::Legacy(root)) => {
                let walk = LegacyWalk::new(root);
                assert!(walk.pending().all(|(_, path)| path.starts_with("/api")));
                survives(walk.finish(None));
            }
            Err(_) => {}
        }
    });
}

/// What was understood of a document is all there is: written and read again it is the same, and every encoding can be
/// made of it.
fn survives(list: ApiGroupDiscoveryList) {
    let text = serde_json::to_vec(&list).expect("a list that can be written");
    let again = discovery::parse(&text, Some(AGGREGATED)).expect("what was written can be read");
    assert_eq!(again, Document::Aggregated(list.clone()));

    let local = ServerId::from_hostname("node-a");
    let apis = BTreeMap::from([(local.clone(), Arc::new(list))]);
    let inputs = Inputs { local, api: apis.clone(), apis, legacy: BTreeMap::new(), v2beta1: V2Beta1::Given };
    let documents = Documents::build(&inputs);
    for encoding in ["json", "yaml", "vnd.kubernetes.protobuf"] {
        for accept in [AGGREGATED.replace("json", encoding), format!("application/{encoding}")] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(&accept).expect("a header"))]);
            let found = documents.find(&DiscoveryPath::Apis, &headers, &Uri::from_static("/apis"));
            assert!(matches!(found, Found::Page(_)), "{accept}: {found:?}");
        }
    }
}

#[test]
fn lists_of_resources() {
    let group_version = GroupVersion::new("apps", "v1");
    check!().with_type::<Edits>().with_iterations(RUNS).for_each(|edits| {
        let body = edits.of(DOCUMENTS[3]);
        if let Ok(list) = parse_legacy_resources(&body, Some("application/json"), &group_version) {
            assert!(["", "apps/v1"].contains(&list.group_version.as_str()));
        }
    });
}

#[test]
fn request_targets() {
    check!().with_type::<Edits>().with_iterations(RUNS).for_each(|edits| {
        let target =
            edits.of("/apis/apps/v1/namespaces/default/deployments/web/scale?watch=1&fieldSelector=metadata.name%3Dx");
        let Ok(uri) = Uri::try_from(target) else { return };
        for method in [Method::GET, Method::POST, Method::DELETE] {
            if let Ok(info) = RequestInfo::parse(&method, &uri) {
                let _ = info.is_long_running();
            }
        }
    });
}
