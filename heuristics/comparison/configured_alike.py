"""What is configured of both runs: does a step do the same work, on the same stack?

Only what both sides tell can differ: unknown on one side is no difference. A pipeline layout is one where the
other configuration has none: its layers are then spread evenly.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from heuristics.comparison.difference.changed import Value, given_of, settings_of, trace_facts
from heuristics.config.about import OPTIONS
from heuristics.result.compared import Difference, State
from heuristics.result.result import Result
from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import percent

Configured = Mapping[str, Value]
"""By field of `Given` and by knob."""

GRAPHS_MOVED: Final = Limit(
    0.05, "of kernel work in CUDA graphs", "ours: a scope more or less moves more, 0.36 in a simulated run"
)

_REVIEW: Final = "Megatron-Bridge, skills/review-pr/SKILL.md (same model, parallelism, sequence, batch shape)"
_STACK: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-moe-dispatcher-selection/SKILL.md, pitfall 1"
_ROUTING: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-moe-dispatcher-selection/SKILL.md, pitfall 4"
_TOKENS: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-moe-vlm-training/SKILL.md, pitfall 3"
_MFU: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-moe-hardware-configs/SKILL.md, pitfall 4"

_FORCED_WORDS: Final = ("not forced", "forced")
_ROUTING_MODE: Final = "routing mode"
_FORCE: Final = "moe_router_force_load_balancing"

_OTHER_WORK: Final = "A step does another amount of work. Compare tokens per second per GPU instead."
_OTHER_MODEL: Final = "It is another model: its step does other work."
_FORCED: Final = (
    "One side forces the router to give every expert the same load. That is a setting for benchmarks: no "
    "trained router does it, and in large runs it usually outperforms dropless routing. So neither run is a "
    "baseline for the other. Force it on both sides or on none."
)
_OTHER_SHARE: Final = "A rank does another share of the step. The step is the same work; single rows are not."
_UNTOLD_SHARE: Final = (
    "A rank does another share of the step, and it is not known whether the step is the same work. "
    "Give both configurations, with world size and global batch size."
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing to be alike. `fields`: of `OPTIONS`; where none is known of both, their knobs and `knobs` are
    asked.

    `settled_by`: things that, if they are known to be the same, make it `with_differences`, for `settled`.
    `observed`: what a trace shows of it, by its name in `trace_facts`. `stack`: a difference moves results as
    much as a dispatcher does; `cuts`: it cuts the same step another way; `alone`: one configuration may have
    it and the other not; `by_option`: other rules ask its knobs.
    """

    what: str
    fields: tuple[str, ...]
    knobs: tuple[str, ...]
    state: State
    because: str
    source: str
    settled_by: tuple[str, ...] = ()
    settled: str = ""
    observed: str = ""
    stack: bool = False
    cuts: bool = False
    alone: bool = False
    by_option: bool = False

    @property
    def asked(self) -> tuple[str, ...]:
        """All knobs that tell it."""
        options = () if self.by_option else [OPTIONS[field] for field in self.fields]
        return (*(knob for one in options for knob in one.knobs[: 1 if one.is_knob else None]), *self.knobs)


def _parallel(what: str, field: str, stack: bool = False) -> Rule:
    same = ("world size", "global batch size")
    return Rule(what, (field,), (), "no", _UNTOLD_SHARE, _REVIEW, same, _OTHER_SHARE, stack=stack, cuts=True)


RULES: Final = (
    Rule("world size", ("world_size",), (), "no", _OTHER_WORK, _TOKENS),
    _parallel("tensor-parallel size", "tp"),
    _parallel("context-parallel size", "cp"),
    _parallel("pipeline-parallel size", "pp", stack=True),
    _parallel("expert-parallel size", "ep"),
    _parallel("expert-tensor-parallel size", "etp"),
    Rule(
        "virtual pipeline stages", ("vpp",), (), "with_differences",
        "The pipeline has another schedule. No verdict on the dispatcher across pipeline layouts.", _STACK,
        stack=True, cuts=True,
    ),
    Rule(
        "pipeline layout", ("pp_layout",),
        ("num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"),
        "with_differences",
        "A rank holds other layers. No verdict on the dispatcher across pipeline layouts.", _STACK,
        stack=True, cuts=True, alone=True,
    ),
    Rule("model family", ("family",), (), "no", _OTHER_MODEL, _REVIEW, by_option=True),
    Rule(
        "model", (),
        (
            "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_moe_experts",
            "moe_router_topk", "moe_ffn_hidden_size", "moe_layer_freq", "mtp_num_layers",
        ),
        "no", _OTHER_MODEL, _REVIEW,
    ),
    Rule("sequence length", (), ("seq_length",), "no", _OTHER_WORK, _TOKENS),
    Rule("global batch size", (), ("train.global_batch_size",), "no", _OTHER_WORK, _TOKENS),
    Rule(
        "micro batch size", (), ("train.micro_batch_size",), "no",
        "It is not known whether a step holds as many tokens. Give both global batch sizes.",
        _TOKENS, ("global batch size",), "The same tokens in larger or smaller kernels: their counts differ.",
        cuts=True,
    ),
    Rule(
        "precision", ("precision",), (), "with_differences",
        "Kernels of matrix work are others. Compare time, not MFU: its peak differs.", _MFU,
        observed="detected.precision",
    ),
    Rule(
        _ROUTING_MODE, ("routing",), (), "with_differences",
        "Experts get other loads. No verdict on the dispatcher across routing modes.", _ROUTING, stack=True,
    ),
    Rule(
        "CUDA graph scope", ("graph_impl", "graph_modules"),
        ("enable_cuda_graph", "external_cuda_graph"), "with_differences",
        "Other work runs in graphs. No verdict on the dispatcher across graph scopes.", _STACK,
        observed="detected.graph_share_frac", stack=True,
    ),
    Rule(
        "container", ("container",), (), "with_differences",
        "Libraries may differ beyond those listed. No verdict on the dispatcher across containers.", _STACK,
        stack=True,
    ),
)  # fmt: skip

