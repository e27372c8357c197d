//! The words and operators of a script.

use super::scan::Scan;

/// A word as written, with its quotes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RawWord {
    pub(super) text: String,
    /// The elements of `NAME=( … )`.
    pub(super) elements: Option<Vec<String>>,
    pub(super) line: usize,
}

/// `> FILE`, `<< END` and the like.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Redirect {
    pub(super) operator: &'static str,
    pub(super) target: String,
    /// The text of a here-document, and whether it is taken as it is.
    pub(super) body: Option<(String, bool)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(RawWord),
    Operator(&'static str),
    Redirect(Redirect),
    /// `(( … ))`
    Arithmetic(String, usize),
    /// `[[ … ]]`
    Test(String, usize),
    Newline,
    /// Another script begins.
    Script,
}

/// Operators, the longest first.
const OPERATORS: [&str; 12] = ["&&", "||", ";;&", ";;", ";&", "|&", "&", "|", ";", "(", ")", "\n"];

const REDIRECTS: [&str; 12] = ["<<<", "<<-", "&>>", "<<", ">>", "<&", ">&", "<>", ">|", "&>", "<", ">"];

/// Words after which a command begins.
const BEFORE_COMMANDS: [&str; 10] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!", "time"];

/// The tokens of a text, which may be several scripts.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let text = text.replace("\r\n", "\n").replace('\0', " ");
    // A line that is continued by nothing.
    let text = text.strip_suffix('\\').unwrap_or(&text);
    let mut lexer =
        Lexer { scan: Scan::new(text), at: 0, line: 1, found: vec![], pending: vec![], at_command: true };
    while lexer.at < lexer.scan.chars.len() {
        lexer.token();
    }
    lexer.found
}

struct Lexer {
    scan: Scan,
    at: usize,
    line: usize,
    found: Vec<Token>,
    /// Redirections whose here-documents follow the line, as places in `found`.
    pending: Vec<usize>,
    /// Whether a command may begin here.
    at_command: bool,
}

impl Lexer {
    /// Goes to `end`, over lines.
    fn advance(&mut self, end: usize) -> String {
        let text = self.scan.text(self.at, end);
        self.line += text.matches('\n').count();
        self.at = end.min(self.scan.chars.len());
        text
    }

