//! YAML as `sigs.k8s.io/yaml` writes it: by way of JSON, keys sorted, in the styles and line widths of go-yaml v2.
//!
//! No crate does: serde's emitters share the ancestor (libyaml), but quote other strings and never fold.
//!
//! Sources: <https://github.com/kubernetes-sigs/yaml/blob/v1.6.0/yaml.go>,
//! <https://github.com/yaml/go-yaml/blob/v2.4.3/emitterc.go>, `encode.go` and `sorter.go` beside it

mod keys;
mod plain;
mod scalar;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use scalar::Position;

/// Spaces by which each level is indented.
const INDENT: usize = 2;

/// Most bytes of a key that stands before its colon on one line.
const MAX_SIMPLE_KEY_BYTES: usize = 128;

/// An object in YAML. `object` has string keys only.
#[must_use]
pub fn yaml(object: &impl Serialize) -> String {
    let value = serde_json::to_value(object).expect("the objects have string keys only");
    let mut emitter = Emitter::default();
    emitter.node(&value, 0);
    emitter.out.push('\n');
    emitter.out
}

/// What is written so far, and where in its line that ends.
#[derive(Default)]
struct Emitter {
    out: String,
    /// Characters since the last line break.
    column: usize,
}

impl Emitter {
    /// Writes a node whose first line goes on where the last thing ended; further lines of it begin at `indent`.
    fn node(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => self.mapping(map, indent),
            Value::Array(items) if !items.is_empty() => self.sequence(items, indent),
            Value::Object(_) => self.write("{}"),
            Value::Array(_) => self.write("[]"),
            Value::String(text) => self.string(text, indent + INDENT, Position::Value),
            Value::Number(number) => self.write(&number_text(number)),
            Value::Bool(yes) => self.write(if *yes { "true" } else { "false" }),
            Value::Null => self.write("null"),
        }
    }

    fn mapping(&mut self, map: &Map<String, Value>, indent: usize) {
        for (index, key) in keys::sorted(map).into_iter().enumerate() {
            if index > 0 {
                self.line(indent);
            }
            let value = &map[key];
            if key.len() > MAX_SIMPLE_KEY_BYTES || key.contains(scalar::is_break) {
                self.write("? ");
                self.string(key, indent + INDENT, Position::Value);
                self.line(indent);
                self.write(": ");
                self.item(value, indent);
                continue;
            }
            self.string(key, indent + INDENT, Position::Key);
            self.write(":");
            self.value(value, indent);
        }
    }

    /// The value behind a key and its colon; the items of a sequence stand below the key.
    fn value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.line(indent + INDENT);
                self.mapping(map, indent + INDENT);
            }
            Value::Array(items) if !items.is_empty() => {
                self.line(indent);
                self.sequence(items, indent);
            }
            scalar => {
                self.write(" ");
                self.node(scalar, indent);
            }
        }
    }

    fn sequence(&mut self, items: &[Value], indent: usize) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.line(indent);
            }
            self.write("- ");
            self.item(item, indent);
        }
    }

    /// What goes on behind an indicator and its space.
    fn item(&mut self, item: &Value, indent: usize) {
        let is_scalar = !matches!(item, Value::Object(_) | Value::Array(_));
        self.node(item, if is_scalar { indent } else { indent + INDENT });
    }

    /// Begins a line.
    fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.column = 0;
        self.write(&" ".repeat(indent));
    }

    fn write(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }
}

/// A number as Go's `strconv` writes it, floats in their shortest form.
fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => float_text(float),
        None => number.to_string(),
    }
}

fn float_text(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        // Between 0.0001 and 999999, without an exponent.
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests;
