//! A second argument for placements: memory rows and stage times as mixed-integer programs, one for each order of the
//! members in use, solved by branch and bound. Shares nothing with the dynamic programs but the prices.

use super::chain::{Chain, Member, Spill, Stage};
use super::evaluate::PlacementEvaluator;
use super::solve::PlacementTime;
use crate::search::mip::solve::{SolveBudget, solve};
use crate::search::mip::{MipModel, MipValues, SHARE, Sense};
use crate::search::outcome::Status;

/// Maximum number of members: four have 64 orders.
pub const MOST_MEMBERS: usize = 4;
/// Nodes in which a program is solved. Some of alternating layers on four devices need more, and count as open.
const NODES: u64 = 500;
/// Tableau entries of all nodes of a program: a large one has fewer nodes.
const ENTRIES: u64 = 1_000_000;
/// Cost of a cycle at its limit, so that the solver's tolerance is a millionth of it.
const WHOLE: i64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramTime {
    Sum {
        /// Longest sum that counts, in ticks.
        limit: Option<u64>,
    },
    /// The longer of the sum and of the slowest stage for each micro-batch in flight, up to a limit in ticks.
    Cycle {
        /// Micro-batches in flight.
        flying: u64,
        /// Longest cycle that counts.
        limit: u64,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramOptimum {
    /// Number of programs: one for each order of members.
    pub programs: usize,
    /// Number of them that were solved to the end.
    pub decided: usize,
    /// The least time, and its stages; none where all that were solved are infeasible.
    pub best: Option<(f64, Vec<Stage>)>,
}

impl ProgramOptimum {
    pub fn is_complete(&self) -> bool {
        self.programs > 0 && self.decided == self.programs
    }

    /// The better of both, with the programs of both.
    pub fn and(self, other: ProgramOptimum) -> ProgramOptimum {
        let both = self.best.into_iter().chain(other.best);
        ProgramOptimum {
            programs: self.programs + other.programs,
            decided: self.decided + other.decided,
            best: both.min_by(|a, b| a.0.total_cmp(&b.0)),
        }
    }
}

/// Layers that follow each other and have equal costs on every member.
fn runs(chain: &Chain) -> Vec<(usize, usize)> {
    let same = |a: usize, b: usize| {
        let like = |one: &Member| one.layers[a] == one.layers[b] && one.experts[a] == one.experts[b];
        chain.members.iter().all(like)
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for layer in 0..chain.layers {
        match runs.last_mut() {
            Some((first, count)) if same(*first, layer) => *count += 1,
            _ => runs.push((layer, 1)),
        }
    }
    runs
}

/// Whether the cheapest pages to move out are those that the search moves: experts before others, host memory before
/// storage, and experts first to storage. Otherwise a program would find a cheaper choice, which is another question.
fn moves_in_order(member: &Member) -> bool {
    let rates = |spill: Option<Spill>| spill.map(|one| (one.ticks_per_expert_page, one.ticks_per_page));
    let single = |(experts, rest): (u64, u64)| experts <= rest;
    match (rates(member.spill), rates(member.disk)) {
        (None, None) => true,
        (Some(one), None) | (None, Some(one)) => single(one),
        (Some(host), Some(disk)) => {
            let longer = |host: u64, disk: u64| disk.checked_sub(host);
            let further = (longer(host.0, disk.0), longer(host.1, disk.1));
            single(host) && single(disk) && matches!(further, (Some(experts), Some(rest)) if experts <= rest)
        }
    }
}

/// Terms and constant of a linear expression.
#[derive(Clone, Default)]
struct TickSum {
    terms: Vec<(usize, i64)>,
    constant: i64,
}

impl TickSum {
    fn add(&mut self, column: usize, factor: u64) {
        if factor > 0 {
            self.terms.push((column, factor as i64));
        }
    }

    fn times(&self, factor: i64) -> TickSum {
        let terms = self.terms.iter().map(|(at, each)| (*at, factor * each)).collect();
        TickSum { terms, constant: factor * self.constant }
    }
}

struct StageColumns {
    /// Layers of each run.
    layers: Vec<usize>,
    /// Pages in the host's memory: experts, others.
    host: [usize; 2],
    /// Pages in storage: experts, others.
    disk: [usize; 2],
}

struct OrderProgram<'a> {
    chain: &'a Chain,
    order: &'a [usize],
    runs: Vec<(usize, usize)>,
    model: MipModel,
    stages: Vec<StageColumns>,
}

impl<'a> OrderProgram<'a> {
    fn new(chain: &'a Chain, order: &'a [usize]) -> OrderProgram<'a> {
        let mut program =
            OrderProgram { chain, order, runs: runs(chain), model: MipModel::default(), stages: vec![] };
        program.columns();
        program.cuts();
        (0..order.len()).for_each(|stage| program.memory(stage));
        program.hosts();
        program
    }

    fn member(&self, stage: usize) -> &'a Member {
        &self.chain.members[self.order[stage]]
    }

    fn columns(&mut self) {
        for stage in 0..self.order.len() {
            let member = self.member(stage);
            let model = &mut self.model;
            let mut layers = Vec::new();
            for (first, count) in &self.runs {
                layers.push(model.whole(format!("layers {first} on {stage}"), (0, *count as i64), 0));
            }
            let mut pages = |name: &str, spill: Option<Spill>| {
                let most = spill.map_or(0, |spill| spill.pages) as i64;
                ["experts", "others"]
                    .map(|kind| model.whole(format!("{kind} in {name} of {stage}"), (0, most), 0))
            };
            let (host, disk) = (pages("host memory", member.spill), pages("storage", member.disk));
            self.stages.push(StageColumns { layers, host, disk });
        }
    }

    /// Every layer is on one stage, every stage has one, and a layer begins where those before it are taken.
    fn cuts(&mut self) {
        let ones = |columns: &mut dyn Iterator<Item = usize>| columns.map(|at| (at, 1)).collect::<Vec<_>>();
        for (run, (first, count)) in self.runs.iter().enumerate() {
            let all = ones(&mut self.stages.iter().map(|stage| stage.layers[run]));
            self.model.row((format!("layers from {first}"), ""), all, Sense::Equal, *count as i64);
        }
        for (at, stage) in self.stages.iter().enumerate() {
            let own = ones(&mut stage.layers.iter().copied());
            self.model.row((format!("a layer on {at}"), ""), own, Sense::AtLeast, 1);
        }
        for (run, pair) in self.runs.windows(2).enumerate() {
            for stage in 1..self.stages.len() {
                let full = self.model.whole(format!("run {run} before {stage}"), (0, 1), 0);
                let before =
                    |run: usize| ones(&mut self.stages[..stage].iter().map(|other| other.layers[run]));
                let (mut taken, mut begun) = (before(run), before(run + 1));
                taken.push((full, -(pair[0].1 as i64)));
                begun.push((full, -(pair[1].1 as i64)));
                self.model.row((format!("run {run} taken before {stage}"), ""), taken, Sense::AtLeast, 0);
                self.model.row((format!("run {run} followed before {stage}"), ""), begun, Sense::AtMost, 0);
            }
        }
    }

    /// Ticks and pages of embedding and head on a stage.
    fn ends(&self, stage: usize) -> (u64, u64) {
        let (member, last) = (self.member(stage), self.order.len() - 1);
        let mut ends = (0, 0);
        if stage == 0 {
            ends = (member.first.ticks, member.first.pages);
        }
        if stage == last {
            let copy = if stage == 0 { 0 } else { member.copy };
            ends = (ends.0 + member.last.ticks, ends.1 + member.last.pages + copy);
        }
        ends
    }

    /// The data of a stage fit in its memory, or are in the host's memory or storage.
    fn memory(&mut self, stage: usize) {
        let (member, columns) = (self.member(stage), &self.stages[stage]);
        let (mut held, mut experts) = (TickSum::default(), TickSum::default());
        for (run, (first, _)) in self.runs.iter().enumerate() {
            held.add(columns.layers[run], member.layers[*first].pages);
            experts.add(columns.layers[run], member.experts[*first]);
        }
        let moved = [columns.host[0], columns.host[1], columns.disk[0], columns.disk[1]];
        held.terms.extend(moved.map(|at| (at, -1)));
        let fixed = member.base.saturating_add(self.ends(stage).1) as i64;
        let free = member.usable as i64 - fixed;
        // Weights and caches leave the device; what any stage takes does not.
        let free = if member.base > member.usable { i64::MIN / 2 } else { free };
        let name = |what: &str| (format!("{what} of stage {stage}"), "");
        self.model.row(name("memory"), held.terms, Sense::AtMost, free);
        let mut out = experts.times(-1).terms;
        out.extend([(columns.host[0], 1), (columns.disk[0], 1)]);
        self.model.row(name("experts"), out, Sense::AtMost, 0);
        for (what, pair, spill) in
            [("host memory", columns.host, member.spill), ("storage", columns.disk, member.disk)]
        {
            let most = spill.map_or(0, |spill| spill.pages) as i64;
            self.model.row(name(what), pair.map(|at| (at, 1)).to_vec(), Sense::AtMost, most);
        }
    }

    /// Members of one host share its memory.
    fn hosts(&mut self) {
        for (at, host) in self.chain.hosts.iter().enumerate() {
            let mut taken = TickSum::default();
            for (stage, member) in self.order.iter().enumerate() {
                let devices = host.members.iter().find(|(other, _)| other == member).map_or(0, |one| one.1);
                self.stages[stage].host.iter().for_each(|column| taken.add(*column, devices));
            }
            self.model.row((format!("host {at}"), ""), taken.terms, Sense::AtMost, host.pages as i64);
        }
    }

    /// Ticks of a stage without the preparation of its step; `None` where there is no link to the next.
    fn time(&self, stage: usize) -> Option<TickSum> {
        let (member, columns) = (self.member(stage), &self.stages[stage]);
        let mut time = TickSum { terms: vec![], constant: self.ends(stage).0 as i64 };
        for (run, (first, _)) in self.runs.iter().enumerate() {
            time.add(columns.layers[run], member.layers[*first].ticks);
        }
        for (pair, spill) in [(columns.host, member.spill), (columns.disk, member.disk)] {
            let Some(spill) = spill else { continue };
            time.add(pair[0], spill.ticks_per_expert_page);
            time.add(pair[1], spill.ticks_per_page);
        }
        if let Some(next) = self.order.get(stage + 1) {
            time.constant += self.chain.links[self.order[stage]][*next]? as i64;
        }
        Some(time)
    }

    /// The optimum in ticks with its stages: the outer `None` where the solver does not decide it, the inner one where
    /// the program is infeasible.
    fn optimum(mut self, objective: ProgramTime) -> Option<Option<(f64, Vec<Stage>)>> {
        let times: Option<Vec<TickSum>> = (0..self.order.len()).map(|stage| self.time(stage)).collect();
        let Some(times) = times else { return Some(None) };
        let first = self.member(0).host as i64;
        let fixed = first + times.iter().map(|time| time.constant).sum::<i64>();
        let terms = || times.iter().flat_map(|time| time.terms.iter().copied());
        match objective {
            ProgramTime::Sum { limit } => {
                terms().for_each(|(at, ticks)| self.model.columns[at].cost += ticks);
                if let Some(limit) = limit {
                    let free = (limit as i64).saturating_sub(fixed);
                    self.model.row(("sum", ""), terms().collect(), Sense::AtMost, free);
                }
            }
            ProgramTime::Cycle { flying, limit } => {
                let cycle = self.model.share("cycle", WHOLE);
                let within = |terms: Vec<(usize, i64)>| [terms, vec![(cycle, -(limit as i64))]].concat();
                self.model.row(("sum", ""), within(terms().collect()), Sense::AtMost, -fixed);
                for (stage, time) in times.iter().enumerate() {
                    let host = self.member(stage).host as i64;
                    let all = TickSum { terms: time.terms.clone(), constant: time.constant + host };
                    let all = all.times(flying as i64);
                    let name = (format!("time of stage {stage}"), "");
                    self.model.row(name, within(all.terms), Sense::AtMost, -all.constant);
                }
            }
        }
        let entries = (self.model.rows.len() * self.model.columns.len()) as u64;
        let nodes = NODES.min(ENTRIES / entries.max(1));
        let found = solve(&self.model, &SolveBudget { nodes, own_nodes: nodes });
        match (found.status, found.values) {
            (Status::Infeasible, _) => Some(None),
            (Status::Optimal, Some(values)) => {
                let cost = self.model.objective(&values) as f64 / SHARE as f64;
                let ticks = match objective {
                    ProgramTime::Sum { .. } => cost + fixed as f64,
                    ProgramTime::Cycle { limit, .. } => cost / WHOLE as f64 * limit as f64,
                };
                Some(Some((ticks, self.placed(&values))))
            }
            _ => None,
        }
    }

    fn placed(&self, values: &MipValues) -> Vec<Stage> {
        let mut from = 0;
        let stage = |(columns, member): (&StageColumns, &usize)| {
            let held: i64 = columns.layers.iter().map(|at| values[*at]).sum();
            let stage = Stage { member: *member, from, to: from + usize::try_from(held).unwrap_or(0) };
            from = stage.to;
            stage
        };
        self.stages.iter().zip(self.order).map(stage).collect()
    }
}

