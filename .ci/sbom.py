"""An SPDX 2.3 document of the packages that `cargo metadata` on standard input lists; with `licences`, the texts of their
licences, which whoever passes on the program passes on too."""

import hashlib
import json
import sys
import tomllib
from pathlib import Path

metadata = json.load(sys.stdin)
lock = tomllib.loads(Path("Cargo.lock").read_text())
checksums = {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}
root = metadata["resolve"]["root"]
needed, open_nodes = set(), [root]
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
while open_nodes:
    current = open_nodes.pop()
    if current not in needed:
        needed.add(current)
        kinds = [(dep["pkg"], {kind["kind"] for kind in dep["dep_kinds"]}) for dep in nodes[current]["deps"]]
        open_nodes += [package for package, kind in kinds if None in kind]


def reference(package: dict) -> str:
    return "SPDXRef-" + "".join(c if c.isalnum() else "-" for c in f"{package['name']}-{package['version']}")


packages = sorted((one for one in metadata["packages"] if one["id"] in needed), key=lambda one: (one["name"], one["version"]))


def licences() -> None:
    """Every text once, under the packages that have it."""
    texts: dict[str, list[str]] = {}
    for package in packages:
        folder = Path(package["manifest_path"]).parent
        named = ("licen", "copying", "notice", "unlicense", "copyright")
        files = [file for file in sorted(folder.iterdir()) if file.is_file() and file.name.lower().startswith(named)]
        own = f"{package['license']}. The package has no text of it. Authors: {', '.join(package['authors']) or 'not named'}\n"
        for text in [file.read_text(errors="replace") for file in files] or [own]:
            texts.setdefault(text.strip(), []).append(f"{package['name']} {package['version']}")
    for text, names in texts.items():
        print("=" * 80, ", ".join(names), "=" * 80, "", text, "", sep="\n")


if sys.argv[1:] == ["licences"]:
    licences()
    sys.exit()
rows = []
for package in packages:
    row = {
        "SPDXID": reference(package),
        "name": package["name"],
        "versionInfo": package["version"],
        "licenseDeclared": (package["license"] or "NOASSERTION").replace("/", " OR "),
        "downloadLocation": package["repository"] or "NOASSERTION",
    }
    if checksum := checksums.get((package["name"], package["version"])):
        row["checksums"] = [{"algorithm": "SHA256", "checksumValue": checksum}]
    rows.append(row)
digest = hashlib.sha256(Path("Cargo.lock").read_bytes()).hexdigest()
top = next(one for one in packages if one["id"] == root)
print(json.dumps({
    "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
    "name": f"{top['name']}-{top['version']}", "documentNamespace": f"urn:sha256:{digest}",
    "creationInfo": {"created": "2000-01-01T00:00:00Z", "creators": ["Tool: .ci/sbom.py"]},
    "packages": rows,
    "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": reference(top)}],
}, indent=2))
