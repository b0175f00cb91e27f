use std::time::{Duration, SystemTime};

use http::Request;
use tempfile::TempDir;

use super::*;
use crate::authn::{CertificateError, Refusal};
use crate::testing::pki::{ControlPlane, ExtendedKeyUsage, Identity, Profile};

struct Fixture {
    plane: ControlPlane,
    settings: AuthenticationSettings,
    registry: Registry,
    _directory: TempDir,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let plane = ControlPlane::new(directory.path());
    Fixture { settings: plane.authentication_settings(), plane, registry: Registry::new(), _directory: directory }
}

impl Fixture {
    fn authenticator(&self) -> Authenticator {
        Authenticator::load(&self.settings, &self.registry).unwrap()
    }

    /// One request on a connection with this certificate.
    fn ask(&self, certificate: Option<&Identity>, headers: &[(&str, &str)]) -> Result<Caller, Error> {
        let authenticator = self.authenticator();
        let chain = certificate.map(|identity| identity.chain.clone()).unwrap_or_default();
        authenticator.authenticate(&authenticator.judge(&chain), &head(headers))
    }
}

fn head(headers: &[(&str, &str)]) -> Parts {
    let builder = headers.iter().fold(Request::builder(), |builder, (name, value)| builder.header(*name, *value));
    builder.body(()).unwrap().into_parts().0
}

fn name(caller: &Caller) -> &str {
    match caller.kind() {
        CallerKind::User(user) => &user.name,
        CallerKind::Bearer => "(bearer)",
        CallerKind::Anonymous => "(anonymous)",
    }
}

fn refusal(result: Result<Caller, Error>) -> Refusal {
    match result {
        Err(Error::Unauthorized(refusal)) => (*refusal).clone(),
        other => panic!("not refused: {other:?}"),
    }
}

const TOKEN: (&str, &str) = ("authorization", "Bearer token");
const ROOT: (&str, &str) = ("x-remote-user", "root");
const MARK: (&str, &str) = ("x-kubernetes-peer-proxied", "true");

#[test]
fn no_credential_is_anonymous() {
    let fixture = fixture();
    for headers in [&[][..], &[ROOT], &[MARK], &[("authorization", "Basic x")], &[("authorization", "Bearer ")]] {
        let caller = fixture.ask(None, headers).unwrap();
        assert_eq!((name(&caller), caller.is_front_proxy(), caller.hop()), ("(anonymous)", false, Hop::First));
    }
}

#[test]
fn token_is_left_to_the_server() {
    let fixture = fixture();
    let caller = fixture.ask(None, &[TOKEN, ROOT, MARK]).unwrap();
    assert_eq!((name(&caller), caller.is_front_proxy(), caller.hop()), ("(bearer)", false, Hop::First));
}

#[test]
fn valid_certificate_wins_over_tokens_and_forged_headers() {
    let fixture = fixture();
    let alice = fixture.plane.user("alice", &["dev"]);
    for headers in [&[][..], &[TOKEN], &[ROOT, ("x-remote-group", "system:masters")], &[MARK, ROOT, TOKEN]] {
        let caller = fixture.ask(Some(&alice), headers).unwrap();
        let CallerKind::User(user) = caller.kind() else { panic!("{caller:?}") };
        assert_eq!(
            (user.name.as_str(), user.groups.as_slice()),
            ("alice", &["dev".to_owned(), "system:authenticated".to_owned()][..])
        );
        assert_eq!((caller.is_front_proxy(), caller.hop()), (false, Hop::First));
    }
}

#[test]
fn bad_certificate_is_401_unless_a_token_decides() {
    let fixture = fixture();
    let ca = &fixture.plane.client_ca;
    let alice = || Profile::client("alice");
    for (bad, expected) in [
        (ca.issue(&alice().expired()), CertificateError::Validity),
        (ca.issue(&alice().not_yet_valid()), CertificateError::Validity),
        (ca.issue(&alice().usages(&[ExtendedKeyUsage::ServerAuth])), CertificateError::Usage),
        (Identity::root("unknown").issue(&alice()), CertificateError::UnknownIssuer),
        (Identity::self_signed(&alice()), CertificateError::UnknownIssuer),
    ] {
        assert_eq!(refusal(fixture.ask(Some(&bad), &[ROOT])), Refusal::Certificate(expected));
        assert_eq!(name(&fixture.ask(Some(&bad), &[TOKEN, ROOT]).unwrap()), "(bearer)");
    }
}

