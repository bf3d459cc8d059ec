"""What both sides of a comparison show, by the names that `comparable.toml` asks for.

`base.NAME` and `new.NAME` are of one side, the others of both. None is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import prod
from operator import attrgetter
from typing import Final

from heuristics.comparison.covered import in_pieces
from heuristics.comparison.difference.changed import EXCHANGES, gpus
from heuristics.comparison.difference.kernels import compare_kernels
from heuristics.comparison.difference.matched import mean_step_ns
from heuristics.comparison.difference.subject import (
    Shows,
    Subject,
    Values,
    differing,
    each_step,
    enter_sided,
    known_at,
    known_of,
    same_capture,
    same_recorder,
    whole_replays,
)
from heuristics.comparison.same_work import (
    NEAR,
    counts_of,
    same_amount,
    same_classes,
    same_recording,
    shared_work_frac,
)
from heuristics.comparison.witnesses import Weighed, copied, output, repeats, shares_families, weigh
from heuristics.facts.dictionary import Remembering, enter, fact, read
from heuristics.rules.condition import Language
from heuristics.words import say
from traces.limits import QUARTER
from traces.missing import known, of_known
from traces.recording.recorder import recorded_by
from traces.sections.rank import Rank
from traces.spelling import counted, percent, sized
from traces.texts import Texts

TELLING_TABLES: Final = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "CUDA calls",
    "NVTX_EVENTS": "NVTX ranges",
    "cuda_runtime": "CUDA calls",
    "user_annotation": "annotations",
    "cpu_op": "operators",
}
"""Tables that something is known by alone; the rest is absent where nothing happened to be recorded
in it."""
_TRAINS: Final[Mapping[bool | None, str]] = {True: "training", False: "forward only"}
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
_NEEDED: Final = {
    "routing mode": "routing",
    "PP": "pp",
    "CUDA graphs": "graphs",
    "container": "container",
}
"""What has to be known of both sides before anything is concluded about a dispatcher."""


@dataclass(frozen=True)
class Sides(Remembering):
    """Both sides. `cut_otherwise`: their configurations cut the same step another way.

    `stack`: what differs of the stack below a dispatcher.
    """

    base: Subject
    new: Subject
    cut_otherwise: bool
    stack: Texts

    @property
    def ranks(self) -> tuple[Rank, Rank]:
        return self.base.rank, self.new.rank

    @cached_property
    def shared_frac(self) -> float | None:
        """How much work is by kernels that both have; it goes through both tables of kernels."""
        return shared_work_frac(*self.ranks)

    @cached_property
    def weighed(self) -> Weighed:
        """Whether the work is the same; unknown where only one side recorded what its graphs
        hold.
        """
        if same_capture(*self.ranks):
            return weigh(self.base, self.new)
        return Weighed(None, (), ())


_enter: Final = partial(enter_sided, Sides, ("base", "new"))
"""As what a side shows."""


def _shows(of: Shows) -> Shows:
    """Enters a function as a fact of each side, under its own name."""
    _enter(of.__name__, of)
    return of


@_shows
def step(side: Subject) -> str:
    steps = side.rank.steps
    if not steps.found:
        return "one window"
    if steps.unit == "step":
        return f"by {steps.source}"
    return f"{steps.unit}s by {steps.source}"


@_shows
def number(side: Subject) -> str:
    steps = side.rank.steps
    return counted(len(steps.used), "graph replay" if steps.unit == "replay" else steps.unit)


@_shows
def step_with_counts(side: Subject) -> str:
    rank = side.rank
    count = sum(kernel.count for kernel in rank.kernel_table.rows) / len(rank.lengths_ns)
    return f"{step(side)}, {count:.0f} kernels"


@_shows
def kind(side: Subject) -> str | None:
    return _TRAINS.get(known(side.rank.detected.training_step))


@_shows
def routes(side: Subject) -> str | None:
    """Whether MoE kernels run; unknown where only an exchange of unknown purpose does."""
    keys = {kernel.key for kernel in side.rank.kernel_table.rows}
    if keys & _ROUTES:
        return "routes tokens"
    if not keys or _MAY_ROUTE in keys:
        return None
    return "no MoE kernels"


@_shows
def moe_layers(side: Subject) -> object:
    if side.rank.kernel_table.rows:
        return known_of(side, "rank.moe.layers")
    return None


@_shows
def recorder(side: Subject) -> str | None:
    kind: str | None = known_of(side, "trace.kind")
    if kind is None:
        return None
    return recorded_by(kind).name


@_shows
def release(side: Subject) -> str | None:
    """Year and release of `2026.2.1.210`: builds of one release do not matter."""
    version = known_of(side, "trace.exporter_version") or ""
    return ".".join(version.split(".")[:2]) or None


@_shows
def unrecorded(side: Subject) -> str:
    tables = known_of(side, "trace.missing_tables") or ()
    return (
        ", ".join(sorted({TELLING_TABLES[name] for name in tables if name in TELLING_TABLES}))
        or "nothing"
    )


_slowed_frac: Final = known_at("trace.capture.perturbation_frac")


@_shows
def ranks(side: Subject) -> int:
    return len(side.result.ranks)


@_shows
def names(side: Subject) -> str:
    """How many names its kernels have."""
    return f"{len({kernel.name for kernel in side.rank.kernel_table.rows})} names"


def _copied(side: Subject) -> str:
    """Bytes that a step copies to the GPU."""
    return of_known(sized, each_step(side, "rank.work.to_gpu.size_bytes")) or "unknown"


@_shows
def slowed(side: Subject) -> str | None:
    """By how much the profiler slowed it."""
    return of_known(percent, _slowed_frac(side))


@_shows
def capture(side: Subject) -> str:
    """What was recorded of CUDA graphs."""
    if whole_replays(side.rank):
        return "whole replays"
    return "single kernels"


@_shows
def dispatcher(side: Subject) -> str | None:
    name = side.rank.detected.dispatcher
    if name in ("none", "unknown"):
        return None
    return name


def _is_known(path: str, side: Subject) -> str:
    if known_of(side, path) is None:
        return "unknown"
    return "known"


def _gpu(side: int, sides: Sides) -> object:
    pair_and_source = gpus(sides.base, sides.new)
    if pair_and_source:
        return pair_and_source[0][side]
    return None


_enter("schema", lambda side: known_of(side, "trace.schema") or None)
_enter("ledger", partial(_is_known, "rank.ledger"))
_enter("account", partial(_is_known, "rank.absent_ns"))
_enter("sms", known_at("rank.sm.sm_count"))
_enter("rank", known_at("rank.rank"))
_enter("unit", attrgetter("rank.steps.unit"))
_enter("stepped", attrgetter("rank.steps.found"))
_enter("slowed_frac", _slowed_frac)
_enter("tool", attrgetter("result.tool.version"))
enter("base.gpu", partial(_gpu, 0), Sides)
enter("new.gpu", partial(_gpu, 1), Sides)


@fact
def classes_alike(sides: Sides) -> bool | None:
    """Kernels are of the same classes."""
    if same_capture(*sides.ranks):
        return same_classes(*sides.ranks)
    return None


@fact
def most_unlike(sides: Sides) -> str | None:
    """The class of which one side has the most kernels more than the other."""
    base, new = (counts_of(side.rank, attrgetter("key")) for side in (sides.base, sides.new))
    keys = sorted(base.keys() | new.keys())
    key = max(keys, key=lambda key: abs(new.get(key, 0) - base.get(key, 0)), default=None)
    return of_known(lambda key: f"{key} {base.get(key, 0):.0f} -> {new.get(key, 0):.0f}", key)


@fact
def does_more(sides: Sides) -> str:
    """Which side launches kernels as often, in more blocks, with the first of them, and what it
    copies; empty where there is none, or each side does.
    """
    found = []
    for kernel in compare_kernels(*sides.ranks):
        base, new = (prod(grid or ()) for grid in (kernel.base_grid, kernel.new_grid))
        is_alike = kernel.change == "grid" and kernel.base_count == kernel.new_count
        if is_alike and (new - base) * kernel.delta_ns > 0:
            found.append((new > base, kernel.name[:60], f"{base:,} -> {new:,}"))
    if len({is_new for is_new, _, _ in found}) != 1:
        return ""
    is_new, name, blocks = found[0]
    before, after = map(_copied, (sides.base, sides.new))
    return say(
        "comparison.more-work",
        side="new" if is_new else "base",
        kernel=name,
        blocks=blocks,
        copied="" if before == after else f"; copied to the GPU: {before} -> {after}",
    )


@fact
def whole_work(sides: Sides) -> bool:
    """The same work, of which no window cuts anything off: as many bytes go back to the host, both
    hold as many equal units, one does it in pieces, or both are whole programs.
    """
    base, new = sides.base, sides.new
    is_whole = base.rank.steps.whole and new.rank.steps.whole
    is_whole |= output(base, new) is True or in_pieces(*sides.ranks)
    # units that hold another amount are no equal ones
    as_many = repeats(base, new) is True and same_amount(*sides.ranks) is not False
    return (is_whole or as_many) and sides.weighed.same is True


@fact
def recorded_once(sides: Sides) -> bool:
    """Both are one recording."""
    return same_recording(*sides.ranks)


read(Sides, "cut_otherwise")
read(Sides, "shared_frac")
read(Sides, "same_work", at="weighed.same")
read(Sides, "agree", at="weighed.agree")
read(Sides, "contradict", at="weighed.contradict")


@fact
def may_be_one(sides: Sides) -> bool:
    """Whether a replay may be what the other side repeats: as many of them, as much input, or as
    long.
    """
    base, new = sides.ranks
    lengths = sorted(map(mean_step_ns, (base, new)))
    many = len(base.steps.used) == len(new.steps.used)
    return (
        many or copied(base) == copied(new) != {} or lengths[1] <= Fraction(NEAR.value) * lengths[0]
    )


@fact
def other_programs(sides: Sides) -> bool:
    """Whether so few kernels are shared, by recorders that spell names alike, and by families."""
    few = (sides.shared_frac or 0.0) < QUARTER.value
    alike = same_recorder(sides.base, sides.new)
    return few and alike and not shares_families(*sides.ranks)


@fact
def stack_differs(sides: Sides) -> str | None:
    parts = [*sides.stack]
    for name, field in _VERSIONS.items():
        if differing(sides.base.given.get(field), sides.new.given.get(field)):
            parts.append(name)
    return ", ".join(parts) or None


@fact
def stack_unknown(sides: Sides) -> str | None:
    unknown = []
    base, new = _stack(sides.base), _stack(sides.new)
    for name, field in _NEEDED.items():
        if base.get(field) is None or new.get(field) is None:
            unknown.append(name)
    return ", ".join(unknown) or None


def _stack(side: Subject) -> Values:
    graphs = known(side.rank.detected.graph_share_frac)
    return {"container": side.container, **side.given, "graphs": graphs}


ALIKE: Final = Language(Sides)
"""What conditions of the table are asked in."""
