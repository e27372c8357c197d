//! `sweep`: the metrics of every combination of varied keys; `merge`: shards, of `bench` too, as one file.

mod rows;

use std::path::PathBuf;
use std::str::FromStr;

use serde_json::Value;

use super::deadline::with_deadline;
use super::defaults::AppliedDefaults;
use super::output::{OutputArgs, format_of, note_defaults, parser};
use super::plot::PlotArgs;
use super::problem::ProblemArgs;
use super::simulate::with_trace;
use super::terminal::width;
use super::{CliError, ExitStatus};
use crate::report::format::Format;
use crate::report::pretty::pretty;
use crate::report::rendered::{EVERY, markdown};
use crate::report::svg::sweep::{MOST_POINTS, sweep_picture};
use crate::report::sweep::{PointStatus, SHOWN_ROWS, ShardNumber, SweepReport, SweepRow, table};
#[cfg(feature = "parquet")]
use crate::report::sweep::{cells, columns};
use crate::request::RequestControl;
use crate::request::runs::{is_run, lines_of as lines_of_runs, merged, read_runs};
use crate::request::simulate::SimulatedTraffic;
use crate::request::sweep::merge::{RowFormat, ShardLines, merge, merge_reports};
use crate::request::sweep::{PreparedSweep, SweepRequest};
use crate::search::outcome::Status;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::limits::{TIME_LIMIT, number};
use crate::spec::objective::Metric;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};
#[cfg(feature = "parquet")]
use crate::store::parquet::ParquetWriter;
use rows::{RowWriter, lines_of};

const AFTER: &str = "\
KEY is a key of a scenario file (`mantile-opt schema scenario`) or a degree of the deployment: tp, pp, dp, cp, ep, \
replicas, prefill_tp, decode_tp … VALUES are a list, a geometric range LOW..HIGH*FACTOR or an arithmetic range \
LOW..HIGH+STEP. Every combination is a point; the last key changes fastest. With a degree or a plan, each point is an \
estimate; without, the best deployment. A point that does not run is a row with its reason.

With --simulate, or a flag of the traffic, every point is simulated too, by the rules of `simulate`: rows get its percentiles, \
output rate, goodput and cache hits in columns that begin with `simulated_`, or the reason why not.

Examples:
  mantile-opt sweep --model Llama-3.1-8B --hardware 8xh100 --vary tp=1,2,4,8 --vary concurrency=1..256*2
  mantile-opt sweep --model Qwen3-32B --vary hardware=4xl40s,2xh100,8xh100 --vary isl=1k..64k*2 --out sweep.csv
  mantile-opt sweep --model Qwen3-32B --hardware 8xh100 --tp 4 --vary ttft=100ms..800ms*2,none
  mantile-opt sweep --hardware 8xh100 --vary plan='1 x tp8;2 x tp4, weights fp8' --format jsonl
  mantile-opt sweep --model Qwen3-14B --hardware 1xh100 --tp 1 --simulate --ttft 1s --tpot 50ms --vary rate=2..16+2
  mantile-opt sweep --hardware 8xh100 --tp 8 --vary isl=1k..64k+500 --shard 3/16 --out shard-3.csv
  mantile-opt merge shard-*.csv --out sweep.csv";

/// Whether all rows are needed at once.
fn is_whole(format: Format) -> bool {
    format.is_picture() || matches!(format, Format::Json | Format::Yaml | Format::Html)
}

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Sweep {
    #[command(flatten)]
    pub problem: ProblemArgs,
    #[command(flatten)]
    pub deployment: Deployment,
    /// Simulate every point under traffic too, as `simulate` does; implied by flags of the traffic
    #[arg(long, help_heading = "Traffic")]
    pub simulate: bool,
    #[command(flatten)]
    pub traffic: SimulatedTraffic,
    /// Send the requests or sessions of a trace, as `simulate --trace` does
    #[arg(long, value_name = "FILE", help_heading = "Traffic")]
    pub trace: Option<PathBuf>,
    /// Vary a key: tp=1,2,4,8, isl=1k..64k*2, rate=1..10+1; once per key
    #[arg(long, value_name = "KEY=VALUES", required = true, help_heading = "Sweep")]
    pub vary: Vec<String>,
    /// Evaluate only part I of N: points I, I + N, I + 2 N …; `merge` joins the parts
    #[arg(long, value_name = "I/N", help_heading = "Sweep")]
    pub shard: Option<ShardNumber>,
    /// Continue the file of --out after its last whole row
    #[arg(long, requires = "out", conflicts_with = "plot", help_heading = "Sweep")]
    pub resume: bool,
    /// Stop after S seconds; --resume continues [default: no limit]
    #[arg(long, value_name = "S", value_parser = number(&TIME_LIMIT), help_heading = "Sweep")]
    pub time_limit: Option<f64>,
    /// Output format [default: by the ending of --out, else table]
    #[arg(long, value_parser = parser(EVERY), value_name = "FORMAT", hide_possible_values = true, help_heading = "Output")]
    pub format: Option<Format>,
    /// Write the rows to a file, as they are evaluated
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub plot: PlotArgs,
    /// Metric of the picture [default: TTFT, TPOT, tok/s and USD/Mtok]
    #[arg(long, value_name = "METRIC", requires = "plot", help_heading = "Output")]
    pub plot_metric: Option<String>,
    #[arg(skip)]
    pub applied: AppliedDefaults,
}

