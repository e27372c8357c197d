//! Number formatting: significant digits, thousands separators, units.

use super::table::grouped;
use crate::quantity::unit::GIB;
use crate::spec::objective::{Metric, MetricFormat};

/// Three significant digits, or all digits of the integer from 1,000 on: `0.0132`, `22.4`, `467`, `5,463`.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_string();
    }
    let size = value.abs();
    if size >= 999.5 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(size.round() as u64));
    }
    if size == 0.0 {
        return "0".to_string();
    }
    // A value that rounds up to the next power of ten takes its number of decimals.
    let power = libm::log10(size * 1.000_500_25).floor() as i32;
    let decimals = (2 - power).clamp(0, 12) as usize;
    format!("{value:.decimals$}")
}

/// The same without trailing zeros, for given values: `2`, `0.25`.
pub fn plain(value: f64) -> String {
    let text = digits(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A time given in milliseconds, in the unit that reads best.
pub fn time(ms: f64) -> String {
    let (scale, unit) = time_scale(ms);
    format!("{} {unit}", digits(ms * scale))
}

/// A given time in milliseconds, without trailing zeros.
pub fn limit(ms: f64) -> String {
    let (scale, unit) = if ms >= 1e3 { (1e-3, "s") } else { time_scale(ms) };
    format!("{} {unit}", plain(ms * scale))
}

fn time_scale(ms: f64) -> (f64, &'static str) {
    match ms {
        _ if ms >= 1e4 => (1e-3, "s"),
        _ if ms >= 0.9995 || ms == 0.0 => (1.0, "ms"),
        _ => (1e3, "µs"),
    }
}

/// Bytes in GiB, the number alone.
pub fn gib_number(bytes: f64) -> String {
    let gib = bytes / GIB;
    if gib.abs() >= 999.5 { digits(gib) } else { format!("{gib:.2}") }
}

pub fn gib(bytes: f64) -> String {
    format!("{} GiB", gib_number(bytes))
}

/// A share as whole percent; a positive share below 0.5 % is `<1 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => "unknown".to_string(),
        0.0 => "0 %".to_string(),
        p if p > 0.0 && p < 0.5 => "<1 %".to_string(),
        p => format!("{} %", grouped(p.round().max(0.0) as u64)),
    }
}

/// A change as signed percent: `-60 %`, `+8 %`, `x 12.0`.
pub fn change(from: f64, to: f64) -> String {
    let percent = ((to / from - 1.0) * 100.0).round();
    match percent {
        _ if from == to => "0 %".to_string(),
        p if !p.is_finite() => "unknown".to_string(),
        p if p > 999.0 => format!("x {}", digits(to / from)),
        0.0 => (if to < from { "-0 %" } else { "+0 %" }).to_string(),
        p => format!("{p:+} %"),
    }
}

/// Shares of a whole as whole percents that add up to 100: rounded down, the remainder goes to those
/// that lost most.
pub fn percents(parts: &[f64]) -> Vec<u64> {
    let all: f64 = parts.iter().sum();
    if all.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
        return vec![0; parts.len()];
    }
    let exact: Vec<f64> = parts.iter().map(|part| part / all * 100.0).collect();
    let mut whole: Vec<u64> = exact.iter().map(|share| share.floor() as u64).collect();
    let left = 100u64.saturating_sub(whole.iter().sum());
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    order.into_iter().cycle().take(left as usize).for_each(|at| whole[at] += 1);
    whole
}

/// A concurrency: a mean has one decimal if it is not whole.
pub fn requests(number: f64) -> String {
    let rounded = (number * 10.0).round() / 10.0;
    let whole = rounded.trunc();
    let tenths = ((rounded - whole) * 10.0).round() as u64;
    let whole = grouped(whole as u64);
    if tenths == 0 { whole } else { format!("{whole}.{tenths}") }
}

/// `1 request`, `2 requests`, `1,024 devices`.
pub fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Name of a metric in a sentence.
pub fn word(metric: Metric) -> &'static str {
    metric.entry().word
}

/// A value of a metric with its name: `5,463 output tok/s`, `TPOT 22.4 ms`.
pub fn format_metric(metric: Metric, value: f64) -> String {
    let word = word(metric);
    match metric.entry().format {
        MetricFormat::Time => format!("{word} {}", time(value)),
        MetricFormat::Count if value == 1.0 => format!("1 {}", word.trim_end_matches('s')),
        MetricFormat::Count | MetricFormat::Number | MetricFormat::Tokens => {
            format!("{} {word}", digits(value))
        }
    }
}

/// A bar of `width` cells, `share` of them full; a positive share fills at least one.
pub fn bar(share: f64, width: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let full = (share * width as f64).round() as usize;
    let full = if share > 0.0 { full.max(1) } else { 0 };
    format!("{}{}", "█".repeat(full), "░".repeat(width - full))
}

/// Whether a figure is zero: reports leave such a one out.
pub fn is_zero(figure: &f64) -> bool {
    *figure == 0.0
}

/// Serializes a number without a decimal point if it is whole.
pub fn whole<S: serde::Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const MOST: f64 = 9e15;
    if number.fract() == 0.0 && (0.0..MOST).contains(number) {
        serializer.serialize_u64(*number as u64)
    } else {
        serializer.serialize_f64(*number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_and_thousands_are_separated() {
        let cases = [
            (5462.89, "5,463"),
            (999.6, "1,000"),
            (467.4, "467"),
            (99.96, "100"),
            (22.37, "22.4"),
            (1.2, "1.20"),
            (0.24, "0.240"),
            (0.013_24, "0.0132"),
            (0.0, "0"),
            (-2.5, "-2.50"),
        ];
        for (value, text) in cases {
            assert_eq!(digits(value), text);
        }
        assert_eq!((plain(2.0).as_str(), plain(0.25).as_str(), plain(100.0).as_str()), ("2", "0.25", "100"));
    }

    #[test]
    fn times_take_the_unit_that_reads_best() {
        let cases = [
            (466.8, "467 ms"),
            (1234.0, "1,234 ms"),
            (11_898.7, "11.9 s"),
            (0.0123, "12.3 µs"),
            (50.0, "50.0 ms"),
        ];
        for (ms, text) in cases {
            assert_eq!(time(ms), text);
        }
        assert_eq!((limit(2000.0).as_str(), limit(50.0).as_str()), ("2 s", "50 ms"));
    }

    #[test]
    fn whole_percents_add_up() {
        assert_eq!(percents(&[1.0, 1.0, 1.0]), [34, 33, 33]);
        assert_eq!(percents(&[0.0, 0.0]), [0, 0]);
        assert_eq!(percents(&[2.0, 0.001]).iter().sum::<u64>(), 100);
        assert_eq!((percent(0.001).as_str(), percent(0.456).as_str()), ("<1 %", "46 %"));
    }

    #[test]
    fn changes_have_a_sign() {
        assert_eq!(change(100.0, 40.0), "-60 %");
        assert_eq!(change(100.0, 108.0), "+8 %");
        assert_eq!(change(1.0, 60.0), "x 60.0");
        assert_eq!((change(0.0, 0.0).as_str(), change(1000.0, 1000.1).as_str()), ("0 %", "+0 %"));
    }
}
