"""The kind of every model type of transformers, from its own auto-mappings.

Rules in this order; the first that holds decides. The names are those of `models/auto/modeling_auto.py`.

| kind | rule |
|---|---|
| diffusion | the class of some mapping ends in `Diffusion` |
| encoder-decoder | `is_encoder_decoder` of the default configuration, or only a sequence-to-sequence class |
| multimodal decoder | in IMAGE_TEXT_TO_TEXT or MULTIMODAL_LM |
| audio | in TEXT_TO_WAVEFORM or SPEECH_SEQ_2_SEQ, or only in mappings of audio |
| encoder | in MASKED_LM |
| decoder | in CAUSAL_LM |
| encoder | in a mapping of texts: TEXT_ENCODING, SEQUENCE_CLASSIFICATION, QUESTION_ANSWERING … |
| vision | in a mapping of images or videos |
| other | the rest, such as time series, and types that are only a part of another |
"""

import functools

from transformers.models.auto import modeling_auto as auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

GENERATE = ["IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ",
            "TEXT_TO_WAVEFORM"]
AUDIO = ["AUDIO_CLASSIFICATION", "CTC", "RNNT", "TDT", "AUDIO_FRAME_CLASSIFICATION", "AUDIO_XVECTOR",
         "TEXT_TO_SPECTROGRAM", "AUDIO_TOKENIZATION"]
TEXT = ["TEXT_ENCODING", "SEQUENCE_CLASSIFICATION", "QUESTION_ANSWERING", "TABLE_QUESTION_ANSWERING",
        "TOKEN_CLASSIFICATION", "MULTIPLE_CHOICE", "NEXT_SENTENCE_PREDICTION"]
VISION = ["IMAGE", "MASKED_IMAGE_MODELING", "CAUSAL_IMAGE_MODELING", "IMAGE_CLASSIFICATION", "IMAGE_SEGMENTATION",
          "SEMANTIC_SEGMENTATION", "INSTANCE_SEGMENTATION", "UNIVERSAL_SEGMENTATION", "VIDEO_CLASSIFICATION",
          "RETRIEVAL", "OBJECT_DETECTION", "ZERO_SHOT_OBJECT_DETECTION", "DEPTH_ESTIMATION", "TEXT_RECOGNITION",
          "TABLE_RECOGNITION", "VISUAL_QUESTION_ANSWERING", "DOCUMENT_QUESTION_ANSWERING",
          "ZERO_SHOT_IMAGE_CLASSIFICATION", "BACKBONE", "MASK_GENERATION", "KEYPOINT_DETECTION", "KEYPOINT_MATCHING",
          "IMAGE_TO_IMAGE", "IMAGE_MATTING", "NORMAL_ESTIMATION", "POINTMAP_ESTIMATION", "POSE_ESTIMATION"]
KINDS = ["decoder", "multimodal decoder", "encoder", "encoder-decoder", "diffusion", "audio", "vision", "other"]


def mapping(name):
    found = getattr(auto, f"MODEL_FOR_{name}_MAPPING_NAMES", None) or getattr(auto, f"MODEL_FOR_{name}_NAMES")
    return {key: value[0] if isinstance(value, tuple) else value for key, value in found.items()}


MAPPINGS = {name: mapping(name) for name in [*GENERATE, *AUDIO, *TEXT, *VISION, "MASKED_LM"]}
BASE = {key: value[0] if isinstance(value, tuple) else value for key, value in auto.MODEL_MAPPING_NAMES.items()}


def types():
    return list(CONFIG_MAPPING_NAMES)


def classes(model_type):
    """Every class of the type, by mapping."""
    return {name: table[model_type] for name, table in MAPPINGS.items() if model_type in table}


def head(model_type):
    """The class that generates, else the first of another mapping, else the bare model; None for a mere part."""
    found = classes(model_type)
    order = GENERATE + ["MASKED_LM"] + AUDIO + TEXT + VISION
    return next((found[name] for name in order if name in found), BASE.get(model_type))


def heads(model_type):
    """The classes to build. The class for text alone of a multimodal type reads the file of its text type."""
    return [name for name in [head(model_type)] if name]


@functools.cache
def kind(model_type):
    found = classes(model_type)
    within = lambda names: any(name in found for name in names)
    if any(name.endswith("Diffusion") for name in found.values()):
        return "diffusion"
    try:
        both = bool(getattr(CONFIG_MAPPING[model_type](), "is_encoder_decoder", False))
    except Exception:
        both = False
    generates = within(["IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "CAUSAL_LM"])
    if both or ("SEQ_TO_SEQ_CAUSAL_LM" in found and not generates):
        return "encoder-decoder"
    if within(["IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM"]):
        return "multimodal decoder"
    if within(["TEXT_TO_WAVEFORM", "SPEECH_SEQ_2_SEQ"]):
        return "audio"
    if "MASKED_LM" in found:
        return "encoder"
    if "CAUSAL_LM" in found:
        return "decoder"
    for names, answer in [(TEXT, "encoder"), (AUDIO, "audio"), (VISION, "vision")]:
        if within(names):
            return answer
    return "other"


if __name__ == "__main__":
    for name in types():
        print(name, kind(name), ",".join(heads(name)), sep="\t")