    fn skip_blanks(&mut self) {
        loop {
            if self.scan.starts(self.at, "\\\n") {
                self.advance(self.at + 2);
            } else if self.scan.at(self.at).is_some_and(|c| c != '\n' && c.is_whitespace()) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn token(&mut self) {
        self.skip_blanks();
        let Some(c) = self.scan.at(self.at) else { return };
        if c == '#' {
            return self.comment();
        }
        if self.redirect() {
            return;
        }
        if self.at_command || self.after_for() {
            if self.scan.starts(self.at, "((") && self.arithmetic() {
                return;
            }
            if self.scan.starts(self.at, "[[") && self.test() {
                return;
            }
        }
        let operator = OPERATORS.into_iter().find(|operator| self.scan.starts(self.at, operator));
        match operator {
            Some("\n") => self.newline(),
            Some(operator) => {
                self.at += operator.len();
                self.at_command = true;
                self.found.push(Token::Operator(operator));
            }
            None => self.word_token(),
        }
    }

    fn after_for(&self) -> bool {
        matches!(self.found.last(), Some(Token::Word(word)) if word.text == "for")
    }

    fn comment(&mut self) {
        let begins =
            self.scan.starts(self.at, "#!") && (self.at == 0 || self.scan.at(self.at - 1) == Some('\n'));
        if begins && self.line > 1 {
            self.found.push(Token::Script);
            self.at_command = true;
        }
        self.at = self.scan.line_end(self.at);
    }

    fn newline(&mut self) {
        self.advance(self.at + 1);
        self.found.push(Token::Newline);
        self.at_command = true;
        for at in std::mem::take(&mut self.pending) {
            self.here_document(at);
        }
    }

    /// Reads the lines of a here-document up to its end.
    fn here_document(&mut self, at: usize) {
        let Some(Token::Redirect(redirect)) = self.found.get(at) else { return };
        let (tabs, raw) = (redirect.operator == "<<-", redirect.target.clone());
        let quoted = raw.contains(['\'', '"', '\\']);
        let end: String = raw.chars().filter(|c| !['\'', '"', '\\'].contains(c)).collect();
        let mut body = String::new();
        while self.at < self.scan.chars.len() {
            let line = self.scan.text(self.at, self.scan.line_end(self.at));
            self.advance(self.scan.line_end(self.at) + 1);
            let line = if tabs { line.trim_start_matches('\t') } else { &line };
            if line == end {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        if let Some(Token::Redirect(redirect)) = self.found.get_mut(at) {
            redirect.body = Some((body, quoted));
        }
    }

    fn redirect(&mut self) -> bool {
        let digits =
            (self.at..).take_while(|at| self.scan.at(*at).is_some_and(|c| c.is_ascii_digit())).count();
        let begin = self.at + digits;
        let Some(operator) = REDIRECTS.into_iter().find(|operator| self.scan.starts(begin, operator)) else {
            return false;
        };
        // `<(` and `>(` are words.
        if ["<", ">"].contains(&operator) && self.scan.at(begin + 1) == Some('(') && digits == 0 {
            return false;
        }
        self.at = begin + operator.len();
        self.skip_blanks();
        let target = self.word();
        if ["<<", "<<-"].contains(&operator) {
            self.pending.push(self.found.len());
        }
        self.found.push(Token::Redirect(Redirect { operator, target, body: None }));
        true
    }

    /// `(( … ))`
    fn arithmetic(&mut self) -> bool {
        let (mut at, mut depth) = (self.at + 2, 0_usize);
        while let Some(c) = self.scan.at(at) {
            if c == ')' && depth == 0 {
                break;
            }
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            at = self.scan.skip(at);
        }
        if !self.scan.starts(at, "))") {
            return false;
        }
        let line = self.line;
        let inner = self.scan.text(self.at + 2, at);
        self.advance(at + 2);
        self.found.push(Token::Arithmetic(inner, line));
        self.at_command = false;
        true
    }

    /// `[[ … ]]`
    fn test(&mut self) -> bool {
        let blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let mut at = self.at + 2;
        if !blank(self.scan.at(at)) {
            return false;
        }
        while at < self.scan.chars.len() {
            if self.scan.starts(at, "]]") && blank(self.scan.at(at - 1)) {
                let line = self.line;
                let inner = self.scan.text(self.at + 2, at);
                self.advance(at + 2);
                self.found.push(Token::Test(inner, line));
                self.at_command = false;
                return true;
            }
            at = self.scan.skip(at);
        }
        false
    }

    fn word_token(&mut self) {
        let (line, from) = (self.line, self.at);
        let text = self.word();
        let elements = (is_array_start(&text) && self.scan.at(self.at) == Some('(')).then(|| {
            self.at += 1;
            self.elements()
        });
        if self.at == from {
            // No character is left behind.
            self.at += 1;
        }
        let assigns = elements.is_some() || super::assignment(&text).is_some();
        self.at_command = assigns && self.at_command || BEFORE_COMMANDS.contains(&text.as_str());
        self.found.push(Token::Word(RawWord { text, elements, line }));
    }

    /// The elements of an array up to its bracket.
    fn elements(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            self.skip_blanks();
            match self.scan.at(self.at) {
                None => return all,
                Some(')') => {
                    self.at += 1;
                    return all;
                }
                Some('\n') => {
                    self.advance(self.at + 1);
                }
                Some('#') => self.at = self.scan.line_end(self.at),
                Some(_) => {
                    let from = self.at;
                    all.push(self.word());
                    if self.at == from {
                        // A character that is no part of a word.
                        self.at += 1;
                        all.pop();
                    }
                }
            }
        }
    }

    /// The word here, as written but for continued lines.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.scan.at(self.at) {
            let process = "<>".contains(c) && word.is_empty() && self.scan.at(self.at + 1) == Some('(');
            if process {
                self.scan.chars[self.at] = '$';
                let end = self.scan.skip(self.at);
                self.scan.chars[self.at] = c;
                let text = self.advance(end.max(self.at + 1));
                word.push_str(&text);
                continue;
            }
            if c.is_whitespace() || ";&|<>()".contains(c) {
                break;
            }
            if self.scan.starts(self.at, "\\\n") {
                self.advance(self.at + 2);
                continue;
            }
            let end = self.scan.skip(self.at);
            let text = self.advance(end);
            word.push_str(&text);
        }
        word
    }
}

/// `NAME=` or `NAME+=`.
fn is_array_start(text: &str) -> bool {
    text.ends_with('=') && super::assignment(text).is_some_and(|(_, _, value)| value.is_empty())
}
