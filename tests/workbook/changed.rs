//! A changed input cell gives what the program gives for that input, at the same plan.

use std::collections::BTreeMap;
use std::fmt::Arguments;

use mantile::quantity::count::{Count, Origin};
use mantile::quantity::datum::Datum;
use mantile::quantity::num::Qty;
use mantile::quantity::read::{Plain, Reading};
use mantile::request::build_candidate::candidate;
use mantile::request::given_plan::with_plan;
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;

use super::cases::{WorkbookCase, cases};
use super::{Book, same};
use crate::ask::on;
use crate::cases::Case;

/// The plain reading with one input changed.
pub struct ChangedReading<'a> {
    pub symbol: &'a str,
    pub value: f64,
    pub to: f64,
}

impl Reading for ChangedReading<'_> {
    type N = f64;
    fn datum(&self, datum: &Datum) -> Qty<f64> {
        let changed = datum.symbol == self.symbol && datum.value == self.value;
        Qty(if changed { self.to } else { datum.value })
    }
    fn count(&self, count: Count) -> Qty<f64> {
        let workload = matches!(count.origin, Origin::Workload(_));
        let changed = workload && count.symbol == self.symbol && count.value as f64 == self.value;
        Qty(if changed { self.to } else { count.value as f64 })
    }
    fn within<T>(&self, _: Arguments<'_>, make: impl FnOnce() -> T) -> T {
        make()
    }
}

/// The problem of a case and its plan.
pub fn posed(case: &WorkbookCase, catalog: &Catalog) -> Case {
    let plan = Deployment { plan: Some(case.plan.to_owned()), ..Deployment::default() };
    let scenario = Scenario { deployment: Some(plan), ..case.scenario.clone() };
    let (resolved, plan) = with_plan(catalog, &scenario).unwrap();
    let problem = resolved.problem().unwrap();
    Case { candidate: candidate(&problem, &plan).unwrap(), problem }
}

/// The metrics of a case in a reading, under the names of the workbook.
pub fn metrics<R: Reading<N = f64>>(case: &Case, read: &R) -> BTreeMap<&'static str, f64> {
    let found = case.candidate.evaluate(read, &case.problem, &mut ());
    let of = &found.metrics;
    let known = [
        ("ttft", Some(of.ttft)),
        ("tpot", Some(of.tpot)),
        ("e2e", Some(of.e2e)),
        ("output_tok_s", Some(of.output_tok_s)),
        ("requests_per_s", Some(of.requests_per_s)),
        ("usd_per_second", of.usd_per_second),
        ("usd_per_token", of.usd_per_token),
        ("watts", of.watts),
        ("max_context", Some(of.max_context)),
        ("concurrency", Some(of.in_flight)),
        ("decode.memory", Some(found.memory.total)),
        ("prefill", Some(found.prefill.total)),
    ];
    known.into_iter().filter_map(|(name, number)| Some((name, number?.value()))).collect()
}

/// Compares the workbook with the program.
pub fn agree(what: &str, book: &Book, program: &BTreeMap<&'static str, f64>) {
    let shown = book.metrics();
    assert!(shown.len() >= 8, "{what}: {shown:?}");
    for (name, number) in &shown {
        assert!(
            same(*number, program[name]),
            "{what}: {name} is {number}, the program says {}",
            program[name]
        );
    }
}

/// Inputs that are changed in each case, of all that are live.
const CHANGED: usize = 4;

#[test]
fn a_changed_input_gives_what_the_formulas_give_for_it() {
    let (catalog, mut tried, mut turned) = (Catalog::default(), 0, 0);
    for (number, case) in cases().iter().enumerate() {
        let mut book = Book::of(case, &catalog);
        let posed = posed(case, &catalog);
        agree(case.plan, &book, &metrics(&posed, &Plain));
        let inputs = book.inputs();
        let of =
            |word: &'static str| inputs.iter().filter(move |(.., found)| found.starts_with(word)).cloned();
        let live: Vec<_> = of("live").collect();
        assert!(live.len() >= 20 && of("search result").count() > 0, "{}: {}", case.plan, live.len());
        // Copies follow their first symbol: the plain reading would change only one of them.
        let copied: Vec<f64> = of("copy").map(|(place, ..)| book.number(place)).collect();
        let step = live.len().div_ceil(CHANGED).max(1);
        for (place, symbol, _) in live.iter().skip(number % step).step_by(step) {
            let value = book.number(*place);
            if copied.contains(&value) {
                continue;
            }
            let to = if value.fract() == 0.0 { value + 1.0 + (value * 0.125).floor() } else { value * 0.97 };
            book.change(*place, to);
            if book.branches_changed() == 0.0 {
                let read = ChangedReading { symbol, value, to };
                let program = metrics(&posed, &read);
                agree(&format!("{}: {symbol} {value} -> {to}", case.plan), &book, &program);
                tried += 1;
            } else {
                turned += 1;
            }
            book.set(*place, value);
        }
    }
    assert!(tried > 50 && turned < tried / 4, "{tried} changes compared, {turned} turned a branch");
}

