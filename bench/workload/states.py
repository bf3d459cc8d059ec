"""The states a small MoE training step can be recorded in, as data, each with a partner to compare it with.

A state and its partner differ in one decision. Experts times their width is the same everywhere, so that the
experts of every state have as many weights.
"""

from dataclasses import dataclass
from typing import Final, Literal

Copies = Literal["none", "same_stream", "second_stream"]


@dataclass(frozen=True, slots=True)
class State:
    """One known state. `known` is what is done, not what a tool should say of it; `beside`: its partner."""

    known: str
    beside: str
    expert_count: int = 8
    recompute: bool = False
    cuda_graph: bool = False
    host_counts: bool = False
    copies: Copies = "none"


STATES: Final = {
    "eager": State(
        "Every kernel is launched by itself. Experts are padded to capacity, so the host reads no count.",
        "cuda_graph",
    ),
    "cuda_graph": State(
        "The whole step, optimizer included, is one CUDA graph, captured before the recording.",
        "eager",
        cuda_graph=True,
    ),
    "recompute": State(
        "Backward computes each MoE layer's forward again (torch.utils.checkpoint).", "eager", recompute=True
    ),
    "many_small_experts": State(
        "64 narrow experts, each launched by itself.", "few_large_experts", expert_count=64
    ),
    "few_large_experts": State(
        "4 wide experts, each launched by itself.", "many_small_experts", expert_count=4
    ),
    "host_counts": State(
        "In every layer the host reads how many tokens each expert gets before it launches the experts; "
        "nothing is padded or dropped.",
        "eager",
        host_counts=True,
    ),
    "copy_same_stream": State(
        "Each step's input is copied from pinned host memory on the stream that computes.",
        "copy_second_stream",
        copies="same_stream",
    ),
    "copy_second_stream": State(
        "The next step's input is copied from pinned host memory on a second stream during this step.",
        "copy_same_stream",
        copies="second_stream",
    ),
}
"""Name -> state."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Shape of the step. `ffn_total` is the width of all experts of a layer together, in elements."""

    layer_count: int
    token_count: int
    hidden: int
    ffn_total: int
    top_k: int
    dtype: str

    def ffn(self, state: State) -> int:
        return self.ffn_total // state.expert_count

    def capacity(self, state: State) -> int:
        """Tokens one expert takes where experts are padded: an even share, rounded up."""
        return -(-self.token_count * self.top_k // state.expert_count)


SIZES: Final = {
    "cuda": Sizes(2, 8192, 2048, 16384, 2, "bfloat16"),
    "cpu": Sizes(2, 128, 32, 256, 2, "float32"),
}
"""Kind of device -> shape: on a GPU so that 4 experts fill it and 64 do not, on a CPU for trying only."""
