//! Decision quality: whether predictions select good configurations among measured ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TPOT SLOs under which choices are made, in milliseconds.
pub const LIMITS_MS: [f64; 3] = [15.0, 25.0, 40.0];

#[derive(Clone, Copy, Debug)]
pub struct DecisionOption {
    /// TPOT in milliseconds: the prediction at which the SLO applies, and the measurement.
    pub tpot_ms: (f64, f64),
    /// Output tokens per second per device: predicted and measured.
    pub throughput: (f64, f64),
}

impl DecisionOption {
    /// A configuration with a concurrency of `requests` on `devices` devices and with predicted and measured TTFT and
    /// TPOT in milliseconds. The SLO applies to `limited`. Throughput is that of closed-loop traffic for both.
    pub fn new(
        (requests, osl, devices): (u64, u64, u64),
        limited: f64,
        predicted: (f64, f64),
        measured: (f64, f64),
    ) -> DecisionOption {
        let per_device = |(ttft, tpot): (f64, f64)| {
            let request = ttft + (osl as f64 - 1.0) * tpot;
            1e3 * requests as f64 * osl as f64 / request / devices as f64
        };
        DecisionOption {
            tpot_ms: (limited, measured.1),
            throughput: (per_device(predicted), per_device(measured)),
        }
    }
}

/// Quality of choices by prediction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Groups of at least three comparable configurations.
    pub groups: usize,
    /// Mean over the groups of the Spearman rank correlation of throughput.
    pub spearman: f64,
    /// Number of choices: pairs of a group and an SLO that some configuration meets.
    pub choices: usize,
    /// Share of the choices that meet the SLO as measured.
    pub slo_met: f64,
    /// Mean regret in throughput of the choices that meet the SLO, against the best measured configuration; null
    /// where none does.
    pub regret: Option<f64>,
}

/// Scores the choices in groups of comparable configurations; `None` where no group has three.
pub fn decision(groups: &[Vec<DecisionOption>]) -> Option<Decision> {
    let groups: Vec<_> = groups.iter().filter(|group| group.len() >= 3).collect();
    if groups.is_empty() {
        return None;
    }
    let spearman = groups.iter().map(|group| correlation(group)).sum::<f64>() / groups.len() as f64;
    let chosen: Vec<_> =
        groups.iter().flat_map(|group| LIMITS_MS.iter().filter_map(|limit| choose(group, *limit))).collect();
    let regrets: Vec<f64> = chosen.iter().filter(|(met, _)| *met).map(|(_, regret)| *regret).collect();
    let met = regrets.len() as f64 / chosen.len().max(1) as f64;
    Some(Decision {
        groups: groups.len(),
        spearman,
        choices: chosen.len(),
        slo_met: met,
        regret: (!regrets.is_empty()).then(|| regrets.iter().sum::<f64>() / regrets.len() as f64),
    })
}

/// Whether the best predicted configuration meets the SLO as measured, and its relative regret in throughput; `None`
/// where no configuration meets the SLO.
fn choose(group: &[DecisionOption], limit: f64) -> Option<(bool, f64)> {
    let most = |of: &dyn Fn(&&DecisionOption) -> bool, by: fn(&DecisionOption) -> f64| {
        group.iter().filter(|option| of(option)).max_by(|a, b| by(a).total_cmp(&by(b)))
    };
    let best = most(&|option| option.tpot_ms.1 <= limit, |option| option.throughput.1)?;
    let fastest = || group.iter().min_by(|a, b| a.tpot_ms.0.total_cmp(&b.tpot_ms.0));
    let ours = most(&|option| option.tpot_ms.0 <= limit, |option| option.throughput.0).or_else(fastest)?;
    Some((ours.tpot_ms.1 <= limit, 1.0 - ours.throughput.1 / best.throughput.1))
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
    let same = |value: f64| values.iter().filter(|other| **other == value).count() as f64;
    values.iter().map(|value| below(*value) + (same(*value) - 1.0) / 2.0).collect()
}

/// Spearman correlation; ties have equal ranks.
fn correlation(group: &[DecisionOption]) -> f64 {
    let of = |pick: fn(&DecisionOption) -> f64| ranks(&group.iter().map(pick).collect::<Vec<_>>());
    let (a, b) = (of(|option| option.throughput.0), of(|option| option.throughput.1));
    let mean = (group.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    if scale > 0.0 { product(&a, &b) / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(tpot: (f64, f64), throughput: (f64, f64)) -> DecisionOption {
        DecisionOption { tpot_ms: tpot, throughput }
    }

    #[test]
    fn a_choice_is_judged_by_what_was_measured() {
        // Under 25 ms the second is predicted best and meets the SLO; the third would have been better.
        let group = vec![
            option((10.0, 10.0), (100.0, 100.0)),
            option((20.0, 20.0), (200.0, 180.0)),
            option((26.0, 24.0), (300.0, 200.0)),
        ];
        assert_eq!(choose(&group, 25.0), Some((true, 1.0 - 180.0 / 200.0)));
        // No measured configuration is under 5 ms, so there is no choice.
        assert_eq!(choose(&group, 5.0), None);
        let judged = decision(&[group, vec![]]).unwrap();
        assert_eq!((judged.groups, judged.choices, judged.slo_met), (1, 3, 1.0));
        assert!((judged.spearman - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_choice_that_misses_is_counted() {
        let group = [option((14.0, 16.0), (9.0, 9.0)), option((16.0, 14.0), (8.0, 8.0))];
        assert!(!choose(&group, 15.0).unwrap().0);
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [1.5, 0.0, 1.5]);
    }
}
