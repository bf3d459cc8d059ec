"""Symptoms in, walls out: the same limits as from a trace, and what is not said is never clear."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from heuristics.evidence.evidence import RunEvidence
from heuristics.evidence.symptoms import Symptoms, observed_from, read_symptoms
from heuristics.evidence.symptoms.given_rank import NOTHING, WINDOW_NS
from heuristics.result.judged import Verdict, Wall
from heuristics.run.run import WALL_IDS
from tests.doubles.opinions import wall as judged_wall
from tests.doubles.result import double
from traces.missing import known
from traces.sections.tables import WallId
from traces.settings.settings import settings

Said = Mapping[str, Any]
Priced = tuple[str, float | None, Mapping[str, float] | None, float | None]
"""Outcome, cost, cost by kind and the most that it may be, in per cent of a window."""


def observed(*parts: Said, **said: Any) -> RunEvidence:
    """By a file of all these parts, and the `knobs` of a configuration."""
    whole: dict[str, Any] = dict(said)
    for part in parts:
        for key, one in part.items():
            whole[key] = {**whole.get(key, {}), **one} if isinstance(one, dict) else one
    configured = settings(whole.pop("knobs"), "config.yaml") if "knobs" in whole else None
    return observed_from(read_symptoms(json.dumps(whole), "symptoms.json"), configured)


def wall(number: WallId, *parts: Said, **said: Any) -> Wall:
    return next(one for one in observed(*parts, **said).walls if one.id == number)


def priced(number: WallId, *parts: Said, **said: Any) -> Priced:
    one = wall(number, *parts, **said)
    kinds, fracs = known(one.cost_by_kind_ns), (known(one.cost_frac), known(one.at_most_frac))
    cost, most = (None if frac is None else round(100 * frac, 1) for frac in fracs)
    by_kind = None if kinds is None else {kind: round(ns * 100 / WINDOW_NS, 1) for kind, ns in kinds.items()}
    return one.outcome, cost, by_kind, most


def at(*place: str) -> Callable[..., Said]:
    """What makes a part of a file of figures in per cent."""

    def made(**percent: float) -> Said:
        said: Said = {key: one / 100 for key, one in percent.items()}
        for key in reversed(place):
            said = {key: said}
        return said

    return made


budget, exposed, classes = at("budget_frac"), at("exposed_comm_by_kind_frac"), at("compute_by_class_frac")
absent, blocking, starved = (
    at("absent_frac"),
    at("absent_frac", "blocking"),
    at("absent_frac", "launch_starved"),
)


def finding(**kinds: float) -> Priced:
    return "finding", sum(kinds.values()), kinds, None


def clear(**kinds: float) -> Priced:
    return "clear", sum(kinds.values()), kinds, None


def unmeasurable(most: float | None = None) -> Priced:
    return "unmeasurable", None, None, most


EP, WHOLE = exposed(ep_dispatch=10, ep_combine=20), budget(compute=70, exposed_comm=20, idle=10)
A2A = {"a2a": {"exposed_frac": 0.15, "payload_frac": 0.3, "hidden_frac": 0.1}}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([EP], finding(ep_dispatch=10, ep_combine=20)),
        ([exposed(tp=10)], finding(tp=10)),
        ([exposed(tp=9.9)], clear(tp=9.9)),
        # at most what blocks, of each kind as large a part; what blocks while the GPU idles as well
        ([EP, blocking(ep_combine=6)], clear(ep_dispatch=2, ep_combine=4)),
        ([exposed(), blocking(pp_p2p=25)], finding(pp_p2p=25)),
        ([exposed(tp=12), absent(blocking=30)], finding(tp=12)),
        # what has no kind may be any
        ([WHOLE], finding(sendrecv_unresolved=20)),
        ([WHOLE, A2A], finding(ep_a2a=15, sendrecv_unresolved=5)),
        ([WHOLE, blocking(tp=16)], finding(tp=12.8, sendrecv_unresolved=3.2)),
        # waits that nothing explains keep it from being clear
        (
            [exposed(dp_all_gather=6), blocking(dp_all_gather=6), absent(dependency_stalled=5)],
            unmeasurable(11),
        ),
        ([budget(compute=60)], unmeasurable(40)),
        ([budget(compute=95)], ("clear", 5, {}, 5)),
        # ranks count alike, and the emptiest bounds what none tells
        ([{"ranks": [exposed(cp=30), exposed(cp=10)]}], ("finding", 20, {"cp": 40}, None)),
        ([{"ranks": [budget(compute=one) for one in (90, 60, 80)]}], unmeasurable(40)),
        ([{"ranks": [budget(compute=60), {}]}], unmeasurable()),
    ],
)
def test_communication_costs_what_is_exposed_and_blocks(said: list[Said], expected: Priced) -> None:
    assert priced("communication", *said) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([starved(launch=10)], finding(launch=10)),
        ([starved(gc=6), absent(launch_latency=5)], finding(gc=6, arrival=5)),
        (
            [starved(gc=6), at("absent_frac", "launch_latency")(arrival=5, kernel_gap=20)],
            finding(gc=6, arrival=5),
        ),
        # the allocator is memory's, and the profiler nobody's
        ([starved(launch=2, allocator=12, profiler=30)], clear(launch=2)),
        ([absent(launch_starved=20)], ("finding", 20, {}, None)),
        ([starved(launch=2), absent(graph_opaque=20)], unmeasurable(22)),
    ],
)
def test_the_host_costs_what_waits_for_a_launch(said: list[Said], expected: Priced) -> None:
    assert priced("host_overhead", *said) == expected


BESIDE = "(idle 5.0 %, beside communication {})"


@pytest.mark.parametrize(("said", "most", "words"), [
    ([budget(compute=60, exposed_comm=35, idle=5)], 40, BESIDE.format("35 %")),
    ([budget(compute=60, exposed_comm=35), blocking(ep_a2a=30)], 10, ""),
    ([budget(compute=60), blocking(ep_a2a=20), absent(dependency_stalled=5)], 15, ""),
    ([budget(compute=60, idle=39.95)], 40, ""), ([budget(compute=60), blocking(ep_a2a=40.2)], 0, ""),
    ([budget(idle=40)], None, ""),
    ([{"ranks": [budget(compute=one, idle=5) for one in (90, 70, 80)]}], 30, BESIDE.format("25 %")),
])  # fmt: skip
def test_a_late_host_costs_at_most_time_without_compute_that_has_no_other_reason(
    said: list[Said], most: float | None, words: str
) -> None:
    host = wall("host_overhead", *said)
    assert priced("host_overhead", *said)[3] == most
    assert ("beside communication" in "".join(host.missing)) is bool(words)
    assert words in "".join(host.missing)


def again(percent: float, *modules: str) -> Said:
    more = {"recompute_modules": list(modules)} if modules else {}
    return {"memory": {"recompute_frac": percent / 100, **more}}


FULL, OFF = ({"knobs": {"recompute_granularity": one}} for one in ("full", None))
SEEN_FULL, GEMM_AGAIN = {"detected": {"recompute": "full"}}, {"gemm": 100, "ep_dispatch": 200}
IN_NS = {"budget_ns": {"window": 1_000}, "memory": {"recompute_ns": 300, "recompute_modules": GEMM_AGAIN}}
memory = at("memory")


def without(part: str) -> Said:
    return {"memory": {part: None}}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([again(12)], finding(recompute=12)),
        ([again(1)], clear(recompute=1)),
        ([memory(recompute_frac=1, host_resident_exposed_frac=5, offload_exposed_frac=4)],
         finding(recompute=1, offload=4, host_resident=5)),
        ([again(0), {"memory": {"offload_exposed_frac": None, "offload_copies": 0}}], clear()),
        # all of MoE again sends its all-to-all of 30 % a third more often, an activation does not
        *(([again(12, "moe")], finding(recompute=22)), ([again(12, "moe_act")], finding(recompute=12))),
        *(([again(0, "moe")], clear()), ([again(12), SEEN_FULL], finding(recompute=22))),
        ([IN_NS, SEEN_FULL], finding(recompute=30)),
        # the configuration tells what the symptoms do not
        *(([again(12), FULL], finding(recompute=22)), ([again(12), OFF], finding(recompute=12))),
        *(([again(12, "moe_act"), FULL], finding(recompute=12)), ([OFF], clear())),
        ([SEEN_FULL, OFF], unmeasurable()),
        # a part of which nothing is said may fill what nothing else does
        ([again(2), without("allocator_frac"), budget(compute=60), absent(launch_latency=5)],
         unmeasurable(42)),
        ([again(2), without("offload_exposed_frac"), budget(compute=60), starved(gc=5)], unmeasurable(37)),
        ([again(2), without("allocator_frac"), starved(allocator=10)], finding(recompute=2, allocator=10)),
    ],
)  # fmt: skip
def test_memory_costs_what_runs_again_and_what_is_moved_or_allocated(
    said: list[Said], expected: Priced
) -> None:
    whole = memory(offload_exposed_frac=0, allocator_frac=0)
    assert priced("memory", EP, whole, *said) == expected


def sm(**said: float) -> Said:
    return {"sm": said}


def kernels(**said: float) -> Said:
    return {"kernels": said}


ROUTED, UNFUSED = classes(gemm=50, permute=12, router=8), {"detected": {"permute_fused": False}}
OFF_THERE = {"knobs": {"moe_permute_fusion": False}}
FUSED = {"detected": {"permute_fused": True}}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([sm(fill_frac=0.5)], finding(gemm=40)),
        ([sm(fill_frac=0.8)], clear()),
        ([sm(fill_frac=0.75)], finding(gemm=20)),
        ([sm(under_filled_frac=0.2, fill_frac=0.5)], finding(gemm=10)),
        ([sm(under_filled_frac=0.2)], finding(gemm=20)),
        # by class, of grouped GEMMs nothing
        ([sm(fill_frac=0.5), classes(gemm=10, norm=30, grouped_gemm=40)], finding(gemm=10, norm=30)),
        # more than six GEMMs of a layer run expert by expert: all of them could be lost
        ([kernels(expert_gemms_per_layer=7), classes(gemm=60, attention=20)], finding(gemm=60)),
        ([kernels(expert_gemms_per_layer=6), classes(gemm=60, attention=20)], unmeasurable()),
        # routing and permutation that are not fused, from a tenth of the windows
        ([kernels(router_kernels_per_layer=32), UNFUSED, ROUTED], finding(permute=12, router=8)),
        ([kernels(router_kernels_per_layer=31), FUSED, ROUTED], unmeasurable()),
        ([kernels(router_kernels_per_layer=32), ROUTED], unmeasurable()),
        ([kernels(router_kernels_per_layer=32), classes(router=10)], finding(router=10)),
        # the more of both: as large a part of 40 % as of 70 % of compute, or all that is not fused
        (
            [sm(fill_frac=0.5), UNFUSED, ROUTED],
            ("finding", 45.1, {"gemm": 28.6, "permute": 12, "router": 4.6}, None),
        ),
        ([classes(permute=20), OFF_THERE], finding(permute=20)),
        ([classes(permute=20), FUSED, OFF_THERE], unmeasurable()),
    ],
)
def test_compute_costs_what_empty_sms_and_kernels_that_are_not_fused_lose(
    said: list[Said], expected: Priced
) -> None:
    assert priced("compute", budget(compute=80, idle=20), *said) == expected


def test_what_is_not_said_is_unmeasurable_and_says_how_to_say_it() -> None:
    for seen in (observed(detected={"dispatcher": "alltoall"}), observed_from(Symptoms())):
        assert {one.outcome for one in seen.walls} == {"unmeasurable"}
        assert all(one.missing and "give " in one.cure for one in seen.walls)
        assert seen.verdict.wall is None
    assert (seen.window_ns, observed(detected={"dispatcher": "alltoall"}).window_ns) == (0, WINDOW_NS)


@pytest.mark.parametrize(("calls", "retries"), [(14, True), (2, True), (0.1, False)])
def test_memory_given_back_and_taken_again_comes_before_a_larger_wall(calls: float, retries: bool) -> None:
    memory = {"allocator_calls_per_step": calls, "recompute_frac": 0.0}
    verdict = observed(memory=memory, exposed_comm_by_kind_frac={"ep_dispatch": 0.4}).verdict
    assert (verdict.wall == "memory", verdict.does_not_fit) == (retries, retries)


@pytest.mark.parametrize(("capture", "reason"), [
    *(({"perturbation_frac": 0.177}, "18 % longer"), ({"perturbation_frac": 0.1}, "")),
    *(({"missing_events": True}, "events are missing"), ({"missing_events": False}, "")),
])  # fmt: skip
def test_a_capture_that_cannot_be_trusted_gives_no_wall_but_a_cure(capture: object, reason: str) -> None:
    budget = {"compute": 0.5, "exposed_comm": 0.1, "idle": 0.4}
    seen = observed(capture=capture, exposed_comm_by_kind_frac={"ep_dispatch": 0.1}, budget_frac=budget)
    assert (seen.verdict.wall is None, seen.bound.bucket) == (bool(reason), None)
    assert bool(seen.unproven) is not bool(reason)
    if reason:
        assert reason in seen.verdict.because[0]
        assert "record again" in seen.verdict.because[1]


@pytest.mark.parametrize(("seen", "is_said"), [(1, True), (15, True), (16, False)])
def test_fewer_ranks_than_there_are_make_the_verdict_less_sure_and_say_so(seen: int, is_said: bool) -> None:
    run = {"ranks_seen": seen, "world_size": 16}
    few, none = (observed(exposed(tp=one), run=run).verdict for one in (40, 1))
    assert any(f"{seen} of 16 ranks" in one for one in few.confidence_because) is is_said
    assert any(f"{seen} of 16 ranks" in one for one in none.because) is is_said


HOST, OTHER = {"gc": 26, "python": 2}, {"gc": 14, "python": 2}


@pytest.mark.parametrize(("late", "moved", "host"), [
    ({"cause": "slow_host", "rank": 5}, 6, HOST),
    ({"cause": "slow_host", "index": 2}, 6, {"gc": 14, "python": 26}),
    ({"cause": "rotating_jitter"}, 6, {"gc": 14, "python": 26}),
    ({"cause": "slow_device", "rank": 5}, 6, OTHER), ({"cause": "slow_link", "rank": 5}, 18, OTHER),
    ({"cause": "none"}, 18, OTHER),
])  # fmt: skip
def test_waiting_for_a_late_rank_is_no_transfer_and_the_hosts_where_the_host_is_late(
    late: Said, moved: float, host: Said
) -> None:
    """Rank 5 waits for nobody, and rank 6 for 12 % of its window: for what one of them mostly does."""
    ranks = [{"rank": 6, **exposed(tp=18), **starved(python=2)}, {"rank": 5, **exposed(), **starved(gc=14)}]
    said = {"ranks": ranks, "run": {"late": {"wait_frac": 0.12, **late}}}
    assert priced("communication", said)[2] == {"tp": moved}
    exact = {cause: 10_000_000 * percent for cause, percent in host.items()}
    assert wall("host_overhead", said).cost_by_kind_ns == exact


def test_a_late_rank_waits_for_a_part_of_the_longest_window() -> None:
    windows = [{"budget_ns": {"window": ns}, **exposed(tp=18)} for ns in (100, 200, 100)]
    said = {"ranks": windows, "run": {"late": {"cause": "slow_device", "wait_ns": 20}}}
    assert priced("communication", said)[2] == {"tp": 24}  # of each 18 less 10


def test_an_earlier_result_keeps_its_walls_its_bound_its_sureness_and_its_next_wall() -> None:
    walls = tuple(judged_wall(one, 40 if one == "communication" else None) for one in WALL_IDS)
    told = Symptoms(ranks=(NOTHING,), walls=walls, verdict=earlier(next_because="the rest is the host's"))
    seen = observed_from(told)
    assert (seen.walls, seen.bound.bucket, seen.window_ns) == (walls, "compute", 1_000)
    verdict = seen.verdict
    assert (verdict.wall, verdict.because, verdict.confidence) == ("communication", ("as it was",), "medium")
    assert verdict.confidence_because == ("few steps",)
    assert (verdict.next_wall, verdict.next_wall_frac) == ("host_overhead", 0.2)
    untold = observed_from(replace(told, verdict=earlier(next_because=""))).verdict
    assert (known(untold.next_wall), known(untold.next_wall_frac)) == (None, None)
    tight = replace(told, walls=(judged_wall("memory", 20), *walls[1:]))
    short = observed_from(replace(tight, verdict=earlier(does_not_fit=True))).verdict
    assert (observed_from(tight).verdict.wall, short.wall) == ("communication", "memory")
    assert short.does_not_fit


def earlier(**about: Any) -> Verdict:
    plain: dict[str, Any] = {
        "bound": "compute", "because": ("as it was",), "confidence": "medium", "next_because": "so",
    }  # fmt: skip
    plain |= {"confidence_because": ("few steps",), "next_wall": "host_overhead", "next_wall_frac": 0.2}
    return double(Verdict, **{**plain, "does_not_fit": False, "largest_bucket_frac": 0.7, **about})


@pytest.mark.parametrize(("again_", "labels", "modules", "full"), [
    ("none", None, (), False), ("selective", None, None, None),
    ("selective", ["core_attn", "layernorm", "moe"], ("core_attn", "layernorm", "moe"), True),
    (["core_attn", "layernorm", "moe"], None, ("core_attn", "layernorm", "moe"), True),
    ({"norm": {"recomputed_count": 4}, "router": {"recomputed_count": 0}}, None, ("layernorm",), False),
    (None, ["mla_up_proj"], ("mla_up_proj",), False),
])  # fmt: skip
def test_what_runs_again_is_told_by_name_by_label_or_by_count(
    again_: Any, labels: list[str] | None, modules: tuple[str, ...] | None, full: bool | None
) -> None:
    told = {"detected": {"recompute": again_}, "memory": {"recompute_frac": 0.1, "recompute_modules": labels}}
    found = observed(told).observed
    assert (found.recompute_modules, found.recompute_full) == (modules, full)
