"""What both sides of a comparison show, by the names that `comparable.toml` asks for.

`base.NAME` and `new.NAME` are of one side, the others of both. None is unknown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Final

from heuristics.comparison.difference.changed import EXCHANGES, gpus
from heuristics.comparison.difference.matched import mean_step_ns
from heuristics.comparison.difference.subject import Subject, same_capture, sided, whole_replays
from heuristics.comparison.same_work import NEAR, same_classes, same_recording, shared_work_frac
from heuristics.comparison.witnesses import Weighed, copied, weigh
from heuristics.config.facts import Fact
from heuristics.rules.condition import Language
from traces.limits import HALF_A_WALL, NEARLY_ALL, QUARTER
from traces.missing import known
from traces.spelling import counted, percent

_RECORDERS: Final = {"nsys-sqlite": "nsys", "kineto": "PyTorch profiler"}
TELLING_TABLES: Final = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "CUDA calls",
    "NVTX_EVENTS": "NVTX ranges",
    "cuda_runtime": "CUDA calls",
    "user_annotation": "annotations",
    "cpu_op": "operators",
}
"""Tables that something is known by alone; the rest is absent where nothing happened to be recorded in it."""
_ROUTES: Final = {"compute.router", "compute.permute", "compute.grouped_gemm", *EXCHANGES}
"""Keys of kernels that only MoE layers have."""
_MAY_ROUTE: Final = "comm.sendrecv_unresolved"
"""Perhaps their all-to-all: without ranges or named permutes it is unknown."""
_VERSIONS: Final = {
    "Megatron-Core": "core_version",
    "Megatron-Bridge": "bridge_version",
    "PyTorch": "torch_version",
    "Transformer Engine": "te_version",
}
_NEEDED: Final = {"routing mode": "routing", "PP": "pp", "CUDA graphs": "graphs", "container": "container"}
"""What has to be known of both sides before anything is concluded about a dispatcher."""


@dataclass(frozen=True)
class Sides:
    """Both sides. `cut_otherwise`: their configurations cut the same step another way.

    `stack`: what differs of the stack below a dispatcher. `told`, `held`: facts and conditions asked before.
    """

    base: Subject
    new: Subject
    cut_otherwise: bool
    stack: tuple[str, ...]
    told: dict[str, object] = field(default_factory=dict)
    held: dict[str, bool | None] = field(default_factory=dict)

    @cached_property
    def shared_frac(self) -> float | None:
        """How much work is by kernels that both have; it goes through both tables of kernels."""
        return shared_work_frac(self.base.rank, self.new.rank)

    @cached_property
    def weighed(self) -> Weighed:
        """Whether the work is the same; unknown where only one side recorded what its graphs hold."""
        is_known = same_capture(self.base.rank, self.new.rank)
        return weigh(self.base, self.new) if is_known else Weighed(None, (), ())


def _step(side: Subject) -> str:
    steps = side.rank.steps
    if not steps.found:
        return "one window"
    return f"by {steps.source}" if steps.unit == "step" else f"{steps.unit}s by {steps.source}"


def _number(side: Subject) -> str:
    steps = side.rank.steps
    return counted(len(steps.used), "graph replay" if steps.unit == "replay" else steps.unit)


def _step_with_counts(side: Subject) -> str:
    rank = side.rank
    count = sum(one.count for one in rank.kernel_table.rows) / len(rank.lengths_ns)
    return f"{_step(side)}, {count:.0f} kernels"


def _kind(side: Subject) -> str | None:
    trains = known(side.rank.detected.training_step)
    return None if trains is None else "training" if trains else "forward only"


def _routes(side: Subject) -> str | None:
    """Whether MoE kernels run; unknown where only an exchange of unknown purpose does."""
    keys = {one.key for one in side.rank.kernel_table.rows}
    if keys & _ROUTES:
        return "routes tokens"
    return None if not keys or _MAY_ROUTE in keys else "no MoE kernels"


def _moe_layers(side: Subject) -> int | None:
    moe = known(side.rank.moe)
    return known(moe.layers) if moe and side.rank.kernel_table.rows else None


def _recorder(side: Subject) -> str | None:
    return _RECORDERS.get(side.trace.kind, side.trace.kind) if side.trace else None


def _release(side: Subject) -> str | None:
    """Year and release of `2026.2.1.210`: builds of one release do not matter."""
    version = known(side.trace.exporter_version) if side.trace else None
    return ".".join((version or "").split(".")[:2]) or None


def _unrecorded(side: Subject) -> str:
    tables = side.trace.missing_tables if side.trace else ()
    return ", ".join(sorted({TELLING_TABLES[name] for name in tables if name in TELLING_TABLES})) or "nothing"


def _slowed_frac(side: Subject) -> float | None:
    return known(side.trace.capture.perturbation_frac) if side.trace else None


_OF_A_SIDE: Final[Mapping[str, Callable[[Subject], object]]] = {
    "sms": lambda side: known(side.rank.sm.sm_count),
    "ranks": lambda side: len(side.result.ranks),
    "rank": lambda side: known(side.rank.rank),
    "step": _step,
    "step_with_counts": _step_with_counts,
    "unit": lambda side: side.rank.steps.unit,
    "number": _number,
    "kind": _kind,
    "names": lambda side: f"{len({one.name for one in side.rank.kernel_table.rows})} names",
    "routes": _routes,
    "moe_layers": _moe_layers,
    "recorder": _recorder,
    "release": _release,
    "schema": lambda side: known(side.trace.schema) or None if side.trace else None,
    "unrecorded": _unrecorded,
    "slowed": lambda side: None if (frac := _slowed_frac(side)) is None else percent(frac),
    "ledger": lambda side: "unknown" if known(side.rank.ledger) is None else "known",
    "capture": lambda side: "whole replays" if whole_replays(side.rank) else "single kernels",
    "account": lambda side: "unknown" if known(side.rank.absent_ns) is None else "known",
    "tool": lambda side: side.result.tool.version,
    "dispatcher": lambda side: (
        None if (name := side.rank.detected.dispatcher) in ("none", "unknown") else name
    ),
}


def _gpu(side: int, sides: Sides) -> object:
    found = gpus(sides.base, sides.new)
    return found[0][side] if found else None


def _same_capture(sides: Sides) -> bool:
    return same_capture(sides.base.rank, sides.new.rank)


def _same_classes(sides: Sides) -> bool | None:
    return same_classes(sides.base.rank, sides.new.rank) if _same_capture(sides) else None


def _replayed_beside(sides: Sides) -> bool:
    """Whether replays without their kernels stand against steps or blocks of another kind."""
    one, other = (side.rank.steps.unit for side in (sides.base, sides.new))
    return one != other and "replay" in (one, other)


def _may_be_one(sides: Sides) -> bool:
    """Whether a replay may be what the other side repeats: as many of them, as much input, or as long."""
    one, other = (side.rank for side in (sides.base, sides.new))
    lengths = sorted(map(mean_step_ns, (one, other)))
    many = len(one.steps.used) == len(other.steps.used)
    return many or copied(one) == copied(other) != {} or lengths[1] <= Fraction(NEAR.value) * lengths[0]


def _other_kernels(sides: Sides) -> bool:
    shared = sides.shared_frac
    return shared is not None and shared < NEARLY_ALL.value and _same_capture(sides)


def _other_programs(sides: Sides) -> bool:
    """Whether so few kernels are shared, by recorders that spell names alike."""
    kinds = {side.trace.kind for side in (sides.base, sides.new) if side.trace}
    return (sides.shared_frac or 0.0) < QUARTER.value and len(kinds) <= 1


def _slowed_otherwise(sides: Sides) -> bool:
    one, other = _slowed_frac(sides.base), _slowed_frac(sides.new)
    return one is not None and other is not None and abs(one - other) > HALF_A_WALL.value


def _stack_differs(sides: Sides) -> str | None:
    base, new = sides.base.given, sides.new.given
    versions = (
        name
        for name, field in _VERSIONS.items()
        if None not in (pair := (base.get(field), new.get(field))) and pair[0] != pair[1]
    )
    return ", ".join((*sides.stack, *versions)) or None


def _stack_unknown(sides: Sides) -> str | None:
    both = [
        {"container": side.container, **side.given, "graphs": known(side.rank.detected.graph_share_frac)}
        for side in (sides.base, sides.new)
    ]
    return ", ".join(name for name, key in _NEEDED.items() if None in [one.get(key) for one in both]) or None


ALIKE: Final = Language(
    {
        **sided(_OF_A_SIDE, "base", "new"),
        "base.gpu": Fact(partial(_gpu, 0)),
        "new.gpu": Fact(partial(_gpu, 1)),
        "stepped": Fact(lambda sides: sides.base.rank.steps.found and sides.new.rank.steps.found),
        "same_work": Fact(lambda sides: sides.weighed.same),
        "agree": Fact(lambda sides: sides.weighed.agree or None),
        "contradict": Fact(lambda sides: sides.weighed.contradict or None),
        "same_classes": Fact(_same_classes),
        "replayed_beside": Fact(_replayed_beside),
        "may_be_one": Fact(_may_be_one),
        "same_recording": Fact(lambda sides: same_recording(sides.base.rank, sides.new.rank)),
        "cut_otherwise": Fact(lambda sides: sides.cut_otherwise),
        "other_kernels": Fact(_other_kernels),
        "other_programs": Fact(_other_programs),
        "shared": Fact(lambda sides: percent(sides.shared_frac or 0.0)),
        "same_capture": Fact(_same_capture),
        "slowed_otherwise": Fact(_slowed_otherwise),
        "stack_differs": Fact(_stack_differs),
        "stack_unknown": Fact(_stack_unknown),
    },
    config=None,
)
"""What conditions of the table are asked in."""
