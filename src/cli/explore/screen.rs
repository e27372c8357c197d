//! The screen of an explored answer: which rows are shown, what keys do to it, and how it is drawn.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

use super::rows::{AnswerRows, RowOrder, cell};
use crate::report::text::page::shorten;

/// Characters of a cell, at most.
const WIDEST: usize = 40;
/// Lines of the details.
const DETAILS: u16 = 9;
/// Rows of a page key.
const PAGE: usize = 10;
/// Keys, and the flag whose value they ask for.
const FLAGS: [(char, &str); 4] = [('u', "users "), ('c', "context "), ('f', "weight-format "), (':', "")];
const KEYS: &str = "↑↓ row  ←→ column  s sort  / filter  u users  c context  f format  : any flag  d details  Enter take  q leave";

/// The effect of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScreenStep {
    Stay,
    /// Another value of a flag.
    Change(String),
    /// Leave with the command of the row.
    Take,
    Leave,
}

/// The text that is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Typing {
    Filter,
    Flag(String),
}

/// Whether a key leaves at any time.
pub(super) fn leaves(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c')
}

/// An answer on the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct Screen {
    rows: AnswerRows,
    /// Numbers of the columns and of the rows that are shown.
    columns: Vec<usize>,
    chosen: Vec<usize>,
    order: Option<RowOrder>,
    filter: String,
    typing: Option<Typing>,
    /// Places of the chosen row and column among these.
    row: usize,
    column: usize,
    has_details: bool,
    message: String,
}

fn has(modifier: Modifier) -> Style {
    // No colours: they differ from terminal to terminal, and say nothing here.
    Style::new().add_modifier(modifier)
}

impl Screen {
    pub(super) fn new(rows: AnswerRows) -> Screen {
        let mut screen = Screen::default();
        screen.show(rows);
        screen
    }

    /// Shows other rows, with the same filter and order.
    pub(super) fn show(&mut self, rows: AnswerRows) {
        self.columns = rows.shown();
        self.rows = rows;
        self.message.clear();
        self.update();
    }

    /// A line under the rows, until the next key.
    pub(super) fn say(&mut self, message: String) {
        self.message = message;
    }

    /// Columns and cells of the chosen row.
    pub(super) fn row(&self) -> Option<Vec<(&str, &str)>> {
        let row = &self.rows.rows[*self.chosen.get(self.row)?];
        Some(self.rows.columns.iter().map(String::as_str).zip(row.iter().map(String::as_str)).collect())
    }

    fn update(&mut self) {
        self.chosen = self.rows.chosen(&self.filter, self.order.as_ref());
        self.row = self.row.min(self.chosen.len().saturating_sub(1));
        self.column = self.column.min(self.columns.len().saturating_sub(1));
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> ScreenStep {
        self.message.clear();
        if leaves(key) {
            return ScreenStep::Leave;
        }
        match self.typing.take() {
            Some(typing) => self.typed(typing, key.code),
            None => self.moved(key.code),
        }
    }

    fn typed(&mut self, mut typing: Typing, code: KeyCode) -> ScreenStep {
        let text = match &mut typing {
            Typing::Filter => &mut self.filter,
            Typing::Flag(text) => text,
        };
        match code {
            KeyCode::Char(letter) => text.push(letter),
            KeyCode::Backspace => _ = text.pop(),
            KeyCode::Esc => {
                self.filter.clear();
                self.update();
                return ScreenStep::Stay;
            }
            KeyCode::Enter => {
                return match typing {
                    Typing::Filter => ScreenStep::Stay,
                    Typing::Flag(text) => ScreenStep::Change(text),
                };
            }
            _ => {}
        }
        self.typing = Some(typing);
        self.update();
        ScreenStep::Stay
    }

    fn moved(&mut self, code: KeyCode) -> ScreenStep {
        let last = self.chosen.len().saturating_sub(1);
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.row = self.row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.row = (self.row + 1).min(last),
            KeyCode::PageUp => self.row = self.row.saturating_sub(PAGE),
            KeyCode::PageDown => self.row = (self.row + PAGE).min(last),
            KeyCode::Home => self.row = 0,
            KeyCode::End => self.row = last,
            KeyCode::Left | KeyCode::Char('h') => self.column = self.column.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('l') => {
                self.column = (self.column + 1).min(self.columns.len().saturating_sub(1));
            }
            KeyCode::Char('s') => self.sort(),
            KeyCode::Char('d') => self.has_details = !self.has_details,
            KeyCode::Char('/') => self.typing = Some(Typing::Filter),
            KeyCode::Enter => return ScreenStep::Take,
            KeyCode::Char('q') | KeyCode::Esc => return ScreenStep::Leave,
            KeyCode::Char(letter) => {
                let flag = FLAGS.iter().find(|(key, _)| *key == letter);
                self.typing = flag.map(|(_, text)| Typing::Flag((*text).to_owned()));
            }
            _ => {}
        }
        ScreenStep::Stay
    }

