//! Rows that were served faster than the kernels of the devices compute: some of their prompts were not computed.

use std::collections::HashSet;

use crate::request::validate::predict::PreparedRow;
use crate::search::physical_bound::least_device_seconds;
use crate::validate::measured::MeasuredRow;

/// Key of a series of rows: their server, and the traffic that it was sent.
type Series<'a> = ([&'a str; 4], &'a str, &'a str, bool);

fn series(row: &MeasuredRow) -> Series<'_> {
    (row.cell(), &row.version, &row.source, row.equal_lengths)
}

/// Whether each row is of a series of which one is faster than its kernels in microbenchmarks. `ready` has the rows with the
/// constants of these alone.
pub fn beyond_kernels(rows: &[MeasuredRow], ready: &[Result<PreparedRow, String>]) -> Vec<bool> {
    let beyond = |(row, ready): (&MeasuredRow, &Result<PreparedRow, String>)| {
        ready.as_ref().is_ok_and(|ready| is_beyond_kernels(row, ready))
    };
    let found: HashSet<Series<'_>> =
        rows.iter().zip(ready).filter(|both| beyond(*both)).map(|(row, _)| series(row)).collect();
    rows.iter().map(|row| found.contains(&series(row))).collect()
}

/// Whether its requests took less than their part of the devices' time. A run under a rate may have had repeated prompts,
/// which its table states; the halves of a disaggregated one need not have been equally busy.
fn is_beyond_kernels(row: &MeasuredRow, ready: &PreparedRow) -> bool {
    let deployed = &ready.deployment;
    let (Some(ttft), Some(tpot)) = (row.outcome.ttft_ms, row.outcome.tpot_ms) else { return false };
    if deployed.timed_separately || deployed.pools.len() > 1 || ready.simulated.is_some() {
        return false;
    }
    let life_s = (ttft + tpot * (deployed.lengths.osl as f64 - 1.0)) / 1e3;
    let machine = ready.problem.formats[0].plain();
    let devices = ready.problem.cluster.devices() as f64;
    let each = devices * life_s / deployed.concurrency.max(1) as f64;
    each < least_device_seconds(&ready.problem, deployed.lengths, machine)
}
