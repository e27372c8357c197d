#!/bin/bash
MODEL_NAME=meta-llama/Llama-3.1-8B-Instruct
MODEL_LEN=8192
share=0.8
launch() {
  local gpu=$1 port=$2 role=$3
  CMD="CUDA_VISIBLE_DEVICES=$gpu \
  vllm serve $MODEL_NAME \
      --port $port \
      --max-model-len $MODEL_LEN \
      --gpu-memory-utilization $share \
      -tp 1 \
      --enforce-eager \
      --kv-transfer-config '{\"kv_connector\":\"MooncakeStoreConnector\",\"kv_role\":\"$role\"}'"
  bash -c "$CMD" &
}
launch 0 8100 kv_producer
launch 1 8200 kv_consumer
wait
