//! Traces of requests in the formats in which they are published, recognised by their columns or keys.
//!
//! | format | file | arrival |
//! |---|---|---|
//! | our own | CSV with `arrival`, `isl`, `osl` | seconds |
//! | Azure LLM inference traces | CSV with `TIMESTAMP`, `ContextTokens`, `GeneratedTokens` | date and time |
//! | BurstGPT | CSV with `Timestamp`, `Request tokens`, `Response tokens` | seconds |
//! | Mooncake | JSON lines with `timestamp`, `input_length`, `output_length` | milliseconds |
//! | vLLM bench, `--save-detailed` | JSON with `input_lens`, `output_lens`, `start_times` or `duration` | seconds |

use chrono::{DateTime, NaiveDateTime};
use csv::StringRecord;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::spec::error::Error;
use crate::spec::fleet::TracedRequest;
use crate::spec::json_fault::plain;
use crate::spec::value_reader::from_value;

const EXPECTED: &str =
    "the columns arrival, isl and osl, or a trace of Azure, BurstGPT, Mooncake or vLLM bench";

/// A CSV format: its columns in lower case, and the function of its arrival time, in seconds.
type TraceColumns = ([&'static str; 3], fn(&str) -> Option<f64>);

const CSV_FORMATS: [TraceColumns; 3] = [
    (["arrival", "isl", "osl"], seconds),
    (["timestamp", "contexttokens", "generatedtokens"], date),
    (["timestamp", "request tokens", "response tokens"], seconds),
];

/// The requests in the text of a trace, in its order. Requests that failed, with no output, are left out of the formats
/// that record them.
///
/// # Errors
/// The format is unknown, or a line is faulty; the error names the line.
pub fn read_trace(text: &str) -> Result<Vec<TracedRequest>, Error> {
    match text.trim_start().chars().next() {
        Some('{') => of_json(text),
        Some('[') => {
            let fix = "count the tokens first, e.g. with `vllm bench serve --save-detailed`, which writes their lengths";
            Err(Error::new("", "conversations without token counts", EXPECTED, fix))
        }
        _ => of_csv(text),
    }
}

pub(super) fn at_line(line: u64, found: String, expected: &str) -> Error {
    Error::new(format!("line {line}"), found, expected, "correct that line, or remove it")
}

/// A request of a line, whose time and lengths are within their limits.
fn checked(line: u64, request: TracedRequest) -> Result<TracedRequest, Error> {
    let fault = |fault: Error| Error { key: format!("line {line}: {}", fault.key), ..fault };
    request.check().map(|()| request).map_err(fault)
}

fn seconds(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Seconds since 1970 of a date with or without a time zone.
fn date(text: &str) -> Option<f64> {
    let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").map(|time| time.and_utc());
    let time = local
        .or_else(|_| DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)).map(|time| time.to_utc()));
    let time = time.ok()?;
    Some(time.timestamp() as f64 + f64::from(time.timestamp_subsec_nanos()) * 1e-9)
}

fn of_csv(text: &str) -> Result<Vec<TracedRequest>, Error> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let fault = |fault: csv::Error| {
        let line = fault.position().map_or(1, csv::Position::line);
        at_line(line, fault.to_string(), EXPECTED)
    };
    let header: Vec<String> = reader
        .headers()
        .map_err(fault)?
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}').to_lowercase())
        .collect();
    let place = |name: &str| header.iter().position(|known| known == name);
    let known = CSV_FORMATS.iter().find(|(columns, _)| columns.iter().all(|column| place(column).is_some()));
    let Some((columns, arrival)) = known else {
        return Err(Error::new("line 1", header.join(", "), EXPECTED, "name the columns in the first line"));
    };
    let at = columns.map(|column| place(column).unwrap_or_default());
    let failed = columns[2] == "response tokens";
    let mut requests = Vec::new();
    for record in reader.records() {
        let record: StringRecord = record.map_err(fault)?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |column: usize| record.get(at[column]).unwrap_or_default();
        let tokens = |column: usize| {
            let whole = cell(column).parse::<u64>();
            whole.map_err(|_| at_line(line, format!("`{}`", cell(column)), "a whole number of tokens"))
        };
        let time = arrival(cell(0)).ok_or_else(|| at_line(line, format!("`{}`", cell(0)), "a time"))?;
        let request =
            TracedRequest { arrival: time, isl: tokens(1)?, osl: tokens(2)?, ..TracedRequest::default() };
        if !(failed && request.osl == 0) {
            requests.push(checked(line, request)?);
        }
    }
    Ok(requests)
}