#[test]
fn error_message_tells_the_client_nothing() {
    let fixture = fixture();
    let error = fixture.ask(Some(&Identity::self_signed(&Profile::client("alice"))), &[]).unwrap_err();
    assert_eq!(error.to_string(), "unauthorized");
}

#[test]
fn certificate_without_common_name_has_no_opinion() {
    let mut fixture = fixture();
    let nameless = fixture.plane.client_ca.issue(&Profile::client("").organization("dev"));
    // The request-header authenticator has tried it too and failed.
    assert_eq!(refusal(fixture.ask(Some(&nameless), &[])), Refusal::FrontProxy(CertificateError::UnknownIssuer));
    fixture.settings.request_header = None;
    assert_eq!(name(&fixture.ask(Some(&nameless), &[]).unwrap()), "(anonymous)");
}

#[test]
fn certificate_means_nothing_where_no_authority_is_configured() {
    let mut fixture = fixture();
    fixture.settings.client_ca_file = None;
    let alice = fixture.plane.user("alice", &[]);
    assert_eq!(refusal(fixture.ask(Some(&alice), &[])), Refusal::FrontProxy(CertificateError::UnknownIssuer));
    fixture.settings.request_header = None;
    assert_eq!(name(&fixture.ask(Some(&alice), &[ROOT]).unwrap()), "(anonymous)");
}

#[test]
fn user_that_cannot_be_passed_on_is_401_even_with_a_token() {
    let fixture = fixture();
    for user in [fixture.plane.user(" bob", &[]), fixture.plane.user("bob", &[" system:masters"])] {
        assert!(matches!(refusal(fixture.ask(Some(&user), &[])), Refusal::NotPortable(_)));
        assert!(matches!(refusal(fixture.ask(Some(&user), &[TOKEN])), Refusal::NotPortable(_)));
    }
}

#[test]
fn front_proxy_asserts_users() {
    let fixture = fixture();
    let proxy = fixture.plane.front_proxy();
    let caller = fixture.ask(Some(&proxy), &[ROOT, ("x-remote-group", "ops"), TOKEN]).unwrap();
    let CallerKind::User(user) = caller.kind() else { panic!("{caller:?}") };
    assert_eq!((user.name.as_str(), user.groups.len()), ("root", 2));
    assert_eq!((caller.is_front_proxy(), caller.hop()), (true, Hop::First));
    let marked = fixture.ask(Some(&proxy), &[ROOT, MARK]).unwrap();
    assert_eq!((name(&marked), marked.hop()), ("root", Hop::Last));
}

#[test]
fn unmarked_front_proxy_without_a_user_is_judged_as_upstream_judges() {
    let fixture = fixture();
    let proxy = fixture.plane.front_proxy();
    assert_eq!(refusal(fixture.ask(Some(&proxy), &[])), Refusal::Certificate(CertificateError::UnknownIssuer));
    assert_eq!(name(&fixture.ask(Some(&proxy), &[TOKEN]).unwrap()), "(bearer)");
}

#[test]
fn marked_front_proxy_without_a_user_is_never_a_user_itself() {
    let mut fixture = fixture();
    // Even where its certificate is a user's as well.
    fixture.settings.client_ca_file = Some(fixture.plane.path("front-proxy-ca.crt"));
    let proxy = fixture.plane.front_proxy();
    for (headers, expected) in [(&[MARK][..], "(anonymous)"), (&[MARK, TOKEN], "(bearer)")] {
        let caller = fixture.ask(Some(&proxy), headers).unwrap();
        assert_eq!((name(&caller), caller.hop(), caller.is_front_proxy()), (expected, Hop::Last, true));
    }
    assert_eq!(name(&fixture.ask(Some(&proxy), &[]).unwrap()), "front-proxy-client");
}

