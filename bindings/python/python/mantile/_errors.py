"""The exception of faulty requests."""

from __future__ import annotations


class MantileError(Exception):
    """A faulty request: where the fault is, what was found and expected, and how to fix it.

    Its text is that of the command line, in words of Python: arguments in place of flags.
    """

    file: str
    """The file that has the fault; empty where the arguments have it."""
    key: str
    """The argument, or the path of the key in the file; may be empty."""
    found: str
    """The value that was found."""
    expected: str
    """The value that is expected."""
    fix: str
    """How to fix it."""

    def __init__(
        self, text: str = "", *, file: str = "", key: str = "", found: str = "", expected: str = "", fix: str = ""
    ) -> None:
        # `args` and `__dict__` are what the class of exceptions pickles and copies.
        super().__init__(text)
        self.file, self.key, self.found, self.expected, self.fix = file, key, found, expected, fix

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"MantileError({parts})"


MantileError.__module__ = "mantile"
