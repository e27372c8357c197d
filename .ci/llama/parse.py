"""Gives command lines to the parser of a built `llama-server`: exits 1 where it refuses one.

    python .ci/llama/parse.py SERVER < one command line per line

The server has no option that only parses. It parses everything before it opens the model, so it is given a model that
does not exist: it then stops with the words of `NO_MODEL`, or earlier with those of its parser.
"""

import os
import shlex
import subprocess
import sys

NO_MODEL = "exiting due to model loading error"
MODEL, ELSEWHERE = ("-m", "--model"), ("-hf", "-hfr", "--hf-repo", "-mu", "--model-url")
MISSING = "/nonexistent/model.gguf"


def without_model(words):
    """The command line with a model that does not exist; one from a repository is replaced, as nothing is downloaded here."""
    words = [MISSING if before in MODEL else word for before, word in zip(["", *words], words)]
    return [MODEL[0] if word in ELSEWHERE else MISSING if before in ELSEWHERE else word for before, word in zip(["", *words], words)]


def refusal(server, line):
    """The parser's words where it refuses the line, else None."""
    words = shlex.split(line)
    if not words or words[0] != "llama-server":
        return "not a command line of llama-server"
    try:
        done = subprocess.run([server, *without_model(words[1:])], capture_output=True, text=True, timeout=60, env={"HOME": os.devnull}, check=False)
    except subprocess.TimeoutExpired:
        return "did not stop"
    said = done.stdout + done.stderr
    if done.returncode != 0 and NO_MODEL in said:
        return None
    return " ".join(said.split())[:600] or f"stopped with {done.returncode} and no word"


def main(server):
    lines = [line for line in map(str.strip, sys.stdin) if line]
    wrong = 0
    for line in lines:
        said = refusal(server, line)
        if said:
            wrong += 1
            print(f"{line}\n  {said}")
    print(f"{len(lines) - wrong} passed, {wrong} failed")
    return 1 if wrong or not lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
