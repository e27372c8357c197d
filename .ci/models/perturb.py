"""Perturbs a configuration: other widths, heads, layers, experts, windows, switches, all consistent in themselves."""

import copy

# Keys of a width in one section that must equal the hidden size of another.
OUTWARD = ["out_hidden_size", "projection_dim", "text_hidden_size", "vision_output_dim", "projector_output_dim",
           "output_dim", "llm_hidden_size", "cross_attention_hidden_size", "encoder_hidden_size"]
HIDDEN = ["hidden_size", "d_model", "n_embd", "dim", "embed_dim"]
HEADS = ["num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads"]
KV = ["num_key_value_heads", "num_kv_heads", "n_head_kv"]
LAYERS = ["num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth"]
WIDTHS = ["intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size", "ffn_dim", "d_ff",
          "expert_ffn_hidden_size", "ffn_hidden_size", "shared_intermediate_size", "encoder_ffn_dim",
          "decoder_ffn_dim", "dense_intermediate_size"]
EXPERTS = ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"]
TOP_K = ["num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts", "num_experts_per_token"]
SWITCHES = ["attention_bias", "mlp_bias", "use_bias", "qkv_bias", "use_qk_norm", "lm_head_bias", "use_sliding_window",
            "tie_word_embeddings", "qk_layernorm", "add_bias_linear", "attention_out_bias"]


def product(shape):
    total = 1
    for side in shape:
        total *= side
    return total


def sections(config):
    """The configuration and every section in it, with its key."""
    yield "", config
    for key, value in config.items():
        if isinstance(value, dict) and (key.endswith("config") or key in ["encoder", "decoder"]):
            for inner, section in sections(value):
                yield f"{key}.{inner}".rstrip("."), section


def first(section, names):
    """The key of `names` that the section has with a number."""
    return next((name for name in names if isinstance(section.get(name), int) and not
                 isinstance(section.get(name), bool)), None)


def perturbed(config, draw):
    """A copy with some of its keys changed."""
    config = copy.deepcopy(config)
    everything = list(sections(config))
    for path, section in everything:
        encoder = any(word in path for word in ["vision", "audio", "speech", "vq", "codec", "tokenizer"])
        if encoder and draw.random() < 0.5:
            continue
        widen(section, everything, draw)
        if not encoder:
            network(section, draw)
        layers(section, draw)
    return config


def widen(section, everything, draw):
    """Another hidden size with heads that divide it."""
    hidden, heads, kv = first(section, HIDDEN), first(section, HEADS), first(section, KV)
    if not hidden or not heads or draw.random() < 0.2:
        return
    old, old_heads = section[hidden], section[heads]
    head = draw.choice([32, 64, 96, 128])
    count = draw.choice([2, 4, 8, 12, 16])
    same = section.get(kv) == old_heads if kv else False
    section[heads] = count
    section[hidden] = head * count
    if kv and section[kv]:
        section[kv] = count if same and draw.random() < 0.5 else draw.choice(
            [number for number in range(1, count + 1) if count % number == 0])
    if isinstance(section.get("head_dim"), int):
        section["head_dim"] = head if draw.random() < 0.5 else draw.choice([32, 64, 128, 256])
    for _, other in everything:
        for key in OUTWARD:
            if other.get(key) == old:
                other[key] = section[hidden]


def network(section, draw):
    """Other widths, experts, switches and vocabulary."""
    for key in WIDTHS:
        if isinstance(section.get(key), int) and draw.random() < 0.7:
            section[key] = 64 * draw.randint(2, 40)
    experts, top = first(section, EXPERTS), first(section, TOP_K)
    if experts and section[experts] > 1 and draw.random() < 0.7:
        section[experts] = draw.choice([8, 16, 32])
        if top:
            section[top] = draw.choice([1, 2, 4])
    for key in SWITCHES:
        if isinstance(section.get(key), bool) and draw.random() < 0.4:
            section[key] = not section[key]
    if isinstance(section.get("sliding_window"), int) and draw.random() < 0.5:
        section["sliding_window"] = draw.choice([128, 512, 1024])
    if isinstance(section.get("vocab_size"), int) and draw.random() < 0.5:
        tokens = [value for key, value in section.items() if key.endswith(("token_id", "token_index"))
                  and isinstance(value, int)]
        section["vocab_size"] = max([draw.randint(1000, 50000), *[token + 1 for token in tokens]])


def layers(section, draw):
    """Another number of layers, and as many entries in the lists that have one for each."""
    key = first(section, LAYERS)
    # `attention_types` counts the layers again.
    if not key or "attention_types" in section or draw.random() < 0.3:
        return
    old, new = section[key], draw.randint(2, 8)
    if new >= old:
        return
    for name, value in list(section.items()):
        if isinstance(value, list) and len(value) == old and old > 1:
            section[name] = value[:new]
    section[key] = new
    for name in ["full_attn_idxs", "attn_layer_indices"]:
        if isinstance(section.get(name), list):
            section[name] = [index for index in section[name] if index < new]
    if isinstance(section.get("layer_types"), list) and draw.random() < 0.5:
        draw.shuffle(section["layer_types"])
