//! JSON objects whose values are never looked into, so that unknown content and its very bytes survive.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in order.
#[derive(Debug, Default)]
pub(super) struct Object<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'a> Object<'a> {
    /// The first member of this name.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// A member that is itself an object; empty if there is none.
    pub(super) fn object(&self, name: &str) -> serde_json::Result<Self> {
        self.get(name).map_or_else(|| Ok(Self::default()), |value| serde_json::from_str(value.get()))
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Object(members))
    }
}

/// Writes an object of these members, whose values are JSON already.
pub(super) fn write_object<'m>(out: &mut String, members: impl IntoIterator<Item = (&'m str, &'m str)>) {
    out.push('{');
    let mut separator = "";
    for (name, value) in members {
        out.push_str(separator);
        out.push_str(&go_json(serde_json::to_string(name)));
        out.push(':');
        out.push_str(value);
        separator = ",";
    }
    out.push('}');
}

/// JSON with the characters escaped that Go escapes. They can only stand inside of strings.
/// Source: <https://pkg.go.dev/encoding/json#Marshal>
pub(super) fn go_json(written: serde_json::Result<String>) -> String {
    let json = written.expect("strings and maps with string keys are written to memory");
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_bytes_and_members_their_order() {
        let text = r#"{"b":{ "x" : 1.50e+3 },"a":"\u003c","a":null}"#;
        let object: Object<'_> = serde_json::from_str(text).unwrap();
        let members: Vec<(&str, &str)> = object.0.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        assert_eq!(members, [("b", r#"{ "x" : 1.50e+3 }"#), ("a", r#""\u003c""#), ("a", "null")]);
        assert_eq!(object.get("a").unwrap().get(), r#""\u003c""#);
        let mut written = String::new();
        write_object(&mut written, members);
        assert_eq!(written, text);
    }

    #[test]
    fn names_are_escaped_as_go_escapes_them() {
        let mut written = String::new();
        write_object(&mut written, [("a<b>&\"\u{2028}", "1")]);
        assert_eq!(written, r#"{"a\u003cb\u003e\u0026\"\u2028":1}"#);
    }
}
