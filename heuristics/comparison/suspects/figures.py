"""Facts of one side of a difference, by the names that the tables of causes ask for."""

from collections.abc import Callable
from functools import partial
from itertools import compress
from operator import floordiv, methodcaller
from typing import Any, Final, TypeVar

from heuristics.comparison.causes.table import named, table
from heuristics.comparison.difference.changed import is_off
from heuristics.comparison.difference.rows import part_of
from heuristics.comparison.difference.subject import (
    Shows,
    Subject,
    each_step,
    enter_sided,
    known_at,
    known_of,
)
from heuristics.comparison.suspects.view import View
from heuristics.facts.dictionary import enter
from heuristics.result.result import rank_in_run
from heuristics.words import spelled
from traces.account.calls import CallKind, call_kinds
from traces.missing import known
from traces.patterns import compiled
from traces.sections.addresses import HostCall
from traces.sections.tables import Kernel
from traces.spelling import duration, in_ms, percent

_LOADED_BY: Final = {True: "worker processes", False: "the step's own process"}
CLASSES: Final = named("@classes")


Shown = TypeVar("Shown", bound=Shows)


def pair(name: str, view: View) -> tuple[Any, Any]:
    """What both sides show."""
    return view.tells(f"before.{name}"), view.tells(f"after.{name}")


def _enter(name: str, of: Shows, spelled: Callable[[Any], str] = str) -> None:
    """As three facts: of each side, and of both, as sentences have it."""

    def both(view: View) -> str | None:
        shown = pair(name, view)
        if None in shown:
            return None
        return view.arrow(*map(spelled, shown))

    enter_sided(View, ("before", "after"), name, of)
    enter(f"both.{name}", both)


def shows(name: str, spelled: Callable[[Any], str] = str) -> Callable[[Shown], Shown]:
    """Enters a function as the facts `before.NAME`, `after.NAME` and `both.NAME`; it gives None
    where a side does not tell. `spelled`: as sentences have it.
    """

    def entered(of: Shown) -> Shown:
        _enter(name, of, spelled)
        return of

    return entered


def _count(name: str, *rows: str) -> None:
    """Activities of some rows a step."""
    _enter(name, lambda side: sum(map(side.count, rows)), whole)


def whole(number: float) -> str:
    return f"{number:.0f}"


def _rounded_ms(time_ns: float) -> str:
    return in_ms(round(time_ns))


@shows("dispatcher")
def dispatcher_seen(side: Subject) -> str | None:
    name = side.rank.detected.dispatcher
    if name == "unknown":
        return None
    return name


def _synchronising(place: int, side: Subject) -> float | None:
    """Of the calls that synchronise their number a step, or their time, ns."""
    syncs = _calls(side, CallKind.SYNC)
    return syncs and syncs[place] / len(side.rank.lengths_ns)


@shows("launch_ns", duration)
def mean_launch_ns(side: Subject) -> float | None:
    """How long a call that launches takes."""
    launches = _calls(side, CallKind.LAUNCH)
    return launches and part_of(launches[1], launches[0])


def _calls(side: Subject, kind: CallKind) -> tuple[int, int] | None:
    """How many calls of a kind there are in all steps, and how long they take in all, ns."""
    calls: tuple[HostCall, ...] | None = known_of(side, "rank.addresses.calls")
    if calls is None:
        return None
    mine = [*compress(calls, call_kinds(tuple(call.name for call in calls)) == kind)]
    return sum(call.count for call in mine), sum(call.took_ns for call in mine)


@shows("asked")
def fused_dispatcher_asked(side: Subject) -> str | None:
    """The fused dispatcher that a side is configured for; None where none, or unknown."""
    if side.value("moe_token_dispatcher_type") != "flex":
        return None
    backend = side.value("moe_flex_dispatcher_backend")
    if not is_off(backend):
        return str(backend)
    if side.value("moe_enable_deepep"):
        return "deepep"
    return None


@shows("perturbed", percent)
def perturbation_frac(side: Subject) -> float | None:
    traces = side.result.traces
    return max(
        (frac for trace in traces if (frac := known(trace.capture.perturbation_frac)) is not None),
        default=None,
    )


@shows("waited", in_ms)
def waited_for_others_ns(side: Subject) -> int | None:
    own = rank_in_run(side.result, side.rank)
    if own is None:
        return None
    return own.waited_ns


def _count_kernels(name: str, counts: Callable[[Kernel], object]) -> None:
    """Enters the kernels a step that count."""

    def kernels(side: Subject) -> float:
        counted = sum(kernel.count for kernel in side.rank.kernel_table.rows if counts(kernel))
        return counted / len(side.rank.lengths_ns)

    _enter(name, kernels, whole)


@shows("workers")
def loader_workers(side: Subject) -> int | None:
    """Workers that load, by the rhythm of waits; else by the configuration."""
    workers: int | None = known_of(side, "rank.data_loading.workers")
    configured = side.value("num_workers", "dataset.num_workers")
    if workers is None and isinstance(configured, int):
        return configured
    return workers


@shows("data_waits")
def steps_that_wait_for_data(side: Subject) -> str | None:
    steps = known_of(side, "rank.data_loading.waiting_steps")
    if steps is None:
        return None
    return f"{steps} of {len(side.rank.lengths_ns)}"


@shows("wide", percent)
def wide_frac(side: Subject) -> float | None:
    whole_ns, wide_ns = side.rank.tensor_cores.lengths_ns
    return part_of(wide_ns, whole_ns)


@shows("recomputed", lambda modules: ", ".join(modules) or "none")
def modules_recomputed(side: Subject) -> list[str]:
    return sorted(known(side.rank.memory.recompute_modules) or ())


for _name, _rows in table()["counts"].items():
    _count(_name, *named(*_rows))
for _name, _path in table()["figures"].items():
    _enter(_name, known_at(_path), partial(spelled, _path))
_count("others", *(name for name in CLASSES if name not in named("@small")))
_enter("pageable", known_at("rank.work.pageable_frac"), percent)
_enter("apart", known_at("rank.data_loading.loads_apart"), _LOADED_BY.__getitem__)
_count_kernels("collectives", lambda row: row.key.startswith("comm."))  # hidden ones too
_count_kernels("broadcasts", lambda row: row.key.startswith("comm.") and "Broadcast" in row.name)
_count_kernels("forward", lambda row: compiled(r"(?i)fwd|forward").search(row.name))
_count_kernels("backward", lambda row: compiled(r"(?i)bwd|backward|dgrad|wgrad").search(row.name))
_enter("waits", partial(_synchronising, 0), "{:.1f}".format)
_enter("sync_ns", partial(_synchronising, 1), _rounded_ms)
_enter("waiting", partial(each_step, path="rank.a2a.waiting_like_ns", by=floordiv), in_ms)
# Work of compute beside communication.
_enter("beside_ns", partial(each_step, path="rank.sm.stretch.beside_ns", by=floordiv), in_ms)
for _name, _path in table()["times"].items():
    _enter(_name, partial(each_step, path=_path), _rounded_ms)
_enter("allocations", partial(each_step, path="rank.memory.allocator_calls"), "{:.1f}".format)
_enter("tp", methodcaller("value", "tensor_model_parallel_size", "tp"))
_enter("bound", methodcaller("value", "launcher.numa_binding", "cpu_bound_to_numa"))
