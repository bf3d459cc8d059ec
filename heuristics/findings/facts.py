"""What ran and what the log has, by the names that the table of findings asks for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from heuristics.comparison.difference.changed import ONCE
from heuristics.config.facts import ALLOCATOR, Fact, expandable_segments
from heuristics.config.features import FLEX
from heuristics.config.given import WHOLE
from heuristics.config.hardware import gpu_family
from heuristics.config.view import Config, Trust
from heuristics.guides.facts import ep_share
from heuristics.guides.memory_use import ran, too_large
from heuristics.guides.parallel import connections
from heuristics.incidents.facts import balance_off
from heuristics.rules.check import limits, past_limit
from heuristics.rules.condition import Language
from heuristics.rules.rules import releases_of, rules
from heuristics.run.run import Run
from heuristics.words import say
from heuristics.workflow.facts import OFFLOADS
from traces.limits import LITTLE, WALL, Limit
from traces.spelling import percent

DEFAULT_BACKEND: Final = "deepep"
"""Of `moe_flex_dispatcher_backend` in Megatron-Core 0.16 to main (transformer_config.py)."""
CAPTURES: Final = ("graph-captured", "graph-built", "graph-capture-begins")
"""Lines of a log that say graphs were captured."""
_TYPE: Final = "moe_token_dispatcher_type"
_BACKEND: Final = "moe_flex_dispatcher_backend"
_OVERLAP: Final = "overlap_moe_expert_parallel_comm"


@dataclass(frozen=True, slots=True)
class Case:
    """A run, and the ids of all lines that its log or its failures name.

    `perturbation_frac`: how much longer the profiled step is than the log's. `told`, `held`: facts and
    conditions that were asked before.
    """

    run: Run
    lines: frozenset[str] = field(default_factory=frozenset)
    perturbation_frac: float | None = None
    told: dict[str, object] = field(default_factory=dict, compare=False)
    held: dict[str, bool | None] = field(default_factory=dict, compare=False)

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


def _at(case: Case, knob: str) -> str:
    return f"{knob.removeprefix('env.')} in {case.files.where(knob)}"


def _first_at(case: Case, *knobs: str, on: bool = False) -> str | None:
    asked = case.files
    found = (knob for knob in knobs if (asked.on(knob) if on else asked.known(knob)))
    return next((_at(case, knob) for knob in found), None)


def _backend(case: Case) -> str | None:
    """A backend of flex, whether or not flex itself is asked for."""
    backend = case.run.config.word(_BACKEND)
    return backend if backend in FLEX else None


def chosen_backend(case: Case) -> str | None:
    """A backend that somebody chose: not the default as every whole configuration repeats it."""
    backend, written = _backend(case), case.files.written
    if backend != DEFAULT_BACKEND:
        return backend
    knobs = [one for one in written.by_knob.values() if one.said != "default"]
    return None if written.said(_BACKEND) == "default" or len(knobs) >= WHOLE.value else backend


def type_is_open(case: Case) -> bool:
    """A recipe of Megatron-Bridge that we do not see may set it."""
    return case.files.framework == "megatron_bridge" and not case.files.known(_TYPE)


def flex_of_nothing(case: Case) -> bool:
    """Flex with a backend of null: nothing is left that could dispatch."""
    said = case.files.written
    is_null = _BACKEND in said and said.value(_BACKEND) is None and not said.value("moe_enable_deepep")
    return said.value(_TYPE) == "flex" and is_null


def _skipped(case: Case) -> tuple[str, str] | tuple[None, None]:
    """A backend that Megatron-Bridge skips, replaces or refuses on its GPU, and what says so."""
    for line in ("flex-skipped", "deepep-gpu", "hybridep-gpu"):
        if line in case.lines:
            messages = case.run.log.messages if case.run.log else ()
            named = (one.said.get("backend", "").lower() for one in messages if one.id == line)
            backend = next((one for one in named if one in ("deepep", "hybridep")), None)
            return backend or _backend(case) or "the backend", say("findings.logged", line=case.line_of(line))
    run, backend = case.run, case.files.dispatcher or ""
    of_bridge = run.settings.framework == "megatron_bridge" or case.files.version_text("bridge") is not None
    if not of_bridge or run.observed.dispatcher == backend:
        return None, None
    past = (rule for rule in limits(backend) if rule.by == "megatron_bridge" and past_limit(rule, run.config))
    rule, family = next(past, None), run.config.gpu_family
    on = say("findings.on-gpu", family=family.name) if family else ""
    return (backend, f"{on}{rule.text}") if rule else (None, None)


def not_installed(case: Case) -> str | None:
    return next((one for one in FLEX if f"{one}-missing" in case.lines), None)


def type_now(case: Case) -> str:
    return say("findings.recipe-may-set-flex") if type_is_open(case) else case.files.word(_TYPE) or ""


def ran_beside(case: Case) -> str:
    seen = case.run.observed.dispatcher
    return "" if seen in ("unknown", "none") else say("findings.ran-beside", dispatcher=seen)


def other_dispatcher(case: Case) -> bool:
    """Another than is asked for; flex of an unknown backend is none of NCCL's own."""
    asked, seen = case.files.dispatcher, case.run.observed.dispatcher
    same = asked in (None, seen) or (asked == "flex" and seen in FLEX)
    return not same and seen not in ("unknown", "none")


