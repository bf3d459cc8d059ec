"""What rows of incidents ask of a run: its configuration, its log, how its steps move, what it waits for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from heuristics.comparison.files.logs import drift_of_steps
from heuristics.config.facts import ALLOCATOR, Fact, expandable_segments
from heuristics.config.logic import any_of
from heuristics.config.view import Config
from heuristics.guides.facts import GUIDE_FACTS, ep_share, small_experts, waited_for_data
from heuristics.guides.memory_use import ran_out
from heuristics.rules.condition import Language
from heuristics.rules.failures import failures
from heuristics.run.run import Run
from traces.limits import QUARTER, WALL, Limit
from traces.settings.derive import DEFAULT
from traces.settings.knobs import EP, ETP, MICRO_BATCH, PP, STAGE_LAYOUT
from traces.settings.settings import OFF
from traces.spelling import percent
from traces.statistics.drift import Drift
from traces.training_log.iterations import steady_step

QUEUE_TOKENS: Final = Limit(
    21_844, "tokens", "Megatron-LM pull request 4094: 3 x tokens + 1 entries of a queue of at most 65,535"
)
_BALANCE: Final = "moe_router_load_balancing_type"
_LOSS: Final = "moe_aux_loss_coeff"
_DISPATCHER: Final = ("moe_token_dispatcher_type", "moe_flex_dispatcher_backend", "moe_enable_deepep")


@dataclass(frozen=True, slots=True)
class Case:
    """A run that is asked. `idle_frac`: the share of its windows in which nothing ran."""

    run: Run
    idle_frac: float | None = None
    told: dict[str, object] = field(default_factory=dict, compare=False)
    held: dict[str, bool | None] = field(default_factory=dict, compare=False)

    @property
    def lines(self) -> frozenset[str]:
        """Ids of all lines that its log has and we know."""
        return frozenset(one.id for one in self.run.log.messages) if self.run.log else frozenset()


def _drift(case: Case) -> Drift | None:
    steady = steady_step(case.run.log) if case.run.log else None
    return drift_of_steps(steady.used) if steady else None


def steps_grow(case: Case) -> bool | None:
    """Whether its steps get longer and longer, by the log; None where too few of them are logged."""
    found = _drift(case)
    if found is None:
        return None
    return found.state == "rising" and found.change >= WALL.value * found.first


def growth(case: Case) -> str | None:
    found = _drift(case)
    return percent(found.change / found.first) if found and found.first > 0 else None


def balance_off(config: Config) -> bool | None:
    """Whether no loss keeps the experts' load even: none is chosen, or its coefficient is nothing.

    Routing that is forced to balance, or by Sinkhorn, needs none. What nobody wrote, neither kind nor
    coefficient, is left open; with expert bias only a coefficient that somebody wrote counts.
    """
    kinds, loss = config.names(_BALANCE), config.value(_LOSS)
    if kinds is None or config.routing == "force_balance":
        return None if kinds is None else False
    if kinds == ("none",):
        return True
    if not config.known(_LOSS) or not any("aux_loss" in kind for kind in kinds):
        return None if any("aux_loss" in kind for kind in kinds) else False
    told = loss if isinstance(loss, tuple) else (loss,)
    unsaid = [knob for knob in (_BALANCE, _LOSS) if config.settings.said(knob) == DEFAULT]
    by_bias = config.on("moe_router_enable_expert_bias") and _LOSS in unsaid
    return None if by_bias or len(unsaid) == 2 else all(not one for one in told)


def _segments_on(case: Case) -> bool:
    """Known to be on: who says nothing of the allocator has it off."""
    return expandable_segments(case.run.config) is True


def _fragments(case: Case) -> bool:
    log = case.run.log
    if log is None:
        return False
    return failures()["memory-fragmented"].seen(log, case.run.config) is not None


def _ran_a_step(case: Case) -> bool | None:
    """Whether a step was logged before memory ran out; None where no error or no step is in the log."""
    log = case.run.log
    if log is None or not log.out_of_memory or not log.iterations:
        return None
    return log.iterations[0].line < log.out_of_memory[0].line


def _of_timeout(case: Case, name: str) -> str | None:
    """What the first timed-out collective's line says of it."""
    line = case.run.log.first("collective-timeout") if case.run.log else None
    return line.said.get(name) if line else None


def _mostly_idle(case: Case) -> bool | None:
    return None if case.idle_frac is None else case.idle_frac >= QUARTER.value


def _unexplained(case: Case) -> bool:
    """Nothing tells what the host does while the GPU is idle: neither launches nor another cause."""
    told = case.run.observed.absent_frac or {}
    return not any(told.values()) and case.run.observed.allocator_calls_per_step is None


def _ranks_of_experts(config: Config) -> int | None:
    ep, etp = config.ep, config.expert_tensor_size
    return None if ep is None else ep * (etp or 1)


