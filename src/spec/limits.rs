//! The allowed range of every number in user input, from a flag, a file or a table: least, greatest, unit, reason.
//!
//! This is the only list: flags and files are checked by it, `--help` and `docs/limits.md` are printed from it.
//! Products of these numbers are checked too; all derived figures stay finite.

use super::degree::Degree;
use super::error::Error;
use super::role::Role;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Its name: the flag as typed, else the key or column.
    pub name: &'static str,
    /// The least value, in addition to 0 if `or_zero`.
    pub least: f64,
    pub most: f64,
    /// 0 is allowed too.
    pub or_zero: bool,
    /// Whole numbers only.
    pub whole: bool,
    /// Its unit; empty for a plain number.
    pub unit: &'static str,
    pub why: &'static str,
}

/// Declares limits, and their list in the same order.
macro_rules! limits {
    (@zero from) => { false };
    (@zero zero_or) => { true };
    (@whole whole) => { true };
    (@whole number) => { false };
    ($($Name:ident = $name:literal: $whole:ident $zero:ident $least:literal to $most:literal, $unit:literal, $why:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $why)]
            pub const $Name: Limit = Limit {
                name: $name,
                least: $least,
                most: $most,
                or_zero: limits!(@zero $zero),
                whole: limits!(@whole $whole),
                unit: $unit,
                why: $why,
            };
        )*
        /// Every limit.
        pub const LIMITS: &[&Limit] = &[$(&$Name),*];
    };
}

