"""The account of expert all-to-all: payload, control, waiting, layers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from tests.by_hand.run import Run
from tests.places import Export
from tests.recordings.launches import GEMM, NO_ACCOUNT, NORM, measured, rank_of
from traces.intervals import spans
from traces.measure.a2a import measure_a2a
from traces.missing import Missing, known
from traces.resolve.kinds import resolve_kinds
from traces.sections.rank import A2a
from traces.steps.found import Step, from_steps

HYBRID = "void hybrid_ep::dispatch_kernel<8, true>(P)"
PASS = (("permute", 10), ("send_recv", 50), ("send_recv", 5), ("grouped_gemm", 10), ("send_recv", 40))


def deepep_steps(dispatch_us: Sequence[int]) -> Recording:
    """Per step of 100 us: notify 5 us at +0, dispatch at +10, GEMM at +30 to +60, combine 10 us at +55."""
    recording = Recording()
    for step, length in enumerate(dispatch_us):
        at = 100 * step

        def run(name: str, start: int, end: int, stream: int = 20, at: int = at) -> None:
            begin = (at + start) * 1_000
            recording.kernel(name, begin, (at + end) * 1_000, launch_ns=begin - 500, stream=stream)

        run("void deep_ep::intranode::notify_dispatch<(int)8>(int *)", 1, 6)
        run("void deep_ep::intranode::dispatch<(int)8>(int4 *)", 10, 10 + length)
        run(NORM, 30, 60, stream=7)
        run("void deep_ep::intranode::combine<(int)8>(int4 *)", 55, 65)
        run(NORM, 70, 80, stream=7)
    return recording


def test_payload_control_exposed_and_hidden_add_up_in_the_head(export: Export) -> None:
    found = measured(rank_of(export(deepep_steps([10, 10]))), [(0, 100), (100, 200)])
    assert found.instances == 4
    assert found.payload_ns == 40_000
    assert found.control_ns == 10_000
    assert found.hidden_ns == 10_000  # 5 us of each combine under the GEMM
    assert found.exposed_ns == 40_000
    assert found.waiting_like_ns == 0
    assert found.blocking_ns == NO_ACCOUNT


def test_what_exceeds_the_fastest_of_its_like_is_like_waiting(export: Export) -> None:
    found = measured(rank_of(export(deepep_steps([10, 14, 12]))), [(0, 100), (100, 200), (200, 300)])
    assert found.waiting_like_ns == 6_000
    cut = measured(rank_of(export(deepep_steps([10, 14, 12]), "cut.sqlite")), [(0, 112), (200, 260)])
    assert cut.waiting_like_ns == 2_000  # a piece is like no whole one, and one combine like no other
    alone = measured(rank_of(export(deepep_steps([10]), "alone.sqlite")), [(0, 100)])
    assert known(alone.waiting_like_ns) is None


def test_of_whole_graph_replays_alone_nothing_is_told_of_expert_traffic() -> None:
    run = Run()
    run.work("graph", 10, 30)
    found = run.measured().a2a
    assert isinstance(found, Missing)
    assert found.reason == "no single kernel was recorded"


def test_tokens_are_not_compared_with_probabilities() -> None:
    run = Run()
    for step in run.steps(2, every=500):
        now = 0
        for name, length in (*PASS, ("unpermute", 10), ("norm", 10)):
            step.work(name, now, now + length, stream=20 if name == "send_recv" else 7)
            now += length
    found = run.measured().a2a
    assert isinstance(found, A2a)
    assert (found.instances, found.payload_ns, found.waiting_like_ns) == (6, 190_000, 0)


def test_spans_are_cut_at_the_windows_and_name_step_layer_and_phase(export: Export) -> None:
    rank = rank_of(export(deepep_steps([10, 10])))
    chosen = from_steps("user", "the test's", (Step(0, 0, 100_000),))
    found = measure_a2a(rank, resolve_kinds(rank), spans((0, 60_000)), chosen, NO_ACCOUNT)
    assert isinstance(found, A2a)
    assert [(s.kind, s.start_ns, s.end_ns, s.step, known(s.layer), s.phase) for s in found.spans] == [
        ("ep_control", 1_000, 6_000, 0, None, "fwd"),
        ("ep_dispatch", 10_000, 20_000, 0, 0, "fwd"),
        ("ep_combine", 55_000, 60_000, 0, 0, "fwd"),
    ]
    windows = spans((0, 3_000), (6_000, 10_000), (15_000, 55_000), (60_000, 62_000))  # with edges
    found = measure_a2a(rank, resolve_kinds(rank), windows, chosen, NO_ACCOUNT)
    assert isinstance(found, A2a)
    assert [(s.start_ns, s.end_ns) for s in found.spans] == [
        (1_000, 3_000), (15_000, 20_000), (60_000, 62_000),
    ]  # fmt: skip
    assert (found.instances, found.payload_ns) == (2, 7_000)


@pytest.mark.parametrize(
    ("works", "dispatcher"),
    [
        ([("dispatch", 20), ("token_counts", 20), (HYBRID, 30)], "deepep"),
        ([("dispatch", 20), (HYBRID, 30), ("norm", 90)], "hybridep"),
        ([("norm", 40), (HYBRID, 30)], "hybridep"), ([("all_reduce", 100), (HYBRID, 30)], "unknown"),
        ([("norm", 40), ("all_reduce", 30)], "none"), ([("norm", 40), ("graph", 30)], "unknown"),
    ],
)  # fmt: skip
def test_the_dispatcher_is_the_one_that_takes_most_of_the_window(
    works: list[tuple[str, int]], dispatcher: str
) -> None:
    """One after the other, in us; the window has 100."""
    run, now = Run(), 0
    for name, length in works:
        run.work(name, now, now + length)
        now += length
    assert run.measured(window=(0, 100)).detected.dispatcher == dispatcher


def hybrid_passes(order: Sequence[tuple[str, int]], step_us: int = 1_000) -> Recording:
    """One step of HybridEP passes: (phase, thread) each, a dispatch and a combine of 10 us."""
    recording = Recording()
    for place, (phase, tid) in enumerate(order):
        forward = phase == "fwd"
        for part, (operation, flag) in enumerate((("dispatch", forward), ("combine", not forward))):
            name = f"void hybrid_ep::{operation}_kernel<8, {str(flag).lower()}>(P)"
            at = (40 * place + 20 * part + 5) * 1_000
            recording.kernel(name, at, at + 10_000, launch_ns=at - 1_000, stream=20, tid=tid)
    recording.kernel(GEMM, step_us * 1_000 - 10_000, step_us * 1_000, launch_ns=step_us * 1_000 - 20_000)
    return recording


def layers_of(path: Path) -> list[int | None]:
    found = measured(rank_of(path), [(0, 1_000)])
    return [known(span.layer) for span in found.spans if span.kind == "ep_dispatch"]


FORWARD, BACKWARD, RECOMPUTED = ("fwd", 1000), ("bwd", 1001), ("fwd", 1001)


def test_what_one_thread_launches_is_forward_work_and_a_repeat_that_nothing_follows_has_no_layer(
    export: Export,
) -> None:
    alone = [("fwd", 1000)] * 2 + [("bwd", 1000)] * 2
    assert layers_of(export(hybrid_passes(alone))) == [0, 1, 1, 0]
    order = [FORWARD] * 2 + [BACKWARD, RECOMPUTED]
    assert layers_of(export(hybrid_passes(order), "b.sqlite")) == [0, 0, 0, None]
    again = hybrid_passes([FORWARD] * 2 + [RECOMPUTED, BACKWARD] * 2)
    assert layers_of(export(again, "c.sqlite")) == [0, 1, 1, 1, 0, 0]


def test_passes_that_take_turns_do_not_tell_their_layer_but_ranges_do(export: Export) -> None:
    order = [FORWARD, BACKWARD] * 3
    assert layers_of(export(hybrid_passes(order))) == [None] * 6
    assert layers_of(export(hybrid_passes(order[:3]), "three.sqlite")) == [None] * 3
    assert layers_of(export(hybrid_passes(order[:2]), "two.sqlite")) == [0, 0]
    recording = hybrid_passes(order)
    for place in range(3):
        for tid in (1000, 1001):
            text = f"layer_{place}f-layer_{2 - place}b"
            recording.range(text, 80_000 * place, 80_000 * place + 79_000, tid=tid)
    assert layers_of(export(recording, "b.sqlite")) == [0, 2, 1, 1, 2, 0]
