"""Expert all-to-all and the MoE ledger of a rank: `ranks[].a2a`, `ranks[].moe`."""

from typing import Literal

from msgspec import field

from heuristics.result.known import Count, Frac, Ns, OrMissing, Section

Pass = Literal["forward", "recompute", "backward"]


class Span(Section, frozen=True):
    """One kernel of expert traffic, cut at the window."""

    kind: str
    start_ns: int
    end_ns: int
    step: OrMissing[Count]
    layer: OrMissing[Count]
    phase: OrMissing[str]


class A2a(Section, frozen=True):
    """Expert all-to-all of one rank."""

    instances: Count
    payload_ns: Ns
    control_ns: Ns
    waiting_like_ns: OrMissing[Ns]
    exposed_ns: Ns
    hidden_ns: Ns
    blocking_ns: OrMissing[Ns]
    unresolved_ns: Ns
    spans: tuple[Span, ...]


class MoeRow(Section, frozen=True):
    """One module in one pass, over all layers."""

    module: str
    pass_: Pass = field(name="pass")
    count: Count
    work_ns: Ns
    wall_ns: Ns
    exposed_ns: Ns
    blocking_ns: OrMissing[Ns]
    host_wait_ns: OrMissing[Ns]
    per_step_ns: tuple[Ns, ...]


class LayerRow(Section, frozen=True):
    """One module in one pass of one layer, over all used steps."""

    layer: Count
    module: str
    pass_: Pass = field(name="pass")
    count: Count
    work_ns: Ns
    wall_ns: Ns


class Moe(Section, frozen=True):
    """What each module of the MoE layers takes."""

    tax_ns: OrMissing[Ns]
    tax_frac: OrMissing[Frac]
    layers: OrMissing[Count]
    rows: tuple[MoeRow, ...]
    by_layer: tuple[LayerRow, ...]
