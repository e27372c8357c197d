//! Output: standard output or a file, written whole.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use anstream::adapter::strip_str;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use serde::Serialize;

use super::defaults::{AppliedDefaults, footer, overrides_line};
use super::terminal::{typed, width};
use super::{CliError, ExitStatus, progress};
use crate::report::format::{Format, FormatEntry};
use crate::report::pretty::pretty;
use crate::report::rendered::{Answer, EVERY, TextView, drawn, markdown, rendered, yaml};
use crate::report::text::page::{BAD, BOLD, GOOD, WIDTH};
use crate::request::rendered::pixels;
use crate::request::wording::worded;
use crate::spec::error::Error;
use crate::spec::visible::{visible, visible_lines};
use crate::store::closed_output::check_stdout;
use crate::store::file;

/// Formats of what only the command line answers.
const PLAIN: [Format; 5] = [Format::Table, Format::Json, Format::Yaml, Format::Csv, Format::Markdown];

/// A flag of `formats`.
pub(super) fn parser(formats: impl IntoIterator<Item = Format>) -> ValueParser {
    let values = formats.into_iter().map(|format| {
        let FormatEntry { name, about, .. } = format.entry();
        PossibleValue::new(*name).help(*about)
    });
    ValueParser::new(PossibleValuesParser::new(values).try_map(|name| Format::parse(&name)))
}

/// Format and destination of a result.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// Output format [default: by the ending of --out, else table]
    #[arg(
        long,
        value_parser = parser(PLAIN),
        value_name = "FORMAT",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub format: Option<Format>,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub json: bool,
    /// Write the output to a file instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    #[arg(skip)]
    pub applied: AppliedDefaults,
}

impl OutputArgs {
    /// The format: the stated one, else that of the file's ending, else the text for people.
    pub fn format(&self) -> Format {
        let by_ending = || self.out.as_deref().and_then(format_of);
        match self.json {
            true => Format::Json,
            false => self.format.or_else(by_ending).unwrap_or_default(),
        }
    }

    /// Checks that an answer of type `T` can be written as requested, before anything is computed.
    ///
    /// # Errors
    /// It has no such format, a text would get the ending of another format's file, or bytes would go to a terminal.
    pub fn check<T: Answer>(&self) -> Result<(), Error> {
        self.check_among(&[&EVERY[..], T::MORE].concat(), T::QUESTION)
    }

    fn check_among(&self, formats: &[Format], name: &str) -> Result<(), Error> {
        let format = self.format();
        if !formats.contains(&format) {
            let names: Vec<&str> =
                formats.iter().filter(|one| **one != Format::Section).map(|one| one.entry().name).collect();
            let expected = format!("a format of `{name}`: {}", names.join(", "));
            let fix = "state --format, or choose another ending of --out";
            return Err(Error::new("format", format.entry().name, expected, fix));
        }
        if format.is_binary() && self.to_stdout() && std::io::stdout().is_terminal() {
            let fix = format!("add --out FILE.{}, or redirect the output to a file", format.entry().name);
            let found = format!("{}, on a terminal", format.entry().name);
            return Err(Error::new("format", found, "a file: this format is binary", fix));
        }
        let ending = self.out.as_deref().and_then(format_of);
        match ending.filter(|ending| ending.is_binary() && *ending != format) {
            Some(ending) => {
                let found = format!(
                    "{} for `{}`",
                    format.entry().name,
                    file::shown(self.out.as_deref().unwrap_or(Path::new("-")))
                );
                let fix = format!("choose another ending, or --format {}", ending.entry().name);
                Err(Error::new("out", found, "the ending of a text file", fix))
            }
            None => Ok(()),
        }
    }

    fn to_stdout(&self) -> bool {
        self.out.as_deref().is_none_or(|path| path.as_os_str() == "-")
    }

    /// Writes the answer in its format; `detail` shows everything.
    ///
    /// # Errors
    /// The answer has no such format, or the file or the pipe cannot be written.
    pub fn answer<T: Answer>(&self, answer: &T, detail: bool) -> Result<ExitStatus, CliError> {
        self.check::<T>()?;
        let command = typed();
        let view = TextView { width: width(), detail, command: &command };
        let nothing = || {
            let fix = "relax the limits until something runs, or choose another --format";
            let found = "nothing that runs, so that there is nothing to draw";
            CliError::from(Error::new("format", found, "a result with metrics", fix))
        };
        match self.format() {
            Format::Table => self.write(&answer.text(&view)),
            Format::Png => self.write_bytes(&pixels(&drawn(answer).ok_or_else(nothing)?)?),
            format => {
                // A page has its own width.
                let view = if format == Format::Html { TextView { width: WIDTH, ..view } } else { view };
                self.write(&rendered(answer, &worded(answer), format, &view)?.ok_or_else(nothing)?)
            }
        }
    }

    /// Writes what only the command line answers: its text, its JSON and its rows.
    ///
    /// # Errors
    /// There is no such format, or the file or the pipe cannot be written.
    pub fn plain(
        &self,
        text: &str,
        value: &impl Serialize,
        csv: Option<String>,
    ) -> Result<ExitStatus, CliError> {
        let formats: Vec<Format> =
            PLAIN.into_iter().filter(|format| *format != Format::Csv || csv.is_some()).collect();
        self.check_among(&formats, "this command")?;
        self.write(&match self.format() {
            Format::Json => pretty(value),
            Format::Yaml => yaml(&crate::request::value(value)),
            Format::Csv => csv.unwrap_or_default(),
            Format::Markdown => markdown(text),
            _ => text.to_owned(),
        })
    }

