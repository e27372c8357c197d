//! Why the best is the best, as bars: strategies, gains of single changes, and how often it stays the best.

use super::SvgPanel;
use super::bars::{LabelledBar, bars};
use super::tornado::{TornadoBar, tornado};
use crate::report::number::{format_metric, percent, word};
use crate::report::why::Why;
use crate::spec::objective::{Direction, Metric};

pub fn why_panels(why: &Why) -> Vec<SvgPanel> {
    let Ok(metric) = Metric::parse(&why.metric) else { return vec![] };
    [strategies(why, metric), gains(why, metric), robustness(why)].into_iter().flatten().collect()
}

/// The best plan of every strategy.
fn strategies(why: &Why, metric: Metric) -> Option<SvgPanel> {
    let all = why.strategies.iter().enumerate().filter_map(|(at, strategy)| {
        let value = strategy.value?;
        let plan = strategy.plan.clone().unwrap_or_default();
        let note = format!("{}, {plan}", format_metric(metric, value));
        let title = format!("{}: {note}", strategy.family.name());
        let series = if at == 0 { 0 } else { 6 };
        Some(LabelledBar {
            label: strategy.family.name().to_owned(),
            parts: vec![(series, value, title)],
            note,
        })
    });
    let all: Vec<LabelledBar> = all.collect();
    (!all.is_empty()).then(|| bars(&format!("Best plan of each strategy, {}", word(metric)), &[], &all))
}

/// The change of the objective where one input changes and the search runs again.
fn gains(why: &Why, metric: Metric) -> Option<SvgPanel> {
    let now = why.strategies.first()?.value?;
    let all = why.worth.iter().filter_map(|gain| {
        let change = gain.value? / now - 1.0;
        let better = match metric.entry().direction {
            Direction::Maximize => change > 0.0,
            Direction::Minimize => change < 0.0,
        };
        let plan = gain.plan.as_deref().unwrap_or_default();
        Some(TornadoBar { name: gain.what.clone(), change, better, words: format!("{}: {plan}", gain.what) })
    });
    tornado(&format!("Re-optimized: change of {}", word(metric)), all.collect())
}

fn robustness(why: &Why) -> Option<SvgPanel> {
    let found = why.robustness.as_ref()?;
    let rows = [
        ("stays the best, independent errors", found.stays_best_independent),
        ("stays the best, common errors", found.stays_best_common),
        ("meets the SLOs", found.meets_slos),
    ];
    let all = rows.map(|(label, share)| {
        let rest = (1.0 - share).max(0.0);
        let parts = vec![
            (0, share, format!("{label}: {}", percent(share))),
            (6, rest, format!("otherwise: {}", percent(rest))),
        ];
        LabelledBar { label: label.to_owned(), parts, note: percent(share) }
    });
    Some(bars(&format!("Robustness: {} draws inside the intervals", found.draws), &[], &all))
}
