"""Compares what `mantile-opt inspect` says of a configuration with what transformers builds of it.

    python .ci/models/compare.py target/debug/mantile-opt ROWS.jsonl [--out TABLE.md] [--verdicts V.jsonl]

A row of ROWS is one of meta.py. Its outcome:

| outcome | when |
|---|---|
| exact | the number of parameters is transformers' own, and so is every shape |
| shapes | the numbers agree, the multisets of shapes do not; a joined matrix is compared as its parts |
| refused | an error, with its key, value and words |
| wrong | another number |

Modules that checkpoints store and transformers leave out (multi-token prediction) are not in the number of the product.
Exits non-zero where a row is wrong.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys
import tempfile

KINDS = ["decoder", "multimodal decoder", "encoder", "encoder-decoder", "diffusion", "audio", "vision", "other"]
OUTCOMES = ["exact", "shapes", "refused", "wrong", "not built"]


def inspect(binary, config):
    """The answer, or the error."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(config, file)
        done = subprocess.run([binary, "inspect", path, "--json", "--no-config", "--quiet"], capture_output=True,
                              text=True, timeout=60)
    if done.returncode == 0:
        return json.loads(done.stdout), None
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return None, " | ".join(lines).replace(folder + "/", "")


def weights(answer):
    """Shapes of the product's weights, each once: layers may share them."""
    return collections.Counter(plain(weight["shape"]) for weight in answer["tensors"] if not weight["buffer"])


def plain(shape):
    """A shape without sides of one, so that a norm of one row is a norm."""
    return tuple(side for side in shape if side != 1)


def rows(shapes, turned=False):
    """Rows by width of a row, so that a matrix equals the sum of the parts that it joins; `turned` for those that are
    stored transposed: the narrower side is the width."""
    found = collections.Counter()
    for shape, times in shapes.items():
        shape = tuple(sorted(shape, reverse=True)) if turned else shape
        width = shape[-1] if len(shape) > 1 else 1
        found[width] += times * math.prod(shape) // width
    return found


def of_checkpoint(row):
    """The row without rows of matrices that checkpoints do not have: LongCat's experts without weights."""
    if row["type"] != "longcat_flash" or "parameters" not in row:
        return row
    experts = row["config"]["n_routed_experts"]
    cut = [(name, [experts, *shape[1:]] if name.endswith("experts.gate_up_proj") else shape)
           for name, shape in row["parameters"]]
    return row | {"parameters": cut, "total": sum(math.prod(shape) for _, shape in cut)}


def verdict(binary, row):
    if "error" in row:
        return "not built", row["error"]
    row = of_checkpoint(row)
    try:
        answer, error = inspect(binary, row["config"])
    except subprocess.TimeoutExpired:
        return "wrong", "no answer in 60 s"
    if error:
        return "refused", error
    stated = answer["parameters"]
    unique = stated["unique"]
    if unique != row["total"]:
        return "wrong", f"transformers {row['total']}, product {unique} ({unique - row['total']:+}), {stated}"
    if answer["towers"] or not row["parameters"]:
        return "exact", ""
    theirs = collections.Counter(plain(shape) for _, shape in row["parameters"])
    ours = weights(answer)
    extra, missing = ours - theirs, theirs - ours
    if rows(extra) != rows(missing) and rows(extra, True) != rows(missing, True):
        return "shapes", f"only product {dict(extra.most_common(4))}, only transformers {dict(missing.most_common(4))}"
    return "exact", ""


def reason(words):
    """The refusal without its list of known names."""
    return re.sub(r"one of [a-z0-9_., -]{80,}", "one of …", words)[:260]


def table(rows, verdicts):
    lines = []
    for form in ["full", "short", "bare", "perturbed", "tied"]:
        count = collections.Counter((row["kind"], outcome) for row, (outcome, _) in zip(rows, verdicts)
                                    if row.get("form", "full") == form)
        if not count:
            continue
        lines += [f"\n## {form}\n", f"| kind | {' | '.join(OUTCOMES)} |", "|---|" + "--:|" * len(OUTCOMES)]
        for kind in KINDS:
            if any(count[kind, outcome] for outcome in OUTCOMES):
                lines.append(f"| {kind} | " + " | ".join(str(count[kind, outcome]) for outcome in OUTCOMES) + " |")
        lines += ["\n| type | class | kind | outcome | why |", "|---|---|---|---|---|"]
        for row, (outcome, why) in zip(rows, verdicts):
            if row.get("form", "full") == form and outcome != "exact":
                seed = f" (seed {row['seed']})" if row.get("seed") is not None else ""
                why = reason(why).replace("|", "/").replace("\n", " ")
                lines.append(f"| {row['type']}{seed} | {row['class']} | {row['kind']} | {outcome} | {why} |")
        exact = [row["type"] for row, (outcome, _) in zip(rows, verdicts)
                 if row.get("form", "full") == form and outcome == "exact"]
        names = dict.fromkeys(exact)
        lines.append(f"\nexact ({len(exact)}): {', '.join(names)}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("rows")
    parser.add_argument("--out")
    parser.add_argument("--verdicts")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    with open(options.rows) as file:
        rows = [json.loads(line) for line in file]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda row: verdict(binary, row), rows))
    text = table(rows, verdicts)
    if options.out:
        with open(options.out, "w") as out:
            out.write(text)
    if options.verdicts:
        with open(options.verdicts, "w") as out:
            for row, (outcome, why) in zip(rows, verdicts):
                out.write(json.dumps({key: row.get(key) for key in ["type", "kind", "class", "form", "seed"]}
                                     | {"outcome": outcome, "why": why}) + "\n")
    print(text if not options.out else "\n".join(
        line for line in text.splitlines() if re.match(r"\| [a-z -]+ \|( \d+ \|)+$|## ", line)))
    return 1 if any(outcome in ["wrong", "shapes"] for outcome, _ in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
