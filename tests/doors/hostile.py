"""Hostile input over sockets: answered properly, and the server lives. It runs where no address can be fetched.

Usage: hostile.py BINARY
"""

import json
import socket
import sys
import time

from server import serving

MARKUP = "<script>alert(1)</script>\"'&\u202e\x00"


def exchange(address: tuple[str, int], data: bytes, wait: float = 20.0, ends: bool = True) -> bytes:
    """Everything that the server sends to these bytes; a client that `ends` its side may be seen as one that left."""
    with socket.create_connection(address, timeout=wait) as stream:
        try:
            stream.sendall(data)
            if ends:
                stream.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before all was sent
        answer = b""
        try:
            while part := stream.recv(65536):
                answer += part
        except OSError:
            pass
        return answer


def post(path: str, body: bytes, headers: str = "") -> bytes:
    if "content-type" not in headers:
        headers += "content-type: application/json\r\n"
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def main(binary: str):
    with serving(binary) as (server, text):
        host, port = text.split(":")
        attack(server, (host, int(port)))


def attack(server, address: tuple[str, int]):
    scenario = lambda **keys: json.dumps({"scenario": keys}).encode()
    deep = b"[" * 100_000 + b"]" * 100_000
    cases = {
        "20 MB": (post("/v2/optimize", b'"' + b"x" * 20_000_000 + b'"'), {413}),
        "deep": (post("/v2/optimize", deep), {400, 422}),
        "deep object": (post("/v2/optimize", b'{"a":' * 50_000 + b"1" + b"}" * 50_000), {400, 422}),
        "huge number": (post("/v2/optimize", b'{"scenario": {"isl": 1e999}}'), {400, 422}),
        "long number": (post("/v2/optimize", b'{"scenario": {"isl": ' + b"9" * 100_000 + b"}}"), {400, 422}),
        "negative": (post("/v2/optimize", scenario(isl=-1)), {422}),
        "not a number": (post("/v2/optimize", b'{"scenario": {"rate": NaN}}'), {400}),
        "key twice": (post("/v2/optimize", b'{"scenario": {}, "scenario": {}}'), {400, 422}),
        "not UTF-8": (post("/v2/optimize", b"\xff\xfe"), {400}),
        "unknown type": (post("/v2/optimize", b"{}", "content-type: application/x-nothing\r\n"), {415}),
        "markup": (post("/v2/optimize", scenario(model=MARKUP)), {422}),
        "path": (post("/v2/optimize", scenario(model="../../../../etc/passwd")), {422}),
        "absolute path": (post("/v2/estimate", scenario(hardware="/proc/self/environ")), {422}),
        "address": (post("/v2/optimize", scenario(model="https://example.invalid/config.json")), {422}),
        "hub": (post("/v2/optimize", scenario(model="hf:a/b")), {422}),
        "path in set": (post("/v2/optimize", scenario(set=["model./etc/passwd=1"])), {422}),
        "plan": (post("/v2/estimate", json.dumps({"scenario": {"deployment": {"plan": "9" * 60_000}}}).encode()), {422}),
        "inline": (post("/v1/estimate", json.dumps({"model_id": MARKUP, "hardware": {"gpus": [{"sku": MARKUP}]}, "workload": {"context_tokens": 1, "output_tokens": 1}}).encode()), {422}),
        "layer": (post("/config/layer-metrics", json.dumps({"model_id": MARKUP, "hardware_config": MARKUP, "layer_type": "attention", "seq_length": 2**63}).encode()), {422}),
        "dots": (b"GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", {400, 404}),
        "encoded dots": (b"GET /models/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", {404, 422}),
        "null": (b"GET /models/%00 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", {400, 404, 422}),
        "long path": (b"GET /" + b"a" * 500_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", {414, 431, 400}),
        "many headers": (b"GET /v2 HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 5000 + b"\r\n", {431, 400}),
        "no host": (b"GET /v2 HTTP/1.0\r\n\r\n", {400}),
        "foreign host": (b"GET /v2 HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n", {421}),
        "two hosts": (b"GET /v2 HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n", {400}),
        "foreign origin": (post("/v2/glossary", b"{}", "origin: https://evil.example\r\n"), {403}),
        "plain text": (post("/v1/calibrate", b"{}", "content-type: text/plain\r\n"), {415}),
        "not HTTP": (b"\x16\x03\x01\x02\x00\x01\x00", {400}),
        "two lengths": (b"POST /v2/glossary HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\ncontent-length: 40\r\nconnection: close\r\n\r\n{}GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n", {400}),
        "length and chunks": (b"POST /v2/glossary HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n", {200, 400}),
        "odd chunks": (b"POST /v2/glossary HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: xchunked\r\nconnection: close\r\n\r\n{}", {400, 501}),
        "folded header": (b"GET /v2 HTTP/1.1\r\nhost: localhost\r\nx: b\r\n c\r\n\r\n", {400}),
        "event stream of a fault": (post("/v2/optimize", scenario(model=MARKUP), "accept: text/event-stream\r\n"), {200}),
        "odd accept": (post("/v2/glossary", b"{}", "accept: ;;;q=x,,\r\n"), {200, 406}),
    }
    for name, (data, expected) in cases.items():
        answer = exchange(address, data)
        found = statuses(answer)
        # One request has one answer: nothing is smuggled behind it.
        assert len(found) <= 1 and set(found) <= expected, (name, found, answer[:300])
        assert b"root:" not in answer, (name, answer[:500])
        assert b"<script>" not in answer or b"content-type: text/html" not in answer.lower(), (name, answer[:500])
        assert server.poll() is None, f"{name} ended the server"
    # Two hundred clients that send nothing hold nobody up.
    idle = [socket.create_connection(address) for _ in range(200)]
    for stream in idle:
        stream.sendall(b"POST /v2/optimize HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
    begun = time.monotonic()
    assert statuses(exchange(address, post("/v2/glossary", b"{}"), ends=False)) == [200]
    assert time.monotonic() - begun < 5, "slow clients hold a quick one up"
    for stream in idle:
        stream.close()
    print(f"{len(cases)} hostile requests answered")


if __name__ == "__main__":
    main(*sys.argv[1:])
