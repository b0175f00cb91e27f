//! Everything that reads what strangers write, fed with seeds that were tampered with. Nothing may panic, and what was
//! understood must survive being written and read again.
//!
//! `cargo test` runs each target a fixed number of times. To search for hours, guided by what code an input reaches:
//! `cargo install cargo-bolero`, then `cargo bolero test --package peerfront-fuzz --sanitizer NONE TARGET`.

mod edits;

use bolero::check;
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use peerfront::apimachinery::gvr::GroupVersion;
use peerfront::apimachinery::media_type;
use peerfront::discovery::legacy::LegacyWalk;
use peerfront::discovery::parse::{Document, parse_resources};
use peerfront::discovery::{self, ApiGroupDiscoveryList};
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
    check!().with_type::<(Edits, Edits, Edits)>().with_iterations(RUNS).for_each(|(accept, agent, query)| {
        let accept = accept.of(ACCEPT_SEED);
        let mut headers = HeaderMap::new();
        for (name, value) in [(ACCEPT, accept), (USER_AGENT, agent.of("Mozilla/5.0 curl/8"))] {
            headers.extend(HeaderValue::from_bytes(&value).map(|value| (name, value)));
        }
        let target = [b"/apis?pretty=1&", &*query.of("pretty=true&timeout=32s")].concat();
        let Ok(uri) = Uri::try_from(target) else { return };
        let form = discovery::negotiate(&headers, &uri);
        assert_eq!(form, discovery::negotiate(&headers, &uri));
        let header = media_type::accept_header(&headers);
        assert!(media_type::accept(header).len() <= header.split(',').count());
    });
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
        match discovery::parse(&body, Some("application/json")) {
            Ok(Document::Aggregated(list)) => survives(&list),
            Ok(Document::Legacy(root)) => {
                let walk = LegacyWalk::new(root);
                assert!(walk.pending().all(|(_, path)| path.starts_with("/api")));
                survives(&walk.finish(None));
            }
            Err(_) => {}
        }
    });
}

/// What was understood of a document is all there is: written and read again it is the same.
fn survives(list: &ApiGroupDiscoveryList) {
    let text = serde_json::to_vec(list).expect("a list that can be written");
    let again = discovery::parse(&text, Some(AGGREGATED)).expect("what was written can be read");
    assert_eq!(again, Document::Aggregated(list.clone()));
}

#[test]
fn lists_of_resources() {
    let group_version = GroupVersion::new("apps", "v1");
    check!().with_type::<Edits>().with_iterations(RUNS).for_each(|edits| {
        let _ = parse_resources(&edits.of(DOCUMENTS[3]), Some("application/json"), &group_version);
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