def _beyond_domain(config: Config) -> bool | None:
    ranks, domain = _ranks_of_experts(config), config.nvlink_domain
    return None if ranks is None or domain is None else ranks > domain


def _rank_tokens(config: Config) -> int | None:
    """Tokens that a rank dispatches at once: of its micro-batch, less what TP with sequences and CP cut."""
    length, batch = config.positive("seq_length"), config.micro_batch
    tp, cp = config.tp or 1, config.cp or 1
    return None if length is None or batch is None else length * batch // (tp * cp)


def _pinned_cards(config: Config) -> bool | None:
    text = config.env("NVSHMEM_ENABLE_NIC_PE_MAPPING")
    return None if text is None else text.lower() not in OFF


def _plain_ends(config: Config) -> bool | None:
    """Stages of equal layers, while the first also embeds and the last also has the loss."""
    layout = config.pp_layout
    if layout:
        return False
    if config.on("account_for_embedding_in_pipeline_split") or config.on(
        "account_for_loss_in_pipeline_split"
    ):
        return False
    uneven = any_of(
        config.positive("num_layers_in_first_pipeline_stage") is not None,
        config.positive("num_layers_in_last_pipeline_stage") is not None,
    )
    return None if config.pp is None else not uneven and config.pp > 1


def _modules_unset(config: Config) -> bool:
    """No file names what is recomputed, or it names nothing in a form that the framework fills in."""
    return config.written.value("recompute_modules") is None


def _local_experts(config: Config) -> int | None:
    experts, ep = config.positive("num_moe_experts"), config.ep
    return None if experts is None or not ep or experts % ep else experts // ep


def _of_config(of: Callable[[Config], object], *knobs: str) -> Fact:
    return Fact(lambda case: of(case.run.config), knobs)


def _of_run(fact: Fact) -> Fact:
    return Fact(lambda case: fact.of(case.run), fact.knobs, fact.option)


_OWN: Final[Mapping[str, Fact]] = {
    # the log
    "lines": Fact(lambda case: case.lines),
    "ran_out": Fact(lambda case: ran_out(case.run)),
    "ran_out_in": Fact(
        lambda case: (
            frozenset(one.stage for one in case.run.log.out_of_memory) if case.run.log else frozenset()
        )
    ),
    "in_fragments": Fact(_fragments),
    "ran_a_step": Fact(_ran_a_step),
    "timed_out": Fact(lambda case: _of_timeout(case, "operation")),
    "timed_out_numel": Fact(
        lambda case: None if (count := _of_timeout(case, "numel_in")) is None else int(count)
    ),
    "steps_grow": Fact(steps_grow),
    "growth": Fact(growth),
    "waits_for_data": Fact(
        lambda case: None if (share := waited_for_data(case.run)) is None else share >= WALL.value
    ),
    "waited": Fact(lambda case: None if (share := waited_for_data(case.run)) is None else percent(share)),
    # shares of the step
    "mostly_idle": Fact(_mostly_idle),
    "idle": Fact(lambda case: None if case.idle_frac is None else percent(case.idle_frac)),
    "unexplained": Fact(_unexplained),
    "exchange_frac": Fact(lambda case: ep_share(case.run)),
    # the configuration
    "dispatcher_in_use": _of_config(lambda config: config.configured_or_seen_dispatcher, *_DISPATCHER),
    "balance_off": _of_config(balance_off, _BALANCE, _LOSS),
    "segments_on": Fact(_segments_on, tuple(f"env.{name}" for name in ALLOCATOR)),
    "beyond_domain": _of_config(_beyond_domain, EP, ETP),
    "expert_ranks": _of_config(_ranks_of_experts),
    "domain_size": _of_config(lambda config: config.nvlink_domain),
    "small_experts": _of_config(small_experts, "moe_ffn_hidden_size", "moe_router_topk"),
    "rank_tokens": _of_config(_rank_tokens, "seq_length", MICRO_BATCH),
    "queue_tokens": Fact(lambda case: int(QUEUE_TOKENS.value)),
    "pinned_cards": _of_config(_pinned_cards, "env.NVSHMEM_ENABLE_NIC_PE_MAPPING"),
    "plain_ends": _of_config(_plain_ends, PP, STAGE_LAYOUT),
    "right_domain": _of_config(lambda config: config.right_topology),
    "modules_unset": _of_config(_modules_unset, "recompute_modules"),
    "local_experts": _of_config(_local_experts, "num_moe_experts", EP),
    "program": Fact(lambda case: case.run.settings.framework),
}
INCIDENTS: Final = Language(
    {**{name: _of_run(one) for name, one in GUIDE_FACTS.items()}, **_OWN}, "run.config"
)
"""Conditions and texts of incidents."""


def known_value(case: Case, name: str) -> Any:
    """What a name of a condition is for a run; None where it is not known."""
    return INCIDENTS.named(name).of(case)
