//! Prompt tokens that requests share, and those that were in the cache, as rows state them.

use super::measured::Record;
use super::replayed::TableLayout;
use crate::spec::error::Error;
use crate::spec::limits::{ACCEPTANCE, PREFIX, PREFIX_GROUPS};

/// Columns with the share of prompt tokens that a cache had.
const SHARES: [&str; 2] = ["hit_rate", "cache_hit"];

/// Prefixes of the prompts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedPrefix {
    /// Tokens of each.
    pub tokens: Option<u64>,
    /// How many different ones there are, where there are several.
    pub groups: Option<u64>,
}

impl Record<'_> {
    /// Prompt tokens of a request that the cache had, by the share that the row states. A share of sessions and points is
    /// predicted, so that it is no input there.
    pub(super) fn tokens_in_cache(&self, layout: TableLayout, isl: Option<u64>) -> Result<u64, Error> {
        if layout != TableLayout::Wide {
            return Ok(0);
        }
        let share = SHARES.into_iter().find(|key| !self.text(key).is_empty());
        let share = share.map(|key| self.number(key, &ACCEPTANCE)).transpose()?.flatten().unwrap_or(0.0);
        Ok((share * isl.unwrap_or(0) as f64) as u64)
    }

    /// Why the prompt tokens that a cache had are not known, of a closed loop.
    pub(super) fn unknown_share(&self) -> Option<String> {
        let prefix = self.text("prefix_len");
        let stated = [&SHARES[..], &["rate"]].concat().iter().any(|key| !self.text(key).is_empty());
        let some = prefix.parse::<f64>().is_ok_and(|tokens| tokens > 0.0);
        (some && !stated).then(|| {
            format!("prefix_len: {prefix}, without hit_rate, so the share that a cache had is unknown")
        })
    }

    /// The prefixes of a run under a rate: as a column states them, else as the workload does in words, of prompts of `isl`
    /// tokens: `150 prefixes x 5 prompts, 6000 shared + 500 question`.
    pub(super) fn shared_prefix(&self, isl: Option<u64>) -> Result<SharedPrefix, Error> {
        let stated = self.count("prefix_len", &PREFIX)?;
        if stated.is_some() || !self.text("workload").contains("prefix") {
            return Ok(SharedPrefix { tokens: stated, groups: None });
        }
        let workload = self.text("workload");
        let groups = workload.split_once(" x ").and_then(|(before, _)| last_number(before));
        let question = workload.split_once("question").and_then(|(before, _)| last_number(before));
        let whole = workload.split_once(" x ").and_then(|(_, after)| thousands(after));
        let tokens = match question {
            Some(question) => isl.and_then(|isl| isl.checked_sub(question)),
            None => whole.filter(|tokens| isl.is_some_and(|isl| *tokens <= isl)),
        };
        let groups = groups.filter(|groups| PREFIX_GROUPS.holds(*groups as f64));
        Ok(match (tokens.filter(|tokens| *tokens > 0), groups) {
            (Some(tokens), Some(groups)) => SharedPrefix { tokens: Some(tokens), groups: Some(groups) },
            _ => SharedPrefix::default(),
        })
    }
}

/// The last whole number of a text.
fn last_number(text: &str) -> Option<u64> {
    let mut words = text.rsplit(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
    words.next()?.parse().ok()
}

/// A number of tokens that a text begins with, in thousands of 1,024: `48K`.
fn thousands(text: &str) -> Option<u64> {
    let (number, _) = text.split_once('K')?;
    number.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_states_its_prefixes_in_words() {
        let of = |workload: &str, isl| {
            let SharedPrefix { tokens, groups } =
                Record([("workload", workload)].into_iter().collect()).shared_prefix(Some(isl)).unwrap();
            (tokens, groups)
        };
        for (workload, isl, expected) in [
            (
                "shared prefix: 150 prefixes x 5 prompts, 6000-token shared prefix + 1200-token question",
                7200,
                (Some(6000), Some(150)),
            ),
            ("shared prefix: 150 x 5, 6000 shared + 500 question, 500 output", 6500, (Some(6000), Some(150))),
            ("128 shared prefixes x 48K tokens + 256 question, 64 output", 49408, (Some(49152), Some(128))),
            ("hot set: 64 prefixes x 48K, 512 output nominal", 49152, (Some(49152), Some(64))),
            ("random 1024/1024, no prefix", 1050, (None, None)),
            ("ShareGPT", 300, (None, None)),
        ] {
            assert_eq!(of(workload, isl), expected, "{workload}");
        }
        let both = [("workload", "150 prefixes x 48K"), ("prefix_len", "64")].into_iter().collect();
        let stated = SharedPrefix { tokens: Some(64), groups: None };
        assert_eq!(Record(both).shared_prefix(Some(99)).unwrap(), stated);
    }

    #[test]
    fn a_stated_share_of_a_prompt_is_in_the_cache() {
        let cells = |share: &'static str| {
            let cells = [("prefix_len", "2000"), ("hit_rate", share)];
            Record(cells.into_iter().collect())
        };
        let tokens = |share| cells(share).tokens_in_cache(TableLayout::Wide, Some(3000)).unwrap();
        assert_eq!((tokens("0.5"), tokens("0"), tokens("")), (1500, 0, 0));
        assert!(cells("").unknown_share().unwrap().contains("without hit_rate"));
        assert_eq!(cells("0").unknown_share(), None);
    }
}
