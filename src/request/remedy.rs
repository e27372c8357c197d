//! Remedies for infeasible problems. Each change is rounded to printed flags, and confirmed by a search with the values
//! of these flags before it is shown.

mod context;
mod lengths;
mod stated_limits;
mod system;

use crate::quantity::read::Plain;
use crate::report::flag::{Digits, Flag, condition_flags};
use crate::report::relax::{ConflictReport, ConflictSet, Remedy, RemedyClaim, RemedyGain};
use crate::search::conflict::hitting;
use crate::search::problem::{Problem, Traffic};
use crate::search::relax::{
    Condition, Stopped, all_with, all_without, answered, best, conflicts, factor, largest_below, least,
};
use crate::search::run::Control;
use crate::spec::error::Error;
use crate::spec::objective::Metric;
use crate::spec::precision::ANY;
use crate::spec::scenario::Scenario;
use crate::spec::writer::shell_word;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::{DEFAULT_HARDWARE, ResolvedScenario};

pub fn with_flags(flags: &[Flag], scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    for flag in flags {
        match flag {
            Flag::Limit(Metric::Ttft, ..) => scenario.ttft = Some(flag.value()),
            Flag::Limit(Metric::Tpot, ..) => scenario.tpot = Some(flag.value()),
            Flag::Limit(..) => scenario.e2e = Some(flag.value()),
            Flag::Concurrency(requests) => scenario.concurrency = Some(*requests),
            Flag::Rate(rate) => scenario.rate = Some(rate.value()),
            Flag::Isl(tokens) => scenario.isl = Some(*tokens),
            Flag::Osl(tokens) => scenario.osl = Some(*tokens),
            Flag::Prefix(tokens) => scenario.prefix = Some(*tokens),
            Flag::MaxModelLen(tokens) => scenario.max_model_len = Some(*tokens),
            Flag::MaxNumSeqs(requests) => scenario.max_num_seqs = Some(*requests),
            Flag::Offload(mode) => scenario.offload = Some(*mode),
            Flag::Hardware(name, _) => scenario.hardware = Some(name.clone()),
            Flag::HostMemory(_) => scenario.host_memory = Some(flag.value()),
            Flag::WeightFormat(id) => scenario.weight_format = Some(id.clone()),
        }
    }
    scenario
}

/// The scenarios that answer one: of each runtime that is measured on the devices, with the runtime `any`.
pub fn of_each_runtime(catalog: &Catalog, scenario: &Scenario) -> Result<Vec<Scenario>, Error> {
    if scenario.runtime.as_deref() != Some(ANY) {
        return Ok(vec![scenario.clone()]);
    }
    let cluster = catalog.hardware(scenario.hardware.as_deref().unwrap_or(DEFAULT_HARDWARE))?;
    let with = |id: String| Scenario { runtime: Some(id), ..scenario.clone() };
    let mut ids = catalog.compared_runtimes(&cluster)?;
    // The one that is taken where none is named is compared too.
    let usual = ResolvedScenario::resolve(catalog, &Scenario { runtime: None, ..scenario.clone() });
    ids.extend(usual.ok().map(|usual| usual.runtime.id.clone()).filter(|id| !ids.contains(id)));
    Ok(ids.into_iter().map(with).collect())
}

/// Maximum number of ways to resolve all conflicts.
const MOST_WAYS: usize = 6;
/// Maximum number of printed units by which a change is rounded outward.
const MOST_UNITS: usize = 3;

pub struct InfeasibleProblem<'a> {
    pub catalog: &'a Catalog,
    /// The scenario as typed.
    pub scenario: &'a Scenario,
    /// The resolved scenario, of one of the runtimes.
    pub resolved: &'a ResolvedScenario,
    /// The infeasible problems: one, or one for each runtime that is compared.
    pub problems: &'a [Problem],
    pub control: &'a Control<'a>,
}

