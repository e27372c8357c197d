//! Runs a script as far as its text says what happens: variables, branches, loops and functions, but no program.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::arithmetic::Numbers;
use super::branch::BranchCandidate;
use super::parse::{AndOr, CommandKind, List, Pipeline, ShellCommand};
use super::pattern::matches;
use super::text::{ShellText, WordPiece};
use super::wrapper::Started;
use super::{Process, starts_server};
use crate::launch::settings_file::{NamedFiles, file_name};

/// Commands that are run: a loop without an end ends here.
const MOST_STEPS: usize = 50_000;

/// Bytes of values and words that count as a command.
const STEP_BYTES: usize = 256;

/// Bytes of values that are copied, for a branch or a shell of its own, in the time of a command.
const COPY_BYTES: usize = 4096;

/// Bytes of a value; longer ones are not known.
const LONGEST_VALUE: usize = 1 << 16;

/// Functions, scripts and texts in each other.
const DEEPEST: usize = 12;

/// Rounds of a loop.
const MOST_ROUNDS: usize = 256;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    One(ShellText),
    Many(Vec<ShellText>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShellVariable {
    pub(super) value: Value,
    pub(super) exported: bool,
}

/// The exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ShellStatus {
    Known(bool),
    /// Of a program, which is taken to succeed.
    Assumed,
    /// Of a condition that is not known; the value is what a shell gives that sets no more than the script.
    Open(Option<bool>),
}

impl ShellStatus {
    pub(super) fn not(self) -> ShellStatus {
        match self {
            ShellStatus::Known(holds) => ShellStatus::Known(!holds),
            ShellStatus::Assumed => ShellStatus::Known(false),
            ShellStatus::Open(usual) => ShellStatus::Open(usual.map(|holds| !holds)),
        }
    }

    /// As the condition of a branch: what a program returns is not known.
    fn of_condition(self) -> ShellStatus {
        if self == ShellStatus::Assumed { ShellStatus::Open(None) } else { self }
    }

    fn usual(self) -> Option<bool> {
        match self {
            ShellStatus::Known(holds) => Some(holds),
            ShellStatus::Assumed => Some(true),
            ShellStatus::Open(usual) => usual,
        }
    }
}

/// Where a script goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return,
    Exit,
}

#[derive(Clone, Debug)]
pub(super) struct FoundRun {
    pub(super) process: Process,
    /// Whether the script goes on while it runs.
    pub(super) background: bool,
}

impl FoundRun {
    pub(super) fn serves(&self) -> bool {
        starts_server(&self.process.words)
    }
}

#[derive(Clone)]
pub(super) struct Shell<'a> {
    files: &'a NamedFiles,
    /// Files that the script writes.
    pub(super) written: NamedFiles,
    pub(super) variables: BTreeMap<String, ShellVariable>,
    pub(super) functions: BTreeMap<String, Rc<List>>,
    called: BTreeSet<String>,
    /// The arguments of the script or function, where they are known.
    pub(super) arguments: Option<Vec<ShellText>>,
    /// Variables of the functions being run, with their values outside.
    pub(super) locals: Vec<(String, Option<ShellVariable>)>,
    pub(super) found: Vec<FoundRun>,
    /// Variables whose value rests on a condition that is not known, with the remark about it.
    pub(super) doubts: BTreeMap<String, String>,
    /// Variables read since it was emptied.
    pub(super) used: BTreeSet<String>,
    pub(super) status: ShellStatus,
    /// Whether variables that nothing sets are empty, as in a shell.
    pub(super) unset_is_empty: bool,
    pub(super) exports_all: bool,
    /// Expansions around this one.
    pub(super) depth: usize,
    /// Functions and scripts around this one.
    pub(super) outer: usize,
    /// Line of the outermost script, in a script that it runs.
    pub(super) place: Option<usize>,
    /// Where the script ended with a fault.
    pub(super) failed: Option<usize>,
    /// Whether faults do not end it.
    pub(super) past_faults: bool,
    pub(super) steps: usize,
    /// Bytes of the values that were set.
    live: usize,
}