#[test]
fn mark_must_be_spelled_as_upstream_spells_it() {
    let fixture = fixture();
    let proxy = fixture.plane.front_proxy();
    for value in ["TRUE", "1", "false", ""] {
        let caller = fixture.ask(Some(&proxy), &[ROOT, ("x-kubernetes-peer-proxied", value)]).unwrap();
        assert_eq!(caller.hop(), Hop::First, "{value:?}");
    }
}

#[test]
fn front_proxy_must_be_of_its_authority_valid_and_allowed() {
    let fixture = fixture();
    let proxies = &fixture.plane.front_proxy_ca;
    let named = || Profile::client("front-proxy-client");
    for impostor in [
        fixture.plane.user("front-proxy-client", &[]),
        proxies.issue(&Profile::client("someone-else")),
        proxies.issue(&Profile::client("")),
        proxies.issue(&named().expired()),
        proxies.issue(&named().usages(&[ExtendedKeyUsage::ServerAuth])),
        Identity::root("front-proxy-ca").issue(&named()),
        Identity::self_signed(&named()),
    ] {
        match fixture.ask(Some(&impostor), &[ROOT, MARK]) {
            Ok(caller) => assert_eq!((name(&caller), caller.is_front_proxy()), ("front-proxy-client", false)),
            Err(Error::Unauthorized(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn empty_list_allows_every_name_of_the_authority() {
    let mut fixture = fixture();
    fixture.settings.request_header.as_mut().unwrap().allowed_names.clear();
    let proxy = fixture.plane.front_proxy_ca.issue(&Profile::client("whoever"));
    assert_eq!(name(&fixture.ask(Some(&proxy), &[ROOT]).unwrap()), "root");
    assert_eq!(name(&fixture.ask(Some(&fixture.plane.user("alice", &[])), &[ROOT]).unwrap()), "alice");
}

#[test]
fn one_authority_in_both_roles_keeps_users_users() {
    let mut fixture = fixture();
    let shared = fixture.plane.path("ca.crt");
    fixture.settings.request_header.as_mut().unwrap().client_ca_file = shared;
    let scheduler = fixture.plane.user("system:kube-scheduler", &[]);
    let caller = fixture.ask(Some(&scheduler), &[ROOT, MARK]).unwrap();
    assert_eq!((name(&caller), caller.is_front_proxy(), caller.hop()), ("system:kube-scheduler", false, Hop::First));
    let proxy = fixture.plane.user("front-proxy-client", &[]);
    assert_eq!(name(&fixture.ask(Some(&proxy), &[ROOT]).unwrap()), "root");
    assert_eq!(name(&fixture.ask(Some(&proxy), &[]).unwrap()), "front-proxy-client");
}

#[test]
fn settings_that_make_every_user_a_front_proxy_are_noticed() {
    let fixture = fixture();
    let plane = &fixture.plane;
    let users = plane.write_bundle("users.crt", &[&plane.client_ca]);
    let both = plane.write_bundle("both.crt", &[&plane.front_proxy_ca, &plane.client_ca]);
    let load = |path: &std::path::Path| Authorities::load(path).unwrap();
    for (bundle, names, expected) in [
        (&both, &[][..], true),
        (&both, &["front-proxy-client"], false),
        (&plane.path("front-proxy-ca.crt"), &[], false),
    ] {
        let allowed_names = names.iter().map(|&name: &&str| name.to_owned()).collect();
        let trust = FrontProxyTrust { authorities: load(bundle), allowed_names };
        assert_eq!(every_user_is_a_front_proxy(Some(&load(&users)), Some(&trust)), expected, "{names:?}");
        assert!(!every_user_is_a_front_proxy(None, Some(&trust)));
    }
}

fn at(time: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(time.duration_since(SystemTime::UNIX_EPOCH).unwrap())
}

#[test]
fn connection_is_judged_again_when_a_certificate_of_its_chain_expires() {
    let fixture = fixture();
    let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
    let ca = &fixture.plane.client_ca;
    let leaf = ca.issue(&Profile::client("alice").until(now + hour));
    let intermediate = ca.issue(&Profile::authority("i").until(now + hour)).issue(&Profile::client("alice"));
    for identity in [leaf, intermediate] {
        let authenticator = fixture.authenticator();
        let connection = authenticator.judge_at(&identity.chain, at(now));
        let ask = |time| authenticator.authenticate_at(&connection, &head(&[]), at(time));
        assert_eq!(name(&ask(now + hour - Duration::from_secs(1)).unwrap()), "alice");
        refusal(ask(now + hour + Duration::from_secs(1)));
        // The judgement follows the clock both ways, as a request-time check would.
        refusal(ask(now + 2 * hour));
    }
}

#[test]
fn connection_is_judged_again_when_a_certificate_becomes_valid() {
    let fixture = fixture();
    let now = SystemTime::now();
    let early = fixture.plane.client_ca.issue(&Profile::client("alice").not_yet_valid());
    let authenticator = fixture.authenticator();
    let connection = authenticator.judge_at(&early.chain, at(now));
    refusal(authenticator.authenticate_at(&connection, &head(&[]), at(now)));
    let later = now + Duration::from_secs(2 * 24 * 3600);
    assert_eq!(name(&authenticator.authenticate_at(&connection, &head(&[]), at(later)).unwrap()), "alice");
}

#[test]
fn front_proxy_loses_its_word_when_it_expires() {
    let fixture = fixture();
    let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
    let proxy = fixture.plane.front_proxy_ca.issue(&Profile::client("front-proxy-client").until(now + hour));
    let authenticator = fixture.authenticator();
    let connection = authenticator.judge_at(&proxy.chain, at(now));
    assert_eq!(name(&authenticator.authenticate_at(&connection, &head(&[ROOT, MARK]), at(now)).unwrap()), "root");
    refusal(authenticator.authenticate_at(&connection, &head(&[ROOT, MARK]), at(now + 2 * hour)));
}

#[test]
fn user_is_shared_and_not_made_anew_for_every_request() {
    let fixture = fixture();
    let authenticator = fixture.authenticator();
    let connection = authenticator.judge(&fixture.plane.user("alice", &[]).chain);
    let ask = || authenticator.authenticate(&connection, &head(&[])).unwrap();
    let (one, other) = (ask(), ask());
    let (CallerKind::User(one), CallerKind::User(other)) = (one.kind(), other.kind()) else { panic!() };
    assert!(Arc::ptr_eq(one, other));
}

#[test]
fn compatibility_reaches_connections_that_are_open() {
    let fixture = fixture();
    let authenticator = fixture.authenticator();
    let alice = fixture.plane.client_ca.issue(&Profile::client("alice").uid("42"));
    let connection = authenticator.judge(&alice.chain);
    let ask = || match authenticator.authenticate(&connection, &head(&[])).unwrap().kind {
        CallerKind::User(user) => (user.uid.clone(), user.extra.len()),
        kind => panic!("{kind:?}"),
    };
    assert_eq!(ask(), ("42".to_owned(), 1));
    authenticator.set_compatibility(31);
    assert_eq!(ask(), (String::new(), 0));
    authenticator.set_compatibility(36);
    assert_eq!(ask(), ("42".to_owned(), 1));
}

#[test]
fn requests_are_counted_by_kind_of_caller() {
    let fixture = fixture();
    fixture.ask(None, &[]).unwrap();
    fixture.ask(None, &[TOKEN]).unwrap();
    fixture.ask(Some(&fixture.plane.user("alice", &[])), &[]).unwrap();
    fixture.ask(Some(&Identity::self_signed(&Profile::client("x"))), &[]).unwrap_err();
    let text = fixture.registry.render();
    for result in ["user", "bearer", "anonymous", "refused"] {
        assert!(text.contains(&format!("peerfront_authentications_total{{result=\"{result}\"}} 1")), "{text}");
    }
}

#[test]
fn unusable_bundle_is_named() {
    let fixture = fixture();
    let path = fixture.plane.path("ca.crt");
    std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n").unwrap();
    let error = Authenticator::load(&fixture.settings, &fixture.registry).err().unwrap();
    assert!(matches!(&error, Error::ParseAuthority { path: named, index: 1 } if *named == path), "{error:?}");
    std::fs::remove_file(&path).unwrap();
    let error = Authenticator::load(&fixture.settings, &fixture.registry).err().unwrap();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains(&path.display().to_string()), "{source}");
}
