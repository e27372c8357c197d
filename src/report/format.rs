//! Formats of answers: one list for the command line, HTTP, MCP, Python, WebAssembly and the page.

use crate::spec::error::Error;

/// A format of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
    /// The same as YAML.
    Yaml,
    /// Rows for spreadsheets.
    Csv,
    /// A JSON object per row.
    JsonLines,
    /// Typed columns for data frames.
    Parquet,
    /// The text as a part of a document.
    Markdown,
    /// A page that needs nothing else.
    Html,
    /// A part of a page.
    Section,
    /// A picture.
    Svg,
    /// A picture as pixels.
    Png,
    /// A workbook with live formulas.
    Xlsx,
}

/// A format as doors offer it.
pub struct FormatEntry {
    /// The format.
    pub format: Format,
    /// Its name, as `--format` reads it.
    pub name: &'static str,
    /// Its purpose, in a few words.
    pub about: &'static str,
    /// Endings of its files.
    pub endings: &'static [&'static str],
    /// Its media type.
    pub media_type: &'static str,
}

const fn row(
    format: Format,
    name: &'static str,
    about: &'static str,
    endings: &'static [&'static str],
    media_type: &'static str,
) -> FormatEntry {
    FormatEntry { format, name, about, endings, media_type }
}

/// Every format.
pub static FORMATS: [FormatEntry; 12] = [
    row(Format::Table, "table", "Text for people", &["txt"], "text/plain"),
    row(Format::Json, "json", "JSON for programs; `schema` describes it", &["json"], "application/json"),
    row(Format::Yaml, "yaml", "The same as YAML", &["yaml", "yml"], "application/yaml"),
    row(Format::Csv, "csv", "CSV rows for spreadsheets", &["csv"], "text/csv"),
    row(Format::JsonLines, "jsonl", "A JSON object per row", &["jsonl", "ndjson"], "application/x-ndjson"),
    row(
        Format::Parquet,
        "parquet",
        "Parquet for data frames: typed columns, in a file",
        &["parquet"],
        "application/vnd.apache.parquet",
    ),
    row(
        Format::Markdown,
        "markdown",
        "The text as a part of a document in Markdown",
        &["md", "markdown"],
        "text/markdown",
    ),
    row(
        Format::Html,
        "html",
        "A report for a browser: one file that needs nothing else",
        &["html", "htm"],
        "text/html",
    ),
    row(Format::Section, "section", "A part of a page", &[], "application/vnd.mantile.section+html"),
    row(Format::Svg, "svg", "A picture", &["svg"], "image/svg+xml"),
    row(Format::Png, "png", "A picture as pixels", &["png"], "image/png"),
    row(
        Format::Xlsx,
        "xlsx",
        "A workbook with live formulas",
        &["xlsx"],
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
];

impl Format {
    /// Its row of [`FORMATS`].
    pub fn entry(self) -> &'static FormatEntry {
        // A unit test holds the order.
        &FORMATS[self as usize]
    }

    /// The format called `name`.
    ///
    /// # Errors
    /// There is none; the error lists them.
    pub fn parse(name: &str) -> Result<Format, Error> {
        // Before formats had one list, two doors called the table `text`.
        let known =
            FORMATS.iter().find(|entry| entry.name == name || (name, entry.name) == ("text", "table"));
        known.map(|entry| entry.format).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|entry| entry.name).collect();
            let expected = format!("one of {}", names.join(", "));
            Error::new("format", format!("`{name}`"), expected, "correct the name")
        })
    }

    /// The format of a file, by the ending of its name.
    pub fn of_ending(name: &str) -> Option<Format> {
        let ending = name.rsplit_once('.')?.1.to_lowercase();
        FORMATS.iter().find(|entry| entry.endings.contains(&ending.as_str())).map(|entry| entry.format)
    }

    /// Whether it is a picture.
    pub fn is_picture(self) -> bool {
        matches!(self, Format::Svg | Format::Png)
    }

    /// Whether a terminal cannot show it.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Png | Format::Xlsx | Format::Parquet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_its_row_and_names_of_its_own() {
        for (at, entry) in FORMATS.iter().enumerate() {
            assert_eq!(entry.format as usize, at);
            assert_eq!(Format::parse(entry.name).unwrap(), entry.format);
            for ending in entry.endings {
                assert_eq!(Format::of_ending(&format!("a.{ending}")), Some(entry.format));
            }
            let same = FORMATS.iter().filter(|other| other.media_type == entry.media_type).count();
            assert_eq!(same, 1, "{}", entry.name);
        }
        assert!(Format::parse("docx").is_err());
        assert_eq!(Format::of_ending("a.docx"), None);
    }
}
