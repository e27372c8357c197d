"""Writes the options of `vllm serve` as its own parser has them: `hardware/options/vllm-VERSION.json`.

    python .ci/options/extract_vllm.py [VERSION]

Names that the parser takes as any text are read from the source: they are `known`, not `choices`. Names that an older
version declares elsewhere are left out, with a word on the standard error.
"""

import ast
import sys

import common
import vllm_parser

KNOWN = {
    "--attention-backend": ("vllm/v1/attention/backends/registry.py", "AttentionBackendEnum"),
    "--load-format": ("vllm/model_executor/model_loader/__init__.py", "LoadFormats"),
    "--quantization": ("vllm/model_executor/layers/quantization/__init__.py", "QuantizationMethods"),
    "--reasoning-parser": ("vllm/reasoning/__init__.py", "_REASONING_PARSERS_TO_REGISTER"),
    "--tool-call-parser": ("vllm/tool_parsers/__init__.py", "_TOOL_PARSERS_TO_REGISTER"),
}
KEYS = {"--speculative-config": ("vllm/config/speculative.py", "SpeculativeConfig")}


def declared(path, name):
    """The names that `name` declares in a source file: values of a Literal, keys of a dict, members of a class."""
    if not path.exists():
        return None
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            fields = (item for item in node.body if isinstance(item, (ast.Assign, ast.AnnAssign)))
            targets = (item.targets[0] if isinstance(item, ast.Assign) else item.target for item in fields)
            return [target.id for target in targets if not target.id.startswith("_")]
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == name:
                values = node.value.keys if isinstance(node.value, ast.Dict) else node.value.slice.elts
                return [value.value for value in values]
    return None


def takes(parser, flag, word):
    """Whether the parser takes a word as the value of an option."""
    try:
        return bool(parser.parse_args([flag, word]))
    except (SystemExit, ValueError):
        return False


def main():
    version = sys.argv[1] if sys.argv[1:] else vllm_parser.VERSION
    _, serve, folder = vllm_parser.load(version=version)
    rows, limited = common.rows_of(serve), vllm_parser.fields(folder)
    for row in rows:
        if row["flags"][0] == "--max-model-len" and takes(serve, row["flags"][0], "auto"):
            row["known"] = ["auto"]
        for table, key in ((KNOWN, "known"), (KEYS, "keys")):
            place = table.get(row["flags"][0])
            if place and (names := declared(folder / place[0], place[1])):
                row[key] = sorted(names)
            elif place and version == vllm_parser.VERSION:
                raise SystemExit(f"{place[0]}: no {place[1]}")
            elif place:
                print(f"no names: {row['flags'][0]}", file=sys.stderr)
        for limit in limited[row["flags"][0]].metadata if row["flags"][0] in limited else ():
            row.update({name: getattr(limit, word) for word, name in common.LIMITS.items() if hasattr(limit, word)})
    arguments = vllm_parser.place(folder, "vllm.entrypoints.common.cli_args").replace(".", "/")
    common.write("vllm", version, ["vllm", "serve"],
                 f"{arguments}.py and vllm/engine/arg_utils.py of the published wheel", rows,
                 positional=["model_tag"], spelling=["equals", "prefix", "underscore", "dotted"])


if __name__ == "__main__":
    main()
