//! Conditions and ranges of a request for content that is at hand, judged as Go's `http.ServeContent` judges them.
//!
//! Source: <https://github.com/golang/go/blob/go1.26.0/src/net/http/fs.go> (`checkPreconditions`, `parseRange`)

use std::ops::Range;
use std::time::{Duration, SystemTime};

use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE};
use http::{HeaderMap, HeaderName, Method};

/// What is known of the content.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// Its entity tag; empty if it has none.
    pub etag: &'a str,
    /// When it changed last.
    pub modified: SystemTime,
    /// Its bytes.
    pub length: usize,
}

/// What of it is to be sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Part {
    /// All: 200.
    Whole,
    /// Some bytes: 206.
    Range(Range<usize>),
    /// Nothing, the client has it: 304.
    NotModified,
    /// Nothing, a condition does not hold: 412.
    ConditionFailed,
    /// Nothing, there are no such bytes: 416.
    NoOverlap,
    /// Nothing, the range is none: 416.
    InvalidRange,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Condition {
    Absent,
    Holds,
    Fails,
}

impl Content<'_> {
    /// Judges a request. Other methods than GET and HEAD take no word for what the client has.
    #[must_use]
    pub fn part(&self, method: &Method, headers: &HeaderMap) -> Part {
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        let first = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut condition = self.matches(first(&IF_MATCH), etag_strong_match, true);
        if condition == Condition::Absent {
            condition = self.modified_by(first(&IF_UNMODIFIED_SINCE)).invert();
        }
        if condition == Condition::Fails {
            return Part::ConditionFailed;
        }
        match self.matches(first(&IF_NONE_MATCH), etag_weak_match, false) {
            Condition::Fails if is_read => return Part::NotModified,
            Condition::Fails => return Part::ConditionFailed,
            Condition::Absent if is_read && self.modified_by(first(&IF_MODIFIED_SINCE)) == Condition::Fails => {
                return Part::NotModified;
            }
            _ => {}
        }
        if !is_read || self.range_is_meant(first(&IF_RANGE)) { self.range(first(&RANGE)) } else { Part::Whole }
    }

    /// `If-Match` holds on a match, `If-None-Match` where there is none.
    fn matches(&self, header: &str, is_match: fn(&str, &str) -> bool, holds_on_match: bool) -> Condition {
        if header.is_empty() {
            return Condition::Absent;
        }
        let (on_match, otherwise) = match holds_on_match {
            true => (Condition::Holds, Condition::Fails),
            false => (Condition::Fails, Condition::Holds),
        };
        let mut rest = header;
        loop {
            rest = rest.trim_matches([' ', '\t', '\n', '\r']);
            if rest.is_empty() {
                return otherwise;
            }
            if let Some(after) = rest.strip_prefix(',') {
                rest = after;
                continue;
            }
            if rest.starts_with('*') {
                return on_match;
            }
            let Some((etag, after)) = scan_etag(rest) else { return otherwise };
            if is_match(etag, self.etag) {
                return on_match;
            }
            rest = after;
        }
    }

    /// Whether it was changed after a time; a header without one says nothing.
    fn modified_by(&self, header: &str) -> Condition {
        match httpdate::parse_http_date(header) {
            Err(_) => Condition::Absent,
            Ok(since) if whole_seconds(self.modified) <= since => Condition::Fails,
            Ok(_) => Condition::Holds,
        }
    }

    fn range_is_meant(&self, if_range: &str) -> bool {
        if if_range.is_empty() {
            return true;
        }
        match scan_etag(if_range) {
            Some((etag, _)) => etag_strong_match(etag, self.etag),
            None => httpdate::parse_http_date(if_range).is_ok_and(|date| date == whole_seconds(self.modified)),
        }
    }

    /// Several ranges at once are answered with the whole, which a server is free to do and which kube-apiserver does
    /// not: no client of a document asks for them.
    fn range(&self, header: &str) -> Part {
        if header.is_empty() {
            return Part::Whole;
        }
        let Some(specs) = header.strip_prefix("bytes=") else { return Part::InvalidRange };
        let mut ranges = Vec::new();
        let mut is_beyond = false;
        for spec in specs.split(',').map(|spec| spec.trim_matches([' ', '\t'])).filter(|spec| !spec.is_empty()) {
            match one_range(spec, self.length) {
                Err(()) => return Part::InvalidRange,
                Ok(None) => is_beyond = true,
                Ok(Some(range)) => ranges.push(range),
            }
        }
        match ranges.as_slice() {
            [] if is_beyond && self.length > 0 => Part::NoOverlap,
            [range] => Part::Range(range.clone()),
            _ => Part::Whole,
        }
    }
}

impl Condition {
    fn invert(self) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::Holds => Self::Fails,
            Self::Fails => Self::Holds,
        }
    }
}

/// `5-9`, `5-` or `-5`; `None` if it begins behind the end.
fn one_range(spec: &str, length: usize) -> Result<Option<Range<usize>>, ()> {
    let (start, end) = spec.split_once('-').ok_or(())?;
    let (start, end) = (start.trim_matches([' ', '\t']), end.trim_matches([' ', '\t']));
    // As Go reads numbers of 64 bits with a sign.
    let number = |text: &str| text.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok()).ok_or(());
    let clamp = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(length);
    if start.is_empty() {
        return match end {
            "" => Err(()),
            end => Ok(Some(length - clamp(number(end)?)..length)),
        };
    }
    let start = number(start)?;
    if clamp(start) >= length {
        return Ok(None);
    }
    if end.is_empty() {
        return Ok(Some(clamp(start)..length));
    }
    let end = number(end)?;
    if start > end { Err(()) } else { Ok(Some(clamp(start)..clamp(end.saturating_add(1)))) }
}

