//! Text layout: headings, wrapped paragraphs, columns.

use anstyle::{AnsiColor, Style};

use crate::spec::visible::visible_lines;

/// Maximum line width, in characters.
pub const WIDTH: usize = 100;
pub const BOLD: Style = Style::new().bold();
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Joins sections with an empty line between them; empty sections are omitted.
pub fn join<const N: usize>(sections: [String; N]) -> String {
    let filled: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    filled.join("\n")
}

pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{}{style:#}", visible_lines(text))
}

/// A text without terminal styles, and without other control sequences.
pub fn unstyled(text: &str) -> String {
    let styles =
        [GOOD, BAD, BOLD].map(|style| (style.render().to_string(), style.render_reset().to_string()));
    let plain = styles.iter().fold(text.to_owned(), |text, (on, off)| text.replace(on, "").replace(off, ""));
    visible_lines(&plain).into_owned()
}

/// `text` in a terminal style, in lines of at most `width` characters.
pub fn styled_within(style: Style, text: &str, width: usize) -> String {
    wrap(text, width, 0, 2).lines().map(|line| format!("{}\n", styled(style, line))).collect()
}

/// A section heading: its title, and the rest of that line.
pub fn heading(title: &str, rest: &str) -> String {
    let gap = if rest.is_empty() { "" } else { "  " };
    format!("{}{gap}{rest}\n", styled(BOLD, title))
}

/// A section with its heading; empty without a body.
pub fn section(title: &str, rest: &str, body: impl Into<String>) -> String {
    let body = body.into();
    if body.is_empty() { body } else { heading(title, rest) + &body }
}

/// `3 more in --format csv`, where fewer than `all` are shown.
pub fn remainder(all: usize, shown: usize, place: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        rest => format!("{rest} more {place}"),
    }
}

/// Units that stay on the line of the preceding number.
const UNITS: [&str; 15] = [
    "%", "ms", "s", "µs", "GiB", "GB", "W", "USD", "tok/s", "tok/J", "requests", "request", "devices",
    "tokens", "bits",
];

/// Words that must not be split over lines: numbers with units, both sides of a comparison.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let number = |word: &str| word.ends_with(|c: char| c.is_ascii_digit());
    for word in text.split_whitespace() {
        let unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ')', ':']));
        match words.last_mut() {
            Some(last) if (unit && number(last)) || word == "≤" || last.ends_with('≤') => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_string()),
        }
    }
    words
}

/// `text` in lines of at most `width` characters, the first indented by `first`, the others by `rest`.
/// A word longer than a line is cut.
pub fn wrap(text: &str, width: usize, first: usize, rest: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let (mut line, mut length, mut empty) = (" ".repeat(first), first, true);
    for word in words(text) {
        let mut word: Vec<char> = word.chars().collect();
        if !empty && length + 1 + word.len() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(rest)));
            (length, empty) = (rest, true);
        }
        while length + word.len() > width && length < width {
            let tail = word.split_off(width - length);
            line.extend(word);
            lines.push(std::mem::replace(&mut line, " ".repeat(rest)));
            (length, word) = (rest, tail);
        }
        if !empty {
            line.push(' ');
            length += 1;
        }
        length += word.len();
        line.extend(word);
        empty = false;
    }
    if !empty {
        lines.push(line);
    }
    lines.into_iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A paragraph, indented by two.
pub fn paragraph(text: &str) -> String {
    wrap(text, WIDTH, 2, 2)
}

pub fn bullet(text: &str) -> String {
    bullet_within(text, WIDTH)
}

pub fn bullets(items: impl IntoIterator<Item: AsRef<str>>) -> String {
    items.into_iter().map(|item| bullet(item.as_ref())).collect()
}

/// A list item in lines of at most `width` characters.
pub fn bullet_within(text: &str, width: usize) -> String {
    let text = wrap(text, width, 4, 4);
    format!("  - {}", text.trim_start())
}

pub fn indent(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{}{line}\n", " ".repeat(by))).collect()
}

/// The first `most` characters, cut between words.
pub fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    let cut: String = text.chars().take(most).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{} …", cut[..end].trim_end_matches([',', ';', ':', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_between_words_and_hang() {
        assert_eq!(wrap("one two three", 9, 2, 4), "  one two\n    three\n");
        assert_eq!(wrap("abcdefghij", 6, 2, 2), "  abcd\n  efgh\n  ij\n");
        assert_eq!(wrap("", 9, 2, 4), "");
        assert_eq!(wrap("it takes 12 ms, or x ≤ 3", 11, 0, 0), "it takes\n12 ms, or\nx ≤ 3\n");
        let long = wrap(&"word ".repeat(100), 40, 3, 6);
        assert!(long.lines().all(|line| line.chars().count() <= 40));
    }

    #[test]
    fn what_is_shortened_says_so() {
        assert_eq!(shorten("one two three", 9), "one two …");
        assert_eq!(shorten("one", 9), "one");
    }
}
