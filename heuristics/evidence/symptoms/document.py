"""A symptoms file as it is written: the document's names, times as parts of the window, all of it
optional.

What a file does not have is None, never zero. An earlier result has times in ns: `in_parts` makes
parts of them first. Kernel figures under `kernels` have no place in the document.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Final, dataclass_transform

from msgspec import Meta, Struct
from msgspec.structs import asdict

from heuristics.result.judged import Verdict, Wall
from heuristics.result.layouts import Granularity
from heuristics.result.result import Result
from heuristics.words import say
from traces.errors import InputError
from traces.nearest import nearest
from traces.sections import rank as result_rank
from traces.sections.cause import Cause
from traces.sections.rank import Dispatcher
from traces.sections.section import Count, Frac
from traces.texts import Texts
from traces.training_log.log import Stage

Figure = Annotated[float, Meta(ge=0)]
Parts = Mapping[str, Frac]
"""Parts of the window by kind, class or cause."""
# what a file may leave out
Share = Frac | None
Split = Parts | None
Number = Figure | None
Whole = Count | None
Flag = bool | None
ROUNDED: Final = 1.001
"""How far a length may exceed its window: figures are given rounded."""
SHOWN_LENGTH: Final = 40
"""Characters of an unknown key that are repeated: enough to find it, too few to carry a secret
far."""


@dataclass_transform(frozen_default=True)
class Part(Struct, frozen=True, kw_only=True):
    """An object of a symptoms file."""


class Budget(Part):
    """What fills the window."""

    window: float | None = None
    compute: Share = None
    exposed_comm: Share = None
    exposed_copy: Share = None
    idle: Share = None


class Latency(Part):
    """From a launch to the kernel."""

    arrival: Share = None
    kernel_gap: Share = None


class Absent(Part):
    """Why no compute ran; one figure for all causes, or by cause."""

    launch_starved: Frac | Parts | None = None
    blocking: Frac | Parts | None = None
    launch_latency: Frac | Latency | None = None
    graph_opaque: Share = None
    dependency_stalled: Share = None


class A2a(Part):
    """Expert all-to-all."""

    payload_frac: Share = None
    waiting_like_frac: Share = None
    exposed_frac: Share = None
    hidden_frac: Share = None


class Sm(Part):
    """How full the SMs are; `under_filled_frac`: of the window, in kernels with fewer blocks than
    SMs.
    """

    fill_frac: Share = None
    under_filled_frac: Share = None


class Memory(Part):
    """What memory costs; `recompute_modules`: labels of Megatron-Core, or parts of the window by
    class.
    """

    recompute_frac: Share = None
    recompute_modules: Texts | Parts | None = None
    offload_exposed_frac: Share = None
    offload_copies: Whole = None
    host_resident_exposed_frac: Share = None
    allocator_frac: Share = None
    allocator_retry_frac: Share = None
    allocator_calls_per_step: Number = None
    peak_bytes: Number = None
    capacity_bytes: Number = None


class Passes(Part):
    """How often a module runs again."""

    recomputed_count: Number = None


class Detected(Part):
    """What kind of run is seen."""

    framework: str | None = None
    moe: Flag = None
    training_step: Flag = None
    dispatcher: Dispatcher | None = None
    internode: Flag = None
    ep_overlap: Flag = None
    graph_share_frac: Share = None
    precision: str | None = None
    grouped_gemm: Flag = None
    permute_fused: Flag = None
    short_kernel_frac: Share = None
    recompute: Granularity | Texts | Mapping[str, Passes] | None = None


class Kernels(Part):
    """Counts of kernels; sums of their times say nothing of a window."""

    expert_gemms_per_layer: Number = None
    router_kernels_per_layer: Number = None
    short_kernel_frac: Share = None
    sum_by_class_frac: Mapping[str, float] | None = None


class Rank(Part):
    """One rank."""

    rank: Whole = None
    gpu: str | None = None
    budget_frac: Budget = Budget()
    exposed_comm_by_kind_frac: Split = None
    hidden_comm_by_kind_frac: Split = None
    hidden_comm_frac: Share = None
    compute_by_class_frac: Split = None
    masked_frac: Share = None
    absent_frac: Absent = Absent()
    a2a: A2a = A2a()
    sm: Sm = Sm()
    memory: Memory = Memory()
    detected: Detected = Detected()
    kernels: Kernels = Kernels()


class Late(Part):
    """Whom the others wait for, by its number or its place in `ranks`, and why."""

    cause: Cause | None = None
    rank: Whole = None
    index: Whole = None
    wait_frac: Frac = 0.0


class Ranks(Part):
    """The run over its ranks."""

    ranks_seen: Whole = None
    world_size: Whole = None
    late: Late | None = None


class Recorded(Part):
    """How it was recorded; `perturbation_frac`: how much longer the profiled step was."""

    perturbation_frac: Annotated[float, Meta(ge=-1)] | None = None
    missing_events: Flag = None
    ranks_seen: Whole = None
    world_size: Whole = None


class Trace(Part):
    """One recording of an earlier result."""

    capture: Recorded = Recorded()


class Log(Part):
    """What the run printed."""

    out_of_memory: Stage | None = None


class Document(Rank):
    """A run, flat or rank by rank; `walls` and `verdict` are those of an earlier result."""

    schema_version: str | None = None
    ranks: tuple[Rank, ...] | None = None
    capture: Recorded = Recorded()
    run: Ranks = Ranks()
    log: Log = Log()
    traces: tuple[Trace, ...] = ()
    walls: tuple[Wall, ...] = ()
    verdict: Verdict | None = None


_INNER: Final[Mapping[str, type[Part]]] = {
    **{name: type(part) for name, part in asdict(Document()).items() if isinstance(part, Part)},
    "late": Late,
}
"""Objects by their names, which stand in one place each."""
_TIMED: Final = ("a2a", "sm", "memory", "late")
"""Objects with times of their own."""
_TOP: Final = {*Result.__struct_fields__, *result_rank.Rank.__struct_fields__}
"""Keys of a result, read or not."""


def window_ns(values: Mapping[str, object]) -> float | None:
    """The length that times of a rank in ns are parts of. Raises InputError where it is 0."""
    budget = values.get("budget_ns")
    window = budget.get("window") if isinstance(budget, dict) else None
    if window == 0:
        raise InputError("budget_ns.window is 0: a window without time cannot be judged")
    if isinstance(window, int | float):
        return window
    return None


def in_parts(
    kind: type[Part], values: Mapping[str, object], window_ns: float | None, place: str = ""
) -> dict[str, object]:
    """An object less what is null, with `_frac` in place of its times in ns. Raises InputError: no
    window.
    """
    made = {key: value for key, value in values.items() if value is not None}
    for name in kind.__struct_fields__:
        in_ns, inner = f"{name.removesuffix('frac')}ns", made.get(name)
        if name.endswith("_frac") and inner is None and in_ns in made:
            made[name] = _part(made[in_ns], window_ns, f"{place}{in_ns}")
        elif isinstance(inner, dict) and name in _TIMED:
            made[name] = in_parts(_INNER[name], inner, window_ns, f"{place}{name}.")
        elif isinstance(inner, dict) and name == "recompute_modules":
            made[name] = _part(inner, window_ns, f"{place}{name}")
        elif isinstance(inner, dict):
            made[name] = _given(inner)
    return made


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {
        key: _given(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }


def _part(value: object, window_ns: float | None, place: str) -> object:
    """Lengths as parts of the window; what is none stays, and is refused with its type."""
    if isinstance(value, dict):
        return {
            key: _part(inner, window_ns, f"{place}.{key}")
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return value
    if not window_ns:
        raise InputError(
            f"{place} is in ns, so give budget_ns.window too, or give it as a part, with _frac"
        )
    part = value / window_ns
    if part <= ROUNDED:
        return min(part, 1.0)
    return part


def unread(values: Mapping[str, object]) -> Iterator[str]:
    """A sentence for each key that means nothing to us: the contract may grow."""
    yield from _unread(Document, values, "")
    for place, rank in enumerate(values.get("ranks") or ()):  # type: ignore[var-annotated, arg-type]
        yield from _unread(Rank, rank, f"ranks[{place}].")


def _unread(kind: type[Part], values: Mapping[str, object], place: str) -> Iterator[str]:
    names = {*kind.__struct_fields__}
    known = names | {f"{name.removesuffix('frac')}ns" for name in names if name.endswith("_frac")}
    for key, value in values.items():
        if key not in known and not (issubclass(kind, Rank) and key in _TOP):
            yield say("evidence.not-read", what=no_symptom(key, names, place))
        elif isinstance(value, dict) and key in _INNER:
            yield from _unread(_INNER[key], value, f"{place}{key}.")


def no_symptom(key: str, known: Collection[str], place: str) -> str:
    """A sentence of a key that is none of the known, with what is likely meant."""
    shown = "".join(filter(str.isprintable, key[:SHOWN_LENGTH]))
    near = nearest(key, known)
    all_known = say("evidence.known-here", keys=", ".join(sorted(known)))
    hint = say("evidence.did-you-mean", key=repr(near)) if near else all_known
    return say("evidence.no-symptom", key=f"{place}{shown}", hint=hint)
