"""Which of a rank's activities show training: optimizer kernels, backward kernels, autograd's
launches.
"""

from enum import IntEnum, auto
from functools import cache
from typing import Final

import numpy as np

from traces.arrays import CODE, BoolArray, IntArray, distinct, none_of, summed
from traces.columns import NULL, PROCESS_BITS
from traces.frozen import frozen
from traces.groups import in_order, passing
from traces.intervals import instants_of
from traces.limits import Limit
from traces.names.kernels import classify_kernel
from traces.names.ranges import is_backward_name, is_optimizer_name
from traces.patterns import compiled
from traces.timeline import RankTimeline

AUTOGRAD_THREAD: Final = "pt_autograd"
"""How PyTorch's backward threads are called (torch/csrc/autograd/engine.cpp)."""
OTHERS: Final = Limit(
    0.2,
    "fraction of the kernels",
    "ours: forward is a third of a training step; a helper thread is less",
)
_ADAM_WITHOUT_FUSION: Final = compiled(r"addcdiv|PointwiseOp\w*Functor.*divides")
_OF_PYTORCH: Final = compiled("at::native")
_SQUARES: Final = "addcmul_cuda_kernel"
_ROOT: Final = "sqrt_kernel_cuda"
"""How an update that is not fused begins: squares of gradients are added up, then their root is
taken."""


@frozen
class Roles:
    """What each activity of a rank, shape (n,), is to training: masks that its name or thread
    gives.

    `backward` are kernels whose name says so and all that is `autograd`'s; `forward` those whose
    name says so and that are not autograd's. Most kernels (a GEMM) are none of these. `autograd`:
    launched by a thread of its own, told by its name, else by launching all that is backward by
    name; or under a range that is named after backward, as its operators are. `threads_tell`: an
    autograd thread would be seen, since kernels are PyTorch's, every launch is recorded and every
    launching thread has a name.
    """

    forward: BoolArray
    backward: BoolArray
    optimizer: BoolArray
    autograd: BoolArray
    threads_tell: bool
    optimizer_ranges: int = 0
    """Ranges with an optimizer's name in the rank's process: a program that trains may tell so
    itself."""


class _Role(IntEnum):
    """What the name of a kernel says of it."""

    NONE = auto()
    FORWARD = auto()
    BACKWARD = auto()
    OPTIMIZER = auto()


_ROLES: Final = {"fwd": _Role.FORWARD, "bwd": _Role.BACKWARD}


def is_optimizer_kernel(name: str) -> bool:
    """Whether a kernel updates weights: fused by its class, or Adam's division where it is not
    fused.

    A gradient norm, and a foreach operation that others use as well, is none.
    """
    kernel = classify_kernel(name)
    fused = kernel.class_ == "optimizer" and kernel.subclass not in ("l2norm", "foreach")
    return fused or _ADAM_WITHOUT_FUSION.search(name) is not None


def roles_of(rank: RankTimeline) -> Roles:
    """The roles of a rank's activities."""
    rows = rank.activities
    kernel = rows.is_kernel
    by_name = np.array([*map(_role, rank.columns.kernel_names), _Role.NONE], dtype=CODE)[rows.name]
    names = rank.columns.thread_names
    launched = kernel & (rows.launch_thread != NULL)
    threads = distinct(rows.launch_thread[launched]).tolist()
    theirs = launched & np.isin(rows.launch_thread, autograd_threads(rank))
    if not theirs.any():
        backward = _backward_threads(rows.launch_thread, launched, by_name)
        theirs = launched & np.isin(rows.launch_thread, backward)
    autograd = theirs | (launched & _in_backward_ranges(rank, threads))
    return Roles(
        forward=kernel & (by_name == _Role.FORWARD) & ~autograd,
        backward=kernel & ((by_name == _Role.BACKWARD) | autograd),
        optimizer=kernel & ((by_name == _Role.OPTIMIZER) | _second_moments(rank, launched)),
        autograd=autograd,
        threads_tell=bool(kernel.any() and launched[kernel].all())
        and names.keys() >= {*threads}
        and any(map(_OF_PYTORCH.search, rank.columns.kernel_names)),
        optimizer_ranges=_optimizer_ranges(rank),
    )


