"""What the documents say of the WebAssembly module: their snippets run, and their sizes are the module's.

Usage: documents.py WASM
"""

import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "doors.md"
#: A size in words, its decimals being those that are rounded to.
SIZE = r"([\d.]+) MB"


def snippets(text: str) -> list[str]:
    return re.findall(r"```js\n(.*?)```", text, re.DOTALL)


def run(snippet: str, wasm: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "src" / "site" / "mantile.mjs", folder)
        shutil.copy(wasm, Path(folder) / "mantile_wasm.wasm")
        path = Path(folder) / "snippet.mjs"
        path.write_text(snippet)
        done = subprocess.run(["node", str(path)], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


# A tenth: the size differs from compiler to compiler.
def about_the_size(name: str, stated: str, size: int) -> None:
    megabytes = size / 1e6
    assert abs(float(stated) - megabytes) < megabytes / 10, f"{name}: {stated} MB stated, it has {megabytes:.2f} MB"


def main(wasm: str) -> None:
    text = DOCUMENT.read_text()
    in_node = [one for one in snippets(text) if "node:" in one]
    assert len(in_node) == 1, "one snippet for Node"
    assert "tok/s" in run(in_node[0], Path(wasm))
    module = Path(wasm).read_bytes()
    stated = re.search(rf"The module has about {SIZE}, {SIZE} compressed", text.replace("\n", " "))
    assert stated, "the size of the module is stated"
    about_the_size("the module", stated[1], len(module))
    about_the_size("compressed", stated[2], len(gzip.compress(module, 9)))
    print("the snippet for Node runs, and the module has about the sizes that the document states")


if __name__ == "__main__":
    main(*sys.argv[1:])