/// A file with one value of it replaced.
fn edited(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old} is in the file");
    text.replace(old, new)
}

/// The program reads a catalogue with one figure changed; the workbook of the shipped catalogue has its cell changed.
#[test]
fn a_changed_cell_gives_what_the_program_gives_for_the_changed_file() {
    let scenario = Scenario { prefix: Some(256), ..on("Llama-3.3-70B-Instruct", "8xh100") };
    let case = WorkbookCase { scenario, plan: "1 x tp8 @48, weights fp8" };
    let shipped = Catalog::default();
    let mut book = Book::of(&case, &shipped);
    let before = book.metrics();
    let files = [
        (CatalogKind::Devices, "nvidia-h100-sxm", "3.35 TB/s", "2.9 TB/s", "memory_bandwidth", 2.9e12),
        (CatalogKind::Devices, "nvidia-h100-sxm", "1979 TFLOP/s", "1500 TFLOP/s", "peak_fp8", 1.5e15),
        (
            CatalogKind::Devices,
            "nvidia-h100-sxm",
            "81559 MiB",
            "90000 MiB",
            "memory_capacity",
            90_000.0 * 1_048_576.0,
        ),
        (CatalogKind::Systems, "dgx-h100", "450 GB/s", "300 GB/s", "nvlink4_bandwidth", 3e11),
        (CatalogKind::Systems, "dgx-h100", "1.9 us", "4 us", "nvlink4_latency", 4e-6),
        // One figure of a file that several inputs repeat.
        (CatalogKind::Formats, "bf16", "16 bit", "17 bit", "bytes_per_native_weight", 17.0 / 8.0),
    ];
    for (kind, id, old, new, symbol, to) in files {
        let text = shipped.entries(kind)[id].text().unwrap();
        let catalog = Catalog::default().with_entry(kind, id, &edited(&text, old, new));
        let (place, ..) = book.inputs().into_iter().find(|(_, found, _)| found == symbol).unwrap();
        let value = book.number(place);
        book.change(place, to);
        assert_ne!(book.metrics(), before, "{symbol} matters");
        assert_eq!(book.branches_changed(), 0.0);
        agree(&format!("{symbol} {new}"), &book, &metrics(&posed(&case, &catalog), &Plain));
        book.set(place, value);
    }
    let longer = Scenario { isl: Some(3000), osl: Some(700), prefix: Some(500), ..case.scenario.clone() };
    for (symbol, to) in [("isl", 3000.0), ("osl", 700.0), ("prefix", 500.0)] {
        let (place, ..) = book.inputs().into_iter().find(|(_, found, _)| found == symbol).unwrap();
        book.change(place, to);
    }
    agree("lengths", &book, &metrics(&posed(&WorkbookCase { scenario: longer, ..case }, &shipped), &Plain));
}

/// Without a prefix no pages are shared. A workbook made so says that a prefix takes another branch of the formulas.
#[test]
fn a_first_prefix_is_another_branch() {
    let case =
        WorkbookCase { scenario: on("Llama-3.3-70B-Instruct", "8xh100"), plan: "1 x tp8 @48, weights fp8" };
    let mut book = Book::of(&case, &Catalog::default());
    let (place, ..) = book.inputs().into_iter().find(|(_, found, _)| found == "prefix").unwrap();
    assert_eq!(book.branches_changed(), 0.0);
    book.change(place, 500.0);
    assert!(book.branches_changed() > 0.0);
}
