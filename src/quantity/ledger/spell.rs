//! Formats the expression of an entry as text.

use super::{Id, Ledger, LedgerEntry, Op};

/// Name of an entry inside another entry's formula; `None` writes its expression out.
pub(super) type Spell<'a> = &'a dyn Fn(Id, &LedgerEntry) -> Option<String>;

pub(super) fn name(entry: &LedgerEntry) -> Option<&str> {
    match (&entry.op, entry.formula) {
        (_, Some(formula)) => Some(formula.symbol),
        (Op::Input(datum), None) => Some(&datum.symbol),
        _ => None,
    }
}

/// The name as seen from `path`: `time` on the same path, `q_proj.time` from another.
pub(super) fn name_from(path: &str, entry: &LedgerEntry) -> Option<String> {
    let name = name(entry)?;
    Some(match entry.path.rsplit('/').next() {
        Some(place) if !place.is_empty() && place != name && !path.starts_with(&*entry.path) => {
            format!("{place}.{name}")
        }
        _ => name.to_string(),
    })
}

impl Ledger {
    /// The expression of `id`. `inside` allows `id` itself to be written as its name.
    pub(super) fn render(&self, id: Id, spell: Spell, inside: bool) -> String {
        self.render_at(id, spell, inside, 0)
    }

    /// `floor` is the required precedence: 1 inside a sum, 2 inside a product.
    fn render_at(&self, id: Id, spell: Spell, inside: bool, floor: u8) -> String {
        let entry = self.entry(id);
        if inside && let Some(name) = spell(id, &entry) {
            return name;
        }
        let go = |id, floor| self.render_at(id, spell, true, floor);
        let call = |function: &str, a, b| (3, format!("{function}({}, {})", go(a, 0), go(b, 0)));
        let (precedence, text) = match &entry.op {
            Op::Input(datum) => (3, datum.value.to_string()),
            Op::Literal => (3, entry.value.to_string()),
            Op::Add(a, b) => (1, format!("{} + {}", go(*a, 1), go(*b, 1))),
            Op::Sub(a, b) => (1, format!("{} - {}", go(*a, 1), go(*b, 2))),
            Op::Mul(a, b) => (2, format!("{} × {}", go(*a, 2), go(*b, 2))),
            Op::Div(a, b) => (2, format!("{} / {}", go(*a, 2), go(*b, 3))),
            Op::Max(a, b) => call("max", *a, *b),
            Op::Min(a, b) => call("min", *a, *b),
            Op::Smax(a, b) => call("smax", *a, *b),
            Op::Pow(a, b) => (3, format!("{}^{}", go(*a, 3), go(*b, 3))),
            Op::Ceil(a) => (3, format!("⌈{}⌉", go(*a, 0))),
            Op::Ln(a) => (3, format!("ln({})", go(*a, 0))),
            Op::Same(a) => return self.render_at(*a, spell, true, floor),
        };
        if precedence < floor { format!("({text})") } else { text }
    }
}
