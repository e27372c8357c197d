//! Selects the builder for a `model_type`.
//!
//! Adding an architecture: a file in `arch/` and its line in `ARCHITECTURES`.

pub mod afmoe;
pub mod bailing_hybrid;
pub mod bailing_moe;
pub mod bert;
pub mod bloom;
pub mod class_keys;
pub mod cohere;
pub mod deepseek;
pub mod deepseek_sparse;
pub mod deepseek_v4;
pub mod described;
pub mod dory;
pub mod evolla;
pub mod exaone;
pub mod gemma;
pub mod gemma3n;
pub mod gemma4;
pub mod glm;
pub mod gpt;
pub mod gpt_oss;
pub mod granite_swa;
pub mod hrm_text;
pub mod idefics;
pub mod inkling2;
pub mod internvl;
pub mod jamba;
pub mod kimi_linear;
pub mod kolibri;
pub mod laguna;
pub mod latent_variants;
pub mod lfm2;
pub mod llama;
pub mod llama4;
pub mod llama_variants;
pub mod llava;
pub mod longcat;
pub mod mamba;
pub mod mamba_hybrid;
pub mod memory_cells;
pub mod mimo_v2;
pub mod minicpm;
pub mod minimax_m2;
pub mod minimax_m3;
pub mod minimax_text;
pub mod mixtral;
pub mod mllama;
pub mod moe_variants;
pub mod moshi;
pub mod muse;
pub mod nemotron;
pub mod nemotron_h;
pub mod nemotron_nas;
pub mod olmo;
pub mod olmo_hybrid;
pub mod omni;
pub mod openelm;
pub mod opt;
pub mod phi;
pub mod phi3;
pub mod qwen;
pub mod qwen4;
pub mod qwen_moe;
pub mod qwen_next;
pub mod recurrent_gemma;
pub mod sided;
pub mod starcoder2;
pub mod step;
pub mod switches;
pub mod vision;
pub mod vision_language;
pub mod wrapper;
pub mod zamba;
pub mod zaya;

use super::model::ModelGraph;
use super::tower::Tower;
use crate::spec::error::Error;
use crate::spec::model::ModelConfig;
use crate::spec::model::keys::Keys;
use crate::spec::near::near;

/// A supported architecture.
pub struct Architecture {
    /// `model_type` of its configurations.
    pub model_type: &'static str,
    /// Its class in `architectures`.
    pub class: &'static str,
    /// Other names of that class, from checkpoints' own code or old files.
    pub aliases: &'static [&'static str],
    /// Reads the keys and builds the graph.
    pub build: fn(&Keys<'_>) -> Result<ModelGraph, Error>,
}

