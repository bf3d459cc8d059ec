"""Evidence: what the NVTX ranges say that were open on the launching thread."""

from typing import Final

from traces.arrays import IntArray, ints
from traces.columns import PURPOSES
from traces.frozen import frozen
from traces.missing import sole
from traces.names.ranges import undecorated
from traces.patterns import compiled, compiled_rows, first_found
from traces.resolve.communication import RANGES, Communication, innermost
from traces.resolve.nccl_calls import ALL_TO_ALL, POINT_TO_POINT, UNKNOWN
from traces.resolve.resolution import OPERATIONS, PHASES, UNTOLD, place_of

_SHAPES: Final = compiled_rows(
    (ALL_TO_ALL, r"[Aa]ll_?[Tt]o_?[Aa]ll"),  # nccl:all_to_all, c10d::alltoall_base_, _AllToAll
    (
        POINT_TO_POINT,
        r"nccl:(?:send|recv|coalesced)|c10d::(?:send|recv)|batch_isend_irecv|p2p_communication",
    ),
)
_LAYER: Final = compiled(r"(?:^|[^A-Za-z])layers?[._ \[#]?(\d{1,9})(f|b)?(?:-layer_(\d{1,9})b)?")
"""`layer_3f-layer_5b` (Megatron-Core's overlapped schedule), `layers.3.mlp`, `layer 3`."""


@frozen
class Enclosing:
    """What the innermost telling range around each launch says, shape (m,), `UNTOLD` where none
    does.

    `purpose` indexes `PURPOSES`, `operation` `OPERATIONS`, `phase` `PHASES`; `shape` is one of
    `traces.resolve.nccl_calls`. `layer` is the number in a layer's range, `layer_backward` that of
    the layer whose backward runs in the same range.
    """

    purpose: IntArray
    shape: IntArray
    operation: IntArray
    phase: IntArray
    layer: IntArray
    layer_backward: IntArray


def enclosing_ranges(comm: Communication) -> Enclosing:
    """Ask the ranges around each launch; what one does not say, the next outer one may."""
    texts = [undecorated(text) for text in comm.rank.columns.range_texts]
    # with emit_nvtx nearly every range has its own
    known = {text: _meaning(text) for text in set(texts)}
    # in the order of the fields of `Enclosing`
    silent = (UNTOLD, UNKNOWN, UNTOLD, UNTOLD, UNTOLD, UNTOLD)
    of_text = ints([*(known[text] for text in texts), silent]).T
    return Enclosing(
        *(innermost(comm.rank, comm.rows, *values) for values in zip(of_text, silent, strict=True))
    )


def _meaning(text: str) -> tuple[int, ...]:
    """Values in the order of the fields of `Enclosing`."""
    purpose = first_found(RANGES["purposes"].items(), text)
    operation = first_found(RANGES["operations"].items(), text)
    phase = _phase(text)
    if operation and phase == "bwd":  # a module's backward moves the other way
        operation = "combine" if operation == "dispatch" else "dispatch"
    shape = first_found(_SHAPES, text)
    layer = _LAYER.search(text)
    number = int(layer[1]) if layer and len(layer[1]) < 6 else UNTOLD
    backward = int(layer[3]) if layer and layer[3] and len(layer[3]) < 6 else UNTOLD
    return (
        place_of(PURPOSES, purpose),
        UNKNOWN if shape is None else shape,
        place_of(OPERATIONS, operation),
        place_of(PHASES, phase),
        number,
        number if backward == UNTOLD else backward,
    )


def _phase(text: str) -> str | None:
    """Phase a text names, if it names one. Checkpointing recomputes forward within its own
    backward.
    """
    if "Checkpoint" in text:
        return None
    return sole([phase for phase, pattern in RANGES["phases"].items() if pattern.search(text)])