limits! {
    ISL = "isl": whole from 1e0 to 1e8, "tokens", "the longest published context is 10 million tokens";
    OSL = "osl": whole from 1e0 to 1e8, "tokens", "as for the prompt";
    PREFIX = "prefix": whole from 0e0 to 1e8, "tokens", "part of the prompt";
    PREFIX_GROUPS = "prefix-groups": whole from 1e0 to 1e7, "groups", "as for concurrency: every request may have a prefix of its own";
    CONTEXT = "context": whole from 2e0 to 1e8, "tokens", "prompt and output";
    CONCURRENCY = "concurrency": whole from 1e0 to 1e7, "requests", "ten per device on a million devices";
    RATE = "rate": number from 1e-9 to 1e9, "requests/s", "one request in 30 years, up to 100 per concurrent request";
    IMAGES = "images": whole from 0e0 to 1e5, "images", "their tokens must fit into a prompt";
    IMAGE_SIDE = "image-size": whole from 1e0 to 65535e0, "pixels a side", "JPEG holds no longer side (ITU-T T.81, B.2.2)";
    SENT = "requests": whole from 1e0 to 1e8, "requests", "a simulation of more takes minutes";
    DRAWS = "draws": whole from 0e0 to 1e3, "runs", "each simulates all requests; a quantile of 1,000 runs is known well enough";
    REPEATS = "repeats": whole from 1e1 to 1e4, "repeats", "of a measured load: fewer say little about their agreement";
    WARM_UP = "warm-up": whole from 0e0 to 1e8, "requests", "as for the requests of a simulation";
    ARRIVAL_VARIATION = "arrival-variation": number from 0e0 to 1e2, "", "measured traffic has up to 10 (BurstGPT)";
    ISL_VARIATION = "isl-variation": number from 0e0 to 1e2, "", "as for arrivals";
    OSL_VARIATION = "osl-variation": number from 0e0 to 1e2, "", "as for arrivals";
    SPEED_UP = "speed-up": number from 1e-6 to 1e6, "", "a year of a trace in half a minute";
    TURNS = "turns": number from 1e0 to 1e4, "turns", "of a session: a coding agent's have some thousand at most";
    TURNS_VARIATION = "turns-variation": number from 0e0 to 1e2, "", "as for arrivals";
    TURN_ISL = "turn-isl": whole from 1e0 to 1e8, "tokens", "as for the prompt";
    TURN_ISL_VARIATION = "turn-isl-variation": number from 0e0 to 1e2, "", "as for arrivals";
    THINK_TIME = "think-time": number from 0e0 to 1e9, "s", "30 years";
    THINK_TIME_VARIATION = "think-time-variation": number from 0e0 to 1e2, "", "as for arrivals";
    CLIENT_TIMEOUT = "client-timeout": number from 1e-9 to 1e9, "s", "as for ttft";
    START_TIMEOUT = "start-timeout": number from 1e0 to 1e6, "s", "longer than any model takes to load";
    TELEMETRY_EVERY = "telemetry-every": number zero_or 1e-2 to 3600e0, "s", "none are taken at 0; reading takes milliseconds";
    FAULT_AT = "fault-at": number from 0e0 to 1e9, "s", "30 years";
    FAULT_REPLICA = "fault-replica": whole from 0e0 to 1048575e0, "", "one of the replicas, from 0";
    MTBF = "mtbf": number from 1e0 to 1e9, "s", "a replica that fails more often serves nothing; 30 years";
    RETRIES = "retries": whole from 0e0 to 1e4, "times", "a request is lost as often before it fails";
    STARTUP_TIME = "startup-time": number from 0e0 to 1e9, "s", "30 years";
    SCALE_TARGET = "autoscale-target": number from 1e-6 to 1e7, "", "requests of a replica, or the share of its cache";
    MIN_REPLICAS = "min-replicas": whole from 1e0 to 1e4, "replicas", "as for max-replicas";
    MAX_REPLICAS = "max-replicas": whole from 1e0 to 1e4, "replicas", "each has a scheduler and a cache of its own";
    SCALE_INTERVAL = "autoscale-interval": number from 1e0 to 1e6, "s", "Kubernetes counts whole seconds";
    SCALE_DOWN_DELAY = "scale-down-delay": number from 0e0 to 1e6, "s", "beyond the hour that Kubernetes allows";
    KV_HOST_MEMORY = "kv-host-memory": number from 1e-6 to 1e9, "GiB", "an exabyte";
    KV_STORE = "kv-store": number from 1e-6 to 1e9, "GiB", "as for host memory";
    KV_STORE_BANDWIDTH = "kv-store-bandwidth": number from 1e-6 to 1e9, "GB/s", "the range of a byte rate";
    KV_STORE_LATENCY = "kv-store-latency": number from 0e0 to 1e6, "s", "more than a tape takes";
    CONTENT = "content_tokens": whole from 1e0 to 1e7, "tokens", "of a piece of a prompt in a trace";
    DISTINCT_PROMPTS = "distinct-prompts": whole from 1e0 to 1e8, "prompts", "as for the requests of a simulation";
    BATCH = "batch": whole from 1e0 to 1e7, "requests", "as for concurrency";
    DRAFT_TOKENS = "draft-tokens": whole from 1e0 to 64e0, "tokens", "a draft token after 64 others is almost never accepted";
    ACCEPTANCE = "acceptance": number from 0e0 to 1e0, "", "accepted draft tokens over draft tokens";
    TTFT = "ttft": number from 1e-9 to 1e9, "s", "from below any device's response time to 30 years";
    TPOT = "tpot": number from 1e-9 to 1e9, "s", "as for ttft";
    E2E = "e2e": number from 1e-9 to 1e9, "s", "as for ttft";
    TIME_LIMIT = "time-limit": number from 0e0 to 1e9, "s", "30 years";
    USD_PER_DEVICE_HOUR = "usd-per-device-hour": number zero_or 1e-6 to 1e6, "USD/h", "free, or up to a thousand times the most expensive system of the catalogue";
    ELECTRICITY = "electricity-usd-per-kwh": number zero_or 1e-6 to 1e4, "USD/kWh", "free, or up to ten thousand times a usual price";
    PUE = "pue": number from 1e0 to 1e2, "", "a facility draws no less than its machines";
    AMORTIZATION = "amortization-months": number from 1e-3 to 1200e0, "months", "from three quarters of an hour to a century";
    UTILIZATION = "utilization": number from 1e-6 to 1e0, "", "a fraction of the time, above 0";
    HEADROOM = "headroom": number from 0e0 to 0.95e0, "", "a fraction of the capacity; the rest must carry the traffic";
    HOURS_PER_DAY = "hours-per-day": number from 1e-2 to 24e0, "h", "a day has 24";
    STEP_TOKENS = "max-num-batched-tokens": whole from 1e0 to 1e8, "tokens", "the range of a runtime's file";
    SEQUENCES = "max-num-seqs": whole from 1e0 to 1e7, "sequences", "as for concurrency";
    MAX_MODEL_LEN = "max-model-len": whole from 2e0 to 1e8, "tokens", "prompt and output, as for the prompt";
    MEMORY_SHARE = "gpu-memory-utilization": number from 1e-2 to 1e0, "", "a fraction of the device memory";
    DEGREE = "degree": whole from 1e0 to 1048576e0, "devices, stages or replicas", "tp, pp, dp, cp, dcp, ep, moe-tp, ffn-tp, vocab-tp and replicas: at most the maximum number of devices";
    DEVICES = "devices": whole from 1e0 to 1048576e0, "devices", "of a whole deployment: ten times the largest announced cluster";
    NODES = "nodes": whole from 1e0 to 1048576e0, "nodes", "as for devices";
    DEPTH = "depth": whole from 0e0 to 1000e0, "levels", "deeper than any explanation";
    USERS = "users": whole from 1e0 to 1e6, "users", "each has one concurrent request";
    TARGET = "target-tok-s": number from 1e-9 to 1e9, "tok/s", "the range of TPOT SLOs";
    BUDGET = "budget": number from 1e-6 to 1e15, "USD", "more than all existing money";
    BUDGET_HOUR = "budget-hour": number from 1e-6 to 1e12, "USD/h", "a million devices at a million USD/h each";
    MAX_WATTS = "max-watts": number from 1e-6 to 1e15, "W", "a million devices at a gigawatt each";
    MAX_DEVICES = "max-devices": whole from 1e0 to 1e9, "devices", "of a fleet of many systems";
    SAMPLE = "sample": whole from 0e0 to 1e8, "deployments", "each is evaluated";
    SAMPLE_REPLICAS = "sample-replicas": whole from 2e0 to 1e4, "replicas", "one has no standard error; each has a scheduler and a cache of its own";
    SEED = "seed": whole from 0e0 to 9007199254740991e0, "", "the integers that JSON represents exactly (RFC 8259, 6)";
    MEMBERS = "members": whole from 1e0 to 128e0, "members", "of a rig: the placement search is per member";
    HOSTS = "hosts": whole from 0e0 to 128e0, "hosts", "at most the members of a rig";
    LINKS = "links": whole from 0e0 to 8128e0, "links", "one per pair of members of a rig";
    BUCKETS = "fleet buckets": whole from 0e0 to 2000e0, "buckets", "each is searched on every offer of a fleet";
    OFFERS = "fleet offers": whole from 0e0 to 2000e0, "offers", "each is searched for every bucket of a fleet";
    USD_PER_HOUR = "usd_per_hour": number zero_or 1e-6 to 1e12, "USD/h", "of a whole system: a million devices";
    AVAILABLE = "available": whole from 0e0 to 1e9, "systems", "of an offer of a fleet";
    ARRIVAL = "arrival": number from -1e12 to 1e12, "s", "seconds of a trace: thirty thousand years around an epoch";
    ROWS = "table rows": whole from 1e0 to 1e5, "rows", "of a table of measurements: each is predicted";
    LISTED = "most": whole from 1e0 to 1e3, "rows", "that `nearest` lists";
    REQUESTS = "trace rows": whole from 1e0 to 1e7, "requests", "of a trace: each is counted";
    POINTS = "sweep points": whole from 1e0 to 1e7, "points", "of a sweep, and values of one varied key: each is evaluated";
    SHARDS = "shards": whole from 1e0 to 1e6, "shards", "of a sweep: more than any cluster has jobs";
    RUNNING = "running": whole from 1e0 to 1e3, "requests", "that a server answers at the same time";
    WAITING = "waiting": whole from 0e0 to 1e5, "requests", "that a server lets wait";
    CONNECTIONS = "connections": whole from 1e0 to 1e5, "connections", "that a server keeps open";
    HEADER_TIME = "header-time": number from 1e-2 to 3600e0, "s", "an hour: no client thinks longer";
    BODY_TIME = "body-time": number from 1e-2 to 3600e0, "s", "as for headers";
    STOP_TIME = "stop-time": number from 0e0 to 86400e0, "s", "a day";
    TIERS = "tiers": whole from 0e0 to 16e0, "tiers", "of a system: no interconnect has more levels";
    FACTORS = "factors": whole from 0e0 to 1e5, "factors", "of a runtime's fit, and constants likewise";
    BLOCK = "block": whole from 1e0 to 1e6, "elements", "elements per scale of a number format";
    BYTES = "bytes": number zero_or 1e-6 to 1e18, "B", "from part of a bit to an exabyte";
    BYTE_RATE = "byte rate": number from 1e0 to 1e18, "B/s", "omit a rate of 0; the fastest memory has 2e16 B/s";
    FLOP_RATE = "flop rate": number from 1e0 to 1e21, "FLOP/s", "omit a rate of 0; the fastest device has 6e16 FLOP/s";
    SECONDS = "seconds": number zero_or 1e-15 to 1e10, "s", "from a femtosecond to 300 years";
    WATTS = "watts": number zero_or 1e-6 to 1e9, "W", "of a device or node, up to a power station";
    DOLLARS = "dollars": number zero_or 1e-6 to 1e12, "USD", "of a device or system";
    DOLLAR_RATE = "dollar rate": number zero_or 1e-12 to 1e6, "USD/s", "of a device or system";
    DOLLARS_PER_ENERGY = "dollars per energy": number zero_or 1e-15 to 1e-2, "USD/J", "up to 36,000 USD/kWh";
    RATIO = "ratio": number zero_or 1e-9 to 1e9, "", "a ratio, a factor or a count";
    EFFICIENCY = "efficiency": number from 1e-6 to 1e1, "", "fraction of a peak; above 1 if the vendor publishes too low a peak";
    FACTOR = "factor": number from 1e-6 to 1e6, "", "a multiplier on a time";
    CAPACITY = "capacity": number from 1e6 to 1e18, "B", "memory of a device: no model fits in a megabyte";
    POWER = "power": number from 1e-3 to 1e9, "W", "power limit of a device";
    BLOCK_TOKENS = "block_tokens": number from 1e0 to 1e8, "tokens", "a page of the KV cache, and the tokens of one step";
    MILLISECONDS = "milliseconds": number zero_or 1e-6 to 1e12, "ms", "a measured time: 30 years";
    MEASURED = "value": number zero_or 1e-9 to 1e15, "", "a measured rate or size";
}

