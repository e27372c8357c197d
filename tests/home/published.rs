//! Published runs on home machines and workstations (`tests/published/home.csv`), and our own on two cores of a Xeon
//! (`own.csv`, measured by `.ci/llama/measure.py`): cross-validated by source.
//!
//! The constants of a runtime's host are fitted on the rows of all other sources, then the source that was left out is
//! predicted.

use std::collections::BTreeMap;

use mantile::quantity::read::Plain;
use mantile::request::build_candidate::candidate;
use mantile::search::problem::Problem;
use mantile::spec::runtime::Runtime;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use mantile::store::resolved_scenario::ResolvedScenario;
use serde_json::Value;

use super::super::ask::{CATALOG, on};

const TABLES: [&str; 2] = [include_str!("../published/home.csv"), include_str!("own.csv")];
/// The machine of our own runs, as `detect` wrote it.
const TWO_CORES: &str = include_str!("two-cores.json");

/// One run; its fields by the column names of the table.
type Run = BTreeMap<String, String>;

fn runs() -> Vec<Run> {
    let rows = |table: &str| -> Vec<Run> {
        csv::Reader::from_reader(table.as_bytes()).deserialize().map(|run| run.expect("a row")).collect()
    };
    TABLES.into_iter().flat_map(rows).collect()
}

fn catalog() -> Catalog {
    let mut system: Value = serde_json::from_str(TWO_CORES).expect("a system");
    let device = system["device"].take();
    system["device"] = device["id"].clone();
    let entry = |catalog: Catalog, (kind, entry): (CatalogKind, Value)| {
        catalog.with_entry(kind, entry["id"].as_str().expect("an id"), &entry.to_string())
    };
    [(CatalogKind::Devices, device), (CatalogKind::Systems, system)].into_iter().fold(CATALOG.clone(), entry)
}

/// The problem of a run: `isl` tokens after `prefix` that are in the cache, then `osl`.
fn problem(catalog: &Catalog, run: &Run, [prefix, isl, osl]: [u64; 3]) -> Problem {
    let text = |key: &str| Some(run[key].clone());
    let hosted = !run["cpu"].is_empty();
    let scenario = Scenario {
        runtime: text("runtime"),
        weight_format: text("weight_format"),
        kv_format: text("kv_format"),
        host: hosted.then(|| format!("{},{}", run["cpu"], run["memory"])),
        host_memory: hosted.then(|| "2 TB".into()),
        concurrency: Some(1),
        prefix: Some(prefix),
        isl: Some(prefix + isl),
        osl: Some(osl),
        ..on(&run["model"], &run["hardware"])
    };
    let problem = ResolvedScenario::resolve(catalog, &scenario).and_then(|scenario| scenario.problem());
    problem.unwrap_or_else(|fault| panic!("{}: {fault}", run["id"]))
}

/// Constants of a host that the fit varies: memory and crossing in decode, compute and link in prompts; and a figure of its own
/// over that of the shipped profile, for the arithmetic of decode, or in prompts for formats that have one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Constants {
    fraction: f64,
    second: f64,
    /// Without one, that of prompts is the same for all formats.
    own: Option<f64>,
}

/// Seconds per prompt token, or per generated token, with other constants.
fn predicted(run: &Run, problem: &mut Problem, with: Constants, decode: bool) -> f64 {
    let shipped = std::sync::Arc::clone(&problem.formats);
    let formats = &mut std::sync::Arc::make_mut(&mut problem.formats)[0];
    let (processor, path) = match formats.machine.host.as_deref_mut() {
        Some(host) => (&mut host.processor, Some(&mut host.path)),
        None => (&mut formats.machine, None),
    };
    if let Some(of_decode) = &mut processor.decode_compute {
        of_decode.value *= with.own.unwrap_or(1.0);
    }
    let cpu = &mut processor.chip;
    if decode {
        for fraction in [&mut cpu.gemm_memory, &mut cpu.moe_memory, &mut cpu.attention_memory] {
            fraction.value = with.fraction;
        }
        if let Some(path) = path {
            path.crossing.value = with.second;
        }
    } else {
        let own = cpu.gemm_compute.value / cpu.attention_compute.value;
        let products = with.own.filter(|_| own != 1.0).map_or(1.0, |times| own * times);
        for (fraction, times) in [
            (&mut cpu.gemm_compute, products),
            (&mut cpu.moe_compute, products),
            (&mut cpu.attention_compute, 1.0),
        ] {
            fraction.value = with.fraction * times;
        }
        if let Some(path) = path {
            path.reached.value = with.second;
            path.micro_batch.value = run["micro_batch"].parse().expect("a number");
        }
    }
    formats.reread();
    let part = &run["part"];
    let host = if part.is_empty() { String::new() } else { format!(", host {part}") };
    let plan = format!("1 x {} @1{host}", run["degrees"]);
    let plan = candidate(problem, &plan.parse().expect("a plan")).expect("a candidate");
    let metrics = plan.evaluate(&Plain, problem, &mut ()).metrics;
    problem.formats = shipped;
    let new = problem.workload.lengths.isl - problem.workload.lengths.prefix;
    if decode { metrics.tpot.value() } else { metrics.ttft.value() / new as f64 }
}

