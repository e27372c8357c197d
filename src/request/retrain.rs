//! Retraining: profiles fitted to stored runs, adopted only where the errors of runs that a fit did not see fall.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::UNCONTROLLED;
use super::calibrate::{CalibrateRequest, calibrate};
use super::drift::{DriftFigure, DriftKey, PredictedRun, WINDOW, in_percent, median_error, predicted_runs};
use super::runs::{in_known_names, lines_of};
use super::validate::table::MeasuredTable;
use crate::report::table::table;
use crate::spec::calibration_version::{CalibrationVersion, VersionMedian};
use crate::spec::error::Error;
use crate::spec::run::RunRecord;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;
use crate::store::runs::RunStore;

/// Parts of the runs, each predicted by a fit to the others (ten-fold is usual, five is enough: Hastie, Tibshirani and
/// Friedman, The Elements of Statistical Learning, 2009, section 7.10.1).
const PARTS: usize = 5;

/// The outcome of a retraining for a runtime.
#[derive(Clone, Debug, Serialize)]
pub struct RetrainedRuntime {
    /// The runtime.
    pub runtime: String,
    /// Its new version, without a number and a time; null where the errors do not fall.
    pub version: Option<CalibrationVersion>,
    /// Median errors before, and of runs that the fit did not see.
    pub medians: Vec<VersionMedian>,
    /// Why there is no new version.
    pub kept_because: Option<String>,
}

/// A run of a runtime, with its prediction by the version before.
struct KnownRun<'a> {
    run: &'a RunRecord,
    before: &'a PredictedRun,
}

/// Fits a profile for each runtime of the runs to the newest of each group. `shipped` has the profiles that a fit starts
/// from, `current` those that are in force.
pub fn retrain(shipped: &Catalog, current: &Catalog, runs: &[RunRecord]) -> Vec<RetrainedRuntime> {
    let predicted = predicted_runs(current, runs);
    let mut groups = BTreeMap::<&DriftKey, Vec<KnownRun>>::new();
    for (run, before) in runs.iter().zip(predicted.iter()) {
        let Ok(before) = before else { continue };
        if DriftFigure::EACH.into_iter().any(|figure| before.errors.get(figure).is_some()) {
            groups.entry(&before.key).or_default().push(KnownRun { run, before });
        }
    }
    let mut runtimes = BTreeMap::<&str, Vec<KnownRun>>::new();
    for (key, mut runs) in groups {
        let newest = runs.split_off(runs.len().saturating_sub(WINDOW));
        runtimes.entry(&key.runtime).or_default().extend(newest);
    }
    runtimes.into_iter().map(|(runtime, runs)| retrained(shipped, runtime, &runs)).collect()
}

/// The outcome for one runtime: groups whose errors would rise are left out until none rises.
fn retrained(shipped: &Catalog, runtime: &str, runs: &[KnownRun]) -> RetrainedRuntime {
    let mut medians = vec![];
    let mut within: Vec<usize> = (0..runs.len()).collect();
    let kept_because = loop {
        if within.len() < 2 {
            break if runs.len() < 2 { "a fit to one run leaves none to test it" } else { "no error falls" }
                .to_owned();
        }
        let after = match left_out(shipped, runtime, runs, &within) {
            Ok(after) => after,
            Err(reason) => break reason,
        };
        let compared = compared(runs, &after);
        medians = compared.iter().map(|(_, median)| median.clone()).collect();
        let rises =
            |key: &DriftKey| compared.iter().any(|(of, median)| *of == key && median.after > median.before);
        let left: Vec<usize> = within.iter().copied().filter(|at| !rises(&runs[*at].before.key)).collect();
        if compared.iter().any(|(key, _)| rises(key)) {
            if left.len() == within.len() {
                break "the errors of other runs would rise".to_owned();
            }
            within = left;
            continue;
        }
        if !compared.iter().any(|(_, median)| median.after < median.before) {
            break "no error falls".to_owned();
        }
        break match fitted(shipped, runtime, within.iter().map(|at| runs[*at].run)) {
            Ok(profile) => {
                let used: Vec<RunRecord> = within.iter().map(|at| runs[*at].run.clone()).collect();
                let version = Some(version(shipped, runtime, &used, medians.clone(), profile));
                return RetrainedRuntime {
                    runtime: runtime.to_owned(),
                    version,
                    medians,
                    kept_because: None,
                };
            }
            Err(reason) => reason,
        };
    };
    RetrainedRuntime { runtime: runtime.to_owned(), version: None, medians, kept_because: Some(kept_because) }
}

/// The profile of a runtime, fitted to runs as `calibrate` does.
fn fitted<'a>(
    shipped: &Catalog,
    runtime: &str,
    runs: impl Iterator<Item = &'a RunRecord>,
) -> Result<String, String> {
    let runs: Vec<RunRecord> = runs.cloned().collect();
    let csv = lines_of(&in_known_names(shipped, &runs));
    let tables = vec![MeasuredTable { name: "store".to_owned(), csv }];
    let request = CalibrateRequest { tables, ..CalibrateRequest::default() };
    let report = calibrate(shipped, &request, &UNCONTROLLED)
        .map_err(|fault| format!("{}: {}", fault.key, fault.found))?;
    report.profiles().get(runtime).cloned().ok_or_else(|| "no profile of this runtime was fitted".to_owned())
}

