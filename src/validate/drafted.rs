//! Rows of speculative decoding: each is a run without a draft and one with it.

use super::measured::{MeasuredRow, Record};
use super::replayed::TableLayout;
use crate::spec::error::Error;
use crate::spec::limits::{ACCEPTANCE, DRAFT_TOKENS};

/// Columns of both runs, after `base_` and `spec_`.
const OF_BOTH: [&str; 3] = ["tpot_ms", "output_tok_s", "tok_s_user"];

impl Record<'_> {
    /// The runs of a row, in the order of a report.
    pub fn runs(&self) -> Result<Vec<MeasuredRow>, Error> {
        if self.layout() != TableLayout::Drafts {
            return Ok(vec![self.measured()?]);
        }
        let base =
            self.with_figures("base_", [("speculative", "none"), ("acceptance_length", "")]).measured()?;
        let method = format!("{} {}", self.text("method").to_lowercase(), self.text("num_spec_tokens"));
        let length = self.acceptance_length()?.map(|length| length.to_string()).unwrap_or_default();
        let drafted = [("speculative", method.trim()), ("acceptance_length", length.as_str())];
        let drafted = self.with_figures("spec_", drafted).measured()?;
        Ok(vec![base, drafted])
    }

    /// The same row with the figures of one of its runs in the columns of all tables.
    fn with_figures<'a>(&'a self, run: &str, cells: [(&'a str, &'a str); 2]) -> Record<'a> {
        let mut record = self.0.clone();
        for column in OF_BOTH {
            record.insert(column, self.text(&format!("{run}{column}")));
            for other in ["base_", "spec_"] {
                record.remove(format!("{other}{column}").as_str());
            }
        }
        record.extend(cells);
        Record(record)
    }

    /// Tokens that a step yields with the draft, its own included: as stated, or one and the accepted share of the draft.
    fn acceptance_length(&self) -> Result<Option<f64>, Error> {
        let stated = self.positive("accept_len", &DRAFT_TOKENS)?;
        let share = self.positive("accept_rate", &ACCEPTANCE)?;
        let drafted = self.positive("num_spec_tokens", &DRAFT_TOKENS)?;
        Ok(stated.or(share.zip(drafted).map(|(share, drafted)| 1.0 + share * drafted)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::RunFigure;
    use super::*;

    #[test]
    fn a_row_is_a_run_without_and_one_with_its_draft() {
        let cells = [
            ("model", "a/b"),
            ("hardware", "x"),
            ("runtime", "vllm"),
            ("concurrency", "4"),
            ("method", "MTP"),
            ("num_spec_tokens", "3"),
            ("accept_len", ""),
            ("accept_rate", "0.5"),
            ("base_tpot_ms", ""),
            ("base_tok_s_user", "50"),
            ("base_output_tok_s", "190"),
            ("spec_tpot_ms", "9"),
            ("speedup", "2.2"),
        ];
        let [base, drafted] = &Record(cells.into_iter().collect()).runs().unwrap()[..] else { panic!() };
        assert_eq!(
            (base.outcome.tpot_ms, base.outcome.more.get(RunFigure::Output)),
            (Some(20.0), Some(190.0))
        );
        assert_eq!((&base.speculative, base.accepted), (&None, None));
        assert_eq!((drafted.outcome.tpot_ms, drafted.outcome.more.get(RunFigure::Output)), (Some(9.0), None));
        assert_eq!((drafted.speculative.as_deref(), drafted.accepted), (Some("mtp 3"), Some(2.5)));
        assert!(base.unscored.is_empty() && drafted.assumed.len() == 2, "{:?}", base.unscored);
    }
}
