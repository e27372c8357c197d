#!/usr/bin/env bash
N=2
for i in $(seq 0 $((N - 1))); do
  first=$((i * 4))
  CUDA_VISIBLE_DEVICES=$first,$((first+1)),$((first+2)),$((first+3)) \
    vllm serve openai/gpt-oss-120b -tp 4 --port $((8000 + i)) --gpu-memory-utilization 0.9 &
done
wait
