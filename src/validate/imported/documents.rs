//! The shapes of benchmark files: JSON values, one or several; CSV; YAML; text that a terminal showed.

use serde_json::{Map, Value};

use crate::spec::error::Error;
use crate::spec::limits::{REQUESTS, ROWS};
use crate::spec::text::{each_key_once, yaml_place};
use crate::spec::visible::elided;

/// Characters of a file's beginning that a fault shows.
const SHOWN: usize = 200;

/// A file by its shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FileContent<'a> {
    /// Objects: of one document, of the items of an array, or of lines.
    Json(Vec<Value>),
    /// Rows under a header, each as an object of texts.
    Csv(Vec<Value>),
    /// Any other text.
    Text(&'a str),
}

impl FileContent<'_> {
    /// The rows of a table.
    pub(super) fn rows(&self) -> &[Value] {
        match self {
            FileContent::Csv(rows) => rows,
            _ => &[],
        }
    }

    /// Any text; of another shape, none.
    pub(super) fn text(&self) -> &str {
        match self {
            FileContent::Text(text) => text,
            _ => "",
        }
    }

    /// Whether the first row of a table has all of these columns.
    pub(super) fn has_columns(&self, columns: &[&str]) -> bool {
        self.rows().first().is_some_and(|row| columns.iter().all(|column| row.get(column).is_some()))
    }

    /// The beginning of a file that is not understood.
    pub(super) fn beginning(&self) -> String {
        let keys = |value: &Value| {
            let names = value.as_object().into_iter().flat_map(|object| object.keys().take(12));
            names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        match self {
            FileContent::Json(values) => match values.first() {
                Some(Value::Object(first)) if !first.is_empty() => {
                    format!("JSON with the keys {}", keys(&values[0]))
                }
                Some(_) => "JSON without an object that has keys".to_owned(),
                None => "JSON without a value".to_owned(),
            },
            FileContent::Csv(rows) => match rows.first() {
                Some(first) => format!("a table with the columns {}", keys(first)),
                None => "a table without a row".to_owned(),
            },
            FileContent::Text(text) => {
                let line =
                    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("an empty file");
                format!("a text that begins `{}`", elided(line, SHOWN))
            }
        }
    }
}

/// The content of a file.
///
/// # Errors
/// It begins as JSON and is none.
pub(super) fn content(text: &str) -> Result<FileContent<'_>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['{', '[']) {
        return json(text).map(FileContent::Json);
    }
    if let Some(report) = yaml(text)? {
        return Ok(FileContent::Json(vec![report]));
    }
    Ok(table(text).map_or(FileContent::Text(text), FileContent::Csv))
}

/// The JSON values of a text, one after the other. The items of an array count as values.
fn json(text: &str) -> Result<Vec<Value>, Error> {
    let plain = without_bare_words(text);
    let mut stream = serde_json::Deserializer::from_str(&plain).into_iter::<Value>();
    let (mut values, mut begun) = (Vec::new(), 0);
    while let Some(value) = stream.next() {
        let value = value.map_err(|fault| {
            let found =
                format!("text that is not JSON, in line {} at column {}", fault.line(), fault.column());
            Error::new("", found, "JSON", "give the whole file, as it was saved")
        })?;
        let end = stream.byte_offset();
        each_key_once(plain.get(begun..end).unwrap_or_default())?;
        begun = end;
        match value {
            Value::Array(items) => values.extend(items),
            value => values.push(value),
        }
        if !values.is_empty() {
            REQUESTS.check_whole("values", values.len() as u64)?;
        }
    }
    Ok(values)
}

/// Words that Python writes for numbers that JSON does not have, and what is read for each.
const BARE_WORDS: [(&str, &str); 3] = [("-Infinity", "\"-inf\""), ("Infinity", "\"inf\""), ("NaN", "null")];