def autograd_threads(rank: RankTimeline) -> list[int]:
    """Threads whose names say that they run PyTorch's backward."""
    names = rank.columns.thread_names.items()
    return [gid for gid, name in names if name.startswith(AUTOGRAD_THREAD)]


def _second_moments(rank: RankTimeline, launched: BoolArray) -> BoolArray:
    """Kernels that add up squares, and the root that is launched at once or after one more; shape
    (n,).

    Adam and Adagrad take it next, Adadelta after adding its epsilon.
    """
    rows, squares = rank.activities, rank.named(lambda name, _: _SQUARES in name)
    result = none_of(len(rows))
    if not squares.any():
        return result
    root = rank.named(lambda name, _: _ROOT in name)
    places = np.flatnonzero(launched)
    places = in_order(places, rows.launch_thread, rows.launch_ns)
    for apart in (1, 2):
        pairs = np.flatnonzero(squares[places][:-apart] & root[places][apart:])
        result[places[pairs]] = result[places[pairs + apart]] = True
    return result


def _backward_threads(thread: IntArray, launched: BoolArray, by_name: IntArray) -> list[int]:
    """Threads that nobody named, yet launch all that is backward by name while others launch the
    forward.

    PyTorch runs backward on threads of its own, so forward kernels from such a thread run a second
    time. Where no name is forward's, the others must launch a good part of all, the optimizer among
    it if any.
    """
    backward: list[int] = distinct(thread[launched & (by_name == _Role.BACKWARD)]).tolist()
    if len(backward) != 1:
        return []
    theirs = launched & np.isin(thread, backward)
    others = launched & ~theirs
    if (others & (by_name == _Role.FORWARD)).any():
        return backward
    of_its_own = np.isin(by_name, (_Role.FORWARD, _Role.OPTIMIZER))
    divided = summed(others) >= OTHERS.value * summed(launched)
    if divided and not (theirs & of_its_own).any():
        return backward
    return []


def _in_backward_ranges(rank: RankTimeline, threads: list[int]) -> BoolArray:
    """What some threads launched while a range of theirs said backward, a mask of shape (n,)."""
    rows, ranges = rank.activities, rank.columns.ranges
    named = passing(is_backward_name, rank.columns.range_texts)[ranges.text]
    result = none_of(len(rows))
    for thread in threads if named.any() else ():
        theirs, mine = named & (ranges.thread_gid == thread), rows.launch_thread == thread
        result[mine] = instants_of(ranges, theirs).hold(rows.launch_ns[mine])
    return result


def _optimizer_ranges(rank: RankTimeline) -> int:
    ranges, named = rank.columns.ranges, passing(is_optimizer_name, rank.columns.range_texts)
    mine = (rank.process_gid == NULL) | (ranges.thread_gid & PROCESS_BITS == rank.process_gid)
    return summed(named[ranges.text] & mine)


def judge_training(roles: Roles) -> tuple[bool | None, str]:
    """Whether the recording holds training, and by what that is told.

    Not seeing any backward proves nothing where no name and no thread could have shown it: then
    None.
    """
    optimizer, autograd = summed(roles.optimizer), summed(roles.autograd)
    backward = summed(roles.backward & ~roles.autograd)
    if optimizer or autograd or backward or roles.optimizer_ranges:
        return True, (
            f"{optimizer} optimizer kernels, {backward} kernels that are backward by name, "
            f"{autograd} launched by autograd threads, {roles.optimizer_ranges} optimizer ranges"
        )
    nothing = "no optimizer kernel and no backward kernel"
    if forward := summed(roles.forward):
        return False, f"{nothing} beside {forward} that are forward by name"
    if roles.threads_tell:
        return False, f"{nothing}, by name or launched by an autograd thread"
    return None, f"{nothing}, but neither kernel names nor thread names could show one here"


@cache
def _role(name: str) -> _Role:
    if is_optimizer_kernel(name):
        return _Role.OPTIMIZER
    return _ROLES.get(classify_kernel(name).phase, _Role.NONE)
