"""Which launches, exchanges, collections and copies a change takes, and which it must leave alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.by_hand.run import Run
from tests.recordings.measured_changes import changes, surely
from tests.recordings.replay import US, begun, subject_of, us
from traces.account.device import find_queueing
from traces.replay.changes import launches
from traces.replay.changes.change import ChangesTogether, DraftChange, Joint, Recorded, Savings
from traces.replay.changes.dispatcher import find_exchanges, reads_counts, running_ns
from traces.replay.changes.graphs import _call_ns, find_scopes
from traces.replay.changes.launches import uninterrupted
from traces.replay.changes.measure import measure_changes
from traces.replay.graph import build_graph
from traces.replay.proofs import Cost
from traces.replay.run import ReplayBorders, replay
from traces.steps.found import Step, from_steps
from traces.timeline import RankTimeline

ROPE = "void fused_rope_forward_kernel<float>(int)"
MAP = "_row_id_map_pass_1_kernel"
OTHER_GEMM = "nvjet_tst_64x8_64x16_4x1_v_bz_TNN"
QUANTIZE = "transformer_engine::quantize_kernel"


def recorded(rank: RankTimeline, **about: Any) -> Recorded:
    window = from_steps("user", "", (Step(0, 0, us(100_000)),))
    return Recorded(subject_of(rank, window, **about), build_graph(rank, window.windows, find_queueing(rank)))


def launched(*names: str) -> Run:
    """Kernels of 2 us, one launched after the other every 10 us from 100 on; a GEMM before them."""
    run = begun()
    for place, name in enumerate(names):
        at = 110 + 10 * place
        run.work(name, at, at + 2, launch=(at - 4, at))
    return run


def scopes(*names: str) -> dict[str, list[str]]:
    """Each scope's runs of kernels by their places from 0, such as "1-3"."""
    found = find_scopes(recorded(launched("send_recv", *names).rank()))
    return {scope: [f"{run[0] - 2}-{run[-1] - 2}" for run in runs] for scope, runs in found.items() if runs}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("norm", "gemm", "attention"), {"attn": ["0-2"]}),
        (("norm", "gemm", ROPE, "attention", "gemm", "add"), {"attn": ["0-5"]}),
        (("norm", "gemm", "attention", "gemm", "norm"), {"attn": ["0-3"]}),  # the next norm is not its own
        (("add", "gemm", "attention"), {}),  # no norm: where it begins is not known
        (("add", "norm", "attention"), {"attn": ["1-2"]}),
        (("norm", "permute", "gemm", "attention"), {}),  # other work between
        (("norm", "attention", "norm", "attention_backward", "norm_backward"), {"attn": ["0-1", "3-4"]}),
        # a kernel is in one graph alone: the second GEMM is backward's no more
        (("norm", "attention", "gemm", "attention_backward", "norm_backward"), {"attn": ["0-2", "3-4"]}),
        (("gemm", "attention_backward", "gemm", "norm_backward", "add"), {"attn": ["0-4"]}),
        (("gemm", "attention_backward", "gemm"), {}),  # its norm's gradient is not there
        (("permute", "gemm", "attention_backward", "norm_backward", "norm"), {"attn": ["1-3"]}),
        (("norm", "gemm", "router"), {"moe_router": ["0-2"]}),
        *((("norm", "router"), {"moe_router": ["0-1"]}), (("gemm", "router"), {})),
        (("router", "gemm", "norm_backward", "add"), {"moe_router": ["0-3"]}),
        *((("router", "gemm", "norm"), {}), ((MAP, MAP, "permute"), {"moe_preprocess": ["0-1"]})),
        ((MAP,), {}),  # one launch is one already
        (("norm", "gemm", "attention", "norm", "gemm", "router"), {"attn": ["0-2"], "moe_router": ["3-5"]}),
    ],
)
def test_a_scope_reaches_as_far_as_its_own_kernels(
    names: Sequence[str], expected: Mapping[str, list[str]]
) -> None:
    assert scopes(*names) == expected


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        *(("sync", True), ("free", True), ("free_async", True), ("malloc", True), ("module_load", True)),
        *(("event_record", True), ("stream_wait", True), ("cudaMemsetAsync_v3020", True)),
        *(("cudaMemcpyAsync_v3020", True), ("cudaGetDevice_v3020", False)),
        ("cudaLaunchKernel_v7000", False),  # a launch that left no work
    ],
)
def test_some_calls_part_launches_and_others_do_not(call: str, parts: bool) -> None:
    run = launched("norm", "norm")
    run.call(call, 111, 112)
    assert uninterrupted(recorded(run.rank())) == ([[0, 1], [2]] if parts else [[0, 1, 2]])