/// All supported architectures.
pub static ARCHITECTURES: &[Architecture] = &[
    of("NVLM_D", "NVLM_D", described::build),
    of("afmoe", "AfmoeForCausalLM", afmoe::build),
    of("apertus", "ApertusForCausalLM", nemotron::build_apertus),
    of("apertus1p5", "Apertus1p5ForConditionalGeneration", described::build),
    of("apertus1p5_text", "Apertus1p5TextForCausalLM", nemotron::build_apertus1p5),
    of("arcee", "ArceeForCausalLM", nemotron::build_arcee),
    of("aria", "AriaForConditionalGeneration", described::build),
    of("aria_text", "AriaTextForCausalLM", moe_variants::build_aria),
    of("axk1", "AXK1ForCausalLM", deepseek::build_axk1),
    of("axk2", "AXK2ForCausalLM", latent_variants::build_axk2),
    of("aya_vision", "AyaVisionForConditionalGeneration", llava::build_aya_vision),
    with_aliases(
        of("baichuan", "BaichuanForCausalLM", llama_variants::build_baichuan),
        &["BaiChuanForCausalLM"],
    ),
    with_aliases(
        of("bailing_hybrid", "BailingHybridForCausalLM", bailing_hybrid::build),
        &["BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM"],
    ),
    with_aliases(
        of("bailing_moe", "BailingMoeForCausalLM", bailing_moe::build),
        &["BailingMoeV2ForCausalLM"],
    ),
    of("bailing_moe_v2", "BailingMoeV2ForCausalLM", bailing_moe::build),
    of("bamba", "BambaForCausalLM", mamba_hybrid::build_bamba),
    of("beam", "BeamForCausalLM", afmoe::build_beam),
    of("bert-generation", "BertGenerationDecoder", bert::build_generation),
    of("biogpt", "BioGptForCausalLM", opt::build_biogpt),
    of("bitnet", "BitNetForCausalLM", llama::build_bitnet),
    of("blip", "BlipForConditionalGeneration", bert::build_blip),
    of("blip-2", "Blip2ForConditionalGeneration", described::build),
    with_aliases(of("bloom", "BloomForCausalLM", bloom::build), &["BloomModel"]),
    of("chameleon", "ChameleonForConditionalGeneration", described::build),
    with_aliases(of("chatglm", "ChatGLMModel", glm::build_chatglm), &["ChatGLMForConditionalGeneration"]),
    of("codegen", "CodeGenForCausalLM", gpt::build_codegen),
    of("cohere", "CohereForCausalLM", cohere::build),
    of("cohere2", "Cohere2ForCausalLM", cohere::build_cohere2),
    of("cohere2_moe", "Cohere2MoeForCausalLM", cohere::build_cohere2_moe),
    of("cohere2_vision", "Cohere2VisionForConditionalGeneration", llava::build_cohere2_vision),
    of("cohere_compass", "CohereCompassForConditionalGeneration", vision_language::build_compass),
    of("cohere_compass_text", "CohereCompassForCausalLM", cohere::build_compass),
    of("cosmos3_edge", "Cosmos3EdgeForConditionalGeneration", vision_language::build_edge),
    of("cosmos3_omni", "Cosmos3OmniForConditionalGeneration", vision_language::build_qwen3_vl),
    of("cpmant", "CpmAntForCausalLM", sided::build_cpmant),
    of("ctrl", "CTRLLMHeadModel", gpt::build_ctrl),
    of("cwm", "CwmForCausalLM", llama::build_cwm),
    with_aliases(of("dbrx", "DbrxForCausalLM", moe_variants::build_dbrx), &["DBRXForCausalLM"]),
    of("deepseek", "DeepseekForCausalLM", deepseek::build_v1),
    of("deepseek_ocr2", "DeepseekOcr2ForConditionalGeneration", described::build),
    of("deepseek_v2", "DeepseekV2ForCausalLM", deepseek::build_v2),
    of("deepseek_v3", "DeepseekV3ForCausalLM", deepseek::build_v3),
    of("deepseek_v32", "DeepseekV32ForCausalLM", deepseek_sparse::build_v32),
    of("deepseek_v4", "DeepseekV4ForCausalLM", deepseek_v4::build),
    of("deepseek_vl", "DeepseekVLForConditionalGeneration", llava::build_deepseek),
    of("deepseek_vl_hybrid", "DeepseekVLHybridForConditionalGeneration", described::build),
    with_aliases(
        of("deepseek_vl_v2", "DeepseekVLV2ForCausalLM", described::build_deepseek_vl2),
        &["DeepseekOCRForCausalLM"],
    ),
    of("diffllama", "DiffLlamaForCausalLM", sided::build_diffllama),
    of("doge", "DogeForCausalLM", sided::build_doge),
    of("dory", "DoryForCausalLM", dory::build),
    of("dots1", "Dots1ForCausalLM", deepseek::build_dots1),
    of("dots3_note", "Dots3NoteForConditionalGeneration", described::build),
    of("dots3_note_text", "Dots3NoteForCausalLM", latent_variants::build_dots3),
    of("emu3", "Emu3ForConditionalGeneration", described::build),
    with_aliases(
        of("ernie4_5", "Ernie4_5ForCausalLM", llama_variants::build_ernie),
        &["Ernie4_5_ForCausalLM"],
    ),
    of("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", moe_variants::build_ernie),
    of("ernie4_5_vl_moe", "Ernie4_5_VLMoeForConditionalGeneration", described::build),
    of("evolla", "EvollaForProteinText2Text", evolla::build),
    with_aliases(of("exaone", "ExaoneForCausalLM", exaone::build), &["LlamaForCausalLM"]),
    of("exaone4", "Exaone4ForCausalLM", exaone::build_exaone4),
    of("exaone4_5", "Exaone4_5_ForConditionalGeneration", vision_language::build_exaone),
    of("exaone_moe", "ExaoneMoeForCausalLM", exaone::build_moe),
    of("falcon", "FalconForCausalLM", bloom::build_falcon),
    of("falcon_h1", "FalconH1ForCausalLM", mamba_hybrid::build_falcon_h1),
    of("falcon_mamba", "FalconMambaForCausalLM", mamba::build_falcon),
    of("fast_vlm", "FastVlmForConditionalGeneration", described::build),
    of("flex_olmo", "FlexOlmoForCausalLM", olmo::build_flex),
    of("flint", "FlintForCausalLM", qwen_moe::build_flint),
    of("fun_asr_nano", "FunAsrNanoForConditionalGeneration", described::build),
    of("fuyu", "FuyuForCausalLM", omni::build_fuyu),
    of("gemma", "GemmaForCausalLM", gemma::build),
    of("gemma2", "Gemma2ForCausalLM", gemma::build_gemma2),
    of("gemma3", "Gemma3ForConditionalGeneration", vision_language::build_gemma3),
    of("gemma3_text", "Gemma3ForCausalLM", gemma::build_gemma3),
    of("gemma3n", "Gemma3nForConditionalGeneration", gemma3n::build),
    of("gemma3n_text", "Gemma3nForCausalLM", gemma3n::build_text),
    of("gemma4", "Gemma4ForConditionalGeneration", gemma4::build),
    of("gemma4_assistant", "Gemma4AssistantForCausalLM", gemma4::build_assistant),
    of("gemma4_text", "Gemma4ForCausalLM", gemma4::build_text),
    of("gemma4_unified", "Gemma4UnifiedForConditionalGeneration", gemma4::build_unified),
    of("gemma4_unified_assistant", "Gemma4UnifiedAssistantForCausalLM", gemma4::build_unified_assistant),
    of("gemma4_unified_text", "Gemma4UnifiedForCausalLM", gemma4::build_unified_text),
    of("git", "GitForCausalLM", described::build),
    of("glm", "GlmForCausalLM", glm::build),
    of("glm4", "Glm4ForCausalLM", glm::build_glm4),
    of("glm46v", "Glm46VForConditionalGeneration", vision_language::build_glm46v),
    of("glm4_moe", "Glm4MoeForCausalLM", deepseek::build_glm4),
    of("glm4_moe_lite", "Glm4MoeLiteForCausalLM", deepseek::build_v3),
    of("glm4v", "Glm4vForConditionalGeneration", vision_language::build_glm4v),
    of("glm4v_moe", "Glm4vMoeForConditionalGeneration", vision_language::build_glm4v_moe),
    of("glm5_next", "Glm5NextForConditionalGeneration", vision_language::build_glm5_next),
    of("glm_moe_dsa", "GlmMoeDsaForCausalLM", deepseek_sparse::build_glm),
    of("glm_ocr", "GlmOcrForConditionalGeneration", vision_language::build_glm_ocr),
    of("glmasr", "GlmAsrForConditionalGeneration", vision_language::build_glmasr),
    of("glmga", "Glm46VForConditionalGeneration", vision_language::build_glm46v),
    of("got_ocr2", "GotOcr2ForConditionalGeneration", vision_language::build_got),
    of("gpt2", "GPT2LMHeadModel", gpt::build_gpt2),
    of("gpt_bigcode", "GPTBigCodeForCausalLM", gpt::build_bigcode),
    of("gpt_neo", "GPTNeoForCausalLM", gpt::build_neo),
    of("gpt_neox", "GPTNeoXForCausalLM", gpt::build_neox),
    of("gpt_neox_japanese", "GPTNeoXJapaneseForCausalLM", gpt::build_japanese),
    of("gpt_oss", "GptOssForCausalLM", gpt_oss::build),
    of("gptj", "GPTJForCausalLM", gpt::build_gptj),
    of("granite", "GraniteForCausalLM", llama_variants::build_granite),
    of("granite4_vision", "Granite4VisionForConditionalGeneration", described::build),
    of("granite_docling", "GraniteDoclingForConditionalGeneration", described::build),
    of("granite_speech", "GraniteSpeechForConditionalGeneration", described::build),
    of("granite_speech_plus", "GraniteSpeechPlusForConditionalGeneration", described::build),
    of("granite_swa", "GraniteSWAForCausalLM", granite_swa::build),
    of("granitemoe", "GraniteMoeForCausalLM", moe_variants::build_granitemoe),
    of("granitemoe_swa", "GraniteMoeSWAForCausalLM", granite_swa::build_moe),
    of("granitemoehybrid", "GraniteMoeHybridForCausalLM", mamba_hybrid::build_granite),
    of("granitemoeshared", "GraniteMoeSharedForCausalLM", moe_variants::build_granitemoe_shared),
    of("helium", "HeliumForCausalLM", llama_variants::build_helium),
    of("hrm_text", "HrmTextForCausalLM", hrm_text::build),
    of("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", llama_variants::build_hunyuan),
    of("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", moe_variants::build_hunyuan),
    of("hunyuan_vl", "HunYuanVLForConditionalGeneration", described::build),
    of("hy_v3", "HYV3ForCausalLM", deepseek::build_hunyuan),
    of("hy_v4", "HYV4ForCausalLM", latent_variants::build_hunyuan),
    of("hy_v4_vl", "HYV4VLForConditionalGeneration", described::build),
    of("hyperclovax", "HyperCLOVAXForCausalLM", llama_variants::build_hyperclovax),
    of(
        "hyperclovax_vision_v2",
        "HyperCLOVAXVisionV2ForConditionalGeneration",
        vision_language::build_hyperclovax,
    ),
    of("idefics", "IdeficsForVisionText2Text", idefics::build),
    of("idefics2", "Idefics2ForConditionalGeneration", described::build),
    of("idefics3", "Idefics3ForConditionalGeneration", llava::build_idefics3),
    of("inkling2", "Inkling2ForConditionalGeneration", described::build),
    of("inkling2_loop", "Inkling2LoopForConditionalGeneration", described::build),
    of("inkling2_loop_text", "Inkling2LoopForCausalLM", inkling2::build_loop),
    of("inkling2_text", "Inkling2ForCausalLM", inkling2::build),
    of("inkling_mm_model", "InklingForConditionalGeneration", described::build),
    of("inkling_text", "InklingForCausalLM", sided::build_inkling),
    of("instructblip", "InstructBlipForConditionalGeneration", described::build),
    of("instructblipvideo", "InstructBlipVideoForConditionalGeneration", described::build),
    of("internlm", "InternLMForCausalLM", llama_variants::build_internlm),
    of("internlm2", "InternLM2ForCausalLM", llama_variants::build_internlm2),
    with_aliases(
        of("internlm3", "InternLM3ForCausalLM", llama_variants::build_internlm3),
        &["LlamaForCausalLM"],
    ),
    of("internvl", "InternVLForConditionalGeneration", internvl::build),
    of("internvl_chat", "InternVLChatModel", internvl::build_chat),
    with_aliases(of("iquestcoder", "IQuestCoderForCausalLM", llama::build), &["LlamaForCausalLM"]),
    of("jais2", "Jais2ForCausalLM", nemotron::build_jais2),
    of("jamba", "JambaForCausalLM", jamba::build),
    of("janus", "JanusForConditionalGeneration", described::build),
    of("jetmoe", "JetMoeForCausalLM", sided::build_jetmoe),
    of("kimi_k2", "DeepseekV3ForCausalLM", deepseek::build_v3),
    with_aliases(
        of("kimi_k25", "KimiK25ForConditionalGeneration", vision_language::build_kimi_k25),
        &["Kimi_K25ForConditionalGeneration"],
    ),
    of("kimi_linear", "KimiLinearForCausalLM", kimi_linear::build),
    of("kimi_vl", "KimiVLForConditionalGeneration", described::build),
    of("kolibri1", "Kolibri1ForCausalLM", kolibri::build),
    of("kosmos-2", "Kosmos2ForConditionalGeneration", described::build),
    of("kosmos-2.5", "Kosmos2_5ForConditionalGeneration", described::build),
    of("kyutai_speech_to_text", "KyutaiSpeechToTextForConditionalGeneration", described::build),
    of("laguna", "LagunaForCausalLM", laguna::build),
    of("lara_mini", "LaraMiniForCausalLM", qwen_next::build_lara_mini),
    of("lfm2", "Lfm2ForCausalLM", lfm2::build),
    of("lfm2_moe", "Lfm2MoeForCausalLM", lfm2::build_moe),
    of("lfm2_vl", "Lfm2VlForConditionalGeneration", llava::build_lfm2),
    of("lfm3", "Lfm3ForCausalLM", lfm2::build_3),
    of("lfm3_vl", "Lfm3VlForConditionalGeneration", described::build),
    of("lighton_ocr", "LightOnOcrForConditionalGeneration", vision_language::build_lighton),
    of("llama", "LlamaForCausalLM", llama::build),
    of("llama4", "Llama4ForConditionalGeneration", llama4::build),
    of("llama4_text", "Llama4ForCausalLM", llama4::build_text),
    of("llava", "LlavaForConditionalGeneration", llava::build),
    of("llava_next", "LlavaNextForConditionalGeneration", llava::build_next),
    of("llava_next_video", "LlavaNextVideoForConditionalGeneration", llava::build_next_video),
    of("llava_onevision", "LlavaOnevisionForConditionalGeneration", llava::build_onevision),
    of("longcat_flash", "LongcatFlashForCausalLM", longcat::build),
    of("mamba", "MambaForCausalLM", mamba::build),
    of("mamba2", "Mamba2ForCausalLM", mamba::build_second),
    of("mellum", "MellumForCausalLM", qwen_moe::build_mellum),
    of("mimo", "MiMoForCausalLM", qwen::build_mimo),
    of("mimo_v2_flash", "MiMoV2FlashForCausalLM", mimo_v2::build),
    of("minicpm", "MiniCPMForCausalLM", minicpm::build),
    of("minicpm3", "MiniCPM3ForCausalLM", minicpm::build_minicpm3),
    of("minicpm_ocr", "MiniCPMOcrForConditionalGeneration", vision_language::build_minicpm),
    of("minicpmv", "MiniCPMV", vision_language::build_minicpmv),
    of("minicpmv4_6", "MiniCPMV4_6ForConditionalGeneration", vision_language::build_minicpm),
    of("minicpmv4_7", "MiniCPMV4_7ForConditionalGeneration", vision_language::build_minicpm),
    of("minimax", "MiniMaxForCausalLM", minimax_text::build),
    of("minimax_m2", "MiniMaxM2ForCausalLM", minimax_m2::build),
    of("minimax_m3_vl", "MiniMaxM3SparseForConditionalGeneration", minimax_m3::build),
    of("minimax_m3_vl_text", "MiniMaxM3VLForCausalLM", minimax_m3::build_text),
    of("ministral", "MinistralForCausalLM", llama::build_ministral),
    of("ministral3", "Ministral3ForCausalLM", llama::build_ministral3),
    of("mistral", "MistralForCausalLM", llama::build_mistral),
    of("mistral3", "Mistral3ForConditionalGeneration", vision_language::build_mistral3),
    of("mistral4", "Mistral4ForCausalLM", deepseek::build_mistral4),
    of("mistral_large4", "MistralLarge4ForConditionalGeneration", vision_language::build_mistral_large4),
    of("mixtral", "MixtralForCausalLM", mixtral::build),
    of("mllama", "MllamaForConditionalGeneration", mllama::build),
    of("modernbert-decoder", "ModernBertDecoderForCausalLM", sided::build_modernbert),
    of("molmo2", "Molmo2ForConditionalGeneration", described::build),
    of("moshi", "MoshiForCausalLM", moshi::build),
    of("moss_transcribe_diarize", "MossTranscribeDiarizeForConditionalGeneration", omni::build_moss),
    with_aliases(of("mpt", "MptForCausalLM", bloom::build_mpt), &["MPTForCausalLM"]),
    of("muse_glimmer", "MuseGlimmerForConditionalGeneration", described::build),
    of("muse_spark", "MuseSparkForConditionalGeneration", described::build),
    of("nanochat", "NanoChatForCausalLM", nemotron::build_nanochat),
    of("nemo_speechlm", "Nemotron3_5TranscribeForConditionalGeneration", described::build),
    of("nemotron", "NemotronForCausalLM", nemotron::build),
    of("nemotron-nas", "DeciLMForCausalLM", nemotron_nas::build),
    of("nemotron_h", "NemotronHForCausalLM", nemotron_h::build),
    of("nemotron_h_omni", "NemotronH_Omni_Reasoning_V3", described::build),
    of("olmo", "OlmoForCausalLM", olmo::build),
    of("olmo2", "Olmo2ForCausalLM", olmo::build_olmo2),
    of("olmo3", "Olmo3ForCausalLM", olmo::build_olmo3),
    of("olmo_hybrid", "OlmoHybridForCausalLM", olmo_hybrid::build),
    of("olmoe", "OlmoeForCausalLM", olmo::build_olmoe),
    of("omniasr", "OmniASRForConditionalGeneration", described::build),
    of("openai-gpt", "OpenAIGPTLMHeadModel", gpt::build_first),
    of("openelm", "OpenELMForCausalLM", openelm::build),
    of("opt", "OPTForCausalLM", opt::build),
    of("orion", "OrionForCausalLM", llama_variants::build_orion),
    of("ovis2", "Ovis2ForConditionalGeneration", described::build),
    of("paddleocr_vl", "PaddleOCRVLForConditionalGeneration", vision_language::build_paddle),
    of("paligemma", "PaliGemmaForConditionalGeneration", llava::build_paligemma),
    of("perception_lm", "PerceptionLMForConditionalGeneration", described::build),
    of("persimmon", "PersimmonForCausalLM", nemotron::build_persimmon),
    of("phi", "PhiForCausalLM", phi::build),
    of("phi3", "Phi3ForCausalLM", phi3::build),
    of("phi3_v", "Phi3VForCausalLM", described::build),
    of("phi4_multimodal", "Phi4MultimodalForCausalLM", described::build),
    with_aliases(of("phimoe", "PhimoeForCausalLM", moe_variants::build_phimoe), &["PhiMoEForCausalLM"]),
    of("pp_chart2table", "GotOcr2ForConditionalGeneration", vision_language::build_got),
    of("qianfan_ocr", "QianfanOCRForConditionalGeneration", internvl::build_qianfan),
    of("qwen", "QWenLMHeadModel", qwen::build_qwen),
    of("qwen2", "Qwen2ForCausalLM", qwen::build_qwen2),
    of("qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration", omni::build_qwen2_omni),
    of("qwen2_5_omni_thinker", "Qwen2_5OmniThinkerForConditionalGeneration", omni::build_qwen2_thinker),
    of("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", vision_language::build_qwen2_5_vl),
    of("qwen2_audio", "Qwen2AudioForConditionalGeneration", vision_language::build_qwen2_audio),
    of("qwen2_moe", "Qwen2MoeForCausalLM", qwen_moe::build_qwen2),
    of("qwen2_vl", "Qwen2VLForConditionalGeneration", vision_language::build_qwen2_vl),
    of("qwen3", "Qwen3ForCausalLM", qwen::build_qwen3),
    of("qwen3_5", "Qwen3_5ForConditionalGeneration", qwen_next::build_5),
    of("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", qwen_next::build_5_moe),
    of("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", qwen_next::build_5_moe_text),
    of("qwen3_5_text", "Qwen3_5ForCausalLM", qwen_next::build_5_text),
    of("qwen3_asr", "Qwen3ASRForConditionalGeneration", omni::build_qwen3_asr),
    of("qwen3_moe", "Qwen3MoeForCausalLM", qwen_moe::build_qwen3),
    of("qwen3_next", "Qwen3NextForCausalLM", qwen_next::build_next),
    of("qwen3_omni_moe", "Qwen3OmniMoeForConditionalGeneration", omni::build_qwen3_omni),
    of("qwen3_omni_moe_thinker", "Qwen3OmniMoeThinkerForConditionalGeneration", omni::build_qwen3_thinker),
    of("qwen3_vl", "Qwen3VLForConditionalGeneration", vision_language::build_qwen3_vl),
    of("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", vision_language::build_qwen3_vl_moe),
    of("qwen4_exp", "Qwen4ExpForConditionalGeneration", qwen4::build),
    of("qwen4_exp_text", "Qwen4ExpForCausalLM", qwen4::build_text),
    of("recurrent_gemma", "RecurrentGemmaForCausalLM", recurrent_gemma::build),
    of("rwkv", "RwkvForCausalLM", memory_cells::build_rwkv),
    with_aliases(
        of("sarvam_mla", "SarvamMLAForCausalLM", deepseek::build_sarvam_mla),
        &["DeepseekV3ForCausalLM"],
    ),
    with_aliases(
        of("sarvam_moe", "SarvamMoEForCausalLM", deepseek::build_sarvam_moe),
        &["Glm4MoeForCausalLM"],
    ),
    of("seed_oss", "SeedOssForCausalLM", llama_variants::build_seed_oss),
    of("shieldgemma2", "Gemma3ForConditionalGeneration", vision_language::build_gemma3),
    of("smollm3", "SmolLM3ForCausalLM", llama_variants::build_smollm3),
    of("smolvlm", "SmolVLMForConditionalGeneration", llava::build_idefics3),
    of("solar_open", "SolarOpenForCausalLM", deepseek::build_solar),
    with_aliases(of("stablelm", "StableLmForCausalLM", phi::build_stablelm), &["StableLMEpochForCausalLM"]),
    of("starcoder2", "Starcoder2ForCausalLM", starcoder2::build),
    of("step3p5", "Step3p5ForCausalLM", step::build_text),
    of("step3p7", "Step3p7ForConditionalGeneration", step::build),
    of("trocr", "TrOCRForCausalLM", bert::build_trocr),
    of("unlimited_ocr", "UnlimitedOcrForConditionalGeneration", described::build),
    of("vaultgemma", "VaultGemmaForCausalLM", gemma::build_vault),
    of("vibevoice_asr", "VibeVoiceAsrForConditionalGeneration", described::build),
    of("video_llama_3", "VideoLlama3ForConditionalGeneration", llava::build_video_llama),
    of("video_llava", "VideoLlavaForConditionalGeneration", llava::build_video),
    of("vipllava", "VipLlavaForConditionalGeneration", llava::build_vip),
    of("voxtral", "VoxtralForConditionalGeneration", vision_language::build_voxtral),
    of("voxtral_realtime", "VoxtralRealtimeForConditionalGeneration", described::build),
    of("xglm", "XGLMForCausalLM", opt::build_xglm),
    of("xlstm", "xLSTMForCausalLM", memory_cells::build_xlstm),
    of("xverse", "XverseForCausalLM", llama_variants::build_xverse),
    of("youtu", "YoutuForCausalLM", deepseek::build_youtu),
    of("zamba", "ZambaForCausalLM", zamba::build),
    of("zamba2", "Zamba2ForCausalLM", zamba::build_second),
    of("zaya", "ZayaForCausalLM", zaya::build),
];

