//! What is sought: the flags of `recommend` with every default filled in, and said.

use super::Recommend;
use crate::report::recommend::{Sought, Way};
use crate::spec::error::Error;
use crate::spec::objective::Limits;
use crate::spec::scenario::{Scenario, number, whole};
use crate::store::catalog::Catalog;
use crate::store::problem::DEFAULT_MODEL;

/// Most users that are taken seriously.
const MOST_USERS: u64 = 1_000_000;

impl Recommend {
    /// The scenario that every system is asked, and what is told of it.
    pub(super) fn sought(&self, catalog: &Catalog) -> Result<(Scenario, Sought), Error> {
        let refuse = |key: &str, instead: &str| {
            let found = format!("--{key}, which `recommend` decides itself");
            Error::new(key, found, format!("--{instead}"), format!("state --{instead} instead"))
        };
        let stated = &self.stated;
        if stated.concurrency.is_some() || stated.rate.is_some() {
            let key = if stated.rate.is_some() { "rate" } else { "concurrency" };
            return Err(refuse(key, "users"));
        }
        if stated.tpot.is_some() {
            return Err(refuse("tpot", "target-tok-s"));
        }
        if self.context.is_some() && stated.isl.is_some() {
            let fix = "state --context, or --isl with --prefix";
            return Err(Error::new("context", "both --context and --isl", "one of them", fix));
        }
        if stated.hardware.is_some() && !self.only.is_empty() {
            let fix = "state --only to choose among the catalogue, or --hardware for one machine";
            return Err(Error::new("only", "both --only and --hardware", "one of them", fix));
        }
        if self.users == 0 || self.users > MOST_USERS {
            let found = self.users.to_string();
            return Err(Error::new("users", found, format!("1 to {MOST_USERS}"), "state how many there are"));
        }
        let mut assumed = Vec::new();
        let (objective, workload) = catalog.aim(stated)?;
        let mut scenario = stated.clone();
        let limits = objective.limits;
        let target = match (self.target_tok_s, limits.tpot) {
            (Some(target), _) => target,
            (None, Some(tpot)) => {
                assumed.push(format!(
                    "target: {} tok/s per user, the TPOT limit of `{}`",
                    1.0 / tpot,
                    workload.id
                ));
                1.0 / tpot
            }
            (None, None) => {
                let fix = "state the output tokens a second that a user must see, e.g. --target-tok-s 20";
                return Err(Error::new("target-tok-s", "no target and no limit on TPOT", "a pace", fix));
            }
        };
        if target <= 0.0 {
            let fix = "state the output tokens a second that a user must see";
            return Err(Error::new("target-tok-s", target.to_string(), "a number above 0", fix));
        }
        scenario.tpot = Some(format!("{} s", 1.0 / target));
        let (mut isl, osl, mut prefix) = (workload.isl, workload.osl, workload.prefix);
        if let Some(text) = &self.context {
            let context = tokens(text)?;
            if context <= osl {
                let expected = format!("more than the {osl} tokens of an answer");
                return Err(Error::new("context", format!("`{text}`"), expected, "state more, or --osl"));
            }
            let fresh = isl - prefix;
            isl = context - osl;
            if stated.prefix.is_none() && isl > fresh {
                prefix = isl - fresh;
                assumed.push(format!(
                    "of the {isl} prompt tokens {fresh} are new in each request, the rest are earlier turns and \
                     cached (--prefix 0: none are)"
                ));
            }
            (scenario.isl, scenario.prefix) = (Some(isl), Some(prefix));
        } else if stated.isl.is_none() {
            assumed.push(format!("{isl} tokens in, {osl} out: the workload `{}`", workload.id));
        }
        if stated.model.is_none() && stated.hardware.is_none() {
            assumed.push(format!("model: {DEFAULT_MODEL}"));
        }
        let limit = limits.ttft.filter(|_| stated.ttft.is_none());
        if let Some(ttft) = limit {
            assumed.push(format!("TTFT at most {ttft} s, the limit of `{}` (--ttft none: any)", workload.id));
        }
        let budget =
            |key: &str, text: &Option<String>| text.as_deref().map(|text| dollars(key, text)).transpose();
        let budget_usd = budget("budget", &self.budget)?;
        let sought = Sought {
            model: None,
            hardware: None,
            target_tok_s: target,
            users: self.users,
            isl,
            osl,
            prefix,
            limits: Limits { tpot: Some(1.0 / target), ..limits },
            budget_usd,
            budget_usd_per_hour: budget("budget-hour", &self.budget_hour)?,
            max_watts: self.max_watts,
            prefer: self.prefer.or(budget_usd.map(|_| Way::Buy)),
            only: self.only.clone(),
            assumed,
        };
        Ok((scenario, sought))
    }
}

/// `32k`, `1m` or `32768` tokens.
fn tokens(text: &str) -> Result<u64, Error> {
    let lower = text.trim().to_lowercase();
    let (digits, times) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1024),
        None => lower.strip_suffix('m').map_or((lower.as_str(), 1), |digits| (digits, 1024 * 1024)),
    };
    let found = whole(digits).ok().and_then(|tokens| tokens.checked_mul(times)).filter(|tokens| *tokens > 0);
    found.ok_or_else(|| {
        Error::new("context", format!("`{text}`"), "a number of tokens", "write e.g. 32768, 32k or 1m")
    })
}

/// `15000usd`, `$15000` or `15000`, with or without `/h`.
///
/// # Errors
/// It is no amount.
pub fn dollars(key: &str, text: &str) -> Result<f64, Error> {
    let plain = text.trim().to_lowercase();
    let plain = plain.trim_end_matches("/h").trim_end_matches("usd").trim_start_matches('$').trim();
    number(&plain.replace([',', '_'], "")).ok().filter(|usd| *usd > 0.0).ok_or_else(|| {
        Error::new(key, format!("`{text}`"), "an amount of US dollars above 0", "write e.g. 15000usd")
    })
}
