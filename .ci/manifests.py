"""Manifests for Homebrew and winget from the checksums of a release: `manifests.py VERSION FOLDER`.

The address of the archives is that of the project's releases; `MANTILE_RELEASES` sets it.
"""

import os
import sys
from pathlib import Path

version, folder = sys.argv[1], Path(sys.argv[2])
address = os.environ.get("MANTILE_RELEASES", "https://example.invalid/mantile/releases") + f"/v{version}"
sums = dict(reversed(line.split("  ", 1)) for line in (folder / "SHA256SUMS").read_text().splitlines())
about = "The best way to serve an LLM on given accelerators: how fast, at what cost, and why"


def archive(target: str) -> tuple[str, str] | None:
    name = next((name for name in sums if target in name), None)
    return (f"{address}/{name}", sums[name]) if name else None


blocks = []
for system, processor, target in [
    ("macos", "arm", "aarch64-apple-darwin"), ("macos", "intel", "x86_64-apple-darwin"),
    ("linux", "arm", "aarch64-unknown-linux"), ("linux", "intel", "x86_64-unknown-linux"),
]:
    if found := archive(target):
        blocks.append(f'  on_{system} do\n    on_{processor} do\n      url "{found[0]}"\n      sha256 "{found[1]}"\n    end\n  end\n')
if blocks:
    (folder / "mantile-opt.rb").write_text(
        f'class MantileOpt < Formula\n  desc "{about}"\n  version "{version}"\n  license "Apache-2.0"\n'
        + "".join(blocks)
        + '  def install\n    bin.install "mantile-opt"\n    man1.install "man/mantile-opt.1"\n'
        '    bash_completion.install "completions/mantile-opt.bash" => "mantile-opt"\n'
        '    zsh_completion.install "completions/mantile-opt.zsh" => "_mantile-opt"\n'
        '    fish_completion.install "completions/mantile-opt.fish"\n  end\n'
        '  test do\n    system bin/"mantile-opt", "--version"\n  end\nend\n'
    )
if found := archive("x86_64-pc-windows"):
    (folder / "mantile-opt.installer.yaml").write_text(
        f"PackageIdentifier: Mantile.MantileOpt\nPackageVersion: {version}\nInstallerType: zip\n"
        "NestedInstallerType: portable\nNestedInstallerFiles:\n"
        f"  - RelativeFilePath: mantile-opt-{version}-x86_64-pc-windows-gnu\\mantile-opt.exe\n"
        f"Installers:\n  - Architecture: x64\n    InstallerUrl: {found[0]}\n    InstallerSha256: {found[1].upper()}\n"
        "ManifestType: installer\nManifestVersion: 1.6.0\n"
    )
