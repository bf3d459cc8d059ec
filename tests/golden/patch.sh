# moe-diag 0.1.0: first step of the plan for train.sh
# COM-1 Overlap expert all-to-all with another microbatch's compute
# Evidence: communication costs at most 26 % of the step (most of it expert dispatch).
# Gain: not replayed. Acts on 26 % of the step.
# Checked: Rules of moe-diag: merged into the configuration it breaks no rule of these
#   versions.
# To check: EP overlap needs PyTorch 2.6.0 or later; with older releases it hangs.
# Change nothing else in the same experiment; keep routing, layout and container.
# Verify: NVTX ranges layer_<i>f-layer_<j>b appear, exposed expert all-to-all falls and
#   hidden grows; summed kernel time may rise. Judge by unprofiled steps.
#
export CUDA_DEVICE_MAX_CONNECTIONS=8
MOE_DIAG_ARGS=(
  --overlap-moe-expert-parallel-comm
)
# append "${MOE_DIAG_ARGS[@]}" to the arguments of the training script
