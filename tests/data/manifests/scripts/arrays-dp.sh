#!/usr/bin/env bash
MODEL=deepseek-ai/DeepSeek-V4-Pro
TP=8
DP_ATTENTION=true
EP_SIZE=8
PARALLEL_ARGS=(--tensor-parallel-size "$TP" --data-parallel-size 1)
if [ "${DP_ATTENTION}" = "true" ]; then
    PARALLEL_ARGS=(--tensor-parallel-size 1 --data-parallel-size "$TP")
fi
EP_ARGS=()
if [ "${EP_SIZE:-1}" -gt 1 ]; then
    EP_ARGS=(--enable-expert-parallel)
fi
if [ "${DP_ATTENTION}" = "true" ]; then
    BUDGET=2048
else
    BUDGET=$(( 1024 * 2 ))
fi
vllm serve "$MODEL" --port "${PORT:-8000}" \
    "${PARALLEL_ARGS[@]}" \
    --pipeline-parallel-size 1 \
    --kv-cache-dtype fp8 \
    --block-size 256 \
    "${EP_ARGS[@]}" \
    --max-num-batched-tokens "$BUDGET" > server.log 2>&1 &
