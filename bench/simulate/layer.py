"""One transformer layer, forward and backward, as the modules that a schedule puts in order."""

from __future__ import annotations

from typing import Final

from bench.simulate.dispatchers import begin, finish
from bench.simulate.host_program import Engine, Part
from bench.simulate.pieces import pieces_of
from bench.simulate.script import (
    COMPUTE,
    CONTEXT_PARALLEL,
    OFFLOAD,
    RELOAD,
    SHARED_EXPERT,
    TENSOR_PARALLEL,
    WEIGHT_GRADIENT,
    Script,
)

_QKV_FRAC: Final = 0.55
_FC1_FRAC: Final = 0.67
_SHARED_FRAC: Final = 0.3
"""The shared expert's GEMMs, in dense GEMMs of a layer."""
_FP8_FRAC: Final = 0.6
"""An FP8 GEMM takes this part of its BF16 time."""
_ATTENTION_BWD: Final = 2.3
_NORM_BWD: Final = 1.7
_ACTIVATION_BWD: Final = 1.6
_MOST_OFFLOADED: Final = 2
"""Layers whose copies to the host may be under way at once."""


class Layer:
    """Modules of one layer and microbatch; `offloaded` maps (microbatch, layer) to the event of its copy."""

    def __init__(self, script: Script, number: int, offloaded: dict[tuple[int, int], int]) -> None:
        self.script, self.knobs, self.number = script, script.knobs, number
        self._offloaded = offloaded

    def at(self, phase: str, microbatch: int) -> None:
        """Say where the following belongs."""
        self.script.layer, self.script.phase, self.script.microbatch = self.number, phase, microbatch

    def _small(self, kernel: str, times: float = 1.0, blocks: int | None = None) -> None:
        for piece, share in pieces_of(kernel, unfused=self.knobs.unfused):
            name = "" if piece == kernel else f"{kernel} {piece}"
            self.script.kernel(piece, self.knobs.small_kernel_us * times * share, blocks=blocks, name=name)

    def _gemm(self, kernel: str, us: float, tiles: int, name: str) -> None:
        if self.knobs.fp8 and not name.startswith("router"):
            self._small("quantize", 0.6)
            us *= _FP8_FRAC
        elif self.knobs.autocast:
            self._small("cast_back" if kernel.endswith("wgrad") else "cast", 0.5)
        delayed = self.knobs.delayed_wgrad and kernel.endswith("wgrad")
        with self.script.aside(WEIGHT_GRADIENT if delayed else None):
            self.script.kernel(kernel, us, blocks=tiles, name=name)

    def _gemm_bwd(self, us: float, tiles: int, name: str) -> None:
        self._gemm("gemm_dgrad", us, tiles, f"{name}_dgrad")
        self._gemm("gemm_wgrad", us, tiles, f"{name}_wgrad")

    def _collective(self, kernel: str, us: float, stream: int, name: str) -> None:
        """A collective that compute waits for."""
        script = self.script
        script.after(COMPUTE, stream)
        script.communicate(kernel, us, stream, name=name, late_us=self.knobs.peer_late_us / 4)
        script.after(stream, COMPUTE)

    def _tensor_parallel(self, kernel: str, name: str) -> None:
        if self.knobs.tensor_parallel_us:
            self._collective(kernel, self.knobs.tensor_parallel_us, TENSOR_PARALLEL, name)

    def attention(self) -> None:
        """Norm, query-key-value, attention, projection; one graph where captured."""
        knobs = self.knobs
        captured = knobs.graph_attention and not (knobs.tensor_parallel_us or knobs.context_parallel_us)
        with self.script.graph("attn", captured=captured):
            self._small("norm_fwd")
            self._tensor_parallel("nccl_all_gather", "qkv_gather")
            self._gemm("gemm_fwd", knobs.dense_gemm_us * _QKV_FRAC, knobs.dense_tile_count, "qkv")
            self._small("rope_fwd", 0.6)
            self.core_attention()
            self._gemm("gemm_fwd", knobs.dense_gemm_us * (1 - _QKV_FRAC), knobs.dense_tile_count, "proj")
            self._tensor_parallel("nccl_reduce_scatter", "proj_scatter")
            self._small("add", 0.7)

    def core_attention(self) -> None:
        """Attention itself, in two halves around an exchange where the context is parallel."""
        self._attention_kernels("attention_fwd", self.knobs.attention_us)

    def _attention_kernels(self, kernel: str, us: float) -> None:
        script, tiles = self.script, self.knobs.dense_tile_count
        if not self.knobs.context_parallel_us:
            script.kernel(kernel, us, blocks=tiles)
            return
        script.after(COMPUTE, CONTEXT_PARALLEL)
        script.communicate(
            "nccl_send_recv", self.knobs.context_parallel_us, CONTEXT_PARALLEL, name="context_exchange"
        )
        arrived = script.record(CONTEXT_PARALLEL)
        script.kernel(kernel, us / 2, blocks=tiles)
        script.wait(COMPUTE, arrived)
        script.kernel(kernel, us / 2, blocks=tiles)

    def router(self) -> None:
        """Norm, gate and the choice of experts; one graph where captured."""
        with self.script.graph("moe_router", captured=self.knobs.graph_router):
            self._small("norm_fwd")
            if self.knobs.dispatcher == "none":
                return
            self._gemm("gemm_fwd", self.knobs.small_kernel_us * 0.4, self.knobs.dense_tile_count, "router")
            self._small("topk_fwd", 0.4)
            self._small("aux_loss_fwd", 0.1, 64)

    def experts(self) -> None:
        """The experts of this rank, in one GEMM or one each; of a dense model, its MLP."""
        self._experts("expert_gemm_fwd", self.knobs.expert_gemm_us * _FC1_FRAC, "fc1")
        self.activation()
        self._experts("expert_gemm_fwd", self.knobs.expert_gemm_us * (1 - _FC1_FRAC), "fc2")

    def activation(self) -> None:
        """The gated activation between the two GEMMs."""
        self._small("activation_fwd", 1.2)

    def _experts(self, kernel: str, us: float, name: str) -> None:
        knobs = self.knobs
        if knobs.dispatcher == "none":
            self._gemm(kernel.removeprefix("expert_"), us, knobs.dense_tile_count, name)
            return
        us *= self.script.imbalance()
        if knobs.grouped_gemm:
            self._gemm(kernel, us, knobs.expert_tile_count, name)
            return
        for _ in range(knobs.local_expert_count):
            tiles = knobs.expert_tile_count // knobs.local_expert_count
            self._gemm(kernel, us / knobs.local_expert_count, tiles, name)

    def shared_expert(self) -> None:
        """The expert that every token visits."""
        if self.knobs.shared_expert and self.knobs.dispatcher != "none":
            us, tiles = self.knobs.dense_gemm_us * _SHARED_FRAC, self.knobs.dense_tile_count
            with self.script.aside(self._shared_stream):
                self._gemm("gemm_fwd", us * _FC1_FRAC, tiles, "shared_fc1")
                self._small("activation_fwd", 0.4)
                self._gemm("gemm_fwd", us * (1 - _FC1_FRAC), tiles, "shared_fc2")

    @property
    def _shared_stream(self) -> int | None:
        apart = self.knobs.shared_expert and self.knobs.shared_expert_stream
        return SHARED_EXPERT if apart else None

    def meet_shared_expert(self) -> None:
        """Compute goes on with what the shared expert made on its own stream."""
        if self._shared_stream is not None:
            self.script.after(self._shared_stream, COMPUTE)

    def mixture(self) -> None:
        """Everything after attention, one after the other."""
        self.router()
        if self.knobs.dispatcher == "none":
            self.experts()
        else:
            dispatched = begin(self.script, "dispatch")
            self.shared_expert()
            finish(self.script, dispatched)
            self.experts()
            finish(self.script, begin(self.script, "combine"))
            self.meet_shared_expert()
        self._small("add", 0.7)

    def experts_backward(self) -> None:
        """Backward of the experts: gradients of inputs and of weights."""
        fc1, fc2 = self.knobs.expert_gemm_us * _FC1_FRAC, self.knobs.expert_gemm_us * (1 - _FC1_FRAC)
        self._experts("expert_gemm_dgrad", fc2, "fc2_dgrad")
        self._experts("expert_gemm_wgrad", fc2, "fc2_wgrad")
        if self.knobs.recompute == "norm_act":
            with self.recomputed():
                self.activation()
        self._small("activation_bwd", _ACTIVATION_BWD)
        self._experts("expert_gemm_dgrad", fc1, "fc1_dgrad")
        self._experts("expert_gemm_wgrad", fc1, "fc1_wgrad")

    def shared_expert_backward(self) -> None:
        """Backward of the shared expert."""
        if self.knobs.shared_expert and self.knobs.dispatcher != "none":
            us, tiles = self.knobs.dense_gemm_us * _SHARED_FRAC, self.knobs.dense_tile_count
            with self.script.aside(self._shared_stream):
                self._gemm_bwd(us * (1 - _FC1_FRAC), tiles, "shared_fc2")
                self._small("activation_bwd", 0.6)
                self._gemm_bwd(us * _FC1_FRAC, tiles, "shared_fc1")

    def router_backward(self) -> None:
        """Backward of gate and norm."""
        with self.script.graph("moe_router", captured=self.knobs.graph_router):
            if self.knobs.dispatcher != "none":
                self._small("aux_loss_bwd", 0.1, 64)
                self._small("topk_bwd", 0.4)
                self._gemm_bwd(self.knobs.small_kernel_us * 0.4, self.knobs.dense_tile_count, "router")
            self._norm_backward()

    def attention_backward(self) -> None:
        """Backward of attention and its projections."""
        knobs, tiles = self.knobs, self.knobs.dense_tile_count
        if knobs.recompute == "core_attn":
            with self.recomputed():
                self.core_attention()
        captured = knobs.graph_attention and not (knobs.tensor_parallel_us or knobs.context_parallel_us)
        with self.script.graph("attn", captured=captured):
            self._tensor_parallel("nccl_all_gather", "proj_gather")
            self._gemm_bwd(knobs.dense_gemm_us * (1 - _QKV_FRAC), tiles, "proj")
            self._small("attention_bwd_dot", 0.5)
            self._attention_kernels("attention_bwd", knobs.attention_us * _ATTENTION_BWD)
            self._small("rope_bwd", 0.6)
            self._gemm_bwd(knobs.dense_gemm_us * _QKV_FRAC, tiles, "qkv")
            self._tensor_parallel("nccl_reduce_scatter", "qkv_scatter")
            self._norm_backward()

    def _norm_backward(self) -> None:
        self._small("norm_bwd", _NORM_BWD)
        self._small("norm_bwd_finalize", 0.3)
        self._small("add", 0.7)

    def mixture_backward(self) -> None:
        """Backward of everything after attention, one after the other."""
        if self.knobs.dispatcher == "none":
            self.experts_backward()
        else:
            finish(self.script, begin(self.script, "combine_bwd"))
            self.experts_backward()
            combined = begin(self.script, "dispatch_bwd")
            self.shared_expert_backward()
            finish(self.script, combined)
            self.meet_shared_expert()
        self.router_backward()

    def recomputed(self) -> _Recomputed:
        """What is run again in the backward pass."""
        return _Recomputed(self.script)

    def recompute(self) -> None:
        """Run again what was not kept, before the layer's backward."""
        mode = self.knobs.recompute
        with self.recomputed():
            if mode == "norm_act":
                self._small("norm_fwd")
            if mode == "full":
                self.attention()
            if mode in ("full", "moe"):
                self.mixture()

    def _size_bytes(self) -> int:
        return round(self.knobs.offload_mib * (1 << 20))

    def offload(self, microbatch: int) -> None:
        """Copy the layer's activations to the host behind its forward."""
        if not self.knobs.offload_mib:
            return
        with self.script.inside(Part.OFFLOAD):
            earlier = self._offloaded.get((microbatch, self.number - _MOST_OFFLOADED))
            if earlier is not None:
                self.script.wait(COMPUTE, earlier)
            self.script.after(COMPUTE, OFFLOAD)
            self.script.copy(Engine.COPY_TO_HOST, self._size_bytes(), OFFLOAD, "offload")
            self._offloaded[microbatch, self.number] = self.script.record(OFFLOAD)

    def reload(self, microbatch: int) -> int | None:
        """Copy the layer's activations back; the event of their arrival."""
        if not self.knobs.offload_mib:
            return None
        with self.script.inside(Part.OFFLOAD):
            self.script.wait(RELOAD, self._offloaded[microbatch, self.number])
            self.script.copy(Engine.COPY_TO_DEVICE, self._size_bytes(), RELOAD, "reload")
            return self.script.record(RELOAD)

    def reloaded(self, event: int | None) -> None:
        """Let compute wait for what is copied back."""
        if event is not None:
            with self.script.inside(Part.OFFLOAD):
                self.script.wait(COMPUTE, event)


class _Recomputed:
    """A stretch of recompute: its draws are its own, so that nothing else changes without it."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._inside = script.inside(Part.RECOMPUTE)

    def __enter__(self) -> None:
        self._phase, self._script.phase = self._script.phase, "recompute"
        self._inside.__enter__()

    def __exit__(self, *error: object) -> None:
        self._inside.__exit__(None, None, None)
        self._script.phase = self._phase
