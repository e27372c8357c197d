//! Prices: a plan costs what its parts cost, on one basis, and a budget holds at the upper end.

use std::sync::LazyLock;

use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::report::recommend::report::RecommendReport;
use mantile::report::recommend::{Build, Recommendation, recommend as ranked};
use mantile::request::UNCONTROLLED;
use mantile::request::fleet::{FleetRequest, fleet};
use mantile::request::recommend::{RecommendRequest, recommend};
use mantile::serving::economy::{Bill, usd_per_second};
use mantile::spec::fleet::{FleetFile, PricedOffer, PricingTerms, TrafficBucket};
use mantile::spec::price::PriceBasis;
use mantile::spec::rule::Allowance;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::inventory::SystemOption;
use mantile::store::resolved_scenario::ResolvedScenario;
use proptest::prelude::*;

const SMALL: &str = "Llama-3.2-3B-Instruct";

/// Every offer of the catalogue.
static MARKET: LazyLock<Vec<SystemOption>> =
    LazyLock::new(|| Catalog::default().inventory(&[]).unwrap().systems);

/// The prices of an offer in a scenario; none where the model does not run on it.
fn resolved(offer: &SystemOption, scenario: &Scenario) -> Option<ResolvedScenario> {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::default);
    let found = CATALOG.built(SMALL).unwrap();
    ResolvedScenario::placed(&CATALOG, scenario, found, offer.cluster.clone()).ok()
}

fn owned() -> Scenario {
    Scenario { price_basis: Some(PriceBasis::Owned), ..Scenario::default() }
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// An hour costs the parts of the purchase over the hours of service, and the energy of devices and nodes.
    #[test]
    fn the_price_of_a_plan_adds_up_from_its_parts(
        offer in 0..MARKET.len(),
        (devices, watts) in (1u64..64, prop::option::of(1.0..1e5)),
        (months, used) in (1.0..120.0, 0.05..1.0),
        (electricity, pue) in (0.0..1.0, 1.0..2.0),
    ) {
        let scenario = Scenario {
            amortization_months: Some(months),
            utilization: Some(used),
            electricity_usd_per_kwh: Some(electricity),
            pue: Some(pue),
            ..owned()
        };
        let Some(resolved) = resolved(&MARKET[offer], &scenario) else { return Ok(()) };
        let Some(bought) = &resolved.economics.purchase else { return Ok(()) };
        let whole = |high: Option<bool>| -> f64 {
            let usd = |high: Option<bool>| -> f64 {
                bought.parts().iter().map(|part| high.map_or(part.price.value, |high| part.end(high).value)).sum()
            };
            let seconds = months * 365.2425 / 12.0 * 86400.0 * used;
            let drawn = watts.unwrap_or(0.0) + devices as f64 * resolved.economics.node_power.value;
            devices as f64 * usd(high) / seconds + drawn * pue * electricity / 3.6e6
        };
        let cost = |bill: &Bill<_>| usd_per_second(Qty(devices as f64), watts.map(Qty), &bill.read(&Plain)).value();
        prop_assert!(near(cost(&resolved.bill().unwrap()), whole(None)));
        if let Some([low, high]) = resolved.bill_bounds() {
            prop_assert!(near(cost(&low), whole(Some(false))) && near(cost(&high), whole(Some(true))));
            prop_assert!(whole(Some(false)) <= whole(None) && whole(None) <= whole(Some(true)));
        }
    }
}

/// Whoever buys an offer has a machine: with a host, its power, and a network where hosts are joined by one.
#[test]
fn what_is_sold_includes_host_power_and_network() {
    let mut sold = 0;
    for offer in MARKET.iter().filter(|offer| offer.cluster.sells()) {
        let Some(resolved) = resolved(offer, &owned()) else { continue };
        let Some(bought) = &resolved.economics.purchase else { continue };
        let (cluster, id) = (&offer.cluster, &offer.id);
        let whole = cluster.price.purchase.is_some() || cluster.device.is_machine();
        assert_eq!(bought.host_class.is_none(), whole, "{id}");
        assert_eq!(bought.host.price.value > 0.0, !whole, "{id}");
        assert!(whole || resolved.economics.node_power.value > 0.0, "{id}");
        assert_eq!(bought.network.price.value > 0.0, cluster.networked, "{id}");
        let priced = bought.parts().into_iter().filter(|part| part.price.value > 0.0);
        for part in priced.filter(|part| part.price.source.grade != mantile::quantity::datum::Grade::Assumed)
        {
            assert!(part.price.date.is_some(), "{id}: {} has no date", part.price);
        }
        sold += 1;
    }
    assert!(sold > 50, "{sold} offers are sold");
    let sells = |id: &str| MARKET.iter().find(|offer| offer.id == id).unwrap().cluster.sells();
    assert!(sells("dgx-h200") && sells("rtx-4090-x2") && sells("mac-studio-m3-ultra-512"));
    assert!(!sells("aws-p5-48xlarge") && !sells("h100-sxm-x1") && !sells("4 devices of dgx-h100"));
}

