//! Rows as a Parquet file, compressed in groups as they come.

use crate::spec::scalar::ScalarKind;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::file;
use crate::spec::error::Error;

const GROUP: usize = 16_384;

pub struct ParquetWriter {
    kinds: Vec<ScalarKind>,
    rows: Vec<Vec<String>>,
    writer: SerializedFileWriter<Vec<u8>>,
}

/// A fault of the library: more rows or columns than the format has.
fn fault(error: &ParquetError) -> Error {
    let fix = "write --out sweep.csv";
    Error::new("out", error.to_string(), "rows that a Parquet file can hold", fix)
}

impl ParquetWriter {
    /// A file of these columns, each of which may be empty in a row.
    pub fn new(columns: &[(String, ScalarKind)]) -> Result<ParquetWriter, Error> {
        let field = |(name, kind): &(String, ScalarKind)| {
            let (physical, logical) = match kind {
                ScalarKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                ScalarKind::Whole => (Physical::INT64, None),
                ScalarKind::Number => (Physical::DOUBLE, None),
            };
            let field = Type::primitive_type_builder(name, physical);
            let field = field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
            field.build().map(Arc::new)
        };
        let writer = || {
            let fields = columns.iter().map(field).collect::<Result<Vec<_>, ParquetError>>()?;
            let schema = Arc::new(Type::group_type_builder("rows").with_fields(fields).build()?);
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
            SerializedFileWriter::new(vec![], schema, Arc::new(properties))
        };
        let writer = writer().map_err(|error: ParquetError| fault(&error))?;
        Ok(ParquetWriter { kinds: columns.iter().map(|(_, kind)| *kind).collect(), rows: vec![], writer })
    }

    /// Adds a row; an empty cell is null.
    pub fn push(&mut self, cells: Vec<String>) -> Result<(), Error> {
        self.rows.push(cells);
        if self.rows.len() >= GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let mut write = || {
            let mut group = self.writer.next_row_group()?;
            for (at, kind) in self.kinds.iter().enumerate() {
                let cells = rows.iter().map(|row| row.get(at).map_or("", String::as_str));
                match kind {
                    ScalarKind::Text => {
                        column::<ByteArrayType>(&mut group, cells, |text| Some(ByteArray::from(text)))?
                    }
                    ScalarKind::Whole => column::<Int64Type>(&mut group, cells, |text| text.parse().ok())?,
                    ScalarKind::Number => column::<DoubleType>(&mut group, cells, |text| text.parse().ok())?,
                }
            }
            group.close()
        };
        write().map(|_| ()).map_err(|error: ParquetError| fault(&error))
    }

    pub fn finish(mut self, path: &Path) -> Result<(), Error> {
        self.flush()?;
        let bytes = self.writer.into_inner().map_err(|error| fault(&error))?;
        file::write_bytes(path, &bytes)
    }
}

/// Writes the cells of a column; an empty one is null.
fn column<'a, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: impl Iterator<Item = &'a str>,
    read: impl Fn(&str) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> =
        cells.map(|text| if text.is_empty() { None } else { read(text) }).collect();
    let defined: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    let Some(mut writer) = group.next_column()? else { return Ok(()) };
    writer.typed::<T>().write_batch(&values, Some(&defined), None)?;
    writer.close()
}
