//! Residual plot (SVG): a line of points per group, a panel per metric.

use std::fmt::Write;

use crate::spec::visible::visible_xml;

/// A group of predictions, each as predicted over measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// Name of the group.
    pub name: String,
    /// TPOT ratios.
    pub tpot: Vec<f64>,
    /// TTFT ratios.
    pub ttft: Vec<f64>,
}

/// Width of a panel's axis.
const SIDE: f64 = 300.0;
/// Height of a line.
const LINE: f64 = 15.0;
/// Room for the names.
const NAMES: f64 = 330.0;
/// Room above the lines and below.
const EDGE: f64 = 56.0;
/// Room between the panels.
const GAP: f64 = 40.0;
/// Ratios beyond this factor are drawn at the edge.
const WIDEST: f64 = 4.0;

/// The plot of `strips` in order; `title` names the prediction method.
pub fn residuals(title: &str, strips: &[Strip]) -> String {
    let width = NAMES + 2.0 * SIDE + 2.0 * GAP;
    let height = 2.0 * EDGE + LINE * strips.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"10\" y=\"18\" \
         font-size=\"13\">{}</text>\n",
        visible_xml(title)
    );
    for (at, strip) in strips.iter().enumerate() {
        let y = middle(at) + 4.0;
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "<text x=\"10\" y=\"{y}\">{}</text>", visible_xml(&strip.name));
    }
    panel(&mut svg, "TPOT, predicted over measured", NAMES, strips, |strip| &strip.tpot);
    panel(&mut svg, "TTFT, predicted over measured", NAMES + SIDE + GAP, strips, |strip| &strip.ttft);
    svg.push_str("</svg>\n");
    svg
}

fn middle(line: usize) -> f64 {
    EDGE + LINE * (line as f64 + 0.5)
}

fn panel(svg: &mut String, name: &str, left: f64, strips: &[Strip], of: fn(&Strip) -> &Vec<f64>) {
    let along = |ratio: f64| {
        let share = ratio.clamp(1.0 / WIDEST, WIDEST).ln() / WIDEST.ln();
        left + SIDE * (share + 1.0) / 2.0
    };
    let bottom = EDGE + LINE * strips.len() as f64;
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"38\">{name}</text>");
    for (mark, label) in [(0.25, "1/4"), (0.5, "1/2"), (1.0, "1"), (2.0, "2"), (4.0, "4")] {
        let x = along(mark);
        let colour = if mark == 1.0 { "#444" } else { "#ccc" };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{EDGE}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"{colour}\"/>\n\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 16.0
        );
    }
    for (at, strip) in strips.iter().enumerate() {
        let mut ratios = of(strip).clone();
        let y = middle(at);
        ratios.retain(|ratio| ratio.is_finite() && *ratio > 0.0);
        for ratio in &ratios {
            let x = along(*ratio);
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"2\" fill=\"#0072B2\" fill-opacity=\"0.35\"/>"
            );
        }
        ratios.sort_by(f64::total_cmp);
        if let Some(median) = ratios.get(ratios.len() / 2) {
            let x = along(*median) - 1.5;
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{}\" width=\"3\" height=\"11\" fill=\"#D55E00\"/>",
                y - 5.5
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_where_their_ratio_is_and_never_outside() {
        let strip = Strip { name: "a".into(), tpot: vec![1.0, 2.0, 9.0], ttft: vec![0.1] };
        let svg = residuals("t", &[strip]);
        let circles: Vec<&str> = svg.lines().filter(|line| line.starts_with("<circle")).collect();
        let at = |circle: &str, x: f64| assert!(circle.contains(&format!("cx=\"{x:.1}\"")), "{circle}");
        assert_eq!(circles.len(), 4);
        at(circles[0], NAMES + SIDE / 2.0);
        at(circles[1], NAMES + SIDE * 0.75);
        at(circles[2], NAMES + SIDE);
        at(circles[3], NAMES + SIDE + GAP);
        // The median of the first panel is 2.
        assert!(svg.contains(&format!("<rect x=\"{:.1}\" y=\"58\"", NAMES + SIDE * 0.75 - 1.5)), "{svg}");
    }
}