/// A line of Mooncake's traces.
#[derive(Deserialize)]
struct MooncakeRequest {
    /// Milliseconds.
    timestamp: f64,
    input_length: u64,
    output_length: u64,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

/// A result of `vllm bench serve --save-detailed`.
#[derive(Deserialize)]
struct BenchmarkResult {
    input_lens: Vec<u64>,
    output_lens: Vec<u64>,
    /// Seconds of each request.
    #[serde(default)]
    start_times: Vec<f64>,
    /// Seconds of the whole run.
    duration: Option<f64>,
}

fn of_json(text: &str) -> Result<Vec<TracedRequest>, Error> {
    // One object over several lines, or one that names all lengths, is a result; else each line is a request.
    let whole: Option<Value> = serde_json::from_str(text).ok();
    match whole.filter(|whole| whole.get("input_lens").is_some()) {
        Some(whole) => of_benchmark(json(whole, 1)?),
        None => {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            lines.map(|(at, line)| mooncake(at as u64 + 1, line)).collect()
        }
    }
}

pub(super) fn json<T: DeserializeOwned>(value: Value, line: u64) -> Result<T, Error> {
    from_value(&value).map_err(|fault| at_line(line, plain(&fault.message, "a request").found, EXPECTED))
}

fn mooncake(line: u64, text: &str) -> Result<TracedRequest, Error> {
    let value = serde_json::from_str(text).map_err(|fault| at_line(line, fault.to_string(), EXPECTED))?;
    let request: MooncakeRequest = json(value, line)?;
    let arrival = request.timestamp / 1e3;
    let content = request.hash_ids;
    let request = TracedRequest { arrival, isl: request.input_length, osl: request.output_length, content };
    checked(line, request)
}

fn of_benchmark(result: BenchmarkResult) -> Result<Vec<TracedRequest>, Error> {
    let BenchmarkResult { input_lens, output_lens, start_times, duration } = result;
    let count = input_lens.len();
    let expected = |key: &str, found: usize| {
        Error::new(
            key,
            format!("{found} requests"),
            format!("{count}, as in input_lens"),
            "use the whole file",
        )
    };
    if output_lens.len() != count {
        return Err(expected("output_lens", output_lens.len()));
    }
    let spread = duration.filter(|_| start_times.is_empty()).map(|duration| {
        (0..count).map(|at| duration * at as f64 / count.saturating_sub(1).max(1) as f64).collect()
    });
    let arrivals: Vec<f64> = spread.unwrap_or(start_times);
    if arrivals.len() != count {
        return Err(expected("start_times", arrivals.len()));
    }
    let requests = arrivals.into_iter().zip(input_lens).zip(output_lens);
    let requests =
        requests.map(|((arrival, isl), osl)| TracedRequest { arrival, isl, osl, ..TracedRequest::default() });
    Ok(requests.filter(|request| request.osl > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(f64, u64, u64)> {
        let found = read_trace(text).unwrap_or_else(|fault| panic!("{fault}"));
        let first = found[0].arrival;
        found.iter().map(|one| (one.arrival - first, one.isl, one.osl)).collect()
    }

    #[test]
    fn the_same_requests_in_every_format() {
        let expected = [(0.0, 4808, 10), (2.5, 110, 27), (4.0, 374, 5)];
        for text in [
            "arrival,isl,osl\n7,4808,10\n9.5,110,27\n11,374,5\n",
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.5000000,4808,10\n\
             2023-11-16 18:17:06,110,27\n2023-11-16 18:17:07.5,374,5\n",
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 23:59:58+00:00,4808,10\n\
             2024-05-11 00:00:00.500000+00:00,110,27\n2024-05-11 00:00:02+00:00,374,5\n",
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,4808,10,4818,Conversation log\n\
             6,ChatGPT,99,0,99,API log\n7.5,GPT-4,110,27,137,API log\n9,ChatGPT,374,5,379,API log\n",
            "{\"timestamp\": 0, \"input_length\": 4808, \"output_length\": 10, \"hash_ids\": [0, 1]}\n\
             {\"timestamp\": 2500, \"input_length\": 110, \"output_length\": 27, \"hash_ids\": [0]}\n\
             {\"timestamp\": 4000, \"input_length\": 374, \"output_length\": 5, \"hash_ids\": []}\n",
            "{\"duration\": 5.0, \"input_lens\": [4808, 110, 9, 374], \"output_lens\": [10, 27, 0, 5],\n\
             \"start_times\": [100.0, 102.5, 103.0, 104.0]}",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        let spread = "{\"duration\": 4.0, \"input_lens\": [1, 2, 3], \"output_lens\": [4, 5, 6]}";
        assert_eq!(read(spread), [(0.0, 1, 4), (2.0, 2, 5), (4.0, 3, 6)]);
    }

    #[test]
    fn a_faulty_line_is_named() {
        for (text, key, found) in [
            ("arrival,isl,osl\n1,2,3\n2,x,3\n", "line 3", "`x`"),
            ("arrival,isl,osl\n1,2,3\n2,0,3\n", "line 3: isl", "0"),
            ("arrival,isl,osl\nNaN,2,3\n", "line 2: arrival", "NaN"),
            ("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 0}\n", "line 1: osl", "0"),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\nnever,2,3\n", "line 2", "`never`"),
            ("time,in,out\n1,2,3\n", "line 1", "time, in, out"),
            (
                "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 2}\n{\"timestamp\": 1}\n",
                "line 2",
                "input_length",
            ),
            ("[{\"conversations\": []}]", "", "without token counts"),
            ("{\"duration\": 1.0, \"input_lens\": [1], \"output_lens\": []}", "output_lens", "0 requests"),
        ] {
            let fault = read_trace(text).unwrap_err();
            assert_eq!(fault.key, key, "{text}");
            assert!(fault.found.contains(found), "{fault}");
        }
    }
}