impl InfeasibleProblem<'_> {
    /// The reasons and remedies; those found before the search was stopped, if it was.
    pub fn conflict(&self) -> ConflictReport {
        let mut found = ConflictReport::default();
        found.complete = self.fill(&mut found).is_ok();
        found.remedies.sort_by(Remedy::order);
        found
    }

    fn fill(&self, found: &mut ConflictReport) -> Result<(), Stopped> {
        if self.problems.iter().all(|problem| problem.context_fits().is_err()) {
            let stated = self.longest_request(found)?;
            return if stated { Ok(()) } else { self.lengths(found) };
        }
        let all = conflicts(self.problems, self.control)?;
        if all.bare {
            if !self.longest_request(found)? {
                self.lengths(found)?;
            }
        } else {
            found.conflicts = all.sets.iter().map(|set| ConflictSet::of(set)).collect();
            for way in ways(&all.sets) {
                let flags = self.loosened(self.problems, &way)?;
                found.remedies.extend(self.confirmed(flags)?);
            }
        }
        self.stated_limits(all.bare, found)?;
        found.remedies.extend(self.larger(all.bare)?);
        self.other_devices(all.bare, found)?;
        found.remedies.extend(self.host_memory(all.bare)?);
        if all.bare {
            self.other_systems(found)?;
        }
        found.remedies.extend(self.lower_formats()?);
        Ok(())
    }

    /// Ends the analysis where the search is stopped: resolving a problem of many devices takes time too.
    fn watched(&self) -> Result<(), Stopped> {
        if (self.control.stop)() { Err(Stopped) } else { Ok(()) }
    }

    /// The problems with typed flags; none where they do not resolve.
    fn with_flags(&self, flags: &[Flag]) -> Result<Vec<Problem>, Stopped> {
        let scenarios = of_each_runtime(self.catalog, &with_flags(flags, self.scenario)).unwrap_or_default();
        let problem = |scenario| {
            self.watched()?;
            let resolved = ResolvedScenario::resolve(self.catalog, &scenario).ok();
            Ok(resolved.and_then(|resolved| resolved.problem().ok()))
        };
        scenarios.into_iter().map(problem).filter_map(Result::transpose).collect()
    }

    fn works(&self, flags: &[Flag]) -> Result<bool, Stopped> {
        answered(&self.with_flags(flags)?, self.control)
    }

    /// A remedy of flags that are feasible as typed, rounded outward where the printed value just misses; none where
    /// that does not help.
    fn confirmed(&self, flags: Option<Vec<Flag>>) -> Result<Option<Remedy>, Stopped> {
        let Some(mut flags) = flags else { return Ok(None) };
        let mut units = 0;
        while !self.works(&flags)? {
            let looser = flags.last().and_then(Flag::looser).filter(|_| units < MOST_UNITS);
            let (Some(looser), Some(last)) = (looser, flags.last_mut()) else { return Ok(None) };
            *last = looser;
            units += 1;
        }
        let mut tried = Vec::new();
        let mut claim = RemedyClaim::Least;
        for at in 0..flags.len() {
            let Some(tighter) = flags[at].tighter() else { continue };
            let mut others = flags.clone();
            others[at] = tighter.clone();
            if self.works(&others)? {
                claim = RemedyClaim::About;
            } else {
                tried.push(tighter);
            }
        }
        if tried.is_empty() && claim == RemedyClaim::Least {
            claim = RemedyClaim::Works;
        }
        Ok(Some(Remedy { gives: self.gain(&flags), ..Remedy::new(&flags, self.now(&flags), claim, &tried) }))
    }

    /// The optimum with typed flags, of all runtimes; none where the search was stopped before it was found.
    fn gain(&self, flags: &[Flag]) -> Option<RemedyGain> {
        let gains = self.with_flags(flags).into_iter().flatten().filter_map(|problem| {
            let found = best(&problem, self.control).ok()??;
            let objective = *problem.objective.first()?;
            // A metric that is only reported has no place in a point.
            let metrics = found.candidate.evaluate(&Plain, &problem, &mut ()).metrics;
            let in_column = |metric: Metric| Some(metric.entry().in_column(metrics.get(metric)?.value()));
            let value = in_column(objective.metric)?;
            Some(RemedyGain {
                objective,
                value,
                output_tok_s: in_column(Metric::OutputTokS)?,
                output_tok_s_per_user: in_column(Metric::OutputTokSPerUser)?,
                usd_per_hour: in_column(Metric::UsdPerHour),
            })
        });
        gains.min_by(RemedyGain::order)
    }

    fn now(&self, flags: &[Flag]) -> String {
        let limit = |metric| {
            let limit = self.problems.first()?.limit(metric)?;
            Some(condition_flags(&Condition::Limit(metric, limit)))
        };
        let workload = &self.resolved.workload;
        let one = |flag: &Flag| match flag {
            Flag::Limit(metric, ..) => limit(*metric),
            Flag::Concurrency(_) => Some(format!("--concurrency {}", workload.concurrency?)),
            Flag::Rate(_) => Some(format!("--rate {}", workload.rate?)),
            Flag::Isl(_) => Some(format!("--isl {}", workload.isl)),
            Flag::Osl(_) => Some(format!("--osl {}", workload.osl)),
            Flag::Prefix(_) => Some(format!("--prefix {}", workload.prefix)),
            Flag::MaxModelLen(_) => {
                self.scenario.max_model_len.map(|tokens| format!("--max-model-len {tokens}"))
            }
            Flag::MaxNumSeqs(_) => Some(format!("--max-num-seqs {}", self.scenario.max_num_seqs?)),
            Flag::Offload(_) => Some(Flag::Offload(self.scenario.offload?).to_string()),
            Flag::Hardware(..) => Some(format!("--hardware {}", shell_word(&self.resolved.cluster.id))),
            Flag::HostMemory(_) => {
                Some(format!("--host-memory {}", shell_word(self.scenario.host_memory.as_ref()?)))
            }
            Flag::WeightFormat(_) => {
                self.scenario.weight_format.as_ref().map(|id| format!("--weight-format {}", shell_word(id)))
            }
        };
        flags.iter().filter_map(one).collect::<Vec<_>>().join(" ")
    }

    /// The flags of the smallest change of the conditions in `way`, others unchanged, that makes a problem feasible.
    fn loosened(&self, problems: &[Problem], way: &[Condition]) -> Result<Option<Vec<Flag>>, Stopped> {
        let limits: Vec<(Metric, f64)> = way
            .iter()
            .filter_map(|one| match *one {
                Condition::Limit(metric, limit) => Some((metric, limit)),
                _ => None,
            })
            .collect();
        let mut flags = Vec::new();
        let mut now = problems.to_vec();
        if let Some(traffic) = way.iter().find(|one| !matches!(one, Condition::Limit(..))) {
            let lifted: Vec<Condition> = way.iter().copied().filter(|one| one != traffic).collect();
            let Some((flag, carried)) = self.most(&all_without(problems, &lifted), *traffic)? else {
                return Ok(None);
            };
            flags.push(flag);
            now = all_with(&now, carried);
        }
        // All conditions change by the same factor first, so that no single one takes the whole change.
        if limits.len() > 1 {
            let Some(factor) = factor(&now, &limits, self.control)? else { return Ok(None) };
            for (metric, limit) in &limits {
                now = all_with(&now, Condition::Limit(*metric, limit * factor));
            }
        }
        for (metric, _) in limits {
            let seconds = least(&now, metric, self.control)?;
            let Some(flag) = seconds.and_then(|seconds| Flag::limit(metric, seconds)) else {
                return Ok(None);
            };
            now = all_with(&now, Condition::Limit(metric, flag.seconds().unwrap_or(f64::INFINITY)));
            flags.push(flag);
        }
        Ok(Some(flags))
    }

    /// The highest traffic of the kind of `stated` that a problem sustains, below the requested one.
    fn most(&self, problems: &[Problem], stated: Condition) -> Result<Option<(Flag, Condition)>, Stopped> {
        let carries = |traffic: Traffic| {
            let mut others = problems.to_vec();
            others.iter_mut().for_each(|problem| problem.traffic = traffic);
            answered(&others, self.control)
        };
        match stated {
            Condition::InFlight(requests) => {
                let most =
                    largest_below(1, requests, |requests| carries(Traffic::InFlight(requests.into())))?;
                Ok(most.map(|requests| (Flag::Concurrency(requests), Condition::InFlight(requests))))
            }
            Condition::Rate(rate) => {
                let most = slower(rate, |digits| carries(Traffic::Rate(digits.value())))?;
                Ok(most.map(|digits| (Flag::Rate(digits), Condition::Rate(digits.value()))))
            }
            Condition::Limit(..) => Ok(None),
        }
    }

    /// Flags that make the model and one request fit, with the further changes that the other conditions then need;
    /// none where the flags do not suffice.
    fn completed(&self, flags: Vec<Flag>) -> Result<Option<Vec<Flag>>, Stopped> {
        let problems = self.with_flags(&flags)?;
        if problems.iter().all(|problem| problem.context_fits().is_err()) {
            return Ok(None);
        }
        let all = conflicts(&problems, self.control)?;
        if all.bare {
            return Ok(None);
        }
        let Some(way) = ways(&all.sets).into_iter().next() else { return Ok(Some(flags)) };
        let more = self.loosened(&problems, &way)?;
        Ok(more.map(|more| [flags, more].concat()))
    }
}

