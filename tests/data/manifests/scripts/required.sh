#!/usr/bin/env bash
set -euo pipefail
: "${MODEL:?MODEL must be set}"
vllm serve "$MODEL" --tensor-parallel-size "${TP:-8}"
