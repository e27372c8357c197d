//! Scatter plot (SVG) of predicted against measured: log-log, a panel per metric, a colour per runtime.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::spec::visible::visible_xml;
use crate::validate::summary::ScoredRow;

/// Width and height of a panel's axes.
const SIDE: f64 = 360.0;
/// Room around a panel.
const MARGIN: f64 = 56.0;
/// Colour-blind-safe palette (Okabe, Ito 2008).
const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

/// Points of one runtime: measured, predicted.
type Points<'a> = BTreeMap<&'a str, Vec<(f64, f64)>>;

/// The plot of all predicted rows that are not flagged doubtful.
pub fn scatter(rows: &[ScoredRow]) -> String {
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
    let width = 2.0 * (SIDE + 2.0 * MARGIN);
    let height = SIDE + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    panel(&mut svg, "TPOT", &tpot, MARGIN);
    panel(&mut svg, "TTFT", &ttft, SIDE + 3.0 * MARGIN);
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, name: &str, points: &Points, left: f64) {
    let all = || points.values().flatten().flat_map(|(a, b)| [*a, *b]);
    let low = all().fold(f64::INFINITY, f64::min).log10().floor();
    let high = all().fold(0.0, f64::max).log10().ceil();
    if !low.is_finite() || high <= low {
        return;
    }
    let along = |value: f64| (value.log10() - low) / (high - low) * SIDE;
    let (x, y) = (|value| left + along(value), |value| MARGIN + SIDE - along(value));
    let (ends, bottom) = ((10f64.powf(low), 10f64.powf(high)), MARGIN + SIDE);
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{MARGIN}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#888\"/>\n\
         <line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#888\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{name} measured, ms</text>\n\
         <text x=\"{left}\" y=\"{}\">{name} predicted, ms</text>",
        x(ends.0),
        y(ends.0),
        x(ends.1),
        y(ends.1),
        left + SIDE / 2.0,
        bottom + 36.0,
        MARGIN - 10.0
    );
    for power in low as i32..=high as i32 {
        let value = 10f64.powi(power);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            x(value),
            bottom + 16.0,
            left - 4.0,
            y(value) + 4.0
        );
    }
    for (number, (runtime, points)) in points.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let _ = writeln!(svg, "<g fill=\"{colour}\" fill-opacity=\"0.45\">");
        for (measured, predicted) in points {
            let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"/>", x(*measured), y(*predicted));
        }
        let line = MARGIN + 16.0 * (number as f64 + 1.0);
        let _ = writeln!(
            svg,
            "</g>\n<text x=\"{}\" y=\"{line}\" fill=\"{colour}\">{}</text>",
            left + 8.0,
            visible_xml(runtime)
        );
    }
}
