//! The list options that a verb and a name depend on.
//!
//! Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/apis/meta/v1/zz_generated.conversion.go>
//! (`url_Values_To_v1_ListOptions`) and `pkg/fields/selector.go` beside it.

use std::borrow::Cow;

use super::label_selector;
use crate::apimachinery::query;

/// What matters of a list's query.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct ListOptions {
    /// Whether the list is a watch.
    pub(super) watch: bool,
    /// The only name that the field selector lets through; empty if there is none.
    pub(super) name: String,
}

/// Reads a query. Where upstream cannot decode one of the options it drops all but `watch`, and so does this.
pub(super) fn read(query: &str) -> ListOptions {
    let mut first = First::default();
    for (key, value) in query::pairs(query) {
        let slot = match key.as_ref() {
            "watch" => &mut first.watch,
            "labelSelector" => &mut first.label_selector,
            "fieldSelector" => &mut first.field_selector,
            "timeoutSeconds" => &mut first.timeout_seconds,
            "limit" => &mut first.limit,
            _ => continue,
        };
        slot.get_or_insert(value);
    }
    let watch = first.watch.as_deref().is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"));
    ListOptions { watch, name: first.name().unwrap_or_default() }
}

/// The first value of each option.
#[derive(Default)]
struct First<'q> {
    watch: Option<Cow<'q, str>>,
    label_selector: Option<Cow<'q, str>>,
    field_selector: Option<Cow<'q, str>>,
    timeout_seconds: Option<Cow<'q, str>>,
    limit: Option<Cow<'q, str>>,
}

impl First<'_> {
    fn name(&self) -> Option<String> {
        let name = required_name(self.field_selector.as_deref()?)?;
        let integers = [&self.timeout_seconds, &self.limit];
        let decodes = integers.into_iter().flatten().all(|value| value.parse::<i64>().is_ok())
            && self.label_selector.as_deref().is_none_or(label_selector::is_valid);
        (decodes && is_path_segment(&name)).then_some(name)
    }
}

/// The value that a valid field selector demands of `metadata.name`; `None` also for an invalid one.
fn required_name(selector: &str) -> Option<String> {
    let mut terms = split_terms(selector);
    // Upstream sorts the terms, so with two names the smaller term wins.
    terms.sort_unstable();
    let mut name = None;
    for term in terms.into_iter().filter(|term| !term.is_empty()) {
        let (field, equals, value) = split_term(term)?;
        let value = unescape(value)?;
        if equals && field == "metadata.name" && name.is_none() {
            name = Some(value);
        }
    }
    name
}

/// Splits at commas that no backslash precedes.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut escaped = false;
    selector
        .split(|c| {
            let separates = c == ',' && !escaped;
            escaped = c == '\\' && !escaped;
            separates
        })
        .collect()
}

/// Field, whether the operator demands equality, and value.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let (field, value) = term.split_once('=')?;
    if let Some(field) = field.strip_suffix('!') {
        return Some((field, false, value));
    }
    Some((field, true, value.strip_prefix('=').unwrap_or(value)))
}

fn unescape(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => plain.push(characters.next().filter(|c| matches!(c, '\\' | ',' | '='))?),
            ',' | '=' => return None,
            _ => plain.push(c),
        }
    }
    Some(plain)
}

fn is_path_segment(name: &str) -> bool {
    name != "." && name != ".." && !name.contains(['/', '%'])
}
