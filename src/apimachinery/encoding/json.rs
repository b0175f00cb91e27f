//! JSON as Go writes it.
//!
//! Source: <https://pkg.go.dev/encoding/json#Marshal>

use serde::Serialize;

/// An object on one line, without a line break at its end. `object` has string keys only.
#[must_use]
pub fn json(object: &impl Serialize) -> String {
    escaped(serde_json::to_string(object))
}

/// An object indented by two spaces, without a line break at its end. `object` has string keys only.
#[must_use]
pub fn pretty_json(object: &impl Serialize) -> String {
    escaped(serde_json::to_string_pretty(object))
}

/// Escapes what Go escapes and serde_json does not. These characters can only stand inside of strings.
fn escaped(written: serde_json::Result<String>) -> String {
    let json = written.expect("the objects have string keys only and are written to memory");
    if !json.contains(is_escaped) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + json.len() / 8);
    for character in json.chars() {
        if is_escaped(character) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_escaped(character: char) -> bool {
    matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_escaped_that_go_escapes() {
        assert_eq!(json(&"<&>\u{2028}\u{2029}\u{7f}ü"), "\"\\u003c\\u0026\\u003e\\u2028\\u2029\u{7f}ü\"");
        assert_eq!(pretty_json(&serde_json::json!({ "a": [1] })), "{\n  \"a\": [\n    1\n  ]\n}");
    }
}
