//! Tables of measurements: CSV, a run a line in JSON, or the benchmark file of another tool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::given::GivenRunFacts;
use crate::spec::error::Error;
use crate::spec::limits::ROWS;
use crate::spec::run::RunRecord;
use crate::spec::text::from_json;
use crate::spec::visible::visible;
use crate::validate::imported::{ImportedRun, imported_runs, is_imported};
use crate::validate::measured::{MeasuredRow, Record};
use crate::validate::peers::PeerPrediction;
use crate::validate::run_cells::RunCells;
use crate::validate::summary::DroppedRow;

/// A table of measurements: CSV, JSON Lines of runs, or the benchmark file of another tool.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTable {
    /// Name in errors, such as that of its file.
    pub name: String,
    /// Header and rows; a run a line, as `bench` writes them (`schema run`); or what another tool wrote (docs/imports.md).
    pub csv: String,
}

/// The rows of all tables.
///
/// # Errors
/// A row is not a measurement; the fault names table and row.
pub fn all_rows(tables: &[MeasuredTable], given: &GivenRunFacts) -> Result<Vec<MeasuredRow>, Error> {
    let mut measured = Vec::new();
    for table in tables {
        measured.extend(rows_with(&table.csv, given).map_err(|fault| fault.in_file(&table.name))?);
    }
    Ok(measured)
}

/// The rows of tables, those that a faulty cell drops, and predictions of other simulators.
#[derive(Clone, Debug, Default)]
pub struct ReadTables {
    pub rows: Vec<MeasuredRow>,
    pub dropped: Vec<DroppedRow>,
    pub peers: Vec<PeerPrediction>,
}

/// The rows of all tables, without those that have a faulty cell: these are listed.
///
/// # Errors
/// A table lacks a column, or has no row that can be used.
pub fn usable_rows(tables: &[MeasuredTable], given: &GivenRunFacts) -> Result<ReadTables, Error> {
    let mut found = ReadTables::default();
    for table in tables {
        let before = (found.rows.len(), found.peers.len(), found.dropped.len());
        let mut first = None;
        let mut drop = |line: u64, fault: Error| {
            let (column, found_here, expected) =
                (fault.key.clone(), fault.found.clone(), fault.expected.clone());
            found.dropped.push(DroppedRow {
                table: table.name.clone(),
                row: line,
                column: visible(&column).into_owned(),
                found: visible(&found_here).into_owned(),
                expected,
            });
            first.get_or_insert(in_row(line, fault));
        };
        let (rows, peers) = (&mut found.rows, &mut found.peers);
        read(&table.csv, given, &mut |line, record| {
            match record {
                Ok(RecordOf::Runs(runs)) => runs.into_iter().for_each(|run| push(rows, before.0, run)),
                Ok(RecordOf::Peer(peer)) => peers.push(peer),
                Err(fault) => drop(line, fault),
            }
            Ok(())
        })
        .map_err(|fault| fault.in_file(&table.name))?;
        if (found.rows.len(), found.peers.len()) == (before.0, before.1) {
            let fault = first.unwrap_or_else(no_row);
            let rows = found.dropped.len() - before.2;
            let found = if rows > 0 {
                format!("{} (no row of {rows} can be used)", fault.found)
            } else {
                fault.found.clone()
            };
            return Err(Error { found, ..fault }.in_file(&table.name));
        }
    }
    Ok(found)
}

/// The rows of a table, of which none may be faulty: fits take them.
///
/// # Errors
/// A row is not a measurement; the fault names the row.
pub fn rows(text: &str) -> Result<Vec<MeasuredRow>, Error> {
    rows_with(text, &GivenRunFacts::default())
}

/// The same, with facts that benchmark files do not state.
fn rows_with(text: &str, given: &GivenRunFacts) -> Result<Vec<MeasuredRow>, Error> {
    let mut measured: Vec<MeasuredRow> = Vec::new();
    read(text, given, &mut |line, record| {
        if let RecordOf::Runs(runs) = record.map_err(|fault| in_row(line, fault))? {
            runs.into_iter().for_each(|run| push(&mut measured, 0, run));
        }
        Ok(())
    })?;
    if measured.is_empty() { Err(no_row()) } else { Ok(measured) }
}

/// A record of a table.
enum RecordOf {
    Runs(Vec<MeasuredRow>),
    Peer(PeerPrediction),
}

