//! A model of one's own: the text of its Hugging Face config.json.

#![allow(clippy::print_stdout)]

use mantile::prelude::*;

const CONFIG: &str = r#"{
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192,
    "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": true, "torch_dtype": "bfloat16"
}"#;

fn main() -> Result<(), Error> {
    let catalog = Catalog::default().with_entry(CatalogKind::Models, "my-model", CONFIG);
    let scenario = Scenario { concurrency: Some(4), ..Scenario::of("my-model", "1xl40s") };
    let report = estimate(&catalog, &EstimateRequest::of(scenario), &UNCONTROLLED)?;
    println!("{:.1} tok/s", report.candidate.figure(Metric::OutputTokS).unwrap_or(f64::NAN));
    Ok(())
}
