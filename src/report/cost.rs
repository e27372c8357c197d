//! The cost row of an answer: by time and by token, in one form everywhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inputs::ReportInputs;
use super::number::{digits, plain};
use super::result::ReportedDeployment;
use crate::spec::price::{HOURS_OF_A_DAY, PriceBasis};

/// Cost of a deployment, in US dollars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostReport {
    /// Whether the hardware is owned or rented; null where its devices differ.
    pub price_basis: Option<PriceBasis>,
    /// Hours of a day in which the hardware serves.
    pub hours_per_day: f64,
    /// Cost per hour.
    pub usd_per_hour: f64,
    /// Cost per day, over the hours of a day in which the hardware serves.
    pub usd_per_day: f64,
    /// Cost per month.
    pub usd_per_month: f64,
    /// Cost per million output tokens.
    pub usd_per_mtok: f64,
    /// Output tokens per US dollar.
    pub tok_per_usd: f64,
}

impl CostReport {
    /// The cost of a deployment; none without a price.
    pub fn of(deployment: &ReportedDeployment, inputs: &ReportInputs) -> Option<CostReport> {
        let metrics = deployment.metrics.as_ref()?;
        Some(CostReport {
            price_basis: inputs.price_basis,
            hours_per_day: inputs.hours_per_day.unwrap_or(HOURS_OF_A_DAY),
            usd_per_hour: metrics.usd_per_hour?,
            usd_per_day: metrics.usd_per_day?,
            usd_per_month: metrics.usd_per_month?,
            usd_per_mtok: metrics.usd_per_mtok?,
            tok_per_usd: metrics.tok_per_usd?,
        })
    }

    /// Its label: `cost, owned`.
    pub fn label(&self) -> &'static str {
        match self.price_basis {
            Some(PriceBasis::Owned) => "cost, owned",
            Some(PriceBasis::Rented) => "cost, rented",
            None => "cost",
        }
    }

    /// The row, with remarks on the cost of an hour and of a token.
    pub fn row(&self, of_hour: &str, of_token: &str) -> String {
        let hours = hours_words(self.hours_per_day);
        format!(
            "{} USD/h{of_hour}, {}/day{hours}, {}/month; {} USD/Mtok of output{of_token}, {} tok/USD",
            digits(self.usd_per_hour),
            digits(self.usd_per_day),
            digits(self.usd_per_month),
            digits(self.usd_per_mtok),
            digits(self.tok_per_usd)
        )
    }
}

/// The hours of a day in words; none for a whole day.
pub fn hours_words(hours: f64) -> String {
    if hours == HOURS_OF_A_DAY { String::new() } else { format!(" of {} hours", plain(hours)) }
}
