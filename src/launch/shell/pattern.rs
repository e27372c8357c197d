//! Patterns of a shell: `*`, `?`, `[a-z]`.

/// Whether the whole text has the form of the pattern.
pub(super) fn matches(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    fits(&text, &pattern)
}

/// Whether the pattern is a plain text.
pub(super) fn is_plain(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '[', '\\'])
}

/// `${NAME%pattern}` and the like: the value without a beginning or end of the pattern's form, the shortest or longest.
pub(super) fn removed(value: &str, pattern: &str, from_start: bool, longest: bool) -> String {
    let chars: Vec<char> = value.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    let sizes = 0..=chars.len();
    let fits = |size: &usize| match from_start {
        true => fits(&chars[..*size], &pattern),
        false => fits(&chars[chars.len() - size..], &pattern),
    };
    let size = if longest { sizes.rev().find(fits) } else { sizes.clone().find(fits) };
    let size = size.unwrap_or(0);
    let kept = if from_start { &chars[size..] } else { &chars[..chars.len() - size] };
    kept.iter().collect()
}

/// Matches with one place to return to, the last `*`: further ones need no others.
fn fits(text: &[char], pattern: &[char]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if of < pattern.len() && pattern[of] == '*' {
            star = Some((at, of + 1));
            of += 1;
            continue;
        }
        if at == text.len() && of == pattern.len() {
            return true;
        }
        let step = text.get(at).and_then(|c| one(*c, &pattern[of..]));
        match (step, star) {
            (Some(length), _) => {
                at += 1;
                of += length;
            }
            (None, Some((from, after))) if from < text.len() => {
                star = Some((from + 1, after));
                (at, of) = (from + 1, after);
            }
            (None, _) => return false,
        }
    }
}

/// The characters of the pattern that one character has the form of.
fn one(c: char, pattern: &[char]) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', escaped, ..] => (*escaped == c).then_some(2),
        ['[', rest @ ..] => {
            let close = rest.iter().skip(1).position(|c| *c == ']').map(|at| at + 1);
            let Some(close) = close else { return (c == '[').then_some(1) };
            let (not, set) = match &rest[..close] {
                ['!' | '^', set @ ..] => (true, set),
                set => (false, set),
            };
            let range = |at: usize| set.get(at + 1) == Some(&'-') && set.get(at + 2).is_some();
            let mut found = false;
            let mut at = 0;
            while at < set.len() {
                found |= if range(at) { (set[at]..=set[at + 2]).contains(&c) } else { set[at] == c };
                at += if range(at) { 3 } else { 1 };
            }
            (found != not).then_some(close + 2)
        }
        [plain, ..] => (*plain == c).then_some(1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (text, pattern, fit) in [
            ("abc", "a*", true),
            ("abc", "*b*c", true),
            ("abc", "a?d", false),
            ("a1", "a[0-9]", true),
            ("ax", "a[!0-9]", true),
            ("", "*", true),
            ("", "", true),
            ("a*c", "a\\*c", true),
            ("aXbXc", "*X*X?", true),
            ("7x", "*[!0-9]*", true),
            ("77", "*[!0-9]*", false),
        ] {
            assert_eq!(matches(text, pattern), fit, "{text} {pattern}");
        }
        assert_eq!(removed("a/b/c.sh", "*/", true, true), "c.sh");
        assert_eq!(removed("a/b/c.sh", "*/", true, false), "b/c.sh");
        assert_eq!(removed("a/b/c.sh", "/*", false, true), "a");
        assert_eq!(removed("a/b/c.sh", ".sh", false, false), "a/b/c");
    }
}
