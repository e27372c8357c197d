#!/bin/bash
MODEL=/models/Qwen3-8B-Q4_K_M.gguf
MD=/models/Qwen3-0.6B-Q8_0.gguf
CTX=32768
SPEC=""
if [ -n "$MD" ]; then
  SPEC="-md $MD --draft-max 8 -ngld 99 -np 1"
fi
exec llama-server -m "$MODEL" -ngl 99 -fa on -c "$CTX" ${MMPROJ:+--mmproj "$MMPROJ"} $SPEC "$@"
