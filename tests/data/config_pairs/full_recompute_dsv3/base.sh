#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
export NVTE_ALLOW_NONDETERMINISTIC_ALGO=0
torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py \
  --use-mcore-models --transformer-impl transformer_engine --bf16 \
  --num-layers 14 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --multi-latent-attention --position-embedding-type rope \
  --swiglu --disable-bias-linear --normalization RMSNorm --mtp-num-layers 1 \
  --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-grouped-gemm --moe-token-dispatcher-type alltoall \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 4 --expert-model-parallel-size 16 \
  --pipeline-model-parallel-layout "Ett|(tt|)*6mL"  \
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 256 \
  --use-distributed-optimizer --vocab-size 129280 --train-iters 30 --log-interval 1 --tensorboard-dir /tb/one
