#!/bin/bash
torchrun --nproc-per-node 8 pretrain_gpt.py \
  --use-mcore-models --transformer-impl transformer_engine --bf16 \
  --num-layers 27 --hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16 --multi-latent-attention --position-embedding-type rope \
  --swiglu --disable-bias-linear --normalization RMSNorm \
  --num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 --moe-grouped-gemm --moe-token-dispatcher-type alltoall --moe-permute-fusion \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --expert-model-parallel-size 8 --cross-entropy-loss-fusion --cross-entropy-fusion-impl te \
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 4 --global-batch-size 32 \
  --use-distributed-optimizer --vocab-size 102400 --train-iters 50 --seed 1
