"""The functions: one for every request, with the keys of its schema as arguments."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from typing import Any

from . import _mantile
from ._answer import Answer

#: Objects of a request whose keys are arguments too.
_NESTED = ("scenario", "fleet")
#: Arguments that come first, in this order, where a request has them.
_FIRST = ("model", "hardware", "kind", "name", "word", "link", "answer")
#: Pools of a deployment, by the beginning of their arguments.
_POOLS = {"": "both", "prefill_": "prefill", "decode_": "decode"}

Progress = Callable[[int, int], None]


def request(name: str, body: dict[str, Any], progress: Progress | None = None) -> Answer:
    """The answer to the request `name` with this body, as `mantile-opt schema NAME-request` describes it."""
    return Answer(name, _mantile.answer(name, json.dumps(body), progress))


def _properties(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """The keys of an object in a schema; those of every alternative, where it has several."""
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rsplit("/", 1)[1]]
    found = dict(part.get("properties", {}))
    for option in [*part.get("anyOf", []), *part.get("allOf", [])]:
        found.update(_properties(schema, option))
    return found


def places(schema: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The path in the body of every argument."""
    top = _properties(schema, schema)
    found: dict[str, tuple[str, ...]] = {}
    for outer in _NESTED:
        inner = _properties(schema, top[outer]) if outer in top else {}
        if "deployment" in inner:
            deployment = _properties(schema, inner["deployment"])
            for start, pool in _POOLS.items():
                for key in _properties(schema, deployment[pool]):
                    found[start + key] = (outer, "deployment", pool, key)
            for key in ("plan", "offload_part"):
                found[key] = (outer, "deployment", key)
        found.update({key: (outer, key) for key in inner})
    found.update({key: (key,) for key in top})
    first = {key: found[key] for key in _FIRST if key in found}
    return {**first, **found}


def _body(name: str, known: dict[str, tuple[str, ...]], given: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
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
        inside[known[key][-1]] = json.loads(json.dumps(value, default=_plain))
    return body


def _plain(value: Any) -> Any:
    """Answers and sets inside a request."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _function(entry: dict[str, Any]) -> Callable[..., Answer]:
    name, known = entry["name"], places(entry["request"])
    first = [key for key in known if key in _FIRST]

    def call(*positional: Any, progress: Progress | None = None, **given: Any) -> Answer:
        if len(positional) > len(first):
            raise TypeError(f"{name}() takes at most {len(first)} positional arguments")
        for key, value in zip(first, positional):
            if key in given:
                raise TypeError(f"{name}() got `{key}` twice")
            given[key] = value
        return request(name, _body(name, known, given), progress)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "mantile"
    call.__doc__ = f"{entry['about'].capitalize()}.\n\nArguments: {', '.join(known)}."
    return call


TABLE: list[dict[str, Any]] = json.loads(_mantile.requests())
FUNCTIONS: dict[str, Callable[..., Answer]] = {entry["name"]: _function(entry) for entry in TABLE}
