//! Laws of values and their intervals: a plan has one value and one interval of each metric, whatever the confidence of
//! its SLOs, and an SLO that counts at p90 is one that the interval's p90 meets.

use mantile::report::result::{EstimateResult, Quantiles, ReportedDeployment};
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, at, optimize};
use mantile::spec::evidence::EvidenceRule;
use mantile::spec::objective::LatencyLimits;
use mantile::spec::percentile::{Confidence, OddsLevel, Percentile};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use serde_json::to_value;

use super::optimality::{DEVICES, drawn, spelled};
use crate::draw::cases;

fn question(random: &mut fastrand::Rng) -> Scenario {
    let device = DEVICES[random.usize(0..DEVICES.len())];
    let hardware = format!("{}x{device}", random.u64(1..=8));
    let requested = drawn(random, &hardware);
    let percentile = requested.rate.and_then(|_| random.choice(Percentile::ALL));
    Scenario { percentile, ..requested }
}

/// The questions of reports, then random ones.
fn questions() -> Vec<Scenario> {
    let on = |model: &str, hardware: &str| Scenario {
        model: Some(model.into()),
        hardware: Some(hardware.into()),
        ttft: Some("2s".into()),
        tpot: Some("50ms".into()),
        ..Scenario::default()
    };
    let flow =
        Scenario { rate: Some(2.0), percentile: Some(Percentile::P95), ..on("Llama-3.3-70B", "8xh100-sxm") };
    vec![on("Llama-3.3-70B", "8xh100-sxm"), flow]
}

/// Every plan may be the answer: the law is on the certainty alone.
fn with(scenario: &Scenario, risk: Confidence) -> Scenario {
    Scenario { risk: Some(risk), evidence: Some(EvidenceRule::Any), ..scenario.clone() }
}

/// Whether all SLOs are met with odds of 90 %.
fn likely(found: &ReportedDeployment) -> Option<bool> {
    let odds = found.slo_odds.map_or(1.0, |odds| odds.all);
    ((odds - 0.9).abs() > 1e-9).then_some(odds >= 0.9)
}

/// Whether the predicted latencies meet the limits.
fn met(found: &ReportedDeployment, limits: &LatencyLimits) -> Option<bool> {
    let metrics = found.metrics.as_ref()?;
    let values =
        [(metrics.ttft_ms, limits.ttft), (metrics.tpot_ms, limits.tpot), (metrics.e2e_ms, limits.e2e)];
    // What is at the limit but for rounding counts as neither.
    let near =
        values.iter().any(|(value, limit)| limit.is_some_and(|s| (value / (s * 1e3) - 1.0).abs() < 1e-9));
    (!near).then(|| values.iter().all(|(value, limit)| limit.is_none_or(|seconds| *value <= seconds * 1e3)))
}

#[test]
fn a_plan_has_one_value_and_one_interval() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(36);
    let (cases, mut tried, mut missed) = (cases(5), 0, 0);
    let mut requested = questions();
    while tried < cases {
        let scenario = requested.pop().unwrap_or_else(|| question(&mut random));
        let [free, sure] = [Confidence::Median, Confidence::Odds(OddsLevel::P90)].map(|risk| {
            let scenario = with(&scenario, risk);
            optimize(&catalog, &OptimizeRequest { scenario, ..OptimizeRequest::default() }, &UNCONTROLLED)
        });
        let (Ok(free), Ok(sure)) = (free, sure) else { continue };
        tried += 1;
        let said = spelled(&scenario);
        let rows = [&free, &sure].map(|found| found.best.iter().chain(found.front.iter().take(2)));
        for row in rows.into_iter().flatten() {
            let [one, other]: [EstimateResult; 2] = [Confidence::Median, Confidence::Odds(OddsLevel::P90)]
                .map(|risk| {
                    let request = EstimateRequest::of(at(&with(&scenario, risk), row));
                    estimate(&catalog, &request, &UNCONTROLLED)
                        .unwrap_or_else(|fault| panic!("{said}: {fault}"))
                });
            let figures = |found: &ReportedDeployment| to_value((&found.metrics, &found.intervals)).unwrap();
            assert_eq!(figures(&one.candidate), figures(&other.candidate), "{said} {}", row.notation);
            assert_eq!(figures(row), figures(&one.candidate), "{said} {}", row.notation);
            let (metrics, sure) = (row.metrics.as_ref().unwrap(), row.intervals.as_ref().unwrap());
            let values = [
                (metrics.ttft_ms, sure.ttft_ms),
                (metrics.tpot_ms, sure.tpot_ms),
                (metrics.output_tok_s, sure.output_tok_s),
            ];
            for (value, Quantiles { p10, p50, p90 }) in values {
                assert!(p10 <= p50 && p50 == value && value <= p90, "{said}: {value} {p10} {p50} {p90}");
            }
            let limits = &one.question.limits;
            let likely = likely(&other.candidate);
            for (found, met) in [(&one, met(row, limits)), (&other, likely)] {
                if let Some(met) = met {
                    assert_eq!(found.candidate.violations.is_empty(), met, "{said} {}", row.notation);
                    missed += u64::from(!met);
                }
            }
        }
        // What counts at p90 counts at p50, and the best at p90 is no worse than what the other answer lists.
        let aim = free.question.optimize[0];
        let better = |a: &ReportedDeployment, b: &ReportedDeployment| {
            let (a, b) = (a.figure(aim.metric), b.figure(aim.metric));
            let (a, b) = (a.unwrap_or(f64::NAN), b.unwrap_or(f64::NAN));
            let separate = (a - b).abs() > 1e-9 * a.abs().max(b.abs());
            separate && (a < b) == (aim.direction == mantile::spec::objective::Direction::Minimize)
        };
        let listed = free.front.iter().chain(&free.best);
        for row in listed.filter(|row| likely(row) == Some(true)) {
            let best = sure.best.as_ref().unwrap_or_else(|| panic!("{said}: {} is met at p90", row.notation));
            assert!(!better(row, best), "{said}: {} is better than {}", row.notation, best.notation);
        }
        if let Some(best) = &sure.best {
            let free = free.best.as_ref().unwrap_or_else(|| panic!("{said}: {}", best.notation));
            assert!(!better(best, free), "{said}: {} is better than {}", best.notation, free.notation);
        }
    }
    assert!(missed > 0, "some plans miss their SLOs at p90");
}
