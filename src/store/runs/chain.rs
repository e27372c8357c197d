//! Canonical text of records, their hashes, and the chain of these.

use rusqlite::Connection;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A digest of SHA-256 (FIPS 180-4).
pub type Digest = [u8; 32];

/// The hash of a record, and the hash of it with all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainLink {
    pub hash: Digest,
    pub chain: Digest,
}

impl ChainLink {
    /// The link of a text after `before`; the first comes after zeros.
    pub(super) fn of(text: &str, before: Digest) -> ChainLink {
        let hash: Digest = Sha256::digest(text).into();
        ChainLink { hash, chain: Sha256::new().chain_update(before).chain_update(hash).finalize().into() }
    }
}

/// The text of a record: JSON without spaces, with the keys of every object in order (RFC 8785, section 3.2.3), so that
/// equal records have equal texts.
pub(super) fn canonical(record: &impl Serialize) -> String {
    let value = serde_json::to_value(record).expect("records have only text keys");
    sorted(value).to_string()
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(fields.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// Bytes in hex.
pub(super) fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The chain of a table as computed again.
pub(super) struct VerifiedChain {
    /// The chained hash after each record.
    pub heads: Vec<Digest>,
    pub faults: Vec<String>,
}

/// Reads a table in order and computes its hashes again. `id` is the column that must be what `id_of` reads in the record;
/// where that is empty, no column is.
///
/// # Errors
/// The file cannot be read.
pub(super) fn verified(
    connection: &Connection,
    table: &str,
    id: &str,
    id_of: &dyn Fn(&str) -> serde_json::Result<String>,
) -> rusqlite::Result<VerifiedChain> {
    let query = format!("SELECT seq, {id}, record, hash, chain FROM {table} ORDER BY seq");
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([])?;
    let mut found = VerifiedChain { heads: vec![], faults: vec![] };
    let mut before = Digest::default();
    while let Some(row) = rows.next()? {
        let (seq, text): (i64, String) = (row.get(0)?, row.get(2)?);
        let stored = ChainLink { hash: row.get(3)?, chain: row.get(4)? };
        let link = ChainLink::of(&text, before);
        let mut wrong = |what: &str| found.faults.push(format!("{table}: record {seq}: {what}"));
        if seq != found.heads.len() as i64 + 1 {
            wrong("its number is not the next one");
        }
        if stored.hash != link.hash {
            wrong("its text is not the one that was written: the hash differs");
        }
        if stored.chain != link.chain {
            wrong("the chain of hashes differs here");
        }
        match id_of(&text) {
            Ok(expected) if expected.is_empty() => {}
            Ok(expected) if row.get::<_, String>(1)? == expected => {}
            Ok(_) => wrong("its id is not that of its text"),
            Err(error) => wrong(&format!("no record: {error}")),
        }
        // One fault is one line: what follows is compared with what is stored.
        before = stored.chain;
        found.heads.push(link.chain);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_records_have_equal_texts() {
        let (one, other) =
            (json!({"b": {"y": 1.5, "x": [1]}, "a": null}), json!({"a": null, "b": {"x": [1], "y": 1.5}}));
        assert_eq!(canonical(&one), canonical(&other));
        assert_eq!(canonical(&one), r#"{"a":null,"b":{"x":[1],"y":1.5}}"#);
    }

    #[test]
    fn a_hash_is_that_of_the_standard() {
        // FIPS 180-4, example of one block.
        let link = ChainLink::of("abc", Digest::default());
        assert!(hex(link.hash).starts_with("ba7816bf8f01cfea414140de5dae2223"));
        assert_ne!(link.chain, ChainLink::of("abc", link.chain).chain);
    }
}
