"""Writes `mantile/types.py` and `mantile/__init__.pyi` from the schemas of the requests: `python stubs.py [--check]`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mantile._requests import TABLE
from mantile._schema import argument_type, kinds, places, resolved, sentence, signature, union, usable

FOLDER = Path(__file__).parent / "python" / "mantile"
TYPES = '''"""Types of the answers: one class for every object of a report. Made from the schemas of the requests by stubs.py."""

from __future__ import annotations

from typing import Any, Literal

from ._answer import Answer, Record

'''
STUBS = '''"""Types of the package, made from the schemas of the requests by stubs.py."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Literal, Protocol, overload

from mantile import types as types
from mantile._answer import Answer as Answer
from mantile._answer import Record as Record
from mantile._errors import MantileError as MantileError
from mantile._mantile import PreparedPlan as PreparedPlan
from mantile._mantile import StepTime as StepTime
from mantile.types import (
    {answers},
)

__version__: str
FORMATS: dict[str, list[str]]

class HasDict(Protocol):
    """A configuration, such as those of transformers."""

    def to_dict(self) -> dict[str, Any]: ...

class Submits(Protocol):
    """An executor: a Dask client, or one of `concurrent.futures`."""

    def submit(self, fn: Any, /, *args: Any) -> Any: ...

'''


class Classes:
    """The classes of answers: one for every object of a report's schema."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, tuple] = {}

    def answer(self, name: str, report: dict | bool) -> str:
        """The class of the answer to a request."""
        shown = f"{camel(name)}Answer"
        schema = report if isinstance(report, dict) else {}
        options = [schema, *(resolved(schema, one) for one in schema.get("anyOf", []))]
        fields: dict[str, list[str]] = {}
        for option in options:
            if option.get("type") == "array":
                fields["items"] = self.kinds(schema, option, "items")
            for key, kind in self.fields(schema, option).items():
                fields[key] = [*fields.get(key, []), kind, *(["None"] if len(options) > 1 and key != "answer" else [])]
        self.declare(shown, f'Answer, question="{name}"', {key: union(split(one)) for key, one in fields.items()})
        return shown

    def fields(self, schema: dict, part: dict) -> dict[str, str]:
        required = part.get("required", [])
        found = {}
        for key, value in part.get("properties", {}).items():
            absent = key not in required and not (isinstance(value, dict) and {"default", "const"} & value.keys())
            found[key] = union([*self.kinds(schema, value, key), *(["None"] if absent else [])])
        return found

    def kinds(self, schema: dict, part: object, name: str) -> list[str]:
        return kinds(schema, part, name, "list", lambda part, name: self.record(schema, part, camel(name)))

    def record(self, schema: dict, part: dict, name: str) -> str:
        if not part.get("properties"):
            return "Record"
        shape = tuple(part["properties"])
        while name in self.known and self.known[name] != shape:
            name += "_"
        if name not in self.known:
            self.known[name] = shape
            self.declare(name, "Record", self.fields(schema, part))
        return name

    def declare(self, name: str, base: str, fields: dict[str, str]) -> None:
        self.lines.append(f"\nclass {name}({base}):")
        self.lines += [f"    {key}: {kind}" for key, kind in fields.items() if usable(key)] or ["    pass"]
        self.lines.append("")


def split(kinds: list[str]) -> list[str]:
    """Unions as their parts."""
    return [part for kind in kinds for part in re.split(r" \| (?![^\[]*\])", kind)]


def camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]", name))


def function(name: str, schema: dict, result: str, own: list[str], about: str) -> str:
    """A function with the arguments of a request, after those of its own."""
    found = signature(schema, result).parameters.values()
    before = [*own] or [f"{one.name}: {one.annotation} = None" for one in found if one.kind is not one.KEYWORD_ONLY]
    named = [f"{one.name}: {one.annotation} = None" for one in found if own or one.kind is one.KEYWORD_ONLY]
    named = [one for one in named if not (own and one.startswith("progress"))]
    lines = [*before, *([] if own else ["*"]), *named]
    return f"def {name}(\n    " + ",\n    ".join(lines) + f",\n) -> {result}:\n    \"\"\"{about}\"\"\"\n"


def generated() -> dict[str, str]:
    """The files by name."""
    classes = Classes()
    answers = {entry["name"]: classes.answer(entry["name"], entry["report"]) for entry in TABLE}
    progress = "progress: Callable[[int, int], None] | None = None"
    functions = [
        f"@overload\ndef request(name: Literal['{name}'], body: Mapping[str, Any], {progress}) -> {answer}: ..."
        for name, answer in answers.items()
    ]
    functions.append(f"@overload\ndef request(name: str, body: Mapping[str, Any], {progress}) -> Answer: ...\n")
    for entry in TABLE:
        functions.append(function(entry["name"], entry["request"], answers[entry["name"]], [], sentence(entry["about"])))
    of = {entry["name"]: entry["request"] for entry in TABLE}
    sharded = ["executor: Submits", "*", "shards: int", "directory: str | PathLike[str]"]
    functions.append(function("sharded_sweep", of["sweep"], "SweepAnswer", sharded, "The same answer as `sweep`, in shards."))
    functions.append(function("prepare", of["estimate"], "PreparedPlan", [], "A plan whose steps are priced one by one."))
    stubs = STUBS.replace("{answers}", ",\n    ".join(f"{one} as {one}" for one in sorted(answers.values()))) + "\n".join(functions)
    return {"types.py": TYPES + "\n".join(classes.lines), "__init__.pyi": stubs}


if __name__ == "__main__":
    for name, text in generated().items():
        if "--check" not in sys.argv:
            (FOLDER / name).write_text(text)
        elif (FOLDER / name).read_text() != text:
            sys.exit(f"{name} is out of date: run stubs.py")
