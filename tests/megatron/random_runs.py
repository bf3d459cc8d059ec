"""Whole, legal configurations and symptoms drawn at random, for plans that must stay legal.

A configuration is drawn knob by knob, and what a rule refuses is reset until no rule refuses anything, so
that no draw is thrown away. The same draws come from a seed and from hypothesis.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import lcm
from random import Random
from typing import Final

from hypothesis import strategies as st

from heuristics.config.about import Given
from heuristics.evidence.evidence import RunEvidence, with_fit
from heuristics.evidence.symptoms import Symptoms, observed_from, read_symptoms
from heuristics.judging.judgement import FilesRead, Judgement, run_of
from heuristics.plan.allowed import changed
from heuristics.plan.planned import Planned
from heuristics.plan.variants import upgraded
from heuristics.rules.check import check_rules
from heuristics.run.run import Run
from tests.configurations.constraints import DEFAULTS
from tests.megatron.random_knobs import LISTS, MODELS, POOL, RESET, SIZES, VERSIONS
from traces.account.pieces import CAUSES
from traces.names.kernels import COMM_KINDS
from traces.settings.derive import add_defaults, add_derived
from traces.settings.draft import Draft
from traces.settings.knobs import knobs, release
from traces.settings.settings import Framework, Settings, Value
from traces.training_log.log import Stage

GB: Final = 10**9
LATE: Final = ("slow_device", "slow_host", "slow_link", "routing_imbalance")
STAGES: Final[tuple[Stage, ...]] = ("setup", "forward", "backward", "optimizer")
_CAUSES: Final = tuple(cause for cause in CAUSES if cause != "host_comm")
"""Megatron moves data by NCCL's kernels and not by MPI's calls."""
_BUCKETS: Final = ("compute", "exposed_comm", "exposed_copy", "idle")
_OVERLAP: Final = "overlap_moe_expert_parallel_comm"
_SIZE_OF: Final = {
    "tp": "tensor_model_parallel_size",
    "pp_p2p": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
}


def random_symptoms(draw: Random, settings: Settings) -> Symptoms:
    """Symptoms of one rank or two; sometimes the log says that memory ran out."""
    ranks = [_rank(draw, number, settings) for number in range(draw.choice((1, 1, 2)))]
    found: dict[str, object] = {"ranks": ranks}
    if draw.random() < 0.2:
        wait = draw.choice((0.0, 0.1, 0.3))
        found["run"] = {"late": {"cause": draw.choice(LATE), "rank": 0, "wait_frac": wait}}
    if draw.random() < 0.1:
        found["log"] = {"out_of_memory": draw.choice(STAGES)}
    if draw.random() < 0.3:
        found["capture"] = {"ranks_seen": len(ranks), "world_size": 8}
    return read_symptoms(json.dumps(found), "symptoms.json")


def _rank(draw: Random, number: int, settings: Settings) -> dict[str, object]:
    budget = _shares(draw, _BUCKETS, 1.0)
    absent = 1.0 - budget["compute"]
    starved = draw.choice((0.0, 0.1, 0.5, 0.9)) * absent
    peak = draw.choice((None, 30, 60, 79))
    wrong = draw.random() < 0.05
    facts = Settings() if wrong else settings  # now and then the trace contradicts the configuration
    dense = "num_moe_experts" in facts and facts.value("num_moe_experts") is None
    grouped = facts.value("moe_grouped_gemm") is not False
    overlapped = any(facts.value(f"{section}{_OVERLAP}") for section in ("", "comm_overlap."))
    return {
        "rank": number,
        "budget_frac": budget,
        "exposed_comm_by_kind_frac": _shares(draw, _some(draw, _kinds(facts)), budget["exposed_comm"]),
        "hidden_comm_by_kind_frac": {"ep_a2a": 0.2 if overlapped or wrong else 0.0}
        if draw.random() < 0.3
        else None,
        "compute_by_class_frac": _shares(draw, _classes(facts), budget["compute"]),
        "absent_frac": {
            "launch_starved": _shares(draw, _some(draw, _CAUSES), starved),
            "launch_latency": draw.choice((None, 0.0, 0.02)) if starved < 0.9 * absent - 0.02 else None,
            "graph_opaque": draw.choice((None, 0.0)),
            "dependency_stalled": draw.choice((None, 0.0)),
        },
        "a2a": {
            "waiting_like_frac": draw.choice((None, 0.0, 0.01)),
            "payload_frac": draw.choice((None, 0.1)),
        },
        "sm": {
            "fill_frac": draw.choice((None, 0.3, 0.95)),
            "under_filled_frac": draw.choice((None, 0.0, 0.5 * budget["compute"])),
        },
        "memory": {
            "recompute_frac": draw.choice((0.0, 0.02, 0.2, 0.4)) * budget["compute"],
            "offload_exposed_frac": draw.choice((0.0, 0.0, 0.1)),
            "allocator_frac": draw.choice((0.0, 0.0, 0.1)),
            "allocator_retry_frac": draw.choice((None, 0.0, 0.0, 0.2)),
            "peak_bytes": None if peak is None else peak * GB,
            "capacity_bytes": 80 * GB,
        },
        "detected": {
            "dispatcher": "alltoall" if wrong else None,
            "graph_share_frac": draw.choice((None, None, 0.0, 0.8)) if wrong else None,
            "training_step": draw.choice((None, True)),
            "permute_fused": None if dense else draw.choice((None, True, False)),
        },
        "kernels": {
            "short_kernel_frac": draw.choice((None, 0.05, 0.6)),
            "expert_gemms_per_layer": None if dense else draw.choice((None, 6 if grouped else 64)),
            "router_kernels_per_layer": None if dense else draw.choice((None, 3, 20)),
        },
    }


def _kinds(facts: Settings) -> tuple[str, ...]:
    """Communication that such a configuration can have."""
    experts = facts.value("num_moe_experts") is not None or "num_moe_experts" not in facts
    without = {kind for kind in COMM_KINDS if kind.startswith("ep_") and not experts}
    without |= {kind for kind, knob in _SIZE_OF.items() if facts.value(knob) == 1}
    return tuple(kind for kind in COMM_KINDS if kind not in without)


def _classes(facts: Settings) -> tuple[str, ...]:
    if "num_moe_experts" in facts and facts.value("num_moe_experts") is None:
        return ("gemm", "attention", "norm", "elementwise")
    grouped = ("grouped_gemm",) if facts.value("moe_grouped_gemm") is not False else ()
    return ("gemm", "attention", "norm", "elementwise", "permute", "router", *grouped)


def _some(draw: Random, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(draw.sample(names, draw.randint(1, len(names))))


def _shares(draw: Random, names: tuple[str, ...], whole: float) -> dict[str, float]:
    """Parts of a whole, in which now and then one has nearly all."""
    weights = [draw.randint(0, 10) for _ in names]
    if draw.random() < 0.5:
        weights[draw.randrange(len(names))] += 60
    every = sum(weights) or 1
    return {name: whole * weight / every for name, weight in zip(names, weights, strict=True)}


FILE: Final = "drawn"
MOST_RESETS: Final = 200
MOST_RANKS: Final = 1024
IMPLIED_BY: Final = {"recompute_granularity": "moe_layer_recompute"}
"""Knobs that another one sets."""


@dataclass(frozen=True, slots=True)
class RandomRun:
    """What was observed of a run, what options and files say of it: as a diagnosis takes them."""

    evidence: RunEvidence = field(repr=False)
    given: Given
    configured: FilesRead

    @property
    def run(self) -> Run:
        """As opinions see it."""
        return run_of(self.evidence, self.given, self.configured)


def seeds() -> st.SearchStrategy[int]:
    """Seeds of runs; drawing one costs nothing, and it can be typed again."""
    return st.integers(0, 2**32)


def runs() -> st.SearchStrategy[RandomRun]:
    """Every draw of hypothesis, which prefers the first of all values, and leaves few where one fails."""
    return st.randoms(use_true_random=False).map(random_run)


def drawn_run(draw: Random, versions: tuple[tuple[str | None, str | None], ...] = VERSIONS) -> RandomRun:
    """One as it was drawn, of which rules may refuse much."""
    core, bridge = draw.choice(versions)
    framework: Framework = "megatron_bridge" if bridge else "megatron_lm"
    given = _given(draw, core, bridge)
    settings = _whole(_drawn(draw, framework, core), framework, core)
    evidence = with_fit(observed_from(random_symptoms(draw, settings), settings), given)
    return RandomRun(evidence, given, FilesRead(settings))


def random_run(draw: Random, versions: tuple[tuple[str | None, str | None], ...] = VERSIONS) -> RandomRun:
    """One run; `Random(seed)` gives the same one again. `versions`: of Megatron-Core and -Bridge."""
    core, bridge = draw.choice(versions)
    given = _given(draw, core, bridge)
    framework: Framework = "megatron_bridge" if bridge else "megatron_lm"
    said = _legal(_drawn(draw, framework, core), given, framework, core)
    settings = _whole(said, framework, core)
    symptoms = random_symptoms(draw, settings)
    evidence = with_fit(observed_from(symptoms, settings), given)
    return RandomRun(evidence, given, FilesRead(settings))


def planned_runs(judgement: Judgement) -> list[tuple[Planned, Run]]:
    """Every fix and lever of a plan, with the run after it and the steps that it stands on."""
    plan, found = judgement.plan, []
    run = upgraded(judgement.run, plan.releases)
    for planned in (*plan.fixes, *plan.levers):
        steps = [one.change.in_run(run) for one in plan.fixes if one.fix.id in planned.after]
        found.append((planned, changed(run, (*steps, planned.change.in_run(run)))))
    return found


def _given(draw: Random, core: str | None, bridge: str | None) -> Given:
    return Given(
        gpu=draw.choice(("A100", "H100", "H100", "H200", "B200", "GB200", "GB300", None)),
        stage=draw.choice(("tuned", "bring_up", None)),
        memory_tight=draw.choice((True, False, None, None)),
        flex_package=draw.choice((True, True, None, False)),
        core_version=core if bridge is None or draw.random() < 0.5 else None,
        bridge_version=bridge,
        torch_version=draw.choice(("2.9.0", "2.9.0", "2.11.0", "2.5.1", None)),
        te_version=draw.choice(("2.12.0", "2.9.0", "2.5.0", "2.1.0", "1.10.0", None)),
        packed_sequences=draw.choice((False, None)),
        guidance=draw.choice(("seed", "main-2026-08", "main-2026-08")),
    )


def _drawn(draw: Random, framework: Framework, core: str | None) -> dict[str, Value]:
    """Knobs that are not at their defaults, of those that the framework's release can say."""
    said = dict(draw.choice(MODELS)) | _layout(draw)
    for knob, values in POOL.items():
        said[knob] = draw.choice(values)
    for knob, names in LISTS.items():
        said[knob] = tuple(draw.sample(names, draw.choice((1, 1, 2, 3))))
    if said["recompute_granularity"] == "full":
        said |= {"recompute_method": "uniform", "recompute_num_layers": 1, "recompute_modules": None}
    if draw.random() < 0.5:
        said |= _in_bridges_sections(draw, said)
    said = _without_sequence_parallel(said)
    return {knob: value for knob, value in said.items() if _can_say(knob, framework, core)}


