"""The best way to serve an LLM on given accelerators: how fast, at what cost, and why.

    import mantile
    answer = mantile.optimize(model="Llama-3.3-70B", hardware="8xh100", ttft="1s")
    answer.best.metrics.tpot_ms

Every request of the command line is a function with the same names; every answer is the same JSON.
"""

from __future__ import annotations

import sys as _sys

from . import _mantile
from ._answer import Answer, Record
from ._errors import MantileError
from ._mantile import __version__
from ._requests import FUNCTIONS as _FUNCTIONS
from ._requests import request
from ._shards import sharded_sweep

globals().update(_FUNCTIONS)

__all__ = ["Answer", "MantileError", "Record", "__version__", "request", "sharded_sweep", *_FUNCTIONS]


def _main() -> int:
    """The command line `mantile-opt`."""
    return _mantile.main(_sys.argv)
