"""The OpenAPI document is valid, and random requests by it meet no 5xx and no answer outside it (schemathesis).

Usage: contract.py BINARY
"""

import subprocess
import sys
from pathlib import Path

from server import serving

# Requests of seconds: random ones of them would take hours and tell nothing new.
SLOW = "^(sweep|recommend|fleet|calibrate|validate)$"


def main(binary: str):
    with serving(binary, "--time-limit", "2", "--waiting", "1000") as (_, address):
        run(address)


def run(address: str):
    words = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"http://{address}/openapi.json",
        "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        "--max-examples", "15", "--phases", "examples,fuzzing", "--generation-deterministic",
        "--exclude-operation-id-regex", SLOW, "--request-timeout", "60", "--no-color", "--suppress-health-check", "all",
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    print(done.stdout[-6000:] if done.returncode else done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, "schemathesis found a fault"


if __name__ == "__main__":
    main(*sys.argv[1:])
