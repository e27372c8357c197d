#!/bin/bash
run_rank() {
  ASCEND_RT_VISIBLE_DEVICES=$1 vllm serve deepseek-ai/DeepSeek-V3.2 \
    --port $2 --data-parallel-size $3 --data-parallel-rank $4 \
    --data-parallel-address 10.0.0.1 --data-parallel-rpc-port 12321 \
    --tensor-parallel-size $5 --enable-expert-parallel \
    --max-model-len 68000 --max-num-batched-tokens 32560 --max-num-seqs 64 --gpu-memory-utilization 0.82 &
}
run_rank 0,1,2,3,4,5,6,7 7100 2 0 8
run_rank 8,9,10,11,12,13,14,15 7101 2 1 8
wait