impl<'a> Shell<'a> {
    pub(super) fn new(files: &'a NamedFiles, variables: &BTreeMap<String, String>) -> Shell<'a> {
        let given = |(name, value): (&String, &String)| {
            (
                name.clone(),
                ShellVariable { value: Value::One(ShellText::known(value.clone())), exported: true },
            )
        };
        Shell {
            files,
            written: NamedFiles::new(),
            variables: variables.iter().map(given).collect(),
            functions: BTreeMap::new(),
            called: BTreeSet::new(),
            arguments: None,
            locals: vec![],
            found: vec![],
            doubts: BTreeMap::new(),
            used: BTreeSet::new(),
            status: ShellStatus::Known(true),
            unset_is_empty: false,
            exports_all: false,
            depth: 0,
            outer: 0,
            place: None,
            failed: None,
            past_faults: false,
            steps: 0,
            live: 0,
        }
    }

    /// Runs a whole script, and functions with a server that it does not call.
    pub(super) fn script(&mut self, script: &List) -> Flow {
        let from = self.found.len();
        let mut before = self.fork();
        let flow = self.list(script);
        if self.steps > MOST_STEPS {
            let note = format!("the script runs more than {MOST_STEPS} commands: its beginning is read");
            let own = self.found[from..].iter_mut().filter(|one| one.serves());
            own.for_each(|one| one.process.notes.push(note.clone()));
        }
        if self.found[from..].iter().any(FoundRun::serves) {
            return flow;
        }
        if let Some(line) = self.failed.filter(|_| flow == Flow::Exit) {
            before.past_faults = true;
            before.list(script);
            if before.found.iter().any(FoundRun::serves) {
                let note = format!("line {line}: the script ends there as it is: what follows is read");
                before.found.iter_mut().for_each(|one| one.process.notes.push(note.clone()));
                self.adopt(before);
                return Flow::Next;
            }
        }
        let uncalled: Vec<(String, Rc<List>)> = self
            .functions
            .iter()
            .filter(|(name, _)| !self.called.contains(*name))
            .map(|(name, body)| (name.clone(), body.clone()))
            .collect();
        for (name, body) in uncalled {
            let mut other = self.fork();
            other.list(&body);
            if other.found.iter().any(FoundRun::serves) {
                let note = format!("nothing calls the function `{name}`: its command is read");
                other.found.iter_mut().for_each(|one| one.process.notes.push(note.clone()));
                self.adopt(other);
                break;
            }
        }
        flow
    }

    /// The text of a file that the script has or writes.
    pub(super) fn file(&self, path: &str) -> Option<String> {
        let name = file_name(path);
        self.written.get(name).or_else(|| self.files.get(name)).cloned()
    }

    /// A shell in the same state that has found nothing yet.
    pub(super) fn fork(&self) -> Shell<'a> {
        let steps = self.steps + self.live / COPY_BYTES;
        Shell { found: vec![], steps, ..self.clone() }
    }

    /// Counts the bytes that a value or a command takes.
    pub(super) fn charge(&mut self, bytes: usize) {
        self.live += bytes;
        self.steps += bytes / STEP_BYTES;
    }

    /// Goes on from the state of a fork.
    pub(super) fn adopt(&mut self, other: Shell<'a>) {
        let mut found = std::mem::take(&mut self.found);
        found.extend(other.found);
        *self = Shell { found, ..other };
    }

    /// Keeps what a shell of its own found and wrote, and nothing else of it.
    pub(super) fn gather(&mut self, other: Shell<'a>) {
        self.found.extend(other.found);
        self.written.extend(other.written);
        self.steps = self.steps.max(other.steps);
        self.status = other.status;
    }

