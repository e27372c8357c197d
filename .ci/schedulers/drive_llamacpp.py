"""Runs cases on llama.cpp's own server: `drive_llamacpp.py SERVER CASES`, a record of JSON for every line of CASES.

SERVER is `llama-server-gated`, see `.ci/llama/gate.cpp`: the server as published, which waits before every batch until it
may go on. Requests are sent while it waits and are in its queue before the batch is computed, so that every run is the
same. A server without requests gets one; those that come with it are sent before its first batch, and seen after it, as
those of a client would be.

The model has random weights and 256 tokens: token n of a case is the byte n % 256, and an answer is what the model makes of
its prompt, so the record has the bytes of each prompt and answer. A record is {"name", "version", "state": [bytes of a
saved prompt, more of them for each token], "requests": [{"id", "arrived", "prompt", "answer"}], "steps": [step, ...]}, with
prompts and answers as hexadecimal bytes, and `arrived` the first step that can have the request. A step is a batch that was
computed, or the error of one that found no memory:

    step        its number, from 0
    scheduled   [id, tokens] in the order of the batch
    slots       the slot of each of these
    cached      [id, tokens of its prompt that were in its slot] of every request with its first tokens in the step
    finished    ids that were answered after it, in the order of slots
    failed      ids that got an error in its place
"""

import json
import os
import queue
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True

import cases  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent / "llama"))

import tiny_model  # noqa: E402

VERSION = "0c1e570"
FIRST_BYTE, BYTES = 3, 256
# Bytes of the prompt cache for a prompt, with one sequence of KV memory and with several, and for each of its tokens: the
# fields that state_write, state_write_meta and state_write_data of src/llama-kv-cache.cpp write, for layers whose keys and
# values have as many numbers of 32 bits as the model is wide.
SIZES = WIDTH, *_ = 32, 32, 2, 2
STATE_HEAD, STATE_STREAM, STATE_BODY = 4, 4, 4 + 4 + tiny_model.LAYERS * 2 * (4 + 8)
STATE_TOKEN = 4 + 4 + 4 + tiny_model.LAYERS * 2 * WIDTH * 4
LINES = {name: re.compile(pattern) for name, pattern in (
    ("batch", r"gate: batch((?: \d+:\d+:\d+:\d)+)"),
    ("ended", r"gate: ended (-?\d+)"),
    ("posted", r"new task, id = (\d+)/1, front = 0"),
    ("launched", r"id +(\d+) \| task (\d+) \| processing task"),
    ("stopped", r"id +(\d+) \| task (\d+) \| stop processing"),
    ("exceeded", r"Context size has been exceeded\. off = "),
    ("saved", r"saving prompt with length (\d+), total state size = ([\d.]+) MiB"),
    ("idle", r"all slots are idle"),
)}


def arguments(settings, model, port):
    """The command line of a case."""
    switch = lambda name: f"--{name}" if settings[name.replace("-", "_")] else f"--no-{name}"  # noqa: E731
    return ["-m", str(model), "--host", "127.0.0.1", "--port", str(port), "-np", str(settings["parallel"]), "-c", str(settings["ctx_size"]),
            "-b", str(settings["batch_size"]), "-ub", str(settings["ubatch_size"]), "-cram", str(settings["cache_ram"]),
            "-sps", str(settings["slot_prompt_similarity"]), switch("kv-unified"), switch("cache-idle-slots"), switch("cont-batching"),
            "--override-kv", "llama.context_length=int:1000000", "--fit", "off", "-ctk", "f32", "-ctv", "f32", "--no-warmup", "-t", "1", "-tb", "1",
            "--threads-http", "80", "-lv", "5", "--log-colors", "off"]


