//! Mixes of systems against brute force, and what must hold of every mix.

#[path = "fleet/certificate.rs"]
mod certificate;
#[path = "fleet/costs.rs"]
mod costs;

use mantile::search::fleet::{
    Bucket, Fleet, FleetBounds, FleetMix, FleetObjective, SystemKind, SystemSupply, mix, mixed,
};
use mantile::search::mip::solve::SolveBudget;
use mantile::search::outcome::Status;
use proptest::prelude::*;

/// Two kinds of system and up to four buckets; some bucket may be served by one kind alone.
pub fn fleets() -> impl Strategy<Value = Fleet> {
    let rates = prop::collection::vec((1u64..40, 1u64..60, 1u64..60, 0u8..6), 1..=4);
    (rates, 1u64..400, 1u64..400).prop_map(|(buckets, first, second)| {
        let bucket =
            |at: usize, rate: u64| Bucket { name: format!("b{at}"), model: 0, rate: rate as f64, osl: 100 };
        let kind = |index: usize, cents: u64| SystemKind {
            name: format!("k{index}"),
            supply_index: index,
            model: 0,
            usd_per_hour: cents as f64 / 100.0,
            usd_per_hour_most: cents as f64 / 100.0,
            devices: 1 + index as u64,
            rates: buckets
                .iter()
                .map(|(_, a, b, only)| {
                    let served = usize::from(*only) != index;
                    served.then_some(if index == 0 { *a } else { *b } as f64 * 0.37)
                })
                .collect(),
        };
        Fleet {
            buckets: buckets.iter().enumerate().map(|(at, (rate, ..))| bucket(at, *rate)).collect(),
            supplies: (0..2).map(|at| SystemSupply { name: format!("s{at}"), available: None }).collect(),
            kinds: vec![kind(0, first), kind(1, second)],
        }
    })
}

/// Least systems of the second kind that take what `first` systems of the first leave: the buckets for which the
/// second is worst go to the first, as far as it reaches.
fn second(fleet: &Fleet, first: u64, slack: f64) -> Option<u64> {
    let load =
        |kind: usize, bucket: usize| Some(fleet.buckets[bucket].rate / fleet.kinds[kind].rates[bucket]?);
    let (mut headroom, mut left) = (first as f64 + slack, 0.0);
    let mut either: Vec<(f64, f64)> = Vec::new();
    for bucket in 0..fleet.buckets.len() {
        match (load(0, bucket), load(1, bucket)) {
            (Some(a), Some(b)) => either.push((a, b)),
            (Some(a), None) => headroom -= a,
            (None, Some(b)) => left += b,
            (None, None) => return None,
        }
    }
    if headroom < 0.0 {
        return None;
    }
    either.sort_by(|x, y| (y.1 / y.0).total_cmp(&(x.1 / x.0)));
    for (a, b) in either {
        let taken = (headroom / a).min(1.0);
        headroom -= taken * a;
        left += (1.0 - taken) * b;
    }
    Some((left - slack).ceil().max(0.0) as u64)
}

/// The least cost over all numbers of systems, in thousandths of a dollar.
fn brute(fleet: &Fleet, slack: f64) -> Option<i64> {
    let mills =
        |kind: usize, count: u64| count as i64 * (fleet.kinds[kind].usd_per_hour * 1000.0).ceil() as i64;
    (0..=300).filter_map(|first| Some(mills(0, first) + mills(1, second(fleet, first, slack)?))).min()
}

fn cost(found: &FleetMix) -> i64 {
    found.solved.objective.unwrap() as i64
}

fn best(fleet: &Fleet, bounds: &FleetBounds) -> FleetMix {
    mix(fleet, FleetObjective::Cost, bounds, &SolveBudget::default())
}

