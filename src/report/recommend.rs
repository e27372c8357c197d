//! Hardware to buy or rent: builds that meet the SLO, their cost, and rejected systems with reasons.
//!
//! Independent of the catalogue: the caller passes builds as sized by the search.

pub mod models;
pub mod money;
pub mod report;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use money::{Money, SystemPrices, over};

use super::answer::report_deployment;
use super::launch::LaunchReport;
use super::number::percent;
use super::result::ReportedDeployment;
use crate::search::outcome::Census;
use crate::search::point::place;
use crate::search::problem::{Problem, Traffic};
use crate::search::ranking::{OfferMetrics, Recommended, Standing, choose};
use crate::search::sizing::{Sized, Unfit, totals};
use crate::spec::objective::{LatencyLimits, Metric};
use crate::spec::price::PriceBasis;
use crate::spec::scenario::Scenario;

/// The requirements, with every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requirements {
    /// The model, or null if hardware is given and models are searched.
    pub model: Option<String>,
    /// The hardware, if the search is limited to it.
    pub hardware: Option<String>,
    /// Minimum output tokens per second per user.
    pub target_tok_s: f64,
    /// Users, each with one request in flight.
    pub users: u64,
    /// Prompt tokens, earlier turns included.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Prompt tokens of earlier turns, which are cached.
    pub prefix: u64,
    /// Latency limits.
    pub limits: LatencyLimits,
    /// Whether the TTFT limit, a default, does not apply to home machines: they serve one user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_ttft_at_home: bool,
    /// Maximum purchase price, US dollars.
    pub budget_usd: Option<f64>,
    /// Maximum cost per hour, US dollars.
    pub budget_usd_per_hour: Option<f64>,
    /// Maximum power of the devices, W.
    pub max_watts: Option<f64>,
    /// Owned or rented: every offer is priced on this basis; null before the offers are known.
    pub price_basis: Option<PriceBasis>,
    /// Vendors, classes, devices or systems to consider; empty for all.
    pub only: Vec<String>,
    /// Defaults used for unspecified inputs.
    pub assumed: Vec<String>,
}

/// Hardware that meets the SLO, with its deployment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// Number of copies and the system: `2 copies of NVIDIA DGX/HGX H100 (8 GPUs)`.
    pub name: String,
    /// Id of the system, mostly as `--hardware` takes it.
    pub system: String,
    /// The model served.
    pub model: String,
    /// Copies of the system, each with its share of the users.
    pub copies: u64,
    /// Devices, idle ones included.
    pub devices: u64,
    /// The device.
    pub device: String,
    /// The runtime.
    pub runtime: String,
    /// The weights keep the model's quality: the checkpoint's own format, 4 bits and up, or no fewer bits than the checkpoint's.
    pub keeps_quality: bool,
    /// Checkpoint in that format, where one is published.
    pub checkpoint: Option<String>,
    /// The deployment of each copy, with its share of the users.
    pub each: ReportedDeployment,
    /// Output tokens per second of all copies, with the given users.
    pub output_tok_s: f64,
    /// Output tokens per second per user, with the given users.
    pub tok_s_per_user: f64,
    /// Maximum users within the SLO.
    pub most_users: u64,
    /// Maximum output tokens per second within the SLO, at any concurrency.
    pub most_output_tok_s: f64,
    /// Longest context that fits with the given users, tokens.
    pub max_context_tokens: f64,
    /// Power of the devices with the given users, W; null if unknown.
    pub watts: Option<f64>,
    /// Cost.
    pub money: Money,
    /// Why it is not compared with the others unless allowed: nothing was measured on devices of this vendor.
    pub unmeasured: Option<String>,
    /// Status: `front`, `dominated`, `unmeasured`, `unpriced`, or `over budget`.
    pub standing: String,
    /// The dominating build, the exceeded budget, or what is unknown.
    pub because: Option<String>,
}