/// A text in JSON without the words that Python writes outside of texts: a request rate may be `Infinity`.
fn without_bare_words(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let (mut rest, mut quoted) = (text, false);
    while let Some(letter) = rest.chars().next() {
        if quoted && letter == '\\' {
            let taken = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
            plain.push_str(&rest[..taken]);
            rest = &rest[taken..];
            continue;
        }
        let word = BARE_WORDS.iter().find(|(word, _)| !quoted && rest.starts_with(word));
        if let Some((word, instead)) = word {
            plain.push_str(instead);
            rest = &rest[word.len()..];
            continue;
        }
        quoted ^= letter == '"';
        plain.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    plain
}

/// A report in YAML: recognised by the keys at the beginning of its lines.
fn yaml(text: &str) -> Result<Option<Value>, Error> {
    let begins = |key: &str| text.lines().any(|line| line.starts_with(key));
    if !["version:", "scenario:", "results:"].into_iter().all(begins) {
        return Ok(None);
    }
    // YAML writes an unlimited concurrency as `.inf`, which JSON does not have.
    let finite = text.lines().map(|line| match line.trim_end().strip_suffix(": .inf") {
        Some(key) => format!("{key}: \"inf\""),
        None => line.to_owned(),
    });
    let finite: Vec<String> = finite.collect();
    let value = serde_saphyr::from_str::<Value>(&finite.join("\n")).map_err(|fault| {
        Error::new("", yaml_place(&fault), "a report in YAML", "give the whole file, as it was saved")
    })?;
    Ok(Some(value))
}

/// Titles that programs show in a terminal: a text with one is no table, whatever commas it has before.
const TITLES: [&str; 2] = ["Serving Benchmark Result", "MLPerf Results Summary"];

/// The rows of a table, where the text is one: its first row has as many cells as the header.
fn table(text: &str) -> Option<Vec<Value>> {
    if TITLES.iter().any(|title| text.contains(title)) {
        return None;
    }
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().ok()?.clone();
    if header.len() < 2 {
        return None;
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let cells = record.ok()?;
        if rows.is_empty() && cells.len() != header.len() {
            return None;
        }
        let row = header.iter().zip(cells.iter());
        rows.push(Value::Object(
            row.map(|(key, cell)| (key.to_owned(), Value::String(cell.to_owned()))).collect::<Map<_, _>>(),
        ));
        if rows.len() as u64 > ROWS.most_whole() {
            return None;
        }
    }
    Some(rows)
}

/// Lines of a text that a terminal showed, as texts by label: `Mean TTFT (ms):   12.5`.
pub(super) fn labelled<'a>(lines: impl Iterator<Item = &'a str>) -> Value {
    let mut found = Map::new();
    for line in lines {
        let Some((label, value)) = line.split_once(": ").or_else(|| line.split_once(':')) else { continue };
        let (label, value) = (label.trim(), value.trim());
        if !label.is_empty() && !value.is_empty() {
            found.insert(label.to_owned(), Value::String(value.to_owned()));
        }
    }
    Value::Object(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_recognised_by_their_beginning() {
        let json = |text: &str| match content(text).unwrap() {
            FileContent::Json(values) => values.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!((json("{\"a\": 1}"), json("[{\"a\": 1}, {}]"), json("{\"a\":1}\n{\"a\":2}\n")), (1, 2, 2));
        assert_eq!(json("{\"rate\": Infinity, \"say\": \"NaN \\\" Infinity\", \"x\": NaN}"), 1);
        assert!(content("{\"a\": 1").unwrap_err().found.contains("not JSON"));
        assert!(content("{\"a\": 1, \"a\": 2}").unwrap_err().found.contains("second time"));
        assert!(matches!(content("a,b\n1,2\n").unwrap(), FileContent::Csv(rows) if rows.len() == 1));
        assert!(matches!(content("just words\n").unwrap(), FileContent::Text(_)));
        assert!(content(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn words_of_python_are_replaced_outside_of_texts_alone() {
        let plain = without_bare_words("{\"a\": Infinity, \"b\": \"NaN\", \"c\": -Infinity}");
        assert_eq!(plain, "{\"a\": \"inf\", \"b\": \"NaN\", \"c\": \"-inf\"}");
    }
}