const fn of(
    model_type: &'static str,
    class: &'static str,
    build: fn(&Keys<'_>) -> Result<ModelGraph, Error>,
) -> Architecture {
    Architecture { model_type, class, aliases: &[], build }
}

const fn with_aliases(known: Architecture, aliases: &'static [&'static str]) -> Architecture {
    Architecture { aliases, ..known }
}

/// More elements than any model has. Below this, no sum of bits exceeds 64 bits.
const MOST_ELEMENTS: u128 = 1_000_000_000_000_000;

impl ModelGraph {
    /// Builds the graph of a configuration, or reports the part of the configuration that is not supported.
    pub fn build(config: &ModelConfig) -> Result<ModelGraph, Error> {
        let architecture = find(config)?;
        let keys = config.keys().with_defaults(class_keys::of_file(architecture.model_type));
        switches::set_aside(&keys, architecture.model_type);
        let mut graph = (architecture.build)(&keys)?;
        let ignored_keys = keys.all_read()?;
        if config.architectures.iter().any(|stated| bare(architecture).as_ref() == Some(stated)) {
            graph.behead();
        }
        let elements = graph.stored_elements();
        if elements > MOST_ELEMENTS {
            return Err(Error::new(
                "",
                format!("widths and layers that multiply to {elements} parameters"),
                format!("at most {MOST_ELEMENTS} parameters"),
                "copy the values from the model's config.json",
            ));
        }
        if graph.towers.iter().filter_map(Tower::all_flops).any(|flops| u64::try_from(flops).is_err()) {
            return Err(Error::new(
                "",
                "images of more positions than an encoder processes",
                "an image_size of at most a few thousand pixels",
                "copy the values from the model's config.json",
            ));
        }
        Ok(ModelGraph {
            model_type: architecture.model_type.to_owned(),
            max_context: graph.max_context.or(config.max_context),
            ignored_keys,
            ..graph
        })
    }
}

