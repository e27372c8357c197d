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

/// The words after the program's name without the format and the file of the output, as a shell reads them.
pub fn typed() -> String {
    const OUTPUT: [&str; 2] = ["--format", "--out"];
    let mut words = Vec::new();
    let typed = command_line::words();
    let mut all = typed.iter();
    while let Some(word) = all.next() {
        match word.split_once('=').map_or(word.as_str(), |(flag, _)| flag) {
            flag if OUTPUT.contains(&flag) => {
                let _value = if flag == word { all.next() } else { None };
            }
            "--json" => {}
            _ => words.push(shell_word(word)),
        }
    }
    words.join(" ")
}
