"""The functions: one for every request, with the keys of its schema as arguments."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from . import _mantile, types as _types  # noqa: F401  (declares the classes of answers)
from ._answer import Answer, class_of
from ._schema import FIRST, HARDWARE, MODELS, documentation, places, signature
from ._values import content, plain

Progress = Callable[[int, int], None]
#: Folders of the catalogue for hardware that is given as the content of its file, by a key of that file.
_HARDWARE_FOLDERS = {"members": "hardware/rigs", "devices_per_node": "hardware/systems", "memory": "hardware/devices"}


def request(name: str, body: Mapping[str, Any], progress: Progress | None = None) -> Answer:
    """The answer to the request `name` with this body, as `mantile-opt schema NAME-request` describes it."""
    return Answer(name, _mantile.answer(name, json.dumps(plain(body, name)), progress))


def _folder(key: str, given: Mapping[str, Any]) -> str:
    if key in MODELS:
        return "models"
    found = next((folder for part, folder in _HARDWARE_FOLDERS.items() if part in given), None)
    if found is None:
        expected = ", ".join(f"`{part}`" for part in _HARDWARE_FOLDERS)
        raise ValueError(f"{key}: the content of a device, system or rig has one of the keys {expected}")
    return found


def _named(key: str, value: Any, files: dict[str, Any]) -> Any:
    """The name of a model or hardware. Where its content is given instead, that becomes a file of the request."""
    if isinstance(value, (list, tuple)):
        return [_named(key, item, files) for item in value]
    given = content(value)
    if given is None:
        return plain(value, key)
    if given.get("answer") == "detect":
        given = given["file"]["content"]
    # A configuration may have infinities, as its own file would; JSON has none.
    given = json.loads(json.dumps(given, default=lambda item: plain(item, key)), parse_constant=lambda _: None)
    folder = _folder(key, given)
    stem = str(given.get("id") or given.get("_name_or_path") or given.get("model_type") or "given")
    stem = name = stem.rstrip("/").rsplit("/", 1)[-1] or "given"
    while files.get(f"{folder}/{name}", given) != given:
        name = f"{stem}-{key}" if name == stem else f"{name}-"
    files[f"{folder}/{name}"] = given
    return name


def _body(name: str, known: dict[str, tuple[str, ...]], given: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    files = dict(given.get("files") or {})
    # Whole objects first, so that single keys override theirs.
    for key, value in sorted(given.items(), key=lambda item: len(known.get(item[0], ()))):
        if key not in known:
            near = difflib.get_close_matches(key, known, 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise TypeError(f"{name}() has no argument `{key}`{hint}")
        if value is None:
            continue
        inside = body
        for part in known[key][:-1]:
            inside = inside.setdefault(part, {})
        inside[known[key][-1]] = _named(key, value, files) if key in MODELS + HARDWARE else plain(value, key)
    if files:
        body["files"] = plain(files, "files")
    return body


def _bound(name: str, known: dict[str, tuple[str, ...]], positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The body of a request with these arguments."""
    first = [key for key in known if key in FIRST]
    if len(positional) > len(first):
        raise TypeError(f"{name}() takes at most {len(first)} positional arguments")
    twice = [key for key, _ in zip(first, positional) if key in named]
    if twice:
        raise TypeError(f"{name}() got `{twice[0]}` twice")
    return _body(name, known, {**dict(zip(first, positional)), **named})


def _function(entry: dict[str, Any]) -> Callable[..., Answer]:
    name, known = entry["name"], places(entry["request"])

    def call(*positional: Any, progress: Progress | None = None, **named: Any) -> Answer:
        return Answer(name, _mantile.answer(name, json.dumps(_bound(name, known, positional, named)), progress))

    call.__name__ = call.__qualname__ = name
    call.__module__ = "mantile"
    call.__signature__ = signature(entry["request"], class_of(name).__name__)  # type: ignore[attr-defined]
    call.__doc__ = documentation(entry)
    return call


TABLE: list[dict[str, Any]] = json.loads(_mantile.requests())
FUNCTIONS: dict[str, Callable[..., Answer]] = {entry["name"]: _function(entry) for entry in TABLE}


def describe(function: Callable[..., Any], name: str) -> None:
    """Gives a function the arguments of a request in its signature and documentation, after those of its own."""
    entry = next(entry for entry in TABLE if entry["name"] == name)
    own = inspect.signature(function)
    mine = [one for one in own.parameters.values() if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    theirs = signature(entry["request"], own.return_annotation)
    rest = [one for one in theirs.parameters.values() if one.name != "progress"]
    rest = [one.replace(kind=one.KEYWORD_ONLY) for one in rest] if mine else rest
    theirs = theirs.replace(parameters=[*mine, *rest])
    function.__signature__ = theirs  # type: ignore[attr-defined]
    function.__doc__ = documentation(entry, inspect.cleandoc(function.__doc__ or ""))


def prepare(*positional: Any, **named: Any) -> _mantile.PreparedPlan:
    """A plan whose steps are priced one by one, in microseconds and with the numbers of `estimate`, for simulators that
    schedule requests themselves: `plan.step(prefill=[(tokens, context)], decode=[context])`."""
    schema = next(entry["request"] for entry in TABLE if entry["name"] == "estimate")
    return _mantile.PreparedPlan(json.dumps(_bound("prepare", places(schema), positional, named)))


describe(prepare, "estimate")
