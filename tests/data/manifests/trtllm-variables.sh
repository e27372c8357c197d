MODEL_PATH=/data/models/deepseek-ai/DeepSeek-V3.1
TP_SIZE=8
EP_SIZE=$TP_SIZE
STAMP=$(date +%Y.%m.%d)

trtllm-serve serve $MODEL_PATH \
    --port 6000 \
    --backend pytorch \
    --tp_size $TP_SIZE \
    --ep_size $EP_SIZE \
    --max_seq_len 49152 \
    --max_num_tokens 24576 \
    --max_batch_size 16 \
    --kv_cache_free_gpu_memory_fraction 0.75 2>&1 | tee logs/$STAMP.log
