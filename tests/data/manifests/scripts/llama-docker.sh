#!/bin/bash
MODEL_FILENAME="${MODEL_FILENAME:-Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf}"
docker run --gpus all -v ./models:/models -p 8080:8080 ghcr.io/ggml-org/llama.cpp:server-cuda -m /models/$MODEL_FILENAME --ctx-size 16384 --parallel 8 --n-gpu-layers 20
