//! Names that people use for models lead to one file each.

use mantile::store::catalog::Catalog;

use super::*;

/// What people write, and the file it means.
const USUAL: &[(&str, &str)] = &[
    ("llama-3.2-3b", "meta-llama--Llama-3.2-3B-Instruct"),
    ("llama-3.1-70b", "meta-llama--Llama-3.3-70B-Instruct"),
    ("llama-4-scout", "meta-llama--Llama-4-Scout-17B-16E-Instruct"),
    ("llama-4-maverick", "meta-llama--Llama-4-Maverick-17B-128E-Instruct"),
    ("llama-2-7b", "meta-llama--Llama-2-7b-hf"),
    ("qwen2.5-7b", "Qwen--Qwen2.5-7B"),
    ("qwen2.5-72b", "Qwen--Qwen2.5-72B"),
    ("qwen2.5-vl-7b", "Qwen--Qwen2.5-VL-7B-Instruct"),
    ("qwen3-coder-next", "Qwen--Qwen3-Coder-Next"),
    ("qwen3-vl-30b-a3b", "Qwen--Qwen3-VL-30B-A3B-Instruct"),
    ("qwen3.6-35b-a3b", "Qwen--Qwen3.5-35B-A3B"),
    ("gemma-3-27b", "google--gemma-3-27b-it"),
    ("gemma-3n-e4b", "google--gemma-3n-E4B-it"),
    ("gemma-4-26b-a4b", "google--gemma-4-26B-A4B"),
    ("phi-4-mini", "microsoft--Phi-4-mini-instruct"),
    ("mistral-7b", "mistralai--Mistral-7B-v0.3"),
    ("mistral-nemo", "mistralai--Mistral-Nemo-Instruct-2407"),
    ("mistral-small-3.1", "mistralai--Mistral-Small-3.1-24B-Instruct-2503"),
    ("mixtral-8x22b", "mistralai--Mixtral-8x22B-Instruct-v0.1"),
    ("deepseek-v2-lite", "deepseek-ai--DeepSeek-V2-Lite"),
    ("deepseek-v4-pro", "deepseek-ai--DeepSeek-V4-Pro"),
    ("kimi-k2", "moonshotai--Kimi-K2-Instruct"),
    ("kimi-k2.5", "moonshotai--Kimi-K2.5"),
    ("glm-4.5-air", "zai-org--GLM-4.5-Air"),
    ("glm-5.1", "zai-org--GLM-5"),
    ("minimax-m2.7", "MiniMaxAI--MiniMax-M2.7"),
    ("nemotron-3-super", "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-BF16"),
    ("nemotron-3-nano", "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
    ("command-r", "CohereLabs--c4ai-command-r-v01"),
    ("command-a", "CohereLabs--c4ai-command-a-03-2025"),
    ("granite-4.0-h-tiny", "ibm-granite--granite-4.0-h-tiny"),
    ("falcon-h1-7b-instruct", "tiiuae--Falcon-H1-7B-Instruct"),
    ("olmo-2-0325-32b", "allenai--OLMo-2-0325-32B"),
    ("smollm3", "HuggingFaceTB--SmolLM3-3B"),
    ("exaone-4.0-32b", "LGAI-EXAONE--EXAONE-4.0-32B"),
    ("seed-oss", "ByteDance-Seed--Seed-OSS-36B-Instruct"),
    ("ernie-4.5-21b-a3b", "baidu--ERNIE-4.5-21B-A3B-PT"),
    ("hunyuan-a13b", "tencent--Hunyuan-A13B-Instruct"),
    ("starcoder2-15b", "bigcode--starcoder2-15b"),
    ("gpt2-xl", "openai-community--gpt2-xl"),
];

fn meant(catalog: &Catalog, name: &str) -> String {
    catalog.known_model(name).unwrap_or_else(|miss| panic!("{name}: {miss:?}")).id
}

#[test]
fn usual_names_mean_one_model() {
    let catalog = Catalog::default();
    for (name, stem) in USUAL {
        assert_eq!(meant(&catalog, name), *stem, "{name}");
    }
}

#[test]
fn every_name_means_its_own_model_with_or_without_the_organisation() {
    let catalog = Catalog::default();
    for (stem, model) in shipped() {
        let published = model.published.iter().map(|published| published.id.clone());
        for name in [model.name.clone()].into_iter().chain(model.aliases.clone()) {
            let short = name.rsplit('/').next().unwrap_or_default().to_lowercase();
            assert_eq!(meant(&catalog, &short), stem, "{short}");
            assert_eq!(meant(&catalog, &name), stem, "{name}");
        }
        for id in published {
            assert_eq!(meant(&catalog, &id), stem, "{id}");
        }
    }
}
