//! Conditions: `[ … ]`, `[[ … ]]` and `(( … ))`. One that rests on something unknown is not known itself.

use super::arithmetic;
use super::pattern::matches;
use super::run::{Shell, ShellStatus};
use super::scan::Scan;
use super::text::ShellText;

/// Conditions in conditions: deeper ones are not known.
const DEEPEST: usize = 24;

impl Shell<'_> {
    /// The status of a condition: known, or what a shell gives that sets no more than the script.
    fn judged(&mut self, judge: impl Fn(&mut Self) -> Option<bool>) -> ShellStatus {
        let outside = std::mem::take(&mut self.used);
        let strict = judge(self);
        let doubted = self.used.iter().any(|name| self.doubts.contains_key(name));
        self.used.extend(outside);
        match strict {
            Some(holds) if !doubted => ShellStatus::Known(holds),
            Some(holds) => ShellStatus::Open(Some(holds)),
            None => {
                let before = std::mem::replace(&mut self.unset_is_empty, true);
                let usual = judge(self);
                self.unset_is_empty = before;
                ShellStatus::Open(usual)
            }
        }
    }

    /// `(( … ))`
    pub(super) fn arithmetic_test(&mut self, text: &str) -> ShellStatus {
        self.judged(|shell| shell.number(text).map(|number| number != 0))
    }

    /// `[ … ]`, without its brackets.
    pub(super) fn single_test(&mut self, words: &[String]) -> ShellStatus {
        self.judged(|shell| {
            let words: Vec<ShellText> = words.iter().flat_map(|word| shell.words_of(word)).collect();
            shell.single(&words, 0)
        })
    }

    fn single(&mut self, words: &[ShellText], depth: usize) -> Option<bool> {
        if depth > DEEPEST {
            return None;
        }
        let shown: Vec<String> = words.iter().map(ShellText::shown).collect();
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        match &shown[..] {
            [] => return Some(false),
            [_] => return words[0].value().map(|text| !text.is_empty()),
            ["!", ..] => return self.single(&words[1..], depth + 1).map(|holds| !holds),
            [operator, _] => return self.unary(operator, &words[1]),
            [_, operator, _] if BINARY.contains(operator) => {
                let (left, right) = (words[0].value(), words[2].value());
                return self.binary(left, operator, right, false);
            }
            _ => {}
        }
        for (joint, and) in [("-o", false), ("-a", true)] {
            if let Some(at) = shown.iter().position(|word| *word == joint) {
                let left = self.single(&words[..at], depth + 1);
                let right = self.single(&words[at + 1..], depth + 1);
                return joined(left, right, and);
            }
        }
        None
    }

    /// `[[ … ]]`, without its brackets.
    pub(super) fn double_test(&mut self, text: &str) -> ShellStatus {
        let words = test_words(text);
        self.judged(|shell| {
            let mut at = 0;
            let holds = shell.either(&words, &mut at, 0);
            if at == words.len() { holds } else { None }
        })
    }

    fn either(&mut self, words: &[String], at: &mut usize, depth: usize) -> Option<bool> {
        let mut holds = self.both(words, at, depth);
        while words.get(*at).is_some_and(|word| word == "||") {
            *at += 1;
            let right = self.both(words, at, depth);
            holds = joined(holds, right, false);
        }
        holds
    }

    fn both(&mut self, words: &[String], at: &mut usize, depth: usize) -> Option<bool> {
        let mut holds = self.primary(words, at, depth);
        while words.get(*at).is_some_and(|word| word == "&&") {
            *at += 1;
            let right = self.primary(words, at, depth);
            holds = joined(holds, right, true);
        }
        holds
    }

    fn primary(&mut self, words: &[String], at: &mut usize, depth: usize) -> Option<bool> {
        let first = words.get(*at).filter(|_| depth <= DEEPEST)?;
        *at += 1;
        if first == "!" {
            return self.primary(words, at, depth + 1).map(|holds| !holds);
        }
        if first == "(" {
            let holds = self.either(words, at, depth + 1);
            *at += usize::from(words.get(*at).is_some_and(|word| word == ")"));
            return holds;
        }
        let ends = |word: &str| ["&&", "||", ")"].contains(&word);
        if let Some(operand) = words.get(*at).filter(|next| is_unary(first) && !ends(next)) {
            *at += 1;
            let operand = self.text_of(operand);
            return self.unary(first, &operand);
        }
        let Some(operator) = words.get(*at).filter(|next| BINARY.contains(&next.as_str())) else {
            return self.text_of(first).value().map(|text| !text.is_empty());
        };
        *at += 1;
        let right = words.get(*at)?;
        *at += 1;
        let left = self.text_of(first).value();
        // In quotes a pattern is a plain text.
        let quoted = right.starts_with(['"', '\'']);
        let right = self.text_of(right).value();
        self.binary(left, operator, right, !quoted)
    }

    fn unary(&mut self, operator: &str, operand: &ShellText) -> Option<bool> {
        match operator {
            "-z" => operand.value().map(|text| text.is_empty()),
            "-n" => operand.value().map(|text| !text.is_empty()),
            "-f" | "-e" | "-r" | "-s" => self.file(&operand.value()?).map(|_| true),
            "-v" => {
                let name = operand.value()?;
                if self.is_set(&name) { Some(true) } else { self.unset_is_empty.then_some(false) }
            }
            _ => None,
        }
    }

    fn binary(
        &mut self,
        left: Option<String>,
        operator: &str,
        right: Option<String>,
        pattern: bool,
    ) -> Option<bool> {
        let (left, right) = (left?, right?);
        let equal = || if pattern { matches(&left, &right) } else { left == right };
        match operator {
            "=" | "==" => return Some(equal()),
            "!=" => return Some(!equal()),
            "<" => return Some(left < right),
            ">" => return Some(left > right),
            _ => {}
        }
        let (left, right) = match pattern {
            true => (arithmetic::evaluate(&left, self)?, arithmetic::evaluate(&right, self)?),
            false => match (left.trim().parse::<i64>(), right.trim().parse::<i64>()) {
                (Ok(left), Ok(right)) => (left, right),
                // A fault of the condition: it does not hold.
                _ => return Some(false),
            },
        };
        match operator {
            "-eq" => Some(left == right),
            "-ne" => Some(left != right),
            "-lt" => Some(left < right),
            "-le" => Some(left <= right),
            "-gt" => Some(left > right),
            "-ge" => Some(left >= right),
            _ => None,
        }
    }
}

