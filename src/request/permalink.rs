//! Permalinks: a request with its scenario and overrides as a short text for URLs.
//!
//! `m1.` and base64url without padding of: four bytes of the SHA-256 of the JSON, then the JSON compressed by deflate.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use miniz_oxide::deflate::CompressionLevel;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{RequestControl, entry};
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;

/// Beginning of every link, with the version of the format.
const START: &str = "m1.";
/// Maximum length of a link: what browsers and chats carry safely.
pub const MOST_BYTES: usize = 2048;
pub const MOST_JSON: usize = 1 << 20;
/// Bytes of the checksum.
const CHECKSUM: usize = 4;

/// A request with its scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkedQuestion {
    /// Name of the request, e.g. `optimize`.
    #[serde(default = "optimize")]
    pub request: String,
    /// Its scenario, with overrides in `set`.
    pub scenario: Scenario,
}

fn optimize() -> String {
    "optimize".to_owned()
}

/// A request of `permalink`: a question to encode, or a link to read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "PermalinkKeys")]
#[schemars(!try_from, deny_unknown_fields)]
pub enum PermalinkRequest {
    /// Encodes a question.
    Question(Box<LinkedQuestion>),
    /// Reads a link.
    Link {
        /// The link, with or without the address before its `#`.
        link: String,
    },
}

/// Keys of a request of `permalink`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PermalinkKeys {
    link: Option<String>,
    request: Option<String>,
    scenario: Option<Scenario>,
}

impl TryFrom<PermalinkKeys> for PermalinkRequest {
    type Error = &'static str;

    fn try_from(keys: PermalinkKeys) -> Result<PermalinkRequest, &'static str> {
        match keys {
            PermalinkKeys { link: Some(link), request: None, scenario: None } => {
                Ok(PermalinkRequest::Link { link })
            }
            PermalinkKeys { link: None, request, scenario: Some(scenario) } => {
                let request = request.unwrap_or_else(optimize);
                Ok(PermalinkRequest::Question(Box::new(LinkedQuestion { request, scenario })))
            }
            PermalinkKeys { link: Some(_), .. } => {
                Err("both `link` and a question, expected either `link`, or `scenario` with `request`")
            }
            PermalinkKeys { .. } => Err("neither `link` nor `scenario`, expected one of them"),
        }
    }
}

/// A link with its question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Permalink {
    /// The link.
    pub link: String,
    /// The question.
    pub question: LinkedQuestion,
}

/// Encodes a question, or reads a link.
///
/// # Errors
/// The question has no scenario or is too long, or the link is not one.
pub fn permalink(_: &Catalog, request: &PermalinkRequest, _: &RequestControl) -> Result<Permalink, Error> {
    let question = match request {
        PermalinkRequest::Question(question) => LinkedQuestion::clone(question),
        PermalinkRequest::Link { link } => decode(link)?,
    };
    Ok(Permalink { link: encode(&question)?, question })
}

/// The link of a request and its question; only the scenario is kept.
///
/// # Errors
/// The question has no scenario, or the link is too long.
pub fn link_of(request: &str, question: &Value) -> Result<String, Error> {
    let scenario = question.get("scenario").filter(|scenario| scenario.is_object()).ok_or_else(|| {
        let fix = "link a question about a scenario: optimize, estimate, explain, audit, static";
        Error::new("permalink", format!("`{request}`, which has no scenario"), "a scenario", fix)
    })?;
    let scenario = from_json(&scenario.to_string(), "a scenario")?;
    encode(&LinkedQuestion { request: request.to_owned(), scenario })
}

/// Whether a text is a link, with or without an address before it.
pub fn is_link(text: &str) -> bool {
    bare(text).starts_with(START)
}

fn bare(text: &str) -> &str {
    text.trim().rsplit_once('#').map_or(text.trim(), |(_, fragment)| fragment)
}

fn checksum(json: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::digest(json);
    [digest[0], digest[1], digest[2], digest[3]]
}

/// The link of a question.
///
/// # Errors
/// The request is unknown, or the link is longer than [`MOST_BYTES`].
pub fn encode(question: &LinkedQuestion) -> Result<String, Error> {
    entry(&question.request)?;
    let json = super::value(question).to_string();
    // One compressor everywhere: others choose by the processor, and a question has one link.
    let packed = compress_to_vec(json.as_bytes(), CompressionLevel::BestCompression as u8);
    let bytes = [checksum(json.as_bytes()).to_vec(), packed].concat();
    let link = format!("{START}{}", URL_SAFE_NO_PAD.encode(bytes));
    if link.len() > MOST_BYTES {
        let found = format!("{} bytes", link.len());
        let fix = "name catalogue entries instead of long values, or send a bundle";
        return Err(Error::new("permalink", found, format!("at most {MOST_BYTES} bytes"), fix));
    }
    Ok(link)
}

/// The question of a link.
///
/// # Errors
/// It is not a link, was altered or cut, or is of another version.
pub fn decode(text: &str) -> Result<LinkedQuestion, Error> {
    let fault = |found: &str| {
        let fix = "copy the whole link again; `mantile-opt ... --permalink` writes one";
        Error::new("permalink", found, format!("a link that starts with {START}"), fix)
    };
    let text = bare(text);
    let encoded = text.strip_prefix(START).ok_or_else(|| match text.split_once('.') {
        Some((version, _)) if version.starts_with('m') => fault(&format!("a link of version {version}")),
        _ => fault("another text"),
    })?;
    let bytes =
        URL_SAFE_NO_PAD.decode(encoded).map_err(|_| fault("a link with other characters, or cut off"))?;
    let (sum, packed) = bytes.split_at_checked(CHECKSUM).ok_or_else(|| fault("a link that is cut off"))?;
    let json = decompress_to_vec_with_limit(packed, MOST_JSON)
        .map_err(|_| fault("a link that was altered or cut off"))?;
    if checksum(&json) != sum {
        return Err(fault("a link that was altered or cut off"));
    }
    let json = String::from_utf8(json).map_err(|_| fault("a link that was altered"))?;
    let question: LinkedQuestion = from_json(&json, "a permalink")?;
    entry(&question.request)?;
    Ok(question)
}