fn answer(request: &RecommendRequest) -> Recommendation {
    match recommend(&Catalog::default(), request, &UNCONTROLLED).unwrap() {
        RecommendReport::Hardware(found) => *found,
        RecommendReport::Models(_) => panic!("hardware was wanted"),
    }
}

fn small(only: &[&str], scenario: Scenario) -> RecommendRequest {
    RecommendRequest {
        target_tok_s: Some(20.0),
        only: only.iter().map(|word| (*word).to_owned()).collect(),
        scenario: Scenario { model: Some(SMALL.into()), ..scenario },
        ..RecommendRequest::default()
    }
}

/// Offers at home and in a cloud, with a rent, a purchase price, or both.
static MIXED: LazyLock<Recommendation> = LazyLock::new(|| {
    answer(&small(&["nvidia-rtx-4090", "nvidia-l40s", "apple-m4-max", "google-tpu-v6e"], Scenario::default()))
});

fn named(answer: &Recommendation) -> impl Iterator<Item = &Build> {
    [&answer.minimum, &answer.cheapest, &answer.value].into_iter().flatten().chain(&answer.tiers)
}

#[test]
fn a_comparison_has_one_basis_and_says_what_it_leaves_out() {
    let stated = |basis| Scenario { price_basis: Some(basis), ..Scenario::default() };
    let words = ["nvidia-rtx-4090", "nvidia-l40s", "apple-m4-max", "google-tpu-v6e"];
    let rented = answer(&small(&words, stated(PriceBasis::Rented)));
    for (answer, basis) in [(&*MIXED, PriceBasis::Owned), (&rented, PriceBasis::Rented)] {
        assert_eq!(answer.sought.price_basis, Some(basis));
        for build in &answer.builds {
            let priced = build.money.basis == Some(basis);
            assert!(priced || build.money.usd_per_hour.is_none(), "{}", build.name);
            assert_eq!(!priced, build.standing == "unpriced", "{}", build.name);
            let why = build.because.as_deref().unwrap_or_default();
            assert!(priced || why.contains("--price-basis"), "{}: {why}", build.name);
        }
        assert!(answer.builds.iter().any(|build| build.standing == "unpriced"));
        assert!(named(answer).all(|build| build.money.basis == Some(basis)));
    }
    let cloud = answer(&small(&["nvidia-l40s"], Scenario::default()));
    assert_eq!(cloud.sought.price_basis, Some(PriceBasis::Rented), "every offer has a rent");
}

#[test]
fn the_parts_of_a_purchase_add_up_and_lie_within_the_range() {
    let bought = MIXED.builds.iter().filter_map(|build| Some((build, build.money.buy_usd?)));
    for (build, usd) in bought {
        let money = &build.money;
        let parts = [money.devices_usd, money.hosts_usd, money.network_usd].map(Option::unwrap);
        assert!(near(parts.iter().sum(), usd), "{}", build.name);
        assert_eq!(parts[1] > 0.0, money.host.is_some(), "{}", build.name);
        let hours = money.amortization_months.unwrap() * 365.2425 / 12.0 * 24.0 * money.utilization.unwrap();
        let hourly = usd / hours + money.electricity_usd_per_hour.unwrap();
        assert!(near(hourly, money.usd_per_hour.unwrap()), "{}", build.name);
        for (ends, value) in
            [(money.buy_usd_range, money.buy_usd), (money.usd_per_hour_range, money.usd_per_hour)]
        {
            let (Some([low, high]), Some(value)) = (ends, value) else { continue };
            assert!(low <= value && value <= high, "{}", build.name);
        }
        assert!(!money.dated.is_empty(), "{}", build.name);
    }
}

/// The answer ranked again under another budget, with these builds unmeasured.
fn again(most: [Option<f64>; 2], unmeasured: &[bool]) -> Recommendation {
    let Recommendation { scenario, mut sought, mut builds, missed, looked, .. } = MIXED.clone();
    [sought.budget_usd, sought.budget_usd_per_hour] = most;
    for (at, build) in builds.iter_mut().enumerate() {
        (build.standing, build.because) = (String::new(), None);
        build.unmeasured = unmeasured.get(at).filter(|far| **far).map(|_| "nothing was measured".to_owned());
    }
    ranked((scenario, sought), builds, missed, (looked, 5))
}

