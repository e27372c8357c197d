"""Writes the options of `trtllm-serve` and the keys of its YAML file, from a checkout of TensorRT-LLM's repository.

    python .ci/options/extract_trtllm.py CHECKOUT VERSION

Its wheel holds no source that can be read without installing it. Options come from the reference that TensorRT-LLM's own
tests hold the command line to; keys from the classes of `llm_args.py`, and where a class lives elsewhere, from the list of
keys beside them. A key with several defaults (one for each kind of speculative decoding, say) has none here.
"""

import ast
import json
import re
import sys
from pathlib import Path

import common

COMMANDS = "tests/unittest/api_stability/references/trtllm_serve_cli.yaml"
CLASSES = "tensorrt_llm/llmapi/llm_args.py"
KEYS = "tensorrt_llm/usage/llm_args_golden_manifest.json"
KINDS = {"bool": "bool", "int": "int", "float": "float", "str": "str", "Path": "str", "StrictInt": "int",
         "NonNegativeInt": "int", "PositiveInt": "int", "NonNegativeFloat": "float", "List": "list", "list": "list",
         "Set": "list", "Dict": "json", "dict": "json"}
IMPLIED = {"NonNegativeInt": {"min": 0}, "NonNegativeFloat": {"min": 0}, "PositiveInt": {"min": 1}}


def commands(text):
    """The options of every subcommand: {command: {option: {key: value}}}, from the fixed layout of the file."""
    found = {}
    for line in text.splitlines():
        depth, body = len(line) - len(line.lstrip(" ")), line.strip()
        if depth == 2 and body.endswith(":"):
            options = found.setdefault(body[:-1], {})
        elif depth == 6:
            option = options.setdefault(body[:-1], {"flags": []})
        elif depth == 8 and body.startswith("- "):
            option["flags"].append(json.loads(body[2:]))
        elif depth == 8 and not body.endswith(":"):
            key, _, value = body.partition(": ")
            option[key] = value
    return found


def option_row(option):
    """One option of the command line."""
    row = {"flags": sorted(option["flags"], key=lambda flag: (len(flag) < 3, flag))}
    if option["is_flag"] == "true":
        row["kind"] = "switch"
        if off := [flag for flag in row["flags"] if flag.startswith("--no-")]:
            row.update(flags=[flag for flag in row["flags"] if flag not in off], off=off)
    else:
        row["kind"] = option["type"] if option["type"] in ("int", "float", "str") else "str"
    if option["type"].startswith("Choice"):
        row["choices"] = ast.literal_eval(option["type"][len("Choice("):-1])
    if option["multiple"] == "true":
        row["repeats"] = True
    if option["required"] == "true":
        row["required"] = True
    if option["status"] == "deprecated":
        row["deprecated"] = True
    try:
        row["default"] = json.loads(option["default"])
    except json.JSONDecodeError:
        row["default"] = option["default"]
    return row


