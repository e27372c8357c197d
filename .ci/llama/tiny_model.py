"""Writes llama models with random weights: `tiny_model.py FILE.gguf` two layers and a vocabulary of bytes, 1.4 MB;
`tiny_model.py FILE.gguf q4_0` the shape of Llama-3.2-1B in the formats that llama-quantize gives to its tensors.

The format is GGUF 3: a header, keys with values, a directory of tensors, and their data at multiples of 32 bytes.
"""

import random
import struct
import sys
from array import array
from typing import NamedTuple

LAYERS, CONTEXT = 2, 512
# Width, width of the feed-forward part, heads of attention and heads of keys and values.
SIZES = 128, 256, 4, 2
UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]


class Format(NamedTuple):
    """A format of tensors: its number in the file, values and bytes of a block, and where the scale of a block is.

    From ggml.h (`ggml_type`) and ggml-common.h (`block_q4_0`, `block_q8_0`, `block_q6_K`).
    """

    number: int
    values: int
    size: int
    scale: int


F32, Q4_0, Q8_0, Q6_K = Format(0, 1, 4, 0), Format(2, 32, 18, 0), Format(8, 32, 34, 0), Format(14, 256, 210, 208)


class FileFormat(NamedTuple):
    """What llama-quantize gives to a file: `llama_ftype` of llama.h, the format of matrices, and that of the embeddings, which are
    the output too where there is no other."""

    number: int
    matrix: Format
    embedding: Format


FILE_FORMATS = {"f32": FileFormat(0, F32, F32), "q4_0": FileFormat(2, Q4_0, Q6_K), "q8_0": FileFormat(7, Q8_0, Q8_0)}


class Shape(NamedTuple):
    """A llama model. `sizes` are width, width of the feed-forward part, heads of attention and of keys and values."""

    sizes: tuple
    layers: int = LAYERS
    context: int = CONTEXT
    vocabulary: int = len(TOKENS)
    tied: bool = False


# https://huggingface.co/unsloth/Llama-3.2-1B/blob/main/config.json
LLAMA_1B = Shape((2048, 8192, 32, 8), 16, 131072, 128256, True)


def keys(shape, file_format):
    """The keys of the file, with their types and values."""
    width, hidden, heads, kv_heads = shape.sizes
    unused = shape.vocabulary - len(TOKENS)
    return [
        ("general.architecture", STRING, "llama"), ("general.file_type", UINT32, file_format.number),
        ("llama.block_count", UINT32, shape.layers),
        ("llama.context_length", UINT32, shape.context), ("llama.embedding_length", UINT32, width),
        ("llama.feed_forward_length", UINT32, hidden), ("llama.attention.head_count", UINT32, heads),
        ("llama.attention.head_count_kv", UINT32, kv_heads), ("llama.rope.dimension_count", UINT32, width // heads),
        ("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5), ("llama.vocab_size", UINT32, shape.vocabulary),
        ("tokenizer.ggml.model", STRING, "llama"),
        ("tokenizer.ggml.tokens", (ARRAY, STRING), TOKENS + [f"<unused{number}>" for number in range(unused)]),
        ("tokenizer.ggml.scores", (ARRAY, FLOAT32), [0.0] * shape.vocabulary),
        # A server sends no text for a token that is marked as unused.
        ("tokenizer.ggml.token_type", (ARRAY, INT32), [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * unused),
        ("tokenizer.ggml.bos_token_id", UINT32, 1), ("tokenizer.ggml.eos_token_id", UINT32, 2),
        ("tokenizer.ggml.unknown_token_id", UINT32, 0),
    ]


def tensors(shape):
    """Name and shape (rows, columns) of every tensor; one without columns is a norm."""
    width, hidden, heads, kv_heads = shape.sizes
    yield from (("token_embd.weight", (shape.vocabulary, width)), ("output_norm.weight", (width,)))
    if not shape.tied:
        yield "output.weight", (shape.vocabulary, width)
    of_kv = width * kv_heads // heads
    for layer in range(shape.layers):
        for name, dimensions in (("attn_norm", (width,)), ("attn_q", (width, width)), ("attn_k", (of_kv, width)),
                                 ("attn_v", (of_kv, width)), ("attn_output", (width, width)), ("ffn_norm", (width,)),
                                 ("ffn_gate", (hidden, width)), ("ffn_up", (hidden, width)), ("ffn_down", (width, hidden))):
            yield f"blk.{layer}.{name}.weight", dimensions


def values_of(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def format_of(name, shape, file_format):
    """The format of a tensor in a file."""
    if len(shape) == 1:
        return F32
    return file_format.embedding if name == "token_embd.weight" else file_format.matrix


def data_of(rng, shape, kind):
    """Random values. The scale of blocks is one with which no sum overflows: time does not depend on it."""
    if kind == F32:
        size = values_of(shape)
        weights = array("f", (rng.gauss(0, 0.02) for _ in range(size)) if len(shape) > 1 else (1.0 for _ in range(size)))
        if sys.byteorder == "big":
            weights.byteswap()
        return weights.tobytes()
    rows, blocks = shape[0], shape[1] // kind.values
    data = bytearray(b"".join(rng.randbytes(blocks * kind.size) for _ in range(rows)))
    for byte, of_scale in enumerate(struct.pack("<e", 2e-4)):
        data[kind.scale + byte :: kind.size] = bytes([of_scale]) * (rows * blocks)
    return data


def value(kind, given):
    if kind == STRING:
        text = given.encode()
        return struct.pack("<Q", len(text)) + text
    if isinstance(kind, tuple):
        return struct.pack("<IQ", kind[1], len(given)) + b"".join(value(kind[1], item) for item in given)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f"}[kind], given)


def padded(data):
    return data + bytes(-len(data) % 32)


def main(path, shape=Shape(SIZES), file_format="f32"):
    file_format = FILE_FORMATS[file_format]
    rng, directory, described = random.Random(0), list(tensors(shape)), keys(shape, file_format)
    formats = [format_of(name, dimensions, file_format) for name, dimensions in directory]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(directory), len(described))
    for key, kind, given in described:
        head += value(STRING, key) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind) + value(kind, given)
    offset = 0
    for (name, dimensions), kind in zip(directory, formats):
        head += value(STRING, name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *reversed(dimensions), kind.number, offset)
        offset += -(-values_of(dimensions) // kind.values * kind.size // 32) * 32
    with open(path, "wb") as file:
        file.write(padded(head))
        for (_, dimensions), kind in zip(directory, formats):
            file.write(padded(data_of(rng, dimensions, kind)))


if __name__ == "__main__":
    main(sys.argv[1], *([LLAMA_1B, sys.argv[2]] if len(sys.argv) > 2 else []))
