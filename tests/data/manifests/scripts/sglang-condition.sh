#!/usr/bin/env bash
MODEL=deepseek-ai/DeepSeek-R1-0528
TP=8
CONC=64
if [[ $CONC -ge 128 ]]; then
  EXTRA=(--dp-size $TP --enable-dp-attention)
else
  EXTRA=()
fi
python3 -m sglang.launch_server --model-path $MODEL --tensor-parallel-size=$TP "${EXTRA[@]}" \
  --kv-cache-dtype fp8_e4m3 --mem-fraction-static 0.82 --max-running-requests 512 \
  --chunked-prefill-size 32768 --disable-radix-cache > server.log 2>&1 &
