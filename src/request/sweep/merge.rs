//! Rows of a saved sweep: which one a line is, whether a file can be continued, and shards as one file.

use std::iter::Peekable;

use serde::Deserialize;
use serde_json::Value;

use crate::report::sheet;
use crate::spec::error::Error;
use crate::spec::json_fault;
use crate::spec::visible::visible_json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    Csv,
    JsonLines,
}

/// Which row a line is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RowIdentity {
    pub sweep: String,
    pub point: u64,
    pub points: u64,
}

impl RowFormat {
    pub fn identity(self, line: &str) -> Result<RowIdentity, Error> {
        let found = match self {
            RowFormat::Csv => {
                let mut cells = line.split(',');
                let mut number = || cells.next().map(str::to_owned);
                let (sweep, point, points) = (number(), number(), number());
                let whole = |text: Option<String>| text.and_then(|text| text.parse().ok());
                sweep.zip(whole(point)).zip(whole(points))
            }
            RowFormat::JsonLines => {
                let read = json_fault::read::<RowIdentity>(line, "a row of a sweep").ok();
                read.map(|row| ((row.sweep, row.point), row.points))
            }
        };
        let row = found.map(|((sweep, point), points)| RowIdentity { sweep, point, points });
        row.ok_or_else(|| {
            let fix = "name a file that `mantile-opt sweep --out` wrote";
            Error::new("row", "a line that is no row", "a row of a sweep", fix)
        })
    }
}

impl RowFormat {
    /// A line as a sweep writes it: others may have edited the file.
    fn shown(self, line: &str) -> String {
        match self {
            RowFormat::Csv => {
                let mut reader =
                    csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line.as_bytes());
                let rows = reader.records().flatten().map(|row| row.iter().map(str::to_owned).collect());
                sheet::lines(rows)
            }
            RowFormat::JsonLines => format!("{}\n", visible_json(line)),
        }
    }
}

/// Lines of a shard, with the name of its file.
pub struct ShardLines<'a> {
    pub name: String,
    pub lines: Box<dyn Iterator<Item = Result<String, Error>> + 'a>,
}

/// The start of the header of rows in CSV.
const HEADER: &str = "sweep,point,points";

/// A shard whose header is read.
struct OpenShard<'a> {
    name: String,
    lines: Peekable<Box<dyn Iterator<Item = Result<String, Error>> + 'a>>,
}

/// Writes the rows of all shards in the order of their points, as an unsharded sweep does.
///
/// # Errors
/// The files are of several sweeps, a point is missing or comes twice, or those of `write`.
pub fn merge<E: From<Error>>(
    format: RowFormat,
    shards: Vec<ShardLines>,
    mut write: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut open = opened(format, shards, &mut write)?;
    let (mut expected, mut sweep): (u64, Option<RowIdentity>) = (0, None);
    loop {
        let mut next: Option<(usize, RowIdentity)> = None;
        for (at, shard) in open.iter_mut().enumerate() {
            let name = shard.name.clone();
            let Some(line) = shard.lines.peek() else { continue };
            let row = line.clone().and_then(|line| format.identity(&line));
            let row = row.map_err(|fault| fault.in_file(&name))?;
            let known = sweep.get_or_insert_with(|| row.clone());
            if (&known.sweep, known.points) != (&row.sweep, row.points) {
                let fix = "merge the shards of one sweep, all made by the same version of the program";
                let found = format!("rows of the sweep {} and of {}", known.sweep, row.sweep);
                return Err(Error::new("sweep", found, "rows of one sweep", fix).in_file(name).into());
            }
            if next.as_ref().is_none_or(|(_, best)| row.point < best.point) {
                next = Some((at, row));
            }
        }
        let Some((at, row)) = next else { break };
        if row.point != expected {
            let found = if row.point < expected { "twice" } else { "not at all" };
            return Err(misplaced(row.point.min(expected), found, &open[at].name).into());
        }
        if let Some(line) = open[at].lines.next() {
            write(&format.shown(&line?))?;
        }
        expected += 1;
    }
    match sweep {
        Some(row) if row.points != expected => Err(misplaced(expected, "not at all", "").into()),
        _ => Ok(()),
    }
}

fn misplaced(point: u64, found: &str, name: &str) -> Error {
    let fix = "name every shard once; finish an interrupted one with `mantile-opt sweep … --resume`";
    Error::new("point", format!("point {point} {found}"), "each point once", fix).in_file(name)
}

/// The shards after their headers, which are equal; the header is written once.
fn opened<'a, E: From<Error>>(
    format: RowFormat,
    shards: Vec<ShardLines<'a>>,
    write: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<Vec<OpenShard<'a>>, E> {
    let (mut open, mut header): (Vec<OpenShard>, Option<String>) = (Vec::new(), None);
    for ShardLines { name, lines } in shards {
        let mut lines = lines.peekable();
        if format == RowFormat::Csv {
            let first = lines.next().transpose()?.unwrap_or_default();
            if !first.starts_with(HEADER) {
                let fix = "name a file that `mantile-opt sweep --out` wrote";
                return Err(Error::new("header", "another line", HEADER, fix).in_file(name).into());
            }
            if header.as_ref().is_some_and(|known| *known != first) {
                let fix = "merge the shards of one sweep";
                return Err(Error::new("header", "other columns", "equal columns", fix).in_file(name).into());
            }
            if header.is_none() {
                write(&format.shown(&first))?;
                header = Some(first);
            }
        }
        open.push(OpenShard { name, lines });
    }
    Ok(open)
}

/// The report of several shards as one.
///
/// # Errors
/// They are of several sweeps, or a point is missing or comes twice.
pub fn merge_reports(reports: Vec<(String, Value)>) -> Result<Value, Error> {
    let (mut head, mut rows): (Option<Value>, Vec<Value>) = (None, Vec::new());
    for (name, mut report) in reports {
        let fault = || {
            let fix = "name files that `mantile-opt sweep --format json` wrote, of one sweep";
            Error::new("rows", "another report", "the report of a sweep", fix).in_file(&name)
        };
        let Some(Value::Array(own)) = report.get_mut("rows").map(Value::take) else { return Err(fault()) };
        let Value::Object(keys) = &mut report else { return Err(fault()) };
        keys.shift_remove("shard");
        if head.as_ref().is_some_and(|known| *known != report) {
            return Err(fault());
        }
        head = Some(report);
        rows.extend(own);
    }
    let point = |row: &Value| row.get("point").and_then(Value::as_u64).unwrap_or(u64::MAX);
    rows.sort_by_key(point);
    let Some(mut report) = head else {
        return Err(Error::new("files", "no file", "at least one file", "name the files of the shards"));
    };
    let points = report.get("points").and_then(Value::as_u64).unwrap_or_default();
    for (expected, row) in (0..).zip(&rows) {
        if point(row) != expected {
            let found = if point(row) < expected { "twice" } else { "not at all" };
            return Err(misplaced(point(row).min(expected), found, ""));
        }
    }
    if rows.len() as u64 != points {
        return Err(misplaced(rows.len() as u64, "not at all", ""));
    }
    report["rows"] = Value::Array(rows);
    Ok(report)
}
