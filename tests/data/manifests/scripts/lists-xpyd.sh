#!/bin/bash
MODEL=${MODEL:-meta-llama/Llama-3.1-8B-Instruct}
PREFILL_GPUS=${PREFILL_GPUS:-0}
DECODE_GPUS=${DECODE_GPUS:-1,2,3}
PREFILL_PORTS=${PREFILL_PORTS:-20003}
DECODE_PORTS=${DECODE_PORTS:-20005,20007,20009}
IFS=',' read -ra PG <<< "$PREFILL_GPUS"
IFS=',' read -ra DG <<< "$DECODE_GPUS"
IFS=',' read -ra PP <<< "$PREFILL_PORTS"
IFS=',' read -ra DP <<< "$DECODE_PORTS"
for i in "${!PG[@]}"; do
  CUDA_VISIBLE_DEVICES=${PG[$i]} vllm serve $MODEL --enforce-eager --port ${PP[$i]} \
    --tensor-parallel-size 1 --max-model-len 10000 --max-num-batched-tokens 10000 --max-num-seqs 256 \
    --gpu-memory-utilization 0.9 \
    --kv-transfer-config "{\"kv_connector\":\"P2pNcclConnector\",\"kv_role\":\"kv_producer\",\"kv_buffer_size\":1e1,\"kv_port\":21001}" &
done
for i in "${!DG[@]}"; do
  CUDA_VISIBLE_DEVICES=${DG[$i]} vllm serve $MODEL --enforce-eager --port ${DP[$i]} \
    --tensor-parallel-size 1 --max-model-len 10000 --max-num-batched-tokens 10000 --max-num-seqs 256 \
    --gpu-memory-utilization 0.7 \
    --kv-transfer-config "{\"kv_connector\":\"P2pNcclConnector\",\"kv_role\":\"kv_consumer\",\"kv_buffer_size\":8e9,\"kv_port\":22001}" &
done
wait
