"""What fixes need, by name: `needs.toml`, and what of it only code can tell."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct, convert

from heuristics.fixes.precondition import Precondition, already_so, holds
from heuristics.rules.condition import condition
from heuristics.run.repairs import REPAIRS
from heuristics.run.run import Run
from traces.limits import Limit
from traces.spelling import chosen

WAITING: Final = Limit(
    0.5,
    "fraction of the expert all-to-all",
    "ours: more waiting than moving, so a faster transport touches the smaller part",
)


class Need(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A need as it is written; `needs.toml` says what its fields are. ValueError: no such name in it."""

    text: str = ""
    holds: str = ""
    met_by: str = ""
    told_by: str = ""
    blocks: bool = False
    already: str = ""
    when: str = ""

    def __post_init__(self) -> None:
        for text in (self.holds, self.when or self.already):
            if text:
                condition(text)

    def of(self, run: Run) -> tuple[Precondition, ...]:
        """As a run has it; nothing where it asks for nothing."""
        if self.already:
            return already_so(self.already, condition(self.when or self.already).holds(run.config) is True)
        if self.when and condition(self.when).holds(run.config) is not True:
            return ()
        fact = condition(self.holds).holds(run.config) if self.holds else None
        return (holds(self.text, fact, self.met_by, self.told_by, self.blocks),)


@cache
def shared_needs() -> Mapping[str, Need]:
    """By name. Raises `ValidationError` with the name of a wrong row."""
    text = files("heuristics.fixes").joinpath("needs.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), dict[str, Need])


def needed(name: str, run: Run) -> tuple[Precondition, ...]:
    """A need of `needs.toml`, as a run has it."""
    return shared_needs()[name].of(run)


def mostly_moving(run: Run) -> tuple[Precondition, ...]:
    """The expert all-to-all moves data rather than waits; where it waits, who is late comes first."""
    waiting = run.active.a2a_waiting_frac
    fact = None if waiting is None else waiting <= WAITING.value
    text = f"waiting is at most {chosen(WAITING.value)} of the expert all-to-all"
    return (holds(text, fact, _ends_waiting(run), "record several ranks of a group"),)


def _ends_waiting(run: Run) -> str:
    """What makes ranks wait less: where the late rank is known its repair, else even routing."""
    if run.late is None:
        return "COM-11"
    return next(iter(REPAIRS[run.late.cause].fixes), "the repair of the late rank")


def head_room(run: Run, needed_bytes: float | None = None) -> tuple[Precondition, ...]:
    """Free memory, by what was given, else by the peak the trace shows; None: nobody can say how much.

    A small rest is unknown, not unmet: PyTorch reserves nearly all by design.
    """
    text, shown, tight = "memory has room for it", run.active, run.config.memory_tight
    if run.does_not_fit:
        return (holds(f"{text}: the run does not fit", False, "MEM-2"),)
    if tight is not None:
        return (holds(text, not tight, "MEM-2"),)
    if layer_offload(run):
        return (holds(f"{text}: layers are offloaded because memory is short", False, "MEM-6"),)
    if needed_bytes is None or shown.memory_bytes is None or shown.peak_bytes is None:
        return (holds(text, None, told_by="--memory-tight"),)
    fits = shown.memory_bytes - shown.peak_bytes >= needed_bytes
    return (holds(text, fits or None, told_by="--memory-tight"),)


def no_layer_offload(run: Run) -> tuple[Precondition, ...]:
    """Layers kept off the CPU; offload that shows may be the fine-grained one, which is no layer's."""
    offloaded, told = layer_offload(run), "cpu_offloading of the configuration"
    fact = None if offloaded is None else not offloaded
    return (holds("no layer is offloaded to the CPU", fact, "cpu_offloading=false", told),)


def layer_offload(run: Run) -> bool | None:
    """Whether whole layers are offloaded: by the configuration, else not where no copies show."""
    configured = run.config.on("cpu_offloading")
    return False if configured is None and run.active.offload is False else configured
