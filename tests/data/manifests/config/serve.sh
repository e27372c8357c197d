vllm serve --config config.yaml --max-model-len 16384
