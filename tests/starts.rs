//! Starts of servers in public reports against `check`: the same command on the same hardware.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mantile::plan::adapters::adapter_width;
use mantile::request::UNCONTROLLED;
use mantile::request::check::{CheckRequest, check};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A reported start.
struct Reported {
    row: BTreeMap<String, String>,
}

impl Reported {
    fn text(&self, column: &str) -> &str {
        self.row.get(column).map_or("", String::as_str)
    }

    fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }

    fn starts(&self) -> bool {
        self.text("outcome") == "starts"
    }

    fn request(&self) -> CheckRequest {
        let given = |column: &str| Some(self.text(column).to_owned()).filter(|text| !text.is_empty());
        CheckRequest {
            command: self.text("command").to_owned(),
            scenario: Scenario {
                hardware: given("hardware"),
                model: given("base"),
                weight_format: given("weights"),
                runtime_version: given("version").filter(|version| version.contains('.')),
                ..Scenario::default()
            },
            ..CheckRequest::default()
        }
    }
}

fn reported() -> Vec<Reported> {
    let mut table = csv::Reader::from_path(root().join("tests/data/startup.csv")).unwrap();
    table.deserialize().map(|row| Reported { row: row.unwrap() }).collect()
}

#[test]
fn servers_start_as_they_did() {
    let catalog = Catalog::default();
    let (mut wrong_starts, mut wrong_refusals, mut unread, mut agree) = (vec![], vec![], vec![], 0);
    let mut ratios = Vec::new();
    for one in &reported() {
        let id = one.text("id").to_owned();
        match check(&catalog, &one.request(), &UNCONTROLLED) {
            Err(fault) => unread.push(format!("{id}: {fault}")),
            Ok(found) if found.starts && !one.starts() => {
                wrong_starts.push(format!("{id} ({}): {}", one.text("reason"), one.text("command")));
            }
            Ok(found) if !found.starts && one.starts() => {
                wrong_refusals.push(format!("{id}: {:?}: {}", found.reasons, one.text("command")));
            }
            Ok(found) => {
                agree += 1;
                let stated = one.number("kv_tokens").filter(|_| one.starts());
                if let Some((stated, tokens)) = stated.zip(found.kv_tokens) {
                    ratios.push((tokens as f64 / stated, id));
                }
            }
        }
    }
    let errors = |ratios: &[(f64, String)]| {
        let mut errors: Vec<f64> = ratios.iter().map(|(ratio, _)| (ratio - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors
    };
    let errors = errors(&ratios);
    let median = errors.get(errors.len() / 2).copied().unwrap_or_default();
    println!("{agree} agree; KV tokens: median error {median:.3} of {}: {ratios:?}", errors.len());
    println!("started, and did not:\n{}", wrong_starts.join("\n"));
    println!("refused, and started:\n{}", wrong_refusals.join("\n"));
    println!("not read:\n{}", unread.join("\n"));
    let verdicts = agree + wrong_starts.len() + wrong_refusals.len();
    println!("{agree} of {verdicts} agree, {} were not read", unread.len());
    // Many reports are of patched servers, or leave options out: `doubt` says which.
    assert!(verdicts >= 60 && agree * 2 > verdicts, "{agree} of {verdicts}");
}

/// vLLM's shapes of Llama-3.3-70B over four ranks: 10,240 for queries and output, 8,448 for keys and for values, 15,360 for
/// each matrix of the feed-forward layer. Eight slots of rank 256 in 16 bits are 25.5 GiB.
#[test]
fn both_sides_of_every_adapted_matrix_are_reserved() {
    let (_, graph) = Catalog::default().built("Llama-3.3-70B").unwrap();
    assert_eq!(adapter_width(&graph, 4), 80 * (2 * 10_240 + 2 * 8_448 + 3 * 15_360));
    let gib = (adapter_width(&graph, 4) * 8 * 256 * 2) as f64 / f64::from(1 << 30);
    assert!((gib - 25.5).abs() < 0.1, "{gib}");
}
