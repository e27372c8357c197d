"""Writes the options of SGLang's server as its own parser has them: `hardware/options/sglang-VERSION.json`.

    python .ci/options/extract_sglang.py [VERSION]
"""

import sys

import common
import sglang_parser


def main():
    version = sys.argv[1] if sys.argv[1:] else sglang_parser.VERSION
    rows = common.rows_of(sglang_parser.load(version=version))
    declared = "sglang/srt/server_args.py"
    if (common.wheel("sglang", version) / "sglang/srt/arg_groups/fields").is_dir():
        declared += " and sglang/srt/arg_groups/fields"
    common.write("sglang", version, sglang_parser.PROGRAMS[0], f"{declared} of the published wheel", rows,
                 spelling=["equals", "prefix"])


if __name__ == "__main__":
    main()
