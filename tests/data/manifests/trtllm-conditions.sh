#!/usr/bin/env bash
MODEL=deepseek-ai/DeepSeek-R1-0528
TP=8
EP_SIZE=8
CONC=256
ISL=1024
DP_ATTENTION=true
MOE_BACKEND="TRTLLM"
MAX_BATCH_SIZE=$CONC
SHARE=0.8
MTP=3

if [[ "$DP_ATTENTION" == "true" ]]; then
    MOE_BACKEND="DEEPGEMM"
    MAX_BATCH_SIZE=$(( CONC < 8 ? CONC : CONC / 8 ))
    SHARE=0.7
    MTP=1
fi

CONFIG="serve.yml"
cat > $CONFIG << EOF
cuda_graph_config:
    enable_padding: true
    max_batch_size: $MAX_BATCH_SIZE
enable_attention_dp: $DP_ATTENTION
kv_cache_config:
    dtype: fp8
    free_gpu_memory_fraction: $SHARE
    enable_block_reuse: false
moe_config:
    backend: $MOE_BACKEND
speculative_config:
    decoding_type: MTP
    num_nextn_predict_layers: ${MTP}
EOF

MAX_NUM_TOKENS=$(( ((MTP+1)*MAX_BATCH_SIZE+ISL+64+63)/64*64 ))
if [ "${EVAL_ONLY}" = "true" ]; then
    MAX_NUM_TOKENS=131072
fi

mpirun -n 1 --oversubscribe --allow-run-as-root \
    trtllm-serve $MODEL --port=8888 \
    --backend=pytorch \
    --max_batch_size=$MAX_BATCH_SIZE \
    --max_seq_len=2248 \
    --max_num_tokens=$MAX_NUM_TOKENS \
    --tp_size=$TP --ep_size=$EP_SIZE \
    --extra_llm_api_options=$CONFIG > server.log 2>&1 &
wait