proptest! {
    /// What is named fits the budget at the upper end of its price, and nothing that fits is refused.
    #[test]
    fn a_budget_holds_at_the_upper_end(
        whole in prop::option::of(500.0..60_000.0), hourly in prop::option::of(0.01..6.0),
    ) {
        let answer = again([whole, hourly], &[]);
        let fits = |build: &Build| {
            let below = |value: Option<f64>, most: Option<f64>| most.is_none_or(|most| value.is_some_and(|usd| usd <= most));
            below(build.money.most_usd(), whole) && below(build.money.most_usd_per_hour(), hourly)
        };
        prop_assert!(named(&answer).all(fits));
        for build in answer.builds.iter().filter(|build| build.standing != "unpriced") {
            prop_assert_eq!(build.standing == "over budget", !fits(build), "{}", build.name);
        }
    }

    #[test]
    fn an_unmeasured_device_never_wins(far in prop::collection::vec(any::<bool>(), 64)) {
        let answer = again([None, None], &far);
        prop_assert!(named(&answer).all(|build| build.unmeasured.is_none()));
        let dominating = answer.builds.iter().filter(|build| build.standing == "dominated");
        for build in dominating {
            let by = build.because.clone().unwrap();
            let other = |other: &Build| format!("{}, {}", other.name, other.each.weight_format) == by;
            prop_assert!(answer.builds.iter().any(|build| other(build) && build.unmeasured.is_none()));
        }
    }
}

/// Devices of a vendor without a measurement compete only by name, or where they are allowed.
#[test]
fn unmeasured_devices_compete_by_name_or_where_allowed() {
    let is_far = |build: &&Build| build.device.contains("Tenstorrent") || build.device.contains("Intel");
    let far = |answer: &Recommendation| answer.builds.iter().filter(is_far).cloned().collect::<Vec<_>>();
    let class = far(&answer(&small(&["workstation"], Scenario::default())));
    assert!(!class.is_empty() && class.iter().all(|build| build.unmeasured.is_some()));
    let allowed = Scenario { allow: Some(vec![Allowance::Unmeasured]), ..Scenario::default() };
    for request in [small(&["workstation"], allowed), small(&["intel-arc-pro-b60"], Scenario::default())] {
        let found = far(&answer(&request));
        assert!(!found.is_empty() && found.iter().all(|build| build.unmeasured.is_none()));
    }
}

fn offer(hardware: &str, terms: Option<PricingTerms>) -> PricedOffer {
    PricedOffer { hardware: hardware.into(), terms, usd_per_hour: None, available: None }
}

#[test]
fn a_fleet_has_one_basis() {
    let request = |price_basis, offers: &[PricedOffer]| FleetRequest {
        fleet: FleetFile {
            model: Some(SMALL.into()),
            buckets: vec![TrafficBucket { isl: 512, osl: 128, rate: 2.0, prefix: 0, model: None }],
            offers: offers.to_vec(),
            ..FleetFile::default()
        },
        price_basis,
        ..FleetRequest::default()
    };
    let requested =
        |basis, offers: &[PricedOffer]| fleet(&Catalog::default(), &request(basis, offers), &UNCONTROLLED);
    let plain = [offer("l40s-x1", None), offer("rtx-4090-x1", None)];
    for (basis, expected) in [(None, PriceBasis::Rented), (Some(PriceBasis::Owned), PriceBasis::Owned)] {
        let found = requested(basis, &plain).unwrap();
        assert_eq!(found.question.price_basis, Some(expected));
        let terms = if expected == PriceBasis::Owned { "owned" } else { "on-demand" };
        assert!(!found.systems.is_empty() && found.systems.iter().all(|system| system.offer == terms));
        assert!(found.usd_per_hour_most >= found.usd_per_hour);
    }
    let both = [offer("l40s-x1", Some(PricingTerms::Spot)), offer("rtx-4090-x1", Some(PricingTerms::Owned))];
    assert_eq!(requested(None, &both).unwrap_err().key, "price_basis");
    let found = requested(Some(PriceBasis::Owned), &both).unwrap();
    assert!(found.systems.iter().all(|system| system.hardware.contains("4090")));
    assert!(found.unserved.iter().any(|line| line.starts_with("l40s-x1: left out")), "{:?}", found.unserved);
}
