//! The names nearest to one that is not known.

/// Maximum length in bytes of a text that is compared with known names.
const LONGEST_NAME: usize = 200;
/// Likeness above which a name may have been meant.
const NEAR: f64 = 0.75;
/// Words this similar are one word, misspelt.
const SAME: f64 = 0.87;
/// Names whose likeness is below this fraction of that of the nearest are not suggested next to it.
const FAR: f64 = 0.9;

/// A text with its letters counted, by which most others are known to differ without a comparison.
struct CountedText<'a> {
    text: &'a str,
    length: u32,
    /// Letters by the end of their code point, as bits: those that occur, and those that occur twice.
    letters: [u32; 2],
    /// Further occurrences.
    more: u32,
}

impl<'a> CountedText<'a> {
    fn of(text: &'a str) -> CountedText<'a> {
        let mut counted = CountedText { text, length: 0, letters: [0; 2], more: 0 };
        for c in text.chars() {
            counted.length += 1;
            let letter = 1 << (c as u32 % 32);
            match counted.letters.iter_mut().find(|seen| **seen & letter == 0) {
                Some(unseen) => *unseen |= letter,
                None => counted.more += 1,
            }
        }
        counted
    }

    /// The most letters that both may have.
    fn most_common(&self, other: &CountedText) -> u32 {
        let [once, twice] = [0, 1].map(|at| (self.letters[at] & other.letters[at]).count_ones());
        once + twice + self.more.min(other.more)
    }

    /// The Jaro-Winkler similarity, where it may be `least` or more; else 0. Matches are letters that both have.
    fn similarity(&self, other: &CountedText, least: f64) -> f64 {
        let common = f64::from(self.most_common(other));
        let share = |length: u32| common / f64::from(length.max(1));
        let most = (share(self.length) + share(other.length) + 1.0) / 3.0;
        let start = self.text.chars().zip(other.text.chars()).take(4).take_while(|(a, b)| a == b).count();
        let most = most + 0.1 * start as f64 * (1.0 - most);
        if most < least && self.text != other.text {
            0.0
        } else {
            strsim::jaro_winkler(self.text, other.text)
        }
    }
}

/// Words of a name: runs of letters and digits, or with `split_digits` runs of either.
fn words(name: &str, split_digits: bool) -> Vec<CountedText<'_>> {
    let mut words = Vec::new();
    let (mut begun, mut last) = (None, None);
    let joins = |last: char, c: char| !(split_digits && last.is_numeric() != c.is_numeric());
    for (at, c) in name.char_indices() {
        let ends = !c.is_alphanumeric() || last.is_some_and(|last| !joins(last, c));
        if let Some(start) = begun.filter(|_| ends) {
            words.push(CountedText::of(&name[start..at]));
            begun = None;
        }
        if c.is_alphanumeric() {
            begun = begun.or(Some(at));
        }
        last = Some(c).filter(|c| c.is_alphanumeric());
    }
    words.extend(begun.map(|start| CountedText::of(&name[start..])));
    words
}

/// The words of a name, in both ways.
fn all_words(name: &str) -> [Vec<CountedText<'_>>; 2] {
    [false, true].map(|split_digits| words(name, split_digits))
}

/// Share of the words of a name that another has too, from 0 to 1: longer and earlier words count more.
fn shared_words(wrong: &[Vec<CountedText>; 2], name: &[Vec<CountedText>; 2]) -> f64 {
    let share = |(wanted, had): (&Vec<CountedText>, &Vec<CountedText>)| {
        let (mut shared, mut all) = (0.0, 0.0);
        for (at, word) in wanted.iter().enumerate() {
            let weight = f64::from(word.length) / (at + 1) as f64;
            let best = had.iter().map(|other| word.similarity(other, SAME)).fold(0.0, f64::max);
            all += weight;
            shared += if best >= SAME { weight * best } else { 0.0 };
        }
        if all > 0.0 { shared / all } else { 0.0 }
    };
    wrong.iter().zip(name).map(share).fold(0.0, f64::max)
}

/// The names nearest to `wrong`, best first; at most three, and only near ones.
pub fn near<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Longer texts are not misspelt names, and the comparison would be slow.
    if wrong.len() > LONGEST_NAME {
        return Vec::new();
    }
    let wrong = wrong.to_lowercase();
    let wrong_short = wrong.rsplit('/').next().unwrap_or(&wrong);
    let whole = CountedText::of(&wrong);
    // An unknown organisation hides nothing of the model's name.
    let mut wanted = vec![all_words(&wrong)];
    wanted.extend((wrong_short != wrong).then(|| all_words(wrong_short)));
    let mut scored: Vec<(f64, &str)> = known
        .filter_map(|name| {
            let lower = name.to_lowercase();
            // The organisation in front is often left out.
            let short = lower.rsplit('/').next().unwrap_or(&lower);
            let had = all_words(short);
            let shared = wanted.iter().map(|wanted| shared_words(wanted, &had)).fold(0.0, f64::max);
            let within = if lower.contains(&wrong) || wrong.contains(&lower) { 0.5 } else { 0.0 };
            let least = if shared > NEAR { 0.0 } else { NEAR - within };
            let similar = [&lower, short].map(|name| whole.similarity(&CountedText::of(name), least));
            let alike = similar[0].max(similar[1]) + within;
            (alike > NEAR || shared > NEAR).then_some((alike + shared, name))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|(_, name)| *name);
    // Next to a near name, a far one was not meant.
    let least = scored.first().map_or(0.0, |(best, _)| FAR * best);
    scored.retain(|(score, _)| *score >= least);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// `did you mean a, b or c?`, or where to find the list.
pub fn suggest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>, list: &str) -> String {
    match near(wrong, known)[..] {
        [] => format!("`{list}` lists the known names"),
        [one] => format!("did you mean `{one}`?"),
        [one, two] => format!("did you mean `{one}` or `{two}`?"),
        [one, two, three, ..] => format!("did you mean `{one}`, `{two}` or `{three}`?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        let of = |split_digits| {
            words("qwen2.5-vl_7b  é1", split_digits).iter().map(|word| word.text).collect::<Vec<_>>()
        };
        assert_eq!(of(false), ["qwen2", "5", "vl", "7b", "é1"]);
        assert_eq!(of(true), ["qwen", "2", "5", "vl", "7", "b", "é", "1"]);
        assert!(words("--", true).is_empty());
    }

    proptest! {
        /// What is left out of a comparison is below the least likeness.
        #[test]
        fn no_near_text_is_left_out(one in "[a-cé1-3/-]{0,12}", other in "[a-cé1-3/-]{0,12}", least in 0.0..1.0) {
            let found = CountedText::of(&one).similarity(&CountedText::of(&other), least);
            let whole = strsim::jaro_winkler(&one, &other);
            prop_assert!(found == whole || found == 0.0 && whole < least + 1e-12, "{found} {whole}");
        }
    }
}
