"""What ran and what the log has, by the names that the table of findings asks for."""

from dataclasses import field
from typing import Final

from heuristics.comparison.difference.changed import ONCE
from heuristics.config.hardware import gpu_family
from heuristics.config.view import Config, Trust
from heuristics.facts.dictionary import Remembering, fact, read
from heuristics.rules.rules import releases_of, rules
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen

_OVERLAP: Final = "overlap_moe_expert_parallel_comm"


@frozen
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
        if message is None:
            return "the log"
        return say("findings.line", number=message.line)


@fact
def tp_overlap_asked(case: Case) -> bool:
    """Whether overlap of TP is asked for."""
    on_overlap = case.files.written.value("comm_overlap.tp_comm_overlap")
    return on_overlap is True or (on_overlap is None and case.files.on("tp_comm_overlap") is True)


@fact
def overlap_left_off(case: Case) -> bool:
    """Off, or named nowhere in Megatron-Bridge's configuration; not where the model's field asks
    for it.
    """
    files = case.files
    if files.written.value(_OVERLAP) is True:
        return False
    return files.ep_overlap is False or (
        files.ep_overlap is None and files.written.framework == "megatron_bridge"
    )


@fact
def overlap_off_at(case: Case) -> str:
    """Where EP overlap is left off."""
    written = case.files.written
    for knob in (f"comm_overlap.{_OVERLAP}", _OVERLAP):
        if knob in written:
            return f"{knob} in {written.said(knob)}"
    return say("findings.overlap-unnamed")


@fact
def register_asserted(case: Case) -> bool:
    """Whether the release may assert that NCCL registers no buffers of graphs."""
    return rules()["graphs-graph-register"].in_force(releases_of(case.files)) is not False


@fact
def gemms_a_layer(case: Case) -> str:
    """GEMMs of experts in a layer."""
    count = case.run.observed.expert_gemms_per_layer
    if count is None:
        return ""
    return say("findings.gemms-a-layer", count=f"{count:.0f}")


@fact
def allocator_calls(run: Run) -> str | None:
    """Calls of the allocator a step, where they are more than now and then."""
    calls = run.observed.allocator_calls_per_step
    if calls is None or calls < ONCE.value:
        return None
    return f"{calls:.0f}"


@fact
def other_gpu(case: Case) -> str | None:
    """The trace's GPU against the one that is given, by family, where both are known and differ."""
    configured = case.run.given.gpu or case.files.word("launcher.gpu")
    own, other = gpu_family(case.run.observed.gpu or ""), gpu_family(configured or "")
    if own is None or other is None or own == other:
        return None
    return say("findings.other-gpu", seen=own, asked=other)


read(Case, "lines")
read(Case, "perturbation_frac")
