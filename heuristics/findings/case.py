"""What ran and what the log has, by the names that the table of findings asks for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from heuristics.comparison.difference.changed import ONCE
from heuristics.config.hardware import gpu_family
from heuristics.config.view import Config, Trust
from heuristics.facts.configuration import OF_ALLOCATOR
from heuristics.facts.dictionary import Remembering, fact, read
from heuristics.facts.groups import balance_off
from heuristics.rules.rules import releases_of, rules
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import LITTLE, Limit
from traces.spelling import percent

CAPTURES: Final = ("graph-captured", "graph-built", "graph-capture-begins")
"""Lines of a log that say graphs were captured."""
_OVERLAP: Final = "overlap_moe_expert_parallel_comm"


@dataclass(frozen=True, slots=True)
class Case(Remembering):
    """A run, and the ids of all lines that its log or its failures name.

    `perturbation_frac`: how much longer the profiled step is than the log's.
    """

    run: Run
    lines: frozenset[str] = field(default_factory=frozenset)
    perturbation_frac: float | None = None

    @property
    def files(self) -> Config:
        """What files alone ask for."""
        return self.run.view(Trust.FILES)

    def line_of(self, id: str) -> str:
        """Where the log says it, for sentences."""
        message = self.run.log.first(id) if self.run.log else None
        return "the log" if message is None else _line(message.line)


def _line(number: int) -> str:
    return say("findings.line", number=number)


def set_at(case: Case, knob: str) -> str:
    return f"{knob.removeprefix('env.')} in {case.files.where(knob)}"


def _first_at(case: Case, *knobs: str, on: bool = False) -> str | None:
    asked = case.files
    found = (knob for knob in knobs if (asked.on(knob) if on else asked.known(knob)))
    return next((set_at(case, knob) for knob in found), None)


@fact
def padding_at(case: Case) -> str:
    """Where padding is asked for."""
    padding = _first_at(case, "moe_router_padding_for_quantization", on=True)
    return padding or case.line_of("graphs-preprocess-padding")


@fact
def tp_overlap_asked(case: Case) -> bool:
    """Whether overlap of TP is asked for."""
    said = case.files.written.value("comm_overlap.tp_comm_overlap")
    return said is True or (said is None and case.files.on("tp_comm_overlap") is True)


@fact
def tp_overlap_off(case: Case) -> str:
    """Why it is off."""
    if "tp-overlap-off" in case.lines:
        return case.line_of("tp-overlap-off")
    return say("findings.tp-is-1" if case.run.config.tp == 1 else "findings.sequence-parallel-off")


@fact
def overlap_left_off(case: Case) -> bool:
    """Off, or named nowhere in Megatron-Bridge's configuration; not where the model's field asks for it."""
    asked = case.files
    if asked.written.value(_OVERLAP) is True:
        return False
    return asked.ep_overlap is False or (
        asked.ep_overlap is None and asked.written.framework == "megatron_bridge"
    )


@fact
def overlap_off_at(case: Case) -> str:
    """Where EP overlap is left off."""
    said = case.files.written
    found = (knob for knob in (f"comm_overlap.{_OVERLAP}", _OVERLAP) if knob in said)
    return next((f"{knob} in {said.said(knob)}" for knob in found), say("findings.overlap-unnamed"))


def _captured(case: Case) -> str:
    return next((one for one in CAPTURES if one in case.lines), "")


@fact
def captured_at(case: Case) -> str:
    """Where the log says what was captured."""
    nothing = "graph-nothing-captured"
    line = _captured(case) or (nothing if nothing in case.lines else "")
    return f"; {case.line_of(line)}" if line else ""


@fact
def register_asserted(case: Case) -> bool:
    """Whether the release may assert that NCCL registers no buffers of graphs."""
    return rules()["graphs-graph-register"].in_force(releases_of(case.files)) is not False


@fact
def segments_at(case: Case) -> str | None:
    """Where the allocator is set."""
    return _first_at(case, *OF_ALLOCATOR)


@fact
def precision_at(case: Case) -> str | None:
    """Where a precision is asked for."""
    return _first_at(case, "mixed_precision", "fp8", "fp4")


@fact
def gemms_a_layer(case: Case) -> str:
    """GEMMs of experts in a layer."""
    count = case.run.observed.expert_gemms_per_layer
    return "" if count is None else say("findings.gemms-a-layer", count=f"{count:.0f}")


@fact
def offload_at(case: Case) -> str | None:
    """Where offload is switched on."""
    return _first_at(case, "fine_grained_activation_offloading", "cpu_offloading", on=True)


@fact
def collected(case: Case) -> str:
    """How often garbage is collected by hand."""
    interval = case.files.count("train.manual_gc_interval")
    return say("findings.collected", interval=interval) if interval else say("findings.collected-unknown")


def _from(limit: Limit, value: float | None, spell: Callable[[float], str] = percent) -> str | None:
    """A figure in words where it reaches its limit."""
    return None if value is None or value < limit.value else spell(value)


@fact
def allocator_calls(run: Run) -> str | None:
    """Calls of the allocator a step, where they are more than now and then."""
    return _from(ONCE, run.observed.allocator_calls_per_step, "{:.0f}".format)


@fact
def collection(run: Run) -> str | None:
    """What collection costs, where it shows."""
    return _from(LITTLE, (run.observed.absent_frac or {}).get("gc"))


@fact
def other_gpu(case: Case) -> str | None:
    """The trace's GPU against the one that is given, by family, where both are known and differ."""
    seen, asked = case.run.observed.gpu, case.run.given.gpu or case.files.word("launcher.gpu")
    families = [gpu_family(name) for name in (seen, asked) if name]
    if len(families) < 2 or None in families or families[0] == families[1]:
        return None
    return say("findings.other-gpu", seen=families[0], asked=families[1])


@fact
def unbalanced(case: Case) -> str | None:
    """Why no loss and no bias spreads tokens evenly over experts on several ranks; None where one does."""
    files = case.files
    if not files.on("num_moe_experts") or files.ep is None or files.ep < 2:
        return None
    if files.on("moe_router_enable_expert_bias") or not balance_off(files):
        return None
    chosen = files.names("moe_router_load_balancing_type")
    return say("findings.no-balancing" if chosen == ("none",) else "findings.no-coefficient")


def _unknown_error(case: Case) -> tuple[str, str] | tuple[None, None]:
    error = case.run.log.unknown_error if case.run.log else None
    return (error.said.get("error", "an exception"), _line(error.line)) if error else (None, None)


@fact
def unknown_error(case: Case) -> str | None:
    """An error of the log that no table knows."""
    return _unknown_error(case)[0]


@fact
def unknown_error_at(case: Case) -> str | None:
    """Its line."""
    return _unknown_error(case)[1]


read(Case, "lines")
