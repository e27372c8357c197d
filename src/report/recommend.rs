//! What to buy or rent: builds that serve, what they cost, and what every other one misses.
//!
//! Knows no catalogue: builds are handed in, each as the search sized it.

pub mod models;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::reported;
use super::result::ReportedDeployment;
use crate::quantity::datum::Datum;
use crate::search::outcome::Census;
use crate::search::point::place;
use crate::search::question::{Problem, Traffic};
use crate::search::ranking::{OfferMetrics, Recommended, Standing, choose};
use crate::search::sizing::{Sized, Totals, Unfit, whole};
use crate::serving::economy::Bill;
use crate::spec::defaults::{HOUR, MONTH};
use crate::spec::objective::{LatencyLimits, Metric};
use crate::spec::scenario::Scenario;

/// What is sought, every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requirements {
    /// The model, or null where hardware is stated and models are sought.
    pub model: Option<String>,
    /// The hardware, where only it is looked at.
    pub hardware: Option<String>,
    /// Output tokens a second that every user must see.
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
    /// Most that may be spent on a purchase, US dollars.
    pub budget_usd: Option<f64>,
    /// Most that may be spent an hour, US dollars.
    pub budget_usd_per_hour: Option<f64>,
    /// Most power of the devices, W.
    pub max_watts: Option<f64>,
    /// `buy`, `rent`, or null for whichever costs less an hour.
    pub prefer: Option<PaymentMode>,
    /// Makers, classes, devices or systems that are looked at; empty for all.
    pub only: Vec<String>,
    /// What was assumed because nobody stated it.
    pub assumed: Vec<String>,
}

/// How hardware is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PaymentMode {
    /// Bought: paid off over its service life, and electricity.
    Buy,
    /// Rented by the hour.
    Rent,
}

/// What a build costs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Money {
    /// Purchase of all copies; null where no price is known.
    pub buy_usd: Option<f64>,
    /// Whether that price is of whole systems; false where it is of the devices alone, without their host.
    pub buy_covers_host: bool,
    /// An hour of owning: the purchase paid off and electricity.
    pub owned_usd_per_hour: Option<f64>,
    /// An hour of renting.
    pub rent_usd_per_hour: Option<f64>,
    /// Electricity and building alone, an hour, where owned.
    pub electricity_usd_per_hour: Option<f64>,
    /// Which of the two is meant below; null where neither is known.
    pub way: Option<PaymentMode>,
    /// An hour of it.
    pub usd_per_hour: Option<f64>,
    /// A day of it.
    pub usd_per_day: Option<f64>,
    /// A month of it.
    pub usd_per_month: Option<f64>,
    /// Per million output tokens with the stated users.
    pub usd_per_mtok: Option<f64>,
    /// Per million output tokens when it carries all it can.
    pub usd_per_mtok_full: Option<f64>,
}

/// Hardware that serves, and how.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    /// The weights keep the model's quality: the checkpoint's own format, or 8 bits and up.
    pub keeps_quality: bool,
    /// Checkpoint in that format, where one is published.
    pub checkpoint: Option<String>,
    /// What each copy runs, with its share of the users.
    pub each: ReportedDeployment,
    /// Output tokens a second of all copies, with the stated users.
    pub output_tok_s: f64,
    /// Output tokens a second that each of the stated users sees.
    pub tok_s_per_user: f64,
    /// Users that it carries within the limits.
    pub most_users: u64,
    /// Most output tokens a second within the limits, with as many requests as that takes.
    pub most_output_tok_s: f64,
    /// Longest context that fits with the stated users, tokens.
    pub max_context_tokens: f64,
    /// Power of the devices with the stated users, W; null where none is known.
    pub watts: Option<f64>,
    /// What it costs.
    pub money: Money,
    /// How it stands: `front`, `dominated`, `unpriced`, or `over budget`.
    pub standing: String,
    /// What it is dominated by, or which budget it breaks.
    pub because: Option<String>,
}

/// A build that was looked at and does not serve.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RejectedBuild {
    /// The system, in its largest size that was looked at, or the model where models are sought.
    pub name: String,
    /// Weight formats that were tried.
    pub weight_formats: Vec<String>,
    /// Kind of reason: `tpot`, `out_of_memory`, `weight-format`, `runtime` …
    pub kind: String,
    /// The reason, with its numbers.
    pub reason: String,
}

