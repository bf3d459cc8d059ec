"""Evidence: what was launched just before and just after a communication kernel, whatever the
stream.
"""

from enum import IntEnum, auto
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, ints, order_of, summed
from traces.frozen import frozen
from traces.groups import next_at, places_in, previous_at
from traces.names.kernels import KernelClass
from traces.resolve.communication import Communication
from traces.resolve.resolution import PHASES, UNTOLD
from traces.timeline import Activities
from traces.toml_tables import read_table
from traces.training import is_optimizer_kernel


class Role(IntEnum):
    """What a compute kernel tells about the communication beside it."""

    SILENT = auto()
    """Copies, fills, casts: they stand between anything."""
    OTHER = auto()
    GEMM = auto()
    ATTENTION = auto()
    OPTIMIZER = auto()
    """Updates weights. A gradient norm and a foreach operation stand between anything."""
    ROUTER = auto()
    PERMUTE = auto()
    UNPERMUTE = auto()
    EXPERT = auto()
    """Grouped GEMM, and sorting or padding of what an expert gets."""


_ROLES: Final = {
    told: Role[name]
    for told, name in read_table("traces.resolve", "roles.toml", dict[str, str]).items()
}
"""Class of a kernel, or class and subclass -> its role."""
MOE_ROLES: Final = (Role.ROUTER, Role.PERMUTE, Role.UNPERMUTE, Role.EXPERT)


@frozen
class Neighbours:
    """Of each communication activity, shape (m,): roles of the telling compute kernels next to its
    launch.

    `previous` and `next` are `Role` (SILENT: none), `*_phase` indexes `PHASES`: that of the nearest
    compute kernel whose name has one. `moe_kernels` says whether any kernel of a `MOE_ROLES` ran,
    `permute_count` how many that bring tokens into expert order.
    """

    previous: IntArray
    next: IntArray
    previous_phase: IntArray
    next_phase: IntArray
    moe_kernels: bool
    permute_count: int

    def beside(self, *roles: Role) -> BoolArray:
        return np.isin(self.previous, roles) | np.isin(self.next, roles)

    def bracketed(self) -> BoolArray:
        """Between a permute and expert work, or that and an unpermute: tokens leave or results come
        back.
        """
        from_permute = (self.previous == Role.PERMUTE) & np.isin(
            self.next, (Role.EXPERT, Role.GEMM)
        )
        leaves = from_permute | ((self.previous == Role.ROUTER) & (self.next == Role.EXPERT))
        return leaves | (
            np.isin(self.previous, (Role.EXPERT, Role.GEMM)) & (self.next == Role.UNPERMUTE)
        )

    def amid_experts(self) -> BoolArray:
        """On one side at least, tokens are with their experts or on the way there and back."""
        leaving = np.isin(self.previous, (Role.PERMUTE, Role.EXPERT))
        return leaving | np.isin(self.next, (Role.EXPERT, Role.UNPERMUTE))


def neighbours_of(comm: Communication) -> Neighbours:
    """Look left and right of each communication activity, in the order of launches."""
    rank = comm.rank
    role_of = ints([*map(role, (*rank.columns.kernel_names, ""), comm.classes)])
    phase_of = ints([*map(phase_of_class, comm.classes)])
    rows = rank.activities
    roles = np.where(rows.is_compute, role_of[rows.name], Role.SILENT)
    phases = np.where(rows.is_compute, phase_of[rows.name], UNTOLD)
    order = launch_order(rows)
    mine = places_in(order)[comm.index]
    previous, following = _nearest(roles[order], Role.SILENT)
    previous_phase, next_phase = _nearest(phases[order], UNTOLD)
    return Neighbours(
        previous[mine],
        following[mine],
        previous_phase[mine],
        next_phase[mine],
        bool(np.isin(roles, MOE_ROLES).any()),
        summed(roles == Role.PERMUTE),
    )


def launch_order(rows: Activities) -> IntArray:
    """Activities in order of launch; by start where half of them or more have no recorded launch.

    An activity without a launch among launched ones stands where it starts. Kernels of one graph
    launch stand in order of start.
    """
    by_launch = summed(rows.is_launched) * 2 > len(rows)
    return order_of(rows.launched_ns if by_launch else rows.start_ns)


def role(name: str, kernel: KernelClass) -> Role:
    """Role of a compute kernel. The backward of an unpermute permutes, and the reverse."""
    if is_optimizer_kernel(name):
        return Role.OPTIMIZER
    usual = _ROLES.get(kernel.class_, Role.OTHER)
    if usual != Role.SILENT and "sort_chunks" in name:
        return Role.EXPERT
    usual = _ROLES.get(f"{kernel.class_} {kernel.subclass}", usual)
    if "bwd" in name or "backward" in name:
        return {Role.PERMUTE: Role.UNPERMUTE, Role.UNPERMUTE: Role.PERMUTE}.get(usual, usual)
    return usual


def phase_of_class(kernel: KernelClass) -> int:
    """The pass that a class of kernels says itself, as a place in `PHASES`, else `UNTOLD`."""
    for phase in (kernel.phase, kernel.subclass):  # activation/fwd has phase any
        if phase in PHASES:
            return PHASES.index(phase)
    return UNTOLD


def _nearest(values: IntArray, silent: int) -> tuple[IntArray, IntArray]:
    """Of each silent place the nearest telling value before and after it, `silent` where there is
    none.
    """
    padded, tells = np.append(values, silent), values != silent
    return padded[previous_at(tells)], padded[next_at(tells)]
