#!/bin/bash
HEAD=10.99.48.128
if [ "${NODE:-0}" = "0" ]; then
  vllm serve deepseek-ai/DeepSeek-V2-Lite --data-parallel-size 4 --data-parallel-size-local 2 \
    --data-parallel-address $HEAD --data-parallel-rpc-port 13345
else
  vllm serve deepseek-ai/DeepSeek-V2-Lite --headless --data-parallel-size 4 --data-parallel-size-local 2 \
    --data-parallel-start-rank 2 --data-parallel-address $HEAD --data-parallel-rpc-port 13345
fi
