export NVTE_CPU_OFFLOAD_V1=1
python scripts/performance/run_script.py -m qwen -mr qwen3_30b_a3b --gpu h100 -ng 16 -c fp8_mx \
  --moe_a2a_overlap true --recompute_modules moe_act,layernorm --cuda_graph_impl transformer_engine \
  --cuda_graph_scope moe_router,moe_preprocess -E NCCL_GRAPH_REGISTER=0 \
  -ep 16 model.moe_permute_fusion=true
