//! The metrics of a candidate, and the closed forms behind them.

use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{COUNT, SECOND, TOKEN, WATT};
use crate::spec::objective::Metric;

/// All metrics of a candidate.
#[derive(Clone, Copy, Debug)]
pub struct Metrics<T> {
    /// Time to first token.
    pub ttft: T,
    /// Time per output token after the first.
    pub tpot: T,
    /// End-to-end time of a request.
    pub e2e: T,
    /// Output tokens per second of the whole deployment.
    pub output_tok_s: T,
    /// Output tokens per second per device.
    pub output_tok_s_per_device: T,
    /// Output tokens per second per user.
    pub output_tok_s_per_user: T,
    /// Requests per second of the whole deployment.
    pub requests_per_s: T,
    /// USD per second of the whole deployment; `None` where no price is known.
    pub usd_per_second: Option<T>,
    /// USD per output token; `None` where no price is known.
    pub usd_per_token: Option<T>,
    /// USD per token of prompt or output.
    pub usd_per_token_total: Option<T>,
    /// USD per day, and per month.
    pub usd_per_day: Option<T>,
    /// See [`Metrics::usd_per_day`].
    pub usd_per_month: Option<T>,
    /// Output tokens per USD.
    pub tok_per_usd: Option<T>,
    /// Power of all devices; `None` where unknown.
    pub watts: Option<T>,
    /// Power of devices, nodes and facility.
    pub facility_watts: Option<T>,
    /// Output tokens per joule.
    pub tok_per_joule: Option<T>,
    /// Longest context that fits.
    pub max_context: T,
    /// Devices in use.
    pub devices: T,
    /// Mean concurrency over the whole deployment: requests in the queue, in prefill and in decode.
    pub in_flight: T,
}

impl<T: Copy> Metrics<T> {
    /// The value of `metric`, in base units; `None` where an input is unknown.
    #[inline(always)]
    pub fn get(&self, metric: Metric) -> Option<T> {
        match metric {
            Metric::Ttft => Some(self.ttft),
            Metric::Tpot => Some(self.tpot),
            Metric::E2e => Some(self.e2e),
            Metric::OutputTokS => Some(self.output_tok_s),
            Metric::OutputTokSPerDevice => Some(self.output_tok_s_per_device),
            Metric::OutputTokSPerUser => Some(self.output_tok_s_per_user),
            Metric::RequestsPerS => Some(self.requests_per_s),
            Metric::UsdPerHour => self.usd_per_second,
            Metric::UsdPerMtok => self.usd_per_token,
            Metric::UsdPerMtokTotal => self.usd_per_token_total,
            Metric::UsdPerDay => self.usd_per_day,
            Metric::UsdPerMonth => self.usd_per_month,
            Metric::TokPerUsd => self.tok_per_usd,
            Metric::Watts => self.watts,
            Metric::FacilityWatts => self.facility_watts,
            Metric::TokPerJoule => self.tok_per_joule,
            Metric::Devices => Some(self.devices),
            Metric::MaxContext => Some(self.max_context),
        }
    }
}

/// End-to-end time of a request.
#[inline(always)]
pub fn e2e<N: Num>(ttft: Qty<N>, tpot: Qty<N>, osl: Qty<N>) -> Qty<N> {
    (ttft + (osl - 1.0) * tpot).is(&E2E)
}

/// Output tokens per second of a closed loop at `concurrency`.
#[inline(always)]
pub fn closed_loop<N: Num>(concurrency: Qty<N>, osl: Qty<N>, e2e: Qty<N>) -> Qty<N> {
    (concurrency * osl * Qty::literal(1.0 * TOKEN) / e2e).is(&OUTPUT_TOK_S)
}

/// Output tokens per second at `rate` requests per second.
#[inline(always)]
pub fn open_flow<N: Num>(rate: Qty<N>, osl: Qty<N>) -> Qty<N> {
    (rate * osl * Qty::literal(1.0 * TOKEN)).is(&OUTPUT_TOK_S)
}

