//! Words as a shell expands them.

use super::arithmetic;
use super::pattern::{is_plain, removed};
use super::run::{Shell, ShellStatus, Value};
use super::scan::Scan;
use super::text::{ShellText, WordPiece};

/// Expansions in expansions: further ones are not known.
const DEEPEST: usize = 24;

/// The words that a raw word becomes.
#[derive(Default)]
struct Fields {
    done: Vec<ShellText>,
    current: ShellText,
    /// Whether there is a current word, though it may be empty.
    open: bool,
}

impl Fields {
    fn push(&mut self, piece: WordPiece) {
        self.open = true;
        self.current.push(piece);
    }

    fn end(&mut self) {
        if self.open {
            self.done.push(std::mem::take(&mut self.current));
            self.open = false;
        }
    }

    /// A value without quotes: blanks divide it.
    fn split(&mut self, value: ShellText) {
        for piece in value.pieces() {
            let WordPiece::Known(text) = piece else {
                self.push(piece.clone());
                continue;
            };
            for (at, part) in text.split(char::is_whitespace).enumerate() {
                if at > 0 {
                    self.end();
                }
                if !part.is_empty() {
                    self.push(WordPiece::Known(part.to_owned()));
                }
            }
        }
    }
}

/// How a word is read.
#[derive(Clone, Copy, PartialEq)]
struct Mode {
    quoted: bool,
    /// Whether blanks in values divide words.
    splits: bool,
    /// Whether a backslash and quotes before other characters are plain, as in a here-document.
    document: bool,
}

