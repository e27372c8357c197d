#!/usr/bin/env bash
set -euo pipefail
MODEL_REF="${LOCAL_MODEL:-ggml-org/gemma-3-1b-it-GGUF:Q4_K_M}"
CONTEXT="${LOCAL_CONTEXT:-1024}"
if command -v llama-server >/dev/null 2>&1; then
  exec llama-server -hf "$MODEL_REF" -t "${THREADS:-4}" -c "$CONTEXT" --port 8080
fi
echo "llama-server not found" >&2
exit 1