def dispatcher_kernels(case: Case) -> str:
    seen = case.run.observed.dispatcher
    return "NCCL SendRecv" if seen == "alltoall" else say("findings.kernels-of", dispatcher=seen)


def padding_at(case: Case) -> str:
    padding = _first_at(case, "moe_router_padding_for_quantization", on=True)
    return padding or case.line_of("graphs-preprocess-padding")


def tp_overlap_asked(case: Case) -> bool:
    said = case.files.written.value("comm_overlap.tp_comm_overlap")
    return said is True or (said is None and case.files.on("tp_comm_overlap") is True)


def tp_overlap_off(case: Case) -> str:
    if "tp-overlap-off" in case.lines:
        return case.line_of("tp-overlap-off")
    return say("findings.tp-is-1" if case.run.config.tp == 1 else "findings.sequence-parallel-off")


def overlap_left_off(case: Case) -> bool:
    """Off, or named nowhere in Megatron-Bridge's configuration; not where the model's field asks for it."""
    asked = case.files
    if asked.written.value(_OVERLAP) is True:
        return False
    return asked.ep_overlap is False or (
        asked.ep_overlap is None and asked.written.framework == "megatron_bridge"
    )


def overlap_off_at(case: Case) -> str:
    said = case.files.written
    found = (knob for knob in (f"comm_overlap.{_OVERLAP}", _OVERLAP) if knob in said)
    return next((f"{knob} in {said.said(knob)}" for knob in found), say("findings.overlap-unnamed"))


def _captured(case: Case) -> str:
    return next((one for one in CAPTURES if one in case.lines), "")


def captured_at(case: Case) -> str:
    nothing = "graph-nothing-captured"
    line = _captured(case) or (nothing if nothing in case.lines else "")
    return f"; {case.line_of(line)}" if line else ""


def segments_grow(case: Case) -> bool | None:
    """Whether PyTorch's allocator is to grow its segments; None where its environment is not known."""
    return expandable_segments(case.files)


def each_expert_alone(case: Case) -> bool:
    """Each expert runs its own GEMM: as many a layer as a rank has experts."""
    shown, asked = case.run.observed, case.files
    per_layer = shown.expert_gemms_per_layer
    ep, experts = asked.positive("expert_model_parallel_size"), asked.positive("num_moe_experts")
    local = experts // ep if experts and ep else None
    if shown.grouped_gemm is not None or per_layer is None or local is None:
        return shown.grouped_gemm is False
    return per_layer >= local > 1


def gemms_a_layer(case: Case) -> str:
    count = case.run.observed.expert_gemms_per_layer
    return "" if count is None else say("findings.gemms-a-layer", count=f"{count:.0f}")


def may_recompute_moe(case: Case) -> bool:
    """Whether a setting asks for it, or leaves it to a default.

    Only this label: its router and its exchanges are told apart from everything else, while norms or
    activations that run again may belong to a wider module.
    """
    granularity = case.files.word("recompute_granularity")
    asked = case.files.names("recompute_modules")
    of_modules = granularity == "selective" and (asked is None or "moe" in asked)
    return granularity == "full" or of_modules


def collected(case: Case) -> str:
    interval = case.files.count("train.manual_gc_interval")
    return say("findings.collected", interval=interval) if interval else say("findings.collected-unknown")


def estimate_is_certain(case: Case) -> bool:
    found = too_large(case.run)
    return found is not None and found.is_certain


