//! Whole-number expressions over the keys of a file, for descriptions of encoders: `width / heads`, `i % 2 < 1`.
//!
//! Division rounds down. A comparison is 1 or 0.

use std::collections::BTreeMap;

use crate::spec::error::Error;

/// Named values of a description; a list has one number for each layer.
#[derive(Clone, Debug, PartialEq)]
pub enum Named {
    /// A number, or a switch as 1 or 0.
    Number(i128),
    /// A list of numbers.
    List(Vec<i128>),
}

/// The values by name.
pub type NamedValues = BTreeMap<String, Named>;

/// The value of `text`.
///
/// # Errors
/// A name without a value, a division by zero, a number out of range.
pub fn evaluate(text: &str, values: &NamedValues) -> Result<i128, Error> {
    let mut parser = ExpressionParser { text, rest: text, values };
    let value = parser.sum_or_comparison()?;
    match parser.rest.trim() {
        "" => Ok(value),
        rest => Err(parser.fault(&format!("{rest} at its end"))),
    }
}

struct ExpressionParser<'t> {
    text: &'t str,
    rest: &'t str,
    values: &'t NamedValues,
}

impl<'t> ExpressionParser<'t> {
    fn fault(&self, found: &str) -> Error {
        let expected = format!("a whole number for {}", self.text);
        Error::new("", found.to_owned(), expected, "copy the widths from the model's config.json")
    }

    /// The next operator, if it is one of `of`.
    fn operator(&mut self, of: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let found = rest.chars().next().filter(|next| of.contains(next))?;
        self.rest = &rest[found.len_utf8()..];
        Some(found)
    }

    fn sum_or_comparison(&mut self) -> Result<i128, Error> {
        let left = self.sum()?;
        let Some(operator) = self.operator(&['<', '>', '=']) else { return Ok(left) };
        let right = self.sum()?;
        Ok(i128::from(match operator {
            '<' => left < right,
            '>' => left > right,
            _ => left == right,
        }))
    }

    fn sum(&mut self) -> Result<i128, Error> {
        let mut value = self.product()?;
        while let Some(operator) = self.operator(&['+', '-']) {
            let other = self.product()?;
            let sum = if operator == '+' { value.checked_add(other) } else { value.checked_sub(other) };
            value = sum.ok_or_else(|| self.fault("a sum out of range"))?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, Error> {
        let mut value = self.power()?;
        while let Some(operator) = self.operator(&['*', '/', '%']) {
            let other = self.power()?;
            let product = match operator {
                '*' => value.checked_mul(other),
                '/' => value.checked_div_euclid(other),
                _ => value.checked_rem_euclid(other),
            };
            value = product.ok_or_else(|| self.fault("a division by zero, or a product out of range"))?;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<i128, Error> {
        let base = self.term()?;
        if self.operator(&['^']).is_none() {
            return Ok(base);
        }
        let exponent = u32::try_from(self.term()?).ok();
        let power = exponent.and_then(|exponent| base.checked_pow(exponent));
        power.ok_or_else(|| self.fault("a power out of range"))
    }

    fn term(&mut self) -> Result<i128, Error> {
        if self.operator(&['(']).is_some() {
            let value = self.sum_or_comparison()?;
            return match self.operator(&[')']) {
                Some(_) => Ok(value),
                None => Err(self.fault("no closing parenthesis")),
            };
        }
        let word = self.word();
        if let Ok(number) = word.parse() {
            return Ok(number);
        }
        let named = self.values.get(word);
        match named {
            Some(Named::Number(number)) => Ok(*number),
            Some(Named::List(numbers)) => self.of_list(numbers),
            None => Err(self.fault(&format!("no value of {word}"))),
        }
    }

    /// The length of a list, its entry in brackets, or whether it contains the number after `~`.
    fn of_list(&mut self, numbers: &[i128]) -> Result<i128, Error> {
        if self.operator(&['~']).is_some() {
            let number = self.term()?;
            return Ok(i128::from(numbers.contains(&number)));
        }
        if self.operator(&['[']).is_none() {
            return Ok(numbers.len() as i128);
        }
        let at = self.sum_or_comparison()?;
        if self.operator(&[']']).is_none() {
            return Err(self.fault("no closing bracket"));
        }
        let entry = usize::try_from(at).ok().and_then(|at| numbers.get(at));
        entry.copied().ok_or_else(|| self.fault(&format!("a list of {}", numbers.len())))
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_products_lists_and_comparisons() {
        let list = Named::List(vec![5, 7]);
        let values = NamedValues::from([("a".to_owned(), Named::Number(12)), ("list".to_owned(), list)]);
        for (text, value) in [
            ("a", 12),
            ("a + 2 * 3", 18),
            ("(a + 2) / 3", 4),
            ("a / 2 ^ (1 + 1)", 3),
            ("a % 5 < 3", 1),
            ("a = 11", 0),
            ("list", 2),
            ("list[1] - list[a / 13]", 2),
            ("list~7 + list~6", 1),
        ] {
            assert_eq!(evaluate(text, &values), Ok(value), "{text}");
        }
        for text in ["a / 0", "b", "a +", "(a", "list[2]", "a b", "2 ^ (0 - 1)", "2 ^ 200", ""] {
            assert!(evaluate(text, &values).is_err(), "{text}");
        }
    }
}
