//! Text of which parts may not be known: the value of a variable, or a word.

/// A part of a text. What is not known is kept as the script writes it, e.g. `$MODEL`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WordPiece {
    Known(String),
    /// A variable that nothing sets: a shell takes it as empty.
    Unset(String),
    /// The output of a program, or a result that depends on it.
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ShellText(Vec<WordPiece>);

impl ShellText {
    pub(super) fn known(text: impl Into<String>) -> ShellText {
        let mut all = ShellText::default();
        all.push_str(&text.into());
        all
    }

    pub(super) fn of(piece: WordPiece) -> ShellText {
        ShellText(vec![piece])
    }

    pub(super) fn pieces(&self) -> &[WordPiece] {
        &self.0
    }

    pub(super) fn push_str(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(WordPiece::Known(last)) => last.push_str(text),
            _ => self.0.push(WordPiece::Known(text.to_owned())),
        }
    }

    pub(super) fn push(&mut self, piece: WordPiece) {
        match piece {
            WordPiece::Known(text) => self.push_str(&text),
            other => self.0.push(other),
        }
    }

    pub(super) fn extend(&mut self, other: ShellText) {
        other.0.into_iter().for_each(|piece| self.push(piece));
    }

    /// The text as people read it, with what is not known as the script writes it.
    pub(super) fn shown(&self) -> String {
        let part = |piece: &WordPiece| match piece {
            WordPiece::Known(text) | WordPiece::Unset(text) | WordPiece::Unknown(text) => text.clone(),
        };
        self.0.iter().map(part).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        let part = |piece: &WordPiece| match piece {
            WordPiece::Known(text) | WordPiece::Unset(text) | WordPiece::Unknown(text) => text.len(),
        };
        self.0.iter().map(part).sum()
    }

    /// The text, where all of it is known.
    pub(super) fn value(&self) -> Option<String> {
        let mut all = String::new();
        for piece in &self.0 {
            let WordPiece::Known(text) = piece else { return None };
            all.push_str(text);
        }
        Some(all)
    }

    /// Whether a shell that sets no more than the script sees nothing here.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, WordPiece::Unset(_)))
    }

    /// The text with variables that nothing sets as empty.
    pub(super) fn without_unset(self) -> ShellText {
        let mut all = ShellText::default();
        self.0
            .into_iter()
            .filter(|piece| !matches!(piece, WordPiece::Unset(_)))
            .for_each(|piece| all.push(piece));
        all
    }

    /// Several texts with blanks between them.
    pub(super) fn joined(texts: Vec<ShellText>, between: &str) -> ShellText {
        let mut all = ShellText::default();
        for (at, text) in texts.into_iter().enumerate() {
            if at > 0 {
                all.push_str(between);
            }
            all.extend(text);
        }
        all
    }
}
