#!/bin/bash
#SBATCH -N 2
#SBATCH --ntasks-per-node=8
#SBATCH -J serve
LOCAL_MODEL=/lustre/models/DeepSeek-R1
srun -l --mpi=pmix \
    bash -c "
        set -ex
        trtllm-llmapi-launch \
         trtllm-serve $LOCAL_MODEL \
            --tp_size 16 \
            --backend pytorch \
            --host 0.0.0.0
    "