/// Requests per second of a deployment at `output_tok_s`, with `osl` output tokens per request.
#[inline(always)]
pub fn request_rate<N: Num>(output_tok_s: Qty<N>, osl: Qty<N>) -> Qty<N> {
    (output_tok_s / (osl * Qty::literal(1.0 * TOKEN))).is(&REQUESTS_PER_S)
}

/// Concurrency of a deployment at `output_tok_s`, with `osl` output tokens and a mean of `e2e` seconds per request.
#[inline(always)]
pub fn in_flight<N: Num>(output_tok_s: Qty<N>, e2e: Qty<N>, osl: Qty<N>) -> Qty<N> {
    (output_tok_s * e2e / (osl * Qty::literal(1.0 * TOKEN))).is(&IN_FLIGHT)
}

/// Devices of `replicas` replicas with `each` devices.
#[inline(always)]
pub fn devices_of<N: Num>(replicas: Qty<N>, each: Qty<N>) -> Qty<N> {
    (replicas * each).is(&DEVICES)
}

/// Devices of two pools.
#[inline(always)]
pub fn devices_of_pools<N: Num>(one: Qty<N>, other: Qty<N>) -> Qty<N> {
    (one + other).is(&DEVICES_OF_POOLS)
}

/// Power of two pools.
#[inline(always)]
pub fn watts_of_pools<N: Num>(one: Qty<N>, other: Qty<N>) -> Qty<N> {
    (one + other).is(&WATTS_OF_POOLS)
}

/// Longest context that fits either of two pools.
#[inline(always)]
pub fn context_of_pools<N: Num>(one: Qty<N>, other: Qty<N>) -> Qty<N> {
    one.min(other).is(&CONTEXT_OF_POOLS)
}

/// Output tokens per second per device.
#[inline(always)]
pub fn per_device<N: Num>(output_tok_s: Qty<N>, devices: Qty<N>) -> Qty<N> {
    (output_tok_s / devices).is(&PER_DEVICE)
}

/// Output tokens per second per user.
#[inline(always)]
pub fn per_user<N: Num>(tpot: Qty<N>) -> Qty<N> {
    (Qty::literal(1.0 * TOKEN) / tpot).is(&PER_USER)
}

crate::formulas! {
    E2E {
        symbol: "e2e",
        unit: SECOND,
        why: "the first token after TTFT, then osl - 1 tokens at TPOT each",
        cite: "definition (TPOT excludes the first token)",
    }
    REQUESTS_PER_S {
        symbol: "requests_per_s",
        unit: COUNT.per(SECOND),
        why: "every request has osl output tokens",
        cite: "definition",
    }
    OUTPUT_TOK_S {
        symbol: "output_tok_s",
        unit: TOKEN.per(SECOND),
        why: "each concurrent request yields osl tokens per end-to-end time",
        cite: "Little 1961",
    }
    IN_FLIGHT {
        symbol: "concurrency",
        unit: COUNT,
        why: "concurrency equals request rate times mean E2E (Little's law)",
        cite: "Little 1961",
    }
    DEVICES {
        symbol: "devices",
        unit: COUNT,
        why: "every replica has its own devices",
        cite: "definition",
    }
    DEVICES_OF_POOLS {
        symbol: "devices",
        unit: COUNT,
        why: "pools have their own devices",
        cite: "definition",
    }
    WATTS_OF_POOLS {
        symbol: "watts",
        unit: WATT,
        why: "all pools draw power",
        cite: "definition",
    }
    CONTEXT_OF_POOLS {
        symbol: "max_context",
        unit: TOKEN,
        why: "any pool may receive a request, so its context has to fit in each",
        cite: "definition",
    }
    PER_DEVICE {
        symbol: "output_tok_s_per_device",
        unit: TOKEN.per(SECOND),
        why: "output over the number of devices",
        cite: "definition",
    }
    PER_USER {
        symbol: "output_tok_s_per_user",
        unit: TOKEN.per(SECOND),
        why: "decode speed of one request after its first token",
        cite: "definition",
    }
}
