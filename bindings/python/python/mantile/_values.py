"""Values of Python as values of JSON: numbers and arrays of other packages, paths, sets, enumerations, configurations."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import Any


def plain(value: Any, at: str) -> Any:
    """The value as JSON has it; `at` names it in errors."""
    if isinstance(value, Enum):
        return plain(value.value, at)
    if value is None or type(value) in (str, bool, int):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, (Real, Decimal)):
        return _number(value, at)
    if isinstance(value, os.PathLike):
        return path(value)
    if isinstance(value, Mapping):
        return {_key(key, at): plain(item, f"{at}.{key}") for key, item in value.items()}
    for method in ("tolist", "to_list", "to_pylist", "to_dicts"):  # numpy and pandas, polars, pyarrow, tables of polars
        if hasattr(value, method) and not isinstance(value, type):
            return _absent_left_out(plain(getattr(value, method)(), at))
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        return [_row(row, at) for row in value.to_dict("records")]
    if hasattr(value, "to_dict") and not isinstance(value, type):
        return plain(value.to_dict(), at)
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item, at) for item in value), key=lambda item: (str(type(item)), item))
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [plain(item, f"{at}[{number}]") for number, item in enumerate(value)]
    raise TypeError(f"{at}: {type(value).__name__} is no value of JSON; give a number, a text, a list or a dict")


def _number(value: Any, at: str) -> int | float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{at}: {value} is no number; omit it, or give a finite one")
    whole = isinstance(value, Decimal) and value == value.to_integral_value()
    return int(value) if whole else number


def _key(key: Any, at: str) -> str:
    found = plain(key, at)
    if isinstance(found, (dict, list)) or found is None:
        raise TypeError(f"{at}: {key!r} is no key of JSON; give a text")
    return str(found)


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, Real) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def _row(row: Mapping[str, Any], at: str) -> dict[str, Any]:
    """A row of a table: an empty cell is an absent key."""
    return {_key(key, at): plain(cell, f"{at}.{key}") for key, cell in row.items() if not _is_absent(cell)}


def _absent_left_out(value: Any) -> Any:
    """The rows of a table without their empty cells."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return [{key: cell for key, cell in row.items() if cell is not None} for row in value]
    return value


def path(value: os.PathLike) -> str:
    """A path, which no name of the catalogue can be taken for."""
    text = os.fspath(value)
    text = os.fsdecode(text) if isinstance(text, bytes) else text
    return text if os.path.isabs(text) or text.startswith(("~", ".")) else os.path.join(".", text)


def content(value: Any) -> dict[str, Any] | None:
    """The content of a file that is given as a dictionary or as an object with `to_dict`; None for a name or a path."""
    if isinstance(value, (str, os.PathLike)) or value is None:
        return None
    given = value.to_dict() if hasattr(value, "to_dict") else value
    return dict(given) if isinstance(given, Mapping) else None
