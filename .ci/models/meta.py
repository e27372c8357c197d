"""Writes what transformers builds of a configuration: names and shapes of all parameters, as JSON lines.

    python .ci/models/meta.py OUT.jsonl                    default configurations, in both forms of the file
    python .ci/models/meta.py OUT.jsonl --perturb 8        as many perturbed ones of every class
    python .ci/models/meta.py OUT.jsonl --tied             tied heads, by the file and by its text section
    python .ci/models/meta.py OUT.jsonl --only llama,qwen3 of these types only
    python .ci/models/meta.py OUT.jsonl --kinds all        also of types that generate no text

The models are built on torch's meta device, without memory for weights. Each type has a process of its own with a time
limit; a type that fails has a row with `error`. A perturbed configuration that transformers refuses is left out.

A row: `type`, `kind` (kinds.py), `class`, `form`, `seed`, `config`, `parameters` (name and shape; tied ones once),
`buffers` (those that a checkpoint stores), `total`. Forms: `full` has every key, `short` is what `save_pretrained`
writes, `bare` leaves out of its sections what the section's class defaults to; `perturbed`, `tied`.
"""

import argparse
import json
import logging
import os
import random
import resource
import signal
import sys
import warnings

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
warnings.filterwarnings("ignore")

import torch
import transformers

import kinds
import perturb

transformers.logging.set_verbosity(logging.CRITICAL)
TIME = 120
# Keys without which a class does not build its own default configuration.
with open(os.path.join(os.path.dirname(__file__), "repairs.json")) as file:
    REPAIRS = json.load(file)
GENERATING = ["decoder", "multimodal decoder", "encoder-decoder", "diffusion"]


def build(config, name):
    """The model's parameters and stored buffers."""
    with torch.device("meta"):
        model = getattr(transformers, name)(config)
    unsaved = {f"{at}.{key}".lstrip(".") for at, module in model.named_modules()
               for key in module._non_persistent_buffers_set}
    shapes = lambda named: [[key, list(value.shape)] for key, value in named]
    buffers = [(key, value) for key, value in model.named_buffers() if key not in unsaved]
    return shapes(model.named_parameters()), shapes(buffers)


def file_of(config, name, short=False):
    """config.json as `save_pretrained` writes it, with all keys unless `short`."""
    config.architectures = [name]
    return json.loads(config.to_json_string(use_diff=short))


def read(model_type, stated):
    """The configuration of a file, as `from_pretrained` reads it."""
    return kinds.CONFIG_MAPPING[model_type].from_dict(floats(json.loads(json.dumps(stated))))


def floats(value):
    """Numbers that JSON cannot write, from the form that transformers gives them."""
    if isinstance(value, dict):
        return float(value["__float__"]) if "__float__" in value else {key: floats(one) for key, one in value.items()}
    return [floats(one) for one in value] if isinstance(value, list) else value


def row(model_type, name, form, config, stated, seed=None):
    parameters, buffers = build(config, name)
    total = sum(perturb.product(shape) for _, shape in parameters)
    found = {"type": model_type, "kind": kinds.kind(model_type), "class": name, "form": form, "seed": seed}
    return found | {"config": stated, "total": total, "parameters": parameters, "buffers": buffers}


def default_rows(model_type, name):
    config = kinds.CONFIG_MAPPING[model_type](**REPAIRS.get(model_type, {}))
    full, short = file_of(config, name), file_of(config, name, short=True)
    yield row(model_type, name, "full", config, full)
    if short != full:
        yield row(model_type, name, "short", read(model_type, short), short)
    bare = without_defaults(short)
    if bare != short:
        yield row(model_type, name, "bare", read(model_type, bare), bare)


def without_defaults(stated):
    """The file with sections that leave out what equals the default of their class, as transformers 4 wrote them."""
    bare = {}
    for key, value in stated.items():
        if isinstance(value, dict) and value.get("model_type") in kinds.CONFIG_MAPPING:
            usual = json.loads(kinds.CONFIG_MAPPING[value["model_type"]]().to_json_string(use_diff=False))
            value = {one: found for one, found in value.items() if one == "model_type" or usual.get(one) != found}
        bare[key] = value
    return bare


def perturbed_rows(model_type, name, number):
    """Up to `number` rows; a draw that transformers refuses is repeated with the next seed."""
    cls = kinds.CONFIG_MAPPING[model_type]
    written, why = 0, None
    for seed in range(4 * number):
        draw = random.Random(f"{model_type} {name} {seed}")
        drawn = perturb.perturbed(file_of(cls(**REPAIRS.get(model_type, {})), name), draw)
        try:
            yield row(model_type, name, "perturbed", read(model_type, drawn), drawn, seed)
            written += 1
        except Exception as error:
            why = error
        if written == number:
            return
    if written == 0:
        raise RuntimeError(f"no perturbed configuration: {why}")


def tied_rows(model_type, name):
    """A head that is tied, not tied, or left to the class, by the file and by its text section; totals only."""
    full = file_of(kinds.CONFIG_MAPPING[model_type](**REPAIRS.get(model_type, {})), name, short=True)
    inside = next((key for key in ["text_config", "llm_config"] if isinstance(full.get(key), dict)), None)
    for outer in [True, False, None]:
        for inner in [True, False, None] if inside else [None]:
            stated = json.loads(json.dumps(full))
            for section, value in [(stated, outer)] + ([(stated[inside], inner)] if inside else []):
                section.pop("tie_word_embeddings", None)
                if value is not None:
                    section["tie_word_embeddings"] = value
            found = row(model_type, name, "tied", read(model_type, stated), stated, f"{outer} {inner}")
            yield found | {"parameters": []}


def work(model_type, options, path):
    """The rows of one type, in a process of its own."""
    signal.alarm(options.time)
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    with open(path, "w") as out:
        for name in kinds.heads(model_type):
            if options.tied:
                rows = tied_rows(model_type, name)
            elif options.perturb:
                rows = perturbed_rows(model_type, name, options.perturb)
            else:
                rows = default_rows(model_type, name)
            try:
                for found in rows:
                    out.write(json.dumps(found) + "\n")
                    out.flush()
            except Exception as error:
                failed = {"type": model_type, "kind": kinds.kind(model_type), "class": name}
                out.write(json.dumps(failed | {"error": f"{type(error).__name__}: {error}"[:500]}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--perturb", type=int, default=0)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default=",".join(GENERATING), help="all for every kind")
    parser.add_argument("--time", type=int, default=TIME)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    only = list(dict.fromkeys(name for name in options.only.split(",") if name))
    chosen = kinds.KINDS if options.kinds == "all" else options.kinds.split(",")
    names = only or [name for name in kinds.types() if kinds.head(name) and kinds.kind(name) in chosen]
    running, parts = {}, {}
    waiting = list(names)
    while waiting or running:
        while waiting and len(running) < options.processes:
            name = waiting.pop(0)
            parts[name] = f"{options.out}.{name.replace('/', '_')}.part"
            process = os.fork()
            if process == 0:
                work(name, options, parts[name])
                os._exit(0)
            running[process] = name
        process, status = os.wait()
        name = running.pop(process)
        if status:
            with open(parts[name], "a") as out:
                out.write(json.dumps({"type": name, "kind": kinds.kind(name), "class": kinds.head(name),
                                      "error": f"ended with {status}, time limit {options.time} s"}) + "\n")
    with open(options.out, "w") as out:
        for name in names:
            with open(parts[name]) as part:
                out.write(part.read())
            os.remove(parts[name])
    print(f"{len(names)} types", file=sys.stderr)


if __name__ == "__main__":
    main()