/// What was looked at.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct SearchSummary {
    /// Systems, parts of nodes, and loose devices.
    pub systems: u64,
    /// Of them, how many serve, in any weight format.
    pub serve: u64,
    /// Searches over all sizes and weight formats.
    pub searches: u64,
    /// Candidates of all searches.
    pub candidates: u64,
    /// Of them, evaluated one by one; bounds and rules dispose of the rest.
    pub evaluated: u64,
    /// Systems that do not serve, by kind of reason.
    pub missed: std::collections::BTreeMap<String, u64>,
}

/// The answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Recommendation {
    /// What every system is asked, so that the answer can be checked.
    pub scenario: Scenario,
    /// What was sought.
    pub sought: Requirements,
    /// The cheapest build whose weights keep the model's quality; null when nothing serves.
    pub minimum: Option<Build>,
    /// A cheaper one with a lower weight format, if there is one.
    pub cheapest: Option<Build>,
    /// Most output per dollar when it carries all it can, of those that keep the model's quality
    /// and cost no more than ten times the minimum.
    pub value: Option<Build>,
    /// Steps above the minimum, the cheapest first.
    pub tiers: Vec<Build>,
    /// Every build that serves, the cheapest first, dominated ones and those over budget included.
    pub builds: Vec<Build>,
    /// What does not serve, and what it misses.
    pub missed: Vec<RejectedBuild>,
    /// What was looked at.
    pub looked: SearchSummary,
}

/// How a system is paid for, and what is known of its price.
#[derive(Clone, Debug)]
pub struct SystemPrices {
    /// Rent of a device.
    pub rented: Option<Bill<Datum>>,
    /// Owning a device.
    pub owned: Option<Bill<Datum>>,
    /// The purchase price is the system's, not its devices'.
    pub covers_host: bool,
}

/// A system that serves, as the search sized it.
pub struct SizedSystem<'a> {
    /// The question, of one copy.
    pub question: &'a Problem,
    /// How many copies, and what they run.
    pub sized: &'a Sized,
    /// Its prices.
    pub prices: SystemPrices,
    /// Names: of the system for people and for `--hardware`, of the model, of a published checkpoint.
    pub names: (String, String, String, Option<String>),
    /// The weights keep the model's quality.
    pub keeps_quality: bool,
}

impl SizedSystem<'_> {
    /// The build, not yet judged.
    pub fn build(&self, sought: &Requirements) -> Build {
        let SizedSystem { question, sized, prices, names, .. } = self;
        let (name, system, model, checkpoint) = names;
        let whole_now = whole(question, &sized.at_share, sized.copies, sought.users);
        let most_users = sized.full_users * sized.copies;
        // Most output and most users may be two deployments.
        let in_flight = sized.full.candidate.concurrency(&Traffic::Free) * sized.copies;
        let whole_full = whole(question, &sized.full, sized.copies, in_flight);
        let mut shared = (*question).clone();
        shared.traffic = Traffic::InFlight(sized.share);
        let times = if sized.copies > 1 { format!("{} copies of ", sized.copies) } else { String::new() };
        Build {
            name: format!("{times}{name}"),
            system: system.clone(),
            model: model.clone(),
            copies: sized.copies,
            devices: whole_now.devices,
            device: question.cluster.device.name.clone(),
            runtime: question.runtime.0.clone(),
            keeps_quality: self.keeps_quality,
            checkpoint: checkpoint.clone(),
            each: reported(&shared, &sized.at_share.candidate),
            output_tok_s: whole_now.output_tok_s,
            tok_s_per_user: sized.at_share.point[place(Metric::OutputTokSPerUser)],
            most_users,
            most_output_tok_s: whole_full.output_tok_s,
            max_context_tokens: sized.at_share.point[place(Metric::MaxContext)].floor(),
            watts: whole_now.watts,
            money: money(prices, &whole_now, &whole_full, sought.prefer),
            standing: String::new(),
            because: None,
        }
    }
}