impl Shell<'_> {
    /// The words that a raw word becomes.
    pub(super) fn words_of(&mut self, raw: &str) -> Vec<ShellText> {
        if let Some(numbers) = sequence(raw) {
            return numbers;
        }
        self.fields(raw, Mode { quoted: false, splits: true, document: false })
    }

    /// A raw word as one text.
    pub(super) fn text_of(&mut self, raw: &str) -> ShellText {
        let fields = self.fields(raw, Mode { quoted: false, splits: false, document: false });
        ShellText::joined(fields, " ")
    }

    /// The text of a here-document.
    pub(super) fn document_of(&mut self, raw: &str) -> ShellText {
        ShellText::joined(self.fields(raw, Mode { quoted: true, splits: false, document: true }), " ")
    }

    fn fields(&mut self, raw: &str, mode: Mode) -> Vec<ShellText> {
        let mut fields = Fields::default();
        if self.depth >= DEEPEST {
            return vec![ShellText::of(WordPiece::Unknown(raw.to_owned()))];
        }
        self.depth += 1;
        self.walk(&mut Scan::new(raw), mode, &mut fields);
        self.depth -= 1;
        fields.end();
        fields.done
    }

    fn walk(&mut self, scan: &mut Scan, mode: Mode, fields: &mut Fields) {
        let mut at = 0;
        while let Some(c) = scan.at(at) {
            let end = if mode.quoted { scan.skip_quoted(at) } else { scan.skip(at) };
            let closed = end > at + 1;
            match c {
                '\\' => self.escaped(scan, at, mode, fields),
                '\'' if !mode.quoted && closed => {
                    fields.open = true;
                    fields.push(WordPiece::Known(scan.text(at + 1, end - 1)));
                }
                '"' if !mode.quoted && closed => {
                    let inner = scan.text(at + 1, end - 1);
                    fields.open |= !is_each(&inner);
                    let quoted = Mode { quoted: true, document: false, ..mode };
                    self.nested(&inner, quoted, fields);
                }
                '$' => {
                    let end = self.dollar(scan, (at, end), mode, fields);
                    at = end;
                    continue;
                }
                '`' if closed => {
                    let inner = scan.text(at + 1, end - 1);
                    let output = self.output(&inner, &scan.text(at, end));
                    self.place(output, mode, fields);
                }
                _ => fields.push(WordPiece::Known(scan.text(at, end))),
            }
            at = end;
        }
    }

    fn nested(&mut self, raw: &str, mode: Mode, fields: &mut Fields) {
        if self.depth >= DEEPEST {
            return fields.push(WordPiece::Unknown(raw.to_owned()));
        }
        self.depth += 1;
        self.walk(&mut Scan::new(raw), mode, fields);
        self.depth -= 1;
    }

    fn escaped(&self, scan: &Scan, at: usize, mode: Mode, fields: &mut Fields) {
        let next = scan.at(at + 1);
        let special = |c: char| "$`\\".contains(c) || c == '"' && !mode.document;
        match next {
            Some('\n') => {}
            Some(c) if !mode.quoted || special(c) => fields.push(WordPiece::Known(c.to_string())),
            Some(c) => fields.push(WordPiece::Known(format!("\\{c}"))),
            None => fields.push(WordPiece::Known("\\".to_owned())),
        }
    }

    /// Puts a value into the words.
    fn place(&self, value: ShellText, mode: Mode, fields: &mut Fields) {
        let value = if self.unset_is_empty { value.without_unset() } else { value };
        if mode.splits && !mode.quoted {
            return fields.split(value);
        }
        fields.open |= mode.quoted || !value.pieces().is_empty();
        fields.current.extend(value);
    }

    /// Several values as words of their own, the outer ones joined to what is around them.
    fn place_all(&mut self, values: Vec<ShellText>, mode: Mode, fields: &mut Fields) {
        if !mode.quoted || !mode.splits {
            let joined = ShellText::joined(values, " ");
            return self.place(joined, mode, fields);
        }
        for (at, value) in values.into_iter().enumerate() {
            if at > 0 {
                fields.end();
            }
            self.place(value, mode, fields);
        }
    }

    /// Reads the expansion at `at`; the place after it.
    fn dollar(
        &mut self,
        scan: &mut Scan,
        (at, end): (usize, usize),
        mode: Mode,
        fields: &mut Fields,
    ) -> usize {
        let raw = scan.text(at, end);
        let closed = end > at + 1;
        match scan.at(at + 1) {
            Some('(') if closed => {
                let value = self.computed(&raw);
                self.place(value, mode, fields);
                end
            }
            Some('{') if closed => {
                self.braced(&raw, mode, fields);
                end
            }
            Some('\'') if closed => {
                fields.push(WordPiece::Known(unescaped(&scan.text(at + 2, end - 1))));
                end
            }
            // `$"…"` is a text that may be translated.
            Some('"') if !mode.quoted => at + 1,
            Some(c) if "@*".contains(c) => {
                self.arguments_in(c == '@', mode, fields);
                at + 2
            }
            Some(c) if "#?$!-".contains(c) => {
                let value = self.special(c);
                self.place(value, mode, fields);
                at + 2
            }
            Some(c) if c.is_ascii_digit() => {
                let value = self.value(&c.to_string());
                self.place(value, mode, fields);
                at + 2
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let is_name =
                    |at: &usize| scan.at(*at).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
                let end = at + 1 + (at + 1..).take_while(is_name).count();
                let value = self.value(&scan.text(at + 1, end));
                self.place(value, mode, fields);
                end
            }
            _ => {
                fields.push(WordPiece::Known("$".to_owned()));
                at + 1
            }
        }
    }

    /// `$(…)` and `$((…))`.
    fn computed(&mut self, raw: &str) -> ShellText {
        let arithmetic = raw.strip_prefix("$((").and_then(|inner| inner.strip_suffix("))"));
        if let Some(inner) = arithmetic {
            return match self.number(inner) {
                Some(number) => ShellText::known(number.to_string()),
                None => self.unknown(raw),
            };
        }
        let inner = raw.strip_prefix("$(").and_then(|inner| inner.strip_suffix(')')).unwrap_or_default();
        self.output(inner, raw)
    }

    /// The value of an arithmetic expression.
    pub(super) fn number(&mut self, expression: &str) -> Option<i64> {
        let text = self.document_of(expression).value()?;
        arithmetic::evaluate(&text, self)
    }

    /// A value that depends on something unknown; it stays so with variables that nothing sets as empty.
    fn unknown(&self, raw: &str) -> ShellText {
        ShellText::of(WordPiece::Unknown(raw.to_owned()))
    }

    fn arguments_in(&mut self, each: bool, mode: Mode, fields: &mut Fields) {
        let all = self.arguments.clone().unwrap_or_default();
        match each {
            true => self.place_all(all, mode, fields),
            false => self.place(ShellText::joined(all, " "), mode, fields),
        }
    }

    fn special(&self, c: char) -> ShellText {
        match (c, &self.arguments) {
            ('#', Some(all)) => ShellText::known(all.len().to_string()),
            ('?', _) => match self.status {
                ShellStatus::Known(holds) => ShellText::known(if holds { "0" } else { "1" }),
                ShellStatus::Assumed => ShellText::known("0"),
                ShellStatus::Open(_) => self.unknown("$?"),
            },
            ('#', None) => ShellText::of(WordPiece::Unset("$#".to_owned())),
            _ => self.unknown(&format!("${c}")),
        }
    }

    /// `${…}`
    fn braced(&mut self, raw: &str, mode: Mode, fields: &mut Fields) {
        let inner = &raw[2..raw.len() - 1];
        if let Some(name) = inner.strip_prefix('#').filter(|name| !name.is_empty()) {
            let value = self.length(name, raw);
            return self.place(value, mode, fields);
        }
        if let Some(name) = inner.strip_prefix('!') {
            let value = match self.value(name).value() {
                Some(name) if super::is_name(&name) => self.value(&name),
                _ => self.unknown(raw),
            };
            return self.place(value, mode, fields);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut named = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
        if named == 0 && inner.starts_with(['@', '*', '?', '$']) {
            named = 1;
        }
        let (name, mut rest) = inner.split_at(named);
        let mut values = match name {
            "@" | "*" => self.arguments.clone().unwrap_or_default(),
            _ => vec![],
        };
        let mut many = ["@", "*"].contains(&name);
        let mut value = self.value(name);
        if let Some((index, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            rest = after;
            match index {
                "@" | "*" => {
                    many = true;
                    values = self.elements(name);
                }
                index => value = self.element(name, index, raw),
            }
        }
        if many {
            return self.braced_all(values, rest, raw, mode, fields);
        }
        if rest.is_empty() {
            return self.place(value, mode, fields);
        }
        self.operated(name, value, rest, (raw, mode), fields);
    }

    /// `${NAME[@]}` with what follows the name.
    fn braced_all(&mut self, values: Vec<ShellText>, rest: &str, raw: &str, mode: Mode, fields: &mut Fields) {
        let given = !values.is_empty();
        let alternative = rest.trim_start_matches(':');
        if let Some(word) = alternative.strip_prefix('+') {
            if given {
                self.nested(word, mode, fields);
            }
            return;
        }
        if let (false, Some(word)) = (given, alternative.strip_prefix('-')) {
            return self.nested(word, mode, fields);
        }
        if let Some(part) = rest.strip_prefix(':').filter(|_| given && !rest.starts_with(":-")) {
            let numbers: Option<Vec<i64>> = part.split(':').map(|one| self.number(one)).collect();
            let Some(numbers) = numbers else { return self.place(self.unknown(raw), mode, fields) };
            // The arguments count from 1.
            let first = numbers[0] - i64::from(raw.starts_with("${@") || raw.starts_with("${*"));
            let from = usize::try_from(first.max(0)).unwrap_or(0);
            let count = numbers.get(1).map_or(usize::MAX, |count| usize::try_from(*count).unwrap_or(0));
            let part = values.into_iter().skip(from).take(count).collect();
            return self.place_all(part, mode, fields);
        }
        self.place_all(values, mode, fields);
    }

    fn length(&mut self, name: &str, raw: &str) -> ShellText {
        if let Some(array) = name.strip_suffix("[@]").or(name.strip_suffix("[*]")) {
            return ShellText::known(self.elements(array).len().to_string());
        }
        match self.value(name).value() {
            Some(text) => ShellText::known(text.chars().count().to_string()),
            None => self.unknown(raw),
        }
    }

    fn element(&mut self, name: &str, index: &str, raw: &str) -> ShellText {
        let at = self.number(index);
        match (self.variables.get(name).map(|variable| &variable.value), at) {
            (Some(Value::Many(all)), Some(at)) => {
                let at = if at < 0 { at + all.len() as i64 } else { at };
                usize::try_from(at).ok().and_then(|at| all.get(at)).cloned().unwrap_or_default()
            }
            (Some(Value::One(one)), Some(0)) => one.clone(),
            _ => ShellText::of(WordPiece::Unset(raw.to_owned())),
        }
    }

    /// `${NAME:-word}` and the other operators.
    fn operated(
        &mut self,
        name: &str,
        value: ShellText,
        rest: &str,
        (raw, mode): (&str, Mode),
        fields: &mut Fields,
    ) {
        let (colon, operator) = match rest.strip_prefix(':') {
            Some(after) => (true, after),
            None => (false, rest),
        };
        let set = self.is_set(name);
        let absent = if colon { value.is_empty() } else { !set };
        let known = value.pieces().iter().all(|piece| !matches!(piece, WordPiece::Unknown(_)));
        let mut chars = operator.chars();
        let (Some(first), word) = (chars.next(), chars.as_str()) else { return };
        match first {
            '-' if absent => self.nested(word, mode, fields),
            '=' if absent => {
                let default = self.text_of(word);
                self.assign(name, Value::One(default.clone()));
                self.place(default, mode, fields);
            }
            '?' if absent => self.place(ShellText::of(WordPiece::Unset(format!("${name}"))), mode, fields),
            '-' | '=' | '?' => self.place(value, mode, fields),
            '+' if absent => fields.open |= mode.quoted,
            '+' if known => self.nested(word, mode, fields),
            '+' => self.place(self.unknown(raw), mode, fields),
            _ => {
                let changed = value.value().and_then(|value| self.changed(&value, rest));
                let unset = !known || value.value().is_none();
                let kept =
                    if unset { WordPiece::Unset(raw.to_owned()) } else { WordPiece::Unknown(raw.to_owned()) };
                let value = changed.map_or_else(|| ShellText::of(kept), ShellText::known);
                self.place(value, mode, fields);
            }
        }
    }

    /// A value without a beginning or end, with parts replaced, in other letters, or a part of it.
    fn changed(&mut self, value: &str, rest: &str) -> Option<String> {
        for (operator, from_start, longest) in
            [("##", true, true), ("#", true, false), ("%%", false, true), ("%", false, false)]
        {
            if let Some(pattern) = rest.strip_prefix(operator) {
                return Some(removed(value, &self.text_of(pattern).value()?, from_start, longest));
            }
        }
        if let Some(rest) = rest.strip_prefix('/') {
            let (all, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
            let (old, new) = rest.split_once('/').unwrap_or((rest, ""));
            let (old, new) = (self.text_of(old).value()?, self.text_of(new).value()?);
            let simple = is_plain(&old) && !old.is_empty() && !old.starts_with(['#', '%']);
            return match (simple, all) {
                (false, _) => None,
                (true, true) => Some(value.replace(&old, &new)),
                (true, false) => Some(value.replacen(&old, &new, 1)),
            };
        }
        match rest {
            ",," => return Some(value.to_lowercase()),
            "^^" => return Some(value.to_uppercase()),
            _ => {}
        }
        let numbers: Option<Vec<i64>> =
            rest.strip_prefix(':')?.split(':').map(|one| self.number(one)).collect();
        let numbers = numbers?;
        let from = usize::try_from(*numbers.first()?).ok()?;
        let count = numbers.get(1).map_or(Some(usize::MAX), |count| usize::try_from(*count).ok())?;
        Some(value.chars().skip(from).take(count).collect())
    }

    /// The output of a command, where it follows from the script alone.
    fn output(&mut self, command: &str, raw: &str) -> ShellText {
        let words: Vec<String> = match command.contains(['|', ';', '&', '<', '>', '\n']) {
            true => vec![],
            false => super::lex::tokens(command)
                .into_iter()
                .map(|token| match token {
                    super::lex::Token::Word(word) => word.text,
                    _ => String::new(),
                })
                .collect(),
        };
        let words: Vec<ShellText> = words.iter().flat_map(|word| self.words_of(word)).collect();
        let known: Option<Vec<String>> = words.iter().map(ShellText::value).collect();
        let known = known.unwrap_or_default();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        match &known[..] {
            ["seq", rest @ ..] => seq(rest).map_or_else(|| self.unknown(raw), ShellText::known),
            ["echo", rest @ ..] if rest.first().is_none_or(|one| !one.starts_with('-')) => {
                ShellText::known(rest.join(" "))
            }
            ["basename", path] => {
                ShellText::known(path.trim_end_matches('/').rsplit('/').next().unwrap_or(path))
            }
            _ => self.unknown(raw),
        }
    }
}

/// Whether the text between double quotes is `$@` or `${NAME[@]}`, which may be no word at all.
fn is_each(inner: &str) -> bool {
    let whole = Scan::new(inner).skip_quoted(0) == inner.chars().count();
    inner == "$@" || whole && inner.starts_with("${") && (inner.contains("[@]") || inner.starts_with("${@"))
}

/// Numbers a sequence may have.
const LONGEST: i64 = 1024;

/// The output of `seq`, with `-s`.
fn seq(words: &[&str]) -> Option<String> {
    let (between, words) = match words {
        ["-s", between, rest @ ..] => (*between, rest),
        [joined, rest @ ..] if joined.starts_with("-s") => (&joined[2..], rest),
        _ => ("\n", words),
    };
    let numbers: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
    let (first, step, last) = match numbers?[..] {
        [last] => (1, 1, last),
        [first, last] => (first, 1, last),
        [first, step, last] if step > 0 => (first, step, last),
        _ => return None,
    };
    if last.checked_sub(first)? / step > LONGEST {
        return None;
    }
    let all = std::iter::successors(Some(first), |number| number.checked_add(step));
    let all: Vec<String> =
        all.take_while(|number| *number <= last).map(|number| number.to_string()).collect();
    Some(all.join(between))
}

/// The numbers of `{0..7}`.
fn sequence(raw: &str) -> Option<Vec<ShellText>> {
    let (first, last) = raw.strip_prefix('{')?.strip_suffix('}')?.split_once("..")?;
    let (first, last): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
    if first.checked_sub(last)?.abs() > LONGEST {
        return None;
    }
    let up = (first..=last).map(|number| ShellText::known(number.to_string()));
    let down = (last..=first).rev().map(|number| ShellText::known(number.to_string()));
    Some(if first <= last { up.collect() } else { down.collect() })
}

/// The text of `$'…'`. Bytes are octal or hexadecimal.
fn unescaped(text: &str) -> String {
    let mut out: Vec<u8> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else {
            out.push(b'\\');
            break;
        };
        let digits = |rest: &str, most: usize, base: u32| {
            rest.chars().take(most).take_while(|c| c.is_digit(base)).count()
        };
        let (from, count, base) = match c {
            '0'..='7' => (0, digits(rest, 3, 8), 8),
            'x' => (1, digits(&rest[1..], 2, 16), 16),
            _ => (0, 0, 10),
        };
        if count > 0 {
            let number = u32::from_str_radix(&rest[from..from + count], base).unwrap_or_default();
            out.push(number as u8);
            rest = &rest[from + count..];
            continue;
        }
        match ESCAPES.iter().find(|(escape, _)| *escape == c) {
            Some((_, byte)) => out.push(*byte),
            None => out.extend(format!("\\{c}").as_bytes()),
        }
        rest = &rest[c.len_utf8()..];
    }
    out.extend(rest.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

const ESCAPES: [(char, u8); 12] = [
    ('n', b'\n'),
    ('t', b'\t'),
    ('r', b'\r'),
    ('a', 7),
    ('b', 8),
    ('e', 27),
    ('f', 12),
    ('v', 11),
    ('\\', b'\\'),
    ('\'', b'\''),
    ('"', b'"'),
    ('?', b'?'),
];
