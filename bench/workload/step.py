"""One training step of a state: forward, backward, optimizer, and how they are launched."""

from collections.abc import Callable
from typing import Any, Final

from bench.workload.model import Model, Ranges
from bench.workload.states import State

WARM_UP_STEPS: Final = 3
"""Before a capture or a recording: for the allocator and the optimizer. PyTorch's notes on graphs take 3."""


class Steps:
    """The steps of one state on a kind of device; every call of `step` runs one and gives its loss.

    `not_done` names what the state asks for and the device cannot do.
    """

    def __init__(self, torch: Any, model: Model, state: State, device: str, ranges: Ranges) -> None:
        self._torch, self._model, self._state = torch, model, state
        self._ranges, self._on_gpu = ranges, device == "cuda"
        more = {"capturable": True} if self._on_gpu else {}
        self._optimizer = torch.optim.AdamW(model.weights, lr=1e-4, **more)
        self._input = model.host.to(device)
        self.not_done: list[str] = []
        self.step = self._chosen_step()

    def _chosen_step(self) -> Callable[[], Any]:
        state = self._state
        if not self._on_gpu and (state.cuda_graph or state.copies != "none"):
            what = "CUDA graphs" if state.cuda_graph else "copies to a GPU"
            self.not_done.append(f"no CUDA device, so no {what}: the step ran as in state eager")
            return self._compute
        if state.cuda_graph:
            return self._captured()
        if state.copies == "second_stream":
            return self._copying_beside()
        return self._copying_first if state.copies == "same_stream" else self._compute

    def _compute(self) -> Any:
        ranges, model = self._ranges, self._model
        self._optimizer.zero_grad(set_to_none=True)
        model.clear()
        with ranges("forward"):
            loss = model.loss(self._input)
        with ranges("backward"):
            loss.backward()
        with ranges("grad_sync"):
            model.reduce()
        with ranges("optimizer"):
            self._optimizer.step()
        return loss.detach()

    def _copying_first(self) -> Any:
        self._input.copy_(self._model.host, non_blocking=True)
        return self._compute()

    def _copying_beside(self) -> Callable[[], Any]:
        """Two buffers in turn: one is computed on while the other is filled."""
        cuda = self._torch.cuda
        second, spare = cuda.Stream(), self._torch.empty_like(self._input)
        second.wait_stream(cuda.current_stream())

        def step() -> Any:
            nonlocal spare
            second.wait_stream(cuda.current_stream())  # the step that read the spare buffer is over
            with cuda.stream(second):
                spare.copy_(self._model.host, non_blocking=True)
            loss = self._compute()
            cuda.current_stream().wait_stream(second)
            self._input, spare = spare, self._input
            return loss

        return step

    def _captured(self) -> Callable[[], Any]:
        """As in PyTorch's notes on CUDA graphs: warm up on another stream, then capture once."""
        cuda = self._torch.cuda
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self._compute()
        cuda.current_stream().wait_stream(side)
        self._optimizer.zero_grad(set_to_none=True)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            loss = self._compute()

        def replay() -> Any:
            graph.replay()
            return loss

        return replay
