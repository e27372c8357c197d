//! The evaluation of a candidate with every number recorded, and the rows of its operators.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::cost::roofline::Cost;
use crate::plan::parallel::Phase;
use crate::plan::shard::{ShardedBlock, Task, TaskStep};
use crate::quantity::count::Origin;
use crate::quantity::ledger::{BranchComparison, Id, Ledger, LedgerEntry, Traced};
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, COUNT, FLOP, SECOND};
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;
use crate::serving::evaluate::Evaluation;
use crate::serving::step::CostObserver;
use crate::spec::objective::METRICS;

/// The kind of a row, which decides its bound.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    /// Operations and bytes of a device.
    Kernel,
    /// Links between devices.
    Collective,
    /// Launches, the host, copies.
    Wait,
}

/// An operator of one layer, or a wait.
pub(super) struct OperatorRow<'l> {
    pub(super) phase: Phase,
    pub(super) kind: RowKind,
    pub(super) path: String,
    /// Layers that have it.
    pub(super) layers: Traced<'l>,
    pub(super) cost: Cost<Qty<Traced<'l>>>,
}

pub(super) struct WorkbookTrace<'l> {
    pub(super) ledger: &'l Ledger,
    pub(super) entries: Vec<LedgerEntry>,
    pub(super) origins: HashMap<Id, Origin>,
    pub(super) comparisons: Vec<BranchComparison>,
    pub(super) evaluation: Evaluation<Qty<Traced<'l>>>,
    pub(super) operators: Vec<OperatorRow<'l>>,
}

/// Collects the rows while the candidate is evaluated.
struct RowCollector<'l> {
    ledger: &'l Ledger,
    rows: Vec<OperatorRow<'l>>,
}

impl<'l> CostObserver<Traced<'l>> for RowCollector<'l> {
    fn on_operator(
        &mut self,
        phase: Phase,
        block: &ShardedBlock,
        step: &TaskStep,
        cost: &Cost<Qty<Traced<'l>>>,
    ) {
        self.rows.push(OperatorRow {
            phase,
            kind: match step.task {
                Task::Communicate(_) => RowKind::Collective,
                Task::Compute { .. } => RowKind::Kernel,
            },
            path: format!("{}/{}/{}", phase.name(), block.name, step.name),
            layers: self.ledger.input_count(block.layers).0,
            cost: *cost,
        });
    }

    fn on_idle(&mut self, phase: Phase, what: &'static str, times: u64, time: Qty<Traced<'l>>) {
        let zero = |unit| Qty(Traced::literal(0.0, unit));
        let none = zero(SECOND);
        self.rows.push(OperatorRow {
            phase,
            kind: RowKind::Wait,
            path: format!("{}/{what}", phase.name()),
            layers: Traced::literal(times as f64, COUNT),
            cost: Cost {
                flops: zero(FLOP),
                bytes: zero(BYTE),
                wire: zero(BYTE),
                compute_time: none,
                memory_time: none,
                time,
                roofline_time: none,
            },
        });
    }
}

impl<'l> WorkbookTrace<'l> {
    /// Evaluates the candidate on an empty ledger.
    pub(super) fn of(ledger: &'l Ledger, problem: &Problem, candidate: &Candidate) -> WorkbookTrace<'l> {
        let mut collector = RowCollector { ledger, rows: Vec::new() };
        let evaluation = candidate.evaluate(&ledger, problem, &mut collector);
        let entries = ledger.entries();
        let mut operators = collector.rows;
        for row in &mut operators {
            let Some(id) = row.cost.time.0.id() else { continue };
            let path = &entries[id as usize].path;
            match row.kind {
                RowKind::Kernel | RowKind::Collective => row.path = path.to_string(),
                // A wait is part of a layer or a step: its own name says more.
                RowKind::Wait => row.path = format!("{path}/{}", row.path.rsplit('/').next().unwrap_or("")),
            }
        }
        let mut seen = BTreeSet::new();
        let mut comparisons = ledger.comparisons();
        comparisons.retain(|one| seen.insert((one.left, one.right)));
        WorkbookTrace { ledger, origins: ledger.origins(), comparisons, evaluation, operators, entries }
    }

    /// Every number that a sheet shows outside the blocks of formulas.
    pub(super) fn roots(&self) -> Vec<Id> {
        let Evaluation { metrics, memory, decode, prefill, spilled, slowest } = &self.evaluation;
        let of_table = METRICS.iter().filter_map(|entry| metrics.get(entry.metric));
        let held =
            [memory.weights, memory.kv, memory.activations, memory.buffers, memory.total, memory.usable];
        let steps = [decode, prefill].map(|step| [step.total, step.slowest]).concat();
        let others = [metrics.in_flight, slowest.ttft, slowest.tpot, slowest.e2e];
        let numbers = of_table.chain(held).chain(steps).chain(others).chain(*spilled).chain(memory.state);
        let rows = self.operators.iter().flat_map(|row| {
            let Cost { flops, bytes, wire, compute_time, memory_time, time, roofline_time } = row.cost;
            [flops, bytes, wire, compute_time, memory_time, time, roofline_time].map(|number| number.0)
        });
        let rows = rows.chain(self.operators.iter().map(|row| row.layers));
        let compared = self.comparisons.iter().flat_map(|one| [one.left, one.right]);
        numbers.map(|number| number.0).chain(rows).filter_map(Traced::id).chain(compared).collect()
    }

    pub(super) fn collectives(&self) -> BTreeSet<Rc<str>> {
        let rows = self.operators.iter().filter(|row| row.kind == RowKind::Collective);
        rows.filter_map(|row| Some(self.entries[row.cost.time.0.id()? as usize].path.clone())).collect()
    }
}
