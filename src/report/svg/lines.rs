//! Lines with bands: a metric over a number, one line per series.

use super::SvgPanel;
use super::frame::{PlotAxis, PlotFrame};
use super::marks::{band, failed, path, point};
use super::scale::{PlotScale, drawable};

#[derive(Clone, Debug, PartialEq)]
pub struct LinePoint {
    /// To the right.
    pub x: f64,
    /// Upwards; `None` where it is unknown.
    pub y: Option<f64>,
    pub ends: Option<(f64, f64)>,
    pub title: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlotLine {
    /// Name in the legend; empty for the only line.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<LinePoint>,
}

/// Lines over two labelled axes; `None` without any known value.
pub fn lines(title: &str, [across, up]: [&str; 2], all: &[PlotLine]) -> Option<SvgPanel> {
    let points = || all.iter().flat_map(|line| &line.points).filter(|point| drawable(point.x));
    let known =
        |point: &LinePoint| point.y.into_iter().chain(point.ends.into_iter().flat_map(|(a, b)| [a, b]));
    let scales =
        [PlotScale::over(points().map(|point| point.x))?, PlotScale::over(points().flat_map(known))?];
    let frame = frame(title, [across, up], scales, all);
    let (mut below, mut marks) = (String::new(), String::new());
    for (series, one) in all.iter().enumerate() {
        // A point that does not run ends a run of the line.
        let of = |point: &LinePoint| point.y.filter(|y| drawable(*y) && drawable(point.x));
        for run in one.points.split(|point| of(point).is_none()) {
            let at = |point: &LinePoint, y: f64| [frame.x(point.x), frame.y(y)];
            let place = |point: &LinePoint| point.y.map(|y| at(point, y));
            let places: Vec<[f64; 2]> = run.iter().filter_map(place).collect();
            let sure: Vec<(&LinePoint, (f64, f64))> =
                run.iter().filter_map(|point| Some((point, point.ends?))).collect();
            let low: Vec<[f64; 2]> = sure.iter().map(|(point, (low, _))| at(point, *low)).collect();
            let high: Vec<[f64; 2]> = sure.iter().map(|(point, (_, high))| at(point, *high)).collect();
            below.push_str(&band(series, &low, &high));
            marks.push_str(&path(series, &places));
            for (one, place) in run.iter().zip(&places) {
                marks.push_str(&point(series, *place, &one.title));
            }
        }
        for missing in one.points.iter().filter(|point| of(point).is_none() && drawable(point.x)) {
            marks.push_str(&failed([frame.x(missing.x), frame.bottom() - 8.0], &missing.title));
        }
    }
    Some(frame.panel(&below, &marks))
}

/// Marks along a course, at most.
const MOST_MARKS: usize = 24;

/// Values over time, from zero on both axes; of the points, a few are marked.
pub fn courses(title: &str, [across, up]: [&str; 2], all: &[PlotLine]) -> Option<SvgPanel> {
    let most = |of: fn(&LinePoint) -> Option<f64>| {
        let values = all.iter().flat_map(|line| &line.points).filter_map(of);
        values.filter(|value| drawable(*value)).reduce(f64::max)
    };
    let ends = [most(|point| Some(point.x))?, most(|point| point.y)?];
    let frame = frame(title, [across, up], ends.map(PlotScale::from_zero), all);
    let mut marks = String::new();
    for (series, line) in all.iter().enumerate() {
        let drawn = line.points.iter().filter_map(|one| Some((one, [frame.x(one.x), frame.y(one.y?)])));
        let drawn: Vec<(&LinePoint, [f64; 2])> = drawn.collect();
        marks.push_str(&path(series, &drawn.iter().map(|(_, place)| *place).collect::<Vec<_>>()));
        let every = drawn.len().div_ceil(MOST_MARKS).max(1);
        for (one, place) in drawn.iter().step_by(every) {
            marks.push_str(&point(series, *place, &one.title));
        }
    }
    Some(frame.panel("", &marks))
}

fn frame(title: &str, [across, up]: [&str; 2], [x, y]: [PlotScale; 2], all: &[PlotLine]) -> PlotFrame {
    let named = all.iter().enumerate().filter(|(_, line)| !line.name.is_empty());
    PlotFrame {
        title: title.to_owned(),
        x: PlotAxis { scale: x, label: across.to_owned() },
        y: PlotAxis { scale: y, label: up.to_owned() },
        width: 380.0,
        height: 220.0,
        legend: named.map(|(at, line)| (at, line.name.clone())).collect(),
    }
}