impl Build {
    /// The odds of each SLO with the given users, and the measured runs of the kind of its plan.
    pub fn odds(&self) -> Option<String> {
        let odds = self.each.slo_odds.map(|odds| odds.words());
        let runs = self.each.evidence.map(|evidence| evidence.words());
        let parts: Vec<String> = odds.into_iter().chain(runs).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The joint odds of the SLOs in a cell of a table.
    pub fn joint_odds(&self) -> String {
        self.each.slo_odds.map_or_else(|| "-".to_owned(), |odds| percent(odds.all))
    }

    /// The figures by which builds are compared.
    pub fn offered(&self) -> OfferMetrics {
        OfferMetrics {
            cost: self.money.usd_per_hour.unwrap_or(f64::INFINITY),
            users: self.most_users,
            tok_s_per_user: self.tok_s_per_user,
            output: self.most_output_tok_s,
            kept: self.keeps_quality,
        }
    }
}

/// A build that was considered and rejected.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RejectedBuild {
    /// The system in the largest size considered, or the model if models are searched.
    pub name: String,
    /// Weight formats that were tried.
    pub weight_formats: Vec<String>,
    /// Kind of reason: `tpot`, `out_of_memory`, `weight-format`, `runtime` …
    pub kind: String,
    /// The reason, with its numbers.
    pub reason: String,
}

/// Systems and searches considered.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SearchSummary {
    /// Systems, parts of nodes, and loose devices.
    pub systems: u64,
    /// Number of them that meet the SLO, in any weight format.
    pub serve: u64,
    /// Searches over all sizes and weight formats.
    pub searches: u64,
    /// Candidates of all searches.
    pub candidates: u64,
    /// Number of them evaluated; bounds and rules reject the rest.
    pub evaluated: u64,
    /// Rejected systems, by kind of reason.
    pub missed: std::collections::BTreeMap<String, u64>,
}

/// The recommendation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// The scenario of every system, so that the result can be verified.
    pub scenario: Scenario,
    /// The requirements.
    pub sought: Requirements,
    /// The cheapest build whose weights keep the model's quality; null if none meets the SLO.
    pub minimum: Option<Build>,
    /// A cheaper one with a lower weight format, if there is one.
    pub cheapest: Option<Build>,
    /// The most output per dollar at full load, among builds that keep the model's quality
    /// and cost no more than ten times the minimum.
    pub value: Option<Build>,
    /// Upgrades above the minimum, the cheapest first.
    pub tiers: Vec<Build>,
    /// Every build that meets the SLO, the cheapest first, including dominated and over-budget ones.
    pub builds: Vec<Build>,
    /// Rejected systems, with reasons.
    pub missed: Vec<RejectedBuild>,
    /// Systems and searches considered.
    pub looked: SearchSummary,
    /// Commands and files that launch the first choice, on each copy of its system; null if there is none.
    #[serde(default)]
    pub launch: Option<LaunchReport>,
}

impl Recommendation {
    /// The first choice: the minimum, else the cheapest.
    pub fn first(&self) -> Option<&Build> {
        self.minimum.as_ref().or(self.cheapest.as_ref())
    }

    /// Whether any build meets the requirements.
    pub fn serves(&self) -> bool {
        self.minimum.is_some() || self.cheapest.is_some()
    }
}

/// A system that meets the SLO, as sized by the search.
#[derive(Clone)]
pub struct SizedSystem<'a> {
    pub problem: &'a Problem,
    /// Number of copies, and their deployment.
    pub sized: &'a Sized,
    pub prices: SystemPrices,
    /// Names: of the system for people and for `--hardware`, of the model, of a published checkpoint.
    pub names: (String, String, String, Option<String>),
    /// The weights keep the model's quality.
    pub keeps_quality: bool,
    /// Whether it competes: some runtime was measured on devices of its vendor, or it is allowed.
    pub competes: bool,
}

