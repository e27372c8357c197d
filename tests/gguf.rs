//! GGUF files as models: headers written here for shipped models are read back to the same model.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mantile::graph::inspect::Inspection;
use mantile::graph::model::ModelGraph;
use mantile::report::result::EstimateResult;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::spec::model::ModelConfig;
use mantile::spec::model::gguf::{GgufHeader, GgufValue};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A header under construction, in the bytes of the format.
pub struct Writer {
    entries: Vec<u8>,
    count: u64,
    pub tensors: Vec<(String, Vec<u64>)>,
    /// `enum ggml_type` of the tensors with two sides and more; the others are of 32 bits.
    kind: u32,
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// Type and bytes of a value that is no list.
fn scalar(value: &Value) -> (u32, Vec<u8>) {
    match value {
        Value::Bool(flag) => (7, vec![u8::from(*flag)]),
        Value::String(words) => {
            let mut bytes = vec![];
            text(&mut bytes, words);
            (8, bytes)
        }
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) if number <= u64::from(u32::MAX) => (4, (number as u32).to_le_bytes().into()),
            (_, Some(number)) => (11, number.to_le_bytes().into()),
            _ => (6, (number.as_f64().unwrap() as f32).to_le_bytes().into()),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => (0, vec![]),
    }
}

impl Writer {
    fn new(architecture: &str) -> Writer {
        let mut writer = Writer { entries: vec![], count: 0, tensors: vec![], kind: 1 };
        writer.entry("general.architecture", 8, |bytes| text(bytes, architecture));
        writer.entry("general.alignment", 4, |bytes| bytes.extend(32u32.to_le_bytes()));
        writer.entry("general.score", 6, |bytes| bytes.extend(0.5f32.to_le_bytes()));
        writer.entry("tokenizer.ggml.tokens", 9, |bytes| {
            bytes.extend(8u32.to_le_bytes());
            bytes.extend(3u64.to_le_bytes());
            ["<s>", "</s>", "ß"].iter().for_each(|token| text(bytes, token));
        });
        writer
    }

    fn entry(&mut self, key: &str, kind: u32, value: impl FnOnce(&mut Vec<u8>)) {
        text(&mut self.entries, key);
        self.entries.extend(kind.to_le_bytes());
        value(&mut self.entries);
        self.count += 1;
    }

    pub fn whole(&mut self, key: &str, number: u64) {
        self.entry(key, 4, |bytes| bytes.extend((number as u32).to_le_bytes()));
    }

    /// A value as the converter writes it: texts, flags, numbers, and lists of one of them.
    fn value(&mut self, key: &str, value: &Value) {
        let (kind, bytes) = scalar(value);
        match value.as_array() {
            Some(list) => self.entry(key, 9, |bytes| {
                bytes.extend(list.first().map_or(4, |first| scalar(first).0).to_le_bytes());
                bytes.extend((list.len() as u64).to_le_bytes());
                list.iter().for_each(|one| bytes.extend(scalar(one).1));
            }),
            None => self.entry(key, kind, |written| written.extend(bytes)),
        }
    }

