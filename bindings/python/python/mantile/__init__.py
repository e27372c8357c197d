"""The best way to serve an LLM on given accelerators: how fast, at what cost, and why.

    import mantile
    answer = mantile.optimize(model="Llama-3.3-70B", hardware="8xh100", ttft="1s")
    answer.best.metrics.tpot_ms

Every request of the command line is a function with the same names; every answer is the same JSON.
"""

from __future__ import annotations

import json as _json
import sys as _sys

from . import _mantile, types
from ._answer import Answer, Record
from ._errors import MantileError
from ._mantile import PreparedPlan, StepTime, __version__
from ._requests import FUNCTIONS as _FUNCTIONS
from ._requests import describe as _describe
from ._requests import prepare, request
from ._shards import sharded_sweep

#: The formats of answers, with the endings of their files.
FORMATS: dict[str, list[str]] = _json.loads(_mantile.formats())

globals().update(_FUNCTIONS)
_describe(sharded_sweep, "sweep")

__all__ = [
    "FORMATS",
    "Answer",
    "MantileError",
    "PreparedPlan",
    "Record",
    "StepTime",
    "__version__",
    "prepare",
    "request",
    "sharded_sweep",
    "types",
    *_FUNCTIONS,
]


def _main() -> int:
    """The command line `mantile-opt`."""
    return _mantile.main(_sys.argv)
