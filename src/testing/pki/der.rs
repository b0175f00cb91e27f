//! X.509 certificates as DER, signed with ECDSA P-256 and SHA-256.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{KeyPair, SigningKey};
use rustls_pki_types::CertificateDer;
use x509_parser::time::ASN1Time;
use yasna::models::ObjectIdentifier;
use yasna::tags::{TAG_BMPSTRING, TAG_GENERALIZEDTIME, TAG_PRINTABLESTRING};
use yasna::{DERWriter, DERWriterSeq, Tag, TagClass, construct_der};

use super::profile::{Attribute, ExtendedKeyUsage, Profile, StringType, Version};

const T61_STRING: Tag = Tag { tag_class: TagClass::Universal, tag_number: 20 };

static SERIAL: AtomicU64 = AtomicU64::new(1);

/// The certificate, complete with its signature.
pub(super) fn certificate(
    profile: &Profile,
    subject: &[u8],
    issuer: &[u8],
    public_key: &[u8],
    signer: &KeyPair,
) -> CertificateDer<'static> {
    let tbs = construct_der(|writer| {
        writer.write_sequence(|writer| {
            if profile.version == Version::V3 {
                writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
            }
            writer.next().write_u64(SERIAL.fetch_add(1, Ordering::Relaxed));
            signature_algorithm(writer.next());
            writer.next().write_der(issuer);
            writer.next().write_sequence(|writer| {
                time(writer.next(), profile.not_before);
                time(writer.next(), profile.not_after);
            });
            writer.next().write_der(subject);
            writer.next().write_der(public_key);
            if profile.version == Version::V3 {
                writer.next().write_tagged(Tag::context(3), |writer| {
                    writer.write_sequence(|writer| extensions(writer, profile));
                });
            }
        });
    });
    let signature = signer.sign(&tbs).unwrap();
    let certificate = construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_der(&tbs);
            signature_algorithm(writer.next());
            writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
        });
    });
    certificate.into()
}

/// A distinguished name.
pub(super) fn name(attributes: &[Attribute]) -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            for attribute in attributes {
                writer.next().write_set(|writer| {
                    writer.next().write_sequence(|writer| {
                        writer.next().write_oid(&ObjectIdentifier::from_slice(&attribute.oid));
                        value(writer.next(), attribute);
                    });
                });
            }
        });
    })
}

fn value(writer: DERWriter<'_>, attribute: &Attribute) {
    let tag = match attribute.string_type {
        StringType::Utf8 => yasna::tags::TAG_UTF8STRING,
        StringType::Printable => TAG_PRINTABLESTRING,
        StringType::T61 => T61_STRING,
        StringType::Bmp => TAG_BMPSTRING,
        StringType::Ia5 => yasna::tags::TAG_IA5STRING,
        StringType::Integer => yasna::tags::TAG_INTEGER,
    };
    writer.write_tagged_implicit(tag, |writer| writer.write_bytes(&attribute.value));
}

fn signature_algorithm(writer: DERWriter<'_>) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(&[1, 2, 840, 10045, 4, 3, 2]));
    });
}

fn time(writer: DERWriter<'_>, time: SystemTime) {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let at = ASN1Time::from_timestamp(i64::try_from(seconds).unwrap()).unwrap().to_datetime();
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    let text = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}Z");
    writer.write_tagged_implicit(TAG_GENERALIZEDTIME, |writer| writer.write_bytes(text.as_bytes()));
}

fn extensions(writer: &mut DERWriterSeq<'_>, profile: &Profile) {
    if let Some(authority) = profile.authority {
        extension(writer, &[2, 5, 29, 19], true, |writer| {
            writer.write_sequence(|writer| {
                if authority {
                    writer.next().write_bool(true);
                }
                if let Some(length) = profile.path_length {
                    writer.next().write_u8(length);
                }
            });
        });
    }
    if let Some(may_sign) = profile.may_sign {
        // Bits 0 (digitalSignature) and 5 (keyCertSign), counted from the left.
        let (bits, length) = if may_sign { (0b0000_0100, 6) } else { (0b1000_0000, 1) };
        extension(writer, &[2, 5, 29, 15], true, |writer| writer.write_bitvec_bytes(&[bits], length));
    }
    if !profile.extended_key_usages.is_empty() {
        extension(writer, &[2, 5, 29, 37], false, |writer| {
            writer.write_sequence(|writer| {
                for usage in &profile.extended_key_usages {
                    writer.next().write_oid(&ObjectIdentifier::from_slice(usage_oid(*usage)));
                }
            });
        });
    }
    if !profile.names.is_empty() {
        extension(writer, &[2, 5, 29, 17], false, |writer| {
            writer.write_sequence(|writer| {
                for name in &profile.names {
                    general_name(writer.next(), name);
                }
            });
        });
    }
    if profile.unknown_critical_extension {
        extension(writer, &[1, 3, 6, 1, 4, 1, 57683, 9999], true, |writer| writer.write_null());
    }
}

fn extension(writer: &mut DERWriterSeq<'_>, oid: &[u64], critical: bool, content: impl FnOnce(DERWriter<'_>)) {
    writer.next().write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
        if critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(&construct_der(content));
    });
}

fn general_name(writer: DERWriter<'_>, name: &str) {
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => writer.write_tagged_implicit(Tag::context(7), |w| w.write_bytes(&ip.octets())),
        Ok(IpAddr::V6(ip)) => writer.write_tagged_implicit(Tag::context(7), |w| w.write_bytes(&ip.octets())),
        Err(_) => writer.write_tagged_implicit(Tag::context(2), |w| w.write_bytes(name.as_bytes())),
    }
}

fn usage_oid(usage: ExtendedKeyUsage) -> &'static [u64] {
    match usage {
        ExtendedKeyUsage::ServerAuth => &[1, 3, 6, 1, 5, 5, 7, 3, 1],
        ExtendedKeyUsage::ClientAuth => &[1, 3, 6, 1, 5, 5, 7, 3, 2],
        ExtendedKeyUsage::Any => &[2, 5, 29, 37, 0],
    }
}
