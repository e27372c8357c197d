"""The GitHub Action, run as a runner does: each step's script with the variables that its expressions have, against a
release that a local server has. Inputs of every kind are data, and nothing in them is run.

Usage: action.py BINARY
"""

import contextlib
import functools
import hashlib
import http.server
import json
import os
import platform
import re
import shlex
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

import yaml

ACTION = Path("action.yml").resolve()
LAUNCH = "vllm serve Qwen/Qwen3-32B -tp 4 --max-num-seqs 64"
KEPT = "--concurrency 64\n--ttft 1s --tpot 40ms\n"
REPOSITORY = "owner/mantile"
ARM = platform.machine() in ("aarch64", "arm64")


class Job:
    """A job with a folder of its own and a runner's variables."""

    def __init__(self, folder: Path, variables: dict[str, str], context: dict[str, str]):
        self.action = yaml.safe_load(ACTION.read_text())
        self.folder = folder
        self.context = {"github.action_ref": "", "github.action_repository": "", **context}
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH")}
        self.variables = {
            "PATH": os.environ["PATH"], "HOME": str(folder),
            "GITHUB_ACTION_PATH": str(ACTION.parent), "RUNNER_TEMP": str(folder), "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "ARM64" if ARM else "X64", **variables,
        }

    def value(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.context.get(found[1], ""), str(text))

    def run(self, **inputs: str) -> int:
        """The exit code of the first step that fails, else 0."""
        for name, stated in self.action["inputs"].items():
            self.context[f"inputs.{name}"] = inputs.pop(name, stated.get("default", ""))
        assert not inputs, inputs
        self.log = ""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        for step in self.action["runs"]["steps"]:
            assert step["shell"] == "bash" and "${{" not in step["run"], "an expression in a script is code"
            script = self.folder / "step.sh"
            script.write_text(step["run"])
            for file in self.files.values():
                file.touch()
            self.files["GITHUB_OUTPUT"].write_text("")
            own = {name: self.value(value) for name, value in step.get("env", {}).items()}
            files = {name: str(path) for name, path in self.files.items()}
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
            done = subprocess.run(
                words, cwd=work, env=self.variables | files | own, stdin=subprocess.DEVNULL, timeout=300,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            self.log += done.stdout
            for line in self.files["GITHUB_OUTPUT"].read_text().splitlines():
                name, value = line.split("=", 1)
                self.context[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                break
        # Nothing was run or written where a job works.
        assert not list(work.iterdir()) and not self.files["GITHUB_ENV"].read_text(), list(work.iterdir())
        self.summary = self.files["GITHUB_STEP_SUMMARY"].read_text()
        self.outputs = {name: self.value(stated["value"]) for name, stated in self.action["outputs"].items()}
        return done.returncode


@contextlib.contextmanager
def job(variables: dict[str, str], **context: str):
    with tempfile.TemporaryDirectory() as folder:
        yield Job(Path(folder), variables, {f"github.{name}": value for name, value in context.items()})


def commands(log: str) -> str:
    """What a runner reads as its commands: all but what is between `stop-commands` and its token."""
    token = re.search(r"^::stop-commands::([0-9a-f]{32})$", log, re.MULTILINE)[1]
    before, rest = log.split(f"::stop-commands::{token}\n")
    return before + rest.split(f"\n::{token}::\n")[1]


def verdicts(own: dict[str, str]):
    with job(own) as one:
        assert one.run(command=LAUNCH, hardware="4xh100", arguments=KEPT) == 0, one.log
        assert one.summary.startswith("# SLO met\n") and one.outputs["met"] == "true", one.summary
        answer = json.loads(Path(one.outputs["answer"]).read_text())
        assert answer["answer"] == "estimate"
        rows = {line.split()[0]: line for line in one.summary.splitlines() if line.startswith(("TTFT", "TPOT"))}
        assert "≤ 1 s" in rows["TTFT"] and "≤ 40 ms" in rows["TPOT"] and "(tp4)" in one.summary, one.summary
        assert "::" not in commands(one.log), one.log
    # A limit of the last line counts as much as one of the first.
    for arguments in ["--concurrency 64\n\n  --tpot 40ms  # decode\n--ttft 1ms", "--ttft\n1ms\n", "--tpot 40ms  # decode \\\n--ttft \\\n  1ms", "--ttft '1ms'\r\n--tpot \"40ms\"\r\n"]:
        with job(own) as one:
            assert one.run(command=LAUNCH, hardware="4xh100", arguments=arguments) == 3, (arguments, one.log)
            assert one.summary.startswith("# SLO not met\n") and "the SLO is 1 ms" in one.summary, one.summary
            assert one.outputs["met"] == "false" and Path(one.outputs["answer"]).is_file()
            assert re.search(r"^::error title=SLO not met::TTFT is .*, the SLO is 1 ms$", commands(one.log), re.MULTILINE), one.log
    # A script in a file, and a plan that does not fit.
    with job(own) as one:
        script = one.folder / "launch.sh"
        script.write_text(f"#!/bin/bash\nexec {LAUNCH} \\\n  --port 8000\n")
        assert one.run(command=str(script), hardware="4xh100", arguments=KEPT) == 0, one.log
        assert one.run(command="vllm serve meta-llama/Llama-3.3-70B-Instruct", hardware="1xh100") == 3, one.log
        assert "WILL NOT START" in one.summary and " short " in one.summary, one.summary


def hostile(own: dict[str, str]):
    """Faulty inputs: exit code 2, another message than that of a failed SLO, and nothing run."""
    scripts = ["$(touch x)", "`touch x`", "; touch x", "&& touch x", "| touch x", "\ntouch x\n", "'; touch x; '", "$(touch x)\n--ttft 1s"]
    cases = [{"arguments": script} for script in scripts]
    cases += [{"arguments": f"--ttft {script}"} for script in ['"$(touch x)"', "`touch`", "1s;touch", "${HOME}", "*"]]
    cases += [{"arguments": text} for text in ["--ttft '1s", '--ttft "1s\n--tpot 40ms', "--ttft 1s unused", "--ttft 1s \\\n\nunused", "--no-such-flag", "-- x", "--command x", "--arguments-file /etc/passwd"]]
    cases += [{"hardware": text} for text in ["", *scripts, "--ttft=1ms", "@/etc/passwd"]]
    cases += [{"command": text} for text in ["", "-", *scripts, "--slo", "::error::x\n::add-mask::y"]]
    for case in cases:
        with job(own) as one:
            assert one.run(**{"command": LAUNCH, "hardware": "4xh100", **case}) == 2, (case, one.log)
            assert one.summary.startswith("# No estimate: the input is faulty\n\n    "), (case, one.summary)
            found = re.findall(r"^::.*$", commands(one.log), re.MULTILINE)
            assert len(found) == 1 and found[0].startswith("::error title=No estimate: the input is faulty::"), (case, one.log)
            assert "root:" not in one.log + one.summary and one.outputs == {"answer": "", "met": ""}, case
    # A command is read, never run, also where it can be read.
    with job(own) as one:
        assert one.run(command=f"touch x; {LAUNCH}\n$(touch x)\n{LAUNCH} | tee `touch x`", hardware="4xh100") in (0, 2, 3), one.log
    # A quoted value with a space reaches the program as one word.
    with job(own) as one:
        assert one.run(command=LAUNCH, hardware="4xh100", arguments='--set "a b=1"') == 2
        assert "`a b`" in one.log or "a b=1" in one.log, one.log
    return len(cases)


def release(folder: Path, program: str, version: str) -> str:
    """A release whose archive has the program; the checksum of its checksums."""
    target = f"{'aarch64' if ARM else 'x86_64'}-unknown-linux-gnu"
    name = f"mantile-opt-{version}-{target}"
    place = folder / REPOSITORY / "releases/download" / f"v{version}"
    (place / name).mkdir(parents=True)
    inside = place / name / "mantile-opt"
    inside.write_text(f"#!/bin/sh\nexec {shlex.quote(program)} \"$@\"\n")
    inside.chmod(0o755)
    with tarfile.open(place / f"{name}.tar.gz", "w:gz") as archive:
        archive.add(place / name, name)
    digest = hashlib.sha256((place / f"{name}.tar.gz").read_bytes()).hexdigest()
    sums = place / "SHA256SUMS"
    sums.write_text(f"{digest}  {name}.tar.gz\n{'0' * 64}  mantile-opt-{version}-other.tar.gz\n")
    return hashlib.sha256(sums.read_bytes()).hexdigest()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder: Path):
    """The folder over HTTPS: its address and the certificate that a client trusts."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"]
    subprocess.run([*made, *files], check=True, capture_output=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://localhost:{server.server_port}", str(folder / "certificate.pem")
    finally:
        server.shutdown()
        server.server_close()


def downloads(binary: str):
    """A release runs where its files are those that the workflow pins; without one the source is built."""
    question = {"command": LAUNCH, "hardware": "4xh100", "arguments": KEPT}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        pin = release(folder, binary, "1.2.3")
        with served(folder) as (address, certificate):
            # A cargo that only says what it would build.
            (folder / "bin").mkdir()
            (folder / "bin/cargo").write_text('#!/bin/sh\necho "cargo $*"\nexit 9\n')
            (folder / "bin/cargo").chmod(0o755)
            variables = {
                "GITHUB_SERVER_URL": address, "CURL_CA_BUNDLE": certificate, "NO_PROXY": "localhost",
                "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            }

            def fetched(expected: int, words: str, ref: str = "", repository: str = REPOSITORY, own=(), **inputs: str):
                with job(variables | dict(own), action_ref=ref, action_repository=repository) as one:
                    assert one.run(**question, **inputs) == expected and words in one.log, (inputs, ref, one.log)
                    assert expected == 0 or not one.summary, one.summary

            commit = "0123456789abcdef0123456789abcdef01234567"
            fetched(0, "SLO", "v1.2.3")
            fetched(0, "SLO", "v1.2.3", checksum=pin)
            fetched(0, "SLO", commit, version="v1.2.3", checksum=pin)
            fetched(2, "needs `checksum`", commit, version="v1.2.3")
            fetched(2, "needs `version`", commit, checksum=pin)
            fetched(2, "not what `checksum` pins", version="v1.2.3", checksum="0" * 64)
            fetched(2, "64 hexadecimal", version="v1.2.3", checksum="$(touch x)")
            fetched(2, "not the tag", version="../../$(touch x)", checksum=pin)
            fetched(2, "no file SHA256SUMS", "v9.9.9")
            fetched(2, "own repository", repository="", version="v1.2.3", checksum=pin)
            fetched(2, "kind of runner", "v1.2.3", own={"RUNNER_ARCH": "S390X"})
            fetched(2, "has no mantile-opt-1.2.3-x86_64-apple-darwin.tar.gz", "v1.2.3", own={"RUNNER_OS": "macOS", "RUNNER_ARCH": "X64"})
            fetched(2, "no file SHA256SUMS", "v1.2.3", own={"GITHUB_SERVER_URL": address.replace("https", "http")})
            for ref, inputs in [(commit, {}), ("main", {}), ("", {}), ("v1.2.3", {"build": "true"})]:
                fetched(9, f"cargo install --quiet --locked --path {ACTION.parent} --root ", ref, **inputs)
            # An archive other than that of the checksums is not unpacked.
            archive = next(folder.rglob("*.tar.gz"))
            archive.write_bytes(archive.read_bytes() + b"\0")
            fetched(2, "is not the file of SHA256SUMS", "v1.2.3")
            fetched(2, "is not the file of SHA256SUMS", commit, version="v1.2.3", checksum=pin)


def main(binary: str):
    binary = str(Path(binary).resolve())
    own = {"PATH": f"{Path(binary).parent}:/usr/bin:/bin"}
    verdicts(own)
    count = hostile(own)
    downloads(binary)
    print(f"The action: verdicts, {count} faulty inputs, and releases by their checksums")


if __name__ == "__main__":
    main(*sys.argv[1:])
