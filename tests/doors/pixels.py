"""Pictures as PNG through every door that has them: the same bytes, dark texts on a light page, nothing cut off.

Usage: pixels.py BINARY. The package `mantile` is installed where this runs.
"""

import io
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import mantile
from PIL import Image
from server import serving

SCENARIO = {"model": "Llama-3.1-8B", "hardware": "2xl40s"}
LINE = ["--model", "Llama-3.1-8B", "--hardware", "2xl40s"]
#: Questions with pictures: name, body, words of the command line.
QUESTIONS = [
    ("optimize", {"scenario": SCENARIO}, LINE),
    ("estimate", {"scenario": {**SCENARIO, "concurrency": 4, "deployment": {"both": {"tp": 2}}}}, [*LINE, "--tp", "2", "--concurrency", "4"]),
    ("sweep", {"scenario": SCENARIO, "vary": ["isl=1k..4k*2"]}, [*LINE, "--vary", "isl=1k..4k*2"]),
    ("static", {"scenario": SCENARIO, "plan": {"tp": 2}}, [*LINE, "--tp", "2"]),
    ("audit", {"scenario": SCENARIO}, LINE),
]


def over_http(address: str, name: str, body: dict) -> bytes:
    headers = {"Content-Type": "application/json", "Accept": "image/png"}
    request = urllib.request.Request(f"http://{address}/v2/{name}", json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request) as response:
        assert response.headers["Content-Type"] == "image/png", name
        return response.read()


def looked_at(name: str, png: bytes) -> None:
    image = Image.open(io.BytesIO(png)).convert("L")
    (width, height), page = image.size, image.getpixel((0, 0))
    assert page > 240, f"{name}: the page is {page}"
    border = [image.getpixel((x, y)) for x in range(width) for y in (0, height - 1)]
    border += [image.getpixel((x, y)) for y in range(height) for x in (0, width - 1)]
    assert set(border) == {page}, f"{name} is cut off"
    levels = image.histogram()
    assert sum(levels[:40]) < 0.1 * width * height, f"{name} is dark"
    assert sum(levels[200:]) > 0.5 * width * height, f"{name} is not light"
    title = image.crop((40, 36, 400, 60)).histogram()
    assert sum(title[:128]) > 100, f"{name} has no title"


def main(binary: str) -> None:
    with serving(binary) as (_, address), tempfile.TemporaryDirectory() as folder:
        for name, body, line in QUESTIONS:
            expected = mantile.request(name, body).render("png")
            looked_at(name, expected)
            assert over_http(address, name, body) == expected, f"{name} over HTTP"
            words = [binary, name, *line, "--no-config"]
            printed = subprocess.run([*words, "--format", "png"], capture_output=True, check=True).stdout
            assert printed == expected, f"{name} on the command line"
            path = Path(folder) / f"{name}.png"
            subprocess.run([*words, "--out", str(path)], capture_output=True, check=True)
            assert path.read_bytes() == expected, f"{name} by --out"
            mantile.request(name, body).save(path)
            assert path.read_bytes() == expected, f"{name} saved in Python"
    print(f"{len(QUESTIONS)} pictures in pixels, equal at every door")


if __name__ == "__main__":
    main(*sys.argv[1:])
