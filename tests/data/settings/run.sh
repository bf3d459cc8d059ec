#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=8
# A mixture of experts with Megatron-LM on four nodes.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export WANDB_API_KEY=not-for-anyone
IMAGE=nvcr.io/nvidia/nemo:26.04
GPUS=8
NODES=4
WORLD_SIZE=$((GPUS * NODES))
HIDDEN=${HIDDEN:-2048}

MODEL_ARGS=(
    --num-layers 16            # of which one is dense
    --hidden-size $HIDDEN
    --num-attention-heads 16
    --swiglu
    --untie-embeddings-and-output-weights
    --seq-length 4096
)
MOE_ARGS="--num-experts 64 \
    --moe-router-topk 8 \
    --moe-layer-freq ([0]*1+[1]*15) \
    --moe-token-dispatcher-type alltoall"
PARALLEL_ARGS="--tensor-model-parallel-size 1 --expert-model-parallel-size 8"
PARALLEL_ARGS="$PARALLEL_ARGS --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2"

if [ "$PRECISION" = fp8 ]; then
    MODEL_ARGS+=(--fp8-format hybrid)
fi

srun --container-image=$IMAGE numactl --cpunodebind=0 \
    python pretrain_gpt.py "${MODEL_ARGS[@]}" $MOE_ARGS ${PARALLEL_ARGS} \
    --bf16 --recompute-activations --overlap-grad-reduce --use-distributed-optimizer \
    --no-check-for-nan-in-loss-and-grad --micro-batch-size 1 --global-batch-size 256 "$@" 2>&1 | tee log.txt