impl FromStr for ShardNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<ShardNumber, String> {
        let parts = text.split_once('/').and_then(|(number, of)| number.parse().ok().zip(of.parse().ok()));
        parts
            .map(|(number, of)| ShardNumber { number, of })
            .ok_or_else(|| "expected I/N, e.g. 3/16".to_owned())
    }
}

/// Number of points of each outcome, and the first rows.
#[derive(Default)]
struct SweepSummary {
    counts: Vec<(PointStatus, u64)>,
    first: Vec<SweepRow>,
}

impl SweepSummary {
    fn add(&mut self, rows: &[SweepRow]) {
        for row in rows {
            match self.counts.iter_mut().find(|(status, _)| *status == row.status) {
                Some((_, count)) => *count += 1,
                None => self.counts.push((row.status, 1)),
            }
        }
        self.counts.sort_unstable();
        let remaining = SHOWN_ROWS.saturating_sub(self.first.len());
        self.first.extend(rows.iter().take(remaining).cloned());
    }

    fn all(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    fn runs(&self) -> bool {
        let run = [PointStatus::Optimal, PointStatus::Feasible, PointStatus::SloMissed];
        self.counts.iter().any(|(status, _)| run.contains(status))
    }
}

impl Sweep {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        let metric = self.picture_metric()?;
        self.problem.save(catalog, &request.scenario)?;
        let prepared = PreparedSweep::new(catalog, &request)?;
        self.output().check::<SweepReport>()?;
        let format = self.output().format();
        let drawn = self.plot.plot.is_some() || format.is_picture();
        if drawn && prepared.count() > MOST_POINTS {
            let expected = format!("at most {MOST_POINTS} points for a picture");
            let fix = "vary fewer values, or omit --plot";
            return Err(Error::new("plot", format!("{} points", prepared.count()), expected, fix).into());
        }
        let mut writer = match format {
            Format::Csv => Some(RowWriter::new(RowFormat::Csv, self.out.as_deref())),
            Format::JsonLines => Some(RowWriter::new(RowFormat::JsonLines, self.out.as_deref())),
            _ => None,
        };
        #[cfg(feature = "parquet")]
        let mut table = self.parquet(format, &prepared)?;
        let first = match &mut writer {
            Some(writer) => writer.open(&prepared, self.resume)?,
            None if self.resume => return Err(not_resumable().into()),
            None => 0,
        };
        let (mut summary, mut report) = (SweepSummary::default(), prepared.head());
        let work = |control: &RequestControl| {
            prepared.rows(first, control, |rows| {
                summary.add(&rows);
                writer.as_mut().map_or(Ok(()), |writer| writer.write(&rows))?;
                #[cfg(feature = "parquet")]
                if let Some(table) = &mut table {
                    rows.iter().try_for_each(|row| table.push(cells(row)))?;
                }
                if drawn || is_whole(format) {
                    report.rows.extend(rows);
                }
                Ok::<(), CliError>(())
            })
        };
        let whole = with_deadline(self.time_limit, work)?;
        #[cfg(feature = "parquet")]
        if let (Some(table), Some(path)) = (table, &self.out) {
            table.finish(path)?;
        }
        self.plot.write(|| sweep_picture(&report, metric))?;
        self.finish(&report, format, &summary)?;
        if !whole {
            note(summary.all() + first, prepared.count())?;
            return Ok(ExitStatus::Searched(Status::Feasible));
        }
        Ok(ExitStatus::of(summary.runs() || first > 0))
    }

    #[cfg(feature = "parquet")]
    fn parquet(&self, format: Format, sweep: &PreparedSweep) -> Result<Option<ParquetWriter>, Error> {
        if format != Format::Parquet {
            return Ok(None);
        }
        if self.out.as_ref().is_none_or(|path| path.as_os_str() == "-") {
            let fix = "write --out sweep.parquet";
            return Err(Error::new("format", "Parquet on standard output", "a file", fix));
        }
        let head = sweep.head();
        ParquetWriter::new(&columns(&head.vary, head.traffic.is_some())).map(Some)
    }

    /// The metric of the picture, once the ending of its file is checked.
    fn picture_metric(&self) -> Result<Option<Metric>, Error> {
        self.plot.check()?;
        let parse =
            |name: &String| Metric::parse(name).map_err(|fault| Error { key: "plot-metric".into(), ..fault });
        self.plot_metric.as_ref().map(parse).transpose()
    }

    pub fn request(&self) -> Result<SweepRequest, Error> {
        let scenario = self.problem.scenario(&self.deployment)?;
        let traffic = with_trace(&self.traffic, self.trace.as_deref())?;
        let simulated = self.simulate || traffic != SimulatedTraffic::default();
        let traffic = simulated.then_some(traffic);
        Ok(SweepRequest { scenario, vary: self.vary.clone(), shard: self.shard, traffic })
    }

