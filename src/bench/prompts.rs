//! Prompts: sentences of a public-domain text in an order that a number chooses.
//!
//! Equal numbers are equal prompts. Prompts of different numbers differ in their first bytes, so that no cache of prefixes
//! holds a block of one for another.

use std::fmt::Write;

use crate::traffic::content::mixed;

/// The Declaration of Independence of the United States, 1776, a sentence a line: in the public domain.
const TEXT: &str = include_str!("declaration.txt");

/// Bytes of a token before a server counts them: English has about four
/// (<https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them>).
pub(super) const TOKEN_BYTES: f64 = 4.0;

/// The prompt of a number, with `bytes` bytes.
pub(super) fn prompt(seed: u64, number: u64, bytes: usize) -> String {
    let sentences: Vec<&str> = TEXT.lines().collect();
    let own = mixed(mixed(seed, number), 0);
    let mut text = String::with_capacity(bytes + 512);
    // Writing to a text cannot fail.
    let _ = write!(text, "{own:016x}.");
    let mut place = 1;
    while text.len() < bytes {
        let sentence = mixed(mixed(seed, number), place) % sentences.len() as u64;
        text.push(' ');
        text.push_str(sentences[sentence as usize]);
        place += 1;
    }
    // The text is ASCII: every byte is a character.
    text.truncate(bytes.max(1));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_repeat_by_number_and_differ_from_their_first_bytes_on() {
        assert!(TEXT.is_ascii());
        assert_eq!(prompt(7, 1, 5000), prompt(7, 1, 5000));
        assert_eq!(prompt(7, 1, 5000).len(), 5000);
        assert!(prompt(7, 1, 5000).starts_with(&prompt(7, 1, 300)));
        let mut beginnings: Vec<String> = (0..5000).map(|number| prompt(7, number, 16)).collect();
        beginnings.extend((0..5000).map(|number| prompt(8, number, 16)));
        beginnings.sort();
        beginnings.dedup();
        assert_eq!(beginnings.len(), 10_000);
    }
}
