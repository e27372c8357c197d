#!/bin/bash
ARGS=""
GPU_COUNT=4
[ "$GPU_COUNT" -gt 1 ] && ARGS="$ARGS --tensor-parallel-size $GPU_COUNT"
[ -n "$KV" ] && ARGS="$ARGS --kv-cache-dtype $KV"
ARGS+=" --max-num-seqs 512"
vllm serve meta-llama/Llama-3.3-70B-Instruct $ARGS
