#!/bin/bash
common=(--model-path deepseek-ai/DeepSeek-V3-0324 --trust-remote-code --nnodes 2
  --tp-size 16 --dp-size 8 --enable-dp-attention --moe-a2a-backend deepep --mem-fraction-static 0.8)
p0=10.1.0.1
d0=10.1.0.3
for rank in 0 1; do
  ssh "prefill-$rank" python -m sglang.launch_server "${common[@]}" --disaggregation-mode prefill \
    --dist-init-addr $p0:5000 --node-rank $rank --port 30000 &
  ssh "decode-$rank" python -m sglang.launch_server "${common[@]}" --disaggregation-mode decode \
    --dist-init-addr $d0:5000 --node-rank $rank --port 30001 --max-running-requests 128 &
done
wait
