#!/bin/bash
echo -e "disable_overlap_scheduler: True\ncache_transceiver_config:\n  max_num_tokens: 2048" > ctx.yml
echo -e "cache_transceiver_config:\n  max_num_tokens: 2048" > gen.yml

CUDA_VISIBLE_DEVICES=0 trtllm-serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --host localhost --port 8001 --backend pytorch --extra_llm_api_options ./ctx.yml --max_num_tokens 2048 &> ctx0.log &
CUDA_VISIBLE_DEVICES=1 trtllm-serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --host localhost --port 8002 --backend pytorch --extra_llm_api_options ./ctx.yml --max_num_tokens 2048 &> ctx1.log &
CUDA_VISIBLE_DEVICES=2 trtllm-serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --host localhost --port 8003 --backend pytorch --extra_llm_api_options ./gen.yml --max_num_tokens 1024 &> gen0.log &

cat > orchestrator.yaml <<EOF
hostname: localhost
port: 8000
context_servers:
  num_instances: 2
  urls: ["localhost:8001", "localhost:8002"]
generation_servers:
  num_instances: 1
  urls: ["localhost:8003"]
EOF
trtllm-serve disaggregated -c orchestrator.yaml
