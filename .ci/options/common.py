"""What the extractions share: a published package on disk, a parser as a table, a table as a file."""

import argparse
import dataclasses
import enum
import json
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from standins import Anything

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "target" / "options"
TABLES = ROOT / "hardware" / "options"
WHEEL = ["--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_34_x86_64",
         "--platform=manylinux_2_31_x86_64", "--platform=manylinux_2_28_x86_64", "--platform=manylinux1_x86_64",
         "--platform=any"]
UNKNOWN = object()
LIMITS = {"ge": "min", "gt": "above", "le": "max", "lt": "below"}
ORDER = ("key", "also", "flags", "off", "env", "kind", "of", "count", "suffix", "json", "min", "above", "max", "below",
         "choices", "known", "keys", "repeats", "required", "deprecated", "removed", "default")


def pip(*words):
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", *words], check=True,
                   stdout=sys.stderr)


def wheel(package, version):
    """The folder with the Python files of a published wheel; it is downloaded once."""
    folder = CACHE / f"{package}-{version}"
    if not (folder / "complete").exists():
        pip("download", "--no-deps", *WHEEL, "--dest", str(folder), f"{package}=={version}")
        (archive,) = folder.glob("*.whl")
        with zipfile.ZipFile(archive) as files:
            files.extractall(folder, [name for name in files.namelist() if name.endswith(".py")])
        archive.unlink()
        (folder / "complete").touch()
    return folder


def source(package, version, wanted):
    """The folder of a published source archive with the files whose path has one of `wanted`; downloaded once."""
    folder = CACHE / f"{package}-{version}"
    if not (folder / "complete").exists():
        pip("download", "--no-deps", f"--no-binary={package}", "--dest", str(folder), f"{package}=={version}")
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as files:
            for member in files:
                if member.isfile() and any(part in member.name for part in wanted):
                    member.name = member.name.partition("/")[2]
                    files.extract(member, folder)
        archive.unlink()
        (folder / "complete").touch()
    return folder


def libraries(*packages):
    """The folder of packages that a parser needs itself; they are installed once."""
    folder = CACHE / "-".join((f"python{sys.version_info[0]}.{sys.version_info[1]}", *packages))
    if not (folder / "complete").exists():
        pip("install", "--no-warn-conflicts", "--target", str(folder), *packages)
        (folder / "complete").touch()
    return folder


def kind_of(convert):
    """The kind of value that a `type=` callable takes, found by calling it, with what else it takes.

    `suffix`: 1k is a number to it; `json`: text in braces is an object to it.
    """

    def of(text):
        try:
            return convert(text)
        except Exception:
            return UNKNOWN

    if convert is None or of("x y") is not UNKNOWN:
        return "str", {"json": True} if convert and isinstance(of("{}"), dict) else {}
    if isinstance(of("{}"), dict):
        return "json", {}
    if isinstance(of("3"), int):
        return "int", {"suffix": True} if of("1k") == 1000 else {}
    return "float" if isinstance(of("1.5"), float) else "json", {}


