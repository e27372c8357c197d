"""Measures llama.cpp's server on this processor and compares it with predictions: `measure.py PROGRAM SERVER FOLDER [short]`.

The model has the shape of Llama-3.2-1B and random weights, once in Q4_0 and once in Q8_0. PROGRAM (mantile-opt) detects the
machine, predicts each load, starts the server from its own files and measures it. A run whose repeats disagree is repeated.
Then half of the runs calibrate the runtime's profile, with which the other half is predicted again. Exits 1 where a median
error is beyond its limit, or no run is stable.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import tiny_model

# Largest median error as a share of what was measured: as shipped, and of the other half of the runs after calibration.
LIMITS = {"tpot": 0.25, "ttft": 0.35}
CALIBRATED = {"tpot": 0.06, "ttft": 0.10}
MOST_REPEATS = int(os.environ.get("MANTILE_MEASURED_REPEATS", "30"))
SEVERAL = {"formats": ("q4_0", "q8_0"), "isl": (64, 128, 256, 384, 512), "osl": 32, "clients": (1, 2)}
SHORT = {"formats": ("q4_0",), "isl": (64, 128, 256, 384), "osl": 16, "clients": (1,)}


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


def bench(program, model, load, runs, hardware="local"):
    """Measures a load once; its record, which is the last of RUNS."""
    isl, osl, clients = load
    program.run("bench", "--launch", "--protocol", "completions", "--model", str(model), "--hardware", hardware, "--runtime",
                "llama.cpp", "--isl", str(isl), "--osl", str(osl), "--concurrency", str(clients), "--out", str(runs))
    return records(runs)[-1]


def measured(program, model, load, runs, hardware):
    """Measures a load until its repeats agree; whether they did. A server that does not start is not started again."""
    for _ in range(MOST_REPEATS):
        last = bench(program, model, load, runs, hardware)
        if is_stable(last) or last["outcome"] != "measured":
            break
    return is_stable(last)


def errors(found, name):
    """Errors of the predictions that were made before, as shares of what was measured."""
    return [abs(record["prediction"][f"{name}_ms"] / record["metrics"][f"{name}_ms_p50"] - 1) for record in found]


def errors_after(program, model, found, folder, hardware):
    """Errors by latency of every second run, predicted by a profile that the others calibrated."""
    halves = [folder / f"{model.stem}-{half}.jsonl" for half in ("fitted", "predicted")]
    for half, path in enumerate(halves):
        path.write_text("".join(json.dumps(record) + "\n" for record in found[half::2]))
    home, rows = folder / "home", folder / f"{model.stem}-rows.csv"
    profile = home / "hardware/runtimes/llama.cpp.json"
    profile.parent.mkdir(parents=True, exist_ok=True)
    given = ("--model", str(model), "--hardware", hardware)
    program.run("calibrate", str(halves[0]), *given, "--out", str(profile), MANTILE_HOME=str(home))
    program.run("validate", str(halves[1]), *given, "--rows", str(rows), MANTILE_HOME=str(home))
    with rows.open(newline="") as file:
        lines = list(csv.DictReader(file))
    of = lambda line, name: abs(float(line[f"{name}_ms_predicted"]) / float(line[f"{name}_ms"]) - 1)
    return {name: [of(line, name) for line in lines] for name in LIMITS}


def beyond(shares, limits, which):
    """The latencies whose median error is beyond its limit."""
    found = []
    for name, limit in limits.items():
        print(f"{which}: {name}: median error {median(shares[name]):.3f}, largest {max(shares[name]):.3f} of {len(shares[name])} runs")
        found += [f"{which}: {name}"] if median(shares[name]) > limit else []
    return found


def main(program, server, folder, short=None):
    folder, case = Path(folder).resolve(), SHORT if short else SEVERAL
    folder.mkdir(parents=True, exist_ok=True)
    program, unstable, faults = Program(program, server), [], []
    before, after = ({name: [] for name in LIMITS} for _ in range(2))
    # Detected once: another bandwidth for each load would not be what a calibration corrects.
    hardware = str(folder / "machine.json")
    program.run("detect", "--out", hardware)
    for name in case["formats"]:
        model, runs = folder / f"llama-1b-{name}.gguf", folder / f"runs-{name}.jsonl"
        runs.unlink(missing_ok=True)
        if not model.exists():
            tiny_model.main(model, tiny_model.LLAMA_1B, name)
        loads = [(isl, case["osl"], clients) for clients in case["clients"] for isl in case["isl"]]
        unstable += [(name, load) for load in loads if not measured(program, model, load, runs, hardware)]
        found = [record for record in records(runs) if is_stable(record)]
        if len(found) < 2:
            faults.append(f"{name}: {len(found)} stable runs")
            continue
        for latency, shares in errors_after(program, model, found, folder, hardware).items():
            before[latency] += errors(found, latency)
            after[latency] += shares
    if after["tpot"]:
        faults += beyond(before, LIMITS, "as shipped") + beyond(after, CALIBRATED, "calibrated")
    print("loads without a stable run:", unstable or "none", "\nbeyond the limit:", faults or "none")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