    /// Writes a report that is not written row by row.
    fn finish(&self, report: &SweepReport, format: Format, summary: &SweepSummary) -> Result<(), CliError> {
        let output = OutputArgs { format: Some(format), ..self.output() };
        let head = || SweepReport { rows: summary.first.clone(), ..report.clone() };
        match format {
            Format::Table => output.write(&table(&head(), &summary.counts, width()))?,
            Format::Markdown => output.write(&markdown(&table(&head(), &summary.counts, width())))?,
            Format::Csv | Format::JsonLines | Format::Parquet => return Ok(note_defaults(&self.applied)?),
            _ => output.answer(report, false)?,
        };
        Ok(())
    }

    fn output(&self) -> OutputArgs {
        OutputArgs { format: self.format, out: self.out.clone(), applied: self.applied.clone(), json: false }
    }
}

fn not_resumable() -> Error {
    let fix = "write --out sweep.csv or --out sweep.jsonl";
    Error::new("resume", "a table, JSON or Parquet", "a CSV or JSON Lines file", fix)
}

fn note(done: u64, all: u64) -> Result<(), CliError> {
    use std::io::Write;
    Ok(writeln!(anstream::stderr(), "note: stopped after {done} of {all} points; --resume continues a file")?)
}

#[derive(Clone, Debug, clap::Args)]
pub struct Merge {
    /// Files of the shards of one sweep: CSV, JSON Lines or JSON; or of runs: JSON Lines
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write the merged sweep or runs to a file instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
}

impl Merge {
    pub fn run(&self, _catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let first = self.files.first().and_then(|path| format_of(path));
        let one = first.filter(|_| self.files.iter().all(|path| format_of(path) == first));
        let rows = match one {
            Some(Format::JsonLines) if self.begins_with_a_run()? => return self.runs(),
            Some(Format::Csv) => RowFormat::Csv,
            Some(Format::JsonLines) => RowFormat::JsonLines,
            Some(Format::Json | Format::Table) => return self.reports(),
            #[cfg(feature = "parquet")]
            Some(Format::Parquet) => {
                let fix = "read them as one table: pandas, DuckDB and Polars take several files";
                return Err(Error::new("files", "Parquet files", "CSV, JSON Lines or JSON", fix).into());
            }
            _ => {
                let fix = "write the shards with --out shard-1.csv, or .jsonl, or .json";
                let expected = "files that all end in .csv, .jsonl or .json";
                return Err(Error::new("files", "other endings", expected, fix).into());
            }
        };
        let shard =
            |path: &PathBuf| Ok(ShardLines { name: file::shown(path), lines: Box::new(lines_of(path)?) });
        let shards = || self.files.iter().map(shard).collect::<Result<Vec<_>, Error>>();
        // Everything is checked before anything is written.
        merge(rows, shards()?, |_| Ok::<(), CliError>(()))?;
        self.check_out()?;
        let mut writer = RowWriter::new(rows, self.out.as_deref());
        writer.create()?;
        merge(rows, shards()?, |line| writer.text(line))?;
        writer.flush()?;
        Ok(ExitStatus::Success)
    }

    /// Checks that the merged file is none of the shards.
    fn check_out(&self) -> Result<(), Error> {
        let same = |out: &&PathBuf| self.files.iter().any(|path| file::is_same(path, out));
        self.out.as_ref().filter(same).map_or(Ok(()), |out| {
            Err(Error::new("out", file::shown(out), "no file of a shard", "write to a file of its own"))
        })
    }

    fn begins_with_a_run(&self) -> Result<bool, Error> {
        let Some(first) = self.files.first() else { return Ok(false) };
        lines_of(first)?.next().map_or(Ok(false), |line| Ok(is_run(&line?)))
    }

    /// Runs of `bench`, which belong together whatever command measured them.
    fn runs(&self) -> Result<ExitStatus, CliError> {
        let read = |path: &PathBuf| {
            let name = file::shown(path);
            read_runs(&file::read_most(path, FileSizeLimit::Answer)?, &name).map(|runs| (name, runs))
        };
        let runs = merged(self.files.iter().map(read).collect::<Result<Vec<_>, Error>>()?)?;
        self.check_out()?;
        let output = OutputArgs { json: true, out: self.out.clone(), ..OutputArgs::default() };
        output.write(&lines_of_runs(&runs))
    }

    fn reports(&self) -> Result<ExitStatus, CliError> {
        let read = |path: &PathBuf| {
            let text = file::read_most(path, FileSizeLimit::Answer)?;
            let report: Value = from_json(&text, "the report of a sweep")
                .map_err(|fault| fault.in_file(file::shown(path)))?;
            Ok((file::shown(path), report))
        };
        let reports = self.files.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
        let output = OutputArgs { json: true, out: self.out.clone(), ..OutputArgs::default() };
        output.write(&pretty(&merge_reports(reports)?))
    }
}
