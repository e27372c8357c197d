//! From samples to readings over a part of a run: growth of counters, parts of a machine, means over time.

use std::collections::BTreeMap;

use crate::spec::telemetry::{ReadingKind, ReadingOfParts, ReadingSummary};
use crate::validate::score::quantile;

/// Bytes of a gigabyte.
pub(super) const GB: f64 = 1e9;
pub(super) const MILLI: f64 = 1e-3;

/// A value as a machine reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RawReading {
    /// The reading itself.
    Gauge(f64),
    /// The reading is the growth per second.
    Counter(f64),
    /// As a counter that goes on from 0 after this value.
    Wrapping(f64, f64),
    /// The reading is the growth of the first over that of the second.
    Share(f64, f64),
}

/// The readings of one sample: what is read, which part of the machine has it, and its value.
pub(super) type RawReadings<K> = Vec<(K, u64, RawReading)>;

/// Growth of a counter; `None` of one that fell.
fn growth(before: f64, after: f64, range: Option<f64>) -> Option<f64> {
    let grown = match range {
        Some(range) if after < before && before <= range => after + range - before,
        _ => after - before,
    };
    Some(grown).filter(|grown| *grown >= 0.0 && grown.is_finite())
}

impl RawReading {
    /// The reading between two samples that are `seconds` from each other.
    fn since(self, before: RawReading, seconds: f64) -> Option<f64> {
        let found = match (before, self) {
            (_, RawReading::Gauge(value)) => value,
            (RawReading::Counter(before), RawReading::Counter(after)) => {
                growth(before, after, None)? / seconds
            }
            (RawReading::Wrapping(before, _), RawReading::Wrapping(after, range)) => {
                growth(before, after, Some(range))? / seconds
            }
            (RawReading::Share(before, whole_before), RawReading::Share(after, whole)) => {
                growth(before, after, None)? / growth(whole_before, whole, None)?
            }
            _ => return None,
        };
        Some(found).filter(|found| found.is_finite())
    }
}

/// The readings between two samples: the parts of each as one. A sum lacks none of its parts.
pub(super) fn between<K: ReadingKind>(
    before: &RawReadings<K>,
    after: &RawReadings<K>,
    seconds: f64,
) -> Vec<(K, f64)> {
    let earlier: BTreeMap<(K, u64), RawReading> =
        before.iter().map(|(kind, part, raw)| ((*kind, *part), *raw)).collect();
    let mut found: BTreeMap<K, Vec<Option<f64>>> = BTreeMap::new();
    for (kind, part, raw) in after {
        let value = earlier.get(&(*kind, *part)).and_then(|before| raw.since(*before, seconds));
        found.entry(*kind).or_default().push(value);
    }
    let one = |(kind, values): (K, Vec<Option<f64>>)| {
        let value = of_parts(kind.of_parts(), &values).filter(|value| value.is_finite());
        Some((kind, value?))
    };
    found.into_iter().filter_map(one).collect()
}

fn of_parts(rule: ReadingOfParts, values: &[Option<f64>]) -> Option<f64> {
    let known = || values.iter().copied().flatten();
    match rule {
        ReadingOfParts::Sum => values.iter().copied().sum(),
        ReadingOfParts::Mean => {
            Some(known().sum::<f64>() / known().count() as f64).filter(|it| it.is_finite())
        }
        ReadingOfParts::Max => known().reduce(f64::max),
    }
}

/// A time, in seconds of a run.
pub(super) type TimeSpan = (f64, f64);

fn overlap_s(one: TimeSpan, other: TimeSpan) -> f64 {
    (one.1.min(other.1) - one.0.max(other.0)).max(0.0)
}

/// A reading over `window`, of its values between samples that are wholly in it: others mix it with the warm-up. Where none
/// is, of those that reach into it.
pub(super) fn summarised(values: &[(TimeSpan, f64)], window: TimeSpan) -> Option<ReadingSummary> {
    let reach = values.iter().map(|(span, value)| (*span, *value, overlap_s(*span, window)));
    let reach: Vec<(TimeSpan, f64, f64)> = reach.filter(|(_, _, overlap)| *overlap > 0.0).collect();
    let inside = |span: &TimeSpan| span.0 >= window.0 && span.1 <= window.1;
    let any_inside = reach.iter().any(|(span, ..)| inside(span));
    let counted = || reach.iter().filter(|(span, ..)| inside(span) || !any_inside);
    let seconds: f64 = counted().map(|(_, _, overlap)| overlap).sum();
    let mean = counted().map(|(_, value, overlap)| value * overlap).sum::<f64>() / seconds;
    let mut sample: Vec<f64> = counted().map(|(_, value, _)| *value).collect();
    let p50 = quantile(&mut sample, 0.5);
    let (min, max) = (*sample.first()?, *sample.last()?);
    // Sums of rounded parts may leave the range of their values.
    mean.is_finite().then(|| ReadingSummary { mean: mean.clamp(min, max), p50, min, max })
}

