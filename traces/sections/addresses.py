"""Whose time it is: the host's while the GPU waited for it, and the GPU's own, by what was
recorded.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from traces.missing import OrMissing
from traces.sections.section import Count, Frac, Ns, Section
from traces.texts import Recorded

AddressKind = Literal["function", "module", "operator", "native", "range", "os_call", "none"]
"""A function of the program, a module of PyTorch, an operator, a native function, a range, an OS
call."""


class Address(Section):
    """Host time under one name, over the used steps; `none`: nothing that may be named was
    recorded.
    """

    kind: AddressKind
    name: Recorded
    starved_ns: Ns
    blocking_ns: Ns

    @property
    def total_ns(self) -> int:
        return self.starved_ns + self.blocking_ns


class HostStack(Section):
    """Host time under one stack: the innermost of each kind, empty where there is none."""

    module: Recorded
    range: Recorded
    function: Recorded
    operator: Recorded
    native: Recorded
    os_call: Recorded
    starved_ns: Ns
    blocking_ns: Ns


class HostCall(Section):
    """Calls of CUDA or HIP of one name on the launching threads: those that began in the windows,
    how long they took, and what of the time that waits for the host they were in.
    """

    name: Recorded
    count: Count
    took_ns: Ns
    starved_ns: Ns
    blocking_ns: Ns


class AddressesLeftOut(Section):
    """What is beyond the rows of a list."""

    rows: Count
    starved_ns: Ns
    blocking_ns: Ns


class GpuAddress(Section):
    """Kernels that were launched under one name."""

    kind: AddressKind
    name: Recorded
    count: Count
    work_ns: Ns


class GpuAddressesLeftOut(Section):
    """Kernels beyond the rows of the list."""

    rows: Count
    count: Count
    work_ns: Ns


class Addresses(Section):
    """Every nanosecond that is launch-starved or blocking under an address, and kernels by their
    launches.

    `hosts`: by address, the largest first, of which the first are listed. `host_stacks`: the same
    time by the whole stack. `gpu_addresses`: kernels by the innermost module, else range or
    operator, at launch. `calls`: those that took longest.
    """

    host_starved_ns: Ns
    host_blocking_ns: Ns
    addressed_frac: OrMissing[Frac]
    by_function_frac: OrMissing[Frac]
    hosts: tuple[Address, ...]
    hosts_left_out: AddressesLeftOut
    host_stacks: tuple[HostStack, ...]
    host_stacks_left_out: AddressesLeftOut
    gpu_addresses: tuple[GpuAddress, ...]
    gpu_addresses_left_out: GpuAddressesLeftOut
    calls: tuple[HostCall, ...] | UnsetType = UNSET