/// The architecture of the file, by `model_type` or else by class.
fn find(config: &ModelConfig) -> Result<&'static Architecture, Error> {
    let stated = config.architectures.as_slice();
    let is_stated = |known: &Architecture| {
        let is = |name: &String| {
            name == known.class
                || known.aliases.contains(&name.as_str())
                || bare(known).as_ref() == Some(name)
        };
        stated.is_empty() || stated.iter().any(is)
    };
    match &config.model_type {
        Some(model_type) => {
            match ARCHITECTURES.iter().find(|known| known.model_type == model_type.as_str()) {
                Some(known) if is_stated(known) => Ok(known),
                Some(known) => Err(Error::new(
                    "architectures",
                    stated.join(", "),
                    format!("{}: only text-generation models are supported", known.class),
                    "take the model's text-generation checkpoint",
                )),
                None => match stated.iter().find(|class| generates_no_text(class)) {
                    Some(class) => Err(Error::new(
                        "architectures",
                        class.as_str(),
                        "a class that generates text, token by token: …ForCausalLM or …ForConditionalGeneration",
                        "take a language model: encoders, diffusion and speech models are not served here",
                    )),
                    None => Err(other_form(model_type)
                        .unwrap_or_else(|| unknown("model_type", model_type, |known| known.model_type))),
                },
            }
        }
        // Several families have files of one class: its own family comes first.
        None => match ARCHITECTURES
            .iter()
            .find(|known| stated.iter().any(|name| name == known.class))
            .or_else(|| ARCHITECTURES.iter().find(|known| !stated.is_empty() && is_stated(known)))
        {
            Some(known) => Ok(known),
            None => {
                let found = if stated.is_empty() {
                    "nothing: the key is missing".to_owned()
                } else {
                    stated.join(", ")
                };
                Err(unknown("model_type", &found, |known| known.class))
            }
        },
    }
}

