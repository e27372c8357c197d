//! Whole-number arithmetic of a shell.

/// The variables that an expression reads and sets.
pub(super) trait Numbers {
    fn get(&mut self, name: &str) -> Option<i64>;
    fn set(&mut self, name: &str, value: i64);
}

/// Operators with two sides, by how strongly they bind.
const BINARY: [(&str, u8); 19] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<<", 8),
    (">>", 8),
    ("<=", 7),
    (">=", 7),
    ("**", 11),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

const ASSIGNING: [&str; 6] = ["+=", "-=", "*=", "/=", "%=", "="];

/// Brackets in brackets and the like: deeper ones are not known.
const DEEPEST: usize = 40;

/// The value of an expression; `None` where it is faulty or a variable is no known number.
pub(super) fn evaluate(text: &str, numbers: &mut dyn Numbers) -> Option<i64> {
    if text.trim().is_empty() {
        return Some(0);
    }
    let mut parser = Expression { rest: text, numbers, depth: 0 };
    let value = parser.comma()?;
    parser.rest.trim().is_empty().then_some(value)
}

struct Expression<'a> {
    rest: &'a str,
    numbers: &'a mut dyn Numbers,
    depth: usize,
}

impl<'a> Expression<'a> {
    fn take(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(text);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn comma(&mut self) -> Option<i64> {
        let mut value = self.choice()?;
        while self.take(",") {
            value = self.choice()?;
        }
        Some(value)
    }

    /// `condition ? a : b`
    fn choice(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let condition = self.binary(1)?;
        let value = if self.take("?") {
            let yes = self.choice()?;
            if !self.take(":") {
                return None;
            }
            let no = self.choice()?;
            if condition != 0 { yes } else { no }
        } else {
            condition
        };
        self.depth -= 1;
        Some(value)
    }

    fn binary(&mut self, least: u8) -> Option<i64> {
        let mut left = self.unary()?;
        loop {
            self.rest = self.rest.trim_start();
            let found = BINARY.into_iter().find(|(operator, _)| self.rest.starts_with(operator));
            let Some((operator, strength)) = found.filter(|(_, strength)| *strength >= least) else {
                return Some(left);
            };
            self.rest = &self.rest[operator.len()..];
            // Only powers bind to the right.
            let right = self.binary(if operator == "**" { strength } else { strength + 1 })?;
            left = apply(left, operator, right)?;
        }
    }

    fn unary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let value = self.operand();
        self.depth -= 1;
        value
    }

    fn operand(&mut self) -> Option<i64> {
        for (operator, change) in [("++", 1), ("--", -1)] {
            if self.take(operator) {
                let name = self.name()?;
                let value = self.numbers.get(name)?.checked_add(change)?;
                self.numbers.set(name, value);
                return Some(value);
            }
        }
        if self.take("-") {
            return self.unary()?.checked_neg();
        }
        if self.take("+") {
            return self.unary();
        }
        if self.take("!") {
            return Some(i64::from(self.unary()? == 0));
        }
        if self.take("~") {
            return Some(!self.unary()?);
        }
        if self.take("(") {
            let value = self.comma()?;
            return self.take(")").then_some(value);
        }
        match self.name() {
            Some(name) => self.variable(name),
            None => self.digits(),
        }
    }

    fn name(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let starts = self.rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let (name, rest) = self.rest.split_at(end);
        self.rest = if starts { rest } else { self.rest };
        starts.then_some(name)
    }

    fn digits(&mut self) -> Option<i64> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        if let Some(hexadecimal) = digits.strip_prefix("0x") {
            return i64::from_str_radix(hexadecimal, 16).ok();
        }
        match digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
            Some(octal) => i64::from_str_radix(octal, 8).ok(),
            None => digits.parse().ok(),
        }
    }

    fn variable(&mut self, name: &str) -> Option<i64> {
        for (operator, change) in [("++", 1), ("--", -1)] {
            if self.take(operator) {
                let value = self.numbers.get(name)?;
                self.numbers.set(name, value.checked_add(change)?);
                return Some(value);
            }
        }
        let trimmed = self.rest.trim_start();
        let assigning = ASSIGNING.into_iter().find(|operator| trimmed.starts_with(operator));
        let Some(operator) = assigning.filter(|_| !trimmed.starts_with("==")) else {
            return self.numbers.get(name);
        };
        self.rest = &trimmed[operator.len()..];
        let right = self.choice()?;
        let value = match operator.strip_suffix('=').filter(|operator| !operator.is_empty()) {
            Some(operator) => apply(self.numbers.get(name)?, operator, right)?,
            None => right,
        };
        self.numbers.set(name, value);
        Some(value)
    }
}

fn apply(left: i64, operator: &str, right: i64) -> Option<i64> {
    let truth = |holds: bool| Some(i64::from(holds));
    match operator {
        "||" => truth(left != 0 || right != 0),
        "&&" => truth(left != 0 && right != 0),
        "==" => truth(left == right),
        "!=" => truth(left != right),
        "<=" => truth(left <= right),
        ">=" => truth(left >= right),
        "<" => truth(left < right),
        ">" => truth(left > right),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&" => Some(left & right),
        "<<" => u32::try_from(right).ok().and_then(|right| left.checked_shl(right)),
        ">>" => u32::try_from(right).ok().and_then(|right| left.checked_shr(right)),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "**" => u32::try_from(right).ok().and_then(|right| left.checked_pow(right)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    impl Numbers for BTreeMap<String, i64> {
        fn get(&mut self, name: &str) -> Option<i64> {
            BTreeMap::get(self, name).copied()
        }

        fn set(&mut self, name: &str, value: i64) {
            self.insert(name.to_owned(), value);
        }
    }

    #[test]
    fn whole_numbers_are_those_of_a_shell() {
        let mut known = BTreeMap::from([("A".to_owned(), 7_i64)]);
        for (text, value) in [
            ("1 + 2 * 3", Some(7)),
            ("(A+1024+64+63)/64*64", Some(1152)),
            ("A > 3 ? A : 3", Some(7)),
            ("2**3**2", Some(512)),
            ("-A % 4", Some(-3)),
            ("B", None),
            ("1 / 0", None),
            ("A == 7 && !(A < 7)", Some(1)),
            ("A++ + A", Some(15)),
            ("", Some(0)),
            ("9223372036854775807 + 1", None),
            ("(((", None),
        ] {
            assert_eq!(evaluate(text, &mut known), value, "{text}");
        }
    }
}