impl SizedSystem<'_> {
    /// Why no measurement supports its prediction, unless it competes anyway.
    fn unmeasured(&self) -> Option<String> {
        (!self.competes).then(|| {
            let vendor = self.problem.cluster.device.vendor.name();
            format!("no runtime was measured on such devices of {vendor}; --allow unmeasured includes it")
        })
    }

    pub fn build(&self, sought: &Requirements) -> Build {
        let SizedSystem { problem, sized, prices, names, .. } = self;
        let (name, system, model, checkpoint) = names;
        let whole_now = totals(problem, &sized.at_share, sized.copies, sought.users);
        let most_users = sized.full_users * sized.copies;
        // Maximum output and maximum users may be different deployments.
        let in_flight = sized.full.candidate.concurrency(&Traffic::Free) * sized.copies;
        let whole_full = totals(problem, &sized.full, sized.copies, in_flight);
        let mut shared = (*problem).clone();
        shared.traffic = Traffic::InFlight(sized.share.into());
        let times = if sized.copies > 1 { format!("{} copies of ", sized.copies) } else { String::new() };
        Build {
            name: format!("{times}{name}"),
            system: system.clone(),
            model: model.clone(),
            copies: sized.copies,
            devices: whole_now.devices,
            device: problem.cluster.device.name.clone(),
            runtime: problem.runtime.id.clone(),
            keeps_quality: self.keeps_quality,
            checkpoint: checkpoint.clone(),
            each: report_deployment(&shared, &sized.at_share.candidate),
            output_tok_s: whole_now.output_tok_s,
            tok_s_per_user: sized.at_share.point[place(Metric::OutputTokSPerUser)],
            most_users,
            most_output_tok_s: whole_full.output_tok_s,
            max_context_tokens: sized.at_share.point[place(Metric::MaxContext)].floor(),
            watts: whole_now.watts,
            money: prices.money(&whole_now, &whole_full),
            unmeasured: self.unmeasured(),
            standing: String::new(),
            because: None,
        }
    }
}

/// Why a build has no price on the basis of the comparison.
fn unpriced(build: &Build, sought: &Requirements) -> Option<String> {
    let basis = sought.price_basis.filter(|_| build.money.usd_per_hour.is_none())?;
    let (lacks, other) = match basis {
        PriceBasis::Owned => ("no purchase price", PriceBasis::Rented),
        PriceBasis::Rented => ("no rent", PriceBasis::Owned),
    };
    Some(format!("{lacks} is known; --price-basis {} compares the others", other.name()))
}

/// The recommendation from all builds and rejections; at most `most` tiers.
pub fn recommend(
    (scenario, sought): (Scenario, Requirements),
    mut builds: Vec<Build>,
    missed: Vec<RejectedBuild>,
    (looked, most): (SearchSummary, usize),
) -> Recommendation {
    let cost = |build: &Build| build.money.usd_per_hour.unwrap_or(f64::INFINITY);
    builds.sort_by(|a, b| {
        let key = |build: &Build| (build.name.clone(), build.each.weight_format.clone());
        cost(a).total_cmp(&cost(b)).then_with(|| key(a).cmp(&key(b)))
    });
    for build in &mut builds {
        let left_out = unpriced(build, &sought).map(|why| ("unpriced", why));
        let left_out = left_out.or_else(|| Some(("unmeasured", build.unmeasured.clone()?)));
        let left_out = left_out.or_else(|| Some(("over budget", over(build, &sought)?)));
        if let Some((standing, why)) = left_out {
            (build.standing, build.because) = (standing.into(), Some(why));
        }
    }
    let within: Vec<usize> = (0..builds.len()).filter(|at| builds[*at].because.is_none()).collect();
    let offers: Vec<OfferMetrics> = within.iter().map(|at| builds[*at].offered()).collect();
    let Recommended { minimum, cheapest, value, tiers, standing } = choose(&offers, most);
    for (at, stands) in within.iter().zip(&standing) {
        let (word, why) = match stands {
            Standing::Front => ("front", None),
            Standing::Unpriced => ("unpriced", Some("no price is known".to_owned())),
            Standing::Dominated(by) => {
                let better = &builds[within[*by]];
                ("dominated", Some(format!("{}, {}", better.name, better.each.weight_format)))
            }
        };
        (builds[*at].standing, builds[*at].because) = (word.to_string(), why);
    }
    let named = |offer: usize| builds[within[offer]].clone();
    Recommendation {
        minimum: minimum.map(named),
        cheapest: cheapest.map(named),
        value: value.map(named),
        tiers: tiers.into_iter().map(named).collect(),
        scenario,
        sought,
        missed,
        looked,
        builds,
        launch: None,
    }
}

pub fn missed(name: &str, weight_formats: Vec<String>, unfit: &Unfit) -> RejectedBuild {
    let Unfit { kind, reason, .. } = unfit.clone();
    RejectedBuild { name: name.to_string(), weight_formats, kind, reason }
}

impl SearchSummary {
    pub fn add(&mut self, census: &Census) {
        self.searches += 1;
        self.candidates += census.candidates;
        self.evaluated += census.evaluated;
    }
}
