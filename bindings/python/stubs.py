"""Writes `mantile/__init__.pyi` from the schemas of the requests: `python stubs.py [--check]`."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from mantile._requests import _FIRST, TABLE, _properties, places

TARGET = Path(__file__).parent / "python" / "mantile" / "__init__.pyi"
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
HEAD = '''"""Types of the package, made from the schemas of the requests by stubs.py."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

from mantile._answer import Answer as Answer
from mantile._answer import Record as Record

__version__: str

class MantileError(Exception):
    file: str
    key: str
    found: str
    expected: str
    fix: str
    def __init__(
        self, text: str = "", *, file: str = "", key: str = "", found: str = "", expected: str = "", fix: str = ""
    ) -> None: ...

def request(name: str, body: dict[str, Any], progress: Callable[[int, int], None] | None = None) -> Answer: ...
def sharded_sweep(executor: Any, *, shards: int, directory: str | PathLike[str], **arguments: Any) -> Answer: ...
'''


def python_type(schema: dict, part: object) -> str:
    """The type of a value in an argument or an answer."""
    if not isinstance(part, dict):
        return "Any"
    if "$ref" in part:
        return python_type(schema, schema["$defs"][part["$ref"].rsplit("/", 1)[1]])
    if "enum" in part and all(isinstance(item, str) for item in part["enum"]):
        return f"Literal[{', '.join(repr(item) for item in part['enum'])}]"
    if "const" in part and isinstance(part["const"], str):
        return f"Literal[{part['const']!r}]"
    options = part.get("anyOf") or part.get("oneOf")
    if options:
        kinds = dict.fromkeys(python_type(schema, option) for option in options)
        return "Any" if "Any" in kinds else " | ".join(kinds)
    kind = part.get("type")
    if isinstance(kind, list):
        return " | ".join(dict.fromkeys(python_type(schema, {**part, "type": one}) for one in kind))
    if kind == "array":
        return f"list[{python_type(schema, part.get('items', {}))}]"
    if kind == "object":
        return "dict[str, Any]"
    return SIMPLE.get(kind or "", "Any")


def at(schema: dict, path: tuple[str, ...]) -> dict:
    """The schema of the value at a path of the body."""
    part = schema
    for key in path:
        part = _properties(schema, part)[key]
    return part


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"[^A-Za-z0-9]", name))


class Classes:
    """The classes of answers: one for every object of a report's schema."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, tuple] = {}

    def of(self, schema: dict, part: object, name: str) -> str:
        if not isinstance(part, dict):
            return "Any"
        if "$ref" in part:
            name = part["$ref"].rsplit("/", 1)[1]
            return self.of(schema, schema["$defs"][name], name)
        options = part.get("anyOf") or part.get("oneOf")
        if options and "properties" not in part:
            kinds = dict.fromkeys(self.of(schema, option, name) for option in options)
            return "Any" if "Any" in kinds else " | ".join(kinds)
        kind = part.get("type")
        if isinstance(kind, list):
            return " | ".join(dict.fromkeys(self.of(schema, {**part, "type": one}, name) for one in kind))
        if kind == "array":
            return f"list[{self.of(schema, part.get('items', {}), name)}]"
        if kind == "object" and part.get("properties"):
            return self.declared(schema, part, camel(name), "Record")
        if kind == "object":
            return "Record"
        return python_type(schema, part)

    def declared(self, schema: dict, part: dict, name: str, base: str) -> str:
        properties = part["properties"]
        shape = (base, *properties)
        while name in self.known and self.known[name] != shape:
            name += "_"
        if name in self.known:
            return name
        self.known[name] = shape
        fields = [(key, self.of(schema, value, camel(key))) for key, value in properties.items()]
        usable = [(key, kind) for key, kind in fields if key.isidentifier() and not keyword.iskeyword(key)]
        self.lines.append(f"class {name}({base}):")
        self.lines += [f"    {key}: {kind}" for key, kind in usable] or ["    ..."]
        self.lines.append("")
        return name


def stubs() -> str:
    classes, functions = Classes(), []
    for entry in TABLE:
        name, report, schema = entry["name"], entry["report"], entry["request"]
        answer = "Answer"
        if isinstance(report, dict) and report.get("properties"):
            answer = classes.declared(report, report, f"{camel(name)}Answer", "Answer")
        known = places(schema)
        first = [key for key in known if key in _FIRST]
        arguments = [f"{key}: {python_type(schema, at(schema, known[key]))} | None = None" for key in first]
        named = [key for key in known if key not in first and key.isidentifier() and not keyword.iskeyword(key)]
        arguments += ["*"]
        arguments += [f"{key}: {python_type(schema, at(schema, known[key]))} | None = None" for key in named]
        arguments.append("progress: Callable[[int, int], None] | None = None")
        functions.append(f"def {name}(\n    " + ",\n    ".join(arguments) + f",\n) -> {answer}:\n    \"\"\"{entry['about'].capitalize()}.\"\"\"\n")
    return HEAD + "\n" + "\n".join(classes.lines) + "\n" + "\n".join(functions)


if __name__ == "__main__":
    text = re.sub(r"(None \| )+None", "None", stubs()).replace("| None | None", "| None")
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_text() == text else f"{TARGET.name} is out of date: run stubs.py")
    TARGET.write_text(text)
