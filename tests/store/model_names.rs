//! Names of models as people write them: those of public files, and every composition of base and format.

use std::collections::BTreeMap;

use mantile::spec::model::file::ModelFile;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use mantile::store::model::ResolvedModel;
use serde::Deserialize;
use serde_json::Value;

/// A line of `tests/data/model_names.csv`: a name that a public file has, and what it means by the publishers' rules.
#[derive(Debug, Deserialize)]
struct NamedLine {
    name: String,
    /// The model, or another name of its shapes in the catalogue; empty where the name is of no plain model.
    base: String,
    /// Its format; `own` is that of the checkpoint.
    format: String,
    source: String,
}

fn lines() -> Vec<NamedLine> {
    let text = include_str!("../data/model_names.csv");
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|line| line.expect("a line")).collect()
}

/// The format that a resolved name states; `own` where it is that of its configuration.
fn format(model: &ResolvedModel) -> String {
    model.named.as_ref().map_or("own".to_owned(), |named| named.weight_format.clone())
}

/// The format of a line, where it is not the configuration's own.
fn stated(line: &str, model: &ResolvedModel) -> String {
    if model.config.weight_format() == Some(line) { "own".to_owned() } else { line.to_owned() }
}

/// No name of the list is read as another model or another format, and what is not read is refused.
#[test]
fn published_names_are_read_as_their_publishers_mean_them() {
    let catalog = Catalog::default();
    let (mut read, mut known, mut wrong) = (0, 0, Vec::new());
    let plain = lines().iter().filter(|line| !line.base.is_empty()).count();
    for line in lines() {
        assert!(line.source.contains('/'), "{line:?}");
        let base = (!line.base.is_empty()).then(|| catalog.model(&line.base).ok()).flatten();
        match (catalog.model(&line.name), base.filter(|base| base.read_as.is_none())) {
            (Ok(model), Some(base)) => {
                known += 1;
                // A published checkpoint may have several formats, or padded sides.
                let own = model.named.as_ref().is_some_and(|named| !named.config.is_empty());
                let same =
                    (own || model.config == base.config) && format(&model) == stated(&line.format, &model);
                if same {
                    read += 1
                } else {
                    wrong.push(format!("{line:?}: {} {}", model.name, format(&model)))
                }
            }
            (Ok(model), None) => wrong.push(format!("{line:?}: {} {}", model.name, format(&model))),
            (Err(_), Some(_)) => known += 1,
            (Err(_), None) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Most of all names of language models, and nearly all whose model the catalogue has.
    assert!(read * 100 >= plain * 92 && read * 100 >= known * 95, "{read} of {known} of {plain}");
}

/// An alias has the context of its own repository, not that of the file.
#[test]
fn names_have_the_contexts_of_their_repositories() {
    let catalog = Catalog::default();
    let mut reader = csv::Reader::from_reader(include_str!("../data/contexts.csv").as_bytes());
    let rows: Vec<(String, u64)> = reader.deserialize().map(|row| row.expect("a row")).collect();
    assert!(rows.len() > 450, "{}", rows.len());
    for (name, context) in rows {
        let model = catalog.model(&name).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(model.config.max_context, Some(context), "{name}");
    }
}

/// Every name of the catalogue is its own.
#[test]
fn each_name_of_the_catalogue_means_its_file() {
    let catalog = Catalog::default();
    for entry in catalog.entries(CatalogKind::Models).into_values() {
        let file = ModelFile::parse(&entry.text().unwrap()).unwrap();
        let config = file.model_config().unwrap();
        // A tag of Ollama states a format too.
        for name in [&file.name].into_iter().chain(&file.aliases).filter(|name| !name.contains(':')) {
            let model = catalog.model(name).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            assert_eq!(model.config.as_ref(), &config, "{name}");
            assert!(model.named.is_none() && model.read_as.is_none(), "{name}");
        }
        for published in &file.published {
            let model = catalog.model(&published.id).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(model.named.as_ref(), Some(published));
        }
    }
}

/// A base and the end of a name that states a format are that base in that format, whatever the base and the format; and
/// the answer says so.
#[test]
fn a_base_and_a_format_compose() {
    let catalog = Catalog::default();
    let mut ends: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, entry) in catalog.entries(CatalogKind::Formats) {
        let file: Value = serde_json::from_str(&entry.text().unwrap()).unwrap();
        let plain = file["suffixes"].as_array().into_iter().flatten().filter(|one| one["owners"].is_null());
        let names = plain.flat_map(|one| one["names"].as_array().unwrap());
        let names: Vec<String> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
        let other = |end: &String| ends.values().flatten().any(|known: &String| known == end);
        assert!(!names.iter().any(other), "{id}: {names:?}");
        ends.insert(id, names);
    }
    assert!(ends.values().filter(|names| !names.is_empty()).count() > 40);
    // Every third model, and another word from model to model.
    for (at, entry) in catalog.entries(CatalogKind::Models).into_values().step_by(3).enumerate() {
        let file = ModelFile::parse(&entry.text().unwrap()).unwrap();
        let config = file.model_config().unwrap();
        let short = file.name.rsplit('/').next().unwrap();
        // A name that states a format itself takes no other.
        let short = short.trim_end_matches("-BF16").trim_end_matches("-bf16");
        // Every end of every format on some models, and one of some formats on each, other ones from model to model.
        let whole = at % 120 == 0;
        for (_, (id, names)) in ends.iter().enumerate().filter(|(turn, _)| whole || (at + turn) % 24 == 0) {
            for end in names.iter().take(if whole { usize::MAX } else { 1 }) {
                for written in [format!("quants/{short}-{end}"), format!("{short}-{}", end.to_uppercase())] {
                    let maker = !written.starts_with("quants/");
                    if maker && catalog.model(&written).is_ok_and(|model| model.read_as.is_none()) {
                        continue;
                    }
                    let model = catalog.model(&written).unwrap_or_else(|fault| panic!("{written}: {fault}"));
                    assert_eq!(model.config.as_ref(), &config, "{written}");
                    let read_as = model.read_as.as_deref().unwrap_or_else(|| panic!("{written}: not said"));
                    if !maker {
                        assert_eq!(format(&model), stated(id, &model), "{written}");
                        assert!(format(&model) == "own" || read_as.contains(id.as_str()), "{read_as}");
                    }
                }
            }
        }
    }
}

/// What only contains a base is another model.
#[test]
fn a_name_that_contains_a_base_is_not_that_base() {
    let catalog = Catalog::default();
    let words = ["abliterated", "Uncensored", "Distill-Qwen-1.7B", "Spark", "Eagle3", "speculator", "DFlash"];
    for (at, entry) in catalog.entries(CatalogKind::Models).into_values().enumerate() {
        let file = ModelFile::parse(&entry.text().unwrap()).unwrap();
        let word = words[at % words.len()];
        for written in [format!("{}-{word}", file.name), format!("{}-{word}-FP8", file.name)] {
            assert!(catalog.model(&written).is_err(), "{written}");
        }
    }
    for written in
        ["phi-5", "microsoft/phi-5", "DeepSeek-V5", "deepseek-r1:latest", "moonshotai/Kimi-K4-Thinking"]
    {
        let fault = catalog.model(written).unwrap_err();
        assert_eq!(fault.key, "model", "{written}: {fault}");
    }
    let fault = catalog.model("unsloth/Llama-3.1-8B-Instruct-bnb-4bit").unwrap_err();
    assert!(fault.fix.contains("--weight-format"), "{fault}");
}

/// Commands for other machines name files and folders that are not on this one.
#[test]
fn absent_files_are_read_by_their_names() {
    let catalog = Catalog::default();
    for (written, base, format) in [
        ("/models/Qwen3.8-27B-IQ4_XS.gguf", "Qwen/Qwen3.8-27B", "gguf-iq4_xs"),
        ("Llama-3.3-70B-Instruct-Q4_K_M-00001-of-00003.gguf", "Llama-3.3-70B-Instruct", "gguf-q4_k_m"),
        ("/data/Qwen/Qwen3-32B-FP8", "Qwen/Qwen3-32B", "fp8-block"),
        ("/hub/models--Qwen--Qwen3-32B/snapshots/0a1b2c", "Qwen/Qwen3-32B", "bf16"),
    ] {
        let model = catalog.model(written).unwrap_or_else(|fault| panic!("{written}: {fault}"));
        let base = catalog.model(base).unwrap();
        assert_eq!(model.config, base.config, "{written}");
        let own = model.config.weight_format().unwrap_or_default();
        assert_eq!(model.named.map_or(own.to_owned(), |named| named.weight_format), format, "{written}");
    }
    assert!(catalog.model("/models/unknown.gguf").unwrap_err().file.contains("unknown.gguf"));
}
