//! Signatures of the end of a chain: Ed25519 (RFC 8032).

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use ed25519_dalek::{SECRET_KEY_LENGTH, Signature, Signer, SigningKey, VerifyingKey};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::ChainHead;
use super::chain::{Digest, hex};
use crate::spec::error::Error;
use crate::store::file::{FileSizeLimit, read_most, shown, spell};

/// A signed message begins so: a signature for another purpose is none here.
const PURPOSE: &[u8] = b"mantile runs 1\0";

/// A signature of the end of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadSignature {
    /// Number of the last record that it covers.
    pub seq: i64,
    /// The chained hash there.
    pub chain: Digest,
    /// The public key.
    pub key: [u8; 32],
    pub signature: [u8; 64],
}

/// The same in a file: bytes in hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureLine {
    /// Number of the last record that it covers.
    pub signed_runs: i64,
    /// The chained hash there.
    pub chain: String,
    /// The public key.
    pub public_key: String,
    /// The signature (Ed25519).
    pub signature: String,
}

/// The message of a head.
fn message(head: ChainHead) -> Vec<u8> {
    [PURPOSE, &head.seq.to_be_bytes(), &head.chain].concat()
}

impl HeadSignature {
    /// Why it does not hold for a chain, if it does not; `heads` has the chained hash after each record.
    pub(super) fn fault(&self, heads: &[Digest]) -> Option<String> {
        let at = usize::try_from(self.seq - 1).ok().and_then(|at| heads.get(at));
        if at != Some(&self.chain) {
            let there = heads.len();
            return Some(format!(
                "signature of record {}: the chain of {there} records is not the signed one",
                self.seq
            ));
        }
        (!self.is_valid()).then(|| format!("signature of record {}: not by its key", self.seq))
    }

    fn is_valid(&self) -> bool {
        let head = ChainHead { seq: self.seq, chain: self.chain };
        let signature = Signature::from_bytes(&self.signature);
        VerifyingKey::from_bytes(&self.key)
            .is_ok_and(|key| key.verify_strict(&message(head), &signature).is_ok())
    }

    /// The line of a file.
    pub fn line(&self) -> SignatureLine {
        SignatureLine {
            signed_runs: self.seq,
            chain: hex(self.chain),
            public_key: hex(self.key),
            signature: hex(self.signature),
        }
    }
}

impl SignatureLine {
    /// Whether it is a signature of these texts of records, in this order.
    pub fn holds(&self, texts: &[String]) -> bool {
        let read = || {
            Some(HeadSignature {
                seq: self.signed_runs,
                chain: bytes(&self.chain)?,
                key: bytes(&self.public_key)?,
                signature: bytes(&self.signature)?,
            })
        };
        let mut chain = Digest::default();
        let heads: Vec<Digest> = texts
            .iter()
            .map(|text| {
                chain = super::chain::ChainLink::of(text, chain).chain;
                chain
            })
            .collect();
        read().is_some_and(|signature| signature.fault(&heads).is_none())
    }
}

/// Bytes of a text in hex.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.is_ascii().then_some(text).filter(|text| text.len() == 2 * N)?;
    let mut found = [0; N];
    for (at, byte) in found.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(found)
}

/// The signatures of a store.
pub(super) fn signatures(connection: &Connection) -> rusqlite::Result<Vec<HeadSignature>> {
    let mut statement =
        connection.prepare("SELECT seq, chain, key, signature FROM signatures ORDER BY rowid")?;
    let rows = statement.query_map([], |row| {
        Ok(HeadSignature { seq: row.get(0)?, chain: row.get(1)?, key: row.get(2)?, signature: row.get(3)? })
    })?;
    rows.collect()
}

/// A key that signs.
pub struct SigningKeyFile(SigningKey);

impl SigningKeyFile {
    /// Reads a key, or makes one that its owner alone may read.
    ///
    /// # Errors
    /// The file is no key, or cannot be read or written.
    pub fn open(path: &Path) -> Result<SigningKeyFile, Error> {
        let expected = "a key: 64 hexadecimal digits";
        let fix = "name another file: a key is made where there is none";
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = match options.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text = read_most(path, FileSizeLimit::Configuration)?;
                let key = bytes::<SECRET_KEY_LENGTH>(text.trim());
                let fault = || Error::new("key", "another text", expected, fix).in_file(shown(path));
                return Ok(SigningKeyFile(SigningKey::from_bytes(&key.ok_or_else(fault)?)));
            }
            Err(error) => return Err(Error::new("key", spell(&error), expected, fix).in_file(shown(path))),
        };
        let mut secret = [0; SECRET_KEY_LENGTH];
        let drawn = getrandom::fill(&mut secret).map_err(std::io::Error::other);
        let line = format!("{}\n", hex(secret));
        let written = drawn.and_then(|()| file.write_all(line.as_bytes())).and_then(|()| file.sync_all());
        written.map_err(|error| Error::new("key", spell(&error), expected, fix).in_file(shown(path)))?;
        Ok(SigningKeyFile(SigningKey::from_bytes(&secret)))
    }

    pub(super) fn signed(&self, head: ChainHead) -> HeadSignature {
        HeadSignature {
            seq: head.seq,
            chain: head.chain,
            key: self.0.verifying_key().to_bytes(),
            signature: self.0.sign(&message(head)).to_bytes(),
        }
    }

    /// The signature of texts of records, in this order.
    pub fn of_texts(&self, texts: &[String]) -> HeadSignature {
        let chain = texts
            .iter()
            .fold(Digest::default(), |chain, text| super::chain::ChainLink::of(text, chain).chain);
        self.signed(ChainHead { seq: texts.len() as i64, chain })
    }
}
