//! Keys in go-yaml's order: letters behind everything else, numbers by their value.
//!
//! Source: <https://github.com/yaml/go-yaml/blob/v2.4.3/sorter.go>

use std::cmp::Ordering;

use serde_json::{Map, Value};

pub(super) fn sorted(map: &Map<String, Value>) -> Vec<&String> {
    let mut keys: Vec<&String> = map.keys().collect();
    // Go's comparison is no order for every set of names; an insertion sort does not mind.
    for end in 1..keys.len() {
        let mut index = end;
        while index > 0 && compare(keys[index], keys[index - 1]) == Ordering::Less {
            keys.swap(index, index - 1);
            index -= 1;
        }
    }
    keys
}

fn compare(one: &str, other: &str) -> Ordering {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let Some(at) = one.iter().zip(&other).position(|(a, b)| a != b) else {
        return one.len().cmp(&other.len());
    };
    match (one[at].is_alphabetic(), other[at].is_alphabetic()) {
        (true, true) => one[at].cmp(&other[at]),
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => compare_numbers(&one, &other, at),
    }
}

/// Compares what begins at the first difference: first by number, then by the length of the number.
fn compare_numbers(one: &[char], other: &[char], at: usize) -> Ordering {
    let is_zero = one[at] == '0' || other[at] == '0';
    let before = one[..at].iter().rev().take_while(|c| c.is_ascii_digit());
    // A zero within a number: the digits from here on count as if a 1 stood before them.
    let start = u64::from(is_zero && before.into_iter().any(|digit| *digit != '0'));
    let number = |text: &[char]| {
        let digits: Vec<u64> = text[at..].iter().map_while(|c| c.to_digit(10)).map(u64::from).collect();
        let value = digits.iter().fold(start, |value, digit| value.wrapping_mul(10).wrapping_add(*digit));
        (value, digits.len())
    };
    number(one).cmp(&number(other)).then(one[at].cmp(&other[at]))
}