const BINARY: [&str; 12] = ["=", "==", "!=", "<", ">", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

fn is_unary(word: &str) -> bool {
    word.len() == 2 && word.starts_with('-') && word.ends_with(|c: char| c.is_ascii_alphabetic())
}

/// `a && b` or `a || b`, where either may not be known.
fn joined(left: Option<bool>, right: Option<bool>, and: bool) -> Option<bool> {
    match (left, right) {
        (Some(one), _) | (_, Some(one)) if one != and => Some(one),
        (Some(_), Some(_)) => Some(and),
        _ => None,
    }
}

/// The words of `[[ … ]]`, as written.
fn test_words(text: &str) -> Vec<String> {
    let mut scan = Scan::new(text);
    let (mut words, mut at) = (vec![String::new()], 0);
    while let Some(c) = scan.at(at) {
        let operator = ["&&", "||", "(", ")"].into_iter().find(|operator| scan.starts(at, operator));
        if let Some(operator) = operator {
            at += operator.len();
            words.extend([operator.to_owned(), String::new()]);
        } else if c.is_whitespace() {
            at += 1;
            words.push(String::new());
        } else {
            let next = scan.skip(at);
            let part = scan.text(at, next);
            at = next;
            if let Some(word) = words.last_mut() {
                word.push_str(&part);
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
