use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;
use crate::testing::pki::{ExtendedKeyUsage, Identity, Profile, pem};

/// A bundle of these certificates.
fn bundle(members: &[&Identity]) -> Authorities {
    let directory: TempDir = tempfile::tempdir().unwrap();
    let certificates: Vec<_> = members.iter().map(|member| member.certificate().clone()).collect();
    let path = directory.path().join("ca.crt");
    std::fs::write(&path, pem(&certificates)).unwrap();
    Authorities::load(&path).unwrap()
}

fn check(roots: &[&Identity], presented: &Identity) -> Result<(), Error> {
    bundle(roots).verify(&presented.chain, UnixTime::now())
}

fn alice() -> Profile {
    Profile::client("alice")
}

#[test]
fn leaf_of_the_authority_is_accepted() {
    let root = Identity::root("ca");
    for profile in [
        alice(),
        alice().usages(&[]),
        alice().usages(&[ExtendedKeyUsage::Any]),
        alice().usages(&[ExtendedKeyUsage::ServerAuth, ExtendedKeyUsage::ClientAuth]),
        Profile { authority: Some(false), may_sign: Some(false), ..alice() },
        alice().without_subject(),
    ] {
        assert_eq!(check(&[&root], &root.issue(&profile)), Ok(()), "{profile:?}");
    }
}

#[test]
fn leaf_outside_its_validity_is_refused() {
    let root = Identity::root("ca");
    assert_eq!(check(&[&root], &root.issue(&alice().expired())), Err(Error::Validity));
    assert_eq!(check(&[&root], &root.issue(&alice().not_yet_valid())), Err(Error::Validity));
}

#[test]
fn leaf_for_other_purposes_is_refused() {
    let root = Identity::root("ca");
    assert_eq!(check(&[&root], &root.issue(&alice().usages(&[ExtendedKeyUsage::ServerAuth]))), Err(Error::Usage));
}

#[test]
fn leaf_of_nobody_known_is_refused() {
    let root = Identity::root("ca");
    assert_eq!(check(&[&root], &Identity::root("other").issue(&alice())), Err(Error::UnknownIssuer));
    assert_eq!(check(&[&root], &Identity::self_signed(&alice())), Err(Error::UnknownIssuer));
    let impostor = Identity::root("ca");
    check(&[&root], &impostor.issue(&alice())).unwrap_err();
    assert_eq!(bundle(&[&root]).verify(&[], UnixTime::now()), Err(Error::Parse));
    assert_eq!(bundle(&[&root]).verify(&[vec![0x30, 0].into()], UnixTime::now()), Err(Error::Parse));
}

#[test]
fn unknown_critical_extension_is_refused() {
    let root = Identity::root("ca");
    let leaf = root.issue(&Profile { unknown_critical_extension: true, ..alice() });
    assert_eq!(check(&[&root], &leaf), Err(Error::CriticalExtension));
}

#[test]
fn intermediate_is_taken_from_the_chain_or_the_bundle() {
    let root = Identity::root("ca");
    let intermediate = root.issue(&Profile::authority("intermediate"));
    let leaf = intermediate.issue(&alice());
    assert_eq!(check(&[&root], &leaf), Ok(()));
    let alone = &leaf.chain[..1];
    assert_eq!(bundle(&[&root]).verify(alone, UnixTime::now()), Err(Error::UnknownIssuer));
    assert_eq!(bundle(&[&root, &intermediate]).verify(alone, UnixTime::now()), Ok(()));
    assert_eq!(bundle(&[&intermediate]).verify(alone, UnixTime::now()), Ok(()));
}

#[test]
fn intermediate_that_may_not_sign_is_refused() {
    let root = Identity::root("ca");
    for profile in [
        alice(),
        Profile { may_sign: Some(true), ..alice() },
        Profile { authority: Some(false), may_sign: Some(true), ..alice() },
        Profile { may_sign: Some(false), ..Profile::authority("intermediate") },
        Profile::authority("intermediate").expired(),
        Profile::authority("intermediate").usages(&[ExtendedKeyUsage::ServerAuth]),
        Profile::authority("intermediate").v1(),
    ] {
        let leaf = root.issue(&profile).issue(&Profile::client("root"));
        assert!(check(&[&root], &leaf).is_err(), "{profile:?}");
    }
}

#[test]
fn path_length_of_root_and_intermediate_is_kept() {
    let limited = Identity::self_signed(&Profile { path_length: Some(0), ..Profile::authority("ca") });
    assert_eq!(check(&[&limited], &limited.issue(&alice())), Ok(()));
    let below = limited.issue(&Profile::authority("intermediate")).issue(&alice());
    check(&[&limited], &below).unwrap_err();
    let root = Identity::root("ca");
    let narrow = root.issue(&Profile { path_length: Some(0), ..Profile::authority("narrow") });
    assert_eq!(check(&[&root], &narrow.issue(&alice())), Ok(()));
    check(&[&root], &narrow.issue(&Profile::authority("deep")).issue(&alice())).unwrap_err();
}

#[test]
fn root_is_judged_like_any_authority() {
    for profile in [
        Profile::authority("ca").expired(),
        Profile::authority("ca").not_yet_valid(),
        Profile::authority("ca").usages(&[ExtendedKeyUsage::ServerAuth]),
        Profile { may_sign: Some(false), ..Profile::authority("ca") },
        Profile { authority: None, ..Profile::authority("ca") },
        Profile { authority: Some(false), ..Profile::authority("ca") },
        Profile { unknown_critical_extension: true, ..Profile::authority("ca") },
    ] {
        let root = Identity::self_signed(&profile);
        assert!(check(&[&root], &root.issue(&alice())).is_err(), "{profile:?}");
    }
    let v1 = Identity::self_signed(&Profile::authority("ca").v1());
    assert_eq!(check(&[&v1], &v1.issue(&alice())), Ok(()), "version 1 cannot say that it is a CA");
}

