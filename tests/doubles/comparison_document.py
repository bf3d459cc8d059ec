"""Comparisons said by hand, with round numbers, for the tests of their document and its texts."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from heuristics.comparison.comparison import whole
from heuristics.comparison.difference.changed import difference
from heuristics.comparison.difference.rows import FEW, Attribution, Facts, with_shares
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.ranks import Pair
from heuristics.comparison.size import Judged
from heuristics.result.compared import (
    Comparable,
    Compared,
    ComparedChange,
    ComparedRow,
    ComparedSize,
    Difference,
    Ends,
    KernelDelta,
    LayerDelta,
    Source,
    Suspect,
)
from heuristics.result.gate import Gate
from reports.result.codec import Document, encode
from tests.doubles.comparison import log, rank, result, row, trace
from traces.missing import Missing
from traces.sections.tables import WallId

MS = 1_000_000
US = 1_000
HOST: Final = "host_overhead"
COMM: Final = "communication"


def moved(
    name: str,
    base_ms: int,
    new_ms: int,
    count_ms: int = 0,
    overlap_ms: int = 0,
    wall: WallId | None = None,
    **fields: Any,
) -> ComparedRow:
    """A row: what is neither count nor overlap is duration. An interval of 1 ms around it."""
    delta_ns = (new_ms - base_ms) * MS
    plain: dict[str, Any] = {
        "count_ns": count_ms * MS,
        "duration_ns": delta_ns - (count_ms + overlap_ms) * MS,
        "overlap_ns": overlap_ms * MS,
        "base_count": 10.0,
        "new_count": 10.0,
        "ci95_ns": (delta_ns - MS // 2, delta_ns + MS // 2),
        "parts": (),
        "share_frac": None,
    }
    return ComparedRow(name, wall, delta_ns, base_ns=base_ms * MS, new_ns=new_ms * MS, **{**plain, **fields})


NOISE = moved("noise", 20, 21, ci95_ns=None, parts=("compute.norm", "compute.router"))
ROWS = (
    moved("launch_starved.launch", 1, 5, 4, wall=HOST, base_count=100.0, new_count=500.0),
    moved("exposed_comm.ep_dispatch", 10, 8, 0, -1, wall=COMM),
    moved("compute.grouped_gemm", 9, 10, wall="compute"),
    NOISE,
)
"""40 ms a step, then 44: +4 - 2 + 1 + 1."""

KERNELS = (
    KernelDelta("grouped<8>(int4*)", "compute.grouped_gemm", "slower", MS, (132, 1, 1), (132, 1, 1), 8.0, 8.0,
                125 * US, 250 * US),
    KernelDelta("nvjet_tst_128x256", "compute.gemm", "grid", 200 * US, (132, 1, 1), (66, 1, 1), 4.0, 4.0,
                100 * US, 150 * US),
    KernelDelta("cast_fp8", "compute.quantise", "new", 100 * US, None, (8, 1, 1), 0.0, 2.0, None, 50 * US),
    KernelDelta("old_norm", "compute.norm", "gone", -100 * US, None, None, 2.5, 0.0, 40 * US, None),
)  # fmt: skip


def changed(what: str, base: Any, new: Any, source: Source, *explains: str, **fields: Any) -> ComparedChange:
    """Something that differs, and the rows it can explain."""
    return replace(difference(what, base, new, source), can_explain=explains, **fields)


CHANGED = (
    changed("cuda_graph_impl", "local", "none", "configuration", "launch_starved.launch"),
    changed("save", None, None, "configuration", withheld=True),
    changed("version.nccl", "2.29", "2.30", "log", "launch_starved.launch"),
    changed("moe_layer_freq", None, (0, 1, 1), "configuration", said_base=False),
    changed("detected.graph_share_frac", 0.5, 0.0, "trace", "launch_starved.launch"),
)
GRAPHS = Suspect(
    "graphs_stopped",
    "CUDA graphs stopped replaying",
    "high",
    (
        "cuda_graph_impl went from local to none",
        "50.0 % of kernel work was in CUDA graphs, and now 0.0 % is",
        "launch calls a step went from 100 to 500",
    ),
    "set --cuda-graph-impl local again and record 8 steps",
    ("launch_starved.launch",),
    4 * MS,
    "Megatron-Core user guide on CUDA graphs",
    ("cuda_graph_impl went from local to none",),
)
NCCL = Suspect(
    "nccl_host_cpu",
    "NCCL 2.30 takes more of the host's CPU where its threads are not bound",
    "low",
    ("version.nccl went from 2.29 to 2.30",),
    "bind each rank to its CPUs, or go back to 2.29",
    ("launch_starved.launch",),
    4 * MS,
    "NCCL release notes 2.30",
    ("version.nccl went from 2.29 to 2.30",),
)
OTHER_NSYS = Difference(
    "exporter_version", "2025.6", "2026.2", "with_differences", "another nsys may slow steps by another share"
)
OTHER_ROUTING = Difference(
    "moe_router_load_balancing_type",
    "aux_loss",
    "none",
    "no",
    "dispatchers are not to be judged across routing modes",
)
_UNTOLD = Missing("", "one side does not have the work of this row", "record both alike")
RECORD = "record 8 or more steps of each run, or give --base-log and --new-log"


def document_of(comparison: Compared) -> Document:
    """Its JSON document."""
    return encode(comparison)


def attribution(delta_ns: int, *lists: tuple[ComparedRow, ...]) -> Attribution:
    """Rows, then reasons, then modules, each with its shares."""
    return Attribution(delta_ns, *map(with_shares, lists))


def facts(steps: int = 20, **fields: Any) -> Facts:
    """Steps of 40 ms in base and 44 in new, on two ranks."""
    base_ranks, new_ranks = (
        tuple(rank(row("compute.gemm", *(ms * MS,) * steps), rank=place, device=place, trace=name)
              for place in range(2))
        for ms, name in ((40, "before.sqlite"), (44, "after.sqlite"))
    )  # fmt: skip
    verdict = {"bound": "compute"}
    plain: dict[str, Any] = {
        "base": result(*base_ranks, traces=(trace(name="before.sqlite"),), verdict=verdict),
        "new": result(
            *new_ranks,
            traces=(trace(name="after.sqlite"),),
            verdict={"wall": HOST, "bound": HOST, "kind": "launch", "confidence": "high"},
        ),
        "attribution": attribution(4 * MS, ROWS, ROWS[:1], ROWS[1:2]),
        "layers": (LayerDelta(3, 2 * MS, 5 * MS, 7 * MS, "dispatch", MS),),
        "kernels": KERNELS,
        "changed": CHANGED,
    }
    told = {**plain, **fields}
    sides = {side: Subject(told[side], told[side].ranks[0]) for side in ("base", "new")}
    return Facts(**{**told, **sides})


def sized(
    source: Any, count: int, base_ms: int, new_ms: int, around_ns: Ends | None, how: str
) -> ComparedSize:
    """A size by means that are the medians too."""
    base_ns, delta_ns = base_ms * MS, (new_ms - base_ms) * MS
    ends: Any = around_ns or (FEW, FEW)
    parts: Any = tuple(one / base_ns for one in around_ns) if around_ns else (FEW, FEW)
    level: Any = (0.95, how) if around_ns else (FEW, FEW)
    means = (base_ns, new_ms * MS)
    return ComparedSize(
        source, count, count, *means, *means, delta_ns, delta_ns / base_ns, *ends, *parts, *level
    )


def traced(steps: int, interval: bool) -> ComparedSize:
    """40 against 44 ms, plus and minus half a ms."""
    around = (3_500 * US, 4_500 * US) if interval else None
    return sized("trace", steps, 40, 44, around, "bootstrap over steps, 10,000 draws")


def regression(**fields: Any) -> Compared:
    """20 steps a side: +4 ms, launch calls first, a gate of 3 % tripped."""
    told = fields.get("facts") or facts()
    why = ("the whole interval is above zero, and above 1.0 % of a step",)
    plain: dict[str, Any] = {
        "facts": told,
        "pairs": tuple(
            Pair(one, other, "rank")
            for one, other in zip(told.base.result.ranks, told.new.result.ranks, strict=True)
        ),
        "comparable": Comparable("with_differences", (OTHER_NSYS,)),
        "size": traced(20, interval=True),
        "judged": Judged("regression", why, ""),
        "suspects": (GRAPHS, NCCL),
        "gate": Gate(0.03, "tripped", "the lower end of the interval, +8.8 %, is above it"),
    }
    parts = {**plain, **fields}
    made = whole(*(parts.pop(name) for name in ("facts", "pairs", "comparable", "size", "judged")))
    return replace(made, tool=replace(made.tool, version="0.2"), **parts)


def undecided() -> Compared:
    """Two steps a side, no intervals, no rows of kernels: figures are shown, nothing is decided."""
    untold: dict[str, Any] = {
        "count_ns": _UNTOLD,
        "duration_ns": _UNTOLD,
        "overlap_ns": _UNTOLD,
        "ci95_ns": FEW,
    }
    rows = tuple(replace(one, **untold) for one in ROWS)
    told = facts(2, attribution=attribution(4 * MS, rows), kernels=(), layers=(), changed=())
    return regression(
        facts=told,
        pairs=(Pair(told.base.rank, told.new.rank, "rank"),),
        comparable=Comparable("yes", ()),
        size=traced(2, interval=False),
        judged=Judged("undecided", ("2 steps a side say nothing of how much steps scatter",), RECORD),
        suspects=(),
        gate=None,
    )


def not_comparable() -> Compared:
    """Another routing mode."""
    why = ("dispatchers are not to be judged across routing modes",)
    return regression(
        comparable=Comparable("no", (OTHER_NSYS, OTHER_ROUTING)),
        judged=Judged("not_comparable", why, "record both with the same routing"),
        suspects=(),
        gate=None,
    )


def unchanged() -> Compared:
    """A run against itself: no row but `noise`, of no length."""
    base = result(*facts().base.result.ranks, traces=(trace(name="before.sqlite"),))
    still = moved("noise", 40, 40, ci95_ns=None)
    told = facts(base=base, new=base, attribution=attribution(0, (still,)), kernels=(), layers=(), changed=())
    return regression(
        facts=told,
        pairs=(Pair(told.base.rank, told.new.rank, "rank"),),
        comparable=Comparable("yes", ()),
        size=sized("trace", 20, 40, 40, (0, 0), "step by step"),
        judged=Judged("no_change", ("both sides are the same, step by step",), ""),
        suspects=(),
        gate=Gate(0.03, "passed", "nothing is slower"),
    )


def by_logs() -> Compared:
    """The size from 500 iterations a side, 30 and 33 ms; the traces say 40 and 44."""
    told = facts()
    base, new = (
        Subject(replace(side.result, log=log(*(each_ms * MS,) * 500)), side.rank)
        for side, each_ms in ((told.base, 30), (told.new, 33))
    )
    size = sized("log", 500, 30, 33, (2_900 * US, 3_100 * US), "bootstrap over blocks of iterations")
    return regression(facts=replace(told, base=base, new=new), size=size)
