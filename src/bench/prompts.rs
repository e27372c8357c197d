//! Prompts: sentences of a public-domain text in an order that a number chooses.
//!
//! Equal numbers are equal prompts, and equal identities of a trace are equal pieces of prompts. Prompts of different
//! numbers differ in their first bytes, so that no cache of prefixes holds a block of one for another.

use std::fmt::Write;

use crate::spec::fleet::CONTENT_TOKENS;
use crate::traffic::content::mixed;

/// The Declaration of Independence of the United States, 1776, a sentence a line: in the public domain.
const TEXT: &str = include_str!("declaration.txt");

/// Bytes of a token before a server counts them: English has about four
/// (<https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them>).
pub(super) const TOKEN_BYTES: f64 = 4.0;
/// Sets the pieces of a trace off from the prompts of the same numbers.
const OF_PIECES: u64 = 1;

/// How long prompts are in bytes, by the tokens that a server counts in them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PromptScale {
    /// Tokens that each prompt has in addition to its text, such as those of a template.
    added_tokens: f64,
    token_bytes: f64,
}

impl PromptScale {
    /// Before a server counts any.
    pub(super) const UNCOUNTED: PromptScale = PromptScale { added_tokens: 0.0, token_bytes: TOKEN_BYTES };

    /// The scale of prompts with these bytes, in which a server counts these tokens: of a short one and a long one, or
    /// of one alone.
    pub(super) fn of(counts: &[(usize, u64)]) -> PromptScale {
        let Some((bytes, tokens)) = counts.last().map(|(bytes, tokens)| (*bytes as f64, *tokens as f64))
        else {
            return PromptScale::UNCOUNTED;
        };
        let plain = PromptScale { added_tokens: 0.0, token_bytes: bytes / tokens };
        let first = counts.first().map(|(bytes, tokens)| (*bytes as f64, *tokens as f64));
        let two =
            first.filter(|(few_bytes, few)| bytes > *few_bytes && tokens > *few).map(|(few_bytes, few)| {
                let token_bytes = (bytes - few_bytes) / (tokens - few);
                PromptScale { added_tokens: few - few_bytes / token_bytes, token_bytes }
            });
        two.filter(|scale| scale.added_tokens > 0.0).unwrap_or(plain)
    }

    /// Bytes of a prompt of `tokens` tokens.
    pub(super) fn bytes(&self, tokens: u64) -> usize {
        ((tokens as f64 - self.added_tokens).max(1.0) * self.token_bytes).round().max(1.0) as usize
    }

    /// Bytes of a piece of a prompt that a trace identifies.
    fn piece_bytes(&self) -> usize {
        (f64::from(CONTENT_TOKENS) * self.token_bytes).round().max(1.0) as usize
    }
}

/// The prompt of a number with `tokens` tokens, whose first pieces have these identities: prompts with the same ones
/// begin with the same text, as those of the trace did.
pub(super) fn traced_prompt(
    seed: u64,
    number: u64,
    content: &[u64],
    (scale, tokens): (PromptScale, u64),
) -> String {
    let (bytes, piece) = (scale.bytes(tokens), scale.piece_bytes());
    let mut text = String::with_capacity(bytes + piece);
    for identity in content {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&prompt(mixed(seed, OF_PIECES), *identity, piece));
    }
    if text.len() < bytes {
        text.push_str(&prompt(seed, number, bytes - text.len()));
    }
    text.truncate(bytes);
    text
}

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

    /// Prompts of random identities have in common what their leading identities are, and nothing where these differ.
    #[test]
    fn traced_prompts_share_what_their_leading_identities_share() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..40 {
            let scale = PromptScale { added_tokens: 0.0, token_bytes: 0.25 * f64::from(rng.u32(4..24)) };
            let piece = scale.piece_bytes();
            let mut content = || -> Vec<u64> { (0..rng.usize(0..5)).map(|_| rng.u64(0..3)).collect() };
            let contents = [content(), content()];
            let made = |number: u64| {
                let content = &contents[number as usize];
                let tokens = u64::from(CONTENT_TOKENS) * content.len() as u64 + 300;
                let text = traced_prompt(9, number, content, (scale, tokens));
                assert_eq!(text.len(), scale.bytes(tokens));
                assert_eq!(text, traced_prompt(9, number, content, (scale, tokens)));
                assert_ne!(text, traced_prompt(8, number, content, (scale, tokens)), "another seed");
                text
            };
            let [one, other] = [0, 1].map(made);
            let common = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
            let pieces = contents[0].iter().zip(&contents[1]).take_while(|(a, b)| a == b).count();
            // The digits of two pieces may begin with the same few.
            assert!(
                (pieces * piece..pieces * piece + 16).contains(&common),
                "{common} bytes of {contents:?}"
            );
        }
    }

    #[test]
    fn a_scale_goes_through_the_counts_of_a_server() {
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..200 {
            let (added, token_bytes) = (rng.u64(0..40), 0.5 * f64::from(rng.u32(4..14)));
            let counted = |bytes: usize| (bytes, added + (bytes as f64 / token_bytes).round() as u64);
            let scale = PromptScale::of(&[counted(rng.usize(100..400)), counted(rng.usize(20_000..90_000))]);
            for tokens in [200, 3000, 50_000] {
                let found = counted(scale.bytes(tokens)).1 as f64 / tokens as f64;
                assert!((found - 1.0).abs() < 0.02, "{found} of {tokens}, {added} and {token_bytes}");
            }
        }
        assert_eq!(PromptScale::of(&[]), PromptScale::UNCOUNTED);
        assert_eq!(PromptScale::of(&[(600, 200)]).bytes(100), 300);
        assert_eq!(PromptScale::of(&[(600, 200), (600, 200)]).bytes(100), 300);
    }

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
