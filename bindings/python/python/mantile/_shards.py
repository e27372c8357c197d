"""Sweeps that outgrow one machine: shards on an executor, kept in a folder, merged in order."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ._answer import Answer
from ._requests import TABLE, _body, places, request


def _shard(body: dict[str, Any]) -> str:
    """The answer of one shard; runs on a worker."""
    return request("sweep", body).to_json()


def sharded_sweep(executor: Any, *, shards: int, directory: str | os.PathLike, **arguments: Any) -> Answer:
    """The same answer as `sweep`, computed in shards by `executor`.

    `executor` has `submit(function, argument)` that returns a future with `result()`: a `dask.distributed.Client`, or an
    executor of `concurrent.futures`. Every finished shard is a file in `directory`: a call that is repeated after an
    interruption computes only what is missing.
    """
    if shards < 1:
        raise ValueError("shards: at least 1")
    schema = next(entry["request"] for entry in TABLE if entry["name"] == "sweep")
    body = _body("sweep", places(schema), arguments)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{digest}-{number}-of-{shards}.json" for number in range(1, shards + 1)]
    pending = {}
    for number, file in enumerate(files, 1):
        if not file.exists():
            shard = {**body, "shard": {"number": number, "of": shards}}
            pending[file] = executor.submit(_shard, shard)
    failed: BaseException | None = None
    for file, future in pending.items():
        try:
            Answer("sweep", future.result()).save(file)
        except Exception as fault:  # the others are kept before it is raised
            failed = failed or fault
    if failed is not None:
        raise failed
    parts = [json.loads(file.read_text()) for file in files]
    rows = sorted((row for part in parts for row in part["rows"]), key=lambda row: row["point"])
    whole = {key: value for key, value in parts[0].items() if key not in ("shard", "rows")}
    text = json.dumps({**whole, "rows": rows}, indent=2, ensure_ascii=False) + "\n"
    return Answer("sweep", text)


