"""64 clients of mixed requests: no error, a quick `/v1/estimate`, flat memory.

Usage: load.py BINARY [SECONDS]
"""

import asyncio
import json
import random
import sys
import time
from pathlib import Path

from server import serving

CLIENTS = 64
#: Longest 99th percentile of `/v1/estimate`, s.
LIMIT = 0.020
#: Growth of resident memory after the first tenth of the time, bytes.
GROWTH = 32 << 20


def requests() -> list[tuple[str, bytes]]:
    estimate = lambda tokens, concurrency: {
        "model_id": "llama-3.1-8b", "runtime_id": "vllm", "hardware": {"hardware_id": "dual-4090-epyc"},
        "workload": {"context_tokens": tokens, "output_tokens": 128, "concurrency": concurrency},
    }
    rows = [("/v1/estimate", estimate(tokens, users)) for tokens in (512, 1024, 2048, 4096) for users in (1, 2, 4, 8)]
    layer = {"model_id": "llama_3.3_70b", "hardware_config": "nvidia_nvl72_rack", "layer_type": "attention", "seq_length": 2048, "tensor_parallel": 8}
    rows += [("/config/layer-metrics", layer), ("/v2/glossary", {}), ("/v2/catalog", {"kind": "devices"})]
    rows += [("/v2/estimate", {"scenario": {"model": "Qwen3-0.6B", "hardware": "1xh100", "concurrency": users}}) for users in (1, 8, 64)]
    return [(path, json.dumps(body).encode()) for path, body in rows]


def resident(process) -> int:
    pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    return int(pages) * 4096


async def client(address: tuple[str, str], seed: int, until: float, rows: list, times: dict):
    draw = random.Random(seed)
    reader, writer = await asyncio.open_connection(*address)
    while time.monotonic() < until:
        path, body = draw.choice(rows)
        begun = time.monotonic()
        writer.write(b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (path.encode(), len(body), body))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        times.setdefault(path, []).append(time.monotonic() - begun)
        assert b" 200 " in head.split(b"\r\n")[0], (path, head)
        await asyncio.sleep(draw.uniform(0.05, 0.25))
    writer.close()


async def load(process, address: tuple[str, str], seconds: float):
    rows = requests()
    # Each question once: a server is measured warm.
    await client_once(address, rows)
    times: dict[str, list[float]] = {}
    until = time.monotonic() + seconds
    clients = [client(address, seed, until, rows, times) for seed in range(CLIENTS)]
    early = asyncio.get_event_loop().create_future()
    asyncio.get_event_loop().call_later(seconds / 10, lambda: early.set_result(resident(process)))
    await asyncio.gather(*clients)
    grown = resident(process) - await early
    for path, found in sorted(times.items()):
        found.sort()
        quantile = lambda share: found[min(int(share * len(found)), len(found) - 1)] * 1e3
        print(f"{path:24} {len(found):6} requests, p50 {quantile(0.5):.1f} ms, p99 {quantile(0.99):.1f} ms")
    print(f"memory grew by {grown / 2**20:.1f} MiB to {resident(process) / 2**20:.0f} MiB")
    estimates = times["/v1/estimate"]
    assert estimates[int(0.99 * len(estimates))] < LIMIT, "p99 of /v1/estimate"
    assert grown < GROWTH, "memory grows"


async def client_once(address: tuple[str, str], rows: list):
    for row in rows:
        reader, writer = await asyncio.open_connection(*address)
        path, body = row
        writer.write(b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (path.encode(), len(body), body))
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200"), answer[:300]
        writer.close()


def main(binary: str, seconds: str = "60"):
    with serving(binary) as (process, address):
        asyncio.run(load(process, tuple(address.split(":")), float(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
