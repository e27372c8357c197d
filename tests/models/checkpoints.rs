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
