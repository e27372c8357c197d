"""Sweeps that outgrow one machine: shards on an executor, kept in a folder, merged in order."""

from __future__ import annotations

import json
import os
import queue
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from . import _mantile
from ._answer import Answer
from ._errors import MantileError
from ._requests import TABLE, _body, places, request

#: Calls of this process that ended early: a shard that one of its own threads computes ends too.
_ENDED: set[str] = set()
#: How often a call that waits looks for Ctrl-C where the system does not wake it, in seconds.
_SIGNALS_EVERY = 0.2


def _shard(body: dict[str, Any], call: str) -> str:
    """The answer of one shard; runs on a worker."""

    def seen(done: int, all: int) -> None:
        if call in _ENDED:
            raise CancelledError(f"the sweep ended after {done} of {all} points of this shard")

    return request("sweep", body, seen).to_json()


def _submitter(executor: Any) -> Callable[..., tuple[Any, Callable[[], Any]]]:
    """A function that hands work to the executor: it returns a future, and what cancels it."""
    if hasattr(executor, "submit"):

        def submitted(*work: Any) -> tuple[Any, Callable[[], Any]]:
            future = executor.submit(*work)
            return future, getattr(future, "cancel", lambda: None)

    elif hasattr(executor, "remote") and hasattr(executor, "cancel"):
        tasks: dict[Any, Any] = {}

        def submitted(function: Any, *arguments: Any) -> tuple[Any, Callable[[], Any]]:
            task = tasks.setdefault(function, executor.remote(function))
            reference = task.remote(*arguments)
            return reference.future(), lambda: executor.cancel(reference)

    else:
        raise TypeError(f"executor: {type(executor).__name__} has no submit(function, *arguments), nor is it Ray")
    return submitted


def _when_done(future: Any, then: Callable[[], None]) -> None:
    if hasattr(future, "add_done_callback"):
        future.add_done_callback(lambda _: then())
        return

    def wait() -> None:
        try:
            future.result()
        except BaseException:
            pass  # raised again to the one who reads the result
        then()

    threading.Thread(target=wait, daemon=True).start()


def _kept(file: Path, name: str, shard: dict[str, int]) -> str | None:
    """The shard in a file; none where it is not there, not whole, or of another sweep."""
    try:
        text = file.read_text(encoding="utf-8")
        answer = json.loads(text)
        return text if (answer["sweep"], answer["shard"]) == (name, shard) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _computed(executor: Any, name: str, missing: dict[Path, dict[str, Any]]) -> dict[Path, str]:
    """The shards that are missing, each kept in its file as soon as it is computed, in whatever order."""
    call = uuid.uuid4().hex
    submit = _submitter(executor)
    found: dict[Path, str] = {}
    done: queue.SimpleQueue[Path] = queue.SimpleQueue()
    pending: dict[Path, tuple[Any, Callable[[], Any]]] = {}
    failed: Exception | None = None

    def keep(file: Path) -> None:
        text = pending[file][0].result()
        if json.loads(text)["sweep"] != name:
            raise RuntimeError("a worker has other files or another version than this process: it answered another sweep")
        Answer("sweep", text).save(file)
        found[file] = text

    try:
        for file, body in missing.items():
            pending[file] = submit(_shard, body, call)
            _when_done(pending[file][0], lambda file=file: done.put(file))
        while pending:
            try:
                file = done.get(timeout=_SIGNALS_EVERY)
            except queue.Empty:
                continue
            try:
                keep(file)
            except Exception as fault:  # the others are kept before it is raised
                failed = failed or fault
            del pending[file]
    except BaseException:
        _ENDED.add(call)
        for _, cancel in pending.values():
            cancel()
        for file, (future, _) in pending.items():
            try:
                if file not in found and getattr(future, "done", bool)():
                    keep(file)
            except Exception:
                pass  # cancelled, or failed: the interruption is what is raised
        raise
    if failed is not None:
        # Ray wraps the exception of a task.
        cause = getattr(failed, "cause", None)
        raise cause if isinstance(cause, MantileError) else failed
    return found


def sharded_sweep(executor: Any, *, shards: int, directory: str | os.PathLike, **arguments: Any) -> Answer:
    """The same answer as `sweep`, byte for byte, computed in shards by `executor`.

    `executor` is one of `concurrent.futures`, a `dask.distributed.Client`, the module `ray`, or anything else with
    `submit(function, *arguments)` that returns a future with `result()`. Every shard is a file in `directory` as soon
    as it is finished: a call that is repeated after an interruption or a failure computes only what is missing.
    """
    if shards < 1:
        raise ValueError("shards: at least 1")
    schema = next(entry["request"] for entry in TABLE if entry["name"] == "sweep")
    body = _body("sweep", places(schema), arguments)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    name = _mantile.fingerprint(json.dumps(body))
    texts: dict[Path, str | None] = {}
    missing: dict[Path, dict[str, Any]] = {}
    for number in range(1, shards + 1):
        shard = {"number": number, "of": shards}
        file = folder / f"{name}-{number}-of-{shards}.json"
        texts[file] = _kept(file, name, shard)
        if texts[file] is None:
            missing[file] = {**body, "shard": shard}
    texts.update(_computed(executor, name, missing))
    return Answer("sweep", _mantile.merged(list(texts.values())))
