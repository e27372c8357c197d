//! Evaluation of an offer: its useful configurations, their capacity for every bucket, and its price.

use crate::quantity::datum::Datum;
use crate::report::answer::plan as label;
use crate::report::fleet::FleetInputs;
use crate::search::fleet::rates::{ShapeRates, rates};
use crate::search::point::place;
use crate::search::problem::Problem;
use crate::search::sizing::Totals;
use crate::serving::economy::Bill;
use crate::serving::terms::Lengths;
use crate::spec::defaults::HOUR;
use crate::spec::evidence::EvidenceRule;
use crate::spec::fleet::{PricedOffer, PricingTerms, TrafficBucket};
use crate::spec::objective::Metric;
use crate::spec::price::PriceBasis;
use crate::store::resolved_scenario::ResolvedScenario;

/// A system of an offer in one configuration.
pub(super) struct SystemTrial {
    pub(super) plan: String,
    pub(super) terms: String,
    pub(super) usd_per_hour: f64,
    /// At the upper end of the price range.
    pub(super) usd_per_hour_most: f64,
    pub(super) rates: Vec<Option<f64>>,
    pub(super) shape: ShapeRates,
    /// The buckets that the configuration was evaluated for, in order.
    pub(super) buckets: Vec<usize>,
}

/// The price of an offer on the basis of the comparison.
struct OfferPrice {
    terms: &'static str,
    usd_per_hour: f64,
    usd_per_hour_most: f64,
}

impl OfferPrice {
    /// The given price, else the catalogue's on that basis.
    fn of(resolved: &ResolvedScenario, stated: &PricedOffer, whole: &Totals) -> Result<OfferPrice, String> {
        let basis = resolved.economics.basis;
        let hourly = |bill: &Bill<Datum>| whole.usd_per_second(bill) * HOUR;
        let known = resolved.offered_bill().map(|bill| hourly(&bill));
        let most = resolved.bill_bounds().map(|[_, high]| hourly(&high));
        let usd_per_hour = stated.usd_per_hour.or(known).ok_or_else(|| no_price(&stated.hardware, basis))?;
        let terms = match (stated.terms, basis) {
            (Some(terms), _) => terms.name(),
            (None, _) if stated.usd_per_hour.is_some() => "given price",
            (None, PriceBasis::Rented) => PricingTerms::OnDemand.name(),
            (None, PriceBasis::Owned) => PricingTerms::Owned.name(),
        };
        let usd_per_hour_most = most.filter(|_| stated.usd_per_hour.is_none()).unwrap_or(usd_per_hour);
        Ok(OfferPrice { terms, usd_per_hour, usd_per_hour_most })
    }
}

/// The reason against an offer without a price on the basis of the comparison.
pub(super) fn no_price(hardware: &str, basis: PriceBasis) -> String {
    let (now, other) = (basis.name(), basis.other().name());
    format!(
        "{hardware}: left out, no price is known on the basis {now}; set usd_per_hour, or --price-basis {other}"
    )
}

/// The useful configurations of an offer for the buckets that `ours` names, with their prices.
pub(super) fn try_systems(
    resolved: &ResolvedScenario,
    problem: &Problem,
    inputs: &FleetInputs,
    offer: usize,
    ours: impl Fn(usize) -> bool,
) -> Result<Vec<SystemTrial>, String> {
    let stated = &inputs.offers[offer];
    let lengths =
        |bucket: &TrafficBucket| Lengths { isl: bucket.isl, osl: bucket.osl, prefix: bucket.prefix };
    let mine: Vec<usize> = (0..inputs.buckets.len()).filter(|bucket| ours(*bucket)).collect();
    let wanted: Vec<Lengths> = mine.iter().map(|bucket| lengths(&inputs.buckets[*bucket])).collect();
    // Plans of measured kinds, where the system has any.
    let measured = (problem.space.rule == EvidenceRule::Measured)
        .then(|| rates(&problem.clone().with_measured_only(true), &wanted));
    let shapes = measured.filter(|found| !found.is_empty()).unwrap_or_else(|| rates(problem, &wanted));
    if shapes.is_empty() {
        return Err(format!(
            "{}: it serves no bucket of {} within the SLOs",
            stated.hardware, resolved.model.name
        ));
    }
    shapes
        .into_iter()
        .map(|shape| {
            let devices = problem.cluster.devices();
            // An owned system pays for the power of its most demanding load.
            let idle = problem.idle(devices.saturating_sub(shape.candidate.devices())).watts;
            let drawn = shape.carried.iter().flatten().map(|carried| carried.point[place(Metric::Watts)]);
            let watts = drawn.fold(f64::NAN, f64::max) + idle;
            let whole =
                Totals { output_tok_s: 0.0, watts: Some(watts).filter(|watts| watts.is_finite()), devices };
            let price = OfferPrice::of(resolved, stated, &whole)?;
            let mut rates = vec![None; inputs.buckets.len()];
            for (bucket, carried) in mine.iter().zip(&shape.carried) {
                rates[*bucket] = carried.as_ref().map(|carried| carried.requests_per_s);
            }
            let weights = &problem.formats[shape.candidate.formats].weights;
            let plan = format!("{} {weights}", label(&shape.candidate).label);
            let buckets = mine.clone();
            let OfferPrice { terms, usd_per_hour, usd_per_hour_most } = price;
            let terms = terms.to_owned();
            Ok(SystemTrial { plan, terms, usd_per_hour, usd_per_hour_most, rates, shape, buckets })
        })
        .collect()
}
