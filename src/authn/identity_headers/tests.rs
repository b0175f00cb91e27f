use super::*;
use crate::authn::request_header;

fn header_map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn corporate() -> IdentityHeaderNames {
    IdentityHeaderNames {
        username: vec![HeaderName::from_static("x-corp-user"), HeaderName::from_static("x-corp-login")],
        uid: vec![HeaderName::from_static("x-corp-uid")],
        group: vec![HeaderName::from_static("x-corp-group")],
        extra_prefix: vec!["x-corp-extra-".to_owned()],
    }
}

fn user() -> UserInfo {
    UserInfo {
        name: "alice".to_owned(),
        uid: "42".to_owned(),
        groups: vec!["dev".to_owned(), "system:authenticated".to_owned()],
        extra: vec![("scopes.example/Ü%".to_owned(), vec!["a".to_owned(), String::new()])],
    }
}

fn lines(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
    let mut lines: Vec<_> = headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    lines.sort();
    lines
}

#[test]
fn every_default_and_configured_name_is_removed() {
    let mut headers = header_map(&[
        ("x-remote-user", "root"),
        ("x-remote-user", "again"),
        ("X-Remote-Uid", "0"),
        ("x-remote-group", "system:masters"),
        ("x-remote-extra-scopes", "all"),
        ("x-remote-extra-", "empty key"),
        ("x_remote_user", "root"),
        ("X_Remote-Group", "system:masters"),
        ("x_remote_extra_scopes", "all"),
        ("x-corp-user", "root"),
        ("x-corp-login", "root"),
        ("x_corp_uid", "0"),
        ("x-corp-group", "system:masters"),
        ("x-corp-extra-a", "b"),
        ("x_corp_extra-a", "b"),
        ("x-remote-users", "kept"),
        ("x-remote", "kept"),
        ("x-corp-extra", "kept"),
        ("impersonate-user", "kept"),
    ]);
    strip(&mut headers, &corporate());
    let mut kept: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["impersonate-user", "x-corp-extra", "x-remote", "x-remote-users"]);
}

#[test]
fn configured_prefix_covers_names_that_begin_with_it() {
    let names = IdentityHeaderNames { extra_prefix: vec!["X-Extra_".to_owned()], ..IdentityHeaderNames::default() };
    let mut headers = header_map(&[("x-extra-a", "1"), ("x_extra_b", "2"), ("x-extrac", "3")]);
    strip(&mut headers, &names);
    assert_eq!(lines(&headers), [("x-extrac".to_owned(), "3".to_owned())]);
}

#[test]
fn identity_is_written_under_the_default_names() {
    let mut headers = HeaderMap::new();
    set(&mut headers, &IdentityHeaderNames::default(), &user()).unwrap();
    let expected = [
        ("x-remote-extra-scopes.example%2f%c3%9c%25", ""),
        ("x-remote-extra-scopes.example%2f%c3%9c%25", "a"),
        ("x-remote-group", "dev"),
        ("x-remote-group", "system:authenticated"),
        ("x-remote-uid", "42"),
        ("x-remote-user", "alice"),
    ];
    assert_eq!(lines(&headers), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let groups: Vec<_> = headers.get_all("x-remote-group").iter().collect();
    assert_eq!(groups, ["dev", "system:authenticated"], "groups keep their order");
}

#[test]
fn identity_is_written_under_the_first_configured_names() {
    let mut headers = HeaderMap::new();
    set(&mut headers, &corporate(), &user()).unwrap();
    let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["x-corp-extra-scopes.example%2f%c3%9c%25", "x-corp-group", "x-corp-uid", "x-corp-user"]);
}

#[test]
fn what_is_set_is_read_back_unchanged() {
    let mut odd: String = (b' '..=b'~').map(char::from).collect();
    odd.push_str("é\u{1F600}");
    let user = UserInfo { extra: vec![(odd, vec!["x  y\tz".to_owned(), "€".to_owned()])], ..user() };
    for names in [
        corporate(),
        IdentityHeaderNames { uid: vec![HeaderName::from_static("x-remote-uid")], ..IdentityHeaderNames::default() },
    ] {
        let mut headers = HeaderMap::new();
        set(&mut headers, &names, &user).unwrap();
        assert_eq!(request_header::user(&headers, &names).unwrap().as_ref(), Some(&user));
    }
}

#[test]
fn values_that_would_arrive_changed_are_refused() {
    for bad in [
        " system:masters",
        "system:masters ",
        "\tx",
        "x\t",
        "a\nb",
        "a\r\nX-Remote-Group: system:masters",
        "a\0",
        "\u{7f}",
    ] {
        let text = bad.to_owned();
        let variants = [
            UserInfo { name: text.clone(), ..user() },
            UserInfo { uid: text.clone(), ..user() },
            UserInfo { groups: vec!["dev".to_owned(), text.clone()], ..user() },
            UserInfo { extra: vec![("key".to_owned(), vec![text])], ..user() },
        ];
        for user in variants {
            assert!(check(&user).is_err(), "{bad:?} in {user:?}");
            assert!(set(&mut HeaderMap::new(), &IdentityHeaderNames::default(), &user).is_err(), "{bad:?}");
        }
    }
    assert!(check(&UserInfo { groups: vec![String::new()], ..user() }).is_err());
    assert!(check(&user()).is_ok());
}