fn grid(decode: bool) -> Vec<Constants> {
    let (fractions, seconds, own): (&[f64], &[f64], &[f64]) = if decode {
        let fractions = &[0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8];
        (fractions, &[3e-5, 6e-5, 1e-4, 1.5e-4, 2e-4, 3e-4], &[0.6, 0.8, 1.0, 1.2, 1.6, 2.4])
    } else {
        let fractions = &[0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5];
        (fractions, &[0.15, 0.2, 0.25, 0.3, 0.4, 0.5], &[0.75, 0.875, 1.0, 1.125, 1.25])
    };
    // Of equal errors the first counts: no figure where no run has one.
    let own: Vec<_> = (!decode).then_some(None).into_iter().chain(own.iter().copied().map(Some)).collect();
    let mut all = Vec::new();
    for &fraction in fractions {
        for &second in seconds {
            all.extend(own.iter().map(|&own| Constants { fraction, second, own }));
        }
    }
    all
}

/// A measured run with its predictions over the grid.
struct Rated {
    class: &'static str,
    runtime: String,
    source: String,
    id: String,
    /// Predicted over measured time, by grid point.
    ratios: Vec<f64>,
}

fn rated(decode: bool) -> Vec<Rated> {
    let (grid, catalog) = (grid(decode), catalog());
    let mut all = Vec::new();
    for run in runs() {
        let key = if decode { "tg_tok_s" } else { "pp_tok_s" };
        let Ok(rate) = run[key].parse::<f64>() else { continue };
        let number = |key: &str| run[key].parse::<u64>().expect("a whole number");
        let (depth, isl, osl) = (number("depth"), number("isl"), number("osl"));
        let lengths = if decode { [0, depth + 1, osl] } else { [depth, isl, 1] };
        let mut problem = problem(&catalog, &run, lengths);
        let ratios = grid.iter().map(|with| predicted(&run, &mut problem, *with, decode) * rate).collect();
        let class = if run["part"].is_empty() { "CPU only" } else { "experts on the host" };
        let (runtime, source, id) = (run["runtime"].clone(), run["source"].clone(), run["id"].clone());
        all.push(Rated { class, runtime, source, id, ratios });
    }
    all
}

/// The grid point with the least total error over the sources, each with the same weight.
fn fitted<'a>(runs: impl Iterator<Item = &'a Rated>, points: usize) -> usize {
    let mut by_source: BTreeMap<&str, Vec<&Rated>> = BTreeMap::new();
    runs.for_each(|run| by_source.entry(&run.source).or_default().push(run));
    let error = |point: usize| -> f64 {
        let mean = |runs: &Vec<&Rated>| {
            runs.iter().map(|run| run.ratios[point].ln().abs()).sum::<f64>() / (runs.len() as f64).sqrt()
        };
        by_source.values().map(mean).sum()
    };
    (0..points).min_by(|a, b| error(*a).total_cmp(&error(*b))).expect("a point")
}

/// p10, p50 and p90 of measured over predicted of all runs, each source predicted by the fit of the others and with the same
/// weight.
fn error_quantiles(decode: bool) -> [f64; 3] {
    let (runs, grid) = (rated(decode), grid(decode));
    let mut errors: Vec<(f64, &str)> = Vec::new();
    for run in &runs {
        let others = runs.iter().filter(|other| other.runtime == run.runtime && other.source != run.source);
        errors.push((1.0 / run.ratios[fitted(others, grid.len())], &run.source));
    }
    errors.sort_by(|a, b| a.0.total_cmp(&b.0));
    let of = |source: &str| errors.iter().filter(|(_, other)| *other == source).count() as f64;
    let weights: Vec<f64> = errors.iter().map(|(_, source)| 1.0 / of(source)).collect();
    let sources: f64 = weights.iter().sum();
    [0.1, 0.5, 0.9].map(|part| {
        let mut sum = 0.0;
        let at = weights.iter().position(|weight| {
            sum += weight;
            sum >= part * sources - 1e-9
        });
        errors[at.expect("a run")].0
    })
}

