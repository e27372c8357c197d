"""Answers: the JSON of the command line with attributes, tables and pictures."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from . import _mantile


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


class Record(Mapping):
    """An object of an answer: keys as attributes."""

    def __init__(self, values: dict[str, Any]):
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._values[key])

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError:
            known = ", ".join(self._values)
            raise AttributeError(f"no `{key}`; it has {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"Record({self._values!r})"

    def to_dict(self) -> dict[str, Any]:
        """The object as a plain dictionary."""
        return json.loads(json.dumps(self._values))


class Answer(Record):
    """The answer to a request."""

    def __init__(self, name: str, text: str):
        read = json.loads(text)
        super().__init__(read if isinstance(read, dict) else {"items": read})
        self._name = name
        self._text = text

    def __reduce__(self):
        return Answer, (self._name, self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and (self._name, self._text) == (other._name, other._text)

    def __hash__(self) -> int:
        return hash((self._name, self._text))

    def __repr__(self) -> str:
        keys = ", ".join(self._values)
        return f"<mantile answer to {self._name}: {keys}>"

    @property
    def text(self) -> str:
        """The JSON, byte for byte as the command line prints it."""
        return self._text

    def render(self, format: str) -> bytes | None:
        """The answer as text, markdown, csv, svg, html, png or xlsx; None where it has no such format."""
        return _mantile.render(self._name, self._text, format)

    def to_pandas(self):
        """The rows of the answer as a data frame; units are in the names of the columns."""
        import pandas

        rows = self.render("csv")
        return pandas.read_csv(StringIO(rows.decode()))

    def save(self, path: str | os.PathLike) -> None:
        """Writes the answer; the ending of the file selects the format: json, txt, md, csv, svg, html, png or xlsx."""
        target = Path(path)
        ending = target.suffix.lstrip(".").lower()
        ending = {"txt": "text", "md": "markdown", "htm": "html"}.get(ending, ending)
        data = self._text.encode() if ending == "json" else self.render(ending)
        if data is None:
            raise ValueError(f"an answer to {self._name} has no {ending}")
        # A name of its own, then a rename: an interrupted write leaves no half file.
        handle, name = tempfile.mkstemp(dir=target.resolve().parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        picture = self.render("svg")
        if picture is not None:
            shown["image/svg+xml"] = picture.decode()
        return shown