/// The limit of the flag `--flag`, if it is a number.
pub fn of_flag(flag: &str) -> Option<&'static Limit> {
    let pools = [Role::Prefill, Role::Decode].map(Role::flag_prefix);
    let plain = pools.iter().find_map(|pool| flag.strip_prefix(pool)).unwrap_or(flag);
    if plain == "replicas" || Degree::stated().any(|degree| degree.flag() == plain) {
        return Some(&DEGREE);
    }
    LIMITS.iter().find(|limit| limit.name == flag || limit.name == plain).copied()
}

impl Limit {
    /// Whether `value` is allowed; NaN is not.
    pub fn holds(&self, value: f64) -> bool {
        let within = (self.least..=self.most).contains(&value) || (self.or_zero && value == 0.0);
        within && (!self.whole || value.fract() == 0.0)
    }

    /// The greatest value of a whole number.
    pub fn most_whole(&self) -> u64 {
        self.most as u64
    }

    /// Human-readable form: `1 to 1000 tokens`.
    pub fn range(&self) -> String {
        let zero = if self.or_zero && self.least > 0.0 { "0, or " } else { "" };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        format!("{zero}{} to {}{unit}", spell(self.least), spell(self.most))
    }

    /// Checks the number at `key`.
    pub fn check(&self, key: &str, value: f64) -> Result<(), Error> {
        if self.holds(value) { Ok(()) } else { Err(self.fault(key, &value.to_string())) }
    }