@pytest.mark.parametrize(
    ("between", "runs"),
    [
        *(({"name": "send_recv"}, [[0, 1], [3]]), ({"name": "norm"}, [[0, 1, 2, 3]])),
        ({"name": "norm", "stream": 9}, [[0, 1], [2], [3]]),
        ({"name": "norm", "thread": 1}, [[0, 1], [2], [3]]),
        *(({"name": "norm", "launched": False}, [[0, 1, 3]]), ({"name": "graph"}, [[0, 1], [3]])),
    ],
)
def test_another_stream_thread_or_collective_parts_launches(
    between: dict[str, Any], runs: list[list[int]]
) -> None:
    run = launched("norm")
    run.work(between.pop("name"), 113, 114, **{"launch": 111} | between)
    run.work("norm", 120, 122, launch=(116, 120))
    found = uninterrupted(recorded(run.rank()))
    assert found == runs


def test_a_call_that_launches_several_kernels_is_no_single_launch() -> None:
    run = launched("norm")
    number = run.call("graph_launch", 112, 114)
    for node in range(2):
        run.work("norm", 115 + 2 * node, 116 + 2 * node, of=number, node=node)
    run.work("norm", 130, 132, launch=(126, 130))
    assert uninterrupted(recorded(run.rank())) == [[0, 1], [4]]


def test_where_few_graphs_launch_all_a_launch_takes_what_its_nodes_do() -> None:
    """200 ns a node, and nothing else, as no launch of one kernel tells more."""
    run = Run()
    for at in (100, 110):
        number = run.call("graph_launch", at - 4, at)
        run.work("norm", at, at + 2, of=number, node=1)
    assert _call_ns(recorded(run.rank()), np.array([3, 5])).tolist() == [600, 1_000]


def fused(*names: str) -> int | None:
    """How many microseconds a fusion of some kernels saves at most; None where there is none."""
    run = launched(*names)
    found = changes(run.rank(), (100, 110 + 10 * len(names)))
    return found["fused_kernels"].high_ns // US if "fused_kernels" in found else None


@pytest.mark.parametrize(
    ("names", "saved"),
    [
        (("router", "router"), 8),
        (("router", "permute"), None),  # of two families
        *((("permute", "permute", "permute"), 16), ((MAP, "permute"), 8), ((MAP, "router"), None)),
        *((("norm", "norm"), None), (("router", "add", "router"), None)),
    ],
)
def test_only_neighbours_of_one_family_are_fused(names: Sequence[str], saved: int | None) -> None:
    assert fused(*names) == saved


def exchanges(*works: tuple[str, int]) -> list[tuple[list[int], bool]]:
    """Works of 10 us one after the other, each of a thread; thread 1 is autograd's."""
    run = begun()
    for place, (name, thread) in enumerate(works):
        at = 100 + 10 * place
        run.work(name, at, at + 10, launch=2 + 4 * place, thread=thread)
    rank = run.rank()
    rank.columns.thread_names[run.recording.global_id(1_000, 1_001)] = "pt_autograd_0"
    return [(one.works, one.backward) for one in find_exchanges(recorded(rank))]


@pytest.mark.parametrize(
    ("works", "expected"),
    [
        ((("dispatch", 0), ("dispatch", 0)), [([1, 2], False)]),
        ((("dispatch", 0), ("norm", 0), ("dispatch", 0)), [([1, 3], False)]),
        ((("dispatch", 0), ("gemm", 0), ("combine", 0)), [([1], False), ([3], False)]),
        ((("dispatch", 0), ("attention", 0), ("combine", 0)), [([1], False), ([3], False)]),
        ((("dispatch", 0), ("dispatch", 1)), [([1], False), ([2], True)]),
        ((("layout", 0), ("token_counts", 0), ("dispatch", 0)), [([3], False)]),  # control is no payload
        ((("send_recv", 0), ("all_gather", 0)), []),
    ],
)
def test_payload_belongs_together_up_to_a_gemm_attention_or_the_other_pass(
    works: tuple[tuple[str, int], ...], expected: list[tuple[list[int], bool]]
) -> None:
    assert exchanges(*works) == expected