SHARES: Final = frozenset(rule.what for rule in RULES if rule.cuts)
"""Differences that cut the same step another way: kernels of a rank differ in number and size."""
STACK: Final = frozenset(rule.what for rule in RULES if rule.stack)
"""Differences across which nothing is concluded about a dispatcher."""


def configured_differences(
    base: Result, new: Result, base_rank: Rank, new_rank: Rank
) -> Iterator[Difference]:
    """What both configure, and otherwise; where they do not, what their traces show to differ."""
    sides = _configured(base), _configured(new)
    alike = {rule.what: _alike(rule, *sides) for rule in RULES}
    forced = _forced(base), _forced(new)
    for rule in RULES:
        values = (
            _differ(rule, *sides) or _observed(rule, base_rank, new_rank) or _alone(rule, base, new, sides)
        )
        if rule.what == _ROUTING_MODE and None not in forced and forced[0] != forced[1]:
            modes = values or (_FORCED_WORDS[forced[0] is True], _FORCED_WORDS[forced[1] is True])
            yield Difference(rule.what, *modes, "no", _FORCED, rule.source)
        elif values:
            settled = bool(rule.settled_by) and all(alike[what] for what in rule.settled_by)
            state = "with_differences" if settled else rule.state
            yield Difference(
                rule.what, *values, state, rule.settled if settled else rule.because, rule.source
            )


def _forced(result: Result) -> bool | None:
    """Whether experts get even loads by force; None where it is unknown. A script that is silent does not."""
    found = _configured(result)
    if found.get("routing") is not None:
        return found["routing"] == "force_balance"
    if _FORCE in found:
        return bool(found[_FORCE])
    script = known(result.configuration)
    is_silent = script and script.framework == "megatron_lm" and _FORCE not in settings_of(result).withheld
    return False if is_silent else None


def _differ(rule: Rule, base: Configured, new: Configured) -> tuple[str, str] | None:
    """What each side has where both have it and it differs; by name where a rule has several names."""
    keys = [key for key in _common_keys(rule, base, new) if base[key] != new[key]]
    if not keys:
        return None
    several = len(rule.fields) > 1 or (keys[0] in rule.asked and len(rule.asked) > 1)
    texts = [
        ", ".join(f"{key} {_text(one[key])}" if several else _text(one[key]) for key in keys)
        for one in (base, new)
    ]
    return texts[0], texts[1]


def _alone(
    rule: Rule, base: Result, new: Result, sides: tuple[Configured, Configured]
) -> tuple[str, str] | None:
    """What one side sets where both have a configuration and the other's leaves it out or empty."""
    if not rule.alone or known(base.configuration) is None or known(new.configuration) is None:
        return None
    keys = (*rule.fields, *rule.asked)
    if any(key in settings_of(side).withheld for side in (base, new) for key in keys):
        return None
    values = [next((one[key] for key in keys if one.get(key) is not None), None) for one in sides]
    return (_text(values[0]), _text(values[1])) if (values[0] is None) != (values[1] is None) else None


def _alike(rule: Rule, base: Configured, new: Configured) -> bool:
    """Whether both have the same."""
    keys = _common_keys(rule, base, new)
    return bool(keys) and all(base[key] == new[key] for key in keys)


def _common_keys(rule: Rule, base: Configured, new: Configured) -> list[str]:
    """What both sides say: fields, or knobs where they share no field."""
    fields = [key for key in rule.fields if key in base and key in new]
    return fields or [knob for knob in rule.asked if knob in base and knob in new]


def _observed(rule: Rule, base: Rank, new: Rank) -> tuple[str, str] | None:
    """What the traces show where both do and it is not the same, shares by more than `GRAPHS_MOVED`."""
    one, other = trace_facts(base).get(rule.observed), trace_facts(new).get(rule.observed)
    if not one or not other or not one.differs(other):
        return None
    if isinstance(one.value, float | int) and isinstance(other.value, float | int):
        moved = abs(one.value - other.value) > GRAPHS_MOVED.value
        return (
            (f"{percent(one.value)} of kernel work", f"{percent(other.value)} of kernel work")
            if moved
            else None
        )
    return _text(one.value), _text(other.value)


def _configured(result: Result) -> Configured:
    """What files and options set. What a trace shows is compared as it was observed."""
    log, settings = known(result.log), settings_of(result)
    container = log.versions.get("container") if log else None
    return {
        **{knob: value for knob, value in settings.values.items() if settings.sources[knob] != "trace"},
        **({"container": container} if container else {}),
        **given_of(result),
    }


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        return " ".join(str(one) for one in value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)
