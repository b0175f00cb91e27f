//! Which strings would be taken for something else if they were written without quotes.
//!
//! Source: <https://github.com/yaml/go-yaml/blob/v2.4.3/resolve.go>

/// Words that mean something.
const WORDS: [&str; 30] = [
    "", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No", "NO", "false",
    "False", "FALSE", "off", "Off", "OFF", "~", "null", "Null", "NULL", ".nan", ".NaN", ".NAN",
];

/// Whether a string without quotes is read as that string.
pub(super) fn is_string(text: &str) -> bool {
    !WORDS.contains(&text) && !is_infinity(text) && !is_number(text) && !is_time(text) && !is_base_60(text)
}

fn is_infinity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF")
}

fn is_number(text: &str) -> bool {
    match text.bytes().next() {
        Some(b'.') => is_float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            is_integer(&plain) || is_float(&plain)
        }
        _ => false,
    }
}

/// An integer of Go's `ParseInt` with any base, 64 bits wide. Decimal ones of any width are floats anyway.
fn is_integer(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']);
    let magnitude = unsigned.unwrap_or(text);
    let (digits, radix) = match magnitude.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&magnitude[2..], 16),
        [b'0', b'o' | b'O', ..] => (&magnitude[2..], 8),
        [b'0', b'b' | b'B', ..] => (&magnitude[2..], 2),
        _ => (magnitude, 10),
    };
    let limit = match text.as_bytes().first() {
        Some(b'-') => 1 << 63,
        Some(b'+') => (1 << 63) - 1,
        _ => u64::MAX,
    };
    digits.starts_with(|c: char| c.is_ascii_alphanumeric())
        && u64::from_str_radix(digits, radix).is_ok_and(|value| value <= limit)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, in the range of a 64-bit float.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let has_only = |bytes: &str| bytes.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    unsigned.starts_with(|c: char| c == '.' || c.is_ascii_digit())
        && has_only(unsigned)
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Whether it may be a date or a time of YAML. go-yaml asks the calendar as well; a quote too many does no harm, and no
/// name in Kubernetes begins like this.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b':' | b'.' | b'+' | b' ' | b'T' | b't' | b'Z');
    bytes.len() > 5
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes[5..].contains(&b'-')
        && bytes[5..].iter().all(is_part)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`: a number of YAML 1.1 in base 60.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digit_or_bar = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let mut places = whole.split(':');
    let is_first = |first: &str| first.starts_with(|c: char| c.is_ascii_digit()) && first.bytes().all(is_digit_or_bar);
    let is_place = |place: &str| match place.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    };
    whole.contains(':')
        && places.next().is_some_and(is_first)
        && places.all(is_place)
        && fraction.bytes().all(is_digit_or_bar)
}
