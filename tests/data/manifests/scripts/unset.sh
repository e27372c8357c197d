#!/usr/bin/env bash
PARALLEL_ARGS=(--tensor-parallel-size "$TP")
if [ "${DP_ATTENTION}" = "true" ]; then
    PARALLEL_ARGS=(--tensor-parallel-size 1 --data-parallel-size "$TP")
fi
vllm serve Qwen/Qwen3-32B --port "$PORT" "${PARALLEL_ARGS[@]}" --max-model-len "$MAX_MODEL_LEN"