def _layout(draw: Random) -> dict[str, Value]:
    """Sizes of both meshes, and ranks that hold them."""
    sizes = {knob: draw.choice(values) for knob, values in SIZES.items()}
    tp, cp, pp, ep, etp = sizes.values()
    smallest = pp * lcm(tp * cp, ep * etp)
    world = smallest * (draw.choice((1, 1, 2, 4)) if smallest <= MOST_RANKS // 4 else 1)
    batch = world * draw.choice((1, 4, 8))  # whole micro-batches however the ranks are cut
    return {**sizes, "world_size": world, "train.micro_batch_size": 1, "train.global_batch_size": batch}


def _in_bridges_sections(draw: Random, said: Mapping[str, Value]) -> dict[str, Value]:
    """Overlaps said in comm_overlap, where Bridge reads them, and precision as a recipe."""
    overlaps = {
        f"comm_overlap.{name}": said.get(knob)
        for name, knob in (
            ("overlap_moe_expert_parallel_comm", "overlap_moe_expert_parallel_comm"),
            ("delay_wgrad_compute", "delay_wgrad_compute"),
            ("tp_comm_overlap", "tp_comm_overlap"),
            ("overlap_grad_reduce", "ddp.overlap_grad_reduce"),
            ("overlap_param_gather", "ddp.overlap_param_gather"),
        )
    }
    recipe = draw.choice(("bf16_mixed", "bf16_with_mxfp8_mixed", "bf16_with_fp8_current_scaling_mixed", None))
    return overlaps | ({"mixed_precision": recipe} if recipe else {})


@cache
def _can_say(knob: str, framework: Framework, core: str | None) -> bool:
    row, at = knobs()[knob], release(core)
    if at is not None and not row.is_known_in(at):
        return False
    if knob.startswith("env.") or knob == "world_size":
        return True
    return bool(row.bridge) if framework == "megatron_bridge" else bool(row.flag or row.off)


def _whole(said: Mapping[str, Value], framework: Framework, core: str | None) -> Settings:
    """With defaults and what follows, as a complete command line or a dumped configuration has them."""
    draft = Draft(FILE, framework)
    for knob, value in said.items():
        draft.put(knob, value, None)
    if framework == "megatron_lm":
        add_defaults(draft, release(core))
        add_derived(draft, is_complete=True)
        return draft.finished().settings
    for knob, value in _bridge_defaults(core).items():
        if knob not in draft.by_knob:
            draft.put(knob, value, None)
    if (draft.by_knob["pipeline_dtype"].value) is None:
        half = next((name for name in ("bf16", "fp16") if draft.by_knob[name].value), "fp32")
        draft.put("pipeline_dtype", half, None)
    return draft.finished().settings


@cache
def _bridge_defaults(core: str | None) -> dict[str, Value]:
    """A dump has every field of the model, at the class's defaults, of the wrapper and of the optimizer."""
    at = release(core)
    rows = [row for row in knobs().values() if row.id.startswith(("ddp.", "optimizer.", "checkpoint."))]
    found = {row.id: default[0] for row in rows if (default := row.default_in(at)) is not None}
    fields = {knob: value for knob, value in DEFAULTS.items() if knob in knobs()}
    known = {
        knob: value for knob, value in (fields | found).items() if _can_say(knob, "megatron_bridge", core)
    }
    return {**known, "cuda_graph_modules": (), "gradient_accumulation_fusion": True}


def _legal(said: dict[str, Value], given: Given, framework: Framework, core: str | None) -> dict[str, Value]:
    """The same with knobs reset until no rule refuses anything."""
    blank = _nothing_observed()
    for _ in range(MOST_RESETS):
        configured = FilesRead(_whole(said, framework, core))
        errors = [one for one in check_rules(run_of(blank, given, configured)) if one.level == "error"]
        if not errors:
            return said
        resets = {_culprit((*one.knobs, *one.set), said, framework, core) for one in errors}
        said = _without_sequence_parallel({**said, **{knob: RESET[knob] for knob in resets}})
    raise AssertionError(f"still refused: {errors[0].id}")


def _culprit(
    spoken: tuple[str, ...], said: Mapping[str, Value], framework: Framework, core: str | None
) -> str:
    """The first knob of a rule that can be reset and is not."""
    for knob in (*spoken, *(IMPLIED_BY[one] for one in spoken if one in IMPLIED_BY)):
        if knob in RESET and said.get(knob, ...) != RESET[knob] and _can_say(knob, framework, core):
            return knob
    raise AssertionError(f"nothing of {spoken} can be reset")


def _without_sequence_parallel(said: dict[str, Value]) -> dict[str, Value]:
    """Where there is no tensor parallelism."""
    return said | ({"sequence_parallel": False} if said["tensor_model_parallel_size"] == 1 else {})


@cache
def _nothing_observed() -> RunEvidence:
    return observed_from(Symptoms(), None)
