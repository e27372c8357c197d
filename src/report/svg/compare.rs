//! Answers side by side: a bar chart per metric.

use super::bars::{LabelledBar, bars};
use super::{SvgPanel, SvgPicture, side_by_side};
use crate::report::comparison::{ComparedRow, ComparisonReport, SHOWN};
use crate::report::number::{format_metric, word};
use crate::spec::objective::{Direction, Metric};

pub fn comparison_picture(report: &ComparisonReport) -> SvgPicture {
    let panels: Vec<SvgPanel> = SHOWN.iter().filter_map(|metric| panel(&report.rows, *metric)).collect();
    let models: Vec<&str> = report.rows.iter().map(|row| row.model.as_str()).collect();
    let same = models.windows(2).all(|pair| pair[0] == pair[1]);
    let model = models.first().filter(|_| same).copied().unwrap_or("Several models");
    SvgPicture {
        title: format!("{model}: {} answers", report.rows.len()),
        subtitle: "one bar per answer; its plan is its title".to_owned(),
        panels: if panels.is_empty() { vec![] } else { vec![side_by_side(&panels, 2)] },
    }
}

/// The bars of a metric; none where no answer has it.
fn panel(rows: &[ComparedRow], metric: Metric) -> Option<SvgPanel> {
    let one = |(at, row): (usize, &ComparedRow)| {
        let value = row.figure(metric)?;
        let plan = row.plan.as_deref().unwrap_or_default();
        let ratio = row.ratios.get(metric.entry().column).filter(|_| at > 0);
        let ratio = ratio.map(|ratio| format!(", x {ratio:.2}")).unwrap_or_default();
        let note = format!("{}{ratio}", format_metric(metric, value));
        let title = format!("{}, {plan}: {note}", row.name);
        Some(LabelledBar { label: row.name.clone(), parts: vec![(at, value, title)], note })
    };
    let all: Vec<LabelledBar> = rows.iter().enumerate().filter_map(one).collect();
    let better = match metric.entry().direction {
        Direction::Minimize => "shorter is better",
        Direction::Maximize => "longer is better",
    };
    (!all.is_empty()).then(|| bars(&format!("{}, {better}", word(metric)), &[], &all))
}
