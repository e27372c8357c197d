"""Checks `hardware/effects`: every option of every table of a runtime is read by its launch or in exactly one class.

    python .ci/options/check_effects.py

Also that no entry names an option that no table has, that values meant by other words are known to the newest parser, and
that a renamed option has an heir. It ends with 1 and one line for each fault: file, key, what was found and what to do.
"""

import json
import sys

from common import ROOT, TABLES

EFFECTS = ROOT / "hardware" / "effects"
CHANGES = ("memory", "schedule", "speed", "length", "start")
SCOPES = ("device", "rank", "replica", "deployment")
KEYS = ("id", "runtime", "source", "none", "not_modelled", "scope", "synonyms", "rules", "environment", "defaults",
        "renamed", "removed")
CLASSES = ("none", "not_modelled")


def read(path):
    return json.loads(path.read_text())


def spellings(row):
    return row["flags"] + row.get("off", [])


def placed(launch):
    """The options and the environment variables that a launch reads or writes."""
    options, variables = set(), set()
    for setting in launch["settings"]:
        place = setting["place"] if isinstance(setting["place"], dict) else {}
        for kind, value in place.items():
            name = value["flag"] if isinstance(value, dict) else value
            (variables if kind == "environment" else options).add(name)
    return options, variables


class Checked:
    """One file of effects with the tables and the launch of its runtime; `faults` are lines for a person."""

    def __init__(self, path):
        self.name, self.effects, self.faults = str(path.relative_to(ROOT)), read(path), []
        runtime = self.effects["runtime"]
        launch = read(ROOT / "hardware" / "launches" / f"{runtime}.json")
        self.options, self.variables = placed(launch)
        self.tables = [table for file in sorted(TABLES.glob("*.json")) if (table := read(file))["runtime"] == runtime]
        (newest,) = (table for table in self.tables if table["id"] == launch["table"])
        self.newest = {flag: row for row in newest["options"] for flag in spellings(row)}

    def fault(self, key, words):
        self.faults.append(f"{self.name}: {key}: {words}")

    def canonical(self, row):
        """The name of an option in this file: the first of the newest table that has it, of its heir, or its own."""
        names = [self.newest[flag]["flags"][0] for flag in spellings(row) if flag in self.newest]
        heirs = [self.effects["renamed"][flag]["to"] for flag in row["flags"] if flag in self.effects["renamed"]]
        return (names + heirs + row["flags"])[0]

    def check_classes(self):
        known = set(self.effects["removed"])
        for table in self.tables:
            for row in table["options"]:
                flag = self.canonical(row)
                known.add(flag)
                read_by_launch = flag in self.options or set(self.newest.get(flag, row)["flags"]) & self.options
                homes = [name for name in CLASSES if flag in self.effects[name]]
                if read_by_launch and homes:
                    self.fault(f"{homes[0]}.{flag}", "the launch reads it: remove it here")
                elif not read_by_launch and len(homes) != 1:
                    found = " and ".join(homes) or "no class"
                    self.fault(flag, f"option of {table['id']} in {found}: put it into exactly one of {CLASSES}")
        for name in (*CLASSES, "scope", "synonyms"):
            for flag in self.effects[name]:
                if flag not in known:
                    self.fault(f"{name}.{flag}", "no table has it as its first spelling: correct or remove it")
        for flag in self.effects["removed"]:
            if not any(flag in self.effects[name] for name in CLASSES):
                self.fault(f"removed.{flag}", f"in no class: put it into one of {CLASSES}")

    def check_changes(self, key, entry):
        changes = entry.get("changes", [])
        if not changes or changes != [word for word in CHANGES if word in changes]:
            self.fault(f"{key}.changes", f"{changes}: some of {CHANGES}, in this order")

    def check_entries(self):
        if tuple(self.effects) != KEYS:
            self.fault("keys", f"{list(self.effects)}: {list(KEYS)}, in this order")
        for flag, why in self.effects["none"].items():
            if not why.strip():
                self.fault(f"none.{flag}", "no reason: say why nothing changes")
        for flag, entry in self.effects["not_modelled"].items():
            self.check_changes(f"not_modelled.{flag}", entry)
            if not entry.get("why", "").endswith("."):
                self.fault(f"not_modelled.{flag}.why", f"{entry.get('why')!r}: one sentence")
        for name, entry in self.effects["environment"].items():
            if name in self.variables:
                self.fault(f"environment.{name}", "the launch reads it: remove it here")
            if entry["effect"] not in CLASSES or not entry["why"].strip():
                self.fault(f"environment.{name}", f"effect is one of {CLASSES}, with a reason")
            elif entry["effect"] == "not_modelled":
                self.check_changes(f"environment.{name}", entry)
        for flag, scope in self.effects["scope"].items():
            if scope not in SCOPES:
                self.fault(f"scope.{flag}", f"{scope!r}: one of {SCOPES}")
        for number, entry in enumerate(self.effects["defaults"]):
            if not any(entry["flag"] in row["flags"] for table in self.tables for row in table["options"]):
                self.fault(f"defaults.{number}.flag", f"no table has {entry['flag']}: correct or remove it")
            if not entry["when"] or not entry["source"].strip():
                self.fault(f"defaults.{number}", "say when it holds and where it was read")

    def check_value(self, key, flag, value):
        row = self.newest.get(flag, {})
        choices = row.get("choices") or row.get("known")
        if choices and value not in [str(choice) for choice in choices]:
            self.fault(key, f"{flag} does not know {value!r}: one of {choices}")

    def check_names(self):
        for flag, values in self.effects["synonyms"].items():
            for word, value in values.items():
                self.check_value(f"synonyms.{flag}.{word}", flag, value)
        for flag, heir in self.effects["renamed"].items():
            key = f"renamed.{flag}"
            if flag in self.newest or flag in self.effects["removed"]:
                self.fault(key, "still in the newest table, or removed too: remove it here")
            row = self.newest.get(heir["to"])
            if row is None or row["flags"][0] != heir["to"]:
                self.fault(f"{key}.to", f"{heir['to']} is no first spelling of the newest table: name one")
            if row and "key" in heir and heir["key"] not in row.get("keys", [heir["key"]]):
                self.fault(f"{key}.key", f"{heir['to']} has no key {heir['key']!r}: one of {row['keys']}")
            for value in [heir[name] for name in ("value",) if name in heir] + list(heir.get("values", {}).values()):
                self.check_value(f"{key}.value", heir["to"], value)
        for flag in self.effects["removed"]:
            if flag in self.newest:
                self.fault(f"removed.{flag}", "still in the newest table: remove it here")

    def run(self):
        self.check_classes()
        self.check_entries()
        self.check_names()
        counts = {name: len(self.effects[name]) for name in (*CLASSES, "environment", "defaults", "renamed", "removed")}
        tables = ", ".join(f"{table['id']} ({len(table['options'])})" for table in self.tables)
        print(f"{self.name}: {counts}; tables {tables}; {len(self.faults)} faults")
        return self.faults


def main():
    faults = [fault for path in sorted(EFFECTS.glob("*.json")) for fault in Checked(path).run()]
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
