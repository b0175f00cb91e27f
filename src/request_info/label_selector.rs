//! Whether a label selector is one. What it selects is none of our business.
//!
//! Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/labels/selector.go> and
//! `pkg/api/validate/content/kube.go` beside it.

use std::iter::Peekable;
use std::vec::IntoIter;

/// Longest name part of a key, and longest value, in bytes.
const MAX_LENGTH: usize = 63;
/// Longest prefix of a key, in bytes.
const MAX_PREFIX_LENGTH: usize = 253;

/// Whether kube-apiserver would accept this label selector.
pub(super) fn is_valid(selector: &str) -> bool {
    Parser { tokens: tokens(selector).into_iter().peekable() }.selector().is_some()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Token<'s> {
    /// A word, which the words `in` and `notin` are as well.
    Word(&'s str),
    /// `!`, `=`, `==`, `!=`, `<`, `>`, `(`, `)` or `,`.
    Symbol(&'s str),
}

fn tokens(selector: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = selector.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next().filter(|c| *c != '\0') {
        let length = if !is_symbol(first) {
            rest.find(|c| is_symbol(c) || is_space(c) || c == '\0').unwrap_or(rest.len())
        } else if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else {
            1
        };
        let (token, after) = rest.split_at(length);
        found.push(if is_symbol(first) { Token::Symbol(token) } else { Token::Word(token) });
        // A NUL right after a token is swallowed with it; anywhere else it ends the selector.
        rest = after.strip_prefix('\0').unwrap_or(after).trim_start_matches(is_space);
    }
    found
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

/// Recursive descent; every method returns `None` where the selector is wrong.
struct Parser<'s> {
    tokens: Peekable<IntoIter<Token<'s>>>,
}

impl<'s> Parser<'s> {
    fn selector(&mut self) -> Option<()> {
        if self.tokens.peek().is_none() {
            return Some(());
        }
        loop {
            self.requirement()?;
            match self.tokens.next() {
                None => return Some(()),
                Some(Token::Symbol(",")) => {}
                Some(_) => return None,
            }
        }
    }

    fn requirement(&mut self) -> Option<()> {
        let negated = self.tokens.next_if_eq(&Token::Symbol("!")).is_some();
        self.word().filter(|key| is_key(key))?;
        if negated || self.at_end_of_requirement() {
            return Some(());
        }
        match self.tokens.next()? {
            Token::Word("in" | "notin") => self.values(),
            Token::Symbol("=" | "==" | "!=") => is_value(self.exact_value()?).then_some(()),
            Token::Symbol("<" | ">") => {
                let value = self.exact_value()?;
                (value.parse::<i64>().is_ok() && is_value(value)).then_some(())
            }
            _ => None,
        }
    }

    fn exact_value(&mut self) -> Option<&'s str> {
        if self.at_end_of_requirement() { Some("") } else { self.word() }
    }

    /// `(a,b)`, in which any value may be empty.
    fn values(&mut self) -> Option<()> {
        self.tokens.next_if_eq(&Token::Symbol("("))?;
        loop {
            match self.tokens.next()? {
                Token::Symbol(")") => return Some(()),
                Token::Symbol(",") => {}
                Token::Word(value) => {
                    let closes = [Token::Symbol(","), Token::Symbol(")")];
                    if !is_value(value) || !self.tokens.peek().is_some_and(|token| closes.contains(token)) {
                        return None;
                    }
                }
                Token::Symbol(_) => return None,
            }
        }
    }

    fn word(&mut self) -> Option<&'s str> {
        match self.tokens.next()? {
            Token::Word(word) => Some(word),
            Token::Symbol(_) => None,
        }
    }

    fn at_end_of_requirement(&mut self) -> bool {
        matches!(self.tokens.peek(), None | Some(Token::Symbol(",")))
    }
}

fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

fn is_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_name(name: &str) -> bool {
    name.len() <= MAX_LENGTH
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn is_subdomain(domain: &str) -> bool {
    let outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    domain.len() <= MAX_PREFIX_LENGTH
        && domain.split('.').all(|label| {
            label.starts_with(outer) && label.ends_with(outer) && label.chars().all(|c| outer(c) || c == '-')
        })
}
