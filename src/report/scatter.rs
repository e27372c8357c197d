//! Scatter plot of predicted against measured: log-log, a panel per metric, a colour per runtime.

use std::collections::{BTreeMap, BTreeSet};

use super::svg::frame::{PlotAxis, PlotFrame, line};
use super::svg::marks::cloud;
use super::svg::scale::PlotScale;
use super::svg::{SvgPanel, SvgPicture, side_by_side};
use crate::validate::summary::ScoredRow;

/// Width and height of a panel's axes.
const SIDE: f64 = 360.0;

/// Points of one runtime: measured, predicted.
type Points<'a> = BTreeMap<&'a str, Vec<(f64, f64)>>;

/// The plot of all predicted rows that are not flagged doubtful.
pub fn scatter(rows: &[ScoredRow]) -> SvgPicture {
    let (mut ttft, mut tpot) = (Points::new(), Points::new());
    for row in rows.iter().filter(|row| row.measured.warning.is_empty()) {
        let Ok(made) = &row.predicted else { continue };
        for (points, measured, predicted) in [
            (&mut tpot, row.measured.outcome.tpot_ms, made.tpot_ms),
            (&mut ttft, row.measured.outcome.ttft_ms, made.ttft_ms),
        ] {
            // On axes of factors only finite numbers above zero have a place.
            let drawn = |value: f64| value.is_normal() && value > 0.0;
            if let Some(measured) = measured.filter(|measured| drawn(*measured) && drawn(predicted)) {
                points.entry(&row.measured.runtime).or_default().push((measured, predicted));
            }
        }
    }
    // A runtime has one colour in both panels.
    let runtimes: BTreeSet<&str> = tpot.keys().chain(ttft.keys()).copied().collect();
    let runtimes: Vec<&str> = runtimes.into_iter().collect();
    let panels: Vec<SvgPanel> = [("TPOT", &tpot), ("TTFT", &ttft)]
        .into_iter()
        .filter_map(|(name, points)| panel(name, points, &runtimes))
        .collect();
    SvgPicture {
        title: "Predicted against measured".to_owned(),
        subtitle: "a point per run; on the line both are equal".to_owned(),
        panels: if panels.is_empty() { vec![] } else { vec![side_by_side(&panels, 2)] },
    }
}

fn panel(name: &str, points: &Points, runtimes: &[&str]) -> Option<SvgPanel> {
    let all = points.values().flatten().flat_map(|(a, b)| [*a, *b]);
    let scale = PlotScale::of_factors(all)?;
    let axis = |what: &str| PlotAxis { scale, label: format!("{name} {what}, ms") };
    let series = |runtime: &str| runtimes.iter().position(|known| *known == runtime).unwrap_or(0);
    let legend = points.keys().map(|runtime| (series(runtime), (*runtime).to_owned()));
    let frame = PlotFrame {
        title: name.to_owned(),
        x: axis("measured"),
        y: axis("predicted"),
        width: SIDE,
        height: SIDE,
        legend: legend.collect(),
    };
    let (first, last) = scale.ends();
    let mut marks = line("axis", [frame.x(first), frame.y(first)], [frame.x(last), frame.y(last)]);
    for (runtime, points) in points {
        let places: Vec<[f64; 2]> =
            points.iter().map(|(measured, predicted)| [frame.x(*measured), frame.y(*predicted)]).collect();
        marks.push_str(&cloud(series(runtime), &places, runtime));
    }
    Some(frame.panel("", &marks))
}
