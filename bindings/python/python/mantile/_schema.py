"""The schemas of requests and answers, as arguments, types and descriptions."""

from __future__ import annotations

import inspect
import keyword
import re
import textwrap
from collections.abc import Iterable
from typing import Any

#: Objects of a request whose keys are arguments too.
_NESTED = ("scenario", "fleet")
#: Arguments that come first, in this order, where a request has them.
FIRST = ("model", "hardware", "kind", "name", "word", "link", "answer")
#: Pools of a deployment, by the beginning of their arguments.
_POOLS = {"": "both", "prefill_": "prefill", "decode_": "decode"}
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
#: Arguments that are a model or hardware: also a path, or the content of the file.
MODELS = ("model", "draft", "compared_with")
HARDWARE = ("hardware",)


def resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    return schema["$defs"][part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part


def properties(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """The keys of an object in a schema; those of every alternative, where it has several."""
    part = resolved(schema, part)
    found = dict(part.get("properties", {}))
    for option in [*part.get("anyOf", []), *part.get("allOf", [])]:
        found.update(properties(schema, option))
    return found


def places(schema: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The path in the body of every argument."""
    top = properties(schema, schema)
    found: dict[str, tuple[str, ...]] = {}
    for outer in _NESTED:
        inner = properties(schema, top[outer]) if outer in top else {}
        if "deployment" in inner:
            deployment = properties(schema, inner["deployment"])
            for start, pool in _POOLS.items():
                for key in properties(schema, deployment[pool]):
                    found[start + key] = (outer, "deployment", pool, key)
            for key in ("plan", "offload_part"):
                found[key] = (outer, "deployment", key)
        found.update({key: (outer, key) for key in inner})
    found.update({key: (key,) for key in top})
    first = {key: found[key] for key in FIRST if key in found}
    return {**first, **found}


def at(schema: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The schema of the value at a path of the body."""
    part = schema
    for key in path:
        part = properties(schema, part)[key]
    return part


def usable(key: str) -> bool:
    """Whether a key can be an argument or an attribute."""
    return key.isidentifier() and not keyword.iskeyword(key)


def union(kinds: Iterable[str]) -> str:
    """Alternatives as one type: `Any` takes in all others, literals are one, and None is last."""
    once = dict.fromkeys(kinds)
    if "Any" in once:
        return "Any"
    literals = [kind[8:-1] for kind in once if kind.startswith("Literal[")]
    merged = [f"Literal[{', '.join(literals)}]"] if literals else []
    others = [kind for kind in once if not kind.startswith("Literal[") and kind != "None"]
    return " | ".join([*merged, *others, *(["None"] if "None" in once else [])])


def kinds(schema: dict[str, Any], part: Any, name: str, array: str = "list", of: Any = None) -> list[str]:
    """The types that a value may have. `of(part, name)` is the type of an object."""
    if not isinstance(part, dict):
        return ["Any"]
    if "$ref" in part:
        return kinds(schema, resolved(schema, part), part["$ref"].rsplit("/", 1)[1], array, of)
    if "enum" in part and all(isinstance(item, str) for item in part["enum"]):
        return [f"Literal[{', '.join(map(repr, part['enum']))}]"]
    if isinstance(part.get("const"), str):
        return [f"Literal[{part['const']!r}]"]
    options = part.get("anyOf") or part.get("oneOf")
    if options and "properties" not in part:
        return [kind for option in options for kind in kinds(schema, option, name, array, of)]
    kind = part.get("type")
    if isinstance(kind, list):
        return [found for one in kind for found in kinds(schema, {**part, "type": one}, name, array, of)]
    if kind == "array":
        return [f"{array}[{union(kinds(schema, part.get('items', {}), name, array, of))}]"]
    if kind == "object":
        return [of(part, name) if of else "Mapping[str, Any]"]
    return [_SIMPLE.get(kind or "", "Any")]


def argument_type(schema: dict[str, Any], key: str, path: tuple[str, ...]) -> str:
    """The type of an argument, with what it takes in addition to the schema; None leaves it out."""
    found = kinds(schema, at(schema, path), key, "Iterable")
    if key in MODELS + HARDWARE and "str" in found:
        found += ["PathLike[str]", "Mapping[str, Any]", "HasDict"]
    return union([*found, "None"])


def described(about: str) -> str:
    """A description, which may name flags of the command line, in arguments."""
    return re.sub(r"--([a-z0-9][a-z0-9-]*)", lambda found: f"`{found[1].replace('-', '_')}`", " ".join(about.split()))


def sentence(about: str) -> str:
    """The purpose of a request."""
    return described(f"{about[0].upper()}{about[1:]}.")


def signature(schema: dict[str, Any], result: str) -> inspect.Signature:
    """The signature of the function of a request."""
    known = places(schema)
    names = [key for key in known if usable(key)]
    arguments = [
        inspect.Parameter(
            key,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if key in FIRST else inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=argument_type(schema, key, known[key]),
        )
        for key in names
    ]
    progress = "Callable[[int, int], None] | None"
    last = inspect.Parameter("progress", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=progress)
    return inspect.Signature([*arguments, last], return_annotation=result)


def documentation(entry: dict[str, Any], head: str = "") -> str:
    """The documentation of a function: every argument with its type and meaning."""
    schema, known = entry["request"], places(entry["request"])
    lines = [head or sentence(entry["about"]), "", "Parameters", "----------"]
    for key in filter(usable, known):
        lines.append(f"{key} : {argument_type(schema, key, known[key]).removesuffix(' | None')}, optional")
        meaning = described(at(schema, known[key]).get("description", ""))
        pool = next((start for start in _POOLS if start and known[key][-2:-1] == (start.rstrip("_"),)), "")
        if pool:
            meaning += f" ({pool.rstrip('_')} pool)"
        lines += textwrap.wrap(meaning, 96, initial_indent="    ", subsequent_indent="    ")
    lines += ["progress : Callable[[int, int], None], optional", "    Called with the work done and all of it."]
    return "\n".join(lines) + "\n"
