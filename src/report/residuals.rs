//! Residual plot (SVG): a line of points per group, a panel per metric.

use super::svg::frame::line;
use super::svg::marks::{bar, cloud};
use super::svg::palette::SvgTheme;
use super::svg::{Anchor, SvgPanel, SvgPicture, side_by_side, text, text_width};

/// A group of predictions, each as predicted over measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    pub name: String,
    pub tpot: Vec<f64>,
    pub ttft: Vec<f64>,
}

const SIDE: f64 = 300.0;
const LINE: f64 = 15.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 28.0;
const GAP: f64 = 20.0;
/// Ratios beyond this factor are drawn at the edge.
const WIDEST: f64 = 4.0;

/// The plot of `strips` in order; `title` names the prediction method.
pub fn residuals(title: &str, strips: &[Strip]) -> String {
    let panels = [
        names(strips),
        panel("TPOT, predicted over measured", strips, |strip| &strip.tpot),
        panel("TTFT, predicted over measured", strips, |strip| &strip.ttft),
    ];
    let picture = SvgPicture {
        title: title.to_owned(),
        subtitle: "a point per run; bars are medians".to_owned(),
        panels: vec![side_by_side(&panels, 3)],
    };
    picture.svg(SvgTheme::Adaptive)
}

fn middle(at: usize) -> f64 {
    TOP + LINE * (at as f64 + 0.5)
}

fn height(strips: &[Strip]) -> f64 {
    TOP + LINE * strips.len() as f64 + BOTTOM
}

fn names(strips: &[Strip]) -> SvgPanel {
    let widths = strips.iter().map(|strip| text_width(&strip.name, 11.0));
    let named =
        |(at, strip): (usize, &Strip)| text("value", Anchor::Start, [0.0, middle(at) + 4.0], &strip.name);
    SvgPanel {
        width: widths.fold(0.0, f64::max) + GAP,
        height: height(strips),
        body: strips.iter().enumerate().map(named).collect(),
    }
}

fn along(ratio: f64) -> f64 {
    let share = libm::log(ratio.clamp(1.0 / WIDEST, WIDEST)) / libm::log(WIDEST);
    GAP + SIDE * (share + 1.0) / 2.0
}

fn panel(name: &str, strips: &[Strip], of: fn(&Strip) -> &Vec<f64>) -> SvgPanel {
    let bottom = TOP + LINE * strips.len() as f64;
    let mut body = text("label", Anchor::Start, [GAP, 14.0], name);
    for (mark, label) in [(0.25, "1/4"), (0.5, "1/2"), (1.0, "1"), (2.0, "2"), (4.0, "4")] {
        let x = along(mark);
        body.push_str(&line(if mark == 1.0 { "axis" } else { "grid" }, [x, TOP], [x, bottom]));
        body.push_str(&text("tick", Anchor::Middle, [x, bottom + 16.0], label));
    }
    for (at, strip) in strips.iter().enumerate() {
        let mut ratios = of(strip).clone();
        let y = middle(at);
        ratios.retain(|ratio| ratio.is_finite() && *ratio > 0.0);
        let places: Vec<[f64; 2]> = ratios.iter().map(|ratio| [along(*ratio), y]).collect();
        body.push_str(&cloud(0, &places, &strip.name));
        ratios.sort_by(f64::total_cmp);
        if let Some(median) = ratios.get(ratios.len() / 2) {
            let words = format!("{}: median {median:.2}", strip.name);
            body.push_str(&bar(1, [along(*median) - 1.5, y - 5.5], [3.0, 11.0], &words));
        }
    }
    SvgPanel { width: SIDE + 2.0 * GAP, height: height(strips), body }
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
        at(circles[0], GAP + SIDE / 2.0);
        at(circles[1], GAP + SIDE * 0.75);
        at(circles[2], GAP + SIDE);
        at(circles[3], GAP);
        // The median of the first panel is 2.
        let median = format!("x=\"{:.1}\" y=\"{:.1}\"", GAP + SIDE * 0.75 - 1.5, middle(0) - 5.5);
        assert!(svg.contains(&median), "{svg}");
    }
}
