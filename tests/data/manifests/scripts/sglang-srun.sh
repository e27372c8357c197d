#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
HEAD=10.82.101.193
srun --ntasks=2 bash -c 'python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp-size 16 --dist-init-addr 10.82.101.193:5000 --nnodes 2 --node-rank ${SLURM_PROCID:-0} --mem-fraction-static 0.8'