fn money(prices: &SystemPrices, now: &Totals, full: &Totals, prefer: Option<PaymentMode>) -> Money {
    let hourly = |bill: &Option<Bill<Datum>>| bill.as_ref().map(|bill| now.usd_per_second(bill) * HOUR);
    let (rent, owned) = (hourly(&prices.rented), hourly(&prices.owned));
    let (buy, electricity) = match &prices.owned {
        Some(Bill::Owned(bill)) => {
            let free = Bill::Owned(crate::serving::economy::Owned {
                purchase: Datum { value: 0.0, ..bill.purchase.clone() },
                ..bill.clone()
            });
            let energy = now.watts.map(|_| now.usd_per_second(&free) * HOUR);
            (Some(bill.purchase.value * now.devices as f64), energy)
        }
        _ => (None, None),
    };
    let cheaper = match (owned, rent) {
        (Some(owned), Some(rent)) if owned < rent => Some(PaymentMode::Buy),
        (Some(_), None) => Some(PaymentMode::Buy),
        (_, rent) => rent.map(|_| PaymentMode::Rent),
    };
    let way = prefer.map_or(cheaper, |way| {
        let known = if way == PaymentMode::Buy { owned } else { rent };
        known.map(|_| way)
    });
    let bill = match way {
        Some(PaymentMode::Buy) => prices.owned.as_ref(),
        Some(PaymentMode::Rent) => prices.rented.as_ref(),
        None => None,
    };
    let per_second = bill.map(|bill| now.usd_per_second(bill));
    let span = |seconds: f64| per_second.map(|usd| usd * seconds);
    let mtok = |whole: &Totals| bill.map(|bill| whole.usd_per_token(whole.usd_per_second(bill)) * 1e6);
    Money {
        buy_usd: buy,
        buy_covers_host: prices.covers_host,
        owned_usd_per_hour: owned,
        rent_usd_per_hour: rent,
        electricity_usd_per_hour: electricity,
        way,
        usd_per_hour: span(HOUR),
        usd_per_day: span(24.0 * HOUR),
        usd_per_month: span(MONTH),
        usd_per_mtok: mtok(now),
        usd_per_mtok_full: mtok(full),
    }
}

/// Which stated budget a build breaks, and by how much.
fn over(build: &Build, sought: &Requirements) -> Option<String> {
    use super::number::digits;
    let checks = [
        ("USD to buy", build.money.buy_usd, sought.budget_usd),
        ("USD/h", build.money.usd_per_hour, sought.budget_usd_per_hour),
        ("W", build.watts, sought.max_watts),
    ];
    checks.into_iter().find_map(|(unit, value, most)| {
        let most = most?;
        match value {
            Some(value) if value > most => {
                Some(format!("{} {unit}, {} over the budget", digits(value), digits(value - most)))
            }
            Some(_) => None,
            None => Some(format!("{unit} unknown, may exceed the budget of {}", digits(most))),
        }
    })
}

/// The answer of all builds and misses; at most `most` tiers.
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
        if let Some(why) = over(build, &sought) {
            (build.standing, build.because) = ("over budget".into(), Some(why));
        }
    }
    let within: Vec<usize> = (0..builds.len()).filter(|at| builds[*at].because.is_none()).collect();
    let offers: Vec<OfferMetrics> = within
        .iter()
        .map(|at| {
            let build = &builds[*at];
            OfferMetrics {
                cost: cost(build),
                users: build.most_users,
                pace: build.tok_s_per_user,
                output: build.most_output_tok_s,
                kept: build.keeps_quality,
            }
        })
        .collect();
    let Recommended { minimum, cheapest, value, tiers, standing } = choose(&offers, most);
    for (at, stands) in within.iter().zip(&standing) {
        let (word, why) = match stands {
            Standing::Front => ("front", None),
            Standing::Unpriced => ("unpriced", None),
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
    }
}

/// A miss as it is told.
pub fn missed(name: &str, weight_formats: Vec<String>, unfit: &Unfit) -> RejectedBuild {
    RejectedBuild {
        name: name.to_string(),
        weight_formats,
        kind: unfit.kind.clone(),
        reason: unfit.reason.clone(),
    }
}

impl SearchSummary {
    /// Counts a search.
    pub fn add(&mut self, census: &Census) {
        self.searches += 1;
        self.candidates += census.candidates;
        self.evaluated += census.evaluated;
    }
}
