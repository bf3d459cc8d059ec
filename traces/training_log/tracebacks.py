"""Which stage of training a Python traceback passed through, rank by rank.

A traceback's frames are names of functions: of Megatron-LM (megatron/training/training.py, core/optimizer,
core/pipeline_parallel, core/transformer/cuda_graphs.py; core_v0.12.0 to d98e8a64), of Megatron-Bridge
(training/setup.py, train.py), of PyTorch and of Transformer Engine. Recompute runs a forward inside a
backward and optimizers make their state inside a step, so the rarer stage of those passed through counts.
"""

import re
from collections.abc import Mapping
from typing import Final

from traces.limits import Limit
from traces.training_log.log import Stage

WORDS: Final = (b"Traceback (most recent", b'File "')
RANKS_KEPT: Final = Limit(20_000, "ranks", "ours: above the largest runs, and bounded")
_FRAME: Final = re.compile(r'File "([^"]*)", line [0-9]+, in (\w+)')
_RANK: Final = re.compile(r"^[^\"]{0,120}?\brank ?([0-9]{1,7})\b|^ *([0-9]{1,7}): ", re.IGNORECASE)
_STAGES: Final[Mapping[Stage, re.Pattern[str]]] = {
    "graph_capture": re.compile(
        r" (?:_?create_cudagraphs|create_(?:fwd|bwd)_graph|_?make_graphed_callables|capture_begin"
        r"|capture_end|cuda_graph_capture|_start_capturing|_get_cuda_graph_input_data)$|cuda/graphs\.py "
    ),
    "optimizer_state": re.compile(
        r" (?:_init_group|_?initialize_state|init_state_fn|_init_optimizer_states_with_dummy_values)$"
    ),
    "optimizer": re.compile(r" (?:step_with_ready_grads|prepare_grads)$|optim\w*/.* step$"),
    "backward": re.compile(
        r" (?:backward_step\w*|custom_backward|run_backward|_engine_run_backward|finalize_model_grads)$"
        r"|(?:autograd/__init__|torch/_tensor|pipeline_parallel/utils)\.py _?backward$"
    ),
    "forward": re.compile(r" (?:forward_step\w*|forward)$"),
    "setup": re.compile(
        r" (?:setup_model_and_optimizer|_build_distributed_model|get_model|get_megatron_optimizer"
        r"|initialize_megatron|load_checkpoint|build_model|setup)$"
    ),
}
"""Searched for in `path name`; a later stage counts only where no earlier one does."""


def rank_of(text: str) -> int | None:
    """The rank that a line's prefix names: `[rank3]:` of torchrun, `3: ` of srun; None where it has none."""
    found = _RANK.match(text)
    return None if found is None else int(found[1] or found[2])


class Tracebacks:
    """The stages passed through by each rank's latest traceback."""

    def __init__(self) -> None:
        self._passed: dict[int | None, set[Stage]] = {}

    def begin(self, text: str) -> None:
        """A traceback begins."""
        self._passed.pop(rank_of(text), None)

    def frame(self, text: str) -> None:
        """A line that may be a frame."""
        found = _FRAME.search(text)
        if found is None:
            return
        place = f"{found[1]} {found[2]}"
        for stage, names in _STAGES.items():
            if names.search(place):
                rank = rank_of(text)
                if rank in self._passed or len(self._passed) < RANKS_KEPT.value:
                    self._passed.setdefault(rank, set()).add(stage)
                return

    def end(self, text: str) -> Stage:
        """An error ends the traceback of its rank: the stage it happened in."""
        passed = self._passed.pop(rank_of(text), set())
        return next((stage for stage in _STAGES if stage in passed), "unknown")
