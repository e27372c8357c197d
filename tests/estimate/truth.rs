//! One truth: `fleet` and `recommend` take as many systems as `optimize` proves, on random small questions.

use std::cell::Cell;

use mantile::report::fleet::FleetInputs;
use mantile::request::UNCONTROLLED;
use mantile::request::fleet::build_problem::{build_problem, solved};
use mantile::search::fleet::FleetObjective;
use mantile::search::outcome::{EvaluatedCandidate, Status};
use mantile::search::problem::Traffic;
use mantile::search::run::{UNWATCHED, run};
use mantile::search::sizing::size;
use mantile::spec::evidence::EvidenceRule;
use mantile::spec::fleet::{PricedOffer, TrafficBucket};
use mantile::spec::objective::LatencyLimits;
use mantile::spec::percentile::Confidence;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use proptest::prelude::*;

use super::ask::{ask, on};
use super::cases;

/// Systems of one to four devices.
const OFFERS: [&str; 6] = ["1xh100-sxm", "2xh100-sxm", "4xh100-sxm", "2xrtx-4090", "4xl40s", "2xmi300x"];
const MODELS: [&str; 4] = ["Llama-3.1-8B", "gpt-oss-20b", "Qwen3-30B-A3B", "TinyLlama-1.1B-Chat-v1.0"];

/// Rates of a fleet are this near to the most, and loads are rounded up to a part in a hundred thousand.
const CLOSE: f64 = 3e-4;
/// Systems beyond which a draw says nothing more.
const MANY: u64 = 24;

/// A question of one length with limits in seconds.
#[derive(Clone, Debug)]
struct Small {
    model: &'static str,
    offer: &'static str,
    lengths: (u64, u64),
    limits: (Option<f64>, Option<f64>),
    rate: f64,
    users: u64,
}

fn small() -> impl Strategy<Value = Small> {
    let limit = |least: f64, most: f64| prop_oneof![1 => Just(None), 3 => (least..most).prop_map(Some)];
    (
        prop::sample::select(&MODELS),
        prop::sample::select(&OFFERS),
        (64u64..6000, 2u64..600),
        (limit(0.1, 3.0), limit(0.006, 0.08)),
        // Rates of every size.
        (-1.0..2.0f64).prop_map(|power| 10f64.powf(power)),
        1u64..400,
    )
        .prop_map(|(model, offer, lengths, limits, rate, users)| Small {
            model,
            offer,
            lengths,
            limits,
            rate,
            users,
        })
}

impl Small {
    fn scenario(&self, hardware: &str) -> Scenario {
        let spell = |limit: Option<f64>| Some(limit.map_or("none".to_string(), |limit| format!("{limit} s")));
        Scenario {
            isl: Some(self.lengths.0),
            osl: Some(self.lengths.1),
            ttft: spell(self.limits.0),
            tpot: spell(self.limits.1),
            e2e: spell(None),
            objective: Some("min-chips".into()),
            risk: Some(Confidence::Median),
            evidence: Some(EvidenceRule::Any),
            ..on(self.model, hardware)
        }
    }

    /// What `optimize --rate` finds on some hardware.
    fn at_rate(&self, hardware: &str, rate: f64) -> Option<EvaluatedCandidate> {
        let mut problem = ask(&Scenario { rate: Some(rate), ..self.scenario(hardware) }).unwrap();
        problem.axes.clear();
        run(&problem, &UNWATCHED).best
    }

