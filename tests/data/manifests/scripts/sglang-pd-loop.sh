#!/bin/bash
MODEL=Qwen/Qwen2.5-7B-Instruct
for i in 0 1; do
  python -m sglang.launch_server --model-path $MODEL --disaggregation-mode prefill \
    --base-gpu-id $i --port $((30000 + i)) &
done
python -m sglang.launch_server --model-path $MODEL --disaggregation-mode decode --base-gpu-id 2 --tp-size 2 --port 30010 &
wait
