"""Whether a configuration allows a fix, by small configurations and changes of one line."""

from __future__ import annotations

import pytest

from heuristics.config.about import Given
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.plan.allowed import Permits
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan
from heuristics.rules.rules import rules
from heuristics.run.run import Run
from tests.doubles.opinions import a_fix, catalogue_of, paying
from traces.settings.settings import Settings, Value, settings

OVERLAP: dict[str, Value] = {"overlap_moe_expert_parallel_comm": True}
DELAY: dict[str, Value] = {"delay_wgrad_compute": True}
GATHER: dict[str, Value] = {"ddp.overlap_param_gather": True}
REDUCE: dict[str, Value] = {"ddp.overlap_grad_reduce": True}
SHARDED: dict[str, Value] = {"ddp.use_distributed_optimizer": True}
FULL: dict[str, Value] = {
    "recompute_granularity": "full",
    "recompute_method": "uniform",
    "recompute_num_layers": 1,
}
GC: dict[str, Value] = {"train.manual_gc": True}
PLAIN: dict[str, Value] = {
    "bf16": True, "expert_model_parallel_size": 8, "pipeline_model_parallel_size": 1, "mtp_num_layers": None,
    "moe_token_dispatcher_type": "alltoall", "moe_shared_expert_overlap": False,
    "recompute_granularity": None, "overlap_moe_expert_parallel_comm": False, "delay_wgrad_compute": False,
    "ddp.overlap_grad_reduce": False, "ddp.use_distributed_optimizer": False, "ddp.use_megatron_fsdp": False,
}  # fmt: skip


def run_of(knobs: dict[str, Value] | None = None) -> Run:
    said = settings({**PLAIN, **(knobs or {})}, "run.sh", "megatron_lm")
    plain = paying("communication", {"all": 100})
    return Run(
        plain.observed,
        Given(core_version="0.16.1"),
        plain.cost_by_kind_ns,
        1000,
        plain.total_ns,
        settings=said,
    )


def fix(number: str, values: dict[str, Value]) -> Fix:
    return a_fix(number, "communication", change=lambda run: Change(values))


def plan_of(run: Run, **changes: dict[str, Value]) -> Plan:
    """A plan of fixes in the order of the wall; by id with _ for -."""
    made = [fix(number.replace("_", "-"), one) for number, one in changes.items()]
    return make_plan(run, ["communication"], catalogue_of(*made))


STAGES: dict[str, Value] = {"num_layers": 18, "pipeline_model_parallel_size": 4, **DELAY}


@pytest.mark.parametrize(
    ("run", "change", "before", "allowed"),
    [  # what it stands on, the first rule that it breaks, and beside which
        (run_of(), OVERLAP, {"COM-2": GC}, ((), "", "")),
        (run_of(), DELAY, {}, ((), "delayed-wgrad-overlap", "")),
        (run_of(), DELAY, {"COM-2": GC}, ((), "delayed-wgrad-overlap", "")),
        (run_of(), DELAY, {"COM-2": GC, "COM-1": OVERLAP}, (("COM-1",), "", "")),
        (run_of(), GATHER, {"COM-2": REDUCE, "COM-1": SHARDED}, (("COM-2", "COM-1"), "", "")),
        (run_of(), FULL, {"COM-2": GC, "COM-1": OVERLAP}, ((), "ep-overlap-full-recompute", "COM-1")),
        (run_of(knobs=STAGES), GC, {}, ((), "", "")),
        (run_of(knobs=STAGES), DELAY, {}, ((), "", "")),
        (run_of(), {"moe_router_force_load_balancing": True}, {}, ((), "", "")),  # a warning
        (Run(), DELAY, {}, ((), "", "")),
    ],
)
def test_a_change_is_allowed_alone_behind_steps_or_not_beside_one(
    run: Run,
    change: dict[str, Value],
    before: dict[str, dict[str, Value]],
    allowed: tuple[tuple[str, ...], str, str],
) -> None:
    found = Permits(run).judge(change, before)
    assert (found.after, next((one.id for one in found.broken), ""), found.beside) == allowed


def test_a_change_that_breaks_a_rule_is_refused_with_the_rules_text_and_source() -> None:
    rule = rules()["delayed-wgrad-overlap"]
    (one,) = plan_of(run_of(), COM_9=DELAY).refused
    assert one.because == f"needs: {rule.text}"
    assert (one.unlocked_by, one.source) == (rule.fix, rule.source)


def test_a_change_is_made_in_the_runs_own_framework_with_its_environment() -> None:
    change = Change(
        {"env.NCCL_NVLS_ENABLE": "0"}, {"train.manual_gc": True}, {"train.manual_gc_interval": 10}
    )
    assert change.of("megatron_lm", Settings()) == {"train.manual_gc": True, "env.NCCL_NVLS_ENABLE": "0"}
    assert change.of("megatron_bridge", Settings()) == {
        "train.manual_gc_interval": 10,
        "env.NCCL_NVLS_ENABLE": "0",
    }
    assert change.of(None, Settings()) == change.of("megatron_lm", Settings())


def test_a_flag_sets_all_its_knobs_and_a_value_to_fill_in_none() -> None:
    tracked = Change({"use_te_rng_tracker": True, "expert_model_parallel_size": "N"})
    assert tracked.of("megatron_lm", Settings()) == {"use_te_rng_tracker": True, "rng.te_rng_tracker": True}
    assert tracked.is_open