/// Ends of the names of classes that do not generate text token by token.
static OTHER_CLASSES: &[&str] = &[
    "AudioFrameClassification",
    "BlockDiffusion",
    "CTC",
    "DepthEstimation",
    "ImageClassification",
    "ImageTextRetrieval",
    "KeypointDetection",
    "KeypointMatching",
    "MaskedImageModeling",
    "MaskedLM",
    "MultipleChoice",
    "NextSentencePrediction",
    "ObjectDetection",
    "PreTraining",
    "QuestionAnswering",
    "SemanticSegmentation",
    "SequenceClassification",
    "SpeechSeq2Seq",
    "TextToSpeech",
    "TokenClassification",
    "UniversalSegmentation",
    "VideoClassification",
];

/// Types of transformers whose form no graph has, with what is expected instead.
static OTHER_FORMS: &[(&[&str], &str)] = &[
    (&["blt"], "a model of tokens, not of bytes in patches of varying length"),
    (&["pi0"], "a model that generates text, not actions"),
    (&["xlnet"], "a model that keeps keys and values, not hidden states that each step projects again"),
];

/// The refusal of a known type of another form.
fn other_form(model_type: &str) -> Option<Error> {
    let (_, expected) = OTHER_FORMS.iter().find(|(types, _)| types.contains(&model_type))?;
    let fix = "take another model: this form of architecture is not served here";
    Some(Error::new("model_type", model_type, *expected, fix))
}

