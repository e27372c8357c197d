//! Starts of servers in public reports against `check`: the same command on the same hardware.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mantile::plan::adapters::adapter_width;
use mantile::report::start::StartReport;
use mantile::request::UNCONTROLLED;
use mantile::request::check::{CheckRequest, check};
use mantile::spec::error::Error;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Limits a little above what was measured, of rows that are decided.
const AGREE: usize = 77;
const FALSE_STARTS: usize = 2;
const FALSE_REFUSALS: usize = 0;
const MEDIAN_ERROR: f64 = 0.04;

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

    /// Whether command and hardware decide the outcome: not a patched build, nor an error of one version.
    fn is_decided(&self) -> bool {
        self.text("undecided").is_empty()
    }

    fn given(&self, column: &str) -> Option<String> {
        Some(self.text(column).to_owned()).filter(|text| !text.is_empty())
    }

    /// The request as a user has it; `based`: with the architecture and the format of a checkpoint that the catalogue
    /// does not know by its name.
    fn request(&self, catalog: &Catalog, based: bool) -> CheckRequest {
        let file = self.given("file");
        let file = file.as_deref().and_then(|file| file.split_once(": "));
        CheckRequest {
            command: self.text("command").to_owned(),
            command_files: file
                .map(|(name, text)| (name.to_owned(), text.replace("\\n", "\n")))
                .into_iter()
                .collect(),
            scenario: Scenario {
                hardware: self.given("hardware"),
                runtime: self.given("runtime").filter(|id| catalog.runtime_by_id(id).is_ok()),
                model: self.given("base").filter(|_| based),
                weight_format: self.given("weights").filter(|_| based),
                runtime_version: self.given("version").filter(|version| version.contains('.')),
                ..Scenario::default()
            },
            ..CheckRequest::default()
        }
    }

    fn checked(&self, catalog: &Catalog) -> Result<StartReport, Error> {
        let of = |based| check(catalog, &self.request(catalog, based), &UNCONTROLLED);
        of(false).or_else(|_| of(true))
    }
}

fn reported() -> Vec<Reported> {
    let mut table = csv::Reader::from_path(root().join("tests/data/startup.csv")).unwrap();
    table.deserialize().map(|row| Reported { row: row.unwrap() }).collect()
}

/// Rows that are decided and wrong, by what is wrong.
#[derive(Default)]
struct Tally {
    agree: usize,
    starts: Vec<String>,
    refusals: Vec<String>,
    unread: Vec<String>,
    /// Predicted over logged tokens of the KV cache.
    tokens: Vec<(f64, String)>,
}

impl Tally {
    fn add(&mut self, row: &Reported, found: Result<StartReport, Error>) {
        let id = row.text("id").to_owned();
        match found {
            Err(fault) => self.unread.push(format!("{id}: {fault}")),
            Ok(found) if found.starts && !row.starts() => {
                self.starts.push(format!("{id} ({}): {}", row.text("reason"), row.text("command")));
            }
            Ok(found) if !found.starts && row.starts() => {
                self.refusals.push(format!("{id}: {:?}: {}", found.reasons, row.text("command")));
            }
            Ok(found) => {
                self.agree += 1;
                let stated = row.number("kv_tokens").filter(|_| row.starts());
                self.tokens
                    .extend(stated.zip(found.kv_tokens).map(|(stated, tokens)| (tokens as f64 / stated, id)));
            }
        }
    }

    fn median_error(&self) -> f64 {
        let mut errors: Vec<f64> = self.tokens.iter().map(|(ratio, _)| (ratio - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied().unwrap_or(f64::INFINITY)
    }
}

#[test]
fn servers_start_as_they_did() {
    let catalog = Catalog::default();
    let (mut decided, mut others) = (Tally::default(), Tally::default());
    for row in &reported() {
        let tally = if row.is_decided() { &mut decided } else { &mut others };
        tally.add(row, row.checked(&catalog));
    }
    for (name, tally) in [("decided", &decided), ("others", &others)] {
        println!(
            "{name}: {} agree, KV tokens off by {:.3}: {:?}",
            tally.agree,
            tally.median_error(),
            tally.tokens
        );
        println!("started, and did not:\n{}", tally.starts.join("\n"));
        println!("refused, and started:\n{}", tally.refusals.join("\n"));
        println!("not read:\n{}", tally.unread.join("\n"));
    }
    assert!(decided.agree >= AGREE, "{}", decided.agree);
    assert!(decided.starts.len() <= FALSE_STARTS, "{}", decided.starts.join("\n"));
    assert!(decided.refusals.len() == FALSE_REFUSALS, "{}", decided.refusals.join("\n"));
    assert!(decided.median_error() <= MEDIAN_ERROR, "{}", decided.median_error());
}

/// The check of a command on this hardware.
fn of_command(hardware: &str, command: &str) -> StartReport {
    let scenario = Scenario { hardware: Some(hardware.to_owned()), ..Scenario::default() };
    let request = CheckRequest { command: command.to_owned(), scenario, ..CheckRequest::default() };
    check(&Catalog::default(), &request, &UNCONTROLLED).unwrap()
}

fn has_reason(found: &StartReport, words: &str) -> bool {
    found.reasons.iter().any(|reason| reason.contains(words))
}

/// Gemma-4's experts have 704 inputs and its dense layers 2,112: five groups of 128 and a half, sixteen and a half. The
/// matrices of Qwen3.6-27B are whole groups, and the name of an AWQ checkpoint does not state its group.
#[test]
fn no_kernel_takes_a_part_of_a_group() {
    let of = |model: &str| {
        let command = format!("vllm serve {model} --max-model-len 4096 --max-num-seqs 8");
        of_command("1xrtx-3090", &command)
    };
    let part = "no whole number of groups of 128";
    assert!(has_reason(&of("Intel/gemma-4-26B-A4B-it-int4-AutoRound"), part));
    assert!(!has_reason(&of("cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit"), part));
    let whole = of("Intel/Qwen3.6-27B-int4-AutoRound --quantization auto_round");
    assert!(whole.starts, "{:?}", whole.reasons);
}

/// The per-layer embedding of Gemma-4-E4B, 262,144 x 42 x 256 elements, is 5.25 GiB: TensorRT-LLM allocated as much on an
/// L4 next to 14.79 GiB of weights (<https://github.com/NVIDIA/TensorRT-LLM/issues/14942>).
#[test]
fn the_largest_table_is_on_a_device_twice_while_it_is_loaded() {
    let command = "trtllm-serve serve google/gemma-4-E4B-it --max_batch_size 16 --max_num_tokens 500 \
                   --max_seq_len 4096";
    let small = of_command("1xl4", command);
    assert!(has_reason(&small, "a table of embeddings of 5.25 GiB"), "{:?}", small.reasons);
    let large = of_command("1xl40s", command);
    assert!(large.starts, "{:?}", large.reasons);
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
