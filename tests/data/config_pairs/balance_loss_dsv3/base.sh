#!/bin/bash
#SBATCH --nodes=32
#SBATCH --ntasks-per-node=8
export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_DEBUG=WARN
srun python -u pretrain_gpt.py \
  --use-mcore-models --transformer-impl transformer_engine --bf16 \
  --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --multi-latent-attention \
  --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
  --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 \
  --moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 0.0001 --moe-router-enable-expert-bias --moe-router-score-function sigmoid \
  --moe-grouped-gemm --moe-token-dispatcher-type alltoall --moe-router-dtype fp32 \
  --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 8 --expert-model-parallel-size 32 --expert-tensor-parallel-size 1 \
  --pipeline-model-parallel-layout "Et*8|t*8|t*8|t*8|t*8|t*8|t*8|t*5L" \
  --recompute-granularity selective --recompute-modules mla_up_proj moe_act layernorm \
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 512 \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --vocab-size 129280 --train-iters 50 --save /ckpt/good