proptest! {
    #[test]
    fn the_mix_costs_what_brute_force_says(fleet in fleets()) {
        let found = best(&fleet, &FleetBounds::default());
        // Loads are rounded up to a part in a hundred thousand at most.
        let (loose, tight) = (brute(&fleet, 1e-9), brute(&fleet, -1e-3));
        match loose {
            None => prop_assert_eq!(found.solved.status, Status::Infeasible),
            Some(least) => {
                prop_assert_eq!(found.solved.status, Status::Optimal, "{:?}", found.solved);
                prop_assert!(cost(&found) >= least, "{} below {}", cost(&found), least);
                prop_assert!(tight.is_none_or(|most| cost(&found) <= most), "{} above {:?}", cost(&found), tight);
            }
        }
    }

    #[test]
    fn every_bucket_is_served_and_nothing_is_overloaded(fleet in fleets(), spare in any::<bool>()) {
        let found = best(&fleet, &FleetBounds { spare, ..FleetBounds::default() });
        prop_assume!(found.solved.values.is_some());
        for bucket in 0..fleet.buckets.len() {
            let served: f64 = found.parts.iter().filter(|part| part.bucket == bucket).map(|part| part.share).sum();
            prop_assert!((served - 1.0).abs() < 1e-6, "{served}");
        }
        for (kind, count) in found.counts.iter().enumerate() {
            let parts = found.parts.iter().filter(|part| part.kind == kind);
            let load: f64 = parts
                .map(|part| part.share * fleet.buckets[part.bucket].rate / fleet.kinds[kind].rates[part.bucket].unwrap())
                .sum();
            let idle = if spare && *count > 0 { 1.0 } else { 0.0 };
            prop_assert!(load <= *count as f64 - idle + 1e-6, "{load} on {count}");
        }
    }

    #[test]
    fn more_of_anything_is_never_dearer_and_order_does_not_matter(fleet in fleets()) {
        let all = best(&fleet, &FleetBounds::default());
        prop_assume!(all.solved.values.is_some());
        let mut turned = fleet.clone();
        turned.kinds.reverse();
        turned.buckets.reverse();
        turned.kinds.iter_mut().for_each(|kind| kind.rates.reverse());
        prop_assert_eq!(cost(&best(&turned, &FleetBounds::default())), cost(&all));
        let mut few = fleet.clone();
        few.supplies[0].available = Some(all.counts[0].saturating_sub(1));
        let scarce = best(&few, &FleetBounds::default());
        prop_assert!(scarce.solved.values.is_none() || cost(&scarce) >= cost(&all));
        let spared = best(&fleet, &FleetBounds { spare: true, ..FleetBounds::default() });
        prop_assert!(cost(&spared) >= cost(&all));
        let budget = cost(&all) as f64 / 1000.0;
        let exact = best(&fleet, &FleetBounds { usd_per_hour: Some(budget + 1e-6), ..FleetBounds::default() });
        prop_assert_eq!(exact.solved.status, Status::Optimal);
        let fewest = mix(&fleet, FleetObjective::Devices, &FleetBounds::default(), &SolveBudget::default());
        let devices = |found: &FleetMix| -> u64 { found.counts.iter().zip(&fleet.kinds).map(|(n, kind)| n * kind.devices).sum() };
        prop_assert!(devices(&fewest) <= devices(&all));
    }
}

fn one_kind(available: u64) -> Fleet {
    Fleet {
        buckets: vec![Bucket { name: "b".into(), model: 0, rate: 10.0, osl: 100 }],
        supplies: vec![SystemSupply { name: "s".into(), available: Some(available) }],
        kinds: vec![SystemKind {
            name: "k".into(),
            supply_index: 0,
            model: 0,
            usd_per_hour: 2.0,
            usd_per_hour_most: 2.0,
            devices: 8,
            rates: vec![Some(3.0)],
        }],
    }
}

#[test]
fn what_is_missing_is_named_and_the_least_change_is_shown() {
    let bounds = FleetBounds { usd_per_hour: Some(5.0), devices: Some(64), spare: false };
    let why = best(&one_kind(9), &bounds).reasons.unwrap();
    assert_eq!(why.conflict, ["traffic", "budget"]);
    assert!(why.irreducible);
    assert_eq!(
        why.relaxations.iter().map(|r| (r.row.as_str(), r.needed)).collect::<Vec<_>>(),
        [("USD per hour", 8000)]
    );
    let why = best(&one_kind(3), &FleetBounds::default()).reasons.unwrap();
    assert_eq!(why.conflict, ["traffic", "available s"]);
    assert_eq!(why.relaxations[0].needed, 4);
}

#[test]
fn within_a_budget_as_much_is_served_as_fits() {
    let bounds = FleetBounds { usd_per_hour: Some(5.0), ..FleetBounds::default() };
    let found = mix(&one_kind(9), FleetObjective::Throughput, &bounds, &SolveBudget::default());
    assert_eq!((found.solved.status, found.counts[0]), (Status::Optimal, 2));
    assert!((found.parts[0].share - 0.6).abs() < 1e-5, "two systems carry 6 of 10 requests a second");
}

