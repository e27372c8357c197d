//! The commands of a script as a tree:
//!
//! ```text
//! list     = { and-or ( ";" | "&" | newline ) }
//! and-or   = pipeline { ( "&&" | "||" ) pipeline }
//! pipeline = [ "!" ] command { "|" command }
//! command  = if | for | while | case | "{" list "}" | "(" list ")" | "((" … "))" | "[[" … "]]" | function | simple
//! ```
//!
//! A word of the grammar in a wrong place is left out, and what is open at the end of the text is closed there.

use std::rc::Rc;

use super::lex::{RawWord, Redirect, Token};

/// Blocks in blocks: further ones are left out.
const DEEPEST: usize = 40;

pub(super) type List = Vec<AndOr>;

/// Pipelines joined by `&&` and `||`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AndOr {
    pub(super) first: Pipeline,
    /// The others; `true` for `&&`.
    pub(super) rest: Vec<(bool, Pipeline)>,
    /// Whether `&` ends it.
    pub(super) background: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipeline {
    pub(super) not: bool,
    pub(super) commands: Vec<ShellCommand>,
    /// Line of its first command.
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShellCommand {
    pub(super) kind: CommandKind,
    pub(super) redirects: Vec<Redirect>,
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CommandKind {
    Simple(Vec<RawWord>),
    If {
        arms: Vec<(List, Rc<List>)>,
        otherwise: Option<Rc<List>>,
    },
    /// Without words it runs over the arguments.
    For {
        name: String,
        words: Option<Vec<String>>,
        body: Rc<List>,
    },
    /// `for ((…; …; …))`
    ForArithmetic {
        text: String,
        body: Rc<List>,
    },
    While {
        until: bool,
        condition: List,
        body: Rc<List>,
    },
    Case {
        word: String,
        arms: Vec<(Vec<String>, Rc<List>)>,
    },
    Group(Rc<List>),
    Subshell(Rc<List>),
    Arithmetic(String),
    Test(String),
    Function {
        name: String,
        body: Rc<List>,
    },
}

/// The scripts of a text.
pub(super) fn parse(tokens: Vec<Token>) -> Vec<List> {
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let mut scripts = Vec::new();
    while parser.at < parser.tokens.len() {
        let mut script = Vec::new();
        loop {
            script.extend(parser.list(&[]));
            match parser.peek() {
                None => break,
                Some(Token::Script) => {
                    parser.at += 1;
                    break;
                }
                // A word of the grammar in a wrong place.
                Some(_) => parser.at += 1,
            }
        }
        scripts.push(script);
    }
    scripts
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// Words that end a list.
const ENDS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is_operator(&self, operator: &str) -> bool {
        matches!(self.peek(), Some(Token::Operator(found)) if *found == operator)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found.text == word)
    }

    fn operator(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn newlines(&mut self) {
        while matches!(self.peek(), Some(Token::Newline)) {
            self.at += 1;
        }
    }

    fn line(&self) -> usize {
        let line = |token: &Token| match token {
            Token::Word(word) => Some(word.line),
            Token::Arithmetic(_, line) | Token::Test(_, line) => Some(*line),
            _ => None,
        };
        self.tokens[self.at..].iter().find_map(line).unwrap_or(0)
    }

    /// Commands up to a word that closes the block around them: one of `ends`, or another that a list cannot contain.
    fn list(&mut self, ends: &[&str]) -> List {
        let mut all = Vec::new();
        loop {
            while matches!(self.peek(), Some(Token::Newline))
                || self.is_operator(";")
                || self.is_operator("&")
            {
                self.at += 1;
            }
            match self.peek() {
                None | Some(Token::Script) => return all,
                Some(Token::Word(word)) if ends.contains(&word.text.as_str()) => return all,
                Some(Token::Word(word)) if ENDS.contains(&word.text.as_str()) => return all,
                Some(Token::Operator(operator)) if *operator != "(" => return all,
                _ => {}
            }
            let from = self.at;
            if let Some(found) = self.and_or() {
                all.push(found);
            }
            if self.at == from {
                return all;
            }
        }
    }

    fn and_or(&mut self) -> Option<AndOr> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let and = self.is_operator("&&");
            if !and && !self.is_operator("||") {
                break;
            }
            self.at += 1;
            self.newlines();
            match self.pipeline() {
                Some(next) => rest.push((and, next)),
                None => break,
            }
        }
        Some(AndOr { first, rest, background: self.operator("&") })
    }

    fn pipeline(&mut self) -> Option<Pipeline> {
        let line = self.line();
        let mut not = false;
        while self.word("!") {
            not = !not;
        }
        let mut commands = vec![self.command()?];
        while self.operator("|") || self.operator("|&") {
            self.newlines();
            match self.command() {
                Some(next) => commands.push(next),
                None => break,
            }
        }
        Some(Pipeline { not, commands, line })
    }

    fn command(&mut self) -> Option<ShellCommand> {
        if self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let line = self.line();
        let mut redirects = self.redirects();
        let kind = self.kind(&mut redirects);
        redirects.extend(self.redirects());
        self.depth -= 1;
        Some(ShellCommand { kind: kind?, redirects, line })
    }

    fn redirects(&mut self) -> Vec<Redirect> {
        let mut all = Vec::new();
        while let Some(Token::Redirect(redirect)) = self.peek() {
            all.push(redirect.clone());
            self.at += 1;
        }
        all
    }

    fn kind(&mut self, redirects: &mut Vec<Redirect>) -> Option<CommandKind> {
        match self.peek()? {
            Token::Arithmetic(text, _) => {
                let text = text.clone();
                self.at += 1;
                return Some(CommandKind::Arithmetic(text));
            }
            Token::Test(text, _) => {
                let text = text.clone();
                self.at += 1;
                return Some(CommandKind::Test(text));
            }
            Token::Operator("(") => {
                self.at += 1;
                let body = Rc::new(self.list(&[]));
                self.operator(")");
                return Some(CommandKind::Subshell(body));
            }
            Token::Word(word) => match word.text.as_str() {
                "if" => return Some(self.if_block()),
                "for" | "select" => return self.for_block(),
                "while" | "until" => return Some(self.while_block()),
                "case" => return self.case_block(),
                "{" => {
                    self.at += 1;
                    let body = Rc::new(self.list(&["}"]));
                    self.word("}");
                    return Some(CommandKind::Group(body));
                }
                _ => {}
            },
            _ => return None,
        }
        self.function().or_else(|| self.simple(redirects))
    }

    fn if_block(&mut self) -> CommandKind {
        let mut arms = Vec::new();
        while self.word("if") || self.word("elif") {
            let condition = self.list(&["then"]);
            self.word("then");
            let body = self.list(&["elif", "else", "fi"]);
            arms.push((condition, Rc::new(body)));
        }
        let otherwise = self.word("else").then(|| Rc::new(self.list(&["fi"])));
        self.word("fi");
        CommandKind::If { arms, otherwise }
    }

    fn body(&mut self) -> Rc<List> {
        self.operator(";");
        self.newlines();
        self.word("do");
        let body = self.list(&["done"]);
        self.word("done");
        Rc::new(body)
    }

    fn for_block(&mut self) -> Option<CommandKind> {
        self.at += 1;
        if let Some(Token::Arithmetic(text, _)) = self.peek() {
            let text = text.clone();
            self.at += 1;
            return Some(CommandKind::ForArithmetic { text, body: self.body() });
        }
        let Some(Token::Word(name)) = self.peek() else { return None };
        let name = name.text.clone();
        self.at += 1;
        self.newlines();
        let words = self.word("in").then(|| {
            let mut words = Vec::new();
            while let Some(Token::Word(word)) = self.peek() {
                words.push(word.text.clone());
                self.at += 1;
            }
            words
        });
        Some(CommandKind::For { name, words, body: self.body() })
    }

    fn while_block(&mut self) -> CommandKind {
        let until = self.is_word("until");
        self.at += 1;
        let condition = self.list(&["do"]);
        CommandKind::While { until, condition, body: self.body() }
    }

    fn case_block(&mut self) -> Option<CommandKind> {
        self.at += 1;
        let Some(Token::Word(word)) = self.peek() else { return None };
        let word = word.text.clone();
        self.at += 1;
        self.newlines();
        self.word("in");
        let mut arms = Vec::new();
        loop {
            self.newlines();
            if self.word("esac") {
                break;
            }
            self.operator("(");
            let mut patterns = Vec::new();
            while let Some(Token::Word(pattern)) = self.peek() {
                patterns.push(pattern.text.clone());
                self.at += 1;
                self.operator("|");
            }
            if patterns.is_empty() || !self.operator(")") {
                break;
            }
            let body = Rc::new(self.list(&["esac"]));
            arms.push((patterns, body));
            if !(self.operator(";;") || self.operator(";&") || self.operator(";;&")) {
                self.newlines();
                self.word("esac");
                break;
            }
        }
        Some(CommandKind::Case { word, arms })
    }

    /// `NAME() …` or `function NAME …`.
    fn function(&mut self) -> Option<CommandKind> {
        let from = self.at;
        let keyword = self.word("function");
        let Some(Token::Word(name)) = self.peek() else {
            self.at = from;
            return None;
        };
        let name = name.text.clone();
        self.at += 1;
        let brackets = self.operator("(") && self.operator(")");
        if !brackets && !keyword {
            self.at = from;
            return None;
        }
        self.newlines();
        let body = self.command()?;
        let pipeline = Pipeline { not: false, line: body.line, commands: vec![body] };
        let body = Rc::new(vec![AndOr { first: pipeline, rest: vec![], background: false }]);
        Some(CommandKind::Function { name, body })
    }

    fn simple(&mut self, redirects: &mut Vec<Redirect>) -> Option<CommandKind> {
        let mut words = Vec::new();
        loop {
            match self.peek() {
                Some(Token::Word(word)) => words.push(word.clone()),
                Some(Token::Redirect(redirect)) => redirects.push(redirect.clone()),
                // ShellText that is no script, e.g. a remark in brackets after a command.
                Some(Token::Operator("(")) if !words.is_empty() => {}
                _ => break,
            }
            self.at += 1;
        }
        (!words.is_empty() || !redirects.is_empty()).then_some(CommandKind::Simple(words))
    }
}

/// A condition as people read it.
pub(super) fn shown(list: &[AndOr]) -> String {
    let one = |one: &AndOr| {
        let rest = one
            .rest
            .iter()
            .map(|(and, next)| format!(" {} {}", if *and { "&&" } else { "||" }, next.shown()));
        [one.first.shown()].into_iter().chain(rest).collect::<String>()
    };
    list.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Pipeline {
    /// The pipeline as people read it.
    pub(super) fn shown(&self) -> String {
        let command = |command: &ShellCommand| match &command.kind {
            CommandKind::Simple(words) => {
                let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                words.join(" ")
            }
            CommandKind::Arithmetic(text) => format!("(( {} ))", text.trim()),
            CommandKind::Test(text) => format!("[[ {} ]]", text.trim()),
            CommandKind::Group(list) => format!("{{ {}; }}", shown(list)),
            CommandKind::Subshell(list) => format!("( {} )", shown(list)),
            _ => "…".to_owned(),
        };
        let words: Vec<String> = self.commands.iter().map(command).collect();
        format!("{}{}", if self.not { "! " } else { "" }, words.join(" | "))
    }
}
