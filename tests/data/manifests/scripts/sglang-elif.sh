#!/usr/bin/env bash
MODEL=Qwen/Qwen3.5-397B-A17B
TP=8
EP=8
CONC=256
if [[ $CONC -le 16 ]]; then
  SHARE=0.9; CHUNK=32768
elif [[ $CONC -le 256 ]]; then
  SHARE=0.85; CHUNK=16384
else
  SHARE=0.8; CHUNK=8192
fi
python3 -m sglang.launch_server --model-path=$MODEL --tp-size $TP --ep-size $EP \
  --mem-fraction-static $SHARE --chunked-prefill-size $CHUNK --context-length 10240
