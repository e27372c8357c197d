//! The terminal: its width, and the command typed into it.

use super::command_line;
use crate::report::text::page::WIDTH;
use crate::spec::writer::shell_word;

/// Narrowest useful line, in characters.
const NARROWEST: usize = 60;

/// Line width for text output: that of the terminal, at most [`WIDTH`]; `COLUMNS` overrides it.
pub fn width() -> usize {
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    named.or_else(measured).map_or(WIDTH, |width: usize| width.clamp(NARROWEST, WIDTH))
}

/// The words after the program's name without those that say how the answer is written, as a shell reads them.
pub fn typed() -> String {
    without_output(command_line::words()).iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// Words without the format, the file and the screen of the output.
pub fn without_output(words: Vec<String>) -> Vec<String> {
    const WITH_VALUE: [&str; 2] = ["--format", "--out"];
    let mut kept = Vec::new();
    let mut all = words.into_iter();
    while let Some(word) = all.next() {
        match word.split_once('=').map_or(word.as_str(), |(flag, _)| flag) {
            flag if WITH_VALUE.contains(&flag) => {
                let _value = if flag == word { all.next() } else { None };
            }
            "--json" | "--interactive" | "-i" => {}
            _ => kept.push(word),
        }
    }
    kept
}
