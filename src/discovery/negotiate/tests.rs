use http::header::USER_AGENT;

use super::*;

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2_BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// A form in few letters: `v2 Json`, `v2beta1 Yaml`, `Protobuf` for a document of old, `-` for what is left to upstream.
fn form(headers: &[(http::HeaderName, &str)], uri: &str, v2beta1: V2Beta1) -> String {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    let uri: Uri = uri.parse().unwrap();
    match negotiate(&map, &uri, &DiscoveryPath::parse(uri.path()).unwrap(), v2beta1) {
        Form::Aggregated(Version::V2, encoding) => format!("v2 {encoding:?}"),
        Form::Aggregated(Version::V2Beta1, encoding) => format!("v2beta1 {encoding:?}"),
        Form::Legacy(encoding) => format!("{encoding:?}"),
        Form::Local => "local".to_owned(),
        Form::LeftToUpstream => "-".to_owned(),
    }
}

fn check(accept: &str, expected: &str) {
    assert_eq!(form(&[(ACCEPT, accept)], "/apis", V2Beta1::Gone), expected, "{accept}");
}

/// What is asked for at `/apis`, `/apis/`, `/apis/apps`, `/apis/apps/v1`, `/api/` and `/api/v1/`.
fn check_everywhere(headers: &[(http::HeaderName, &str)], expected: [&str; 6]) {
    let uris = ["/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/api/", "/api/v1/"];
    assert_eq!(uris.map(|uri| form(headers, uri, V2Beta1::Gone)), expected, "{headers:?}");
}

#[test]
fn clauses_of_the_client_come_last() {
    let client = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/yaml;q=0.9"))]);
    let accept = accept_local_of(&client);
    let (aggregated, own) = accept.to_str().unwrap().rsplit_once(',').unwrap();
    assert_eq!(own, "application/yaml;q=0.9");
    assert_eq!(format!("{aggregated},application/json"), ACCEPT_LOCAL);
}

#[test]
fn aggregated_clauses_win_in_order_of_quality() {
    check(V2, "v2 Json");
    check(&format!("{V2},application/json"), "v2 Json");
    // A clause without conversion is not allowed here and does not count, even before the other.
    check(&format!("application/json,{V2}"), "v2 Json");
    check(&format!("{V2};profile=nopeer,{V2},application/json"), "local");
    check(&format!("{V2};profile=nopeer").replace("json", "yaml"), "local");
    check(&format!("{V2};profile=nopeer;q=0.5,{V2};q=0.9"), "v2 Json");
    check(&format!("{V2};profile=local"), "v2 Json");
    check("application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io", "v2 Json");
    check(&V2.replace("application/json", "*/*"), "v2 Json");
    check(&V2.replace("application/json", "application/*"), "v2 Json");
    check(&format!("{V2};stream=watch"), "v2 Json");
    check(&format!("{V2};pretty=1"), "v2 PrettyJson");
    check(&V2.replace("json", "yaml"), "v2 Yaml");
    check(&V2.replace("json", "vnd.kubernetes.protobuf"), "v2 Protobuf");
    check(&format!("{},{V2}", V2.replace("json", "vnd.kubernetes.protobuf")), "v2 Protobuf");
    check(&format!("{},{V2}", V2.replace("json", "cbor")), "v2 Json");
    check(&format!("{},{V2}", V2.replace("json", "yaml") + ";stream=watch"), "v2 Json");
}

#[test]
fn beta_counts_while_it_is_given() {
    for (accept, given, gone) in [
        (V2_BETA1, "v2beta1 Json", "-"),
        (&format!("{V2_BETA1},{V2}"), "v2beta1 Json", "v2 Json"),
        (&format!("{V2_BETA1};q=0.5,{V2};q=0.9"), "v2 Json", "v2 Json"),
        (&format!("{V2_BETA1},application/json"), "v2beta1 Json", "Json"),
        (&V2_BETA1.replace("json", "yaml"), "v2beta1 Yaml", "-"),
    ] {
        assert_eq!(form(&[(ACCEPT, accept)], "/apis", V2Beta1::Given), given, "{accept}");
        assert_eq!(form(&[(ACCEPT, accept)], "/apis", V2Beta1::Gone), gone, "{accept}");
    }
}

