//! Printable form of text from outside: names, paths and excerpts may contain control sequences for a terminal, a table
//! or a picture.
//!
//! Every text from outside the program is printed through this module.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_general_category::{GeneralCategory, get_general_category};

/// Whether a character acts on its display instead of being shown: controls (C0, DEL, C1), directional marks and other
/// formats (Unicode's `Cf`), separators of lines and paragraphs, and noncharacters.
pub fn acts(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator, Unassigned};
    matches!(
        get_general_category(character),
        Control | Format | LineSeparator | ParagraphSeparator | Unassigned
    )
}

/// `text` on one line, each character for which [`acts`] escaped as in a Rust literal, e.g. `\n` or `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    spelled(text, acts)
}

/// The same for multi-line texts: line ends and tabs remain.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    spelled(text, |character| acts(character) && !matches!(character, '\n' | '\t'))
}

fn spelled(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    escaped(text, hidden, |shown, character| shown.extend(character.escape_default()))
}

/// `text` with each hidden character as `escape` writes it.
fn escaped(text: &str, hidden: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.chars().any(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if hidden(character) { escape(&mut shown, character) } else { shown.push(character) }
    }
    Cow::Owned(shown)
}

/// JSON with such characters escaped as in JSON, `\u202e`: it parses to the same text.
///
/// Outside strings JSON has no such characters except line ends, which remain.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    let hidden = |character: char| character != '\n' && acts(character);
    escaped(text, hidden, |shown, character| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    })
}

/// `text` in printable form with XML entities: for text and attributes of a picture or a page.
pub fn visible_xml(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// At most `most` characters of `text`: a longer one as its start, the number of omitted characters, and its end.
pub fn elided(text: &str, most: usize) -> Cow<'_, str> {
    let characters = text.chars().count();
    if characters <= most {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (most * 3 / 4, most / 8);
    let cut = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
    let (head_end, tail_start) = (cut(head), cut(characters - tail));
    let left_out = characters - head - tail;
    Cow::Owned(format!("{}… ({left_out} more) …{}", &text[..head_end], &text[tail_start..]))
}

/// `text` without the user names, passwords and queries of the addresses in it.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let ends = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | '<' | '>');
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let (address, after) = after.split_at(after.find(ends).unwrap_or(after.len()));
        let (authority, path) = address.split_at(address.find(['/', '?', '#']).unwrap_or(address.len()));
        shown.push_str(before);
        match authority.rsplit_once('@') {
            Some((_, host)) => shown.extend(["…@", host]),
            None => shown.push_str(authority),
        }
        let plain = path.find('?').unwrap_or(path.len());
        if path[..plain].contains("://") {
            rest = &rest[at + 3 + authority.len()..];
            continue;
        }
        shown.push_str(&path[..plain]);
        if plain < path.len() {
            shown.push_str("?…");
        }
        rest = after;
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What acts on a terminal or turns the direction of a line, by the standards' own lists.
    const HOSTILE: [(u32, u32); 9] = [
        (0x00, 0x1f),
        (0x7f, 0x9f),
        (0x061c, 0x061c),
        (0x200b, 0x200f),
        (0x2028, 0x202e),
        (0x2060, 0x206f),
        (0xfeff, 0xfeff),
        (0xe0001, 0xe007f),
        (0xfffe, 0xffff),
    ];

    #[test]
    fn every_listed_control_acts_and_no_printed_ascii_does() {
        let listed = HOSTILE.iter().flat_map(|(first, last)| *first..=*last).filter_map(char::from_u32);
        assert_eq!(listed.filter(|c| !acts(*c)).map(u32::from).collect::<Vec<_>>(), Vec::<u32>::new());
        assert!((' '..='~').chain("äßΩ中文한日本😀é".chars()).all(|c| !acts(c)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_visible_holds_nothing_that_acts_and_keeps_the_rest(text in any::<String>()) {
            let shown = visible(&text);
            prop_assert!(!shown.chars().any(acts));
            let kept = |text: &str| text.chars().filter(|c| !acts(*c)).count();
            prop_assert!(kept(&shown) >= kept(&text));
            prop_assert_eq!(visible(&shown).into_owned(), shown.into_owned());
            prop_assert!(!visible_lines(&text).chars().any(|c| acts(c) && c != '\n' && c != '\t'));
        }

        #[test]
        fn visible_json_reads_back_as_the_same_text(text in any::<String>(), key in any::<String>()) {
            let value = serde_json::json!({ key: [text] });
            let written = serde_json::to_string_pretty(&value).unwrap();
            let shown = visible_json(&written);
            prop_assert!(!shown.chars().any(|c| acts(c) && c != '\n'));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }

        #[test]
        fn an_elided_text_is_short_and_begins_and_ends_as_it_did(text in ".{0,400}", most in 16usize..200) {
            let shown = elided(&text, most);
            prop_assert!(shown.chars().count() <= most + 16);
            let begins = |a: &str, b: &str| a.chars().take(most / 2).eq(b.chars().take(most / 2));
            prop_assert!(begins(&shown, &text));
            prop_assert_eq!(shown.chars().last(), text.chars().last());
        }

        #[test]
        fn no_user_or_query_of_an_address_is_left(
            before in "[a-z `]{0,8}", user in "[A-Z]{4,9}", password in "[A-Z@:]{4,9}", rest in "[a-z./]{0,8}",
        ) {
            let text = format!("{before}https://{user}:{password}@host.example:80/{rest}?token={user} and ftp://{user}@h");
            let shown = without_secrets(&text).into_owned();
            prop_assert!(!shown.contains(&user) && !shown.contains(&password), "{}", shown);
            prop_assert!(shown.contains("host.example:80/"), "{}", shown);
            prop_assert_eq!(without_secrets(&rest).into_owned(), rest);
        }
    }
}