/// Whether a class is an encoder, a diffusion or a speech model, by its name.
fn generates_no_text(class: &str) -> bool {
    OTHER_CLASSES.iter().any(|end| class.ends_with(&format!("For{end}")))
}

/// The class without a head, whose checkpoints compute text embeddings.
fn bare(known: &Architecture) -> Option<String> {
    known.class.strip_suffix("ForCausalLM").map(|family| format!("{family}Model"))
}

/// Error for an unknown architecture, with the nearest names and the list of supported ones.
fn unknown(key: &str, found: &str, name: fn(&Architecture) -> &'static str) -> Error {
    let mut names: Vec<&str> = ARCHITECTURES.iter().map(name).collect();
    names.dedup();
    let near = near(found, names.iter().copied());
    let fix = if near.is_empty() {
        "the architecture needs a builder of its own".to_owned()
    } else {
        format!("did you mean {}? Otherwise the architecture needs a builder of its own", near.join(" or "))
    };
    Error::new(key, found, format!("one of {}", names.join(", ")), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> Error {
        ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap_err()
    }

    #[test]
    fn a_stranger_is_named_with_those_who_are_known() {
        let error = error(r#"{"model_type": "lama"}"#);
        assert_eq!(error.found, "lama");
        assert!(
            error.expected.contains("deepseek_v3") && error.fix.contains("did you mean llama"),
            "{error}"
        );
    }

    #[test]
    fn a_file_without_model_type_is_refused_or_known_by_class() {
        assert_eq!(error("{}").key, "model_type");
        assert_eq!(error(r#"{"architectures": ["LlamaForCausalLM"]}"#).key, "hidden_size");
    }

    #[test]
    fn a_model_of_another_form_is_refused_with_its_form() {
        let error = error(r#"{"model_type": "blt", "architectures": ["BltForCausalLM"]}"#);
        assert!(error.expected.contains("bytes"), "{error}");
    }

    #[test]
    fn a_classifier_is_not_served() {
        let text = r#"{"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]}"#;
        assert_eq!(error(text).key, "architectures");
    }

    #[test]
    fn an_encoder_is_refused_by_its_class() {
        let error = error(r#"{"model_type": "bert", "architectures": ["BertForMaskedLM"]}"#);
        assert_eq!((error.key.as_str(), error.found.as_str()), ("architectures", "BertForMaskedLM"));
    }

    #[test]
    fn the_table_is_sorted_and_names_each_model_type_once() {
        assert!(ARCHITECTURES.windows(2).all(|pair| pair[0].model_type < pair[1].model_type));
    }

    #[test]
    fn a_model_beyond_belief_is_refused() {
        let text = r#"{"model_type": "llama", "hidden_size": 1000000, "num_hidden_layers": 2000,
            "vocab_size": 100000000, "num_attention_heads": 100000, "head_dim": 1000000,
            "num_key_value_heads": 100000, "intermediate_size": 1000000}"#;
        assert!(error(text).found.contains("multiply"));
    }
}