    /// Orders by the chosen column: the largest first, then the other way around.
    fn sort(&mut self) {
        let Some(column) = self.columns.get(self.column).map(|at| self.rows.columns[*at].clone()) else {
            return;
        };
        let falling = self.order.as_ref().is_none_or(|order| order.column != column || !order.falling);
        self.order = Some(RowOrder { column, falling });
        self.update();
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, command: &str) {
        let details = if self.has_details { DETAILS } else { 0 };
        let [head, table, below, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(3),
            Constraint::Length(details),
            Constraint::Length(2),
        ])
        .areas(frame.area());
        frame.render_widget(Line::styled(command.to_owned(), has(Modifier::BOLD)), head);
        self.draw_rows(frame, table);
        if let Some(row) = self.row().filter(|_| self.has_details) {
            let filled = row.into_iter().filter(|(_, text)| !text.is_empty());
            let text: Vec<String> = filled.map(|(column, text)| format!("{column} {}", cell(text))).collect();
            frame.render_widget(Paragraph::new(text.join(" · ")).wrap(Wrap { trim: true }), below);
        }
        let first = match &self.typing {
            Some(Typing::Filter) => format!("/{}▏", self.filter),
            Some(Typing::Flag(text)) => format!("--{text}▏  Enter answers it, Esc does not"),
            None if !self.message.is_empty() => {
                self.message.lines().map(str::trim).collect::<Vec<_>>().join("; ")
            }
            None => {
                let filter =
                    if self.filter.is_empty() { String::new() } else { format!(" with `{}`", self.filter) };
                format!("{} of {} rows{filter}", self.chosen.len(), self.rows.rows.len())
            }
        };
        frame.render_widget(Paragraph::new(vec![Line::raw(first), Line::raw(KEYS)]), foot);
    }

    fn draw_rows(&self, frame: &mut Frame<'_>, area: Rect) {
        let cells: Vec<Vec<String>> = self
            .chosen
            .iter()
            .map(|row| {
                self.columns.iter().map(|at| shorten(&cell(&self.rows.rows[*row][*at]), WIDEST)).collect()
            })
            .collect();
        let titles: Vec<String> = self.columns.iter().map(|at| self.title(*at)).collect();
        let width = |at: usize| {
            let longest = cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
            longest.max(titles[at].chars().count()) as u16
        };
        let widths: Vec<u16> = (0..titles.len()).map(width).collect();
        let shown = within(&widths, self.column, area.width);
        let style = |at: &usize| {
            if *at == self.column { has(Modifier::UNDERLINED | Modifier::BOLD) } else { has(Modifier::BOLD) }
        };
        let header = Row::new(shown.iter().map(|at| Cell::new(titles[*at].clone()).style(style(at))));
        let rows = cells.iter().map(|row| Row::new(shown.iter().map(|at| row[*at].clone())));
        let table = Table::new(rows, shown.iter().map(|at| Constraint::Length(widths[*at])))
            .header(header)
            .column_spacing(2)
            .row_highlight_style(has(Modifier::REVERSED));
        let mut state = TableState::new().with_selected((!self.chosen.is_empty()).then_some(self.row));
        frame.render_stateful_widget(table, area, &mut state);
    }

    fn title(&self, at: usize) -> String {
        let name = &self.rows.columns[at];
        match &self.order {
            Some(order) if order.column == *name => {
                format!("{name} {}", if order.falling { "↓" } else { "↑" })
            }
            _ => name.clone(),
        }
    }
}