def _from(limit: Limit, value: float | None, spell: Callable[[float], str] = percent) -> str | None:
    """A figure in words where it reaches its limit."""
    return None if value is None or value < limit.value else spell(value)


def other_gpu(case: Case) -> str | None:
    """The trace's GPU against the one that is given, by family, where both are known and differ."""
    seen, asked = case.run.observed.gpu, case.run.given.gpu or case.files.word("launcher.gpu")
    families = [gpu_family(name) for name in (seen, asked) if name]
    if len(families) < 2 or None in families or families[0] == families[1]:
        return None
    return say("findings.other-gpu", seen=families[0], asked=families[1])


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


_RAN: Final[Mapping[str, str]] = {
    "ran_dispatcher": "dispatcher",
    "ran_ep_overlap": "ep_overlap",
    "ran_in_graphs": "graph_frac",
    "ran_precision": "precision",
    "ran_grouped_gemm": "grouped_gemm",
    "ran_permute_fused": "permute_fused",
    "ran_recompute": "recompute_modules",
    "ran_offload": "offload",
}
"""Fact -> the field of `Observed` that it is."""
_NAMED: Final = (
    *(chosen_backend, type_is_open, type_now, ran_beside, flex_of_nothing, not_installed, other_dispatcher),
    *(dispatcher_kernels, padding_at, tp_overlap_asked, tp_overlap_off, overlap_left_off, overlap_off_at),
    *(captured_at, segments_grow, each_expert_alone, gemms_a_layer, may_recompute_moe, collected),
    *(estimate_is_certain, other_gpu, unbalanced),
)
"""Facts by the names of what tells them."""
_FACTS: Final[Mapping[str, Callable[[Case], object]]] = {
    **{name: attrgetter(f"run.observed.{field}") for name, field in _RAN.items()},
    **{of.__name__: of for of in _NAMED},
    "lines": attrgetter("lines"),
    "dispatcher": attrgetter("files.dispatcher"),
    "type_at": lambda case: "" if type_is_open(case) else f", {_at(case, _TYPE)}",
    "skipped": lambda case: _skipped(case)[0],
    "skipped_by": lambda case: _skipped(case)[1],
    "not_installed_at": lambda case: case.line_of(f"{not_installed(case)}-missing"),
    "tp_overlap_idle": lambda case: (
        case.run.config.tp == 1 or case.run.config.on("sequence_parallel") is False
    ),
    "exchanges_show": lambda case: (ep_share(case.run) or 0.0) >= WALL.value,
    "exchanges": lambda case: percent(ep_share(case.run) or 0.0),
    "one_queue": lambda case: str(case.files.value("env.CUDA_DEVICE_MAX_CONNECTIONS")) == "1",
    "sharded": lambda case: any(map(case.files.on, ("ddp.use_megatron_fsdp", "use_torch_fsdp2"))),
    "before_blackwell": lambda case: case.run.config.before_blackwell(),
    "queues": lambda case: connections(case.run, ep_overlap=True),
    "captured_then": lambda case: say("findings.captured" if _captured(case) else "findings.not-captured"),
    "in_graphs": lambda case: percent(case.run.observed.graph_frac or 0.0),
    "register_asserted": lambda case: (
        rules()["graphs-graph-register"].in_force(releases_of(case.files)) is not False
    ),
    "segments_at": lambda case: _first_at(case, *(f"env.{name}" for name in ALLOCATOR)),
    "precision_at": lambda case: _first_at(case, "mixed_precision", "fp8", "fp4"),
    "nothing_recomputed": lambda case: (
        case.run.observed.recompute_modules == () and case.run.observed.recompute_full is False
    ),
    "offload_at": lambda case: _first_at(
        case, "fine_grained_activation_offloading", "cpu_offloading", on=True
    ),
    "offload_possible": lambda case: any(case.files.on(knob) is not False for knob in OFFLOADS),
    "allocator_calls": lambda case: _from(ONCE, case.run.observed.allocator_calls_per_step, "{:.0f}".format),
    "collection": lambda case: _from(LITTLE, (case.run.observed.absent_frac or {}).get("gc")),
    "unknown_error": lambda case: _unknown_error(case)[0],
    "unknown_error_at": lambda case: _unknown_error(case)[1],
    "has_run": lambda case: ran(case.run),
}
CASES: Final = Language({name: Fact(of) for name, of in _FACTS.items()}, "files")
"""Conditions and texts of findings: of a case, whose configuration is what files alone ask for."""
