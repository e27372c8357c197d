//! Evaluation of an offer: its useful configurations, their capacity for every bucket, and its price.

use crate::report::answer::plan as label;
use crate::report::fleet::FleetInputs;
use crate::search::fleet::rates::{ShapeRates, rates};
use crate::search::point::place;
use crate::search::problem::Problem;
use crate::search::sizing::Totals;
use crate::serving::terms::Lengths;
use crate::spec::defaults::HOUR;
use crate::spec::fleet::{PricingTerms, TrafficBucket};
use crate::spec::objective::Metric;
use crate::store::resolved_scenario::ResolvedScenario;

/// A system of an offer in one configuration.
pub(super) struct SystemTrial {
    pub(super) plan: String,
    pub(super) terms: String,
    pub(super) usd_per_hour: f64,
    pub(super) rates: Vec<Option<f64>>,
    pub(super) shape: ShapeRates,
    /// The buckets that the configuration was evaluated for, in order.
    pub(super) buckets: Vec<usize>,
}

/// The useful configurations of an offer for the buckets that `ours` names, with their prices.
pub(super) fn try_systems(
    resolved: &ResolvedScenario,
    problem: &Problem,
    asked: &FleetInputs,
    offer: usize,
    ours: impl Fn(usize) -> bool,
) -> Result<Vec<SystemTrial>, String> {
    let stated = &asked.offers[offer];
    let lengths =
        |bucket: &TrafficBucket| Lengths { isl: bucket.isl, osl: bucket.osl, prefix: bucket.prefix };
    let mine: Vec<usize> = (0..asked.buckets.len()).filter(|bucket| ours(*bucket)).collect();
    let wanted: Vec<Lengths> = mine.iter().map(|bucket| lengths(&asked.buckets[*bucket])).collect();
    let shapes = rates(problem, &wanted);
    if shapes.is_empty() {
        return Err(format!(
            "{}: it serves no bucket of {} within the SLOs",
            stated.hardware, resolved.model.name
        ));
    }
    let owned = stated.terms == Some(PricingTerms::Owned);
    let bill = if owned { resolved.owned() } else { resolved.rented().or_else(|| resolved.owned()) };
    let rented = resolved.rented().is_some() && !owned;
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
            let known = bill.as_ref().map(|bill| whole.usd_per_second(bill) * HOUR);
            let usd_per_hour = stated
                .usd_per_hour
                .or(known)
                .ok_or_else(|| format!("{}: no known price; set usd_per_hour", stated.hardware))?;
            let terms = match (stated.terms, rented) {
                (Some(terms), _) => terms.name(),
                (None, _) if stated.usd_per_hour.is_some() => "given price",
                (None, true) => PricingTerms::OnDemand.name(),
                (None, false) => PricingTerms::Owned.name(),
            };
            let mut rates = vec![None; asked.buckets.len()];
            for (bucket, carried) in mine.iter().zip(&shape.carried) {
                rates[*bucket] = carried.as_ref().map(|carried| carried.requests_per_s);
            }
            let weights = &problem.formats[shape.candidate.formats].weights;
            let plan = format!("{} {weights}", label(&shape.candidate).label);
            let (terms, buckets) = (terms.to_string(), mine.clone());
            Ok(SystemTrial { plan, terms, usd_per_hour, rates, shape, buckets })
        })
        .collect()
}
