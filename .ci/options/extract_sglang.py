"""Writes the options of SGLang's server as its own parser has them: `hardware/options/sglang-VERSION.json`."""

import common
import sglang_parser


def main():
    rows = common.rows_of(sglang_parser.load())
    common.write("sglang", sglang_parser.VERSION, sglang_parser.PROGRAMS[0],
                 "sglang/srt/server_args.py and sglang/srt/arg_groups/fields of the published wheel", rows,
                 spelling=["equals", "prefix"])


if __name__ == "__main__":
    main()
