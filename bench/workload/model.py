"""What a step trains: layers one after the other, or a whole GPT, behind the same few calls."""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from bench.workload.layers import plain_layers
from bench.workload.megatron import megatron_layers
from bench.workload.states import SIZES, State

Ranges = Callable[[str], AbstractContextManager[Any]]
"""A name -> a range of a recording, open as long as it is entered."""


class Model(Protocol):
    """Something to train. `host`: a step's input, in host memory; `weights`: its parameters."""

    host: Any
    weights: list[Any]

    def loss(self, given: Any) -> Any:
        """The loss of an input of the shape of `host`, on the device."""

    def clear(self) -> None:
        """Forget the gradients of the step before, as far as the optimizer does not."""

    def reduce(self) -> None:
        """Give the optimizer the gradients of all ranks."""


class Stack:
    """The MoE layers of a state, of plain PyTorch or of Megatron-Core, on one rank: a `Model`."""

    def __init__(self, torch: Any, state: State, device: str, *, megatron: bool) -> None:
        sizes, self._torch, self._recompute = SIZES[device], torch, state.recompute
        make = megatron_layers if megatron else plain_layers
        self._layers, self.weights = make(torch, sizes, state, device)
        shape, dtype = (sizes.token_count, sizes.hidden), getattr(torch, sizes.dtype)
        self.host = torch.randn(shape, dtype=dtype, pin_memory=device == "cuda")
        self._target = torch.randn(shape, dtype=dtype).to(device)

    def loss(self, given: Any) -> Any:
        for layer in self._layers:
            given = again(layer, given) if self._recompute else layer(given)
        return self._torch.nn.functional.mse_loss(given, self._target)

    def clear(self) -> None:
        """The optimizer forgets them all."""

    def reduce(self) -> None:
        """One rank has them all."""


def again(layer: Callable[..., Any], *given: Any) -> Any:
    """A layer whose forward backward computes again.

    There is no dropout, so no random state to keep: keeping it would copy from the GPU and wait.
    """
    checkpoint = importlib.import_module("torch.utils.checkpoint").checkpoint
    return checkpoint(layer, *given, use_reentrant=False, preserve_rng_state=False)