/// Every choice of `count` members of `chain`, in every order; of interchangeable members only the first order.
fn orders(chain: &Chain, count: usize) -> Vec<Vec<usize>> {
    // Members of one host are not interchangeable with those of another.
    let kinds =
        if chain.hosts.is_empty() { chain.kinds() } else { (0..chain.members.len()).collect::<Vec<_>>() };
    let mut all: Vec<Vec<usize>> = vec![vec![]];
    for _ in 0..count {
        let longer = |order: &Vec<usize>| {
            let free = |member: &usize| !order.contains(member);
            let next = |member: &usize| {
                (0..*member).all(|other| kinds[other] != kinds[*member] || order.contains(&other))
            };
            let members: Vec<usize> = (0..kinds.len()).filter(free).filter(next).collect();
            members.into_iter().map(|member| [order.as_slice(), &[member]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The optimum in ticks over all orders of `count` members of `chain`.
pub fn optimum(chain: &Chain, count: usize, objective: ProgramTime) -> ProgramOptimum {
    let mut all = ProgramOptimum::default();
    for order in orders(chain, count) {
        let ordered = order.iter().all(|member| moves_in_order(&chain.members[*member]));
        let found = if ordered { OrderProgram::new(chain, &order).optimum(objective) } else { None };
        let decided = usize::from(found.is_some());
        all = all.and(ProgramOptimum { programs: 1, decided, best: found.flatten() });
    }
    all
}

impl PlacementEvaluator<'_> {
    /// The optimum in seconds of the programs of a problem, over every number of members; `known` seconds are reached.
    /// `None` where it has too many members, or needs a known time.
    pub fn program_optimum(&self, objective: PlacementTime, known: Option<f64>) -> Option<ProgramOptimum> {
        /// Times that are a hundredth longer than the known one count: orders that do not reach it end at once.
        const WITHIN: f64 = 1.01;
        let members = self.question().members.len();
        if members > MOST_MEMBERS {
            return None;
        }
        let mut all = ProgramOptimum::default();
        for count in 1..=members.min(self.question().graph.layer_block.len()) {
            let priced = self.priced(count);
            let limit = known.map(|known| (WITHIN * known / priced.tick) as u64);
            let time = match (objective, limit) {
                (PlacementTime::Cycle, Some(limit)) => {
                    ProgramTime::Cycle { flying: self.batches(count).0, limit }
                }
                // Whether anything fits does not depend on the time.
                _ => ProgramTime::Sum { limit },
            };
            let found = optimum(&priced.chain, count, time);
            let best = found.best.map(|(ticks, stages)| (ticks * priced.tick, stages));
            all = all.and(ProgramOptimum { best, ..found });
        }
        Some(all)
    }
}
