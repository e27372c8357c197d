"""Shows that the validator takes every sample and refuses each sample with one fault in it."""

import copy
import sys
from pathlib import Path

import validate
import yaml

SAMPLES = Path(__file__).with_name("samples")
POD = "spec.template.spec.containers.0"
# (file, document, place, value): the value that makes the document wrong; REMOVED takes the key away.
REMOVED = object()
FAULTS = [
    ("kubernetes", 1, "spec.replica", 2), ("kubernetes", 1, "spec.replicas", "2"), ("kubernetes", 1, "spec.replicas", -1),
    ("kubernetes", 1, "spec.selector", REMOVED), ("kubernetes", 1, "apiVersion", "apps/v1beta1"),
    ("kubernetes", 1, "metadata.name", "Demo_1"), ("kubernetes", 1, f"{POD}.args.2", 64), ("kubernetes", 1, f"{POD}.arg", []),
    ("kubernetes", 1, f"{POD}.env.1.value", 5), ("kubernetes", 1, f"{POD}.resources.limits.memory", "64 GiB"),
    ("kubernetes", 1, f"{POD}.ports.0.containerPort", 80000), ("kubernetes", 1, f"{POD}.startupProbe.httpGet.port", REMOVED),
    ("kubernetes", 1, "spec.strategy.type", "Recreated"), ("kubernetes", 1, "spec.template.spec.volumes.0.emptyDir.medium", "RAM"),
    ("kubernetes", 0, "data.n", 1), ("kubernetes", 2, "spec.ports.0.port", REMOVED), ("kubernetes", 3, "kind", "Volume"),
    ("kubernetes", 4, "spec.leaderWorkerTemplate.restartPolicy", "Always"), ("kubernetes", 4, "spec.leaderWorkerTemplate.workerTemplate", REMOVED),
    ("kubernetes", 4, "spec.leaderWorkerTemplate.workerTemplate.spec.container", []), ("kubernetes", 5, "spec.services", {}),
    ("kubernetes", 5, "spec.components.1.multinode.nodeCount", 1), ("kubernetes", 5, "spec.components.1.type", "decoder"),
    ("kubernetes", 5, "spec.components.1.podTemplate.spec.containers.0.name", "engine"),
    ("kubernetes", 5, "spec.components.1.podTemplate.spec.containers.0.imag", "x"), ("kubernetes", 6, "spec.targetPorts", []),
    ("kubernetes", 6, "spec.endpointPickerRef.port", REMOVED), ("kubernetes", 7, "spec.rules.0.backendRefs.0.name", REMOVED),
    ("compose", 0, "services.decode-0.comand", []), ("compose", 0, "services.decode-0.deploy.resources.reservations.devices.0.device_ids", 0),
    ("compose", 0, "services.decode-0.environment.LIST", [1]), ("compose", 0, "service", {}),
    ("values", 0, "modelArtifacts.uri", "Qwen/Qwen3-8B"), ("values", 0, "decode.parallelism.pipeline", 2),
    ("values", 0, "decode.containers.0.modelCommand", "vllm"), ("values", 1, "router.modelServers.matchLabels", REMOVED),
    ("trtllm", 0, "context_servers.urls.0", "http://10.0.0.1:8001"), ("trtllm", 0, "context_server", {}),
    ("trtllm", 1, "max_batchsize", 64), ("trtllm", 1, "max_batch_size", "64"), ("trtllm", 1, "kv_cache_config.fraction", 0.9),
]


def spoilt(document, place, value):
    """A copy of `document` with `value` at the dotted `place`."""
    document = copy.deepcopy(document)
    *way, last = [int(step) if step.isdigit() else step for step in place.split(".")]
    at = document
    for step in way:
        at = at[step]
    if value is REMOVED:
        del at[last]
    else:
        at[last] = value
    return document


def main():
    schemas, wrong = validate.Schemas(), []
    paths = sorted(SAMPLES.glob("*.yaml"))
    for path in paths:
        wrong += validate.faults(schemas, path)
    documents = {path.stem: list(yaml.safe_load_all(path.read_text())) for path in paths}
    folder = validate.ROOT / "target" / "schemas" / "spoilt"
    folder.mkdir(parents=True, exist_ok=True)
    for name, number, place, value in FAULTS:
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(spoilt(documents[name][number], place, value), sort_keys=False))
        found = validate.faults(schemas, path)
        if not found:
            wrong.append(f"not refused: {name}, document {number}, {place}")
        elif "-v" in sys.argv:
            print(*found, sep="\n")
    path.write_text("name: a\nname: b\nservices: {}\n")
    if not validate.faults(schemas, path):
        wrong.append("not refused: a key given twice")
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    print(f"{len(paths) + len(FAULTS) + 1 - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
