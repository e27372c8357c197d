//! The header of a GGUF file: metadata, and names and shapes of tensors. Its data are never read.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, versions 2 and 3, little-endian.

use std::collections::BTreeMap;
use std::io::Read;

use crate::spec::error::Error;

const MAGIC: &[u8] = b"GGUF";
/// Maximum size of a header: vocabularies of a million tokens take 30 MB.
pub const MOST_BYTES: u64 = 256 << 20;
/// Maximum length of a name or key, as in the format, and of other texts: chat templates are under 100 kB.
const MOST_TEXT: u64 = 16 << 20;
/// Maximum number of layers, and so of the entries of a list that is kept: one for each layer.
pub const MOST_LAYERS: u64 = 4096;

#[derive(Clone, Debug, PartialEq)]
pub enum GgufValue {
    /// A whole number, or a flag as 0 or 1.
    Whole(u64),
    Text(String),
    /// A list of whole numbers or flags, e.g. one for each layer.
    Wholes(Vec<u64>),
    /// Another list, by its length.
    List(u64),
    /// A negative or fractional number.
    Other,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GgufTensor {
    pub name: String,
    /// Its dimensions, the innermost first.
    pub dims: Vec<u64>,
    /// `enum ggml_type` of ggml's `include/ggml.h`.
    pub kind: u64,
}

impl GgufTensor {
    /// Number of its elements; `None` where it exceeds 64 bits.
    pub fn elements(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GgufHeader {
    pub metadata: BTreeMap<String, GgufValue>,
    pub tensors: Vec<GgufTensor>,
}

fn fault(found: impl Into<String>, expected: &str) -> Error {
    Error::new("", found, expected, "name a GGUF file of llama.cpp, or a config.json")
}

struct HeaderReader<R> {
    input: R,
    left: u64,
}

impl<R: Read> HeaderReader<R> {
    fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Error> {
        if count > self.left {
            return Err(fault("a header that is too long", "a header of at most 256 MB"));
        }
        self.left -= count;
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(count).read_to_end(&mut bytes);
        match read {
            Ok(read) if read as u64 == count => Ok(bytes),
            Ok(_) => Err(fault("a file that is cut off in its header", "a whole header")),
            Err(error) => Err(fault(error.to_string(), "a file that can be read")),
        }
    }

    /// A whole number of `size` bytes.
    fn whole(&mut self, size: u64) -> Result<u64, Error> {
        let bytes = self.bytes(size)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = self.whole(8)?;
        if length > MOST_TEXT {
            return Err(fault(format!("a text of {length} bytes"), "texts of at most 16 MB"));
        }
        Ok(String::from_utf8_lossy(&self.bytes(length)?).into_owned())
    }

    /// Size of a number of the type `kind`, and whether it is a whole number with a sign, or without one.
    fn number(kind: u64) -> Option<(u64, bool, bool)> {
        Some(match kind {
            0 => (1, true, false),
            1 => (1, true, true),
            2 => (2, true, false),
            3 => (2, true, true),
            4 => (4, true, false),
            5 => (4, true, true),
            6 => (4, false, true),
            7 => (1, true, false),
            10 => (8, true, false),
            11 => (8, true, true),
            12 => (8, false, true),
            _ => return None,
        })
    }

    /// A whole number, if it is one and not negative.
    fn plain(&mut self, (size, whole, signed): (u64, bool, bool)) -> Result<Option<u64>, Error> {
        let number = self.whole(size)?;
        let negative = signed && number >> (8 * size - 1) & 1 == 1;
        Ok((whole && !negative).then_some(number))
    }

    fn value(&mut self, kind: u64) -> Result<GgufValue, Error> {
        if let Some(form) = Self::number(kind) {
            return Ok(self.plain(form)?.map_or(GgufValue::Other, GgufValue::Whole));
        }
        match kind {
            8 => self.text().map(GgufValue::Text),
            9 => self.list(),
            _ => Err(fault(format!("a value of type {kind}"), "one of the types 0 to 12")),
        }
    }

    fn list(&mut self) -> Result<GgufValue, Error> {
        let (kind, count) = (self.whole(4)?, self.whole(8)?);
        match Self::number(kind) {
            Some(form) if count <= MOST_LAYERS => {
                // All of them are read, whatever they are.
                let numbers: Vec<Option<u64>> =
                    (0..count).map(|_| self.plain(form)).collect::<Result<_, _>>()?;
                let wholes: Option<Vec<u64>> = numbers.into_iter().collect();
                Ok(wholes.map_or(GgufValue::List(count), GgufValue::Wholes))
            }
            Some((size, ..)) => {
                self.bytes(count.saturating_mul(size))?;
                Ok(GgufValue::List(count))
            }
            None if kind == 8 => {
                for _ in 0..count {
                    self.text()?;
                }
                Ok(GgufValue::List(count))
            }
            None => Err(fault(format!("a list of type {kind}"), "a list of numbers or texts")),
        }
    }

    fn tensor(&mut self) -> Result<GgufTensor, Error> {
        let name = self.text()?;
        let dims = self.whole(4)?;
        if dims > 4 {
            return Err(fault(format!("{name} with {dims} dimensions"), "at most 4 dimensions"));
        }
        let dims = (0..dims).map(|_| self.whole(8)).collect::<Result<_, _>>()?;
        let kind = self.whole(4)?;
        // Its offset.
        self.bytes(8)?;
        Ok(GgufTensor { name, dims, kind })
    }
}

impl GgufHeader {
    /// Reads a header.
    pub fn read(input: impl Read) -> Result<GgufHeader, Error> {
        let mut reader = HeaderReader { input, left: MOST_BYTES };
        if reader.bytes(MAGIC.len() as u64)? != MAGIC {
            return Err(fault("another file", "a file that starts with GGUF"));
        }
        let version = reader.whole(4)?;
        if !(2..=3).contains(&version) {
            return Err(fault(format!("version {version}"), "version 2 or 3, little-endian"));
        }
        let (tensors, entries) = (reader.whole(8)?, reader.whole(8)?);
        let mut header = GgufHeader::default();
        for _ in 0..entries {
            let (key, kind) = (reader.text()?, reader.whole(4)?);
            let value = reader.value(kind)?;
            header.metadata.insert(key, value);
        }
        for _ in 0..tensors {
            header.tensors.push(reader.tensor()?);
        }
        Ok(header)
    }

    /// The whole number at `key`; of a list, the number that all its entries are.
    pub fn whole(&self, key: &str) -> Option<u64> {
        match self.metadata.get(key)? {
            GgufValue::Whole(number) => Some(*number),
            GgufValue::Wholes(numbers) => {
                numbers.first().copied().filter(|first| numbers.iter().all(|number| number == first))
            }
            GgufValue::Text(_) | GgufValue::List(_) | GgufValue::Other => None,
        }
    }

    /// The text at `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key)? {
            GgufValue::Text(text) => Some(text),
            _ => None,
        }
    }
}