    pub(super) fn list(&mut self, list: &[AndOr]) -> Flow {
        for one in list {
            let flow = self.and_or(one);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    fn and_or(&mut self, one: &AndOr) -> Flow {
        let from = self.found.len();
        let mut flow = self.pipeline(&one.first);
        let mut last = &one.first;
        for (and, next) in &one.rest {
            if flow != Flow::Next {
                break;
            }
            flow = match (self.status, *and) {
                (ShellStatus::Known(true) | ShellStatus::Assumed, true)
                | (ShellStatus::Known(false), false) => self.pipeline(next),
                (ShellStatus::Known(_), _) => Flow::Next,
                (ShellStatus::Assumed, false) => self.instead(next, from),
                (ShellStatus::Open(usual), and) => self.perhaps((last, next), usual, and),
            };
            last = next;
        }
        if one.background {
            self.found[from..].iter_mut().for_each(|found| found.background = true);
            self.status = ShellStatus::Known(true);
            if flow == Flow::Exit {
                return Flow::Next;
            }
        }
        flow
    }

    /// Runs the command for a program that fails: it is read where it starts a server, and nothing before it does.
    fn instead(&mut self, next: &Pipeline, from: usize) -> Flow {
        if self.found[from..].iter().any(FoundRun::serves) {
            return Flow::Next;
        }
        let mut other = self.fork();
        let flow = other.pipeline(next);
        if !other.found.iter().any(FoundRun::serves) {
            self.steps = other.steps;
            return Flow::Next;
        }
        let note = format!("line {}: it runs where the command before it fails, and is read", next.line);
        other.found.iter_mut().for_each(|one| one.process.notes.push(note.clone()));
        self.adopt(other);
        flow
    }

    /// Runs the command behind `&&` or `||` of a condition that is not known.
    fn perhaps(&mut self, (before, next): (&Pipeline, &Pipeline), usual: Option<bool>, and: bool) -> Flow {
        let taken = usual.map(|holds| holds == and);
        let mut other = self.fork();
        let flow = other.pipeline(next);
        let after = other.status;
        let condition = format!("line {}: the condition `{}` is not known", before.line, before.shown());
        let candidate =
            BranchCandidate { note: format!("{condition}: what depends on it is read"), shell: other, flow };
        let flow = self.choose(vec![candidate], taken.filter(|taken| *taken).map(|_| 0), false, &condition);
        self.status = match (after, and) {
            (ShellStatus::Known(false), true) => ShellStatus::Known(false),
            (ShellStatus::Known(true), false) => ShellStatus::Known(true),
            (after, _) => ShellStatus::Open(match taken {
                Some(true) => after.usual(),
                Some(false) => usual,
                None => None,
            }),
        };
        flow
    }

    pub(super) fn pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        let mut flow = Flow::Next;
        match &pipeline.commands[..] {
            [only] => flow = self.command(only),
            several => {
                for command in several {
                    let mut other = self.fork();
                    other.command(command);
                    self.gather(other);
                }
            }
        }
        if pipeline.not {
            self.status = self.status.not();
        }
        flow
    }

    fn command(&mut self, command: &ShellCommand) -> Flow {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Flow::Exit;
        }
        match &command.kind {
            CommandKind::Simple(words) => return self.simple(words, &command.redirects, command.line),
            CommandKind::If { arms, otherwise } => return self.if_block(arms, otherwise.as_ref()),
            CommandKind::For { name, words, body } => {
                return self.for_block(name, words.as_deref(), body, command.line);
            }
            CommandKind::ForArithmetic { text, body } => return self.for_arithmetic(text, body),
            CommandKind::While { until, condition, body } => {
                return self.while_block(*until, condition, body);
            }
            CommandKind::Case { word, arms } => return self.case_block(word, arms, command.line),
            CommandKind::Group(body) => return self.list(body),
            CommandKind::Subshell(body) => {
                let mut other = self.fork();
                other.list(body);
                self.gather(other);
            }
            CommandKind::Arithmetic(text) => self.status = self.arithmetic_test(text),
            CommandKind::Test(text) => self.status = self.double_test(text),
            CommandKind::Function { name, body } => {
                self.functions.insert(name.clone(), body.clone());
                self.status = ShellStatus::Known(true);
            }
        }
        Flow::Next
    }

    fn if_block(&mut self, arms: &[(List, Rc<List>)], otherwise: Option<&Rc<List>>) -> Flow {
        for (at, (condition, body)) in arms.iter().enumerate() {
            let flow = self.list(condition);
            if flow != Flow::Next {
                return flow;
            }
            match self.status.of_condition() {
                ShellStatus::Known(true) => return self.list(body),
                ShellStatus::Known(false) => {}
                _ => return self.undecided(&arms[at..], otherwise),
            }
        }
        match otherwise {
            Some(body) => self.list(body),
            None => {
                self.status = ShellStatus::Known(true);
                Flow::Next
            }
        }
    }

