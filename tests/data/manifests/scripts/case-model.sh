#!/bin/bash
size=${1:-32b}
case "$size" in
  8b)  MODEL=Qwen/Qwen3-8B;  TP=1 ;;
  32b) MODEL=Qwen/Qwen3-32B; TP=2 ;;
  *)   echo "unknown $size"; exit 1 ;;
esac
exec vllm serve $MODEL --tensor-parallel-size $TP --max-model-len ${MAX_LEN:-32768}
