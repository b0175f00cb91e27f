//! Media types and the `Accept` header, read as kube-apiserver reads them.
//!
//! Source: <https://github.com/munnerz/goautoneg/blob/a7dc8b61c822/autoneg.go>

use http::{HeaderMap, header};

/// A media type, or a range of them, such as `application/json;as=Table`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MediaType {
    /// What stands before the slash; `*` for any.
    pub main: String,
    /// What stands behind it; `*` for any.
    pub sub: String,
    /// Parameters in order, `q` excepted, each name once.
    pub parameters: Vec<(String, String)>,
}

/// One alternative of an `Accept` header.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// What the client would take.
    pub media_type: MediaType,
    /// How much it likes it; 1 where not said. Clients may write anything, infinity and not-a-number too.
    pub q: f32,
}

impl MediaType {
    /// Reads one media type; `None` if it has no slash, or two.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        clause(text).map(|clause| clause.media_type)
    }

    /// The value of a parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Whether this type or range lets a media type through.
    #[must_use]
    pub fn includes(&self, main: &str, sub: &str) -> bool {
        (self.main == main && (self.sub == sub || self.sub == "*")) || (self.main == "*" && self.sub == "*")
    }

    fn set(&mut self, name: &str, value: &str) {
        match self.parameters.iter_mut().find(|(found, _)| found == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.parameters.push((name.to_owned(), value.to_owned())),
        }
    }
}

/// The first `Accept` header, which is the only one that kube-apiserver looks at; empty if there is none.
#[must_use]
pub fn accept_header(headers: &HeaderMap) -> &str {
    headers.get(header::ACCEPT).and_then(|value| std::str::from_utf8(value.as_bytes()).ok()).unwrap_or_default()
}

/// The clauses of an `Accept` header, best first. What is no media type is left out.
#[must_use]
pub fn accept(header: &str) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = header.split(',').filter_map(clause).collect();
    // Upstream's comparison is no order (a range after a type swaps even with a higher q), so the outcome depends on
    // the algorithm. This is the insertion sort that Go uses up to twelve elements.
    for i in 1..clauses.len() {
        let mut j = i;
        while j > 0 && comes_before(&clauses[j], &clauses[j - 1]) {
            clauses.swap(j, j - 1);
            j -= 1;
        }
    }
    clauses
}

fn comes_before(one: &Clause, other: &Clause) -> bool {
    one.q > other.q
        || (one.media_type.main != "*" && other.media_type.main == "*")
        || (one.media_type.sub != "*" && other.media_type.sub == "*")
}

fn clause(text: &str) -> Option<Clause> {
    let mut parts = text.trim_matches(' ').split(';');
    let name = parts.next()?;
    let (main, sub) = name.split_once('/').unwrap_or((name, ""));
    let main = main.trim_matches(' ');
    let sub = match sub {
        "" if main == "*" => "*",
        "" => return None,
        // One slash at the end is forgiven.
        sub => sub.strip_suffix('/').unwrap_or(sub).trim_matches(' '),
    };
    if sub.contains('/') {
        return None;
    }
    let media_type = MediaType { main: main.to_owned(), sub: sub.to_owned(), parameters: Vec::new() };
    let mut clause = Clause { media_type, q: 1.0 };
    for parameter in parts {
        let Some((name, value)) = parameter.split_once('=').filter(|(_, value)| is_one_value(value)) else {
            continue;
        };
        let value = value.strip_suffix('=').unwrap_or(value);
        match name.trim_matches(' ') {
            "q" => clause.q = value.parse().unwrap_or(0.0),
            name => clause.media_type.set(name, value.trim_matches(' ')),
        }
    }
    Some(clause)
}

/// Whether a parameter's value is not empty and has no `=` but a last one.
fn is_one_value(value: &str) -> bool {
    !value.is_empty() && !value.strip_suffix('=').unwrap_or(value).contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_sorted_as_upstream_sorts_them() {
        check("", &[]);
        check("application/json", &["application/json"]);
        check("application/json;q=0.1, application/yaml", &["application/yaml", "application/json"]);
        check("a/b;q=0.5,c/d;q=0.5", &["a/b", "c/d"]);
        check("*/*, application/json;q=0.1", &["application/json", "*/*"]);
        check("application/*,application/json", &["application/json", "application/*"]);
        check("*;q=0.3", &["*/*"]);
        check("text, text/, /, a/b/c, a/b/", &["a/b"]);
        check(" a / b ;x = 1;x=2; y ;z=;w=a=b", &["a/b;x=2"]);
        check("a/b;q=x,c/d;q=0.01", &["c/d", "a/b"]);
        check("a/b;q= 1,c/d;q=0.01", &["c/d", "a/b"]);
    }

    fn check(header: &str, expected: &[&str]) {
        let found: Vec<String> = accept(header).iter().map(|clause| display(&clause.media_type)).collect();
        assert_eq!(found, expected, "{header}");
    }

    fn display(media_type: &MediaType) -> String {
        let parameters = media_type.parameters.iter().map(|(name, value)| format!(";{name}={value}"));
        format!("{}/{}{}", media_type.main, media_type.sub, parameters.collect::<String>())
    }

    #[test]
    fn only_the_first_accept_header_counts() {
        let mut headers = HeaderMap::new();
        assert_eq!(accept_header(&headers), "");
        headers.append(header::ACCEPT, "a/b".parse().unwrap());
        headers.append(header::ACCEPT, "c/d".parse().unwrap());
        assert_eq!(accept_header(&headers), "a/b");
    }
}