/// The prediction of each run by a fit without it; of runs that are not `within`, by a fit to all that are.
fn left_out(
    shipped: &Catalog,
    runtime: &str,
    runs: &[KnownRun],
    within: &[usize],
) -> Result<Vec<Option<PredictedRun>>, String> {
    let mut after: Vec<Option<PredictedRun>> = vec![None; runs.len()];
    let mut predict = |without: &[usize], of: &[usize]| -> Result<(), String> {
        if of.is_empty() {
            return Ok(());
        }
        let others = within.iter().filter(|at| !without.contains(at)).map(|at| runs[*at].run);
        let profile = fitted(shipped, runtime, others)?;
        let catalog = shipped.clone().with_entry(CatalogKind::Runtimes, runtime, &profile);
        let records: Vec<RunRecord> = of.iter().map(|at| runs[*at].run.clone()).collect();
        for (at, made) in of.iter().zip(predicted_runs(&catalog, &records)) {
            after[*at] = made.ok();
        }
        Ok(())
    };
    let parts = PARTS.min(within.len());
    for part in 0..parts {
        let own: Vec<usize> = within.iter().copied().skip(part).step_by(parts).collect();
        predict(&own, &own)?;
    }
    let others: Vec<usize> = (0..runs.len()).filter(|at| !within.contains(at)).collect();
    predict(&[], &others)?;
    Ok(after)
}

/// The medians of each group and figure, before and after.
fn compared<'a>(runs: &'a [KnownRun], after: &[Option<PredictedRun>]) -> Vec<(&'a DriftKey, VersionMedian)> {
    let mut groups = BTreeMap::<(&DriftKey, DriftFigure), Vec<[f64; 2]>>::new();
    for (run, after) in runs.iter().zip(after) {
        for figure in DriftFigure::EACH {
            let Some(before) = run.before.errors.get(figure) else { continue };
            // A run that a fit leaves without a prediction counts as infinitely wrong.
            let after = after.as_ref().and_then(|after| after.errors.get(figure)).unwrap_or(f64::INFINITY);
            groups.entry((&run.before.key, figure)).or_default().push([before, after]);
        }
    }
    let of = |((key, figure), errors): ((&'a DriftKey, DriftFigure), Vec<[f64; 2]>)| {
        let [before, after] =
            [0, 1].map(|at| median_error(errors.iter().map(|pair| pair[at])).unwrap_or(f64::INFINITY));
        let median = VersionMedian {
            hardware: key.hardware.clone(),
            model_class: key.size.words().to_owned(),
            figure: figure.name().to_owned(),
            n: errors.len() as u64,
            before,
            after,
        };
        (key, median)
    };
    groups.into_iter().map(of).collect()
}

/// The version of a fit, with the versions of what its runs ran on.
fn version(
    shipped: &Catalog,
    runtime: &str,
    runs: &[RunRecord],
    medians: Vec<VersionMedian>,
    profile: String,
) -> CalibrationVersion {
    let runs = in_known_names(shipped, runs);
    let distinct = |of: &dyn Fn(&RunRecord) -> Option<String>| {
        let mut found: Vec<String> = runs.iter().filter_map(of).collect();
        found.sort();
        found.dedup();
        found
    };
    let stated = |run: &RunRecord, keys: &[&str]| {
        keys.iter().find_map(|key| run.env.get(*key).and_then(Value::as_str).map(str::to_owned))
    };
    CalibrationVersion {
        number: 0,
        created_utc: String::new(),
        program: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned(),
        runtime: runtime.to_owned(),
        runtime_versions: distinct(&|run| run.runtime_version.clone()),
        drivers: distinct(&|run| stated(run, &["driver", "driver_version"])),
        cuda: distinct(&|run| stated(run, &["cuda", "cuda_version"])),
        runs: runs.len() as u64,
        restores: None,
        medians,
        profile,
    }
}

/// Appends the new versions of outcomes to a store.
///
/// # Errors
/// The store cannot be written.
pub fn published(
    store: &mut RunStore,
    mut outcomes: Vec<RetrainedRuntime>,
) -> Result<Vec<RetrainedRuntime>, Error> {
    for outcome in &mut outcomes {
        outcome.version = outcome.version.take().map(|version| store.add_version(version)).transpose()?;
    }
    Ok(outcomes)
}

/// Outcomes as a text for people.
pub fn retrained_text(outcomes: &[RetrainedRuntime]) -> String {
    let one = |outcome: &RetrainedRuntime| {
        let verdict = match (&outcome.version, &outcome.kept_because) {
            (Some(version), _) => format!("version {}, from {} runs", version.number, version.runs),
            (None, Some(reason)) => format!("no new version: {reason}"),
            (None, None) => "no new version".to_owned(),
        };
        format!("\n{}: {verdict}\n{}", outcome.runtime, medians_table(&outcome.medians))
    };
    outcomes.iter().map(one).collect()
}

/// Median errors before and after, as a table.
pub fn medians_table(medians: &[VersionMedian]) -> String {
    const HEADER: [&str; 6] = ["hardware", "model", "figure", "runs", "before", "after, left out"];
    let rows = medians.iter().map(|median| {
        let names = [&median.hardware, &median.model_class, &median.figure].map(String::clone);
        let figures = [median.n.to_string(), in_percent(median.before), in_percent(median.after)];
        [names, figures].concat()
    });
    if medians.is_empty() { String::new() } else { table(&HEADER, rows) + "\n" }
}
