//! Checkpoints to the byte: files' sizes and numbers of scales as published.

use mantile::graph::checkpoint::Checkpoint;

use super::*;

fn checkpoint(stem: &str, config: &ModelConfig) -> Checkpoint {
    Checkpoint::of(&built(stem, config), config).unwrap_or_else(|| panic!("{stem}: its layout is not known"))
}

/// Bytes of all tensors of mxfp4 checkpoints; model cards round them to 60.8 and 12.8 GiB.
const BYTES: &[(&str, u64)] =
    &[("openai--gpt-oss-120b", 65_248_815_744), ("openai--gpt-oss-20b", 13_761_264_768)];

#[test]
fn mxfp4_checkpoints_have_their_published_sizes() {
    let shipped = shipped();
    for (stem, bytes) in BYTES {
        let model = &shipped.iter().find(|(name, _)| name == stem).unwrap().1;
        assert_eq!(checkpoint(stem, &model.model_config().unwrap()).bytes, *bytes, "{stem}");
    }
}

/// What the tensor listing of DeepSeek-V3's repository counts by dtype.
#[test]
fn fp8_blocks_end_with_a_smaller_one_and_cover_what_ships_for_multi_token_prediction() {
    let shipped = shipped();
    let model = &shipped.iter().find(|(name, _)| name == "deepseek-ai--DeepSeek-V3").unwrap().1;
    let found = checkpoint("DeepSeek-V3", &model.model_config().unwrap());
    assert_eq!(found.scales, 41_540_496);
    assert_eq!(found.scale_bytes, 4 * 41_540_496);
    assert_eq!(found.quantised + found.native + found.scales, 684_531_386_000);
}

/// Published totals less what the unquantized model counts, by the collection's configuration.
const SCALES: &[(&str, u64)] = &[
    ("zai-org__GLM-5-FP8", 45_885_024),
    ("Qwen__Qwen3-8B-FP8", 423_936),
    ("Qwen__Qwen3-32B-FP8", 1_904_640),
    ("Qwen__Qwen3-30B-A3B-FP8", 1_824_768),
    ("Qwen__Qwen3-235B-A22B-FP8", 14_269_952),
];

#[test]
fn scales_are_as_many_as_published() {
    let Some(folder) = facts::collection() else { return };
    for (stem, scales) in SCALES {
        let text = fs::read_to_string(folder.join("configs").join(format!("{stem}.json"))).unwrap();
        let config = ModelConfig::parse(&text).unwrap();
        assert_eq!(checkpoint(stem, &config).scales, *scales, "{stem}");
    }
}

/// The layout of a shipped model's checkpoint.
fn layout(shipped: &[(String, ModelFile)], stem: &str) -> mantile::spec::precision::CheckpointLayout {
    let model = &shipped.iter().find(|(name, _)| name == stem).unwrap().1;
    let config = model.model_config().unwrap();
    Checkpoint::layout(&built(stem, &config), &config).unwrap_or_else(|| panic!("{stem}: no layout"))
}

/// Kimi-K2.5's int4 in groups of 32 is for routed experts and the first layer's network; DeepSeek-V4's experts are in
/// fp4 and the rest in fp8.
#[test]
fn a_layout_says_which_roles_are_in_which_format_and_what_they_take() {
    let shipped = shipped();
    let kimi = layout(&shipped, "moonshotai--Kimi-K2.5");
    let of = |role: &str| kimi.roles.iter().find(|(name, _)| name == role).map(|(_, quantised)| *quantised);
    assert_eq!(["expert", "attention", "shared_expert"].map(of), [Some(true), Some(false), Some(false)]);
    // 4 bits and an fp16 scale for 32 elements.
    assert_eq!(kimi.bytes * 16, kimi.elements * 9);
    for stem in ["deepseek-ai--DeepSeek-V4-Flash", "deepseek-ai--DeepSeek-V4-Pro"] {
        let mixed = layout(&shipped, stem);
        assert_eq!(mixed.formats, ["mxfp4", "fp8-block"], "{stem}");
        let bits = 8.0 * mixed.bytes as f64 / mixed.elements as f64;
        assert!(bits > 4.25 && bits < 5.0, "{stem}: {bits}");
    }
}

#[test]
fn a_layout_is_known_of_every_quantized_checkpoint_that_is_shipped() {
    for (stem, model) in shipped() {
        let config = model.model_config().unwrap();
        if config.quantization.is_some() {
            let layout = Checkpoint::layout(&built(&stem, &config), &config);
            assert!(layout.is_some_and(|layout| layout.elements > 0), "{stem}");
        }
    }
}
