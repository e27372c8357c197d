//! Requirements: a request of `recommend` with every default filled in and listed.

use super::RecommendRequest;
use crate::report::recommend::Requirements;
use crate::spec::defaults::stated_basis;
use crate::spec::error::Error;
use crate::spec::limits::{
    BUDGET, BUDGET_HOUR, CONTEXT, ISL, Limit, MAX_WATTS, OSL, TARGET, USERS, suffixed, whole,
};
use crate::spec::objective::{LatencyLimits, Workload};
use crate::spec::price::PriceBasis;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::DEFAULT_MODEL;

impl RecommendRequest {
    /// The scenario for every system, and the requirements as reported.
    pub(super) fn requirements(&self, catalog: &Catalog) -> Result<(Scenario, Requirements), Error> {
        self.check_flags()?;
        let given = &self.scenario;
        let mut assumed = Vec::new();
        let (objective, workload) = catalog.objective_and_workload(given, false)?;
        // The same objective, and so the same SLOs, on every system.
        let mut scenario = Scenario { objective: Some(objective.id.clone()), ..given.clone() };
        let mut limits = objective.limits;
        let target = self.target(limits.tpot, &workload.id, &mut assumed)?;
        scenario.tpot = Some(format!("{} s", 1.0 / target));
        let (isl, prefix) = self.prompt(&workload, &mut assumed)?;
        if self.context.is_some() {
            (scenario.isl, scenario.prefix) = (Some(isl), Some(prefix));
            // Earlier turns are those of one user.
            let own = Some(self.users).filter(|_| prefix > 0 && given.prefix.is_none());
            scenario.prefix_groups = given.prefix_groups.or(own);
        }
        if given.model.is_none() && given.hardware.is_none() {
            assumed.push(format!("model: {DEFAULT_MODEL}"));
        }
        let usual_ttft = limits.ttft.filter(|_| given.ttft.is_none());
        let no_ttft_at_home = usual_ttft.is_some() && self.users == 1;
        if no_ttft_at_home && self.at_home(catalog)? {
            (limits.ttft, scenario.ttft) = (None, Some("none".to_owned()));
            assumed.push("no TTFT limit on a home machine (--ttft 2s: at most 2 s)".to_owned());
        } else if let Some(ttft) = usual_ttft {
            let but = if no_ttft_at_home { ", not on home machines" } else { "" };
            assumed
                .push(format!("TTFT ≤ {ttft} s, the SLO of `{}`{but} (--ttft none: no limit)", workload.id));
        }
        let budget = |limit: &Limit, text: &Option<String>| {
            text.as_deref().map(|text| dollars(limit, text)).transpose()
        };
        let budget_usd = budget(&BUDGET, &self.budget)?;
        let price_basis = stated_basis(given)?.or(budget_usd.map(|_| PriceBasis::Owned));
        if budget_usd.is_some() && price_basis == Some(PriceBasis::Rented) {
            let found = "a purchase budget for rented devices";
            let fix = "set --budget-hour, or --price-basis owned";
            return Err(Error::new("budget", found, "a budget on the price basis", fix));
        }
        let requirements = Requirements {
            model: None,
            hardware: None,
            target_tok_s: target,
            users: self.users,
            isl,
            osl: workload.osl,
            prefix,
            limits: LatencyLimits { tpot: Some(1.0 / target), ..limits },
            no_ttft_at_home,
            budget_usd,
            budget_usd_per_hour: budget(&BUDGET_HOUR, &self.budget_hour)?,
            max_watts: self.max_watts,
            price_basis,
            only: self.only.clone(),
            assumed,
        };
        Ok((scenario, requirements))
    }

    /// Whether models are searched for a home or edge machine.
    fn at_home(&self, catalog: &Catalog) -> Result<bool, Error> {
        let named = self.scenario.hardware.as_ref();
        named.map_or(Ok(false), |_| Ok(catalog.cluster_of(&self.scenario)?.device.is_home()))
    }

