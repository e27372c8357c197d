"""Measures llama.cpp's server on this processor and compares it with its prediction: `measure.py PROGRAM SERVER FOLDER [short]`.

The model has the shape of Llama-3.2-1B and random weights, once in Q4_0 and once in Q8_0. PROGRAM (mantile-opt) detects the
machine, predicts each load, starts the server from its own files and measures it. A run whose repeats disagree is repeated.
Exits 1 where a median error is beyond its limit, or no run is stable.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import tiny_model

# Largest median error as a share of what was measured.
LIMITS = {"tpot": 0.25, "ttft": 0.35}
MOST_REPEATS = 5
SEVERAL = {"formats": ("q4_0", "q8_0"), "isl": (64, 256, 512), "osl": 32, "clients": (1, 2)}
SHORT = {"formats": ("q4_0",), "isl": (64, 256), "osl": 16, "clients": (1,)}


class Program:
    """mantile-opt, with llama.cpp's server where its launch files find it."""

    def __init__(self, path, server):
        self.path = str(Path(path).resolve())
        self.env = {**os.environ, "PATH": f"{Path(server).resolve().parent}:{os.environ['PATH']}"}

    def run(self, *words, **env):
        print("$ mantile-opt", *words, flush=True)
        subprocess.run([self.path, *words], env={**self.env, **env}, check=False)


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def is_stable(record):
    return record["outcome"] == "measured" and (record.get("repeats") or {}).get("stable", False)


def measured(program, model, load, runs):
    """Measures a load until its repeats agree; whether they did. A server that does not start is not started again."""
    isl, osl, clients = load
    for _ in range(MOST_REPEATS):
        program.run("bench", "--launch", "--model", str(model), "--hardware", "local", "--runtime", "llama.cpp", "--isl", str(isl),
                    "--osl", str(osl), "--concurrency", str(clients), "--out", str(runs), MODEL=str(model))
        last = records(runs)[-1]
        if is_stable(last) or last["outcome"] != "measured":
            break
    return is_stable(last)


def errors(found, name):
    """Errors of the predictions that were made before, as shares of what was measured."""
    return [abs(record["prediction"][f"{name}_ms"] / record["metrics"][f"{name}_ms_p50"] - 1) for record in found]


def main(program, server, folder, short=None):
    folder, case = Path(folder).resolve(), SHORT if short else SEVERAL
    folder.mkdir(parents=True, exist_ok=True)
    program, runs = Program(program, server), folder / "runs.jsonl"
    runs.unlink(missing_ok=True)
    program.run("detect")
    unstable = []
    for name in case["formats"]:
        model = folder / f"llama-1b-{name}.gguf"
        if not model.exists():
            tiny_model.main(model, tiny_model.LLAMA_1B, name)
        for isl in case["isl"]:
            for clients in case["clients"]:
                load = isl, case["osl"], clients
                if not measured(program, model, load, runs):
                    unstable.append((name, load))
    found = [record for record in records(runs) if is_stable(record)]
    beyond = [] if found else ["no run is stable"]
    for name, limit in LIMITS.items() if found else ():
        shares = errors(found, name)
        print(f"{name}: median error {median(shares):.3f}, largest {max(shares):.3f} of {len(shares)} runs")
        beyond += [name] if median(shares) > limit else []
    print("loads without a stable run:", unstable or "none", "\nbeyond the limit:", beyond or "none")
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
