"""Writes the options of `llama-server`: `hardware/options/llama.cpp-COMMIT.json`, without compiling anything.

The source is the archive of llama-cpp-python, which carries llama.cpp. Names, kinds, choices and environment variables
come from `common/arg.cpp`; defaults and allowed values from the server's README, which llama.cpp generates from the same
options. An option that the README lacks has no default here.
"""

import re

import common

VERSION = "0.3.36"
WANTED = ("/CHANGELOG.md", "vendor/llama.cpp/common/", "vendor/llama.cpp/tools/server/README.md")
TRUTHY = {"is_truthy": ["on", "enabled", "true", "1"], "is_falsey": ["off", "disabled", "false", "0"],
          "is_autoy": ["auto", "-1"]}
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|.', re.DOTALL)
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
# What the README says of a default that is no value.
NO_VALUE = re.compile(r"unused|none|same|disabled|enabled|--|\"|$")


def split(text):
    """The pieces of a C++ list between its outer commas, and the text after the bracket that closes it."""
    pieces, depth, start, at = [], 0, 0, 0
    for token in TOKEN.finditer(text):
        word, at = token.group(), token.start()
        if word in "([{":
            depth += 1
        elif word in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and word == ","):
            pieces.append(text[start:at].strip())
            start = at + 1
        if depth < 0:
            break
    return pieces, text[at + 1:]


def calls(text):
    """The arguments of every `common_arg(...)`, and what is set on it."""
    for part in re.split(r"add_opt\(\s*common_arg\(", text)[1:]:
        pieces, rest = split(part)
        yield pieces, rest[:rest.find(";")]


def examples(settings, lists):
    """The programs that have the option."""
    found = re.search(r"set_examples\((\{.*?\}|\w+)\)", settings, re.DOTALL)
    if not found:
        return {"LLAMA_EXAMPLE_COMMON"}
    return set(re.findall(r"LLAMA_EXAMPLE_\w+", lists.get(found[1], found[1])))


def typed(row, handler):
    """Sets kind and choices from the function that takes the value."""
    head, _, body = handler.partition("{")
    strings = head.count("std::string")
    if strings == 2:
        row.update(kind="list", of="str", count=2)
    elif re.search(r"\bint\b", head):
        row["kind"] = "int"
    elif strings == 0:
        row["kind"] = "switch"
    else:
        words = re.findall(r'value == "([^"]+)"', body)
        for name, values in TRUTHY.items():
            words += values if f"{name}(value)" in body else []
        number = re.search(r"std::sto(?:(f|d)|\w+)\(value\)", body)
        row["kind"] = "str" if not number else "float" if number[1] else "int"
        if words:
            only = re.search(r"else\s*\{\s*throw", body) and not number
            row["choices" if only else "known"] = words


def readme(text):
    """What the README says of an option and of its value, by each of its flags."""
    found = {}
    for cell, said in re.findall(r"^\| `(-.*?)` \| (.*) \|$", text, re.MULTILINE):
        flags = [flag for flag in cell.split(", ") if flag.startswith("-")]
        for flag in flags:
            found.setdefault(flag.split(" ")[0], (flags[-1].partition(" ")[2], said))
    return found


def documented(row, hint, said):
    """Sets what the README says: allowed or known values, and the default."""
    listed = re.findall(r"<br/>- ([a-z][\w+-]*)(?: \(default\))?:", said)
    if allowed := re.search(r"allowed values: ([\w, ]+)", said):
        row["choices"] = allowed[1].split(", ")
    elif row["kind"] == "str" and "choices" not in row:
        if re.fullmatch(r"[a-z][a-z0-9-]*(,[a-z][a-z0-9-]*)+", hint):
            row["known"] = hint.split(",")
        elif listed:
            row["known"] = listed
    free = row["kind"] == "str" and "choices" not in row and "known" not in row
    until = r"[^)'(<]*" if free else r"[^,;)'(<]*"
    default = re.search(rf"\bdefault: '?({until})", said) or re.search(r"- (\w+) \(default\)", said)
    if not default:
        return
    text = default[1].strip()
    if row["kind"] == "switch":
        value = {"enabled": True, "true": True, "disabled": False, "false": False}.get(text)
    elif re.fullmatch(r"-?\d+", text) and row["kind"] in ("int", "float"):
        value = int(text)
    elif re.fullmatch(r"-?\d+\.\d+", text) and row["kind"] == "float":
        value = float(text)
    elif text in row.get("choices", row.get("known", ())):
        value = text
    else:
        refused = row["kind"] != "str" or "choices" in row or " " in text or NO_VALUE.match(text)
        value = None if refused else text
    if value is not None:
        row["default"] = value


def main():
    folder = common.source("llama-cpp-python", VERSION, WANTED)
    llama = folder / "vendor" / "llama.cpp"
    commit = re.search(r"llama\.cpp@(\w{7})", (folder / "CHANGELOG.md").read_text().partition(f"[{VERSION}]")[2])[1]
    tokens = TOKEN.findall((llama / "common" / "arg.cpp").read_text())
    text = "".join(token for token in tokens if not token.startswith(("//", "/*")))
    lists = dict(re.findall(r"initializer_list<enum llama_example> (\w+) = (\{.*?\});", text, re.DOTALL))
    docs = readme((llama / "tools" / "server" / "README.md").read_text())
    rows = {}
    for pieces, settings in calls(text):
        programs = examples(settings, lists)
        if not programs & {"LLAMA_EXAMPLE_COMMON", "LLAMA_EXAMPLE_SERVER"} or "set_preset_only" in settings:
            continue
        if "LLAMA_EXAMPLE_SERVER" in "".join(re.findall(r"set_excludes\(\{.*?\}\)", settings, re.DOTALL)):
            continue
        row = {"flags": STRING.findall(pieces[0])}
        if row["flags"][0] in rows or "--help" in row["flags"]:
            continue
        if pieces[1].startswith("{"):
            row["off"] = STRING.findall(pieces[1])
        typed(row, pieces[-1])
        if env := re.search(r'set_env\("(\w+)"\)', settings):
            row["env"] = env[1]
        if said := docs.get(row["flags"][0]):
            documented(row, *said)
        for name, word in (("deprecated", "DEPRECATED"), ("removed", "has been removed")):
            if word in "".join(pieces[1:-1]):
                row[name] = True
        rows[row["flags"][0]] = row
    common.write("llama.cpp", commit, ["llama-server"],
                 f"common/arg.cpp and tools/server/README.md in the source archive of llama-cpp-python {VERSION}",
                 rows.values(), spelling=["underscore"])


if __name__ == "__main__":
    main()
