trtllm-serve Qwen/Qwen3-32B-FP8 --config qwen-agg.yaml --max_batch_size 96
