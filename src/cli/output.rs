//! Output: standard output or a file, written whole.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use anstream::adapter::strip_str;
use serde::Serialize;

use super::defaults::{AppliedDefaults, footer, overrides_line};
use super::terminal::{typed, width};
use super::{CliError, ExitStatus, progress};
use crate::report::pretty::pretty;
use crate::report::rendered::{Answer, RenderedFormat, TextView, of as rendered};
use crate::report::sheet;
use crate::report::text::page::{BAD, BOLD, GOOD, WIDTH};
use crate::request::wording::worded;
use crate::spec::visible::{visible, visible_lines};
use crate::store::closed_output::check_stdout;
use crate::store::file;

/// Format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs; `schema` describes it.
    Json,
    /// CSV rows for spreadsheets.
    Csv,
}

/// A value of `--format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FormatFlag {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs; `schema` describes it.
    Json,
    /// CSV rows for spreadsheets.
    Csv,
    /// A workbook with live formulas.
    Xlsx,
    /// A report for a browser: one file that needs nothing else.
    Html,
    /// The text as a part of a document in Markdown.
    Markdown,
}

impl From<OutputFormat> for FormatFlag {
    fn from(format: OutputFormat) -> FormatFlag {
        match format {
            OutputFormat::Table => FormatFlag::Table,
            OutputFormat::Json => FormatFlag::Json,
            OutputFormat::Csv => FormatFlag::Csv,
        }
    }
}

/// Format and destination of a result.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// Output format
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "table|json|csv|html|markdown|xlsx",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub format: FormatFlag,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub json: bool,
    /// Write the output to a file instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// The user's defaults that the command applied.
    #[arg(skip)]
    pub applied: AppliedDefaults,
}

impl OutputArgs {
    /// The format of a text. What is not written to a workbook is written for people.
    pub fn format(&self) -> OutputFormat {
        match self.format {
            _ if self.json => OutputFormat::Json,
            FormatFlag::Table | FormatFlag::Xlsx | FormatFlag::Markdown => OutputFormat::Table,
            FormatFlag::Json | FormatFlag::Html => OutputFormat::Json,
            FormatFlag::Csv => OutputFormat::Csv,
        }
    }

    /// Whether the file is a workbook by its ending.
    pub(super) fn ends_in_xlsx(&self) -> bool {
        let ending = self.out.as_deref().and_then(Path::extension);
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case("xlsx"))
    }

    /// Whether the result goes to standard output.
    pub(super) fn to_stdout(&self) -> bool {
        self.out.as_deref().is_none_or(|path| path.as_os_str() == "-")
    }

    /// Writes a result with status "found".
    ///
    /// # Errors
    /// The file or the pipe cannot be written.
    pub fn found(&self, text: &str) -> Result<ExitStatus, CliError> {
        self.write(text)?;
        Ok(ExitStatus::Success)
    }

    /// Writes the answer to the question `name` in its format; `detail` shows everything.
    ///
    /// # Errors
    /// The file or the pipe cannot be written.
    pub fn answer<T: Answer>(&self, name: &str, answer: &T, detail: bool) -> Result<(), CliError> {
        let command = typed();
        let view = TextView { width: width(), detail, command: &command };
        let page = TextView { width: WIDTH, ..view };
        let made = |format, view: &TextView| rendered(name, answer, &worded(answer), format, view);
        let text = match self.format {
            _ if self.json => pretty(&worded(answer)),
            FormatFlag::Json => pretty(&worded(answer)),
            FormatFlag::Table | FormatFlag::Xlsx => answer.text(&view),
            FormatFlag::Csv => answer.csv(),
            FormatFlag::Markdown => made(RenderedFormat::Markdown, &view)?.unwrap_or_default(),
            FormatFlag::Html => made(RenderedFormat::Html, &page)?.unwrap_or_default(),
        };
        self.write(&text)
    }

    /// Writes `text` to its destination.
    ///
    /// # Errors
    /// The file or the pipe cannot be written.
    pub fn write(&self, text: &str) -> Result<(), CliError> {
        if self.ends_in_xlsx() {
            return Err(super::workbook::text_in_workbook(self).into());
        }
        let footer = footer(&self.applied);
        let table = self.format() == OutputFormat::Table && self.format != FormatFlag::Markdown;
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
            Some(path) if path.as_os_str() != "-" => Ok(file::write(path, &strip_str(&text).to_string())?),
            _ => {
                check_stdout()?;
                let mut out = std::io::stdout().lock();
                // Only tables have colours. A terminal is no pipe.
                if table && std::io::stdout().is_terminal() {
                    let mut out = anstream::AutoStream::auto(out);
                    out.write_all(text.as_bytes())?;
                    return Ok(out.flush()?);
                }
                let plain = anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never;
                let text = match table && plain {
                    true => Cow::Owned(strip_str(&text).to_string()),
                    false => text,
                };
                Ok(written(&mut out, text.as_bytes())?)
            }
        }
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
///
/// # Errors
/// Standard error is closed.
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

/// A result as a JSON value.
pub fn value<T: Serialize>(answer: &T) -> serde_json::Value {
    serde_json::to_value(answer).expect("reports have only text keys")
}

/// CSV of `rows` under `header`.
pub fn csv(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Result<String, CliError> {
    Ok(sheet::csv(header.iter().copied(), rows))
}

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
