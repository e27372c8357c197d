"""The short form of measure.py: `bench.py PROGRAM SERVER FOLDER`. PROGRAM (mantile-opt) starts llama.cpp's server with a
tiny model from its own files, measures it and stops it. How fast it is proves nothing here: what is checked is that the
record is whole. Exits 1 where it is not.
"""

import sys
from pathlib import Path

import tiny_model
from measure import Program, bench

TOKENS, ANSWERED = 8, 10


def facts(record):
    """What a whole record has, by name."""
    method, requests, settings = (record.get(key) or {} for key in ("method", "requests", "resolved_settings"))
    return {
        "it was measured": record["outcome"] == "measured",
        "its prediction was made before": (record.get("prediction") or {}).get("tpot_ms", 0) > 0,
        "TTFT and TPOT": all(record["metrics"][f"{name}_ms_p50"] > 0 for name in ("ttft", "tpot")),
        "every request was answered": requests.get("answered", 0) >= ANSWERED and not requests.get("timed_out"),
        "answers have the stated length": method.get("fixed_length") and record["output_tokens"] == TOKENS,
        "the server counted the tokens": method.get("counted_by_server"),
        "the server states its settings": len(settings) > 0,
        "runtime": record["runtime_id"] == "llama.cpp",
    }


def main(program, server, folder):
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    model, runs = folder / "tiny.gguf", folder / "runs.jsonl"
    runs.unlink(missing_ok=True)
    tiny_model.main(model)
    record = bench(Program(program, server), model, (32, TOKENS, 1), runs)
    missing = [name for name, holds in facts(record).items() if not holds]
    for name in missing:
        print(f"not so: {name}", file=sys.stderr)
    print(f"{int(not missing)} passed, {int(bool(missing))} failed")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