fn in_row(line: u64, fault: Error) -> Error {
    let key = if fault.key.is_empty() { format!("row {line}") } else { format!("row {line}: {}", fault.key) };
    Error { key, ..fault }
}

fn no_row() -> Error {
    Error::new("", "no row", "measurements", "give a file with a header and at least one row")
}

/// Adds a run to those of a table, which begin at `first`; some go into the one before them.
fn push(rows: &mut Vec<MeasuredRow>, first: usize, run: MeasuredRow) {
    let rest = match rows.get_mut(first..).and_then(<[MeasuredRow]>::last_mut) {
        Some(last) => last.join(run),
        None => Some(run),
    };
    rows.extend(rest);
}

/// Takes a record with its line.
type RecordTaker<'a> = &'a mut dyn FnMut(u64, Result<RecordOf, Error>) -> Result<(), Error>;

/// The runs of a file: those of `bench`, or those of another tool.
///
/// # Errors
/// It is a table of measurements, or faulty.
pub fn runs_of(table: &MeasuredTable, given: &GivenRunFacts) -> Result<Vec<ImportedRun>, Error> {
    let own = table.csv.trim_start().starts_with('{') && table.csv.contains("\"run_id\"");
    let runs = match own {
        true => {
            let lines = table.csv.lines().filter(|line| !line.trim().is_empty());
            let runs = lines.map(|line| from_json::<RunRecord>(line, "a run").map(ImportedRun::of));
            runs.collect::<Result<_, Error>>().map_err(|fault| fault.in_file(&table.name))?
        }
        false => imported_runs(&table.csv, &table.name)?.runs,
    };
    runs.into_iter().map(|run| given.applied(run)).collect()
}

/// Reads the records of a table one by one, each with its line.
fn read(text: &str, given: &GivenRunFacts, with: RecordTaker<'_>) -> Result<(), Error> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // No header of a table begins so, and no other tool has this key.
    let is_object = first.trim_start().starts_with('{');
    match () {
        () if is_object && first.contains("\"run_id\"") => read_runs(text, given, with),
        () if !is_object && Record(header_of(first)).has_columns().is_ok() => read_csv(text, with),
        () if is_object || is_imported(text) => read_imported(text, given, with),
        () => read_csv(text, with),
    }
}

/// The columns of a header.
fn header_of(line: &str) -> BTreeMap<&str, &str> {
    line.trim().split(',').map(|column| (column.trim_matches('"'), "")).collect()
}

/// The runs of another tool's file, each with its number from 1. The caller knows the name of the file.
fn read_imported(text: &str, given: &GivenRunFacts, with: RecordTaker<'_>) -> Result<(), Error> {
    for (number, run) in imported_runs(text, "")?.runs.into_iter().enumerate() {
        with(number as u64 + 1, imported_rows(run, given).map(RecordOf::Runs))?;
    }
    Ok(())
}

fn imported_rows(run: ImportedRun, given: &GivenRunFacts) -> Result<Vec<MeasuredRow>, Error> {
    let run = given.applied(run)?;
    RunCells::of(run.complete()?).record().runs()
}

/// The same of a file with a run a line.
fn read_runs(text: &str, given: &GivenRunFacts, with: RecordTaker<'_>) -> Result<(), Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (count, (number, line)) in lines.enumerate() {
        ROWS.check_whole("rows", count as u64 + 1)?;
        let run = from_json::<RunRecord>(line, "a run").and_then(|run| given.applied(ImportedRun::of(run)));
        let runs = run.and_then(|run| RunCells::of(&run.run).record().runs());
        with(number as u64 + 1, runs.map(RecordOf::Runs))?;
    }
    Ok(())
}

