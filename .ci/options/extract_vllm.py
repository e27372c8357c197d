"""Writes the options of `vllm serve` as its own parser has them: `hardware/options/vllm-VERSION.json`.

Names that the parser takes as any text are read from the source: they are `known`, not `choices`.
"""

import ast

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
    raise SystemExit(f"{path}: no {name}")


def main():
    _, serve, folder = vllm_parser.load()
    rows, limited = common.rows_of(serve), vllm_parser.fields(folder)
    for row in rows:
        for table, key in ((KNOWN, "known"), (KEYS, "keys")):
            if place := table.get(row["flags"][0]):
                row[key] = sorted(declared(folder / place[0], place[1]))
        for limit in limited[row["flags"][0]].metadata if row["flags"][0] in limited else ():
            row.update({name: getattr(limit, word) for word, name in common.LIMITS.items() if hasattr(limit, word)})
    common.write("vllm", vllm_parser.VERSION, ["vllm", "serve"],
                 "vllm/entrypoints/common/cli_args.py and vllm/engine/arg_utils.py of the published wheel", rows,
                 positional=["model_tag"], spelling=["equals", "prefix", "underscore", "dotted"])


if __name__ == "__main__":
    main()
