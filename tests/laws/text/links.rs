//! Links that others made are read within limits, whole or not at all.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fastrand::Rng;
use mantile::request::permalink::decode;
use miniz_oxide::deflate::compress_to_vec;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::draw::cases;

/// A link of any text, made as a stranger makes one.
fn link(text: &[u8]) -> String {
    let sum = &Sha256::digest(text)[..4];
    let bytes = [sum, &compress_to_vec(text, 9)].concat();
    format!("m1.{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// 12. A link with a key that no question has is refused, wherever the key is; without it, it is read.
#[test]
fn a_link_with_an_unknown_key_is_refused() {
    let mut random = Rng::with_seed(12);
    for _ in 0..cases(200) {
        let mut question = json!({
            "request": "estimate",
            "scenario": {"model": "Qwen3-0.6B", "isl": random.u32(1..9000), "deployment": {"both": {"tp": 1}}},
        });
        assert!(decode(&link(question.to_string().as_bytes())).is_ok(), "{question}");
        let place =
            *random.choice(&["", "/scenario", "/scenario/deployment", "/scenario/deployment/both"]).unwrap();
        let key: String = (0..random.usize(4..9)).map(|_| random.lowercase()).collect();
        let key = format!("{key}_x");
        question.pointer_mut(place).unwrap()[&key] = Value::from(random.u32(..3));
        let fault = decode(&link(question.to_string().as_bytes())).unwrap_err();
        assert!(fault.to_string().contains(&key), "{fault}");
    }
}

/// 13. A link that unpacks to 512 MB is refused before it unpacks.
#[test]
fn a_link_that_unpacks_to_much_is_refused() {
    let begun = std::time::Instant::now();
    let mut random = Rng::with_seed(13);
    let long = link(&vec![b' '; 512 << 20]);
    let packed = begun.elapsed();
    for _ in 0..cases(20).min(200) {
        let begun = std::time::Instant::now();
        // Cut anywhere, it is refused as soon.
        let cut = &long[..random.usize(long.len() / 2..=long.len())];
        assert!(decode(cut).is_err());
        assert!(begun.elapsed() < packed / 4, "{:?} of {packed:?}", begun.elapsed());
    }
}

/// 14. The page unpacks as little, knows unknown keys, and its cards lead to no loopback address. Node runs its modules.
#[test]
fn links_of_the_page_are_read_within_limits() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/links.mjs");
    let Ok(found) = std::process::Command::new("node").arg(script).output() else { return };
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
}