class Server:
    """A server under a case, and what its log has said."""

    def __init__(self, binary, model, case):
        self.case, self.steps, self.number, self.coming = case, [], 0, None
        self.idle = self.waits = False
        self.tasks, self.slots, self.started = {}, {}, set()
        self.sockets, self.prompts, self.answers, self.arrived = {}, {}, {}, {}
        self.log = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        read, self.gate = os.pipe()
        env = {**os.environ, "GATE": str(read)}
        command = [binary, *arguments(case["settings"], model, self.port)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, pass_fds=[read])
        os.close(read)
        # Read at all times: a server whose log is full does not answer.
        self.said = queue.SimpleQueue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.said.put(line)
        self.said.put(b"")

    def refuse(self, why):
        self.process.kill()
        sys.stderr.write("".join(self.log[-40:]))
        cases.refuse(self.case, why)

    def hear(self):
        """Takes in one line of the log."""
        line = self.said.get().decode(errors="replace")
        if not line:
            self.refuse("the server has ended")
        self.log.append(line)
        for name, pattern in LINES.items():
            if found := pattern.search(line):
                getattr(self, f"on_{name}")(*found.groups())
                return

    def until(self, done):
        while not done():
            self.hear()

    def on_batch(self, runs):
        self.waits = True
        self.runs = [tuple(map(int, run.split(":"))) for run in runs.split()]

    def on_ended(self, code):
        if int(code) not in (0, 1):
            self.refuse(f"a batch ended with {code}")
        if code == "0" and self.prompts:
            self.computed()

    def computed(self):
        names = [self.slots[slot] for slot, *_ in self.runs]
        cached = [[name, first] for name, (_, first, _, _) in zip(names, self.runs) if name not in self.started]
        self.started.update(names)
        self.step(scheduled=[[name, count] for name, (_, _, count, _) in zip(names, self.runs)],
                  slots=[slot for slot, *_ in self.runs], cached=cached)

    def step(self, scheduled=(), slots=(), cached=(), failed=()):
        self.steps.append({"step": len(self.steps), "scheduled": list(scheduled), "slots": list(slots), "cached": list(cached),
                           "finished": [], "failed": list(failed)})

    def on_posted(self, task):
        self.tasks[int(task)], self.coming = self.coming, None

    def on_idle(self):
        # It says so too when it hears, late, that a client has gone.
        self.idle = not self.sockets

    def on_launched(self, slot, task):
        self.slots[int(slot)] = self.tasks[int(task)]

    def on_stopped(self, slot, task):
        name = self.tasks[int(task)]
        status, answer = self.read(name)
        key = "finished" if status == 200 else "failed"
        if status == 200 and len(answer["tokens"]) != self.request(name)["output"]:
            self.refuse(f"request {name} has {len(answer['tokens'])} tokens")
        self.answers[name] = answer.get("tokens", [])
        self.steps[-1][key].append(name)

    def on_exceeded(self):
        self.step()

    def on_saved(self, tokens, mebibytes):
        expected = sum(state(self.case["settings"], int(tokens)))
        if abs(expected / 2**20 - float(mebibytes)) > 6e-4:
            self.refuse(f"a prompt of {tokens} tokens takes {mebibytes} MiB, not {expected / 2**20}")

    def request(self, name):
        return next(one for one in self.case["requests"] if one["id"] == name)

    def send(self, one):
        """Sends a request; returns when it is in the server's queue."""
        name = one["id"]
        prompt = self.prompts[name] = self.tokens(one)
        body = json.dumps({"prompt": prompt, "n_predict": one["output"], "ignore_eos": True, "return_tokens": True, "temperature": 0,
                           "seed": 1, "logit_bias": [[token, False] for token in range(FIRST_BYTE)],
                           "cache_prompt": self.case["settings"]["cache_prompt"]}).encode()
        head = f"POST /completion HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.sockets[name] = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        self.coming = name
        self.sockets[name].sendall(head.encode() + body)
        self.arrived[name] = len(self.steps) + self.waits
        self.until(lambda: self.coming is None)

    def read(self, name):
        """The answer to a request that has ended."""
        one = self.sockets.pop(name)
        with one, one.makefile("rb") as answer:
            status, length = int(answer.readline().split()[1]), 0
            while line := answer.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            return status, json.loads(answer.read(length))

    def tokens(self, one):
        """The tokens of a prompt: those of an earlier answer are the model's."""
        found = []
        for token in cases.tokens(one["prompt"]):
            if token < cases.ANSWERS:
                found.append(FIRST_BYTE + token % BYTES)
                continue
            before, at = divmod(token - cases.ANSWERS, cases.ANSWER)
            # An answer may have become an error.
            if at < len(self.answers[before]):
                found.append(self.answers[before][at])
        return found

    def can_come(self, one):
        """Whether all answers that the prompt repeats are known."""
        needed = {(start - cases.ANSWERS) // cases.ANSWER for start, _ in one["prompt"] if start >= cases.ANSWERS}
        return needed <= self.answers.keys()

    def run(self):
        self.pass_gates()
        coming = list(self.case["requests"])
        while True:
            if self.idle:
                if not coming:
                    break
                one = next(one for one in coming if self.can_come(one))
                self.number = max(self.number, one["arrives_before_step"])
                coming.remove(one)
                self.idle = False
                self.send(one)
                self.until(lambda: self.waits or self.idle)
                continue
            self.number += 1
            for one in [one for one in coming if one["arrives_before_step"] <= self.number and self.can_come(one)]:
                coming.remove(one)
                self.send(one)
            self.waits = False
            os.write(self.gate, b".")
            self.until(lambda: self.waits or self.idle)

    def pass_gates(self):
        """Lets the batches pass that are computed while the model is loaded."""
        while not self.idle:
            self.hear()
            if self.waits:
                self.waits = False
                os.write(self.gate, b".")

    def close(self):
        self.process.terminate()
        os.close(self.gate)
        self.process.wait(60)


def state(settings, tokens):
    """Bytes of the prompt cache for a prompt: of all, and of its tokens."""
    streams = 1 if settings["kv_unified"] else settings["parallel"]
    return STATE_HEAD + streams * STATE_STREAM + STATE_BODY, STATE_TOKEN * tokens


def main(binary, path):
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny.gguf"
        tiny_model.main(model, tiny_model.Shape(SIZES))
        for case in cases.read(path):
            server = Server(binary, model, case)
            server.run()
            server.close()
            hexadecimal = lambda tokens: bytes(token - FIRST_BYTE for token in tokens).hex()  # noqa: E731
            requests = [{"id": name, "arrived": server.arrived[name], "prompt": hexadecimal(server.prompts[name]),
                         "answer": hexadecimal(server.answers[name])} for name in server.prompts]
            record = {"name": case["name"], "version": VERSION, "state": state(case["settings"], 1), "requests": requests, "steps": server.steps}
            print(json.dumps(record, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
