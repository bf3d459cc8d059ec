"""The whole catalogue at once: what every fix has, and what holds between fixes."""

from __future__ import annotations

import re

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.fixes.fix import Fix
from heuristics.result.judged import Knobs
from heuristics.run.run import Run
from tests.doubles.fixes import complete
from traces.sections.tables import WallId

LISTED = {
    "memory": ("MEM-2", "MEM-4", "MEM-6", "MEM-8"),
    "communication": ("COM-2", "COM-1", "COM-4", "COM-5", "COM-6"),
    "host_overhead": ("HST-3", "HST-2", "HST-5", "HST-1"),
    "compute": ("CMP-1", "CMP-2", "CMP-3", "CMP-5"),
}
"""Profile table of NVIDIA's MoE optimization workflow, by wall."""
BEFORE_THE_LIST_ENDS = {"MEM-1", "MEM-18"}
"""At no cost, so tried before the sizes of a run are changed."""
RUNS = {
    "alltoall": complete(),
    "one rank a layer": complete({"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1}),
    "uneven layers": complete({"num_layers": 61, "mtp_num_layers": 1}),
    "virtual stages": complete({"virtual_pipeline_model_parallel_size": 4}),
    "hybridep": complete(
        {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}, gpu="GB200"
    ),
    "context": complete({"context_parallel_size": 4, "cp_comm_type": "p2p"}),
    "optimizer on the host": complete({"optimizer.optimizer_cpu_offload": True}),
    "older": complete(core_version="0.14.0"),
    "tuned": complete(stage="tuned", precision="bf16", memory_tight=True),
}
EVERY = pytest.mark.parametrize("fix", CATALOGUE.values(), ids=lambda fix: fix.id)


def flags(knobs: Knobs) -> dict[str, str]:
    """Knob -> value of Megatron-LM's flags, on where there is none."""
    told = [line[2:].partition(" ") for line in knobs.megatron_lm if line.startswith("--")]
    return {name.replace("-", "_"): value.strip('"') or "true" for name, _, value in told}


def overrides(knobs: Knobs) -> dict[str, str]:
    """Knob without its group -> value of Megatron-Bridge's overrides, lists as flags have them."""
    told = [line.partition("=") for line in knobs.megatron_bridge]
    return {name.split(".")[-1]: value.strip('[]"').replace(",", " ") for name, _, value in told}


PROSE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")


@pytest.mark.parametrize("training", [True, False, None])
@EVERY
def test_no_line_of_code_is_prose(fix: Fix, training: bool | None) -> None:
    """What stands behind a `#` is a comment of Python, which can be copied with its line."""
    if fix.pytorch is None:
        return
    run = Run(Observed(training=training, pageable_input=True, capability=(7, 0)))
    change = fix.pytorch.change(run)
    for line in (*change.pytorch, *change.launch):
        assert not PROSE.search(line.partition("#")[0]), line
        assert not line.endswith("."), line
    assert all(one.endswith(".") and one[0].isupper() for one in change.how)
    assert change.pytorch or change.launch or change.how


@EVERY
def test_both_spellings_say_the_same_value_of_a_knob_they_share(fix: Fix) -> None:
    for name, run in RUNS.items():
        knobs = fix.knobs(run)
        mine, its = flags(knobs), overrides(knobs)
        shared = mine.keys() & its.keys()
        assert {knob: its[knob] for knob in shared} == {knob: mine[knob] for knob in shared}, name


@pytest.mark.parametrize("wall", WALL_ORDER)
def test_what_nvidias_table_names_comes_first_in_its_order(wall: WallId) -> None:
    order = [number for number in WALL_ORDER[wall] if number not in BEFORE_THE_LIST_ENDS]
    assert tuple(order[: len(LISTED[wall])]) == LISTED[wall]