    pub(super) fn write_bytes(&self, bytes: &[u8]) -> Result<ExitStatus, CliError> {
        note_defaults(&self.applied)?;
        match &self.out {
            Some(path) if !self.to_stdout() => file::write_bytes(path, bytes)?,
            _ => {
                check_stdout()?;
                written(&mut std::io::stdout().lock(), bytes)?;
            }
        }
        Ok(ExitStatus::Success)
    }

    pub fn write(&self, text: &str) -> Result<ExitStatus, CliError> {
        let footer = footer(&self.applied);
        let table = self.format() == Format::Table;
        // The others are already visible text.
        let text = match table {
            true => Cow::Owned(
                for_people(&format!("{}{text}{footer}", overrides_line(&self.applied))).into_owned(),
            ),
            false => Cow::Borrowed(text),
        };
        if !table {
            note_defaults(&self.applied)?;
        }
        match &self.out {
            Some(path) if !self.to_stdout() => file::write(path, &strip_str(&text).to_string())?,
            _ => {
                check_stdout()?;
                let mut out = std::io::stdout().lock();
                // Only tables have colours. A terminal is no pipe.
                if table && std::io::stdout().is_terminal() {
                    let mut out = anstream::AutoStream::auto(out);
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                    return Ok(ExitStatus::Success);
                }
                let plain = anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never;
                let text = match table && plain {
                    true => Cow::Owned(strip_str(&text).to_string()),
                    false => text,
                };
                written(&mut out, text.as_bytes())?;
            }
        }
        Ok(ExitStatus::Success)
    }
}

pub(super) fn format_of(path: &Path) -> Option<Format> {
    Format::of_ending(path.file_name()?.to_str()?)
}

/// Writes a document to a file: YAML by its ending, else JSON.
pub(super) fn write_document(path: &Path, document: &impl Serialize) -> Result<(), Error> {
    match format_of(path) {
        Some(Format::Yaml) => file::write(path, &yaml(&crate::request::value(document))),
        _ => file::write(path, &pretty(document)),
    }
}

/// Whether a reader was gone before the first byte of an answer.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Whether nothing of an answer was read: its reader had closed the pipe.
pub fn is_unread() -> bool {
    UNREAD.load(Relaxed)
}

/// Writes an answer. A reader that leaves before its end has read enough: the verdict remains. `out` counts what it
/// takes: a stream that writes in pieces would hide the first ones.
fn written(out: &mut dyn Write, mut bytes: &[u8]) -> std::io::Result<()> {
    let whole = bytes.len();
    while !bytes.is_empty() {
        let count = match out.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                UNREAD.store(bytes.len() == whole, Relaxed);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            other => other?,
        };
        bytes = &bytes[count..];
    }
    match out.flush() {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes the user's defaults that a command applied to standard error, unless it is to be quiet.
pub fn note_defaults(applied: &AppliedDefaults) -> std::io::Result<()> {
    if progress::is_quiet() {
        return Ok(());
    }
    write!(anstream::stderr(), "{}", visible_lines(&footer(applied)))
}

/// Text with control sequences spelled out, except line ends, tabs and the program's own styles.
pub(super) fn for_people(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) {
        return visible_lines(text);
    }
    // Longest first: one sequence may start with another.
    let own = [GOOD, BAD, BOLD].map(|style| style.render().to_string());
    let own: Vec<&str> = own.iter().map(String::as_str).chain([RESET]).collect();
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(ESCAPE) {
        shown.push_str(&visible_lines(&rest[..at]));
        rest = &rest[at..];
        let code = own.iter().find(|code| rest.starts_with(**code));
        let obeyed = code.map_or(ESCAPE.len_utf8(), |code| code.len());
        match code {
            Some(code) => shown.push_str(code),
            None => shown.push_str(&visible(&rest[..obeyed])),
        }
        rest = &rest[obeyed..];
    }
    shown.push_str(&visible_lines(rest));
    Cow::Owned(shown)
}

/// Starts a control sequence.
const ESCAPE: char = '\u{1b}';
/// Ends a style.
const RESET: &str = "\u{1b}[0m";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::text::page::styled;
    use crate::spec::visible::acts;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_terminal_obeys_nothing_but_our_own_styles(
            texts in prop::collection::vec("(\u{1b}\\[[0-9;]{0,4}[mHJ]|\u{1b}\\]0;x\u{7}|\\PC|\u{9b}2J|\u{202e}|.){0,9}", 1..4),
        ) {
            let page: String = texts.iter().map(|text| format!("{text}{}\n", styled(BOLD, "own"))).collect();
            let shown = for_people(&page).into_owned();
            let kept = shown.matches("\u{1b}[1mown\u{1b}[0m").count();
            prop_assert!(kept >= texts.len(), "{} of {} styles are kept", kept, texts.len());
            let own = [GOOD, BAD, BOLD].iter().fold(shown.replace(RESET, ""), |text, style| {
                text.replace(&style.render().to_string(), "")
            });
            let hostile = own.chars().any(|c| acts(c) && c != '\n' && c != '\t');
            prop_assert!(!hostile, "{:?}", own);
            prop_assert!(!strip_str(&shown).to_string().contains(ESCAPE));
        }
    }
}
