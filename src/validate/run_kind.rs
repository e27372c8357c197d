//! The kinds of measured runs, each with its own prediction.

use super::home_run::HomeRun;
use super::measured::{OTHER_PLAN, Record};
use super::replayed::TableLayout;
use crate::spec::error::Error;

/// How the prediction of a row is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RunKind {
    /// Of a deployment under the load of the row.
    #[default]
    Served,
    /// Of a deployment at the load with the most throughput among those that fit in its memory.
    Saturated,
    /// Of the memory of a server that starts.
    Started,
    /// Of workers that compute prompts without a pause, and answer none.
    Prompts,
    /// Of a machine at home, by the search.
    Home(Box<HomeRun>),
}

/// Words in the mode of runs that are saturated.
const SATURATED: [&str; 3] = ["offline", "max-throughput", "burst"];

/// Words of a column on a cache that is not modelled, and where that is.
const OTHER_CACHES: [(&str, &str, &str); 5] = [
    ("arm", "pull from peer", "another machine"),
    ("arm", "offload", "host memory"),
    ("note", "peer KV pull", "another machine"),
    ("note", "CPU KV offload", "host memory"),
    ("note", "CPU offload", "host memory"),
];
/// Words of a mode that is not modelled, and what they mean.
const NOT_MODELLED: [(&str, &str); 1] = [("context parallel", "context parallelism of decode")];

impl Record<'_> {
    /// Why the row has no prediction, where its deployment is none that is modelled.
    pub(super) fn refused(&self, layout: TableLayout) -> Option<String> {
        let other = self.text(OTHER_PLAN);
        if !other.is_empty() {
            return Some(format!("plan: `{other}`, which no row of a table states"));
        }
        let mode = self.text("mode");
        let found =
            NOT_MODELLED.iter().find(|(words, _)| layout == TableLayout::Wide && mode.contains(words));
        found.map(|(_, what)| format!("mode: {what} is not modelled"))
    }

    /// Why the prompt tokens that its cache had are not known.
    pub(super) fn unknown_cache(&self, layout: TableLayout) -> Option<String> {
        if layout != TableLayout::Wide {
            return None;
        }
        let found = OTHER_CACHES.iter().find(|(key, words, _)| self.text(key).contains(words));
        let elsewhere = found.map(|(key, _, place)| format!("{key}: a cache in {place} is not modelled"));
        elsewhere.or_else(|| self.unknown_share())
    }

    /// The kind of a row that is read in this layout.
    pub(super) fn kind(
        &self,
        layout: TableLayout,
        concurrency: Option<u64>,
        simulated: bool,
    ) -> Result<RunKind, Error> {
        let mode = self.text("mode").to_lowercase();
        let saturated = SATURATED.iter().any(|word| mode.contains(word));
        Ok(match layout {
            TableLayout::Home => RunKind::Home(Box::new(self.home_run()?)),
            TableLayout::Started => RunKind::Started,
            _ if mode == "prefill-only" => RunKind::Prompts,
            TableLayout::Wide | TableLayout::Long if saturated && concurrency.is_none() && !simulated => {
                RunKind::Saturated
            }
            _ => RunKind::Served,
        })
    }
}
