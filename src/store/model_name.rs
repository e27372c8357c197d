//! The parts of a model's name as people and runtimes write it: owner, base, variant, format. The words are those of
//! `model_name.json` and of the formats' files.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

use super::gguf::ENDING;

/// The tables of `model_name.json`.
#[derive(Deserialize)]
struct NameTables {
    /// Containers and conversions that leave the architecture as it is.
    marks: Vec<String>,
    /// Trainings of one architecture.
    kinds: Vec<String>,
    /// Ends that state a format without figures.
    unpriced: Vec<String>,
    tag_format: String,
    /// Formats of checkpoints that a GGUF file keeps.
    kept: Vec<String>,
}

static TABLES: LazyLock<NameTables> =
    LazyLock::new(|| serde_json::from_str(include_str!("model_name.json")).expect("the tables are JSON"));

/// The folder of a repository in the hub's cache: `models--ORG--NAME`.
const CACHED: &str = "models--";
/// Addresses in front of a repository.
const HOSTS: [&str; 2] = ["hf.co/", "huggingface.co/"];
/// The owner of Ollama's own models.
const OLLAMA: &str = "library";

/// A name in parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModelName {
    pub owner: Option<String>,
    /// The base without its variant.
    pub core: String,
    /// The words of the base, as far as they were read.
    pub base: Vec<String>,
    /// Words of the training, and dates.
    pub variant: BTreeSet<String>,
    /// The end that states a format, in words.
    pub format: Option<String>,
    /// Whether that end is known, and its format has no figures.
    pub unpriced: bool,
    /// Whether it is a GGUF file or a tag of Ollama, which have a format if none is stated.
    pub packed: bool,
}

/// The format of a packed model without a stated one, whose checkpoint is in `own`; none where that is kept.
pub(super) fn packed_format(own: Option<&str>) -> Option<&'static str> {
    let tables = &*TABLES;
    let kept = own.is_some_and(|own| tables.kept.iter().any(|kept| kept == own));
    (!kept).then_some(&tables.tag_format)
}

impl ModelName {
    /// The parts of `text`; `suffixes` are the ends of names that state a format, in words joined by `-`.
    pub fn parse(text: &str, suffixes: &BTreeSet<String>) -> ModelName {
        let (owner, short) = owner_and_name(text);
        let tag = owner.as_deref().is_none_or(|owner| owner == OLLAMA) && short.contains(':');
        let file = short.strip_suffix(ENDING);
        let mut name = ModelName { owner, packed: tag || file.is_some(), ..ModelName::default() };
        let mut words = words(file.unwrap_or(short));
        while name.take_end(&mut words, suffixes) {}
        let kind = |(at, word): &(usize, String)| *at > 0 && TABLES.kinds.contains(word);
        let (kinds, rest): (Vec<_>, Vec<_>) = words.into_iter().enumerate().partition(kind);
        name.variant.extend(kinds.into_iter().map(|(_, word)| word));
        let mut base: Vec<String> = rest.into_iter().map(|(_, word)| word).collect();
        name.variant.extend(take_date(&mut base));
        name.core = core(&base);
        name.base = base;
        name
    }

    /// Takes the last words, where they are part of no base; whether they are.
    fn take_end(&mut self, words: &mut Vec<String>, suffixes: &BTreeSet<String>) -> bool {
        let length = words.len();
        if let [.., part, of, parts] = &words[..]
            && of == "of"
            && [part, parts].iter().all(|number| number.len() == 5 && digits(number))
        {
            words.truncate(length - 3);
            return true;
        }
        let Some(last) = words.last().filter(|_| length > 1) else { return false };
        let ends = (1..length).map(|from| words[from..].join("-"));
        let known = |end: &String| suffixes.contains(end) || TABLES.unpriced.contains(end);
        let Some(end) = ends.filter(|_| self.format.is_none()).find(known) else {
            // After a format like `3bit-mlx`.
            let mark = TABLES.marks.contains(last);
            self.packed |= mark && last == ENDING.trim_start_matches('.');
            words.truncate(length - usize::from(mark));
            return mark;
        };
        words.truncate(length - end.split('-').count());
        self.unpriced = !suffixes.contains(&end);
        self.format = Some(end);
        true
    }

    /// How much the variants of two names of one base differ: a date counts more than all words of the training.
    pub fn distance(&self, other: &ModelName) -> usize {
        let differing = self.variant.symmetric_difference(&other.variant);
        differing.map(|word| if digits(word) { TABLES.kinds.len() } else { 1 }).sum()
    }

    /// Whether `self` is dated and `other` is not of that date, though its base states no size: a product may have changed
    /// its size from one date to the next.
    pub fn redates(&self, other: &ModelName) -> bool {
        let dated = self.variant.iter().any(|word| digits(word) && !other.variant.contains(word));
        dated && !self.base.iter().any(|word| is_size(word))
    }
}

/// Whether the words after a short form of a name add no product: sizes, versions, trainings and dates.
pub(super) fn adds_no_product(rest: &str) -> bool {
    words(rest).iter().all(|word| {
        TABLES.kinds.contains(word) || TABLES.marks.contains(word) || digits(word) || is_size(word)
    })
}