/// The tag at the beginning of a text, and what follows it.
fn scan_etag(text: &str) -> Option<(&str, &str)> {
    let quoted = text.strip_prefix("W/").unwrap_or(text);
    let inner = quoted.strip_prefix('"')?;
    let is_of_tag = |byte: u8| byte == 0x21 || (0x23..=0x7e).contains(&byte) || byte >= 0x80;
    let end = inner.bytes().position(|byte| !is_of_tag(byte))?;
    let length = text.len() - inner.len() + end + 1;
    (inner.as_bytes()[end] == b'"').then(|| text.split_at(length))
}

fn etag_strong_match(one: &str, other: &str) -> bool {
    one == other && one.starts_with('"')
}

fn etag_weak_match(one: &str, other: &str) -> bool {
    one.strip_prefix("W/").unwrap_or(one) == other.strip_prefix("W/").unwrap_or(other)
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::super::testing::made;
    use super::*;

    const BEFORE: &str = "Mon, 30 Nov 2026 19:12:34 GMT";
    const MADE: &str = "Mon, 30 Nov 2026 19:12:35 GMT";

    fn part(headers: &[(HeaderName, &str)]) -> Part {
        part_for(&Method::GET, headers)
    }

    fn part_for(method: &Method, headers: &[(HeaderName, &str)]) -> Part {
        let content = Content { etag: "\"A\"", modified: made() + Duration::from_millis(5), length: 10 };
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect();
        content.part(method, &headers)
    }

    fn check(name: &HeaderName, cases: &[(&str, Part)]) {
        for (value, expected) in cases {
            assert_eq!(part(&[(name.clone(), value)]), *expected, "{name}: {value}");
        }
    }

    #[test]
    fn conditions_are_judged_as_go_judges_them() {
        use Part::{ConditionFailed, NotModified, Whole};
        assert_eq!(part(&[]), Whole);
        let none_match = [
            ("\"A\"", NotModified),
            ("W/\"A\"", NotModified),
            ("\"x\", W/\"A\"", NotModified),
            (" ,, *", NotModified),
            ("\"x\"", Whole),
            ("A", Whole),
            ("\"x\" nonsense, \"A\"", Whole),
            ("", Whole),
        ];
        check(&IF_NONE_MATCH, &none_match);
        check(&IF_MATCH, &[("\"A\"", Whole), ("*", Whole), ("W/\"A\"", ConditionFailed), ("\"x\"", ConditionFailed)]);
        check(&IF_MODIFIED_SINCE, &[(MADE, NotModified), (BEFORE, Whole), ("x", Whole)]);
        check(&IF_UNMODIFIED_SINCE, &[(MADE, Whole), (BEFORE, ConditionFailed), ("x", Whole)]);
        // A tag is asked first, and then the time no more.
        assert_eq!(part(&[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, MADE)]), Whole);
        assert_eq!(part(&[(IF_MATCH, "\"A\""), (IF_UNMODIFIED_SINCE, BEFORE)]), Whole);
    }

    #[test]
    fn only_a_read_is_told_that_it_has_the_content() {
        let post = |headers| part_for(&Method::POST, headers);
        assert_eq!(post(&[(IF_NONE_MATCH, "*")]), Part::ConditionFailed);
        assert_eq!(post(&[(IF_MODIFIED_SINCE, MADE)]), Part::Whole);
        assert_eq!(post(&[(RANGE, "bytes=0-0"), (IF_RANGE, "\"x\"")]), Part::Range(0..1));
        assert_eq!(part_for(&Method::HEAD, &[(IF_NONE_MATCH, "*")]), Part::NotModified);
    }

    #[test]
    fn ranges_are_judged_as_go_judges_them() {
        use Part::{InvalidRange, NoOverlap, Range, Whole};
        let cases = [
            ("bytes=0-0", Range(0..1)),
            ("bytes=2-5", Range(2..6)),
            ("bytes= 2 - 5 ,", Range(2..6)),
            ("bytes=5-", Range(5..10)),
            ("bytes=5-99", Range(5..10)),
            ("bytes=-3", Range(7..10)),
            ("bytes=-99", Range(0..10)),
            ("bytes=10-", NoOverlap),
            ("bytes=99999999999999999999-", InvalidRange),
            ("bytes=", Whole),
            ("bytes=0-1,3-4", Whole),
            ("bytes=99-,0-1", Range(0..2)),
            ("bytes=5-2", InvalidRange),
            ("bytes=--3", InvalidRange),
            ("bytes=-", InvalidRange),
            ("bytes=x", InvalidRange),
            ("lines=1-2", InvalidRange),
        ];
        check(&RANGE, &cases);
        let if_range = |value| part(&[(RANGE, "bytes=0-0"), (IF_RANGE, value)]);
        for value in ["\"A\"", MADE] {
            assert_eq!(if_range(value), Range(0..1), "{value}");
        }
        for value in ["\"x\"", "W/\"A\"", BEFORE, "x"] {
            assert_eq!(if_range(value), Whole, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_header_panics_and_ranges_are_within(value in "[ -~]{0,30}", range in "bytes=[-0-9, ]{0,30}") {
            let headers = [IF_MATCH, IF_NONE_MATCH, IF_RANGE].map(|name| (name, value.as_str()));
            let _ = part(&headers);
            if let Part::Range(range) = part(&[(RANGE, &range)]) {
                prop_assert!(range.start <= range.end && range.end <= 10);
            }
        }
    }
}