def plain(value):
    """A default as JSON has it, or UNKNOWN where JSON has no such value."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        values = [plain(item) for item in value]
        return UNKNOWN if any(item is UNKNOWN for item in values) else values
    if isinstance(value, dict):
        return value if not value else UNKNOWN
    if value is None or isinstance(value, (bool, int, float, str)):
        return value if value != argparse.SUPPRESS else UNKNOWN
    return UNKNOWN


def declared_keys(kind):
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        yield field.name
        inner = field.default_factory
        if isinstance(inner, type) and dataclasses.is_dataclass(inner):
            yield from (f"{field.name}.{key}" for key in declared_keys(inner))


def keys_of(convert):
    """The keys of the JSON object that a `type=` callable takes, where a dataclass declares them; those of inner
    dataclasses with a dot."""
    while convert is not None:
        for value in getattr(convert, "__defaults__", None) or ():
            if dataclasses.is_dataclass(value):
                return sorted(declared_keys(value))
        cells = dict(zip(getattr(getattr(convert, "__code__", None), "co_freevars", ()),
                         getattr(convert, "__closure__", None) or ()))
        convert = cells["return_type"].cell_contents if "return_type" in cells else None
    return None


def row_of(action, spellings, deprecated):
    """One option of an argparse parser as a row of the table."""
    off = getattr(action, "negative_option_strings", ())
    if isinstance(action, argparse.BooleanOptionalAction) and not off:
        off = [flag for flag in spellings if flag.startswith("--no-")]
    row = {"flags": [flag for flag in spellings if flag not in off]}
    if off:
        row["off"] = sorted(flag for flag in spellings if flag in off)
    if action.nargs == 0:
        row["kind"] = "switch"
    else:
        kind, more = kind_of(action.type)
        row["kind"] = kind if action.nargs in (None, "?") else "list"
        if row["kind"] == "list":
            row["of"] = kind
        if action.nargs not in (None, "+"):
            row["count"] = action.nargs
        row.update(more)
        if keys := keys_of(action.type):
            row["keys"] = keys
    if action.choices:
        values = sorted(action.choices) if isinstance(action.choices, (set, frozenset)) else action.choices
        row["choices"] = [value for value in map(plain, values) if value is not None]
    elif isinstance(action.metavar, list):
        row["known"] = [str(value) for value in action.metavar]
    if type(action).__name__ == "_AppendAction":
        row["repeats"] = True
    if action.required:
        row["required"] = True
    said = type(action).__name__.startswith("Deprecated") or "deprecated" in (action.help or "").lower()[:15]
    if said or action in deprecated:
        row["deprecated"] = True
    if (default := plain(action.default)) is not UNKNOWN:
        row["default"] = default
    elif isinstance(action.default, Anything):
        print(f"no default: {row['flags']}", file=sys.stderr)
    return row


def rows_of(parser):
    """Every option of an argparse parser, in all its spellings, sorted by the first."""
    spellings = {}
    for flag, action in parser._option_string_actions.items():
        spellings.setdefault(id(action), (action, []))[1].append(flag)
    deprecated = getattr(parser, "_deprecated", ())
    return [row_of(action, flags, deprecated) for action, flags in spellings.values() if "--help" not in flags]


def lines_of(rows):
    """Rows as JSON, one a line, so that two versions compare line by line."""
    ordered = ({key: row[key] for key in ORDER if key in row} for row in rows)
    return "[\n" + ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in ordered) + "\n  ]"


def write(runtime, version, program, where, rows, yaml=None, **more):
    """Writes one table. `yaml`: the rows of the keys of a configuration file."""
    name = f"{runtime}-{version}"
    table = {"id": name, "runtime": runtime, "version": version, "program": program, "source": where, **more}
    parts = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items()]
    rows = sorted(rows, key=lambda row: row["flags"][0].lstrip("-"))
    parts.append(f'  "options": {lines_of(rows)}')
    if yaml:
        parts.append(f'  "yaml": {lines_of(yaml)}')
    path = TABLES / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print(f"{path.relative_to(ROOT)}: {len(rows)} options, {len(yaml or [])} keys")


def check_commands(words, programs, check):
    """Checks one command line given as words, or one per line of the standard input where the only word is `-`.

    Variables before the program are passed over, and comments in lines. `check` raises or exits where the runtime's
    parser refuses its list of arguments. Returns the exit status.
    """
    commands = [words]
    if words == ["-"]:
        commands = [command for line in sys.stdin if (command := shlex.split(line, comments=True))]
    if not commands:
        raise SystemExit("no command line was given")
    refused = 0
    for command in commands:
        while command and re.match(r"[A-Z_]+=", command[0]):
            command = command[1:]
        for program in programs:
            if command[:len(program)] == program:
                command = command[len(program):]
                break
        try:
            check(command)
        except SystemExit as end:
            if end.code not in (None, 0):
                refused += 1
                print(f"refused: {shlex.join(command)}", file=sys.stderr)
        except Exception as error:
            refused += 1
            print(f"{error}\nrefused: {shlex.join(command)}", file=sys.stderr)
    print(f"{len(commands) - refused} passed, {refused} failed")
    return 1 if refused else 0