fn read_csv(text: &str, with: RecordTaker<'_>) -> Result<(), Error> {
    let broken = |fault: csv::Error| {
        Error::new("", fault.to_string(), "comma-separated rows under a header", "correct that line")
    };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(broken)?.clone();
    Record(header.iter().map(|key| (key, "")).collect()).has_columns()?;
    for (number, record) in reader.records().enumerate() {
        ROWS.check_whole("rows", number as u64 + 1)?;
        let record = record.map_err(broken).and_then(|cells| {
            let record = Record(header.iter().zip(cells.iter()).collect());
            Ok(match record.peer()? {
                Some(peer) => RecordOf::Peer(peer),
                None => RecordOf::Runs(record.runs()?),
            })
        });
        with(number as u64 + 2, record)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(tables: &[MeasuredTable]) -> Result<ReadTables, Error> {
        usable_rows(tables, &GivenRunFacts::default())
    }

    #[test]
    fn a_faulty_cell_is_reported_with_its_row() {
        let fault = rows("model,hardware,runtime,isl\na,b,c,7\na,b,c,x\n").unwrap_err();
        assert_eq!((fault.key.as_str(), fault.found.as_str()), ("row 3: isl", "x"));
        assert_eq!(rows("model,hardware,runtime\n").unwrap_err().found, "no row");
        assert!(rows("model,hardware,runtime\na,b\n").unwrap_err().found.contains("fields"));
        assert_eq!(rows("model,hardware\na,b\n").unwrap_err().key, "runtime");
    }

    #[test]
    fn runs_are_rows_of_a_table() {
        let mut run = RunRecord {
            run_id: "r".to_owned(),
            model_id: "m".to_owned(),
            runtime_id: "vllm".to_owned(),
            hardware_id: Some("h100-sxm".to_owned()),
            plan: Some("2 x tp4 @8, weights fp8, kv fp8".to_owned()),
            quant: Some("fp8".to_owned()),
            context_tokens: 256,
            output_tokens: 64,
            concurrency: Some(8),
            ..RunRecord::default()
        };
        (run.metrics.ttft_ms_p50, run.metrics.tpot_ms_p50) = (Some(50.0), Some(9.0));
        let lines = |runs: &[&RunRecord]| -> String {
            runs.iter().map(|run| serde_json::to_string(run).unwrap() + "\n").collect()
        };
        let mut rate = RunRecord { concurrency: None, rate_per_s: Some(4.0), ..run.clone() };
        rate.arrival_variation = Some(2.0);
        let failed = RunRecord { outcome: crate::spec::run::RunOutcome::Oom, ..run.clone() };
        let read = rows(&lines(&[&run, &rate, &failed])).unwrap();
        let [one, open, oom] = &read[..] else { panic!("{read:?}") };
        assert_eq!((one.isl, one.osl, one.concurrency), (256, 64, Some(8)));
        assert_eq!((one.pools[0].workers, one.pools[0].tp, one.weight_format.as_str()), (Some(2), 4, "fp8"));
        assert_eq!(
            (one.outcome.ttft_ms, one.outcome.tpot_ms, one.warning.as_str()),
            (Some(50.0), Some(9.0), "")
        );
        let arrivals = &open.traffic.as_ref().unwrap().arrivals;
        let expected =
            crate::validate::measured_traffic::MeasuredArrivals::Rate { per_s: 4.0, variation: 2.0 };
        assert_eq!((arrivals, oom.warning.as_str()), (&expected, "no request was answered"));
        let fault = rows(&(lines(&[&run]) + "{\"run_id\": 5}\n")).unwrap_err();
        assert_eq!(fault.key, "row 2: run_id");
    }

    #[test]
    fn a_faulty_cell_drops_its_row_and_no_other() {
        let table = |csv: &str| MeasuredTable { name: "t.csv".into(), csv: csv.into() };
        let header = "model,hardware,runtime,isl\n";
        let found = usable(&[table(&format!("{header}a,b,c,7\na,b,c,~9\na,b\na,b,c,8\n"))]).unwrap();
        assert_eq!(found.rows.iter().map(|row| row.isl).collect::<Vec<_>>(), [7, 8]);
        let [cell, cells] = &found.dropped[..] else { panic!("{:?}", found.dropped) };
        assert_eq!((cell.row, cell.column.as_str(), cell.found.as_str()), (3, "isl", "~9"));
        assert!(cell.expected.contains("1 to") && cell.table == "t.csv", "{cell:?}");
        assert_eq!((cells.row, cells.column.as_str()), (4, ""));
        let fault = usable(&[table(&format!("{header}a,b,c,~9\n"))]).unwrap_err();
        assert_eq!(fault.key, "row 2: isl");
        assert!(fault.found.contains("no row of 1"), "{}", fault.found);
        assert_eq!(usable(&[table(header)]).unwrap_err().found, "no row");
        let peers = "simulator,metric,predicted_ms,measured_ms\nx,ttft_mean,9,10\nx,ttft_mean,,10\n";
        let found = usable(&[table(peers)]).unwrap();
        assert_eq!((found.rows.len(), found.peers.len(), found.dropped.len()), (0, 1, 1));
    }
}
