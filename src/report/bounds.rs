//! Cost of a result at the lowest and the highest known price.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::datum::Datum;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::quantity::unit::humanize;
use crate::search::problem::Problem;
use crate::serving::economy::{Bill, usd_per_second, usd_per_token};
use crate::serving::evaluate::Evaluation;
use crate::spec::objective::Metric;

/// Cost at both ends of a price range.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PriceBounds {
    /// At the lowest price.
    pub low: PriceBound,
    /// At the highest price.
    pub high: PriceBound,
}

/// One end of a price range.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PriceBound {
    /// The price of one device with its share of host and network, e.g. `rent 2.35 USD/h`.
    pub price: String,
    /// Source of the price.
    pub source: String,
    /// US dollars per million output tokens at that price.
    pub usd_per_mtok: f64,
}

/// One end of a problem's price range, as every deployment pays it.
pub struct PriceEnd {
    price: String,
    source: String,
    bill: Bill<Qty<f64>>,
}

/// Both ends, if the price used by the problem has bounds.
pub fn price_ends(problem: &Problem) -> Option<[PriceEnd; 2]> {
    let end = |bill: &Bill<Datum>| {
        let (price, usd) = match bill {
            Bill::Rented(rent) => (rent, rent.value),
            Bill::Owned(owned) => {
                (&owned.purchase, owned.purchase.value + owned.host.value + owned.network.value)
            }
        };
        PriceEnd {
            price: format!("{} {}", price.symbol, humanize(usd, price.unit)),
            source: price.source.text.to_string(),
            bill: bill.read(&Plain),
        }
    };
    Some(problem.bill_bounds.as_ref()?.each_ref().map(end))
}

/// The cost of a deployment at both ends.
pub fn price_bounds(ends: &[PriceEnd; 2], evaluation: &Evaluation<Qty<f64>>) -> PriceBounds {
    let metrics = &evaluation.metrics;
    let [low, high] = ends.each_ref().map(|end| {
        let spent = usd_per_second(metrics.devices, metrics.watts, &end.bill);
        let per_token = usd_per_token(spent, metrics.output_tok_s).value();
        PriceBound {
            price: end.price.clone(),
            source: end.source.clone(),
            usd_per_mtok: per_token / Metric::UsdPerMtok.entry().scale,
        }
    });
    PriceBounds { low, high }
}
