//! A string in the plainest style that holds it, folded where the line is long.
//!
//! Source: <https://github.com/yaml/go-yaml/blob/v2.4.3/emitterc.go> (`yaml_emitter_analyze_scalar`,
//! `yaml_emitter_select_scalar_style` and the writers)

use super::plain;
use super::{Emitter, INDENT};

/// A space beyond this column becomes a line break.
const BEST_WIDTH: usize = 80;

/// Where a string stands.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Position {
    /// Before a colon: on one line.
    Key,
    /// Anywhere else.
    Value,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

impl Emitter {
    /// Writes a string; further lines of it begin at `indent`.
    pub(super) fn string(&mut self, text: &str, indent: usize, position: Position) {
        match style(text, position) {
            Style::Plain => self.folded(text, indent, position, false),
            Style::SingleQuoted => {
                self.write("'");
                self.folded(text, indent, position, true);
                self.write("'");
            }
            Style::DoubleQuoted => self.double_quoted(text, indent, position),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// A text in which a single quote is doubled if it stands in such. What follows a line break that is not ASCII is indented.
    fn folded(&mut self, text: &str, indent: usize, position: Position, is_quoted: bool) {
        let (mut after_space, mut after_break) = (false, false);
        for (at, character) in text.char_indices() {
            if after_break && !is_break(character) && character != ' ' {
                self.write(&" ".repeat(indent));
            }
            let is_inner = at > 0 && at + 1 < text.len();
            let is_single = !after_space && !text[at + character.len_utf8()..].starts_with(' ');
            let may_break = position == Position::Value && is_single && (is_inner || !is_quoted);
            match character {
                ' ' if may_break && self.column > BEST_WIDTH => self.line(indent),
                '\'' if is_quoted => self.write("''"),
                _ => self.put(character),
            }
            after_space = character == ' ';
            after_break = is_break(character);
            if after_break {
                self.column = 0;
            }
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, position: Position) {
        self.write("\"");
        let mut after_space = false;
        // Upstream asks at each character whether the text begins with a byte order mark.
        let is_marked = text.starts_with('\u{feff}');
        for (at, character) in text.char_indices() {
            let is_inner = at > 0 && at + 1 < text.len();
            if !is_printable(character) || is_break(character) || is_marked || matches!(character, '"' | '\\') {
                self.write(&escape(character));
                after_space = false;
                continue;
            }
            let is_space = character == ' ';
            if is_space && position == Position::Value && !after_space && self.column > BEST_WIDTH && is_inner {
                self.line(indent);
                if text[at + 1..].starts_with(' ') {
                    self.write("\\");
                }
            } else {
                self.put(character);
            }
            after_space = is_space;
        }
        self.write("\"");
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.write("|");
        if text.starts_with([' ', '\n']) {
            self.write(&INDENT.to_string());
        }
        match text.strip_suffix('\n') {
            None => self.write("-"),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.write("+"),
            Some(_) => {}
        }
        let lines = text.strip_suffix('\n').unwrap_or(text);
        for line in lines.split('\n') {
            if line.is_empty() {
                self.out.push('\n');
                self.column = 0;
            } else {
                self.line(indent);
                self.write(line);
            }
        }
    }

    fn put(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }
}

fn style(text: &str, position: Position) -> Style {
    let wanted = if text.contains('\n') {
        Style::Literal
    } else if plain::is_string(text) {
        Style::Plain
    } else {
        Style::DoubleQuoted
    };
    let found = Analysis::of(text);
    match wanted {
        Style::Literal if position == Position::Value && found.may_be_literal => Style::Literal,
        Style::Plain if found.may_be_plain => Style::Plain,
        Style::Plain if found.may_be_single_quoted => Style::SingleQuoted,
        _ => Style::DoubleQuoted,
    }
}

/// What a text allows.
struct Analysis {
    may_be_plain: bool,
    may_be_single_quoted: bool,
    may_be_literal: bool,
}

impl Analysis {
    fn of(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let pairs = || characters.windows(2).map(|pair| (pair[0], pair[1]));
        let is_special = !characters.iter().copied().all(is_printable);
        let has_space_before_break = pairs().any(|(one, next)| one == ' ' && is_break(next));
        let has_space_after_break = pairs().any(|(one, next)| is_break(one) && next == ' ');
        let has_break = characters.iter().copied().any(is_break);
        let is_edge = |edge: Option<&char>| edge.is_some_and(|c| *c == ' ' || is_break(*c));
        let is_wrapped = is_edge(characters.first()) || is_edge(characters.last());
        let is_broken = is_special || has_space_before_break;
        Self {
            may_be_plain: !is_wrapped
                && !is_broken
                && !has_space_after_break
                && !has_break
                && !has_indicator(text, &characters),
            may_be_single_quoted: !is_broken && !has_space_after_break,
            // Upstream writes other line breaks than `\n` here too; nobody's documents have them.
            may_be_literal: !is_broken && !text.ends_with(' ') && !text.contains(['\u{2028}', '\u{2029}']),
        }
    }
}

/// Whether something in the text would mean something without quotes.
fn has_indicator(text: &str, characters: &[char]) -> bool {
    let is_blank_or_end = |at: usize| characters.get(at).is_none_or(|c| matches!(c, ' ' | '\t'));
    let at_start = match characters.first() {
        Some('#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`') => true,
        Some('?' | ':' | '-') => is_blank_or_end(1),
        _ => false,
    };
    let within = (1..characters.len()).any(|at| match characters[at] {
        ':' => is_blank_or_end(at + 1),
        '#' => matches!(characters[at - 1], ' ' | '\t' | '\0') || is_break(characters[at - 1]),
        _ => false,
    });
    at_start || within || text.starts_with("---") || text.starts_with("...")
}

pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && character != '\u{feff}'
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        other => match u32::from(other) {
            code @ ..=0xff => return format!("\\x{code:02X}"),
            code @ ..=0xffff => return format!("\\u{code:04X}"),
            code => return format!("\\U{code:08X}"),
        },
    };
    format!("\\{short}")
}