    /// Refuses values that `recommend` sets itself, and pairs that contradict each other.
    fn check_flags(&self) -> Result<(), Error> {
        let refuse = |key: &str, instead: &str| {
            let found = format!("--{key}, which `recommend` sets itself");
            Err(Error::new(key, found, format!("--{instead}"), format!("set --{instead} instead")))
        };
        let given = &self.scenario;
        if given.rate.is_some() {
            return refuse("rate", "users");
        }
        if given.concurrency.is_some() {
            return refuse("concurrency", "users");
        }
        if given.tpot.is_some() {
            return refuse("tpot", "target-tok-s");
        }
        let phases = [
            ("prefill-weight-format", &given.prefill_weight_format),
            ("decode-weight-format", &given.decode_weight_format),
        ];
        if let Some((key, _)) = phases.iter().find(|(_, format)| format.is_some()) {
            let found = "a format of one phase, but builds are sized by aggregated replicas";
            let fix = "set --weight-format, or ask `optimize` about one system";
            return Err(Error::new(*key, found, "one weight format for both phases", fix));
        }
        if given.pareto.is_some() {
            let fix = "remove it: builds are compared by cost, users, speed and output";
            return Err(Error::new("pareto", "axes of a front", "no axes for a recommendation", fix));
        }
        if self.context.is_some() && given.isl.is_some() {
            let fix = "set --context, or --isl with --prefix";
            return Err(Error::new("context", "both context and isl", "one of them", fix));
        }
        if given.hardware.is_some() && !self.only.is_empty() {
            let fix = "set --only to filter the catalogue, or --hardware for one machine";
            return Err(Error::new("only", "both only and hardware", "one of them", fix));
        }
        USERS.check_whole("users", self.users)
    }

    /// Output tokens per second for every user: as given, else from the TPOT SLO of the workload.
    fn target(&self, tpot: Option<f64>, workload: &str, assumed: &mut Vec<String>) -> Result<f64, Error> {
        let target = match (self.target_tok_s, tpot) {
            (Some(target), _) => target,
            (None, Some(tpot)) => {
                assumed.push(format!("target: {} tok/s per user, the TPOT SLO of `{workload}`", 1.0 / tpot));
                1.0 / tpot
            }
            (None, None) => {
                let fix = "set the output tokens per second for every user, e.g. --target-tok-s 20";
                return Err(Error::new("target-tok-s", "no target and no TPOT SLO", "a target speed", fix));
            }
        };
        TARGET.check("target-tok-s", target)?;
        Ok(target)
    }

    /// ISL and cached prefix: of the workload, or of a context whose earlier turns are cached.
    fn prompt(&self, workload: &Workload, assumed: &mut Vec<String>) -> Result<(u64, u64), Error> {
        let Workload { isl, osl, prefix, .. } = *workload;
        let Some(text) = &self.context else {
            if self.scenario.isl.is_none() {
                assumed.push(format!("ISL {isl}, OSL {osl}: the workload `{}`", workload.id));
            }
            return Ok((isl, prefix));
        };
        let context = tokens(text)?;
        if context <= osl {
            let (found, expected) = (format!("`{text}`"), format!("more than the {osl} output tokens"));
            return Err(Error::new("context", found, expected, "increase it, or lower --osl"));
        }
        let (fresh, isl) = (isl - prefix, context - osl);
        if self.scenario.prefix.is_some() || isl <= fresh {
            return Ok((isl, prefix));
        }
        assumed.push(format!(
            "{fresh} of the {isl} prompt tokens are new in each request; the others are earlier turns and cached \
             (--prefix 0: no cache)"
        ));
        Ok((isl, isl - fresh))
    }
}

pub fn check(sought: &Requirements) -> Result<(), Error> {
    USERS.check_whole("users", sought.users)?;
    TARGET.check("target_tok_s", sought.target_tok_s)?;
    ISL.check_whole("isl", sought.isl)?;
    OSL.check_whole("osl", sought.osl)?;
    sought.limits.check()?;
    let money = [
        ("budget_usd", sought.budget_usd, &BUDGET),
        ("budget_usd_per_hour", sought.budget_usd_per_hour, &BUDGET_HOUR),
        ("max_watts", sought.max_watts, &MAX_WATTS),
    ];
    money
        .into_iter()
        .try_for_each(|(key, value, limit)| value.map_or(Ok(()), |value| limit.check(key, value)))
}

/// `32768`, `32k` (32,000) or `32Ki` (32,768) tokens.
fn tokens(text: &str) -> Result<u64, Error> {
    whole(&CONTEXT)(text).map_err(|_| {
        Error::new("context", format!("`{text}`"), CONTEXT.range(), "write e.g. 32768, 32k or 32Ki")
    })
}

/// `15000usd`, `$15000`, `15k` or `15000`, with or without `/h`.
pub fn dollars(limit: &Limit, text: &str) -> Result<f64, Error> {
    let plain = text.trim().to_lowercase();
    let plain = plain.trim_end_matches("/h").trim_end_matches("usd").trim_start_matches('$').trim();
    suffixed(&plain.replace(',', ""))
        .filter(|usd| limit.holds(*usd))
        .ok_or_else(|| Error::new(limit.name, format!("`{text}`"), limit.range(), "write e.g. 15000usd"))
}
