#!/bin/bash
for gpu in 0 1 2 3; do
  CUDA_VISIBLE_DEVICES=$gpu vllm serve openai/gpt-oss-20b --port $((8000 + gpu)) --max-num-seqs 128 &
done
wait
