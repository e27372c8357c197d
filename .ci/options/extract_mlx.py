"""Writes the options of `mlx_lm.server` as its own parser has them: `hardware/options/mlx-VERSION.json`."""

import argparse

import common
import standins

VERSION = "0.32.2"


class Built(Exception):
    """Carries the parser out of the program, before it starts anything."""


def main():
    def stop(parser, *_):
        raise Built(parser)

    standins.install(common.wheel("mlx-lm", VERSION), "mlx_lm", ("mlx_lm.server",), (), common.CACHE)
    import mlx_lm.server

    argparse.ArgumentParser.parse_args = stop
    try:
        mlx_lm.server.main()
    except Built as built:
        rows = common.rows_of(built.args[0])
    common.write("mlx", VERSION, ["mlx_lm.server"], "mlx_lm/server.py of the published wheel of mlx-lm", rows,
                 spelling=["equals", "prefix"])


if __name__ == "__main__":
    main()