def test_work_counts_in_the_stretch_in_which_it_starts() -> None:
    run = begun()
    for at in (100, 120, 140):
        run.work("gemm", at, at + 30, launch=at - 90)
    rows = run.rank().activities
    begin, end = np.array([100, 101, 140, 130]) * US, np.array([140, 141, 100, 130]) * US
    which = np.array([False, True, True, True])
    found = running_ns(rows, np.array([1, 10, 100, 1_000]), which, begin, end)
    assert found.tolist() == [110, 1_100, 0, 0]


def read(after: str, before: str = "dispatch", **copy: Any) -> bool:
    """Whether a synchronisation behind a small copy, between two launches, reads token counts."""
    run = begun()
    run.work(before, 100, 102, launch=2)
    run.work("d2h", 104, 110, **{"launch": 10, "size_bytes": 256} | copy)
    run.call("sync", 14, 118)
    run.work(after, 130, 200, launch=120)
    reading, polling = reads_counts(recorded(run.rank()))
    assert not polling.any()
    return bool(reading.any())


@pytest.mark.parametrize(
    ("before", "after", "reads"),
    [
        ("dispatch", "gemm", True), ("gemm", "dispatch", True), ("token_counts", "gemm", True),
        ("gemm", "attention", False), ("norm", "gemm", False), ("gemm", "all_gather", False),
    ],
)  # fmt: skip
def test_counts_are_read_beside_an_exchange_with_no_gemm_or_attention_between(
    before: str, after: str, reads: bool
) -> None:
    assert read(after, before) is reads


def grouped(*names: str) -> bool:
    """Whether GEMMs of 100 us, in one kernel, would take less, between what else is named."""
    run = begun()
    for place, name in enumerate(names):
        at = 100 + 100 * place
        run.work(name, at, at + 100, launch=(6 + 4 * place, 8 + 4 * place), blocks=33)
    found = changes(run.rank(), (0, 100 + 100 * len(names)), sm_count=132)
    return "grouped_experts" in found


@pytest.mark.parametrize(
    ("names", "is_grouped"),
    [
        ("dispatch gemm gemm combine", True),
        ("dispatch gemm combine", False),
        ("gemm gemm combine", False),  # before the first exchange
        ("dispatch gemm gemm", False),  # behind the last
        ("dispatch attention gemm gemm combine", False),  # attention's own
        ("dispatch gemm gemm attention combine", False),
        ("attention dispatch gemm gemm combine attention", True),
        (f"dispatch gemm {OTHER_GEMM} combine", False),  # two kernels are no one kernel
        ("dispatch grouped_gemm grouped_gemm combine", False),  # they are one already
        ("dispatch gemm norm gemm combine", False),
        (f"dispatch gemm {QUANTIZE} gemm combine", True),
        ("all_gather gemm gemm all_gather", False),
        ("layout gemm gemm token_counts", False),  # control is no exchange
    ],
)
def test_experts_are_gemms_of_one_kernel_in_a_row_between_exchanges(names: str, is_grouped: bool) -> None:
    assert grouped(*names.split()) is is_grouped


def collecting(*steps: tuple[float, float], gcs: Sequence[tuple[float, float]]) -> tuple[float | None, float]:
    """A GEMM of 40 at 100, 200, ... launched as the host, which collects, comes to it."""
    run = begun()
    for start, end in gcs:
        run.range("gc", start, end)
    for at in range(200, 600, 100):
        run.work("gemm", at, at + 40, launch=(at - 5, at))
    found = changes(run.rank(), *steps)["collection_at_edges"]
    return found.low_ns, found.high_ns / US


def test_a_step_that_did_not_collect_does_so_nowhere_and_one_that_did_as_long_as_the_longest() -> None:
    low, high = collecting((0, 340), (340, 540), gcs=[(140, 190), (250, 280), (410, 420)])
    # 50 and 30 in the first, 10 in the second: each then takes 50 once
    assert (low, high) == (-10 * US, 90)


def test_recompute_of_norms_alone_is_not_narrowed_nor_is_that_of_none() -> None:
    run = begun()
    run.work("norm", 100, 120, launch=10)
    run.work("gemm", 120, 180, launch=14)
    assert "recompute_narrowed" not in changes(run.rank(), (0, 180), recomputed=[1])
    assert "recompute_narrowed" not in changes(run.rank(), (0, 180), recomputed=[2])
    assert "recompute_dropped" not in changes(run.rank(), (0, 180))