    /// Checks the whole number at `key`.
    pub fn check_whole(&self, key: &str, value: u64) -> Result<(), Error> {
        // Every bound is below 2^53, so rounding preserves the order.
        if self.holds(value as f64) { Ok(()) } else { Err(self.fault(key, &value.to_string())) }
    }

    /// The fault of a number out of range.
    pub fn fault(&self, key: &str, found: &str) -> Error {
        Error::new(key, found, self.range(), format!("set a number in this range: {}", self.why))
    }
}

/// The shorter of the two spellings of a number.
fn spell(value: f64) -> String {
    let (plain, short) = (format!("{value}"), format!("{value:e}"));
    if plain.len() > 7 && short.len() < plain.len() { short } else { plain }
}

/// Suffixes of numbers without a unit, in either case: those of units elsewhere, so that `32k` is 32,000 in every flag
/// and `32Ki` is 32,768.
const SUFFIXES: [(&str, f64); 6] =
    [("ki", 1024.0), ("mi", 1_048_576.0), ("gi", 1_073_741_824.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)];

/// The factor of a suffix; 1 without one.
pub fn suffix_factor(suffix: &str) -> Option<f64> {
    let known = SUFFIXES.iter().find(|(known, _)| known.eq_ignore_ascii_case(suffix));
    known.map(|(_, factor)| *factor).or_else(|| suffix.is_empty().then_some(1.0))
}

