//! Inputs that are nearly what a parser expects: a seed with a few changes. Pure noise would end at its first byte.

use bolero::TypeGenerator;

/// Changes of a text, made one after the other.
#[derive(Clone, Debug, TypeGenerator)]
pub(crate) struct Edits(Vec<Edit>);

/// One change at a place, counted modulo the text's length.
#[derive(Clone, Debug, TypeGenerator)]
struct Edit {
    at: u16,
    change: Change,
}

#[derive(Clone, Debug, TypeGenerator)]
enum Change {
    /// Removes so many bytes.
    Remove(u16),
    /// Puts bytes in.
    Insert(Vec<u8>),
    /// Puts in a piece of the text itself: where it begins, and how long it is.
    Repeat(u16, u16),
    /// Puts in one of [`WORDS`], counted modulo their number.
    Word(u8),
}

/// What means something to a parser.
const WORDS: [&str; 24] = [
    "null",
    "true",
    "[]",
    "{}",
    "{",
    "[",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "-1",
    "1e999",
    ",",
    ":",
    "/",
    "//",
    ";",
    "=",
    "*/*",
    "q=",
    "q=nan",
    "\"kind\":\"\",",
    "\"versions\":null,",
    "\u{212a}",
];

impl Edits {
    pub(crate) fn of(&self, seed: &str) -> Vec<u8> {
        self.0.iter().fold(seed.as_bytes().to_vec(), |text, edit| edit.apply(text))
    }
}

impl Edit {
    fn apply(&self, mut text: Vec<u8>) -> Vec<u8> {
        let at = usize::from(self.at) % (text.len() + 1);
        let piece = match &self.change {
            Change::Remove(length) => {
                text.drain(at..text.len().min(at + usize::from(*length)));
                return text;
            }
            Change::Insert(bytes) => bytes.clone(),
            Change::Repeat(from, length) => {
                let from = usize::from(*from) % (text.len() + 1);
                text[from..text.len().min(from + usize::from(*length))].to_vec()
            }
            Change::Word(number) => WORDS[usize::from(*number) % WORDS.len()].as_bytes().to_vec(),
        };
        text.splice(at..at, piece);
        text
    }
}
