//! The table of metrics, one row each. Every list of metrics in the crate is made from it.

/// Hands every row of the table to the macro `$make`.
///
/// A row has the name in flags; the column, with its unit, in reports; base units per unit of the column; the better
/// direction; how a value is written; the input without which it is unknown; its words in a sentence and in the head of
/// a table; the symbol of the formula that makes it; and its definition. `reported_only` says why the search has no use
/// for it as an objective or an axis. `json` is its type in the metrics of a report; a row without it has its own place
/// there.
macro_rules! metric_table {
    ($make:ident) => {
        $make! {
            Ttft {
                name: "ttft", column: ttft_ms, scale: 1e-3,
                direction: Minimize, format: Time, needs: Nothing,
                word: "TTFT", heading: "TTFT ms", formula: Some("ttft"),
                meaning: "time from sending a request to its first output token",
                json: f64,
            }
            Tpot {
                name: "tpot", column: tpot_ms, scale: 1e-3,
                direction: Minimize, format: Time, needs: Nothing,
                word: "TPOT", heading: "TPOT ms", formula: Some("tpot"),
                meaning: "mean time per output token of a request after its first token (mean ITL)",
                json: f64,
            }
            E2e {
                name: "e2e", column: e2e_ms, scale: 1e-3,
                direction: Minimize, format: Time, needs: Nothing,
                word: "E2E", heading: "E2E ms", formula: Some("e2e"),
                meaning: "time from sending a request to its last token: TTFT + (OSL - 1) x TPOT",
                json: f64,
            }
            OutputTokS {
                name: "output_tok_s", column: output_tok_s, scale: 1.0,
                direction: Maximize, format: Number, needs: Nothing,
                word: "output tok/s", heading: "tok/s", formula: Some("output_tok_s"),
                meaning: "output tokens per second of the whole deployment",
                json: f64,
            }
            OutputTokSPerDevice {
                name: "output_tok_s_per_device", column: output_tok_s_per_device, scale: 1.0,
                direction: Maximize, format: Number, needs: Nothing,
                word: "output tok/s per device", heading: "per device", formula: Some("output_tok_s_per_device"),
                meaning: "output tokens per second, per device in use",
                json: f64,
            }
            OutputTokSPerUser {
                name: "output_tok_s_per_user", column: output_tok_s_per_user, scale: 1.0,
                direction: Maximize, format: Number, needs: Nothing,
                word: "tok/s per user", heading: "per user", formula: Some("output_tok_s_per_user"),
                meaning: "output tokens per second of one user: 1 / TPOT",
                json: f64,
            }
            RequestsPerS {
                name: "requests_per_s", column: requests_per_s, scale: 1.0,
                direction: Maximize, format: Number, needs: Nothing,
                word: "requests/s", heading: "req/s", formula: Some("requests_per_s"),
                meaning: "requests per second of the whole deployment",
                reported_only: "it orders deployments as `output_tok_s` does",
                json: f64,
            }
            UsdPerHour {
                name: "usd_per_hour", column: usd_per_hour, scale: 1.0 / crate::spec::defaults::HOUR,
                direction: Minimize, format: Number, needs: Price,
                word: "USD/h", heading: "USD/h", formula: Some("usd_per_second"),
                meaning: "USD per hour of the whole deployment; null without a price",
                reported_only: "the bounds of the search do not cover it; `devices` and `usd_per_mtok` do",
                json: Option<f64>,
            }
            UsdPerMtok {
                name: "usd_per_mtok", column: usd_per_mtok, scale: 1e-6,
                direction: Minimize, format: Number, needs: Price,
                word: "USD/Mtok", heading: "USD/Mtok", formula: Some("usd_per_token"),
                meaning: "USD per million output tokens, prefill work included",
                json: Option<f64>,
            }
            UsdPerMtokTotal {
                name: "usd_per_mtok_total", column: usd_per_mtok_total, scale: 1e-6,
                direction: Minimize, format: Number, needs: Price,
                word: "USD/Mtok in and out", heading: "in and out", formula: Some("usd_per_token_total"),
                meaning: "the same money per million tokens of prompt and output",
                reported_only: "it orders deployments as `usd_per_mtok` does",
                json: Option<f64>,
            }
            UsdPerDay {
                name: "usd_per_day", column: usd_per_day, scale: 1.0,
                direction: Minimize, format: Number, needs: Price,
                word: "USD/day", heading: "USD/day", formula: Some("usd_per_day"),
                meaning: "USD per day of the whole deployment, over the hours of a day in which it serves",
                reported_only: "it orders deployments as `usd_per_hour` does",
                json: Option<f64>,
            }
            UsdPerMonth {
                name: "usd_per_month", column: usd_per_month, scale: 1.0,
                direction: Minimize, format: Number, needs: Price,
                word: "USD/month", heading: "USD/month", formula: Some("usd_per_month"),
                meaning: "USD per month of 30.4 days of the whole deployment",
                reported_only: "it orders deployments as `usd_per_hour` does",
                json: Option<f64>,
            }
            TokPerUsd {
                name: "tok_per_usd", column: tok_per_usd, scale: 1.0,
                direction: Maximize, format: Number, needs: Price,
                word: "output tok/USD", heading: "tok/USD", formula: Some("tok_per_usd"),
                meaning: "output tokens per USD",
                reported_only: "it orders deployments as `usd_per_mtok` does",
                json: Option<f64>,
            }
            Watts {
                name: "watts", column: watts, scale: 1.0,
                direction: Minimize, format: Number, needs: Power,
                word: "W of devices", heading: "device W", formula: Some("watts"),
                meaning: "power drawn by the devices in use, without their hosts and the facility",
                json: Option<f64>,
            }
            FacilityWatts {
                name: "facility_watts", column: facility_watts, scale: 1.0,
                direction: Minimize, format: Number, needs: Power,
                word: "W of the facility", heading: "facility W", formula: Some("facility_watts"),
                meaning: "power of the devices in use and their hosts, times the facility's PUE",
                reported_only: "the bounds of the search do not cover it; `watts` does",
                json: Option<f64>,
            }
            TokPerJoule {
                name: "tok_per_joule", column: tok_per_joule, scale: 1.0,
                direction: Maximize, format: Number, needs: Power,
                word: "output tok/J", heading: "tok/J", formula: Some("tok_per_joule"),
                meaning: "output tokens per joule of the devices",
                json: Option<f64>,
            }
            Devices {
                name: "devices", column: devices, scale: 1.0,
                direction: Minimize, format: Count, needs: Nothing,
                word: "devices", heading: "devices", formula: None,
                meaning: "devices in use",
            }
            MaxContext {
                name: "max_context", column: max_context_tokens, scale: 1.0,
                direction: Maximize, format: Tokens, needs: Nothing,
                word: "tokens of context", heading: "context", formula: Some("max_context"),
                meaning: "longest prompt plus output that fits in memory at this concurrency, up to the context of the model",
                json: f64,
            }
        }
    };
}

pub(crate) use metric_table;
