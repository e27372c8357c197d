//! Prompts as runs of tokens: equal beginnings are equal tokens, so that caches find them.

use crate::traffic::content::{TokenRun, mixed};

/// UTF-8 bytes of a token of text: English has about four characters in one
/// (<https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them>).
const TOKEN_BYTES: usize = 4;

/// The text of each token of an answer. It is one token of a later prompt too, which so begins with the answers before.
pub(super) const FILLER: &str = " tok";

/// Kinds of tokens, whose identities differ.
#[derive(Clone, Copy)]
enum TokenKind {
    Text,
    /// A token that the client counted.
    Given,
    /// The role of a message, in place of the tokens of a chat template.
    Role,
}

/// The tokens of a prompt, one by one.
#[derive(Clone, Debug, Default)]
pub(super) struct PromptTokens(Vec<TokenRun>);

impl PromptTokens {
    /// A text: four bytes of UTF-8 are a token.
    pub(super) fn text(&mut self, text: &str) {
        text.as_bytes().chunks(TOKEN_BYTES).for_each(|piece| self.push(TokenKind::Text, hashed(piece)));
    }

    /// A token that the client counted.
    pub(super) fn given(&mut self, token: u64) {
        self.push(TokenKind::Given, token);
    }

    /// The role of a message: one token.
    pub(super) fn role(&mut self, role: &str) {
        self.push(TokenKind::Role, hashed(role.as_bytes()));
    }

    fn push(&mut self, kind: TokenKind, value: u64) {
        self.0.push(TokenRun { id: mixed(kind as u64, value), tokens: 1 });
    }

    /// Tokens so far.
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The prompt, and `output` tokens of its answer.
    pub(super) fn with_answer(mut self, output: u32) -> Vec<TokenRun> {
        (0..output).for_each(|_| self.text(FILLER));
        self.0
    }
}

/// A number for a text; texts of different lengths have different ones too.
pub(super) fn hashed(text: &[u8]) -> u64 {
    text.iter().fold(text.len() as u64, |hash, byte| mixed(hash, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(messages: &[(&str, &str)]) -> PromptTokens {
        let mut prompt = PromptTokens::default();
        for (role, text) in messages {
            prompt.role(role);
            prompt.text(text);
        }
        prompt.role("assistant");
        prompt
    }

    #[test]
    fn a_later_turn_begins_with_the_turn_before_and_its_answer() {
        let first = chat(&[("user", "How are you?")]);
        assert_eq!(first.len(), 1 + 3 + 1);
        let answered = first.with_answer(5);
        let answer = FILLER.repeat(5);
        let later = chat(&[("user", "How are you?"), ("assistant", &answer), ("user", "And now?")]);
        assert_eq!(later.0[..answered.len()], answered[..]);
        let other = chat(&[("user", "How are they?")]);
        assert_eq!(other.0[..3], answered[..3]);
        assert!(other.0[3] != answered[3]);
    }

    #[test]
    fn texts_and_tokens_differ_and_the_last_piece_counts() {
        let (mut text, mut given) = (PromptTokens::default(), PromptTokens::default());
        text.text("12345");
        (0..2).for_each(|token| given.given(token));
        assert_eq!((text.len(), given.len()), (2, 2));
        assert!(text.0.iter().all(|run| !given.0.contains(run)));
    }
}