# what changes give together


def saving(*names: str, of: int = 100) -> tuple[ChangesTogether, Savings]:
    """Kernels of 100 us one behind the other; a change named after a place takes that one's time away."""
    run = begun()
    for place in range(1, 4):
        run.work("gemm", 100 * place, 100 * place + of, launch=10 * place)
    rank = run.rank()
    window = from_steps("user", "", (Step(0, 0, us(300 + of)),))
    graph = build_graph(rank, window.windows, find_queueing(rank))
    borders = ReplayBorders(graph.rows, [(0, us(300 + of))])
    base = (graph.timing, int(borders.lengths_ns(replay(graph, graph.timing)).sum()))
    savings = Savings(graph, [base], borders)

    drafts = [DraftChange(name, {"compute": (name,)}, partial(faster, place=int(name[-1]))) for name in names]
    return ChangesTogether(savings, drafts), savings


def faster(timing: Any, place: int, by: int = 100) -> Any:
    length = timing.duration_ns.copy()
    length[place] = max(0, length[place] - us(by))
    return replace(timing, duration_ns=length)


def test_changes_made_together_save_what_one_replay_of_all_saves() -> None:
    together, savings = saving("a1", "b2")
    assert savings.whole_ns == 400 * US
    assert together.joint(("a1",)) == Joint(surely(100), 100 * US, 0)
    assert together.joint(("a1", "b2")) == Joint(surely(200), 200 * US, 0)
    assert together.joint(("other",)) == together.joint(()) == Joint(0, 0, 0)
    assert together.joint(("b2", "other")) == together.joint(("b2",))


def test_what_makes_a_run_longer_is_told_whole_and_saves_nothing_at_most() -> None:
    _, savings = saving()
    longer = [lambda timing: faster(timing, 1, by=-50)]
    assert (savings.sure_ns(longer), savings.most_ns(longer)) == (-50 * US, 0)
    assert savings.sure_ns([]) == 0


def priced(most: Mapping[str, int], worth: int) -> list[str]:
    """The changes of two kernels recomputed, behind each other, where walls cost so much."""
    run = begun()
    run.work("norm", 100, 120, launch=10)
    run.work("gemm", 120, 180, launch=14)
    rank = run.rank()
    window = from_steps("user", "", (Step(0, 0, us(180)),))
    graph = build_graph(rank, window.windows, find_queueing(rank))
    borders = ReplayBorders(graph.rows, [(0, us(180))])
    costs = {wall: Cost(ns, {"recompute": ns}, ()) for wall, ns in most.items()}
    about = subject_of(rank, window, recomputed=[1, 2])
    found = measure_changes(about, graph, [(graph.timing, us(180))], borders, costs, worth)
    assert found.together is None or len(found.changes) > 1
    return [one.kind for one in found.changes]


@pytest.mark.parametrize(
    ("most", "worth", "found"),
    [
        ({"memory": 50}, 50, ["recompute_dropped", "recompute_narrowed"]),
        ({"memory": 49}, 50, []),
        ({"memory": 49, "compute": 1}, 50, []),  # all walls cost enough, what the change acts on does not
        ({"compute": 50}, 50, []),
        ({"memory": 0}, 0, []),  # nothing is worth nothing
    ],
)
def test_a_change_is_measured_where_what_it_acts_on_is_worth_it(
    most: dict[str, int], worth: int, found: list[str]
) -> None:
    assert priced(most, worth) == found


@pytest.mark.parametrize(
    ("kernels", "runs"),
    [
        *(("norm quantize quantize gemm", [[10, 11, 12]]), ("activation gemm quantize", [])),
        *(("gemm quantize", []), ("norm norm quantize activation quantize", [[11, 12], [13, 14]])),
        ("quantize norm", []),
    ],
)
def test_quantisations_join_the_norm_or_activation_right_before_them(
    kernels: str, runs: list[list[int]]
) -> None:
    classes = {place: SimpleNamespace(class_=name) for place, name in enumerate(kernels.split(), 10)}
    recorded: Any = SimpleNamespace(classes=classes)
    assert list(launches._quantised(recorded, list(classes))) == runs