class Source:
    """The classes and type aliases of one file."""

    def __init__(self, text):
        body = ast.parse(text).body
        self.classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
        self.aliases = {}
        for node in body:
            if isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
                self.aliases[node.target.id] = node.value
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.aliases[node.targets[0].id] = node.value

    def values(self, name):
        """The values of an enumeration of strings, else nothing."""
        items = [node.value for node in self.classes[name].body if isinstance(node, ast.Assign)]
        values = [item.value for item in items if isinstance(item, ast.Constant)]
        return values if values and all(isinstance(value, str) for value in values) else []

    def is_enum(self, name):
        return any(isinstance(base, ast.Name) and base.id.endswith("Enum") for base in self.classes[name].bases)

    def fields(self, name):
        """The fields of a class with those it inherits: {name: (annotation, value)}."""
        found = {}
        for base in self.classes[name].bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                found.update(self.fields(base.id))
        for node in self.classes[name].body:
            if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
                if "ClassVar" not in ast.dump(node.annotation):
                    found[node.target.id] = (node.annotation, node.value)
        return found

    def parts(self, node):
        """The types that an annotation allows: names, and ("choice", value) for each value of a Literal."""
        if isinstance(node, ast.Name) and node.id in self.aliases:
            yield from self.parts(self.aliases[node.id])
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.BinOp):
            yield from self.parts(node.left)
            yield from self.parts(node.right)
        elif isinstance(node, ast.Subscript):
            outer = node.value.id
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if outer == "Literal":
                yield from (("choice", item.value) for item in inner)
            elif outer in ("Optional", "Union"):
                for item in inner:
                    yield from self.parts(item)
            elif outer == "Annotated":
                yield from self.parts(inner[0])
            else:
                yield outer

    def default(self, node):
        """The value of a default, or UNKNOWN."""
        if isinstance(node, ast.Lambda):
            node = node.body
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.classes:
            members = {item.targets[0].id: item.value.value for item in self.classes[node.value.id].body
                       if isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant)}
            value = members.get(node.attr, common.UNKNOWN)
            return value if isinstance(value, str) else common.UNKNOWN
        if isinstance(node, ast.Name) and node.id == "list":
            return []
        allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.List, ast.operator, ast.unaryop, ast.expr_context)
        if all(isinstance(part, allowed) for part in ast.walk(node)):
            return eval(compile(ast.fix_missing_locations(ast.Expression(node)), CLASSES, "eval"), {"__builtins__": {}})
        return common.UNKNOWN

    def rows(self, name, prefix=""):
        """Every key of a class and of the classes below it."""
        for field, (annotation, value) in self.fields(name).items():
            parts = list(self.parts(annotation))
            below = [part for part in parts if part in self.classes and not self.is_enum(part)]
            for part in below:
                yield from self.rows(part, f"{prefix}{field}.")
            if not below and parts != ["object"]:
                yield self.key_row(prefix + field, parts, value)

    def key_row(self, key, parts, value):
        row = {"key": key}
        choices = [part[1] for part in parts if isinstance(part, tuple)]
        for part in parts:
            if part in self.classes:
                choices += self.values(part)
        plain = [KINDS[part] for part in parts if isinstance(part, str) and part in KINDS]
        row["kind"] = "str" if choices and not plain else plain[-1] if plain else "json"
        if "float" in plain and "int" in plain:
            row["kind"] = "float"
        if "object" in parts:
            row["json"] = True
        for part in parts:
            row.update(IMPLIED.get(part, {}) if isinstance(part, str) else {})
        if choices:
            row["known" if plain else "choices"] = choices
        call = value if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None
        given = {word.arg: word.value for word in call.keywords} if call else {"default": value} if value else {}
        if call and call.args:
            given["default"] = call.args[0]
        self.describe(row, given)
        return row

    def describe(self, row, given):
        """Sets what the call of `Field` says."""
        for word, name in common.LIMITS.items():
            if word in given:
                row[name] = self.default(given[word])
        names = given.get("telemetry")
        if isinstance(names, ast.Call) and "choices" not in row:
            row["known"] = [item.value for item in names.args]
        also = given.get("validation_alias")
        if isinstance(also, ast.Call):
            row["also"] = [row["key"].rpartition(".")[0] + "." + item.value for item in also.args[1:]]
        if "deprecated" in given or getattr(given.get("status"), "value", "") == "deprecated":
            row["deprecated"] = True
        default = given.get("default", given.get("default_factory"))
        if default is not None and (default := self.default(default)) is not common.UNKNOWN:
            row["default"] = default


def merged(rows):
    """One row for each key: variants of one class share keys, and differ in choices, limits and defaults."""
    found = {}
    for row in rows:
        known = found.setdefault(row["key"], row)
        if known is not row:
            for name in ("choices", "known"):
                if name in known or name in row:
                    known[name] = list(dict.fromkeys(known.get(name, []) + row.get(name, [])))
            for name in ("default", *common.LIMITS.values()):
                if known.get(name, common.UNKNOWN) != row.get(name, common.UNKNOWN):
                    known.pop(name, None)
    return found


def elsewhere(manifest):
    """Keys of classes that live in other files: name, kind and choices."""
    for entry in manifest["TorchLlmArgs"]:
        kind = re.search(r"\b(bool|int|float|List)\b", entry["annotation"])
        row = {"key": entry["path"], "kind": KINDS[kind[1]] if kind else "str"}
        if entry["allowed_values"]:
            row["choices"] = entry["allowed_values"]
        yield row


def main():
    checkout, version = Path(sys.argv[1]), sys.argv[2]
    source = Source((checkout / CLASSES).read_text())
    keys = merged(source.rows("TorchLlmArgs"))
    for row in elsewhere(json.loads((checkout / KEYS).read_text())):
        outer = row["key"].rpartition(".")[0]
        if keys.get(row["key"], {}).get("kind", "json") == "json":
            keys.pop(outer, None)
            keys[row["key"]] = row
    found = commands((checkout / COMMANDS).read_text())
    where = f"{COMMANDS}, {CLASSES} and {KEYS} of the repository of TensorRT-LLM"
    common.write("trtllm", version, ["trtllm-serve"], where, map(option_row, found["serve"].values()),
                 yaml=sorted(keys.values(), key=lambda row: row["key"]), positional=["model"], spelling=["equals", "last"])
    common.write("trtllm-disaggregated", version, ["trtllm-serve", "disaggregated"], where,
                 map(option_row, found["disaggregated"].values()), spelling=["equals", "last"])


if __name__ == "__main__":
    main()
