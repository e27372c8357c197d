//! A character plot of points on two axes.

use super::number::digits;

/// A point, and the character that marks it; of several in one cell the later one shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    pub sign: char,
}

/// Columns of the field.
const WIDTH: usize = 72;
/// Rows of the field.
const HEIGHT: usize = 14;
/// From this ratio of the largest to the least on, an axis is logarithmic.
const WIDE: f64 = 50.0;

/// One axis: from, to, and whether its steps are factors.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Axis {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        Axis { low, high, logarithmic: low > 0.0 && high / low >= WIDE }
    }

    fn cell(&self, value: f64, cells: usize) -> usize {
        let scale = |value: f64| if self.logarithmic { libm::log(value) } else { value };
        let span = scale(self.high) - scale(self.low);
        if span <= 0.0 {
            return 0;
        }
        let share = (scale(value) - scale(self.low)) / span;
        (share * (cells - 1) as f64).round() as usize
    }

    fn middle(&self) -> f64 {
        if self.logarithmic { (self.low * self.high).sqrt() } else { (self.low + self.high) / 2.0 }
    }

    fn note(&self) -> &'static str {
        if self.logarithmic { ", logarithmic" } else { "" }
    }
}

/// The plot with both axes labelled; empty without two different finite points.
pub fn plot(marks: &[Mark], (across, up): (&str, &str)) -> String {
    let marks: Vec<Mark> = marks.iter().copied().filter(|m| m.x.is_finite() && m.y.is_finite()).collect();
    let differ = marks.iter().any(|mark| (mark.x, mark.y) != (marks[0].x, marks[0].y));
    if !differ {
        return String::new();
    }
    let (x, y) = (Axis::over(marks.iter().map(|m| m.x)), Axis::over(marks.iter().map(|m| m.y)));
    let mut field = vec![vec![' '; WIDTH]; HEIGHT];
    for mark in &marks {
        field[HEIGHT - 1 - y.cell(mark.y, HEIGHT)][x.cell(mark.x, WIDTH)] = mark.sign;
    }
    let labels = [(0, y.high), (HEIGHT / 2, y.middle()), (HEIGHT - 1, y.low)];
    let label = |row: usize| labels.iter().find(|(at, _)| *at == row).map(|(_, value)| digits(*value));
    let mut text = format!("{up}{}\n", y.note());
    for (row, cells) in field.iter().enumerate() {
        let tick = label(row).unwrap_or_default();
        let edge = if tick.is_empty() { '│' } else { '┤' };
        let cells: String = cells.iter().collect();
        text.push_str(&format!("{tick:>9} {edge}{}\n", cells.trim_end()));
    }
    text.push_str(&format!("{:>9} └{}\n", "", "─".repeat(WIDTH)));
    let (low, middle, high) = (digits(x.low), digits(x.middle()), digits(x.high));
    let half = WIDTH / 2 - low.len();
    text.push_str(&format!("{:>11}{low}{middle:^half$}{high:>rest$}\n", "", rest = WIDTH - half - low.len()));
    text.push_str(&format!("{:>11}{across}{}\n", "", x.note()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_corner_is_marked() {
        let mark = |x, y, sign| Mark { x, y, sign };
        let marks = [mark(1.0, 1.0, 'a'), mark(1.0, 2.0, 'b'), mark(3.0, 1.0, 'c'), mark(3.0, 2.0, 'd')];
        let text = plot(&marks, ("ms", "tok/s"));
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), HEIGHT + 4);
        let at = |row: usize, column: usize| rows[row].chars().nth(11 + column);
        assert_eq!([at(HEIGHT, 0), at(1, 0)], [Some('a'), Some('b')]);
        assert_eq!([at(HEIGHT, WIDTH - 1), at(1, WIDTH - 1)], [Some('c'), Some('d')]);
        assert!(rows.iter().all(|row| row.chars().count() <= 100));
    }

    #[test]
    fn one_point_is_no_plot_and_wide_axes_are_logarithmic() {
        assert_eq!(plot(&[Mark { x: 1.0, y: 1.0, sign: 'o' }; 3], ("x", "y")), "");
        assert_eq!(plot(&[], ("x", "y")), "");
        let axis = Axis::over([1.0, 100.0].into_iter());
        assert!(axis.logarithmic);
        assert_eq!(axis.cell(10.0, 11), 5);
    }
}
