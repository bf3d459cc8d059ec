"""The training step, Megatron style: microbatches forward and backward, gradients, optimizer."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from bench.simulate.batches import batch, first_batch
from bench.simulate.dispatchers import begin, finish
from bench.simulate.draws import uniform
from bench.simulate.host_program import Engine, Part, Program
from bench.simulate.knobs import Knobs
from bench.simulate.layer import Layer
from bench.simulate.optimizer import update
from bench.simulate.script import (
    COMPUTE,
    DATA_PARALLEL,
    PIPELINE,
    RELOAD,
    SCALAR_BYTES,
    WEIGHT_GRADIENT,
    Script,
)

_RETRY_CALLS: Final = 3
_RETRY_BYTES: Final = 512 << 20
_GRADIENT_BYTES: Final = 200 << 20
_FILLED: Final = 4
"""A buffer that is filled at the start, in small kernels."""
_FIRST: Final = {
    "loads": ("cuLibraryLoadData", "cuModuleLoadDataEx"),
    "allocates": ("cudaMalloc_v3020", "cudaHostAlloc_v3020"),
}
_START_UP: Final = (
    ("cudaFree_v3020", 0.6), *(("cudaStreamCreateWithPriority_v5050", 0.01),) * 4, ("cudaMalloc_v3020", 0.08),
)  # fmt: skip
_FIRST_LAUNCH: Final = 0.28
"""One-time calls in order, with their shares of the start-up, and that of the first launch."""
_MIB: Final = 1 << 20
_BUFFER_BYTES: Final = 512
"""A buffer of one layer: running figures of a norm, or a count."""


@lru_cache(maxsize=1)
def program_of(knobs: Knobs) -> Program:
    """The program of a run: what comes before its steps, and all of them, one after the other.

    The last is kept: the same run is asked for again without each handicap.
    """
    return Steps(knobs, Script(knobs)).program()


class Steps:
    """Writes the steps of a run, one after the other."""

    gradients_on: tuple[int, ...] = (DATA_PARALLEL,)
    """Streams that reduce gradients and gather parameters."""

    def __init__(self, knobs: Knobs, script: Script) -> None:
        self.knobs, self.script = knobs, script
        self._gathered: dict[int, list[int]] = {}
        self._reduced: list[int] = []
        self._offloaded: dict[tuple[int, int], int] = {}
        self._fetching: int | None = None
        self._loss: int | None = None
        self._layers = [Layer(self.script, number, self._offloaded) for number in range(knobs.layer_count)]

    def program(self) -> Program:
        """What comes before the steps, and all of them."""
        self.initialise()
        for step in range(self.knobs.step_count):
            self.step(step)
        return self.script.program()

    def _outside(self, phase: str, microbatch: int = 0) -> None:
        self.script.layer, self.script.phase, self.script.microbatch = -1, phase, microbatch

    def initialise(self) -> None:
        """Buffers are filled, once, and the host waits for the device."""
        script, startup_ms = self.script, self.knobs.startup_ms
        count = self.knobs.initial_kernel_count or int(startup_ms > 0)
        if count:
            script.step = -1
            self._outside("initialise")
            if startup_ms:
                for api, share in _START_UP:
                    script.initialise(api, startup_ms * share)
                script.late_launch(startup_ms * _FIRST_LAUNCH)
            for _ in range(count):
                script.kernel("fill", _FILLED * self.knobs.small_kernel_us)
            script.synchronise("device")
        first_batch(script)

    def step(self, number: int) -> None:
        """One step, under its range."""
        script = self.script
        script.step = number
        self._outside("forward")
        with script.range(f"iteration {number}", "step"):
            self._begin()
            with script.whole_graph(captured=self.knobs.whole_graph):
                self._microbatches()
                self._optimize()
            self._end()

    def _microbatches(self) -> None:
        if self.script.step in self._hiccups:
            self.script.busy(self.knobs.hiccup_ms, "hiccup")
        last = self.knobs.microbatch_count - 1
        if self.knobs.ep_overlap and self.knobs.dispatcher != "none":
            self._forward(0)
            for microbatch in range(1, last + 1):
                self._merged(microbatch, microbatch - 1)
            self._backward(last)
        else:
            for microbatch in range(last + 1):
                self._forward(microbatch)
                self._backward(microbatch)

    def _begin(self) -> None:
        """The batch, the gradient buffer, and the parameters where their gathering is overlapped."""
        script, knobs = self.script, self.knobs
        batch(script)
        script.copy(Engine.FILL, _GRADIENT_BYTES, COMPUTE, "clear_gradients")
        self._broadcast_buffers()
        if knobs.gradient_overlap and knobs.gradients == "sharded":
            for layer in range(0, knobs.layer_count, knobs.bucket_layers):
                script.layer = layer
                self._gather_parameters()
                self._gathered[layer] = [script.record(stream) for stream in self.gradients_on]

    @property
    def _hiccups(self) -> list[int]:
        """Steps that something holds up: never the first."""
        knobs = self.knobs
        later = sorted(range(1, knobs.step_count), key=lambda step: uniform(f"{knobs.seed}/{step}/hiccup"))
        return later[: knobs.hiccup_count]

    def _broadcast_buffers(self) -> None:
        """Rank 0's buffers: packed, sent, and copied to where each belongs."""
        script, count = self.script, self.knobs.buffer_count
        if not count:
            return
        script.after(COMPUTE, DATA_PARALLEL)
        script.communicate("nccl_broadcast", 4.0, DATA_PARALLEL, name="buffers")
        script.after(DATA_PARALLEL, COMPUTE)
        for _ in range(count):
            script.copy(Engine.COPY_ON_DEVICE, _BUFFER_BYTES, COMPUTE, "buffer")

    def _bucket_us(self, first: int) -> float:
        """What moving the layers of a bucket takes."""
        knobs = self.knobs
        return knobs.gradient_us * min(knobs.bucket_layers, knobs.layer_count - first)

    def _gather_parameters(self) -> None:
        us = self._bucket_us(self.script.layer)
        self.script.communicate("nccl_all_gather", us, DATA_PARALLEL, name="parameters")

    def _exchange(self, name: str, late_us: float, *, received: bool) -> None:
        """A message of the pipeline; compute waits for those received."""
        if not self.knobs.pipeline_us:
            return
        script = self.script
        script.after(COMPUTE, PIPELINE)
        script.communicate("nccl_send_recv", self.knobs.pipeline_us, PIPELINE, name=name, late_us=late_us)
        if received:
            script.after(PIPELINE, COMPUTE)

    def _bubble_us(self, microbatch: int) -> float:
        """How late a neighbour stage is: the first message of a step waits for the pipeline to fill."""
        return self.knobs.pipeline_bubble_us if microbatch == 0 else self.knobs.peer_late_us

    def _disturb(self) -> None:
        """What now and then comes between two layers: garbage collected, an allocator short of memory."""
        script, knobs = self.script, self.knobs
        where = f"{knobs.seed}/{script.step}/{script.microbatch}/{script.layer}"
        if knobs.gc_pause_ms and uniform(f"{where}/gc") < knobs.gc_per_layer_frac:
            script.pause(knobs.gc_pause_ms, "gc", "gc collect")
        if knobs.retries_per_step:
            layers = knobs.layer_count * knobs.microbatch_count
            if uniform(f"{where}/retry") < knobs.retries_per_step / layers:
                for frees in (True, False):
                    for _ in range(_RETRY_CALLS):
                        script.allocate(frees=frees, size_bytes=_RETRY_BYTES, name=f"retry {frees}")

    def _before_forward(self, layer: Layer, microbatch: int) -> None:
        layer.at("forward", microbatch)
        self._disturb()
        if self.script.step == microbatch == 0:
            self._warm_up(layer)
        self._fetch_weights()
        for event in self._gathered.pop(layer.number, ()) if microbatch == 0 else ():
            self.script.wait(COMPUTE, event)

    def _warm_up(self, layer: Layer) -> None:
        """What only the first step does: its share of loading code, or of Python."""
        ms = self.knobs.first_step_ms / self.knobs.layer_count
        if ms and self.knobs.first_step in _FIRST:
            apis = _FIRST[self.knobs.first_step]
            self.script.initialise(apis[layer.number % len(apis)], ms)
        elif ms:
            self.script.busy(ms, "first step")

    def _fetch_weights(self) -> None:
        """Copy a layer's weights from the host to one of two buffers, once the layer before last is done."""
        script, mib = self.script, self.knobs.resident_mib
        if not mib:
            return
        with script.inside(Part.HOST_RESIDENT):
            if self._fetching is not None:
                script.wait(RELOAD, self._fetching)
            self._fetching = script.record(COMPUTE)
            script.copy(Engine.COPY_TO_DEVICE, round(mib * _MIB), RELOAD, "weights")
            script.after(RELOAD, COMPUTE)

    def _embed(self, microbatch: int) -> None:
        self._outside("forward", microbatch)
        self._exchange("receive_forward", self._bubble_us(microbatch), received=True)
        self.script.kernel("embedding_fwd", self.knobs.small_kernel_us)

    def _forward(self, microbatch: int) -> None:
        self._embed(microbatch)
        for layer in self._layers:
            self._before_forward(layer, microbatch)
            with self.script.range(f"layer_{layer.number}f", "layer"):
                layer.attention()
                layer.mixture()
                layer.offload(microbatch)
        self._head(microbatch)

    def _head(self, microbatch: int) -> None:
        self._outside("forward", microbatch)
        script, knobs = self.script, self.knobs
        self._exchange("send_forward", 0.0, received=False)
        script.kernel("norm_fwd", knobs.small_kernel_us)
        script.kernel("gemm_fwd", knobs.head_us, blocks=knobs.dense_tile_count, name="head")
        script.kernel("loss_softmax", knobs.small_kernel_us)
        script.kernel("loss_fwd", knobs.small_kernel_us)
        if knobs.end_of_step == "loss" and microbatch == knobs.microbatch_count - 1:
            with script.inside(Part.READ_BACK):
                script.copy(Engine.COPY_TO_HOST, SCALAR_BYTES, COMPUTE, "loss")
            self._loss = script.record(COMPUTE)

    def _backward(self, microbatch: int) -> None:
        with self.script.on_autograd():
            self._head_backward(microbatch)
            coming = self._layers[-1].reload(microbatch)
            for layer in reversed(self._layers):
                coming = self._layer_backward(layer, microbatch, coming)
            self._embed_backward(microbatch)

    def _head_backward(self, microbatch: int) -> None:
        self._outside("backward", microbatch)
        script, knobs = self.script, self.knobs
        self._exchange("receive_backward", self._bubble_us(microbatch), received=True)
        script.kernel("loss_bwd", knobs.small_kernel_us)
        for kernel in ("gemm_dgrad", "gemm_wgrad"):
            script.kernel(kernel, knobs.head_us, blocks=knobs.dense_tile_count, name=f"head {kernel}")

    def _layer_backward(self, layer: Layer, microbatch: int, coming: int | None) -> int | None:
        """Backward of a layer; returns the event of the next layer's activations coming back."""
        layer.at("backward", microbatch)
        with self.script.range(f"layer_{layer.number}b", "layer"):
            layer.reloaded(coming)
            self._fetch_weights()
            following = self._reload_before(layer, microbatch)
            layer.recompute()
            layer.mixture_backward()
            layer.attention_backward()
        self._reduce(layer, microbatch)
        return following

    def _reload_before(self, layer: Layer, microbatch: int) -> int | None:
        return self._layers[layer.number - 1].reload(microbatch) if layer.number else None

    def _embed_backward(self, microbatch: int) -> None:
        self._outside("backward", microbatch)
        self.script.kernel("embedding_bwd", self.knobs.small_kernel_us)
        self._exchange("send_backward", 0.0, received=False)

    def _reduce(self, layer: Layer, microbatch: int) -> None:
        """Reduce a bucket's gradients beside the rest of the last backward, once its last layer has them."""
        knobs, is_whole = self.knobs, layer.number % self.knobs.bucket_layers == 0
        if microbatch == knobs.microbatch_count - 1 and knobs.gradient_overlap and is_whole:
            self._reduce_layer(layer)

    def _reduce_layer(self, layer: Layer) -> None:
        layer.at("backward", self.knobs.microbatch_count - 1)
        script = self.script
        script.after(COMPUTE, DATA_PARALLEL)
        if self.knobs.delayed_wgrad:
            script.after(WEIGHT_GRADIENT, DATA_PARALLEL)
        late_us = self.knobs.peer_late_us
        kernel = "nccl_reduce_scatter" if self.knobs.gradients == "sharded" else "nccl_all_reduce"
        us = self._bucket_us(layer.number)
        script.communicate(kernel, us, DATA_PARALLEL, name="gradients", late_us=late_us)

    def _merged(self, forward: int, backward: int) -> None:
        """Forward of one microbatch between backward of the one before: each hides the other's exchange."""
        script = self.script
        self._embed(forward)
        with script.on_autograd():
            self._head_backward(backward)
            coming = self._layers[-1].reload(backward)
        for ahead, behind in zip(self._layers, reversed(self._layers), strict=True):
            with script.range(f"layer_{ahead.number}f-layer_{behind.number}b", "layer"):
                coming = self._merged_layers(ahead, behind, forward, backward, coming)
            self._reduce(behind, backward)
        with script.on_autograd():
            self._embed_backward(backward)
        self._head(forward)

    def _merged_layers(
        self, ahead: Layer, behind: Layer, forward: int, backward: int, coming: int | None
    ) -> int | None:
        script = self.script
        with script.on_autograd():
            behind.at("backward", backward)
            behind.reloaded(coming)
            self._fetch_weights()
            following = self._reload_before(behind, backward)
            behind.recompute()
            combining = begin(script, "combine_bwd")
        self._before_forward(ahead, forward)
        ahead.attention()
        ahead.router()
        dispatching = begin(script, "dispatch")
        with script.on_autograd():
            behind.at("backward", backward)
            finish(script, combining)
            behind.experts_backward()
            undispatching = begin(script, "dispatch_bwd")
            behind.shared_expert_backward()
        ahead.at("forward", forward)
        ahead.shared_expert()
        finish(script, dispatching)
        ahead.experts()
        returning = begin(script, "combine")
        with script.on_autograd():
            behind.at("backward", backward)
            finish(script, undispatching)
            behind.meet_shared_expert()
            behind.router_backward()
            behind.attention_backward()
        ahead.at("forward", forward)
        finish(script, returning)
        ahead.meet_shared_expert()
        ahead.offload(forward)
        return following

    def _optimize(self) -> None:
        """Gradients to their owners, the optimizer, and the parameters back."""
        script, knobs = self.script, self.knobs
        if not knobs.gradient_overlap:
            for layer in reversed(self._layers[:: knobs.bucket_layers]):
                self._reduce_layer(layer)
        self._outside("optimizer")
        for stream in self.gradients_on:
            script.after(stream, COMPUTE)
        update(script)
        for stream in self.gradients_on:
            script.after(COMPUTE, stream)
        if not knobs.gradient_overlap and knobs.gradients == "sharded":
            for layer in self._layers[:: knobs.bucket_layers]:
                layer.at("optimizer", 0)
                self._gather_parameters()
            for stream in self.gradients_on:
                script.after(stream, COMPUTE)

    def _end(self) -> None:
        """What the host waits for before it goes on."""
        script, knobs = self.script, self.knobs
        self._outside("optimizer")
        if knobs.end_of_step == "read_back":
            script.read_scalar("loss")
        elif knobs.end_of_step == "device":
            script.synchronise("device")
        elif self._loss is not None:
            script.synchronise("event", self._loss)
