//! `--interactive`: the rows of an answer on the terminal, filtered, sorted and answered again with other flags; at the end,
//! its command.

mod rows;
mod screen;
mod words;

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind};

use super::deadline::with_deadline;
use super::{CliError, ExitStatus};
use crate::report::proof::StoppedBy;
use crate::request::RequestControl;
use crate::search::run::Control;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use rows::AnswerRows;
use screen::{Screen, ScreenStep};
use words::ExploredWords;

/// Wait for a key while a search runs.
const POLL: Duration = Duration::from_millis(100);

/// Shows the answer of a command line until its reader leaves.
///
/// # Errors
/// Standard input or output is no terminal, or the command answers no question, or a faulty one.
pub fn explore(catalog: &Catalog, words: Vec<String>) -> Result<ExitStatus, CliError> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        let fix = "leave --interactive out, or run it on a terminal";
        return Err(Error::new("interactive", "no terminal", "a terminal as input and output", fix).into());
    }
    let words = ExploredWords::of(words);
    let rows = with_deadline(None, |control| words.answered(catalog, control))?;
    let mut terminal = ratatui::try_init()?;
    let ended = shown(&mut terminal, catalog, words, Screen::new(rows));
    ratatui::try_restore()?;
    let (words, chosen) = ended?;
    let mut out = std::io::stdout();
    for command in [Some(words.command()), chosen].into_iter().flatten() {
        writeln!(out, "{command}")?;
    }
    Ok(ExitStatus::of(true))
}

/// The words and the command of the chosen row at the end.
fn shown(
    terminal: &mut DefaultTerminal,
    catalog: &Catalog,
    mut words: ExploredWords,
    mut screen: Screen,
) -> std::io::Result<(ExploredWords, Option<String>)> {
    let mut early = VecDeque::new();
    loop {
        terminal.draw(|frame| screen.draw(frame, &words.command()))?;
        let key = match early.pop_front() {
            Some(key) => key,
            None => next_key()?,
        };
        match screen.press(key) {
            ScreenStep::Stay => {}
            ScreenStep::Leave => return Ok((words, None)),
            ScreenStep::Take => {
                let chosen = screen.row().and_then(|row| words.of_row(&row));
                return Ok((words, chosen));
            }
            ScreenStep::Change(text) => {
                let changed = words.changed(&text);
                let answered = changed.and_then(|next| {
                    let rows = searched(terminal, &mut screen, catalog, &next, &mut early)?;
                    Ok((next, rows))
                });
                match answered {
                    Ok((next, rows)) => {
                        words = next;
                        screen.show(rows);
                    }
                    Err(fault) => screen.say(fault.to_string()),
                }
            }
        }
    }
}

/// The next key that is pressed; at other events the screen is as it was.
fn next_key() -> std::io::Result<KeyEvent> {
    loop {
        if let Some(key) = pressed(event::read()?) {
            return Ok(key);
        }
    }
}

fn pressed(event: Event) -> Option<KeyEvent> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Press => Some(key),
        _ => None,
    }
}

/// Says when a search has ended, whichever way.
struct SearchEnd<'a>(&'a AtomicBool);

impl Drop for SearchEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The rows of a changed question. Esc stops its search, which then has the best found so far; other keys are for what
/// follows, `early`.
fn searched(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    catalog: &Catalog,
    words: &ExploredWords,
    early: &mut VecDeque<KeyEvent>,
) -> Result<AnswerRows, Error> {
    let (stopped, ended, begun) = (AtomicBool::new(false), AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        // The search stays on the workers of the command.
        scope.spawn(|| {
            while !ended.load(Relaxed) {
                screen
                    .say(format!("Searching for {} s; Esc takes the best so far", begun.elapsed().as_secs()));
                let _ = terminal.draw(|frame| screen.draw(frame, &words.command()));
                let next = event::poll(POLL).unwrap_or(false).then(event::read);
                match next.and_then(Result::ok).and_then(pressed) {
                    Some(key) if key.code == KeyCode::Esc => stopped.store(true, Relaxed),
                    Some(key) => {
                        if screen::leaves(key) {
                            stopped.store(true, Relaxed);
                        }
                        early.push_back(key);
                    }
                    None => {}
                }
            }
        });
        let _end = SearchEnd(&ended);
        let search = Control { progress: &|_, _| {}, stop: &|| stopped.load(Relaxed) };
        let stopped_by = || stopped.load(Relaxed).then_some(StoppedBy::Interrupt);
        words.answered(catalog, &RequestControl { search, stopped_by: &stopped_by })
    })
}
