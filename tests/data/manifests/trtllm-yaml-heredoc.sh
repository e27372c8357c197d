#!/bin/bash
cat >./engine.yml <<EOF
cuda_graph_config:
  enable_padding: true
  batch_sizes: [1, 2, 4, 8, 16, 32, 64, 128, 256, 384]
print_iter_log: true
enable_attention_dp: true
EOF

trtllm-serve \
  Qwen/Qwen3-30B-A3B \
  --port 8000 \
  --backend pytorch \
  --max_batch_size 161 \
  --max_num_tokens 1160 \
  --tp_size 1 \
  --ep_size 1 \
  --kv_cache_free_gpu_memory_fraction 0.8 \
  --extra_llm_api_options ./engine.yml