/// `types` kinds of system and `buckets` buckets, each kind better at some lengths than at others.
fn wide(types: usize, buckets: usize, available: Option<u64>, seed: u64) -> Fleet {
    let mut random = fastrand::Rng::with_seed(seed);
    let strengths: Vec<(f64, f64)> =
        (0..types).map(|_| (0.5 + 4.0 * random.f64(), 0.2 + 1.6 * random.f64())).collect();
    let lengths: Vec<f64> = (0..buckets).map(|_| random.f64()).collect();
    let rate = |kind: usize, length: f64| {
        let (strength, lean) = strengths[kind];
        (length < 0.97 || kind.is_multiple_of(3)).then(|| strength * (1.5 - length).powf(lean))
    };
    Fleet {
        buckets: (0..buckets)
            .map(|at| Bucket { name: format!("b{at}"), model: 0, rate: 0.01 + 0.3 * random.f64(), osl: 100 })
            .collect(),
        supplies: (0..types).map(|at| SystemSupply { name: format!("s{at}"), available }).collect(),
        kinds: (0..types)
            .map(|kind| {
                let usd_per_hour = strengths[kind].0 * (0.8 + 0.4 * random.f64());
                SystemKind {
                    name: format!("k{kind}"),
                    supply_index: kind,
                    model: 0,
                    usd_per_hour,
                    usd_per_hour_most: usd_per_hour,
                    devices: 1 + kind as u64 % 8,
                    rates: lengths.iter().map(|length| rate(kind, *length)).collect(),
                }
            })
            .collect(),
    }
}

/// A fleet that no solver's tree gets through ends with a mix, a bound and a gap.
#[test]
fn thirty_types_for_a_thousand_buckets_have_a_mix_and_a_bound() {
    for (available, spare) in [(None, false), (Some(9), false), (None, true)] {
        let fleet = wide(30, 1000, available, 7);
        for aim in [FleetObjective::Cost, FleetObjective::Devices].into_iter().take(if spare { 1 } else { 2 })
        {
            let found =
                mix(&fleet, aim, &FleetBounds { spare, ..FleetBounds::default() }, &SolveBudget::default());
            let (objective, bound) = (found.solved.objective.unwrap(), found.solved.bound.unwrap());
            assert!(matches!(found.solved.status, Status::Optimal | Status::Feasible));
            assert_eq!(
                found.program.check(found.solved.values.as_ref().unwrap()),
                Ok(found.solved.rows_checked)
            );
            // A spare of every kind in use is no part of the bound but for one.
            let near = if spare { 1.3 } else { 1.05 };
            assert!(bound <= objective && objective <= near * bound, "{bound} {objective}");
        }
        if available.is_some() || spare {
            continue;
        }
        let budget = FleetBounds { usd_per_hour: Some(60.0), ..FleetBounds::default() };
        let most = mix(&fleet, FleetObjective::Throughput, &budget, &SolveBudget::default());
        let (objective, bound) = (most.solved.objective.unwrap(), most.solved.bound.unwrap());
        assert!(bound <= objective && objective <= 0.98 * bound, "{bound} {objective}");
        assert!(most.served(&fleet) > 0.0);
        let poor = FleetBounds { usd_per_hour: Some(1.0), ..FleetBounds::default() };
        assert_eq!(
            mix(&fleet, FleetObjective::Cost, &poor, &SolveBudget::default()).solved.status,
            Status::Infeasible
        );
    }
}

/// What prices and a small program find brackets what the solver proves.
#[test]
fn a_bound_by_prices_is_below_the_optimum_and_a_mix_by_groups_above() {
    for seed in 0..20 {
        let fleet = wide(4, 25, (seed % 2 == 0).then_some(3 + seed), seed);
        let bounds = FleetBounds { spare: seed % 3 == 0, ..FleetBounds::default() };
        let proved = best(&fleet, &bounds);
        let found = mixed(&fleet, FleetObjective::Cost, &bounds, &SolveBudget::default());
        match proved.solved.status {
            Status::Optimal => {
                let optimum = proved.solved.objective.unwrap();
                assert!(found.solved.bound.unwrap() <= optimum, "{seed}");
                if let Some(objective) = found.solved.objective {
                    assert!(
                        optimum <= objective && objective <= 1.3 * optimum,
                        "{seed}: {optimum} {objective}"
                    );
                }
            }
            status => {
                assert_eq!(status, Status::Infeasible);
                assert!(found.solved.values.is_none());
            }
        }
    }
}

/// Loads that fill thirteen systems to the last part: rounded up, they take one more.
#[test]
fn loads_that_fill_systems_exactly_are_carried() {
    let kind = SystemKind {
        name: "k0".into(),
        supply_index: 0,
        model: 0,
        usd_per_hour: 0.01,
        usd_per_hour_most: 0.01,
        devices: 1,
        rates: vec![Some(18.5), Some(1.48)],
    };
    let bucket = |name: &str, rate| Bucket { name: name.into(), model: 0, rate, osl: 100 };
    let fleet = Fleet {
        buckets: vec![bucket("b0", 3.0), bucket("b1", 19.0)],
        supplies: vec![SystemSupply { name: "s0".into(), available: None }],
        kinds: vec![kind],
    };
    let found = best(&fleet, &FleetBounds::default());
    assert_eq!((found.solved.status, found.counts), (Status::Optimal, vec![14]));
}
