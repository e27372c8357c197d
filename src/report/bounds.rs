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

/// Both ends, if the price used by the problem has bounds.
pub fn price_bounds(problem: &Problem, evaluation: &Evaluation<Qty<f64>>) -> Option<PriceBounds> {
    let metrics = &evaluation.metrics;
    let end = |bill: &Bill<Datum>| {
        let (price, usd) = match bill {
            Bill::Rented(rent) => (rent, rent.value),
            Bill::Owned(owned) => {
                (&owned.purchase, owned.purchase.value + owned.host.value + owned.network.value)
            }
        };
        let spent = usd_per_second(metrics.devices, metrics.watts, &bill.read(&Plain));
        let per_token = usd_per_token(spent, metrics.output_tok_s).value();
        PriceBound {
            price: format!("{} {}", price.symbol, humanize(usd, price.unit)),
            source: price.source.text.to_string(),
            usd_per_mtok: per_token / Metric::UsdPerMtok.entry().scale,
        }
    };
    let [low, high] = problem.bill_bounds.as_ref()?;
    Some(PriceBounds { low: end(low), high: end(high) })
}