/// A number with optional `_` separators and an optional suffix.
pub fn suffixed(text: &str) -> Option<f64> {
    let plain = text.trim().replace('_', "").to_lowercase();
    let known = SUFFIXES.iter().find_map(|(suffix, factor)| Some((plain.strip_suffix(suffix)?, *factor)));
    let (digits, factor) = known.unwrap_or((&plain, 1.0));
    digits.trim().parse::<f64>().ok().map(|number| number * factor)
}

/// Parser of a whole-number flag: digits with optional `_` separators, or a number with a suffix.
pub fn whole(limit: &'static Limit) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let plain = text.trim().replace('_', "");
        let digits = plain.bytes().all(|byte| byte.is_ascii_digit());
        let ends_in_letter = plain.ends_with(|c: char| c.is_ascii_alphabetic());
        let found = suffixed(&plain).filter(|number| (digits || ends_in_letter) && limit.holds(*number));
        let found = found.filter(|number| *number < u64::MAX as f64);
        found.map(|number| number as u64).ok_or_else(|| format!("expected a whole number, {}", limit.range()))
    }
}

/// Parser of a number flag.
pub fn number(limit: &'static Limit) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let found = suffixed(text).filter(|number| limit.holds(*number));
        found.ok_or_else(|| format!("expected a number, {}", limit.range()))
    }
}

#[cfg(feature = "internals")]
pub fn markdown() -> String {
    let mut text = String::from("| number | range | reason |\n| --- | --- | --- |\n");
    for limit in LIMITS {
        let kind = if limit.whole { "a whole number, " } else { "" };
        text.push_str(&format!("| `{}` | {kind}{} | {} |\n", limit.name, limit.range(), limit.why));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What holds of every limit, whatever it is of.
    #[test]
    fn every_limit_is_a_range_of_finite_numbers_under_a_name_of_its_own() {
        let mut names = std::collections::BTreeSet::new();
        for limit in LIMITS {
            assert!(names.insert(limit.name), "{} is listed twice", limit.name);
            assert!(
                limit.least.is_finite() && limit.most.is_finite() && limit.least < limit.most,
                "{limit:?}"
            );
            assert!(!limit.why.is_empty(), "{limit:?}");
            assert!(!limit.whole || limit.most < 9007199254740992.0, "{limit:?} is exact as a float");
            for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, limit.most * 1.5 + 1.0] {
                assert!(!limit.holds(wrong), "{limit:?} {wrong}");
                assert!(limit.check(limit.name, wrong).is_err());
            }
            for right in [limit.least, limit.most] {
                assert!(limit.check(limit.name, right).is_ok(), "{limit:?}");
            }
            assert!(!limit.whole || limit.check_whole(limit.name, u64::MAX).is_err());
        }
    }

    /// What a flag reads is what a file may state, number for number.
    #[test]
    fn a_flag_and_a_file_have_the_same_limits() {
        for limit in LIMITS {
            for value in [limit.least, limit.most, limit.most + 1.0, 0.0, 0.5, -1.0, f64::MAX] {
                let text = format!("{value}");
                assert_eq!(number(limit)(&text).is_ok(), limit.check("", value).is_ok(), "{limit:?} {text}");
                if limit.whole && value >= 0.0 && value.fract() == 0.0 && value < 1e19 {
                    let by_file = limit.check_whole("", value as u64).is_ok();
                    assert_eq!(whole(limit)(&text).is_ok(), by_file, "{limit:?} {text}");
                }
            }
            for wrong in ["", "x", "NaN", "inf", "-1e400", "1e400"] {
                assert!(number(limit)(wrong).is_err() && whole(limit)(wrong).is_err(), "{limit:?} {wrong}");
            }
            assert!(whole(limit)("99999999999999999999").is_err(), "{limit:?}");
        }
    }
}
