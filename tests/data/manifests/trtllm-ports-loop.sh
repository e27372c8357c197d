#!/bin/bash
export TRTLLM_USE_UCX_KVCACHE=1
engine=(--backend pytorch --max_batch_size 161 --max_num_tokens 1160 --tp_size 1 --kv_cache_free_gpu_memory_fraction 0.8)
trtllm-serve Qwen/Qwen3-30B-A3B --port 8001 "${engine[@]}" --server_role CONTEXT &> ctx.log &
for port in {8002..8003}; do
  trtllm-serve Qwen/Qwen3-30B-A3B --port ${port} "${engine[@]}" --server_role GENERATION &> gen_${port}.log &
done
wait
