use super::*;

fn names() -> IdentityHeaderNames {
    let header = |name| HeaderName::from_static(name);
    IdentityHeaderNames {
        username: vec![header("x-remote-user"), header("x-other-user")],
        uid: vec![header("x-remote-uid")],
        group: vec![header("x-remote-group"), header("x-other-group")],
        extra_prefix: vec!["x-remote-extra-".to_owned(), "x-other-".to_owned()],
    }
}

fn asserted(lines: &[(&'static str, &[u8])]) -> Result<Option<UserInfo>, Refusal> {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    user(&headers, &names())
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

#[test]
fn no_name_is_no_opinion() {
    assert_eq!(asserted(&[]), Ok(None));
    assert_eq!(asserted(&[("x-remote-user", b""), ("x-remote-group", b"dev")]), Ok(None));
}

#[test]
fn first_header_with_a_value_names_the_user() {
    let user = asserted(&[("x-other-user", b"bob"), ("x-remote-user", b"alice"), ("x-remote-user", b"mallory")]);
    assert_eq!(user.unwrap().unwrap().name, "alice");
    let user = asserted(&[("x-other-user", b"bob"), ("x-remote-user", b"")]).unwrap().unwrap();
    assert_eq!(user.name, "bob");
    // Go's Get looks at a header's first line only.
    assert_eq!(asserted(&[("x-remote-user", b""), ("x-remote-user", b"alice")]), Ok(None));
}

#[test]
fn groups_are_all_values_of_all_headers_without_empty_ones() {
    let user = asserted(&[
        ("x-other-group", b"c"),
        ("x-remote-user", b"alice"),
        ("x-remote-group", b"a"),
        ("x-remote-group", b""),
        ("x-remote-group", b"b"),
    ]);
    assert_eq!(user.unwrap().unwrap().groups, strings(&["a", "b", "c", "system:authenticated"]));
}

#[test]
fn authenticated_group_is_added_where_upstream_adds_it() {
    for (name, groups, expected) in [
        ("alice", &[][..], &["system:authenticated"][..]),
        ("alice", &["system:authenticated", "dev"], &["system:authenticated", "dev"]),
        ("alice", &["system:unauthenticated"], &["system:unauthenticated"]),
        ("system:anonymous", &["dev"], &["dev"]),
    ] {
        let mut lines = vec![("x-remote-user", name.as_bytes())];
        lines.extend(groups.iter().map(|group: &&str| ("x-remote-group", group.as_bytes())));
        assert_eq!(asserted(&lines).unwrap().unwrap().groups, strings(expected), "{name} {groups:?}");
    }
}

#[test]
fn uid_is_read_from_configured_headers_only() {
    let user = asserted(&[("x-remote-user", b"alice"), ("x-remote-uid", b"42")]).unwrap().unwrap();
    assert_eq!(user.uid, "42");
    let mut headers = HeaderMap::new();
    headers.insert("x-remote-user", HeaderValue::from_static("alice"));
    headers.insert("x-remote-uid", HeaderValue::from_static("42"));
    assert_eq!(super::user(&headers, &IdentityHeaderNames::default()).unwrap().unwrap().uid, "");
}

#[test]
fn extra_keys_are_lower_cased_then_decoded() {
    for (header, key) in [
        ("x-remote-extra-scopes", "scopes"),
        ("x-remote-extra-a%2fb", "a/b"),
        ("x-remote-extra-%41", "A"),
        ("x-remote-extra-%e2%82%ac", "€"),
        ("x-remote-extra-bad%zz", "bad%zz"),
        ("x-remote-extra-bad%4", "bad%4"),
        ("x-remote-extra-", ""),
    ] {
        let user = asserted(&[("x-remote-user", b"alice"), (header, b"v")]).unwrap().unwrap();
        assert_eq!(user.extra, [(key.to_owned(), strings(&["v"]))], "{header}");
    }
}

#[test]
fn extra_values_of_one_key_are_joined_in_the_order_of_prefixes() {
    let user = asserted(&[
        ("x-other-scopes", b"3"),
        ("x-remote-user", b"alice"),
        ("x-remote-extra-scopes", b"1"),
        ("x-remote-extra-scopes", b""),
    ]);
    let extra = user.unwrap().unwrap().extra;
    let scopes = extra.iter().find(|(key, _)| key == "scopes").unwrap();
    assert_eq!(scopes.1, strings(&["1", "", "3"]));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for lines in [
        &[("x-remote-user", &b"\xff"[..])][..],
        &[("x-remote-user", b"a"), ("x-remote-group", b"\xff")],
        &[("x-remote-user", b"a"), ("x-remote-uid", b"\xff")],
        &[("x-remote-user", b"a"), ("x-remote-extra-a", b"\xff")],
        &[("x-remote-user", b"a"), ("x-remote-extra-%ff", b"a")],
        &[("x-remote-user", b" a")],
    ] {
        assert!(matches!(asserted(lines), Err(Refusal::NotPortable(_))), "{lines:?}");
    }
}
