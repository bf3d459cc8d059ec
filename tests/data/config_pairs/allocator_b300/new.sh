#!/bin/bash
export NVTE_FWD_LAYERNORM_SM_MARGIN=16
export CUDA_DEVICE_MAX_CONNECTIONS=32
torchrun --nproc_per_node=8 scripts/performance/run_script.py --model_family_name qwen --model_recipe_name qwen3_30b_a3b \
  --gpu b300 --num_gpus 8 --compute_dtype fp8_mx --task pretrain --max_steps 100
