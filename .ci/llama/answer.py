"""Starts llama.cpp's server from emitted files with a tiny model, asks it for tokens and stops it: `answer.py SERVER RUN`.

RUN takes the model file from MODEL and the port from PORT; SERVER is the `llama-server` it finds. Exits 1, with the end of
what the server wrote, where it does not start or answers wrongly.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import tiny_model

TOKENS, START_LIMIT_S = 8, 180
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(port, path, body=None):
    """The answer of the server as JSON."""
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
    with LOCAL.open(request, timeout=120) as answer:
        return json.load(answer)


def wait_until_ready(process, port):
    for _ in range(START_LIMIT_S * 2):
        if process.poll() is not None:
            raise RuntimeError(f"the server stopped with {process.returncode}")
        try:
            if call(port, "/health") == {"status": "ok"}:
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise RuntimeError(f"the server was not ready after {START_LIMIT_S} s")


def check(port):
    """Asks for tokens; raises where the answer is not of that many."""
    answer = call(port, "/v1/completions", {"prompt": "Hello", "max_tokens": TOKENS, "ignore_eos": True, "seed": 1})
    got, text = answer["usage"]["completion_tokens"], answer["choices"][0]["text"]
    if got != TOKENS or not text:
        raise RuntimeError(f"{TOKENS} tokens were wanted, the answer is {answer}")
    slots = call(port, "/props")["total_slots"]
    print(f"answered with {got} tokens; {slots} slots")


def main(server, run):
    folder = Path(server).resolve().parent
    model, log = folder / "tiny.gguf", folder / "server.log"
    tiny_model.main(model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "MODEL": str(model), "HOST": "127.0.0.1", "PORT": str(port), "PATH": f"{folder}:{os.environ['PATH']}"}
    with log.open("wb") as output:
        process = subprocess.Popen(["bash", run], env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        wait_until_ready(process, port)
        check(port)
        failed = None
    except (RuntimeError, OSError, ValueError, KeyError, IndexError) as error:
        failed = error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)
    if failed:
        print(failed, *log.read_text(errors="replace").splitlines()[-30:], sep="\n", file=sys.stderr)
    print(f"{int(not failed)} passed, {int(bool(failed))} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
