"""Compares models that llama.cpp's converter writes with the configurations that they come from.

    python .ci/models/gguf.py target/debug/mantile-opt                          every case, as a table
    python .ci/models/gguf.py target/debug/mantile-opt --only gemma3,qwen3_next  of these types only
    python .ci/models/gguf.py target/debug/mantile-opt --out tests/data/gguf.jsonl

Each case of gguf_cases.json is a small model. Its weights, all zero, are those of transformers' class, in the names
of its checkpoints; a type that transformers does not have gets the names and shapes that the product lists. The
converter's own class for it (`conversion/` of llama.cpp, the version of .ci/llama/source.txt) writes the GGUF file,
without a vocabulary. Then the answer of `mantile-opt inspect` for the file is compared with that for the
configuration: parameters, KV cache, windows and state.

| outcome | when |
|---|---|
| equal | every compared number is the same |
| refused | the GGUF file is, with its reason |
| wrong | a number differs |
| not written | transformers, the product or the converter fails on the case |

`--out` writes the headers of the cases that are equal, one a line: `type`, `weights` (whose names and shapes),
`config`, `metadata` (what the reader may use), `tensors` (name and dimensions). Exits non-zero where one is wrong, or where a number
of the tables of types in src/store/gguf.json is not that of the converter's lists.
"""

import argparse
import json
import logging
import math
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import traceback
import warnings

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
warnings.filterwarnings("ignore")

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

transformers.logging.set_verbosity(logging.CRITICAL)
HERE = pathlib.Path(__file__).parent
NUMBERS = ["parameters", "kv_bytes_per_token", "kv_bytes_per_token_windowed", "state_bytes_per_sequence", "layers", "tied"]
# Texts and lists of the header that no reader of a shape uses.
UNUSED = ("general.", "tokenizer.")


def source(folder):
    """llama.cpp's converter in `folder`, from the published source archive."""
    if not (folder / "conversion").is_dir():
        with tempfile.TemporaryDirectory() as fresh:
            subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps",
                            "--no-binary=llama-cpp-python", "--require-hashes", "--dest", fresh, "-r",
                            HERE.parent / "llama" / "source.txt"], check=True)
            with tarfile.open(next(pathlib.Path(fresh).glob("*.tar.gz"))) as archive:
                for member in archive:
                    inside = member.name.partition("/vendor/llama.cpp/")[2]
                    if member.isfile() and inside.startswith(("conversion/", "gguf-py/")):
                        member.name = inside
                        archive.extract(member, folder, filter="data")
    sys.path[:0] = [str(folder), str(folder / "gguf-py")]


def inspect(binary, path):
    """The answer, or the error."""
    done = subprocess.run([binary, "inspect", path, "--json", "--no-config", "--quiet"], capture_output=True, text=True,
                          timeout=300)
    if done.returncode == 0:
        return json.loads(done.stdout), None
    fault = json.loads(done.stderr or done.stdout)["error"]
    return None, f"{fault['key']}: {fault['found']}; expected {fault['expected']}"