/// The columns that fit in a width: the first, and those up to the chosen one or beyond it.
fn within(widths: &[u16], chosen: usize, all: u16) -> Vec<usize> {
    let taken = |columns: &[usize]| columns.iter().map(|at| u32::from(widths[*at]) + 2).sum::<u32>();
    let fits = |columns: &[usize]| taken(columns) <= u32::from(all) + 2;
    let from = |begin: usize| -> Vec<usize> {
        let first = (begin > 0 && !widths.is_empty()).then_some(0);
        let mut columns: Vec<usize> = first.into_iter().collect();
        let least = columns.len() + 1;
        for at in begin..widths.len() {
            columns.push(at);
            if !fits(&columns) && columns.len() > least {
                columns.pop();
                break;
            }
        }
        columns
    };
    (0..widths.len()).map(from).find(|columns| columns.contains(&chosen)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn rows() -> AnswerRows {
        let csv =
            "model,runtime,tok_s_per_user,odd\nLlama,vllm,30.25,x\nQwen,sglang,120,y\nGemma,vllm,9.5,z\n";
        AnswerRows::of_csv(csv.as_bytes()).unwrap()
    }

    fn drawn(screen: &Screen, width: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 10)).unwrap();
        terminal.draw(|frame| screen.draw(frame, "mantile-opt recommend")).unwrap();
        terminal.backend().to_string()
    }

    fn pressed(screen: &mut Screen, text: &str) -> ScreenStep {
        let press = |letter| match letter {
            '⏎' => KeyCode::Enter,
            '→' => KeyCode::Right,
            '↓' => KeyCode::Down,
            letter => KeyCode::Char(letter),
        };
        text.chars().map(|letter| screen.press(press(letter).into())).last().unwrap()
    }

    #[test]
    fn keys_filter_sort_and_change() {
        let mut screen = Screen::new(rows());
        assert!(drawn(&screen, 80).contains("3 of 3 rows"));
        pressed(&mut screen, "→→s");
        assert_eq!(screen.row().unwrap()[0], ("model", "Qwen"));
        assert!(drawn(&screen, 80).contains("tok_s_per_user ↓"));
        pressed(&mut screen, "s");
        assert_eq!(screen.row().unwrap()[0], ("model", "Gemma"));
        pressed(&mut screen, "/VLLM⏎↓↓");
        assert_eq!(screen.row().unwrap()[0], ("model", "Llama"));
        assert!(drawn(&screen, 80).contains("2 of 3 rows with `VLLM`"));
        pressed(&mut screen, "d");
        assert!(drawn(&screen, 80).contains("tok_s_per_user 30.2 · odd x"), "{}", drawn(&screen, 80));
        assert_eq!(pressed(&mut screen, "u4⏎"), ScreenStep::Change("users 4".to_owned()));
        assert_eq!(pressed(&mut screen, ":tp 2⏎"), ScreenStep::Change("tp 2".to_owned()));
        // Other rows keep the filter and the order.
        screen.show(rows());
        assert_eq!(screen.chosen, [2, 0]);
        assert_eq!(
            (pressed(&mut screen, "⏎"), pressed(&mut screen, "q")),
            (ScreenStep::Take, ScreenStep::Leave)
        );
        screen.say("users: found 0\n  expected: 1 to 9".to_owned());
        assert!(drawn(&screen, 80).contains("users: found 0; expected: 1 to 9"));
    }

    proptest! {
        /// Whatever is pressed: a row is chosen where there is one, the chosen column is drawn, and nothing panics.
        #[test]
        fn any_keys_leave_a_row_and_a_column_chosen(keys in "[/a-z0-9:→↓⏎ ]{1,60}", width in 1u16..120) {
            let mut screen = Screen::new(rows());
            pressed(&mut screen, &keys);
            prop_assert!(screen.chosen.is_empty() || screen.row().is_some());
            prop_assert!(drawn(&screen, width).lines().count() >= 10);
        }

        #[test]
        fn the_chosen_column_is_within_the_width(widths in prop::collection::vec(1u16..40, 1..12), at in 0usize..12, all in 1u16..200) {
            let chosen = at.min(widths.len() - 1);
            let shown = within(&widths, chosen, all);
            prop_assert!(shown.contains(&chosen) && shown.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
