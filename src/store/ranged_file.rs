//! The header of a GGUF file on a hub: requests of ranges of growing size, as far as the header needs them.

use std::io::{self, BufReader, Read};

use ureq::BodyReader;
use ureq::http::{HeaderMap, Uri};

use super::download::{HubFile, agent};
use super::fetch::{Fetch, FetchBudget, by_hand, missing};
use super::file;
use super::hub::Repository;
use crate::spec::error::Error;
use crate::spec::model::gguf::GgufHeader;
use crate::spec::visible::without_secrets;

/// Size of the first range; each further one is twice as long.
const FIRST_RANGE: u64 = 1 << 20;

impl Fetch {
    /// The header of a file, and its bytes.
    pub(super) fn remote_header(
        &self,
        repository: &Repository,
        file: &str,
        budget: &mut FetchBudget,
    ) -> Result<(GgufHeader, Vec<u8>), Error> {
        let agent = agent(&by_hand(repository, file))?;
        let mut ranged = RangedFile {
            file: HubFile::new(self, &agent, repository, (file, budget.until)),
            absent: missing(repository, &repository.address(&self.endpoint, file), file),
            place: None,
            response: None,
            at: 0,
            size: None,
            step: FIRST_RANGE,
            left: budget.bytes,
            fault: None,
        };
        let mut recorded = RecordedInput { input: BufReader::new(&mut ranged), bytes: vec![] };
        let header = GgufHeader::read(&mut recorded);
        let bytes = recorded.bytes;
        budget.bytes = ranged.left;
        match (header, ranged.fault.take()) {
            (Ok(header), _) => Ok((header, bytes)),
            (Err(_), Some(fault)) => Err(fault),
            (Err(fault), None) => {
                let fix = format!("check the name, HF_ENDPOINT and any proxy; or {}", fault.fix);
                let address = repository.address(&self.endpoint, file);
                Err(Error { fix, ..fault }.in_file(without_secrets(&address)))
            }
        }
    }
}

/// A file on a hub, read from its start.
struct RangedFile<'a> {
    file: HubFile<'a>,
    /// The fault where there is no such file.
    absent: Error,
    /// The address of the first response: redirects are followed once.
    place: Option<Uri>,
    response: Option<RangeResponse>,
    /// Bytes read.
    at: u64,
    /// Size of the file, once it is known.
    size: Option<u64>,
    /// Length of the next range.
    step: u64,
    /// Bytes that may still be read.
    left: u64,
    /// The fault that ended it.
    fault: Option<Error>,
}

/// A response under way.
struct RangeResponse {
    body: BodyReader<'static>,
    /// The end of its range; none where it is the whole file, from a server that ignores ranges.
    end: Option<u64>,
}

impl Read for RangedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.next(buffer).map_err(|fault| {
            let shown = io::Error::other(fault.found.clone());
            self.fault = Some(fault);
            shown
        })
    }
}

impl RangedFile<'_> {
    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            let found = "headers of more than 256 MB";
            return Err(self.file.refuse(found, "check that the file is a model of llama.cpp"));
        }
        let ended = |response: &RangeResponse| response.end == Some(self.at);
        if self.response.as_ref().is_none_or(ended) {
            if self.size == Some(self.at) {
                return Ok(0);
            }
            self.response = Some(self.request()?);
        }
        let Some(RangeResponse { body, end }) = &mut self.response else { return Ok(0) };
        let most = end.map_or(self.left, |end| (end - self.at).min(self.left)).min(buffer.len() as u64);
        let read = body.read(&mut buffer[..most as usize]);
        let read = read.map_err(|fault| self.file.incomplete(&file::spell(&fault)))?;
        if let (0, Some(end)) = (read, *end) {
            return Err(self.file.incomplete(&format!("it ends {} bytes before its range", end - self.at)));
        }
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }

    /// The response with the next range.
    fn request(&mut self) -> Result<RangeResponse, Error> {
        let last = self.at + self.step.min(self.left) - 1;
        self.step *= 2;
        let found = self.file.response(Some((self.at, last)), self.place.as_ref())?;
        let Some((response, place)) = found else { return Err(self.absent.clone()) };
        let end = match response.status().as_u16() {
            206 => Some(self.end_of_range(response.headers(), last)?),
            _ if self.at == 0 => None,
            _ => {
                let found = "the whole file after a range of it";
                return Err(self.file.refuse(found, "check HF_ENDPOINT and any proxy"));
            }
        };
        self.place = Some(place);
        Ok(RangeResponse { body: response.into_body().into_reader(), end })
    }

    /// The end of the range that a response has: the requested one, or the end of the file before it.
    fn end_of_range(&mut self, headers: &HeaderMap, last: u64) -> Result<u64, Error> {
        let text = headers.get("content-range").and_then(|range| range.to_str().ok()).unwrap_or_default();
        let range = content_range(text);
        let right = range.filter(|(first, end, size)| {
            let is_whole = *end == last + 1 || *size == Some(*end);
            let is_of_file = size.is_none_or(|size| *end <= size && self.size.is_none_or(|one| one == size));
            *first == self.at && *first < *end && *end <= last + 1 && is_whole && is_of_file
        });
        let Some((_, end, size)) = right else {
            let found = format!("the range `{text}` in place of bytes {} to {last}", self.at);
            return Err(self.file.refuse(found, "check HF_ENDPOINT and any proxy"));
        };
        self.size = size.or(self.size);
        Ok(end)
    }
}

/// First byte, end and size of the file of a `Content-Range`: RFC 9110, 14.4.
fn content_range(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let size = if size == "*" { None } else { Some(size.parse().ok()?) };
    Some((first.parse().ok()?, last.parse::<u64>().ok()?.checked_add(1)?, size))
}

/// An input whose bytes are kept as they are read.
struct RecordedInput<R> {
    input: R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for RecordedInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.bytes.extend_from_slice(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_read_as_the_standard_writes_it() {
        assert_eq!(content_range("bytes 0-499/1234"), Some((0, 500, Some(1234))));
        assert_eq!(content_range("bytes 42-1233/*"), Some((42, 1234, None)));
        for text in [
            "",
            "bytes",
            "bytes */1234",
            "bytes 0-/5",
            "items 0-1/2",
            "bytes 0-18446744073709551615/*",
            "bytes -1-2/3",
        ] {
            assert_eq!(content_range(text), None, "{text}");
        }
    }
}
