#!/usr/bin/env bash
set -x
MODEL=deepseek-ai/DeepSeek-V4-Flash
TP=4
DP_ATTENTION=false
ISL=8192
PARALLEL_ARGS=(--tensor-parallel-size "$TP" --data-parallel-size 1)
if [ "${DP_ATTENTION}" = "true" ]; then
    PARALLEL_ARGS=(--tensor-parallel-size 1 --data-parallel-size "$TP")
fi
EP_ARGS=()
if [ "${EP_SIZE:-1}" -gt 1 ]; then
    EP_ARGS=(--enable-expert-parallel)
fi
N=2
vllm serve "$MODEL" "${PARALLEL_ARGS[@]}" "${EP_ARGS[@]}" --kv-cache-dtype fp8 \
    --speculative-config "{\"method\": \"mtp\", \"num_speculative_tokens\": $N}" \
    --max-model-len 10240 --max-num-batched-tokens "$(( ISL * 2 ))"