/// Sets of conditions whose removal resolves all conflicts: the fewest conditions first.
fn ways(sets: &[Vec<Condition>]) -> Vec<Vec<Condition>> {
    let mut all: Vec<Condition> = Vec::new();
    for one in sets.iter().flatten() {
        if !all.contains(one) {
            all.push(*one);
        }
    }
    let place = |one: &Condition| all.iter().position(|other| other == one).unwrap_or(all.len());
    let sets: Vec<Vec<usize>> = sets.iter().map(|set| set.iter().map(place).collect()).collect();
    let ways = hitting(&sets).into_iter().take(MOST_WAYS);
    ways.map(|way| way.into_iter().map(|one| all[one]).collect()).collect()
}

/// The highest printed rate that `carries`, below an infeasible one: down to a millionth of it.
fn slower(
    rate: f64,
    mut carries: impl FnMut(Digits) -> Result<bool, Stopped>,
) -> Result<Option<Digits>, Stopped> {
    const PARTS: f64 = 1e6;
    let (mut low, mut high) = (None, rate);
    while low.is_none() && high > rate / PARTS {
        let Some(half) = Digits::down(high / 2.0) else { return Ok(None) };
        if carries(half)? { low = Some(half) } else { high = half.value() }
    }
    let Some(mut low) = low else { return Ok(None) };
    loop {
        let middle = Digits::down((low.value() + high) / 2.0).filter(|digits| digits.value() > low.value());
        let next = middle.unwrap_or_else(|| low.more());
        if next.value() >= high {
            return Ok(Some(low));
        }
        if carries(next)? { low = next } else { high = next.value() }
    }
}
