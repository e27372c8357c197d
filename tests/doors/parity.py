"""Every request through every door: command line, HTTP, MCP, WebAssembly and Python give the same bytes.

Usage: parity.py BINARY WASM FIXTURES [RANDOM [SEED]], where RANDOM is a number of random questions in addition to the
fixtures. The package `mantile` is installed where this runs. With `-` for WASM, the doors of the program alone are compared.
"""

import asyncio
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from random_questions import questions
from server import serving

HERE = Path(__file__).parent
#: In place of the module: only the program is there.
PROGRAM_ALONE = "-"
#: Requests about the machine that answers: a server and a browser have none to show.
OF_THIS_MACHINE = {"detect"}


def fixtures(binary: str, path: str) -> list[tuple[str, dict, list[str] | None]]:
    """Name, body, and the words of the command line where they are enough for the request."""
    lines = json.loads(Path(path).read_text())
    rows = [(row["name"], row["request"], row["line"]) for row in lines]
    run = lambda *words: json.loads(subprocess.run([binary, *words, "--format", "json"], capture_output=True, text=True, check=True).stdout)
    one = run("estimate", "--model", "Qwen3-0.6B", "--hardware", "1xl40s", "--plan", "1 x tp1 @4")
    two = run("estimate", "--model", "Qwen3-0.6B", "--hardware", "1xh100", "--plan", "1 x tp1 @4")
    scenario = {"model": "Qwen3-0.6B", "hardware": "1xh100"}
    rows += [
        ("schema", {"name": "system"}, None),
        ("permalink", {"request": "optimize", "scenario": scenario}, None),
        ("diff", {"a": one, "b": two}, None),
        ("verify", {"result": two}, None),
        ("calibrate", {"tables": [{"name": "none.csv", "csv": "model,hardware\n"}]}, None),
        ("detect", {}, None),
    ]
    return rows


def over_http(address: str, name: str, body: dict) -> str:
    request = urllib.request.Request(f"http://{address}/v2/{name}", json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.read().decode()
    except urllib.error.HTTPError as fault:
        return "error: " + json.loads(fault.read()).get("field", "")


def in_node(wasm: str, rows: list) -> list[str]:
    """The answers of the module in Node."""
    calls = json.dumps([[name, body] for name, body, _ in rows])
    done = subprocess.run(["node", str(HERE / "wasm.mjs"), wasm], input=calls, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_python(name: str, body: dict) -> str:
    import mantile

    try:
        return mantile.request(name, body).to_json()
    except mantile.MantileError as fault:
        return "error: " + fault.key


async def over_mcp(binary: str, rows: list) -> list[str]:
    answers = []
    async with stdio_client(StdioServerParameters(command=binary, args=["mcp"])) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            await session.initialize()
            tools = {tool.name for tool in (await session.list_tools()).tools}
            # The same answer under the name of what a user wants, with a symptom that it needs.
            assert tools == set(name for name, _, _ in rows) | {"troubleshoot"}, tools
            start = {"command": "vllm serve Qwen/Qwen3-32B", "log": "out of memory when graphs are captured",
                     "scenario": {"hardware": "1xl40s"}}
            answered = [(await session.call_tool(name, start)).content[0].text for name in ("check", "troubleshoot")]
            assert answered[0] == answered[1] and "corrections" in answered[0], answered
            without = await session.call_tool("troubleshoot", {name: start[name] for name in ("command", "scenario")})
            assert "call `check`" in without.content[0].text, without
            for resource in (await session.list_resources()).resources:
                assert (await session.read_resource(resource.uri)).contents[0].text
            for name, body, _ in rows:
                result = await session.call_tool(name, body)
                text = result.content[0].text
                failed = getattr(result, "is_error", None) or getattr(result, "isError", None)
                parts = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
                answers.append("error: " + parts["key"] if failed else text)
    return answers


def on_command_line(binary: str, line: list[str]) -> str:
    done = subprocess.run([binary, *line, "--format", "json", "--no-config"], capture_output=True, text=True)
    if done.returncode != 2:
        return done.stdout
    return "error: " + json.loads(done.stderr)["error"]["key"]


def main(binary: str, wasm: str, path: str, count: str = "0", seed: str = "1"):
    rows = fixtures(binary, path) + questions(int(count), int(seed))
    node = [None] * len(rows) if wasm == PROGRAM_ALONE else in_node(wasm, rows)
    assistant = asyncio.run(over_mcp(binary, rows))
    with serving(binary) as (_, address):
        compared = compare(binary, address, rows, node, assistant)
    print(f"{len(rows)} requests, {compared} answers equal byte for byte")


def compare(binary: str, address: str, rows: list, node: list, assistant: list) -> int:
    compared = differ = 0
    for (name, body, line), by_node, by_mcp in zip(rows, node, assistant):
        # The first door, with which the others are compared: Python where there is more than the program.
        expected = by_mcp if by_node is None else in_python(name, body)
        doors = {} if by_node is None else {"mcp": by_mcp}
        if name not in OF_THIS_MACHINE:
            doors |= {"http": over_http(address, name, body)} | ({} if by_node is None else {"wasm": by_node})
        if line is not None:
            doors["command line"] = on_command_line(binary, line)
        for door, found in doors.items():
            if name in OF_THIS_MACHINE:
                # Other programs use memory between two answers.
                found, expected = [re.sub(r'"free_bytes": [0-9.]+', "", text) for text in (found, expected)]
            if found != expected:
                at = next((at for at, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
                near = slice(max(at - 60, 0), at + 60)
                print(f"{name} {line or body} over {door} differs from the first door at {at}:\n{found[near]!r}\n{expected[near]!r}")
                differ += 1
            compared += 1
    if differ:
        sys.exit(f"{differ} of {compared} answers differ")
    return compared


if __name__ == "__main__":
    main(*sys.argv[1:])