/// `70b`, `a3b`, `8x7b`, `17b`, `128e`, `v0`: letters that measure next to a number.
fn is_size(word: &str) -> bool {
    let number = word.trim_start_matches(['a', 'e', 'v']).trim_end_matches(['b', 'm', 't', 'k', 'e']);
    number != word && number.split('x').all(digits)
}

fn digits(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

/// The owner, if one is named, and the name: of a path its last part, or the repository in the hub's cache.
fn owner_and_name(text: &str) -> (Option<String>, &str) {
    let text = text.trim().trim_end_matches(['/', '\\']);
    let text = HOSTS.iter().find_map(|host| text.strip_prefix(host)).unwrap_or(text);
    let parts: Vec<&str> = text.split(['/', '\\']).collect();
    let cached = parts.iter().find_map(|part| part.strip_prefix(CACHED)?.split_once("--"));
    if let Some((owner, name)) = cached.filter(|_| !text.ends_with(ENDING)) {
        return (Some(owner.to_lowercase()), name);
    }
    let name = parts.last().copied().unwrap_or(text);
    let owner = parts.len().checked_sub(2).and_then(|at| parts.get(at)).filter(|owner| !owner.is_empty());
    (owner.map(|owner| owner.to_lowercase()), name)
}

/// Runs of letters and digits, in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    runs.map(str::to_lowercase).collect()
}

/// The date at the end: `2507`, `0324`, `20250312`, or `08-2024`.
fn take_date(words: &mut Vec<String>) -> Option<String> {
    let year = |word: &String| word.len() == 4 && word.starts_with("20");
    let last = words.last().filter(|word| digits(word) && [4, 6, 8].contains(&word.len()))?.clone();
    words.pop();
    match words.last().filter(|month| year(&last) && month.len() == 2 && digits(month)).cloned() {
        Some(month) => {
            words.pop();
            Some(month + &last)
        }
        None => Some(last),
    }
}

/// Words joined without separators, but for one between two digits: `Qwen3-4B` is not `Qwen-34B`.
pub(super) fn core(words: &[String]) -> String {
    let mut joined = String::new();
    for word in words {
        let meet = [joined.chars().next_back(), word.chars().next()];
        if meet.iter().all(|c| c.is_some_and(|c| c.is_ascii_digit())) {
            joined.push('.');
        }
        joined.push_str(word);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ModelName {
        let ends =
            ["fp8", "fp8-dynamic", "q4-k-m", "ud-q4-k-xl", "awq", "awq-int4", "4bit", "quantized-w4a16"];
        ModelName::parse(text, &ends.map(str::to_owned).into())
    }

    #[test]
    fn a_name_is_read_from_its_end() {
        for (text, owner, core, variant, format, packed) in [
            ("Qwen/Qwen3.6-35B-A3B-FP8", Some("qwen"), "qwen3.6.35ba3b", "", Some("fp8"), false),
            ("unsloth/Qwen3-32B-GGUF:UD-Q4_K_XL", Some("unsloth"), "qwen3.32b", "", Some("ud-q4-k-xl"), true),
            ("llama3.3:70b-instruct-q4_K_M", None, "llama3.3.70b", "instruct", Some("q4-k-m"), true),
            ("gpt-oss:120b", None, "gptoss120b", "", None, true),
            (
                "/models/Llama-3.3-70B-Instruct-Q4_K_M-00001-of-00003.gguf",
                Some("models"),
                "llama3.3.70b",
                "instruct",
                Some("q4-k-m"),
                true,
            ),
            (
                "RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16",
                Some("redhatai"),
                "llama3.3.70b",
                "instruct",
                Some("quantized-w4a16"),
                false,
            ),
            ("Qwen3-30B-A3B-Thinking-2507", None, "qwen3.30ba3b", "2507 thinking", None, false),
            ("c4ai-command-r-plus-08-2024", None, "c4aicommandrplus", "082024", None, false),
            (
                "/root/.cache/hub/models--Qwen--Qwen3-8B/snapshots/0a1b",
                Some("qwen"),
                "qwen3.8b",
                "",
                None,
                false,
            ),
        ] {
            let name = parse(text);
            assert_eq!(name.owner.as_deref(), owner, "{text}");
            assert_eq!(name.core, core, "{text}");
            assert_eq!(name.variant.iter().cloned().collect::<Vec<_>>().join(" "), variant, "{text}");
            assert_eq!(name.format.as_deref(), format, "{text}");
            assert_eq!(name.packed, packed, "{text}");
        }
        assert!(parse("unsloth/Qwen3-32B-unsloth-bnb-4bit").unpriced);
        assert_ne!(parse("Qwen3-4B").core, parse("Qwen-34B").core);
    }

    #[test]
    fn a_short_form_leaves_out_sizes_and_trainings_alone() {
        for rest in ["70B-Instruct", "17B-16E-Instruct", "30B-A3B", "8x7B-v0.1", "Instruct-2407"] {
            assert!(adds_no_product(rest), "{rest}");
        }
        for rest in ["mini-instruct", "Air", "Coder-30B", "Lite", "VL-7B", "Flash", "Vision-Instruct"] {
            assert!(!adds_no_product(rest), "{rest}");
        }
    }
}
