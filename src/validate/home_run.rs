//! Rows of runs on home machines: named cards, a processor and its memory, and the part of the model that is on the host.

use super::measured::Record;
use crate::spec::error::Error;
use crate::spec::limits::DEVICES;

/// Columns of home machines that are read, next to those of all tables.
pub(super) const READ_OF_HOME: &str =
    "quant gpu gpu_count cpu ram ram_gbps_stated offload prompt_tokens gen_tokens pp_tok_s tg_tok_s";

/// The machine of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct HomeRun {
    /// Its cards as published; empty without one.
    pub gpu: String,
    pub gpus: u64,
    pub cpu: String,
    /// Its host memory as published: `64GB 2x32 DDR5-5600`.
    pub ram: String,
    /// Flags or words on the part that is on the host.
    pub offload: String,
}

/// Cells of what is not known.
const UNKNOWN: [&str; 2] = ["not stated", "unified"];

impl Record<'_> {
    pub(super) fn home_run(&self) -> Result<HomeRun, Error> {
        let gpu = self.text("gpu");
        let known = |key: &str| {
            let text = self.text(key);
            if UNKNOWN.iter().any(|word| text.starts_with(word)) { String::new() } else { text.to_owned() }
        };
        let gpus = self.whole("gpu_count", &DEVICES)?.unwrap_or(u64::from(!gpu.is_empty()));
        Ok(HomeRun {
            gpu: gpu.to_owned(),
            gpus,
            cpu: known("cpu"),
            ram: known("ram"),
            offload: self.text("offload").to_owned(),
        })
    }
}

impl HomeRun {
    /// The cards by name, each once for every card: `RTX 5090 32GB + RTX 3090` has two. `None` where it is not known how
    /// many of each there are.
    pub fn cards(&self) -> Option<Vec<String>> {
        let mut cards = Vec::new();
        for part in self.gpu.split(" + ").map(str::trim).filter(|part| !part.is_empty()) {
            let (count, name) = counted(part);
            cards.extend(std::iter::repeat_n(card(name), count));
        }
        match cards.len() as u64 {
            number if number == self.gpus => Some(cards),
            1 => Some(vec![cards[0].clone(); self.gpus as usize]),
            _ => None,
        }
    }

    /// Type, speed and channels of the host memory, where all are known: `ddr5-5600x2`.
    pub fn memory(&self) -> Option<String> {
        let words = || self.ram.split([' ', ',', '(', ')']).filter(|word| !word.is_empty());
        let lower = |word: &str| word.to_lowercase();
        let kind = words().map(lower).find(|word| word.starts_with("ddr") && word.contains('-'))?;
        let speed = kind.split_once('-')?.1;
        let channels = words().map(lower).find_map(|word| {
            let channels = word.strip_suffix("ch").or(word.strip_suffix("-channel"));
            // Modules of a number of sizes (`8x`) are one a channel on servers.
            channels.or(word.strip_suffix('x')).and_then(|number| number.parse::<u64>().ok())
        });
        let known = speed.parse::<u64>().is_ok() && (1..=24).contains(&channels?);
        known.then(|| format!("{kind}x{}", channels.unwrap_or(1)))
    }

    /// Bytes of the host memory, as a size, where it begins with one: `64GB`.
    pub fn memory_size(&self) -> Option<String> {
        let first = self.ram.split([' ', ',']).next()?.trim_start_matches('~');
        let digits = first.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = first.get(digits.len()..)?;
        let sized = digits.parse::<f64>().is_ok() && ["GB", "TB"].contains(&unit);
        sized.then(|| first.to_owned())
    }
}

/// The number before a name: `2x RTX 3090`.
fn counted(text: &str) -> (usize, &str) {
    let number = text.split_once("x ").and_then(|(count, name)| Some((count.parse().ok()?, name)));
    number.filter(|(count, _)| (1..=64).contains(count)).unwrap_or((1, text))
}

/// The name of a card without what its seller adds: `RTX 3090 24GB (220W)` is `rtx-3090`.
fn card(name: &str) -> String {
    let name = name.split(" (").next().unwrap_or(name);
    name.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(gpu: &str, gpus: u64, ram: &str) -> HomeRun {
        let text = str::to_owned;
        HomeRun { gpu: text(gpu), gpus, cpu: text(""), ram: text(ram), offload: text("") }
    }

    #[test]
    fn cards_are_counted() {
        let cards = |gpu, gpus| run(gpu, gpus, "").cards();
        assert_eq!(cards("RTX 3090 24GB (220W)", 2).unwrap(), ["rtx-3090-24gb", "rtx-3090-24gb"]);
        assert_eq!(cards("RTX 5090 + RTX 4090", 2).unwrap(), ["rtx-5090", "rtx-4090"]);
        assert_eq!(cards("1x RTX 5090 + 2x RTX 3090", 3).unwrap(), ["rtx-5090", "rtx-3090", "rtx-3090"]);
        assert_eq!(cards("RTX 5090 + RTX 4090", 4), None);
        assert_eq!(cards("", 0).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn host_memory_is_read_where_it_is_whole() {
        for (ram, memory, size) in [
            ("256GB 8ch DDR5-4800", Some("ddr5-4800x8"), Some("256GB")),
            ("8x DDR5-4800", Some("ddr5-4800x8"), None),
            ("64GB DDR4-2400 2ch (4x16GB)", Some("ddr4-2400x2"), Some("64GB")),
            ("62GB quad-channel DDR4", None, Some("62GB")),
            ("DDR5 2ch (not stated)", None, None),
            ("", None, None),
        ] {
            let run = run("", 0, ram);
            assert_eq!((run.memory().as_deref(), run.memory_size().as_deref()), (memory, size), "{ram}");
        }
    }
}