#[test]
fn what_nobody_gives_is_left_to_the_upstream() {
    check("text/html", "-");
    check("application/cbor", "-");
    check(&V2.replace("json", "cbor"), "-");
    check(&V2.replace("v=v2", "v=v3"), "-");
    check(&V2.replace("as=API", "as=XPI"), "-");
    check(&V2.replace("g=api", "g=xpi"), "-");
    check(&format!("{V2};sv=v1"), "-");
    check(&format!("{V2};stream=other"), "-");
    check("application/yaml;stream=watch", "-");
    check(";;;,/,=", "-");
}

#[test]
fn documents_of_old_come_in_every_encoding() {
    check_everywhere(&[], ["Json"; 6]);
    check_everywhere(&[(ACCEPT, "")], ["Json"; 6]);
    check_everywhere(&[(ACCEPT, "*/*")], ["Json"; 6]);
    check_everywhere(&[(ACCEPT, "application/yaml")], ["Yaml"; 6]);
    check_everywhere(&[(ACCEPT, "application/json;q=0.5, application/yaml")], ["Yaml"; 6]);
    check_everywhere(&[(ACCEPT, "application/vnd.kubernetes.protobuf;stream=watch")], ["Protobuf"; 6]);
    check_everywhere(&[(ACCEPT, "application/json;pretty=1")], ["PrettyJson"; 6]);
    check_everywhere(&[(ACCEPT, "application/json;profile=nopeer")], ["Json"; 6]);
    check_everywhere(&[(ACCEPT, "application/json"), (ACCEPT, V2)], ["Json"; 6]);
    check_everywhere(&[(ACCEPT, V2)], ["v2 Json", "-", "-", "-", "v2 Json", "-"]);
    let either = format!("{V2},application/yaml");
    check_everywhere(&[(ACCEPT, &either)], ["v2 Json", "Yaml", "Yaml", "Yaml", "v2 Json", "Yaml"]);
}

#[test]
fn some_documents_lie_behind_a_stricter_router() {
    check_everywhere(&[(ACCEPT, "application/*")], ["Json", "Json", "Json", "-", "-", "-"]);
    let range = V2.replace("json", "*");
    check_everywhere(&[(ACCEPT, &range)], ["v2 Json", "-", "-", "-", "-", "-"]);
    check_everywhere(&[(CONTENT_TYPE, "text/plain")], ["Json", "Json", "Json", "-", "-", "-"]);
    check_everywhere(&[(CONTENT_TYPE, "application/yaml; charset=utf-8")], ["Json"; 6]);
    check_everywhere(&[(CONTENT_TYPE, "text/plain, application/json")], ["Json"; 6]);
}

#[test]
fn people_get_indented_json() {
    let from = |agent, uri| form(&[(ACCEPT, V2), (USER_AGENT, agent)], uri, V2Beta1::Gone);
    for agent in ["curl/8.0", "Wget/1", "Mozilla/5.0 (X11)"] {
        assert_eq!(from(agent, "/apis"), "v2 PrettyJson", "{agent}");
        assert_eq!(from(agent, "/apis?pretty="), "v2 PrettyJson", "{agent}");
        assert_eq!(from(agent, "/apis?pretty=0"), "v2 Json", "{agent}");
        assert_eq!(from(agent, "/apis?pretty=yes"), "v2 Json", "{agent}");
        assert_eq!(form(&[(USER_AGENT, agent)], "/api", V2Beta1::Gone), "PrettyJson", "{agent}");
    }
    assert_eq!(from("kubectl/v1.37.2", "/apis"), "v2 Json");
    assert_eq!(from("Mozilla/4.0", "/apis"), "v2 Json");
    assert_eq!(from("kubectl/v1.37.2", "/apis?a=b&pretty=true&pretty=false"), "v2 PrettyJson");
    let yaml = form(&[(ACCEPT, "application/yaml"), (USER_AGENT, "curl/8.0")], "/apis?pretty=1", V2Beta1::Gone);
    assert_eq!(yaml, "Yaml");
}
