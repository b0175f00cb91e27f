use super::*;
use crate::authn::CertificateError;
use crate::testing::pki::{Identity, Profile, StringType};

const CN: &[u64] = &[2, 5, 4, 3];
const O: &[u64] = &[2, 5, 4, 10];
const UID_OID: &[u64] = &[1, 3, 6, 1, 4, 1, 57683, 2];

fn read(profile: &Profile) -> Result<Option<UserInfo>, Refusal> {
    user(Identity::self_signed(profile).certificate(), Compatibility::default())
}

fn alice() -> Profile {
    Profile::client("alice")
}

#[test]
fn name_groups_uid_and_credential_id_are_read() {
    let leaf = Identity::self_signed(&alice().organization("b").organization("a").organization("b").uid("42"));
    let user = user(leaf.certificate(), Compatibility::default()).unwrap().unwrap();
    assert_eq!(user.name, "alice");
    assert_eq!(user.uid, "42");
    assert_eq!(user.groups, ["b", "a", "b", "system:authenticated"]);
    let fingerprint = data_encoding::HEXLOWER.encode(digest(&SHA256, leaf.certificate()).as_ref());
    let id = (CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={fingerprint}")]);
    assert_eq!(user.extra, [id]);
}

#[test]
fn older_versions_read_less() {
    let leaf = Identity::self_signed(&alice().uid("42"));
    for (minor, has_credential_id, uid) in [(31, false, ""), (32, true, ""), (33, true, "42"), (37, true, "42")] {
        let user = user(leaf.certificate(), Compatibility::of_minor(minor)).unwrap().unwrap();
        assert_eq!((!user.extra.is_empty(), user.uid.as_str()), (has_credential_id, uid), "1.{minor}");
    }
    let two = Identity::self_signed(&alice().uid("1").uid("2"));
    assert!(user(two.certificate(), Compatibility::of_minor(32)).unwrap().is_some(), "1.32 does not look at it");
}

#[test]
fn no_common_name_is_no_opinion() {
    assert_eq!(read(&Profile::client("")), Ok(None));
    assert_eq!(read(&alice().without_subject().organization("dev")), Ok(None));
}

#[test]
fn last_common_name_counts() {
    assert_eq!(read(&alice().attribute(CN, StringType::Utf8, "bob")).unwrap().unwrap().name, "bob");
    assert_eq!(read(&alice().attribute(CN, StringType::Utf8, "")), Ok(None));
}

#[test]
fn uid_must_be_one_string() {
    assert_eq!(read(&alice().uid("")), Err(Refusal::Uid));
    assert_eq!(read(&alice().uid("1").uid("2")), Err(Refusal::Uid));
    let number = read(&alice().attribute(UID_OID, StringType::Integer, [1]));
    assert_eq!(number, Err(Refusal::Certificate(CertificateError::Parse)));
}

#[test]
fn every_string_type_is_read_as_go_reads_it() {
    for (string_type, bytes, expected) in [
        (StringType::Utf8, "é€".as_bytes(), "é€"),
        (StringType::Printable, b"a.b*&", "a.b*&"),
        (StringType::Ia5, b"a@b", "a@b"),
        (StringType::T61, b"\xe9", "é"),
        (StringType::Bmp, b"\x20\xac\x00a", "€a"),
        (StringType::Bmp, b"\x00a\x00\x00", "a"),
    ] {
        let profile = alice().attribute(O, string_type, bytes);
        assert_eq!(read(&profile).unwrap().unwrap().groups[0], expected, "{string_type:?}");
    }
    for (string_type, bytes) in [
        (StringType::Utf8, &b"\xff"[..]),
        (StringType::Printable, b"a@b"),
        (StringType::Ia5, b"\x80"),
        (StringType::Bmp, b"a"),
        (StringType::Bmp, b"\xd8\x00"),
        (StringType::Bmp, b"\xff\xfe"),
        (StringType::Integer, b"\x01"),
    ] {
        let profile = alice().attribute(O, string_type, bytes);
        assert_eq!(read(&profile), Err(Refusal::Certificate(CertificateError::Parse)), "{string_type:?} {bytes:?}");
    }
}

#[test]
fn authenticated_group_is_added_once() {
    for (groups, expected) in [
        (&["system:authenticated", "dev"][..], &["system:authenticated", "dev"][..]),
        (&["system:unauthenticated"], &["system:unauthenticated"]),
        (&["dev"], &["dev", "system:authenticated"]),
    ] {
        let profile = groups.iter().fold(alice(), |profile, group| profile.organization(group));
        assert_eq!(read(&profile).unwrap().unwrap().groups, expected);
    }
    assert!(read(&Profile::client("system:anonymous")).unwrap().unwrap().groups.is_empty());
}

#[test]
fn what_a_header_would_change_is_refused() {
    for profile in [
        Profile::client(" system:admin"),
        Profile::client("system:admin\t"),
        Profile::client("a\nb"),
        alice().organization(" system:masters"),
        alice().organization("system:masters "),
        alice().organization("a\r\nX-Remote-Group: system:masters"),
        alice().organization(""),
        alice().uid("42\0"),
    ] {
        assert!(matches!(read(&profile), Err(Refusal::NotPortable(_))), "{profile:?}");
    }
}

#[test]
fn two_hundred_groups_are_kept_in_order() {
    let names: Vec<_> = (0..200).map(|number| format!("group-{number}")).collect();
    let profile = names.iter().fold(alice(), |profile, name| profile.organization(name));
    assert_eq!(read(&profile).unwrap().unwrap().groups[..200], names);
}

#[test]
fn version_1_certificate_is_read_alike() {
    let user = read(&alice().organization("dev").v1()).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.groups[0].as_str()), ("alice", "dev"));
}