    /// The arms from the first whose condition is not known; that condition is the last that ran.
    fn undecided(&mut self, arms: &[(List, Rc<List>)], otherwise: Option<&Rc<List>>) -> Flow {
        let first = &arms[0].0;
        let line = first.first().map_or(0, |one| one.first.line);
        let condition = format!("line {line}: the condition `{}` is not known", super::parse::shown(first));
        let mut candidates = Vec::new();
        let (mut usual, mut open, mut complete) = (None, true, false);
        for (at, (condition_list, body)) in arms.iter().enumerate() {
            if at > 0 {
                self.list(condition_list);
            }
            let status = self.status.of_condition();
            if status == ShellStatus::Known(false) {
                continue;
            }
            if open && status.usual() != Some(false) {
                usual = status.usual().map(|_| candidates.len());
                open = false;
            }
            let words = if at == 0 { "its branch is read" } else { "a later branch is read" };
            candidates.push(self.tried(format!("{condition}: {words}"), body));
            if status == ShellStatus::Known(true) {
                complete = true;
                break;
            }
        }
        if let Some(body) = otherwise.filter(|_| !complete) {
            complete = true;
            usual = if open { Some(candidates.len()) } else { usual };
            candidates.push(self.tried(format!("{condition}: its `else` is read"), body));
        }
        self.choose(candidates, usual, complete, &condition)
    }