    fn tensor(&mut self, name: &str, dims: &[u64]) {
        self.tensors.push((name.to_owned(), dims.to_vec()));
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(&self.entries);
        for (name, dims) in &self.tensors {
            text(&mut bytes, name);
            bytes.extend((dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|dim| bytes.extend(dim.to_le_bytes()));
            bytes.extend(if dims.len() > 1 { self.kind } else { 0 }.to_le_bytes());
            bytes.extend([0; 8]);
        }
        // Padding and data, which nobody reads.
        bytes.extend([0; 64]);
        bytes
    }
}

fn config(model: &str) -> Map<String, Value> {
    let file = format!("models/{model}.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    file["config"].as_object().unwrap().clone()
}

/// The header that llama.cpp's conversion writes for a dense or expert model of these families.
pub fn converted(model: &str, architecture: &str, file_type: impl Into<Option<u64>>) -> Writer {
    let config = config(model);
    let get = |key: &str| config.get(key).and_then(Value::as_u64);
    let number = |key: &str| get(key).unwrap_or_else(|| panic!("{model}: {key}"));
    let (hidden, layers, heads) =
        (number("hidden_size"), number("num_hidden_layers"), number("num_attention_heads"));
    let kv_heads = get("num_key_value_heads").unwrap_or(heads);
    let head = get("head_dim").unwrap_or(hidden / heads);
    let experts = get("num_experts").or(get("num_local_experts"));
    let inner = get("moe_intermediate_size").unwrap_or(number("intermediate_size"));
    let mut writer = Writer::new(architecture);
    let key = |suffix: &str| format!("{architecture}.{suffix}");
    if let Some(file_type) = file_type.into() {
        writer.whole("general.file_type", file_type);
    }
    writer.whole(&key("block_count"), layers);
    writer.whole(&key("embedding_length"), hidden);
    writer.whole(&key("feed_forward_length"), number("intermediate_size"));
    writer.whole(&key("attention.head_count"), heads);
    writer.whole(&key("attention.head_count_kv"), kv_heads);
    writer.whole(&key("attention.key_length"), head);
    writer.whole(&key("context_length"), number("max_position_embeddings"));
    if let Some(experts) = experts {
        writer.whole(&key("expert_count"), experts);
        writer.whole(&key("expert_used_count"), number("num_experts_per_tok"));
        writer.whole(&key("expert_feed_forward_length"), inner);
    }
    let vocab = number("vocab_size");
    writer.tensor("token_embd.weight", &[hidden, vocab]);
    writer.tensor("output_norm.weight", &[hidden]);
    if config["tie_word_embeddings"] == Value::Bool(false) {
        writer.tensor("output.weight", &[hidden, vocab]);
    }
    writer.tensor("rope_freqs.weight", &[head / 2]);
    for layer in 0..layers {
        let mut tensor = |name: &str, dims: &[u64]| writer.tensor(&format!("blk.{layer}.{name}"), dims);
        tensor("attn_norm.weight", &[hidden]);
        tensor("ffn_norm.weight", &[hidden]);
        for (name, width) in
            [("attn_q", heads * head), ("attn_k", kv_heads * head), ("attn_v", kv_heads * head)]
        {
            tensor(&format!("{name}.weight"), &[hidden, width]);
            if architecture == "qwen2" {
                tensor(&format!("{name}.bias"), &[width]);
            }
        }
        tensor("attn_output.weight", &[heads * head, hidden]);
        if architecture.starts_with("qwen3") {
            tensor("attn_q_norm.weight", &[head]);
            tensor("attn_k_norm.weight", &[head]);
        }
        match experts {
            Some(experts) => {
                tensor("ffn_gate_inp.weight", &[hidden, experts]);
                tensor("ffn_gate_exps.weight", &[hidden, inner, experts]);
                tensor("ffn_up_exps.weight", &[hidden, inner, experts]);
                tensor("ffn_down_exps.weight", &[inner, hidden, experts]);
            }
            None => {
                tensor("ffn_gate.weight", &[hidden, inner]);
                tensor("ffn_up.weight", &[hidden, inner]);
                tensor("ffn_down.weight", &[inner, hidden]);
            }
        }
    }
    writer
}

fn filed(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn answer(model: &str, weight_format: Option<&str>) -> EstimateResult {
    let scenario = Scenario {
        model: Some(model.into()),
        hardware: Some("rtx-4090-x2".into()),
        weight_format: weight_format.map(str::to_owned),
        runtime: Some("llama.cpp".into()),
        ..Scenario::default()
    };
    estimate(&Catalog::default(), &EstimateRequest::of(scenario), &UNCONTROLLED).unwrap()
}

/// Architectures of the table.
fn known() -> BTreeSet<String> {
    let tables: Value = serde_json::from_str(include_str!("../src/store/gguf.json")).unwrap();
    let known = tables["architectures"].as_array().unwrap();
    known.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

pub const MODELS: [(&str, &str); 6] = [
    ("TinyLlama--TinyLlama-1.1B-Chat-v1.0", "llama"),
    ("meta-llama--Llama-3.1-8B", "llama"),
    ("mistralai--Mixtral-8x7B-v0.1", "llama"),
    ("Qwen--Qwen2.5-1.5B-Instruct", "qwen2"),
    ("Qwen--Qwen3-0.6B", "qwen3"),
    ("Qwen--Qwen3-30B-A3B", "qwen3moe"),
];

/// The model of a GGUF file is that of its config.json, in its own format.
#[test]
fn a_converted_model_is_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    for (model, architecture) in MODELS {
        let path =
            filed(folder.path(), &format!("{model}.gguf"), &converted(model, architecture, 15).bytes());
        let path = path.to_str().unwrap();
        let (_, own) = Catalog::default().built(&model.replacen("--", "/", 1)).unwrap();
        let (found, graph): (_, ModelGraph) = Catalog::default().built(path).unwrap();
        assert_eq!(graph.parameters(), own.parameters(), "{model}");
        assert_eq!(found.named.unwrap().weight_format, "gguf-q4_k_m");
        let (a, b) = (answer(path, None), answer(&model.replacen("--", "/", 1), Some("gguf-q4_k_m")));
        assert_eq!(a.candidate.weight_format, "gguf-q4_k_m", "{model}");
        let metrics = |one: &EstimateResult| serde_json::to_string(&one.candidate.metrics).unwrap();
        assert_eq!(metrics(&a), metrics(&b), "{model}");
    }
}

/// A header that llama.cpp's converter wrote, and the configuration that it comes from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConvertedHeader {
    #[serde(rename = "type")]
    model_type: String,
    #[serde(rename = "weights")]
    _weights: String,
    config: Value,
    metadata: Map<String, Value>,
    tensors: Vec<(String, Vec<u64>)>,
}

/// A model in numbers: those of all of it, then window, KV cache, state and parameters of every layer.
fn numbers(graph: &ModelGraph) -> (Value, Vec<(u32, Value)>) {
    let found = Inspection::of(graph);
    let whole = (
        found.layers,
        found.tied,
        found.parameters,
        found.kv_bytes_per_token,
        found.kv_bytes_per_token_windowed,
        found.state_bytes_per_sequence,
    );
    let mut layers: Vec<(u32, Value)> = vec![];
    for block in &found.blocks {
        let of = (block.window, block.kv_bytes_per_token, block.state_bytes_per_sequence, block.parameters);
        layers.extend(block.layers.iter().map(|layer| (*layer, serde_json::json!(of))));
    }
    layers.sort_by_key(|(layer, _)| *layer);
    (serde_json::json!(whole), layers)
}

/// A header that the converter writes is the model of its config.json, whatever its architecture.
#[test]
fn a_header_of_the_converter_is_the_model_of_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let rows = include_str!("data/gguf.jsonl").lines();
    let rows: Vec<ConvertedHeader> = rows.map(|row| serde_json::from_str(row).unwrap()).collect();
    let mut faults = vec![];
    let mut architectures = BTreeSet::new();
    for row in &rows {
        let architecture = row.metadata["general.architecture"].as_str().unwrap();
        architectures.insert(architecture.to_owned());
        let mut writer = Writer::new(architecture);
        row.metadata.iter().for_each(|(key, value)| writer.value(key, value));
        row.tensors.iter().for_each(|(name, dims)| writer.tensor(name, dims));
        let path = filed(folder.path(), "one.gguf", &writer.bytes());
        let found = Catalog::default().built(path.to_str().unwrap());
        let own = ModelGraph::build(&ModelConfig::parse(&row.config.to_string()).unwrap()).unwrap();
        match found {
            Ok((_, graph)) if numbers(&graph) == numbers(&own) => {}
            Ok((_, graph)) => {
                let (found, own) = (numbers(&graph), numbers(&own));
                faults.push(format!("{}: {found:?}, expected {own:?}", row.model_type));
            }
            Err(error) => faults.push(format!("{}: {error}", row.model_type)),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(architectures, known(), "each architecture has a header, and no other");
}

#[test]
fn the_document_names_every_architecture() {
    let document = include_str!("../docs/catalogue.md");
    let missing: Vec<String> =
        known().into_iter().filter(|name| !document.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/catalogue.md does not name {missing:?}");
    assert!(document.contains(&format!("one of these {}", known().len())));
}

/// Parts of a file that is split are read together.
#[test]
fn a_split_file_is_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let whole = converted("Qwen--Qwen3-0.6B", "qwen3", 7);
    let mut first = Writer { tensors: whole.tensors[..40].to_vec(), ..whole };
    let mut second = Writer::new("qwen3");
    second.tensors = converted("Qwen--Qwen3-0.6B", "qwen3", 7).tensors[40..].to_vec();
    for writer in [&mut first, &mut second] {
        writer.entry("split.count", 2, |bytes| bytes.extend(2u16.to_le_bytes()));
    }
    let path = filed(folder.path(), "m-00001-of-00002.gguf", &first.bytes());
    let fault = Catalog::default().model(path.to_str().unwrap()).unwrap_err();
    assert!(fault.file.contains("m-00002-of-00002.gguf"), "{fault}");
    filed(folder.path(), "m-00002-of-00002.gguf", &second.bytes());
    let (_, graph) = Catalog::default().built(path.to_str().unwrap()).unwrap();
    let (_, own) = Catalog::default().built("Qwen/Qwen3-0.6B").unwrap();
    assert_eq!(graph.parameters(), own.parameters());
    let other = folder.path().join("m-00002-of-00002.gguf");
    assert_eq!(Catalog::default().model(other.to_str().unwrap()).unwrap_err().key, "split.count");
}

#[test]
fn what_is_not_understood_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |writer: &Writer| {
        let path = filed(folder.path(), "one.gguf", &writer.bytes());
        Catalog::default().model(path.to_str().unwrap()).unwrap_err()
    };
    let base = || converted("Qwen--Qwen3-0.6B", "qwen3", 15);
    let fault = refused(&Writer::new("wavtokenizer-dec"));
    assert_eq!((fault.key.as_str(), fault.found.as_str()), ("general.architecture", "`wavtokenizer-dec`"));
    let mut more = base();
    more.tensor("blk.0.attn_q.bias", &[2048]);
    assert_eq!(refused(&more).key, "tensors");
    let unknown = converted("Qwen--Qwen3-0.6B", "qwen3", 77);
    assert_eq!(refused(&unknown).key, "general.file_type");
    let mut none = base();
    none.tensors.retain(|(name, _)| name != "token_embd.weight");
    assert_eq!(refused(&none).key, "token_embd.weight");
}

/// A converter that writes no file type leaves the types of the tensors, and norms of 32 bits are in every file.
#[test]
fn a_header_without_a_file_type_has_the_format_of_its_matrices() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, format) in
        [(0, Some("fp32")), (1, Some("fp16")), (12, Some("gguf-q4_k_m")), (30, Some("bf16")), (99, None)]
    {
        let mut writer = converted("Qwen--Qwen3-0.6B", "qwen3", None);
        writer.kind = kind;
        let path = filed(folder.path(), "one.gguf", &writer.bytes());
        match (Catalog::default().built(path.to_str().unwrap()), format) {
            (Ok((found, _)), Some(format)) => assert_eq!(found.named.unwrap().weight_format, format),
            (Err(fault), None) => {
                assert_eq!(fault.found, format!("no file type, and tensors of type {kind}"))
            }
            (found, _) => panic!("type {kind}: {found:?}"),
        }
    }
}

/// Lists of flags and of fractions are read whole: what follows them is found.
#[test]
fn a_list_of_any_numbers_is_read_to_its_end() {
    let mut writer = Writer::new("qwen3");
    writer.value("a.flags", &serde_json::json!([true, false, true]));
    writer.value("a.fractions", &serde_json::json!([0.5, 1.5]));
    writer.value("a.negative", &serde_json::json!([-1, -2]));
    writer.whole("a.last", 7);
    let header = GgufHeader::read(writer.bytes().as_slice()).unwrap();
    assert_eq!(header.metadata["a.flags"], GgufValue::Wholes(vec![1, 0, 1]));
    assert_eq!(header.metadata["a.fractions"], GgufValue::List(2));
    assert_eq!(header.metadata["a.negative"], GgufValue::List(2));
    assert_eq!(header.whole("a.last"), Some(7));
}

proptest! {
    /// No bytes bring the reader down, or make it read without end.
    #[test]
    fn any_bytes_are_read_or_refused(
        cut in any::<prop::sample::Index>(),
        spoilt in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = converted("Qwen--Qwen3-0.6B", "qwen3", 15).bytes();
        for (at, byte) in spoilt {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let _ = GgufHeader::read(bytes.as_slice());
    }
}