    /// How many systems the fleet takes; none where it is infeasible.
    fn fleet(&self) -> Option<u64> {
        let (isl, osl) = self.lengths;
        let requested = FleetInputs {
            models: vec![],
            buckets: vec![TrafficBucket { isl, osl, rate: self.rate, prefix: 0, model: None }],
            offers: vec![PricedOffer {
                hardware: self.offer.into(),
                terms: None,
                usd_per_hour: Some(1.0),
                available: None,
            }],
            limits: LatencyLimits { ttft: self.limits.0, tpot: self.limits.1, e2e: None },
            aim: FleetObjective::Devices,
            budget_usd_per_hour: None,
            price_basis: None,
            max_devices: None,
            spare: false,
            headroom: None,
            hours_per_day: None,
            assumed: vec![],
        };
        let posed =
            build_problem(&Catalog::default(), requested, self.scenario(self.offer), &UNCONTROLLED).unwrap();
        let answer = solved(&posed);
        match answer.certificate.status {
            Status::Optimal => Some(answer.systems.iter().map(|system| system.count).sum()),
            Status::Infeasible => None,
            other => panic!("{other:?}: {self:?}"),
        }
    }
}

#[test]
fn a_fleet_takes_as_many_systems_as_optimize_proves() {
    let (compared, split) = (Cell::new(0), Cell::new(0));
    cases::each(8, small(), |small| {
        let Some(systems) = small.fleet() else {
            prop_assert!(
                small.at_rate(small.offer, 1e-3).is_none(),
                "{small:?}: infeasible, but not to optimize"
            );
            return Ok(());
        };
        if systems > MANY {
            return Ok(());
        }
        let each = small.rate / systems as f64;
        let best = small.at_rate(small.offer, each * (1.0 - CLOSE));
        prop_assert!(best.is_some(), "{small:?}: {systems} systems do not carry it");
        split.set(split.get() + u32::from(best.is_some_and(|best| best.candidate.is_disaggregated())));
        compared.set(compared.get() + 1);
        // Systems without a network between them serve side by side alone.
        let nodes = format!("{systems}x{}", small.offer);
        if ask(&small.scenario(&nodes)).is_ok() {
            prop_assert!(
                small.at_rate(&nodes, small.rate * (1.0 - CLOSE)).is_some(),
                "{small:?}: not {nodes}"
            );
        }
        if systems > 1 {
            let more = small.rate / (systems - 1) as f64 * (1.0 + CLOSE);
            prop_assert!(
                small.at_rate(small.offer, more).is_none(),
                "{small:?}: {systems} systems, fewer do"
            );
        }
        Ok(())
    });
    if std::env::var_os("PROPTEST_CASES").is_none() {
        assert!(compared.get() > 1, "{} compared", compared.get());
    }
    eprintln!("{} compared, {} of them with prefill and decode split", compared.get(), split.get());
}

#[test]
fn a_recommendation_takes_as_many_copies_as_optimize_proves() {
    let (compared, several) = (Cell::new(0), Cell::new(0));
    cases::each(12, small(), |small| {
        let problem = ask(&small.scenario(small.offer)).unwrap();
        let with = |share: u64| {
            let mut problem = problem.clone();
            problem.axes.clear();
            problem.traffic = Traffic::InFlight(share.into());
            run(&problem, &UNWATCHED).best
        };
        match size(&problem, small.users) {
            Err(_) => prop_assert!(with(1).is_none(), "{small:?}: does not serve, but optimize does"),
            Ok(sized) => {
                compared.set(compared.get() + 1);
                several.set(several.get() + u32::from(sized.copies > 1));
                let share = small.users.div_ceil(sized.copies);
                prop_assert_eq!(share, sized.share);
                prop_assert!(with(share).is_some(), "{:?}: {} copies do not serve", small, sized.copies);
                prop_assert!(
                    problem
                        .missed(&sized.at_share.point, sized.at_share.candidate.margin(&problem))
                        .is_none(),
                    "{:?}",
                    small
                );
                let fewer = sized.copies.checked_sub(1).filter(|copies| *copies > 0);
                if let Some(share) = fewer.map(|copies| small.users.div_ceil(copies)) {
                    prop_assert!(with(share).is_none(), "{:?}: {} copies, fewer do", small, sized.copies);
                }
            }
        }
        Ok(())
    });
    if std::env::var_os("PROPTEST_CASES").is_none() {
        assert!(compared.get() > 3, "{} compared, {} of several", compared.get(), several.get());
    }
}
