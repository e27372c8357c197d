"""A server that ends with its test."""

import contextlib
import subprocess
from collections.abc import Iterator


@contextlib.contextmanager
def serving(binary: str, *flags: str) -> Iterator[tuple[subprocess.Popen, str]]:
    """The process and its address; it ends gracefully, or the test fails."""
    words = [binary, "serve", "--listen", "127.0.0.1:0", *flags]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        yield process, process.stderr.readline().split("http://")[1].split(";")[0]
        process.terminate()
        assert process.wait(40) == 0, "a graceful end"
    finally:
        process.kill()