#[test]
fn renewed_root_counts_beside_its_expired_predecessor() {
    let expired = Identity::self_signed(&Profile::authority("ca").expired());
    let renewed = expired.renewed(&Profile::authority("ca"));
    let leaf = expired.issue(&alice());
    check(&[&expired], &leaf).unwrap_err();
    assert_eq!(check(&[&expired, &renewed], &leaf), Ok(()));
    assert_eq!(check(&[&renewed, &expired], &leaf), Ok(()));
}

#[test]
fn leaf_in_the_bundle_is_accepted_but_signs_for_nobody() {
    let pinned = Identity::self_signed(&alice());
    assert_eq!(check(&[&pinned], &pinned), Ok(()));
    check(&[&pinned], &pinned.issue(&Profile::client("system:admin"))).unwrap_err();
    let foreign = Identity::root("unknown").issue(&alice());
    assert_eq!(check(&[&foreign], &foreign), Ok(()));
    let expired = Identity::self_signed(&alice().expired());
    assert_eq!(check(&[&expired], &expired), Err(Error::Validity));
    let server = Identity::self_signed(&alice().usages(&[ExtendedKeyUsage::ServerAuth]));
    assert_eq!(check(&[&server], &server), Err(Error::Usage));
}

#[test]
fn version_1_leaf_is_accepted_from_its_root_only() {
    let root = Identity::root("ca");
    assert_eq!(check(&[&root], &root.issue(&alice().v1())), Ok(()));
    assert_eq!(check(&[&root], &root.issue(&alice().v1().expired())), Err(Error::Validity));
    assert_eq!(check(&[&root], &Identity::root("other").issue(&alice().v1())), Err(Error::UnknownIssuer));
    assert_eq!(check(&[&root], &Identity::root("ca").issue(&alice().v1())), Err(Error::UnknownIssuer), "same name");
    let expired = Identity::self_signed(&Profile::authority("ca").expired());
    assert_eq!(check(&[&expired], &expired.issue(&alice().v1())), Err(Error::UnknownIssuer));
    let leaf = Identity::self_signed(&alice());
    assert_eq!(check(&[&leaf], &leaf.issue(&Profile::client("root").v1())), Err(Error::UnknownIssuer));
    // Documented limit: Go would accept this one.
    let intermediate = root.issue(&Profile::authority("intermediate"));
    assert_eq!(check(&[&root], &intermediate.issue(&alice().v1())), Err(Error::UnknownIssuer));
}

#[test]
fn leaf_that_is_an_authority_is_accepted_from_its_root_only() {
    let root = Identity::root("ca");
    let profile = Profile::authority("alice").usages(&[ExtendedKeyUsage::ClientAuth]);
    assert_eq!(check(&[&root], &root.issue(&profile)), Ok(()));
    assert_eq!(check(&[&root], &root.issue(&Profile::authority("alice"))), Ok(()));
    assert_eq!(check(&[&root], &Identity::root("other").issue(&profile)), Err(Error::UnknownIssuer));
    let server = profile.usages(&[ExtendedKeyUsage::ServerAuth]);
    assert_eq!(check(&[&root], &root.issue(&server)), Err(Error::Usage));
}

#[test]
fn changed_signature_is_refused() {
    let root = Identity::root("ca");
    for profile in [alice(), alice().v1(), Profile::authority("alice")] {
        let mut der = root.issue(&profile).certificate().to_vec();
        *der.last_mut().unwrap() ^= 1;
        assert!(bundle(&[&root]).verify(&[der.into()], UnixTime::now()).is_err(), "{profile:?}");
    }
}

#[test]
fn validity_includes_its_last_second() {
    let end = SystemTime::now() + Duration::from_secs(1000);
    let seconds = end.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let root = Identity::root("ca");
    for leaf in [root.issue(&alice().until(end)), root.issue(&alice().v1().until(end))] {
        let bundle = bundle(&[&root]);
        assert_eq!(bundle.verify(&leaf.chain, at(seconds)), Ok(()));
        assert_eq!(bundle.verify(&leaf.chain, at(seconds + 1)), Err(Error::Validity));
    }
}

#[test]
fn certificates_of_openssl_are_accepted_too() {
    let directory = tempfile::tempdir().unwrap();
    let openssl = |arguments: &str| {
        let output = std::process::Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(directory.path())
            .output()
            .expect("openssl is needed: apt-get install openssl");
        assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for algorithm in ["rsa -pkeyopt rsa_keygen_bits:2048", "ec -pkeyopt ec_paramgen_curve:P-384", "ed25519"] {
        openssl(&format!("genpkey -algorithm {algorithm} -out ca.key"));
        openssl("req -x509 -new -key ca.key -subj /CN=ca -days 2 -out ca.crt");
        openssl("genpkey -algorithm ed25519 -out alice.key");
        openssl("req -new -key alice.key -subj /O=dev/CN=alice -out alice.csr");
        // The old way of signing, which gives version 1, and `req -x509`, which makes everything a CA.
        openssl("x509 -req -in alice.csr -CA ca.crt -CAkey ca.key -set_serial 7 -days 1 -out v1.crt");
        openssl("req -x509 -new -key alice.key -subj /CN=alice -CA ca.crt -CAkey ca.key -days 1 -out ca-leaf.crt");
        let bundle = Authorities::load(&directory.path().join("ca.crt")).unwrap();
        for name in ["v1.crt", "ca-leaf.crt"] {
            let chain = material::certificates(&directory.path().join(name)).unwrap();
            assert_eq!(bundle.verify(&chain, UnixTime::now()), Ok(()), "{name} signed with {algorithm}");
        }
    }
}