#[cfg(test)]
mod tests {
    use super::RawReading::{Counter, Gauge, Share, Wrapping};
    use super::*;
    use crate::spec::telemetry::MachineReading::{
        BusiestProcessorUse, NetworkSentBytesS, ProcessorMhz, ProcessorUse, ProcessorWatts,
    };

    #[test]
    fn counters_wrap_and_a_fallen_one_has_no_reading() {
        assert_eq!(Wrapping(3.0, 10.0).since(Wrapping(8.0, 10.0), 2.0), Some(2.5));
        assert_eq!(Counter(3.0).since(Counter(8.0), 2.0), None);
        // A counter above its range did not wrap.
        assert_eq!(Wrapping(3.0, 10.0).since(Wrapping(12.0, 10.0), 2.0), None);
        assert_eq!(Share(5.0, 30.0).since(Share(0.0, 10.0), 2.0), Some(0.25));
        assert_eq!(Share(5.0, 10.0).since(Share(5.0, 10.0), 2.0), None);
        assert_eq!(Counter(f64::MAX).since(Counter(-f64::MAX), 1.0), None);
        assert_eq!(Gauge(4.0).since(Counter(1.0), 1.0), Some(4.0));
        assert_eq!(Counter(4.0).since(Counter(1.0), 0.0), None);
    }

    #[test]
    fn parts_are_summed_only_where_all_are_known() {
        let before = vec![
            (ProcessorWatts, 0, Counter(1.0)),
            (ProcessorWatts, 1, Counter(5.0)),
            (NetworkSentBytesS, 0, Counter(1.0)),
            (NetworkSentBytesS, 1, Counter(2.0)),
            (ProcessorMhz, 0, Gauge(0.0)),
            (ProcessorMhz, 1, Gauge(0.0)),
            (BusiestProcessorUse, 0, Share(0.0, 0.0)),
            (BusiestProcessorUse, 1, Share(0.0, 0.0)),
        ];
        let after = vec![
            (ProcessorWatts, 0, Counter(3.0)),
            (ProcessorWatts, 1, Counter(2.0)),
            (NetworkSentBytesS, 0, Counter(5.0)),
            (NetworkSentBytesS, 1, Counter(4.0)),
            (ProcessorMhz, 0, Gauge(1000.0)),
            (ProcessorMhz, 1, Gauge(3000.0)),
            (BusiestProcessorUse, 0, Share(1.0, 10.0)),
            (BusiestProcessorUse, 1, Share(9.0, 10.0)),
            (ProcessorUse, 0, Share(9.0, 10.0)),
        ];
        let expected = [(BusiestProcessorUse, 0.9), (ProcessorMhz, 2000.0), (NetworkSentBytesS, 3.0)];
        assert_eq!(between(&before, &after, 2.0), expected);
    }

    #[test]
    fn only_the_window_counts() {
        // A warm-up of 100, then 10 and 20, then a rest of 1.
        let values = [((0.0, 2.0), 100.0), ((2.0, 3.0), 10.0), ((3.0, 4.0), 20.0), ((4.0, 9.0), 1.0)];
        let found = summarised(&values, (1.5, 4.0)).unwrap();
        assert_eq!((found.min, found.max, found.p50), (10.0, 20.0, 20.0));
        assert_eq!(found.mean, 15.0);
        // A window between two samples has the reading between them.
        assert_eq!(summarised(&values, (5.0, 5.1)).unwrap().max, 1.0);
        let reaching = summarised(&values, (3.5, 4.5)).unwrap();
        assert_eq!((reaching.min, reaching.mean, reaching.max), (1.0, 10.5, 20.0));
        assert_eq!(summarised(&values, (9.0, 10.0)), None);
        assert_eq!(summarised(&values, (3.0, 3.0)), None);
        assert_eq!(summarised(&[], (0.0, 1.0)), None);
    }
}
