"""Answers: the JSON of the command line with attributes, tables and pictures."""

from __future__ import annotations

import base64
import contextlib
import csv
import functools
import html
import json
import os
import secrets
import stat
import typing
from collections.abc import Iterator, KeysView, Mapping
from io import BytesIO, StringIO
from typing import Any

from . import _mantile

#: The class of the answer to each request; `mantile.types` declares them.
_CLASSES: dict[str, type[Answer]] = {}


def class_of(name: str) -> type[Answer]:
    return _CLASSES.get(name, Answer)


@functools.cache
def _hints(kind: type[Record]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _parts(hint: Any) -> list[Any]:
    """The alternatives of a type."""
    arguments = typing.get_args(hint)
    return [hint] if not arguments or typing.get_origin(hint) in (list, typing.Literal) else list(arguments)


def _wrapped(value: Any, hint: Any) -> Any:
    """A value of an answer: objects have their declared class."""
    if isinstance(value, dict):
        kinds = [part for part in _parts(hint) if isinstance(part, type) and issubclass(part, Record)]

        def strange(kind: type[Record]) -> int:
            return len(_hints(kind).keys() ^ value.keys())

        return (min(kinds, key=strange) if kinds else Record)._of(value)
    if isinstance(value, list):
        inner = [typing.get_args(part) for part in _parts(hint) if typing.get_origin(part) is list]
        item = inner[0][0] if inner else None
        return [_wrapped(one, item) for one in value]
    return value


class Record:
    """An object of an answer: `record.key` or `record["key"]`; `dict(record)`, `len`, `in` and loops go over the keys.

    An optional key that is absent is None as an attribute, and a KeyError as an item.
    """

    __slots__ = ("_values",)
    _values: dict[str, Any]

    def __init__(self, values: Mapping[str, Any]):
        self._values = dict(values)

    @classmethod
    def _of(cls, values: dict[str, Any]) -> Record:
        made = object.__new__(cls)
        made._values = values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of, (self._values,)

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._values[key], _hints(type(self)).get(key))

    if not typing.TYPE_CHECKING:  # the declared keys are the attributes; a checker reports all others

        def __getattr__(self, key: str) -> Any:
            if key.startswith("_"):
                raise AttributeError(key)
            if key in self._values:
                return self[key]
            if key in _hints(type(self)):
                return None
            known = ", ".join(self._values)
            raise AttributeError(f"no `{key}`; it has {known}", name=key, obj=self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Record, dict)) and self._values == (other._values if isinstance(other, Record) else other)

    __hash__ = None  # type: ignore[assignment]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values!r})"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._values)

    def keys(self) -> KeysView[str]:
        """The keys, for `dict(record)` and `**record`. No key of an answer has the name of a method."""
        return self._values.keys()

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default` where it is absent."""
        return self[key] if key in self else default

    def to_dict(self) -> dict[str, Any]:
        """The object as a plain dictionary."""
        return json.loads(json.dumps(self._values))


class Answer(Record):
    """The answer to a request.

    `repr` is its headline, `str` (and so `print`) the text that the command line prints, `to_json()` its JSON, byte for
    byte as `--format json`. An answer that is a list has it as `items`.
    """

    __slots__ = ("_name", "_text")
    _name: str
    _text: str

    def __init_subclass__(cls, question: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if question is not None:
            _CLASSES[question] = cls

    def __new__(cls, name: str, text: str) -> Answer:
        return object.__new__(class_of(name) if cls is Answer else cls)

    def __init__(self, name: str, text: str):
        read = json.loads(text)
        self._values = read if isinstance(read, dict) else {"items": read}
        self._name = name
        self._text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return Answer, (self._name, self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and (self._name, self._text) == (other._name, other._text)

    def __hash__(self) -> int:
        return hash((self._name, self._text))

    def __str__(self) -> str:
        return (self.render("table") or b"").decode()

    def __repr__(self) -> str:
        # What is stored is shown, whatever its version; a broken text must not hide it.
        with contextlib.suppress(Exception):
            return str(self).partition("\n")[0]
        return f"<mantile answer to {self._name}: {', '.join(self._values)}>"

    def to_json(self) -> str:
        """The JSON, byte for byte as the command line prints it."""
        return self._text

    def render(self, format: str) -> bytes | None:
        """The answer in a format of `mantile.FORMATS`; None where it has none of this name."""
        return _mantile.render(self._name, self._text, format)

    def _csv(self) -> bytes:
        return self.render("csv") or b""

    def to_pandas(self) -> Any:
        """The rows of the answer as a data frame of pandas; units are in the names of the columns."""
        import pandas

        # Only an empty cell is absent: a name may be `none`.
        return pandas.read_csv(BytesIO(self._csv()), keep_default_na=False, na_values=[""])

    def to_polars(self) -> Any:
        """The rows of the answer as a data frame of polars; units are in the names of the columns."""
        import polars

        return polars.DataFrame(self._columns(), strict=False)

    def to_arrow(self) -> Any:
        """The rows of the answer as a table of pyarrow; units are in the names of the columns."""
        import pyarrow

        return pyarrow.table(self._columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for `polars.DataFrame(answer)`, `pyarrow.table(answer)`, DuckDB and whatever else reads Arrow."""
        try:
            table = self.to_arrow()
        except ImportError:
            try:
                table = self.to_polars()
            except ImportError:
                raise ImportError("the rows as Arrow need pyarrow or polars: pip install pyarrow") from None
        return table.__arrow_c_stream__(requested_schema)

    def _columns(self) -> dict[str, list[Any]]:
        """The columns of the rows: whole numbers, numbers, or texts; an empty cell is None."""
        header, *rows = csv.reader(StringIO(self._csv().decode()))
        return {name: _typed([row[at] for row in rows]) for at, name in enumerate(header)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the answer; the ending of the file selects its format, as `mantile.FORMATS` lists them."""
        name = os.fspath(path)
        format = _mantile.format_of(name)
        if format == "parquet":
            data = self._parquet()
        else:
            data = self._text.encode() if format == "json" else self.render(format)
        if data is None:
            raise ValueError(f"an answer to {self._name} has no {format}")
        _write(name, data)

    def _parquet(self) -> bytes:
        from pyarrow import parquet

        file = BytesIO()
        parquet.write_table(self.to_arrow(), file)
        return file.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        headline, _, table = str(self).partition("\n")
        parts = [f"<p><b>{html.escape(headline)}</b></p>"]
        picture = self.render("svg")
        if picture is not None:
            # As an image: the style of an embedded drawing would reach the rest of the notebook.
            data = base64.b64encode(picture).decode()
            parts.append(f'<img alt="{html.escape(headline)}" style="max-width: 100%" src="data:image/svg+xml;base64,{data}">')
        rest = html.escape(table.strip("\n"))
        parts.append(f'<pre style="white-space: pre; overflow-x: auto">{rest}</pre>')
        return {"text/plain": repr(self), "text/html": "\n".join(parts)}


def _typed(cells: list[str]) -> list[Any]:
    for read in (int, float):
        with contextlib.suppress(ValueError):
            return [read(cell) if cell else None for cell in cells]
    return [cell or None for cell in cells]


def _write(path: str, data: bytes) -> None:
    """Writes a whole file or none, with the permissions that the program's own files have; through a link."""
    target = os.path.realpath(path)
    known = os.stat(target).st_mode if os.path.exists(target) else None
    if known is not None and not stat.S_ISREG(known):  # a pipe or a terminal
        with open(target, "wb") as file:
            file.write(data)
        return
    # A name of its own, then a rename: an interrupted write leaves no half file.
    folder, name = os.path.split(target)
    draft = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if known is not None:
            os.chmod(draft, stat.S_IMODE(known))
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise
