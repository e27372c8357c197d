#!/usr/bin/env bash
set -euo pipefail
QUANT="${1:-Q8_0}"
case "$QUANT" in
  Q8_0)    FILE=Qwen3-32B-Q8_0.gguf ;;
  Q4_K_XL) FILE=Qwen3-32B-UD-Q4_K_XL.gguf ;;
  *) echo "unknown $QUANT" >&2; exit 2 ;;
esac
nohup llama-server -hf unsloth/Qwen3-32B-GGUF:$QUANT \
  --hf-file "$FILE" \
  -ngl 99 --ctx-size 8192 --parallel 8 --jinja \
  --port 8010 > server.log 2>&1 &
