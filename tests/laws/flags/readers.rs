//! Readers of launch commands and of GGUF headers take any text and any bytes.

use fastrand::Rng;
use mantile::launch::settings_file::NamedFiles;
use mantile::request::command::{GivenCommand, of_command};
use mantile::spec::option_table::{OptionKind, OptionTable};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;

use crate::draw;
use crate::gguf::{MODELS, converted};

const VALUES: [&str; 16] = [
    "1",
    "2",
    "4",
    "8",
    "0",
    "-1",
    "1e309",
    "8k",
    "0.9",
    "auto",
    "fp8",
    "",
    "{\"a\": 1}",
    "$(x)",
    "'",
    "18446744073709551616",
];

/// A command of a runtime from its own table of options.
fn command(random: &mut Rng, table: &OptionTable) -> String {
    let mut words = table.program.clone();
    words.extend(table.positional.iter().map(|_| "Qwen/Qwen3-0.6B".to_owned()));
    words.push("--model Qwen/Qwen3-0.6B".to_owned());
    for _ in 0..random.usize(..8) {
        let row = random.choice(&table.options).unwrap();
        let flag = random.choice(&row.flags).unwrap();
        let choices = row.value.choices.iter().flatten().map(mantile::spec::option_table::text);
        let choices: Vec<String> = choices.chain(VALUES.map(str::to_owned)).collect();
        let value = random.choice(&choices).unwrap();
        match (row.value.kind, random.u32(..3)) {
            (OptionKind::Switch, 1..) => words.push(flag.clone()),
            (_, 0) => words.push(format!("{flag}={value}")),
            (_, 1) => words.push(format!("{flag} \"{value}\"")),
            _ => words.push(format!("{flag} {value}")),
        }
    }
    if random.u32(..6) == 0 {
        words.insert(random.usize(..words.len()), random.choice(&VALUES).unwrap().to_string());
    }
    words.join(" ")
}

#[test]
fn any_launch_command_is_an_estimate_or_an_error() {
    let catalog = Catalog::default();
    let ids = catalog.entries(CatalogKind::Options).into_keys();
    let tables: Vec<OptionTable> = ids.map(|id| catalog.load(&id).unwrap()).collect();
    let given = Scenario { hardware: Some("2xl40s".into()), ..Scenario::default() };
    let mut random = Rng::with_seed(17);
    let (cases, mut read) = (draw::cases(40), 0);
    for _ in 0..cases {
        let table = random.choice(&tables).unwrap();
        let text = command(&mut random, table);
        match of_command(&catalog, &GivenCommand::of(&text, &NamedFiles::new()), &given) {
            Ok(_) => read += 1,
            Err(fault) => assert!(!fault.fix.is_empty(), "{text}: {fault}"),
        }
    }
    println!("{cases} launch commands, {read} read");
    assert!(read > 0, "no command was read");
}

#[test]
fn any_numbers_of_a_gguf_header_are_a_model_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    let catalog = Catalog::default();
    let mut random = Rng::with_seed(19);
    let edges = [0, 1, 2, 3, 7, 1 << 16, 1 << 31, u64::from(u32::MAX), 1 << 32, 1 << 40, 1 << 62, u64::MAX];
    let (cases, mut read) = (draw::cases(60), 0);
    for _ in 0..cases {
        let (model, architecture) = *random.choice(&MODELS).unwrap();
        let kind = [15, 7, 1, 99][random.usize(..4)];
        let mut writer = converted(model, architecture, kind);
        for _ in 0..random.usize(..4) {
            let at = random.usize(..writer.tensors.len());
            let dims = &mut writer.tensors[at].1;
            let dim = random.usize(..dims.len());
            dims[dim] = *random.choice(&edges).unwrap();
        }
        let keys = [
            "block_count",
            "embedding_length",
            "feed_forward_length",
            "attention.head_count",
            "attention.head_count_kv",
            "attention.key_length",
            "context_length",
            "expert_count",
            "expert_used_count",
            "expert_feed_forward_length",
        ];
        for _ in 0..random.usize(..3) {
            let key = format!("{architecture}.{}", random.choice(&keys).unwrap());
            writer.whole(&key, *random.choice(&edges).unwrap());
        }
        std::fs::write(&path, writer.bytes()).unwrap();
        match catalog.built(path.to_str().unwrap()) {
            Ok(_) => read += 1,
            Err(fault) => assert!(!fault.fix.is_empty(), "{fault}"),
        }
    }
    println!("{cases} headers, {read} read");
}
