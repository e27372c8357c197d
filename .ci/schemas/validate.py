"""Checks YAML files, with any number of documents each, against `tests/schemas`: exits 1 with file, place and reason.

    python .ci/schemas/validate.py FILE…

The schema is chosen by apiVersion and kind. Files without them: compose files by their name, values of llm-d's charts and
files of TensorRT-LLM by their keys. A document that no schema fits is refused, and so are unknown and repeated keys.
"""

import json
import sys
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "tests" / "schemas"
ENGINE = "trtllm-0004396.json"
TYPES = {"int": {"type": "integer"}, "float": {"type": "number"}, "str": {"type": "string"}, "bool": {"type": "boolean"},
         "switch": {"type": "boolean"}, "json": {"type": "object"}, "list": {"type": "array"}}


class Loader(yaml.SafeLoader):
    """Refuses a key that is given twice."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                raise yaml.constructor.ConstructorError(problem=f"key given twice: {key}", problem_mark=node.value[place][0].start_mark)
        return super().construct_mapping(node, deep)


def engine_schema():
    """The YAML file of `trtllm-serve` as its option table has it: dotted keys are nested objects."""
    root = {"type": "object", "additionalProperties": False, "properties": {}}
    for row in json.loads((ROOT / "hardware" / "options" / ENGINE).read_text())["yaml"]:
        kind = dict(TYPES[row["kind"]])
        limits = (("min", "minimum"), ("above", "exclusiveMinimum"), ("max", "maximum"), ("below", "exclusiveMaximum"), ("choices", "enum"))
        kind.update({keyword: row[name] for name, keyword in limits if name in row})
        for key in [row["key"], *row.get("also", [])]:
            *parents, last = key.split(".")
            at = root
            for parent in parents:
                inside = at["properties"].setdefault(parent, {})
                inside.setdefault("properties", {})
                inside.update(type="object", additionalProperties=False)
                at = inside
            at["properties"][last] = {**at["properties"].get(last, {}), **kind}
    return root


class Schemas:
    def __init__(self):
        first, second = (json.loads((SCHEMAS / f"{name}.json").read_text()) for name in ("kubernetes", "custom"))
        definitions = {**first["$defs"], **second["$defs"]}
        self.by_kind = {kind: Draft202012Validator({"$ref": at, "$defs": definitions})
                        for kind, at in {**first["kinds"], **second["kinds"]}.items()}
        self.compose = Draft202012Validator(json.loads((SCHEMAS / "compose.json").read_text()))
        self.engine = Draft202012Validator(engine_schema())

    def of(self, path, document):
        """The schema that fits a document of the file `path`, or None."""
        if "apiVersion" in document or "kind" in document:
            return self.by_kind.get(f"{document.get('apiVersion')} {document.get('kind')}")
        if path.stem in ("compose", "docker-compose"):
            return self.compose
        if "router" in document:
            return self.by_kind["llm-d router"]
        if "modelArtifacts" in document:
            return self.by_kind["llm-d model service"]
        if "context_servers" in document:
            return self.by_kind["trtllm disaggregated"]
        known = self.engine.schema["properties"]
        return self.engine if document and any(key in known for key in document) else None


def reasons(error):
    """The errors that say most: those inside of a choice that failed, where it failed for one reason."""
    return [inner for part in error.context for inner in reasons(part)] if len(error.context) == 1 else [error]


def faults(schemas, path):
    """What is wrong in the file: one line each."""
    try:
        documents = [document for document in yaml.load_all(path.read_text(), Loader) if document is not None]
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        return [f"{path}: not YAML: {' '.join(str(error).split())}"]
    if not documents:
        return [f"{path}: no document"]
    found = []
    for number, document in enumerate(documents, 1):
        place = f"{path}: document {number}"
        schema = schemas.of(path, document) if isinstance(document, dict) else None
        if schema is None:
            kind = f"{document.get('apiVersion')} {document.get('kind')}" if isinstance(document, dict) else type(document).__name__
            found.append(f"{place}: no schema for {kind}")
            continue
        for error in schema.iter_errors(document):
            for reason in reasons(error):
                at = ".".join(str(step) for step in reason.absolute_path) or "top"
                found.append(f"{place}: {at}: {reason.message[:300]}")
    return found


def main(names):
    if not names:
        print(__doc__, file=sys.stderr)
        return 2
    schemas, wrong = Schemas(), 0
    for name in names:
        lines = faults(schemas, Path(name))
        print(*lines, sep="\n", end="\n" * bool(lines))
        wrong += bool(lines)
    print(f"{len(names) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