    /// The state after a list that perhaps runs.
    pub(super) fn tried(&self, note: String, body: &[AndOr]) -> BranchCandidate<'a> {
        let mut shell = self.fork();
        let flow = shell.list(body);
        BranchCandidate { note, shell, flow }
    }

    fn for_block(&mut self, name: &str, words: Option<&[String]>, body: &[AndOr], line: usize) -> Flow {
        let values: Vec<ShellText> = match words {
            Some(words) => words.iter().flat_map(|word| self.words_of(word)).collect(),
            None => self.arguments.clone().unwrap_or_default(),
        };
        let from = self.found.len();
        let mut rounds = vec![];
        for value in values.into_iter().take(MOST_ROUNDS) {
            self.assign(name, Value::One(value));
            rounds.push(self.found.len());
            match self.list(body) {
                Flow::Break => break,
                Flow::Next | Flow::Continue => {}
                flow => return flow,
            }
        }
        let second = rounds.get(1).copied().unwrap_or(self.found.len());
        self.first_of_each(from, second, format!("line {line}: of the rounds of `{name}` the first is read"));
        Flow::Next
    }

    /// Of servers that a loop starts one after the other, the first stays.
    fn first_of_each(&mut self, from: usize, second: usize, note: String) {
        let later = |at: usize, one: &FoundRun| at >= second && one.serves() && !one.background;
        let first: Vec<Vec<String>> =
            self.found[from..second].iter().map(|one| one.process.words.clone()).collect();
        let found = std::mem::take(&mut self.found);
        let differs =
            found.iter().enumerate().any(|(at, one)| later(at, one) && !first.contains(&one.process.words));
        let kept = found.into_iter().enumerate().filter(|(at, one)| !later(*at, one));
        self.found = kept.map(|(_, one)| one).collect();
        if differs {
            let own = self.found[from..second].iter_mut().filter(|one| one.serves());
            own.for_each(|one| one.process.notes.push(note.clone()));
        }
    }

    fn for_arithmetic(&mut self, text: &str, body: &[AndOr]) -> Flow {
        let parts: Vec<&str> = text.split(';').collect();
        let part = |at: usize| parts.get(at).copied().unwrap_or_default();
        self.number(part(0));
        for _ in 0..MOST_ROUNDS {
            let holds = if part(1).trim().is_empty() { Some(1) } else { self.number(part(1)) };
            let flow = match holds {
                Some(0) => return Flow::Next,
                _ => self.list(body),
            };
            match flow {
                Flow::Break => return Flow::Next,
                Flow::Next | Flow::Continue if holds.is_some() => self.number(part(2)),
                Flow::Next | Flow::Continue => return Flow::Next,
                flow => return flow,
            };
        }
        Flow::Next
    }

    fn while_block(&mut self, until: bool, condition: &List, body: &[AndOr]) -> Flow {
        for _ in 0..MOST_ROUNDS {
            let from = self.found.len();
            let flow = self.list(condition);
            if flow != Flow::Next {
                return flow;
            }
            let status = self.status.of_condition();
            match if until { status.not() } else { status } {
                ShellStatus::Known(false) => return Flow::Next,
                ShellStatus::Known(true) => match self.list(body) {
                    Flow::Break => return Flow::Next,
                    Flow::Next | Flow::Continue => {}
                    flow => return flow,
                },
                _ => {
                    let line = condition.first().map_or(0, |one| one.first.line);
                    let shown = super::parse::shown(condition);
                    let condition = format!("line {line}: the condition `{shown}` is not known");
                    let candidate = self.tried(format!("{condition}: its loop is read once"), body);
                    let flow = self.choose(vec![candidate], None, false, &condition);
                    return if flow == Flow::Exit { flow } else { Flow::Next };
                }
            }
            // A server that is started again when it ends.
            if self.found[from..].iter().any(|one| one.serves() && !one.background) {
                return Flow::Next;
            }
        }
        Flow::Next
    }

    fn case_block(&mut self, word: &str, arms: &[(Vec<String>, Rc<List>)], line: usize) -> Flow {
        let outside = std::mem::take(&mut self.used);
        let value = self.text_of(word);
        let doubted = self.used.iter().any(|name| self.doubts.contains_key(name));
        self.used.extend(outside);
        let fitting = |shell: &mut Shell, value: &str| {
            arms.iter().position(|(patterns, _)| {
                patterns.iter().any(|pattern| {
                    let pattern = shell.text_of(pattern).value();
                    pattern.is_some_and(|pattern| matches(value, &pattern))
                })
            })
        };
        if let Some(value) = value.value().filter(|_| !doubted) {
            self.status = ShellStatus::Known(true);
            return fitting(self, &value).map_or(Flow::Next, |at| self.list(&arms[at].1));
        }
        let usual = value.without_unset().value().and_then(|value| fitting(self, &value));
        let condition = format!("line {line}: the value of `{word}` is not known");
        let tried = arms.iter().map(|(patterns, body)| {
            self.tried(format!("{condition}: its case `{}` is read", patterns.join("|")), body)
        });
        let candidates = tried.collect();
        self.choose(candidates, usual, false, &condition)
    }

    /// Runs a function, with its arguments.
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: Vec<ShellText>,
        own: &[(String, ShellText)],
    ) -> Flow {
        let Some(body) = self.functions.get(name).cloned().filter(|_| self.outer < DEEPEST) else {
            return Flow::Next;
        };
        self.called.insert(name.to_owned());
        let outside = self.locals.len();
        for (name, value) in own {
            self.localize(name);
            self.assign(name, Value::One(value.clone()));
            self.export(name);
        }
        let before = self.arguments.replace(arguments);
        self.outer += 1;
        let flow = self.list(&body);
        self.outer -= 1;
        self.arguments = before;
        for (name, value) in self.locals.split_off(outside).into_iter().rev() {
            match value {
                Some(value) => self.variables.insert(name, value),
                None => self.variables.remove(&name),
            };
        }
        if flow == Flow::Exit { Flow::Exit } else { Flow::Next }
    }

    /// Runs another text here: of `eval`, `source` or a here-document.
    pub(super) fn text(&mut self, text: &str) -> Flow {
        if self.outer >= DEEPEST {
            return Flow::Next;
        }
        self.outer += 1;
        let mut flow = Flow::Next;
        for script in super::parse::parse(super::lex::tokens(text)) {
            flow = self.list(&script);
            if flow != Flow::Next {
                break;
            }
        }
        self.outer -= 1;
        flow
    }

    /// Runs the script of a command in a shell of its own, in which exported variables and those of the command are set.
    pub(super) fn inner(
        &mut self,
        text: &str,
        one: &Started,
        arguments: Option<Vec<ShellText>>,
        line: usize,
    ) {
        if self.outer >= DEEPEST {
            return;
        }
        let passes = |name: &String| !one.clears && !one.unset.contains(name);
        let exported = self.variables.iter().filter(|(name, variable)| variable.exported && passes(name));
        let mut inner = Shell {
            variables: exported.map(|(name, variable)| (name.clone(), variable.clone())).collect(),
            written: self.written.clone(),
            arguments,
            outer: self.outer + 1,
            steps: self.steps,
            live: self.live,
            place: Some(self.place.unwrap_or(line)),
            doubts: self.doubts.clone(),
            ..Shell::new(self.files, &BTreeMap::new())
        };
        for (name, value) in &one.environment {
            let value = Value::One(known_or_unset(value));
            inner.variables.insert(name.clone(), ShellVariable { value, exported: true });
        }
        for script in super::parse::parse(super::lex::tokens(text)) {
            inner.script(&script);
        }
        self.gather(inner);
        self.status = ShellStatus::Assumed;
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        match name.parse::<usize>() {
            Ok(at) => self.arguments.as_ref().is_some_and(|all| at > 0 && at <= all.len()),
            Err(_) => self.variables.contains_key(name),
        }
    }

    /// The value of a variable or argument.
    pub(super) fn value(&mut self, name: &str) -> ShellText {
        let unset = || ShellText::of(WordPiece::Unset(format!("${name}")));
        if let Ok(at) = name.parse::<usize>() {
            return match (&self.arguments, at) {
                (Some(all), 1..) => all.get(at - 1).cloned().unwrap_or_default(),
                _ => unset(),
            };
        }
        self.used.insert(name.to_owned());
        match self.variables.get(name).map(|variable| &variable.value) {
            Some(Value::One(text)) => text.clone(),
            Some(Value::Many(all)) => all.first().cloned().unwrap_or_default(),
            None => unset(),
        }
    }

    /// The elements of an array.
    pub(super) fn elements(&mut self, name: &str) -> Vec<ShellText> {
        self.used.insert(name.to_owned());
        match self.variables.get(name).map(|variable| &variable.value) {
            Some(Value::Many(all)) => all.clone(),
            Some(Value::One(one)) => vec![one.clone()],
            None => vec![],
        }
    }

    pub(super) fn assign(&mut self, name: &str, value: Value) {
        let bytes = match &value {
            Value::One(text) => text.bytes(),
            Value::Many(all) => all.iter().map(|text| text.bytes() + 8).sum(),
        };
        self.charge(bytes + name.len());
        let value = match bytes > LONGEST_VALUE {
            true => Value::One(ShellText::of(WordPiece::Unknown(format!("${name}")))),
            false => value,
        };
        let exported = self.exports_all || self.variables.get(name).is_some_and(|variable| variable.exported);
        self.variables.insert(name.to_owned(), ShellVariable { value, exported });
        let doubt = self.used.iter().find_map(|used| self.doubts.get(used)).cloned();
        match doubt {
            Some(doubt) => self.doubts.insert(name.to_owned(), doubt),
            None => self.doubts.remove(name),
        };
    }

    pub(super) fn export(&mut self, name: &str) {
        if let Some(variable) = self.variables.get_mut(name) {
            variable.exported = true;
        }
    }

    /// Keeps the value that a variable has outside the function being run.
    pub(super) fn localize(&mut self, name: &str) {
        let outside = self.variables.get(name).cloned();
        self.locals.push((name.to_owned(), outside));
    }
}

/// The value of a variable in a child: a text that is no more than an unset variable stays one.
pub(super) fn known_or_unset(value: &str) -> ShellText {
    match value.strip_prefix('$').filter(|name| super::is_name(name)) {
        Some(_) => ShellText::of(WordPiece::Unset(value.to_owned())),
        None => ShellText::known(value),
    }
}

impl Numbers for Shell<'_> {
    fn get(&mut self, name: &str) -> Option<i64> {
        let value = self.value(name);
        let value = if self.unset_is_empty { value.without_unset() } else { value }.value()?;
        if value.trim().is_empty() {
            return Some(0);
        }
        match value.trim().parse() {
            Ok(number) => Some(number),
            // A variable that holds an expression; none that holds itself.
            Err(_) if self.depth < 8 => {
                self.depth += 1;
                let number = super::arithmetic::evaluate(&value, self);
                self.depth -= 1;
                number
            }
            Err(_) => None,
        }
    }

    fn set(&mut self, name: &str, value: i64) {
        self.assign(name, Value::One(ShellText::known(value.to_string())));
    }
}
