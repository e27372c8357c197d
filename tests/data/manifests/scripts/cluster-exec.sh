#!/bin/bash
MODEL=openai/gpt-oss-120b
OPTS="--tensor-parallel-size 2 --gpu-memory-utilization 0.7 --max-model-len 128000"
OPTS="$OPTS --distributed-executor-backend ray"
vllm serve $MODEL $OPTS
