"""Pictures as PNG through every door that has them: the same bytes, dark texts on a light page, nothing cut off.

Usage: pixels.py BINARY FIXTURES. The package `mantile` is installed where this runs.
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


def at_every_door(binary: str, address: str, row: dict, expected: bytes, folder: Path) -> None:
    name, body = row["name"], row["request"]
    assert over_http(address, name, body) == expected, f"{name} over HTTP"
    words = [binary, *row["line"], "--no-config"]
    printed = subprocess.run([*words, "--format", "png"], capture_output=True, check=True).stdout
    assert printed == expected, f"{name} on the command line"
    path = folder / f"{name}.png"
    subprocess.run([*words, "--out", str(path)], capture_output=True, check=True)
    assert path.read_bytes() == expected, f"{name} by --out"
    mantile.request(name, body).save(path)
    assert path.read_bytes() == expected, f"{name} saved in Python"


def main(binary: str, fixtures: str) -> None:
    drawn = set()
    with serving(binary) as (_, address), tempfile.TemporaryDirectory() as folder:
        for row in json.loads(Path(fixtures).read_text()):
            expected = mantile.request(row["name"], row["request"]).render("png")
            if expected is not None:
                looked_at(row["name"], expected)
                at_every_door(binary, address, row, expected, Path(folder))
                drawn.add(row["name"])
    assert {"optimize", "estimate", "sweep", "place", "fleet"} <= drawn, drawn
    print(f"pictures of {len(drawn)} questions in pixels, equal at every door")


if __name__ == "__main__":
    main(*sys.argv[1:])