def built(case, folder, binary):
    """Saves the case as transformers' own class does; its config.json."""
    config = CONFIG_MAPPING[case["type"]].from_dict({"model_type": case["type"], **case["config"]})
    config.architectures = [case["class"]]
    model = getattr(transformers, case["class"])(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config.update({"architectures": [case.get("written", case["class"])], **case.get("also", {})})
    path = folder / "model.safetensors"
    weights = load_file(path)
    if "turned" in case:
        weights = {name: value.transpose(1, 2).contiguous() if name.endswith(tuple(case["turned"])) else value
                   for name, value in weights.items()}
    if "mtp" in case:
        weights |= of_product(config | case["mtp"], folder, binary, "mtp")
        config |= case["mtp"]
    save_file(weights, path)
    return config


def listed(case, folder, binary):
    """Saves the weights that the product lists for the case; its config.json."""
    config = {"architectures": [case["class"]], "model_type": case["type"], "torch_dtype": "bfloat16", **case["config"]}
    weights = of_product(config, folder, binary, "tensors", case.get("stacked", False))
    if "mtp" in case:
        config |= case["mtp"]
        weights |= of_product(config, folder, binary, "mtp")
    for old, new in case.get("renamed", {}).items():
        weights = {re.sub(old, new, name): value for name, value in weights.items()}
    if "packed" in case:
        weights = dict(pair for name, value in weights.items() for pair in packed(case["packed"], name, value))
    save_file(weights, folder / "model.safetensors")
    return config


def packed(pattern, name, value):
    """A matrix of this name in four bits, two to a byte, with a scale for each 32."""
    if not re.search(pattern, name):
        return [(name, value)]
    rows, width = value.shape
    scale = name.removesuffix("weight") + "scale"
    return [(name, torch.zeros([rows, width // 2], dtype=torch.uint8)),
            (scale, torch.zeros([rows, width // 32], dtype=torch.uint8))]


def of_product(config, folder, binary, which, stacked=False):
    """The weights that the product lists, those of an expert each on their own as in most checkpoints."""
    (folder / "config.json").write_text(json.dumps(config))
    answer, error = inspect(binary, str(folder / "config.json"))
    if error:
        raise RuntimeError(error)
    weights = {}
    for weight in answer[which] or []:
        name, shape = weight["name"], weight["shape"]
        layer, found, matrix = name.partition(".experts.")
        if not found or matrix not in ["gate_up_proj", "up_proj", "down_proj"]:
            weights[name] = torch.zeros(shape, dtype=torch.bfloat16)
            continue
        for part in ["gate_proj", "up_proj"] if matrix == "gate_up_proj" else [matrix]:
            sides = [shape[0], shape[1] // (2 if matrix == "gate_up_proj" else 1), shape[2]]
            every = torch.zeros(sides, dtype=torch.bfloat16)
            several = {"": every} if stacked else {f".{expert}": every[expert].clone() for expert in range(shape[0])}
            weights |= {f"{layer}.experts{expert}.{part}.weight": value for expert, value in several.items()}
    return weights


def converted(case, config, folder):
    """The path of the GGUF file of a saved model. A type of the publisher's own code has the keys of its file alone."""
    import gguf
    from conversion import ModelType, get_model_architecture, get_model_class
    from conversion.base import ModelBase
    (folder / "config.json").write_text(json.dumps(config))
    tokens = {f"token {at}": at for at in range(case.get("tokens", 272))}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": tokens}, "added_tokens": []}))
    hparams = json.loads(json.dumps(config)) if case.get("own_code") else ModelBase.load_hparams(folder, False)
    cls = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    path = folder / "model.gguf"
    model = cls(folder, gguf.LlamaFileType.MOSTLY_BF16, path, hparams=hparams)
    # A class may wrap another.
    for one in [model, getattr(model, "impl", model)]:
        one.set_vocab = lambda: None
    model.write()
    return path


def header(path):
    """Metadata of the architecture, and tensors with dimensions."""
    import gguf
    reader = gguf.GGUFReader(path)
    kept = {}
    for key, field in reader.fields.items():
        if key.startswith(UNUSED) and key not in ["general.architecture", "general.file_type"] or "." not in key:
            continue
        kind, value = field.types[-1], field.contents()
        # JSON has no number for a fraction without bounds: such lists are left out as single fractions are.
        endless = isinstance(value, list) and any(isinstance(one, float) and not math.isfinite(one) for one in value)
        if key.startswith("GGUF.") or isinstance(value, float) or endless:
            continue
        kept[key] = value
    return kept, [[tensor.name, [int(side) for side in tensor.shape]] for tensor in reader.tensors]


def verdict(case, binary):
    """The outcome, its reason, and the row of `--out`."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            config = (listed if case.get("listed") else built)(case, folder, binary)
            path = converted(case, config, folder)
            metadata, tensors = header(path)
        except Exception as error:
            logging.debug("%s", traceback.format_exc())
            return "not written", f"{type(error).__name__}: {error}", None
        if "language" in case:
            model_type, name = case["language"]
            config = config["text_config"] | {"model_type": model_type, "architectures": [name]}
        (folder / "config.json").write_text(json.dumps(config))
        row = {"type": case["type"], "weights": "product" if case.get("listed") else "transformers",
               "config": config, "metadata": metadata, "tensors": tensors}
        own, error = inspect(binary, str(folder / "config.json"))
        if error:
            return "not written", f"config.json: {error}", row
        found, error = inspect(binary, str(path))
    if error:
        return "refused", error, row
    wrong = [f"{key}: config {own[key]}, GGUF {found[key]}" for key in NUMBERS if own[key] != found[key]]
    wrong += windows(own, found)
    return ("wrong", "; ".join(wrong), row) if wrong else ("equal", "", row)


def windows(own, found):
    """Where a layer attends over another window, or keeps another cache or state."""
    def by_layer(answer):
        return {layer: (block["window"], block["kv_bytes_per_token"], block["state_bytes_per_sequence"], block["parameters"])
                for block in answer["blocks"] for layer in block["layers"]}
    a, b = by_layer(own), by_layer(found)
    return [f"layer {layer}: config {a.get(layer)}, GGUF {b.get(layer)}" for layer in sorted({*a, *b})
            if a.get(layer) != b.get(layer)]


def misnamed():
    """Numbers of the product's tables of types that mean another format in the converter's own lists."""
    import gguf
    tables = json.loads((HERE.parent.parent / "src/store/gguf.json").read_text())
    plain = {"fp32": "F32", "fp16": "F16"}
    found = []
    for table, known in [("tensor_types", gguf.GGMLQuantizationType), ("file_types", gguf.LlamaFileType)]:
        for number, name in tables[table].items():
            own = known(int(number)).name.removeprefix("ALL_").removeprefix("MOSTLY_")
            stated = plain.get(name, name.removeprefix("gguf-").upper())
            # A file's type says how its tensors are mixed, a tensor's does not.
            if not (stated == own or table == "tensor_types" and stated.startswith(own + "_")):
                found.append(f"{table} {number}: {name}, not {own}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    parser.add_argument("--rows", help="to append every header to that was written, whatever its outcome")
    parser.add_argument("--source", default="target/llama.cpp-source", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if options.verbose else logging.CRITICAL)
    logging.disable(logging.NOTSET if options.verbose else logging.ERROR)
    source(options.source.absolute())
    if wrong := misnamed():
        sys.exit("\n".join(wrong))
    only = [name for name in options.only.split(",") if name]
    with open(HERE / "gguf_cases.json") as file:
        cases = [case for case in json.load(file) if not only or case["type"] in only]
    counted, rows = {}, []
    print("| type | architecture | weights | outcome | why |\n|---|---|---|---|---|")
    for case in cases:
        outcome, why, row = verdict(case, os.path.abspath(options.binary))
        counted[outcome] = counted.get(outcome, 0) + 1
        name = row["metadata"]["general.architecture"] if row else ""
        weights = "product" if case.get("listed") else "transformers"
        why = why.replace("|", "/").replace("\n", " ")[:600]
        print(f"| {case['type']} | {name} | {weights} | {outcome} | {why} |", flush=True)
        if row and options.rows:
            with open(options.rows, "a") as file:
                file.write(json.dumps(row) + "\n")
        rows += [row] if outcome == "equal" else []
    print("\n" + ", ".join(f"{outcome}: {count}" for outcome, count in sorted(counted.items())))
    if options.out:
        fresh = f"{options.out}.fresh"
        with open(fresh, "w") as file:
            file.writelines(json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n" for row in rows)
        os.replace(fresh, options.out)
    return 1 if counted.get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