/// Plans that a processor computes have the errors of these runs.
#[test]
fn the_interval_of_processors_has_the_errors_of_runs_that_were_left_out() {
    let shipped = &CATALOG.defaults().unwrap().on_processor;
    let [ttft, tpot] = [false, true].map(error_quantiles);
    let rate = [1.0 / tpot[2], 1.0 / tpot[1], 1.0 / tpot[0]];
    for (name, found, stated) in
        [("ttft", ttft, shipped.ttft), ("tpot", tpot, shipped.tpot), ("throughput", rate, shipped.throughput)]
    {
        // Rounded to a hundredth.
        let same = found.iter().zip(stated).all(|(found, stated)| (found / stated - 1.0).abs() < 0.01);
        assert!(same, "{name}: {found:?} is found, {stated:?} is shipped");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Median errors by class and runtime, each source predicted by the fit of the others.
fn cross_validated(decode: bool) -> BTreeMap<(&'static str, String), (usize, f64)> {
    let (runs, grid) = (rated(decode), grid(decode));
    let mut errors: BTreeMap<(&'static str, String), Vec<f64>> = BTreeMap::new();
    let runtimes: std::collections::BTreeSet<&str> = runs.iter().map(|run| run.runtime.as_str()).collect();
    for runtime in runtimes {
        let own = || runs.iter().filter(|run| run.runtime == runtime);
        let all = fitted(own(), grid.len());
        println!("{runtime}, {}: {:?}", if decode { "decode" } else { "prompt" }, grid[all]);
        for run in own() {
            let point = fitted(own().filter(|other| other.source != run.source), grid.len());
            let ratio = run.ratios[point];
            println!("  {} {} x {ratio:.2} (all: {:.2})", run.id, run.class, run.ratios[all]);
            errors.entry((run.class, runtime.to_string())).or_default().push((ratio - 1.0).abs());
        }
    }
    errors.into_iter().map(|(key, errors)| (key, (errors.len(), median(errors)))).collect()
}

/// The shipped constants of hosts are the fit of all of these runs.
#[test]
fn shipped_constants_are_the_fit() {
    for name in ["llama.cpp", "ik_llama.cpp"] {
        let host = CATALOG.load::<Runtime>(name).unwrap().host.expect("it computes on the host");
        for (decode, fraction, second) in
            [(true, host.memory.value, host.crossing.value), (false, host.compute.value, host.link.value)]
        {
            let (runs, grid) = (rated(decode), grid(decode));
            let best = grid[fitted(runs.iter().filter(|run| run.runtime == name), grid.len())];
            let is_near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
            let same = is_near(best.fraction, fraction) && is_near(best.second, second);
            assert!(same, "{name}: {best:?} is the fit, {fraction} and {second} are shipped");
            let source = if decode { &host.memory.source.text } else { &host.compute.source.text };
            let errors = cross_validated(decode);
            for (class, words) in
                [("CPU only", " % on processors alone"), ("experts on the host", " % with experts")]
            {
                let before = source.split_once(words).map(|(before, _)| before.rsplit(' ').next());
                let stated: f64 = before.flatten().and_then(|text| text.parse().ok()).expect("a median");
                let error = 100.0 * errors[&(class, name.to_owned())].1;
                // Rounded.
                assert!((stated - error).abs() < 0.6, "{name}: {error} %{words}, not {stated}");
            }
            // Of the figures of their own, the grid has multiples of the shipped ones.
            let has_own = if decode { host.decode.is_some() } else { !host.compute_alone.is_empty() };
            assert!(!has_own || best.own == Some(1.0), "{name}: {best:?}");
        }
    }
}

#[test]
fn decode_of_published_home_runs_is_within_its_error() {
    for ((class, runtime), (count, error)) in cross_validated(true) {
        println!("decode, {class}, {runtime}: {count} runs, median {:.1} %", error * 100.0);
        assert!(error <= 0.25, "{class}, {runtime}");
    }
}

#[test]
fn prompts_of_published_home_runs_are_within_their_error() {
    for ((class, runtime), (count, error)) in cross_validated(false) {
        println!("prompt, {class}, {runtime}: {count} runs, median {:.1} %", error * 100.0);
        // Wide server parts alone miss by more: their achieved rate depends on formats and threads.
        let most = if class == "CPU only" { 0.45 } else { 0.35 };
        assert!(error <= most, "{class}, {runtime}");
    }
}
