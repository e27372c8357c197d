//! The ends of quotes and of expansions in a text.

use std::collections::HashMap;

/// Quotes in quotes: further ones are plain characters.
const DEEPEST: usize = 24;

/// A text by characters. An opener whose end is missing is a plain character, so that every text has words.
pub(super) struct Scan {
    pub(super) chars: Vec<char>,
    /// Ends of the openers seen so far: each is searched once.
    ends: HashMap<usize, usize>,
}

impl Scan {
    pub(super) fn new(text: &str) -> Scan {
        Scan { chars: text.chars().collect(), ends: HashMap::new() }
    }

    pub(super) fn at(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    pub(super) fn text(&self, from: usize, to: usize) -> String {
        self.chars.get(from..to.min(self.chars.len())).unwrap_or_default().iter().collect()
    }

    pub(super) fn starts(&self, at: usize, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, c)| self.at(at + offset) == Some(c))
    }

    /// The place after the quote, expansion or plain character at `at`.
    pub(super) fn skip(&mut self, at: usize) -> usize {
        self.skip_within(at, false, 0)
    }

    /// The place after the expansion or plain character at `at` of a text in double quotes.
    pub(super) fn skip_quoted(&mut self, at: usize) -> usize {
        self.skip_within(at, true, 0)
    }

    fn skip_within(&mut self, at: usize, quoted: bool, depth: usize) -> usize {
        let plain = at + 1;
        if depth > DEEPEST {
            return plain;
        }
        match self.at(at) {
            Some('\\') => (at + 2).min(self.chars.len()),
            Some('\'') if !quoted => self.until(at, plain, '\'').unwrap_or(plain),
            Some('"') if !quoted => self.closed((at, plain), '"', true, depth).unwrap_or(plain),
            Some('`') => self.closed((at, plain), '`', false, depth).unwrap_or(plain),
            Some('$') => self.skip_dollar(at, quoted, depth),
            _ => plain,
        }
    }

    fn skip_dollar(&mut self, at: usize, quoted: bool, depth: usize) -> usize {
        let plain = at + 1;
        let end = match self.at(plain) {
            Some('(') => self.closed((at, at + 2), ')', false, depth),
            Some('{') => self.closed((at, at + 2), '}', quoted, depth),
            Some('\'') if !quoted => self.closed((at, at + 2), '\'', false, depth),
            _ => None,
        };
        end.unwrap_or(plain)
    }

    fn until(&mut self, opener: usize, from: usize, close: char) -> Option<usize> {
        if let Some(end) = self.ends.get(&opener) {
            return Some(*end).filter(|end| *end > opener);
        }
        let end = (from..self.chars.len()).find(|at| self.chars[*at] == close).map(|at| at + 1);
        self.ends.insert(opener, end.unwrap_or(0));
        end
    }

    /// The place after `close` of what begins at `from`; the quotes and expansions within are skipped.
    fn closed(
        &mut self,
        (opener, from): (usize, usize),
        close: char,
        quoted: bool,
        depth: usize,
    ) -> Option<usize> {
        if let Some(end) = self.ends.get(&opener) {
            return Some(*end).filter(|end| *end > opener);
        }
        let (mut at, mut inner, mut end) = (from, 0_usize, None);
        while let Some(c) = self.at(at) {
            if c == close && inner == 0 {
                end = Some(at + 1);
                break;
            }
            match c {
                '(' if close == ')' => inner += 1,
                ')' if close == ')' => inner -= 1,
                _ => {}
            }
            let comment = close == ')' && c == '#' && self.at(at - 1).is_some_and(char::is_whitespace);
            at = match close {
                _ if comment => self.line_end(at),
                '\'' | '`' if c != '\\' => at + 1,
                _ => self.skip_within(at, quoted, depth + 1),
            };
        }
        self.ends.insert(opener, end.unwrap_or(0));
        end
    }

    pub(super) fn line_end(&self, at: usize) -> usize {
        (at..self.chars.len()).find(|at| self.chars[*at] == '\n').unwrap_or(self.chars.len())
    }
}
