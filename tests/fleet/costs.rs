//! Costs of fleets: parts add up to the whole, headroom and hours do what they say.

use mantile::report::fleet::FleetResult;
use mantile::request::UNCONTROLLED;
use mantile::request::fleet::{FleetRequest, fleet};
use mantile::spec::fleet::{FleetFile, PricedOffer, TrafficBucket};
use mantile::spec::price::PriceBasis;
use mantile::store::catalog::Catalog;
use proptest::prelude::*;

use crate::cases::each;

fn request(buckets: &[(u64, u64, f64)]) -> FleetRequest {
    let bucket =
        |&(isl, osl, rate): &(u64, u64, f64)| TrafficBucket { isl, osl, rate, prefix: 0, model: None };
    let offer = |name: &str| PricedOffer {
        hardware: name.to_owned(),
        terms: None,
        usd_per_hour: None,
        available: None,
    };
    let fleet = FleetFile {
        model: Some("Llama-3.1-8B".into()),
        buckets: buckets.iter().map(bucket).collect(),
        offers: ["1xl40s", "1xh100", "2xh100"].map(offer).to_vec(),
        ..FleetFile::default()
    };
    FleetRequest { fleet, price_basis: Some(PriceBasis::Rented), ..FleetRequest::default() }
}

fn answer(request: &FleetRequest) -> FleetResult {
    fleet(&Catalog::default(), request, &UNCONTROLLED).unwrap()
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-6 * expected.abs().max(1e-9)
}

fn traffic() -> impl Strategy<Value = Vec<(u64, u64, f64)>> {
    let isl = prop::sample::select(vec![64u64, 512, 2048, 6000]);
    let osl = prop::sample::select(vec![16u64, 128, 512, 1500]);
    prop::collection::vec((isl, osl, 0.2..40.0), 1..4)
}

/// Buckets add up to the fleet, and tokens at their prices cost what the fleet costs.
#[test]
fn costs_add_up() {
    each(12, traffic(), |traffic| {
        let found = answer(&request(&traffic));
        let Some(costs) = &found.costs else { return Err(TestCaseError::reject("no fleet")) };
        let usd = found.usd_per_hour.unwrap();
        let of_buckets: f64 = costs.buckets.iter().map(|bucket| bucket.usd_per_hour).sum();
        prop_assert!(near(of_buckets, usd), "{} of {}", of_buckets, usd);
        let paid = |bucket: &mantile::report::fleet::costs::BucketCosts| {
            let requests = bucket.requests_per_s * 3600.0;
            let tokens =
                bucket.isl as f64 * bucket.usd_per_mtok_in + bucket.osl as f64 * bucket.usd_per_mtok_out;
            requests * tokens / 1e6
        };
        for bucket in &costs.buckets {
            prop_assert!(near(paid(bucket), bucket.usd_per_hour), "{:?}", bucket);
            let thousand = bucket.usd_per_1k_requests * bucket.requests_per_s * 3.6;
            prop_assert!(near(thousand, bucket.usd_per_hour), "{:?}", bucket);
            prop_assert!(bucket.usd_per_mtok_in >= 0.0 && bucket.usd_per_mtok_out >= 0.0);
        }
        let tokens = |of: fn(&(u64, u64, f64)) -> u64| -> f64 {
            traffic.iter().map(|bucket| bucket.2 * of(bucket) as f64 * 3600.0 / 1e6).sum()
        };
        let (inputs, outputs) = (tokens(|bucket| bucket.0), tokens(|bucket| bucket.1));
        let by_token = inputs * costs.usd_per_mtok_in + outputs * costs.usd_per_mtok_out;
        prop_assert!(near(by_token, usd), "{} of {}", by_token, usd);
        prop_assert!(near((inputs + outputs) * costs.usd_per_mtok, usd));
        prop_assert!(near(costs.usd_per_day, 24.0 * usd) && near(costs.usd_per_month, 365.2425 * 2.0 * usd));
        prop_assert!(near(costs.usd_per_year, 365.2425 * 24.0 * usd));
        Ok(())
    });
}

/// More free capacity is never cheaper, and leaves that share of every system free.
#[test]
fn headroom_stays_free() {
    let at = |headroom| answer(&FleetRequest { headroom, ..request(&[(2048, 512, 30.0), (512, 128, 50.0)]) });
    let (none, some, half) = (at(None), at(Some(0.2)), at(Some(0.5)));
    let usd = |found: &FleetResult| found.usd_per_hour.unwrap();
    assert!(
        usd(&none) <= usd(&some) && usd(&some) <= usd(&half),
        "{:?}",
        [usd(&none), usd(&some), usd(&half)]
    );
    assert!(usd(&half) >= 1.9 * usd(&none), "half of every system is free: {}", usd(&half) / usd(&none));
    assert_eq!(usd(&at(Some(0.0))), usd(&none));
    let wrong = FleetRequest { headroom: Some(1.0), ..request(&[(512, 128, 1.0)]) };
    let fault = fleet(&Catalog::default(), &wrong, &UNCONTROLLED).unwrap_err();
    assert_eq!(fault.key, "headroom");
}

/// Rented machines are paid for the hours that they run; owned ones for all, spread over those hours.
#[test]
fn hours_a_day_are_paid() {
    let at = |basis, hours_per_day| {
        let price_basis = Some(basis);
        let requested = FleetRequest { hours_per_day, price_basis, ..request(&[(2048, 512, 10.0)]) };
        answer(&requested).costs.unwrap()
    };
    let rented = [None, Some(8.0)].map(|hours| at(PriceBasis::Rented, hours));
    assert_eq!(rented[0].usd_per_hour, rented[1].usd_per_hour);
    assert!(near(rented[1].usd_per_day, rented[0].usd_per_day / 3.0));
    let owned = [Some(24.0), Some(8.0)].map(|hours| at(PriceBasis::Owned, hours));
    assert!(
        owned[1].usd_per_hour > 2.0 * owned[0].usd_per_hour,
        "the price of a machine is spread over 8 hours"
    );
    assert!(owned[1].usd_per_day < owned[0].usd_per_day, "less electricity");
}
