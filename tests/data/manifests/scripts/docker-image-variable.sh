#!/bin/bash
IMAGE=lmcache/vllm-openai:2025-05-27-v1
docker run --runtime nvidia --gpus all \
    --env "CUDA_VISIBLE_DEVICES=0" \
    --ipc host --shm-size="8g" \
    --network host \
    $IMAGE \
     meta-llama/Llama-3.1-8B-Instruct \
    --port 8100 \
    --enforce-eager \
    --kv-transfer-config \
    '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_producer"}'
