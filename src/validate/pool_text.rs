//! Degrees of a pool in one cell: `TP4`, `DEP8`, `TP1 DP4 EP4`.

use super::measured::{MeasuredDegrees, Record};
use crate::spec::error::Error;
use crate::spec::limits::DEGREE;

/// Names of degrees, the longer ones before their ends, and which of TP, PP, DP and EP each sets.
const NAMES: [(&str, [bool; 4]); 6] = [
    ("dep", [false, false, true, true]),
    ("tep", [true, false, false, true]),
    ("tp", [true, false, false, false]),
    ("pp", [false, true, false, false]),
    ("dp", [false, false, true, false]),
    ("ep", [false, false, false, true]),
];

/// A name and its number; `each` where it has none.
fn degree(word: &str, each: Option<u64>) -> Option<([bool; 4], u64)> {
    let (name, sets) = NAMES.into_iter().find(|(name, _)| word.starts_with(name))?;
    let number = match &word[name.len()..] {
        "" => each?,
        digits => digits.parse().ok()?,
    };
    DEGREE.holds(number as f64).then_some((sets, number)).filter(|(_, number)| *number > 0)
}

impl Record<'_> {
    /// The degrees of the pool with this prefix, where the table has a cell for all of them.
    pub(super) fn pool_text(&self, pool: &str) -> Result<Option<MeasuredDegrees>, Error> {
        let key = format!("{pool}parallel");
        let text = self.text(&key);
        if pool.is_empty() || text.is_empty() {
            return Ok(None);
        }
        let each = self.count(&format!("{pool}devices_each"), &DEGREE).ok().flatten();
        let mut found = [1; 4];
        let plain = text.split(" (").next().unwrap_or(text).to_lowercase();
        for word in plain.split([' ', ',', '+']).filter(|word| !word.is_empty()) {
            let (sets, number) = degree(word, each).ok_or_else(|| {
                let fix = "correct the cell, or leave it empty";
                Error::new(key.as_str(), text, "degrees such as TP4, DEP8 or TP1 DP4 EP4", fix)
            })?;
            found.iter_mut().zip(sets).filter(|(_, set)| *set).for_each(|(degree, _)| *degree = number);
        }
        let [tp, pp, dp, ep] = found;
        let workers = self.whole(&format!("{pool}workers"), &DEGREE)?;
        Ok(Some(MeasuredDegrees { given: true, workers, tp, pp, dp, ep }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_of_a_cell_are_those_of_its_words() {
        let read = |text: &str| {
            let cells =
                [("prefill_parallel", text), ("prefill_devices_each", "16"), ("prefill_workers", "2")];
            Record(cells.into_iter().collect()).pool_text("prefill_")
        };
        for (text, degrees) in [
            ("TP4", [4, 1, 1, 1]),
            ("DEP8", [1, 1, 8, 8]),
            ("DEP", [1, 1, 16, 16]),
            ("TEP8", [8, 1, 1, 8]),
            ("TP1 DP4 EP4", [1, 1, 4, 4]),
            ("EP32 DP32 (4 nodes)", [1, 1, 32, 32]),
        ] {
            let found = read(text).unwrap().unwrap();
            assert_eq!([found.tp, found.pp, found.dp, found.ep], degrees, "{text}");
            assert_eq!(found.workers, Some(2));
        }
        assert_eq!(read("").unwrap(), None);
        let fault = read("48 attention + 16 FFN ranks").unwrap_err();
        assert_eq!(
            (fault.key.as_str(), fault.found.as_str()),
            ("prefill_parallel", "48 attention + 16 FFN ranks")
        );
    }
}
