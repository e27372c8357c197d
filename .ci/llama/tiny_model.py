"""Writes a llama model of two layers with random weights and a vocabulary of bytes: `tiny_model.py FILE.gguf`, 1.4 MB.

The format is GGUF 3: a header, keys with values, a directory of tensors, and their data at multiples of 32 bytes.
"""

import random
import struct
import sys
from array import array

LAYERS, CONTEXT = 2, 512
# Width, width of the feed-forward part, heads of attention and heads of keys and values.
SIZES = 128, 256, 4, 2
UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9
UNKNOWN, CONTROL, BYTE = 2, 3, 6
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]


def keys(sizes):
    """The keys of the file, with their types and values."""
    width, hidden, heads, kv_heads = sizes
    return [
        ("general.architecture", STRING, "llama"), ("llama.block_count", UINT32, LAYERS),
        ("llama.context_length", UINT32, CONTEXT), ("llama.embedding_length", UINT32, width),
        ("llama.feed_forward_length", UINT32, hidden), ("llama.attention.head_count", UINT32, heads),
        ("llama.attention.head_count_kv", UINT32, kv_heads), ("llama.rope.dimension_count", UINT32, width // heads),
        ("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5), ("llama.vocab_size", UINT32, len(TOKENS)),
        ("tokenizer.ggml.model", STRING, "llama"), ("tokenizer.ggml.tokens", (ARRAY, STRING), TOKENS),
        ("tokenizer.ggml.scores", (ARRAY, FLOAT32), [0.0] * len(TOKENS)),
        ("tokenizer.ggml.token_type", (ARRAY, INT32), [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256),
        ("tokenizer.ggml.bos_token_id", UINT32, 1), ("tokenizer.ggml.eos_token_id", UINT32, 2),
        ("tokenizer.ggml.unknown_token_id", UINT32, 0),
    ]


def tensors(sizes):
    """Name and shape (rows, columns) of every tensor; one without columns is a norm."""
    width, hidden, heads, kv_heads = sizes
    yield from (("token_embd.weight", (len(TOKENS), width)), ("output_norm.weight", (width,)), ("output.weight", (len(TOKENS), width)))
    of_kv = width * kv_heads // heads
    for layer in range(LAYERS):
        for name, shape in (("attn_norm", (width,)), ("attn_q", (width, width)), ("attn_k", (of_kv, width)), ("attn_v", (of_kv, width)),
                            ("attn_output", (width, width)), ("ffn_norm", (width,)), ("ffn_gate", (hidden, width)),
                            ("ffn_up", (hidden, width)), ("ffn_down", (width, hidden))):
            yield f"blk.{layer}.{name}.weight", shape


def value(kind, given):
    if kind == STRING:
        text = given.encode()
        return struct.pack("<Q", len(text)) + text
    if isinstance(kind, tuple):
        return struct.pack("<IQ", kind[1], len(given)) + b"".join(value(kind[1], item) for item in given)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f"}[kind], given)


def padded(data):
    return data + bytes(-len(data) % 32)


def main(path, sizes=SIZES):
    rng, shapes, described = random.Random(0), list(tensors(sizes)), keys(sizes)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(described))
    for key, kind, given in described:
        head += value(STRING, key) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind) + value(kind, given)
    data = b""
    for name, shape in shapes:
        head += value(STRING, name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, len(data))
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        weights = array("f", (rng.gauss(0, 0.02) for _ in range(size)) if len(shape) > 1 else (1.0 for _ in range(size)))
        if sys.byteorder == "big":
            weights.byteswap()
        data += padded(weights.tobytes())
    with open(path, "wb") as file:
        file.write(padded(head) + data)


if __name__ == "__main__":
    main(sys.argv[1])
