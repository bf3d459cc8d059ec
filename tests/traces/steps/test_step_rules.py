"""Which steps are left out and why: each rule at another process, a border, or its own limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bench.simulate.recording import Row
from tests.by_hand.run import Run
from traces.sections.steps import Outside
from traces.spelling import percent
from traces.steps.choose import choose_steps
from traces.steps.found import Step, Steps, drop, from_steps, median_ns, one_window
from traces.steps.rules import (
    alternate,
    disagreement_of,
    leave_out_hiccups,
    leave_out_partial,
    leave_out_these,
    leave_out_warm_up,
)
from traces.steps.selection import Selection
from traces.steps.units import _in_few_steps


def steps_of(lengths: list[int]) -> list[Step]:
    return [Step(index, 10_000 * index, 10_000 * index + length) for index, length in enumerate(lengths)]


def named(lengths: list[int], source: str = "nvtx") -> Steps:
    return from_steps(source, source, tuple(steps_of(lengths)))  # type: ignore[arg-type]


def left_out(run: Run, place: int = 0) -> list[str]:
    """The first words of why each step is left out."""
    recorded = run.measured(place).steps.recorded
    return [(step.dropped or "used").partition(":")[0] for step in recorded]


@pytest.mark.parametrize("process", [0, 1])
def test_a_flush_and_a_capture_spoil_only_steps_of_their_own_process(process: int) -> None:
    """Three steps of 100 in each of two processes on one GPU: launched at 0 to 100, run from 10 on."""
    for word in ("profiler flush", "graph capture"):
        run = Run()
        for number in range(2):
            for step in run.process(number, device=0).steps(3, every=100):
                step.work("gemm", 0, 90, stream=7 + number)
        where = run.process(process, device=0)
        if word == "profiler flush":
            where.flush(150, 190)
        else:
            where.call("cudaStreamBeginCapture_v10000", 120, 121)
        for place in range(2):
            assert left_out(run, place) == ["used", word if place == process else "used", "used"]


def flushed(start: float, end: float, name: str = "Buffer flush", thread: bool = True) -> list[str]:
    """What is said of steps at 0-90, 90-190 and 190-290 beside such a row of the profiler's."""
    run = Run()
    for step in run.steps(3, every=100):
        step.work("gemm", 0, 90)
    row: Row = {"start": run.ns(start), "end": run.ns(end), "nameId": name}
    row["globalTid"] = run.recording.global_id(1_000, 1_000) if thread else None
    run.recording.rows["PROFILER_OVERHEAD"] = [row]
    return left_out(run)


@pytest.mark.parametrize(
    ("start", "end", "spoilt"),
    [
        (185, 190, "- - -"),  # 5 of 100 are no good part of a step
        (184.999, 190, "- x -"),
        (190, 196, "- - x"),  # from the border on: in the next one alone
        (184, 196, "- x x"),
        (100, 180, "- - -"),  # within a step, at no border
        (90, 96, "- x -"),
        (88, 200, "- x x"),
        (-100, 0, "- - -"),  # ends as the first begins
        (-100, 5, "x - -"),
        (286, 286, "- - -"),
    ],
)
def test_a_flush_spoils_a_step_at_whose_border_it_takes_over_a_twentieth(
    start: float, end: float, spoilt: str
) -> None:
    words = {"-": "used", "x": "profiler flush"}
    assert flushed(start, end) == [words[letter] for letter in spoilt.split()]


def test_why_a_step_is_left_out_is_said_with_its_figure() -> None:
    run = Run()
    for step in run.steps(3, every=100):
        step.work("gemm", 0, 90)
    run.flush(150, 190)
    run.call("cudaStreamBeginCapture_v10000", 20, 21)
    assert [step.dropped for step in run.measured().steps.recorded] == [
        "graph capture: cudaStreamBeginCapture was called in it",
        "profiler flush: 40000 ns of it at its border",
        None,
    ]


@pytest.mark.parametrize(
    ("name", "spoils"), [("CUPTI Buffer flush", True), ("Stop profiling", True), ("Instrumentation", False)]
)
@pytest.mark.parametrize("thread", [True, False])
def test_only_what_writes_or_stops_spoils_and_a_row_without_thread_may_be_of_the_process(
    name: str, spoils: bool, thread: bool
) -> None:
    assert (flushed(150, 190, name, thread)[1] == "profiler flush") is spoils


@pytest.mark.parametrize(
    ("at", "name", "spoilt"),
    [
        (90, "cudaStreamBeginCapture_v10000", 1),  # the host's second step is 90 to 190
        *((89.999, "cudaStreamBeginCapture_v10000", 0), (189.999, "cuStreamBeginCapture_v2", 1)),
        *((190, "cudaStreamBeginCapture_v10000", 2), (150, "cudaStreamEndCapture_v10000", None)),
        (-100, "cudaStreamBeginCapture_v10000", None),
    ],
)
def test_a_capture_spoils_the_step_in_which_it_began(at: float, name: str, spoilt: int | None) -> None:
    run = Run()
    for step in run.steps(3, every=100):
        step.work("gemm", 0, 90)
    run.call(name, at, at + 1)
    assert left_out(run) == ["graph capture" if place == spoilt else "used" for place in range(3)]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        *(([100, 95, 100, 100], "- - - -"), ([100, 94, 100, 100], "- partial - -")),
        *(([100, 105, 100], "- - -"), ([100, 106, 100], "- more -")),
        ([50], "-"),  # of one alone there is no other
        ([100, 0, 94], "- no partial"),
        ([0], "no"),
        ([80, 80, 120], "- - more"),  # the lower median of the other two
        *(([80, 120, 80, 120, 80], "- more - more -"), ([80, 120] * 2, "- more - more")),
    ],
)
def test_a_step_is_held_against_the_median_of_the_others(counts: list[int], words: str) -> None:
    def word(step: Step) -> str:
        said = "more" if step.has_more else "-"
        return step.dropped.split()[0].rstrip(":") if step.dropped else said

    found = leave_out_partial(steps_of([50] * len(counts)), counts)
    assert [word(step) for step in found] == words.split()


def test_a_step_without_time_on_the_gpu_is_none() -> None:
    found = leave_out_partial(steps_of([50, 0, 50]), [10, 10, 10])
    assert [step.dropped for step in found] == [None, "no GPU work", None]
    assert [step.dropped for step in named([50, 0, 50]).recorded] == [None, "no GPU work", None]


@pytest.mark.parametrize(
    ("lengths", "initialising", "warm"),
    [
        ([105, 100, 100], [0, 0, 0], False),  # 5 % more are no more
        ([106, 100, 100], [0, 0, 0], True),
        ([106, 100], [0, 0], False),  # of two neither is the exception
        ([106, 100], [4, 0], True),
        ([106, 100], [3, 0], False),
        ([130], [30], False),
        ([200, 100, 112], [0, 0, 0], True),  # quarters of the others lie 6 apart, and it takes 94 more
        ([130, 100, 110], [0, 0, 0], True),  # 5 of 105 is under 5 %
        ([260, 190, 210], [0, 0, 0], False),  # 10 of 200 is not, nor under a tenth of what it takes more
        ([106, 100, 110], [0, 0, 0], False),
        ([1_200, 100, 400, 100, 400, 100, 400], [0] * 7, True),  # others alternate: over twice the longest
        ([800, 100, 400, 100, 400, 100, 400], [900, 0, 0, 0, 0, 0, 0], False),
    ],
)
def test_the_first_step_is_warm_up_at_each_edge_of_its_rule(
    lengths: list[int], initialising: list[int], warm: bool
) -> None:
    first, *others = leave_out_warm_up(steps_of(lengths), np.array(initialising))
    slower = f"warm-up: {percent(lengths[0] / np.median(lengths[1:] or 1) - 1)} slower than the rest"
    assert (first.is_warm_up, first.dropped) == (warm, slower if warm else None)
    assert first.initialises is (warm and initialising[0] > 0)
    assert not any(step.is_warm_up or step.dropped for step in others)


def test_the_first_used_step_is_judged_where_the_first_recorded_is_left_out() -> None:
    cut, *steps = steps_of([20, 130, 100, 100])
    found = leave_out_warm_up([drop(cut, "partial"), *steps], np.zeros(4, dtype=np.int64))
    assert [step.is_warm_up for step in found] == [False, True, False, False]
    assert found[0].dropped == "partial"


def test_calls_that_load_in_another_process_make_no_step_of_this_one_warm_up() -> None:
    def warm_up(process: int, name: str = "module_load") -> tuple[int, ...]:
        run = Run()
        for number in range(2):
            for place, step in enumerate(run.process(number, device=0).steps(2, every=200)):
                step.work("gemm", 0, 190 if place == 0 else 90, stream=7 + number)
        run.process(process, device=0).call(name, 20, 120)
        run.process(process, device=0).call(name, 30, 110)  # within it: its time counts once
        return run.measured(0).steps.warm_up

    assert (warm_up(0), warm_up(1), warm_up(0, "event_record")) == ((0,), (), ())


@pytest.mark.parametrize(
    ("lengths", "alternates"),
    [
        ([100, 100, 100, 100, 100, 79, 121], True),  # two of seven
        ([100, 100, 100, 100, 100, 80, 120], False),  # 20 % are not far
        ([100] * 6 + [150] * 2, True),  # two of eight are a quarter
        ([100] * 7 + [150] * 2, False),
        ([100] * 2 + [150], False),
        ([100, 140, 100, 140, 100], True),
        ([150, 100, 100, 100, 100, 150, 100, 100, 100, 100, 150, 100, 100, 100, 100], True),  # in turn
        ([100, 150, 100, 100, 100, 100, 150, 100, 100, 100, 100, 150, 100, 100, 100], True),
        ([150, 100, 100, 100, 100, 150, 100, 100, 100, 100, 100, 150, 100, 100, 100], False),  # 5, then 6
        ([150, 100, 100, 100, 100, 150, 100, 100, 100, 100, 150] + [100] * 6, False),  # none for six
    ],
)
def test_steps_alternate_where_a_quarter_is_far_or_every_so_many_th(
    lengths: list[int], alternates: bool
) -> None:
    assert alternate(lengths) is alternates


@pytest.mark.parametrize(
    ("lengths", "more", "slow"),
    [
        ([100, 300], [1], ()),  # of two neither is the exception
        *(([100, 300, 100], [1], (1,)), ([100, 300, 100], [], ()), ([100, 105, 100], [1], ())),
        ([100, 106, 100], [1], (1,)),
        ([300, 300, 100], [1], ()),  # not longer than one that holds no more
        ([100, 300, 100], [0, 1, 2], ()),  # nor is there one that holds no more
        ([100] * 7 + [111], [], (7,)),  # of eight each is judged by its length
        *(([100] * 7 + [110], [], ()), ([100] * 7 + [106], [7], (7,))),
        ([100] * 6 + [111], [], ()),
        ([90, 90, 90, 100, 100, 110, 110, 110, 140], [], ()),  # within 3 deviations of 14.8
        ([90, 90, 90, 100, 100, 110, 110, 110, 145], [], (8,)),
        ([100] * 8 + [115] * 2, [], (8, 9)),  # one in five
        ([100] * 7 + [115] * 2, [], ()),
        ([100] * 7 + [50], [], ()),  # shorter is no hiccup
    ],
)
def test_a_hiccup_is_far_longer_than_the_others_and_they_are_few(
    lengths: list[int], more: list[int], slow: tuple[int, ...]
) -> None:
    steps = [
        Step(one.index, one.start_ns, one.end_ns, has_more=one.index in more) for one in steps_of(lengths)
    ]
    found = leave_out_hiccups(from_steps("nvtx", "", tuple(steps)))
    assert (found.slow, [step.index for step in found.dropped]) == (slow, [*slow])
    assert found.windows.total_ns == sum(ns for place, ns in enumerate(lengths) if place not in slow)
    if slow:
        usual = int(np.median([ns for place, ns in enumerate(lengths) if place not in slow]))
        assert found.hiccups_ns == sum(lengths[place] - usual for place in slow)


def test_a_hiccup_is_said_with_how_much_longer_it_is() -> None:
    (slow,) = leave_out_hiccups(named([100] * 7 + [150])).dropped
    assert slow.dropped == "hiccup: 50 % longer than the median"


@pytest.mark.parametrize(("other", "said"), [(105, False), (106, True), (95, False), (94, True)])
def test_ways_disagree_where_their_usual_steps_differ_by_over_a_twentieth(other: int, said: bool) -> None:
    found = disagreement_of([named([100] * 3), named([100], "period"), named([other] * 3, "optimizer")])
    assert (found is not None) is said
    if found:
        assert found.startswith("nvtx: median step 100 ns (3 steps), but optimizer: ")
        assert "period" not in found


def test_figures_of_steps_are_of_the_used_ones_alone() -> None:
    """10 of 100, then 50 nobody's, a hiccup of 30, one left out of 20, and one of 40."""
    recorded = (
        Step(0, 100, 110),
        Step(1, 160, 190, dropped="hiccup"),
        Step(2, 190, 210, dropped="partial"),
        Step(3, 210, 250),
    )
    bare = from_steps("nvtx", "", recorded)
    found = Steps("nvtx", "", recorded, bare.windows, slow=(1,), extent_ns=(90, 300))
    assert found.lengths_ns() == [10, 40]
    assert (found.median_ns, found.hiccups_ns, found.windows.total_ns) == (25, 5, 50)
    outside = found.outside
    assert outside is not None
    assert (outside.before_ns, outside.between_ns, outside.after_ns) == (10, 150 - 10 - 30 - 40, 50)
    assert found.used_at(np.array([99, 100, 109, 110, 160, 195, 210, 249, 250])).tolist() == [
        *(-1, 0, 0, -1, -1, -1, 1, 1, -1)
    ]


def test_without_steps_there_is_one_window_and_no_figure_of_any() -> None:
    found = replace(one_window("none", "", 10, 30), extent_ns=(4, 30))
    assert (found.median_ns, found.hiccups_ns, found.lengths_ns()) == (None, 0, [])
    assert (found.outside, one_window("user", "", 10, 30).outside) == (Outside(6, 0, 0), None)
    assert (found.unit, found.windows.pairs()) == ("window", [[10, 30]])
    assert found.used_at(np.array([20])).tolist() == [-1]


def test_with_its_warm_up_a_run_has_the_first_step_again_and_no_other_that_was_left_out() -> None:
    recorded = (
        Step(0, 0, 200, dropped="warm-up", is_warm_up=True),
        Step(1, 200, 300),
        Step(2, 300, 310, dropped="partial", initialises=True, has_more=True),
    )
    bare = from_steps("nvtx", "", recorded)
    found = bare.with_warm_up()
    assert (bare.warm_up, [step.index for step in found.used], found.windows.pairs()) == (
        (0,),
        [0, 1],
        [[0, 300]],
    )


def test_replays_are_the_unit_of_graphs_and_a_half_is_rounded_down() -> None:
    assert [named([10], source).unit for source in ("nvtx", "graph", "period")] == ["step", "replay", "step"]
    assert median_ns([10, 11]) == 10


@pytest.mark.parametrize(
    ("slow", "hiccups"),
    [
        ((5, 10, 15), ()),  # every fifth of 16: five workers load
        ((0, 7, 14), ()),  # of seven, the first round late already
        ((5, 11), (5, 11)),  # two at one distance may be chance
        ((2, 5, 8), (2, 5, 8)),  # at equal distances, but not to the end
        ((5, 10, 14), (5, 10, 14)),
    ],
)
def test_every_so_many_th_step_slow_from_end_to_end_is_a_rhythm(
    slow: tuple[int, ...], hiccups: tuple[int, ...]
) -> None:
    lengths = [300 if place in slow else 100 for place in range(16)]
    found = leave_out_hiccups(named(lengths))
    assert found.slow == hiccups


US = 1_000


def steps_with(what: str, at: Sequence[int], count: int = 5, pause_us: int = 300) -> Steps:
    """Steps of ten kernels, 100 us; those `at` hold a pause before their last, 200 us of it in `what`.

    Every step writes for 20 us.
    """
    run, now, thread = Run(ahead_us=1), 0, int("another" in what)
    for number in range(count):
        begin, writes = now, [(now, now + 20, 0)]
        for kernel in range(10):
            if kernel == 9 and number in at:
                if what in ("memcpy", "scalar"):
                    size = 1 << 20 if what == "memcpy" else 4
                    run.work("d2h", now + 240, now + 300, launch=now + 240, size_bytes=size)
                elif what in ("write", "another write"):
                    writes.append((now, now + 200, thread))
                elif what:
                    run.range(what, now, now + (2_000 if what == "epoch" else 200), thread=thread)
                now += pause_us
            run.work("gemm", now, now + 10)
            now += 10
        run.range(f"iteration {number}", begin - 2, now - 3)
        for start, end, by in writes:
            row: Row = {"start": run.ns(start), "end": run.ns(end), "nameId": "write"}
            row["globalTid"] = run.recording.global_id(1_000, 1_000 + by)
            run.recording.rows.setdefault("OSRT_API", []).append(row)
    return choose_steps(run.rank(), Selection())


@pytest.mark.parametrize("what", ["save_checkpoint", "write_weights", "memcpy", "write"])
def test_of_few_steps_those_with_a_save_are_hiccups(what: str) -> None:
    for at, count in (((1,), 3), ((0, 1), 5)):
        found = steps_with(what, at, count)
        assert found.slow == at
        assert {length // US for length in found.lengths_ns()} == {100}
        assert found.hiccups_ns == len(at) * 300 * US


@pytest.mark.parametrize("what", ["", "gc", "dataloader next", "scalar", "epoch", "another write", "another"])
def test_of_few_steps_one_that_is_only_slower_is_none(what: str) -> None:
    assert steps_with(what, (2,)).slow == ()


@pytest.mark.parametrize(("pause_us", "slow"), [(399, (2,)), (400, ())])
def test_what_the_host_does_alone_has_to_be_over_half_of_what_a_step_takes_more(
    pause_us: int, slow: tuple[int, ...]
) -> None:
    assert steps_with("save_checkpoint", (2,), pause_us=pause_us).slow == slow


@pytest.mark.parametrize(("at", "count"), [((1, 4), 7), ((0, 1, 2), 5), ((0, 1), 4)])
def test_units_in_turn_or_in_half_of_the_steps_are_how_the_run_goes(at: tuple[int, ...], count: int) -> None:
    assert steps_with("memcpy", at, count).slow == ()


@pytest.mark.parametrize(("mib", "slow"), [(21, ()), (22, (3,))])
def test_what_the_host_does_behind_a_larger_copy_of_weights_is_a_unit_of_the_step_it_lies_in(
    mib: int, slow: tuple[int, ...]
) -> None:
    """Each step copies 20 MiB, the third over a twentieth more; then its host writes for 300 us."""
    run = Run()
    for place in range(5):
        at = 100 * place + 300 * (place > 2)
        run.range(f"iteration {place}", at - 10, at + 90 + 300 * (place == 2))
        run.work("gemm", at, at + 90, launch=at - 5)
        run.work("d2h", at + 90, at + 100, launch=at + 70, size_bytes=(mib if place == 2 else 20) << 20)
    assert run.measured().steps.slow == slow


def test_few_steps_are_fewer_than_half_and_what_lies_before_the_first_is_of_none_of_them() -> None:
    kind, step = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 0, -1, 3])
    assert _in_few_steps(kind, step, 4).tolist() == [False, False, True, True, False, False]


def test_a_copy_belongs_to_the_step_that_launched_it_not_to_the_one_in_which_it_runs() -> None:
    """The host runs ahead: the third step's copy runs within the second one's time."""
    run = Run()
    told = [(10, 20, 50), (60, 60, 130), (100, 140, 180), (190, 190, 230)]
    for place, (copied, start, end) in enumerate(told):
        launched = 30 * place - 10
        run.range(f"iteration {place}", launched, launched + 30)
        run.work("d2h", copied, copied + 10, launch=launched + 5, stream=30, size_bytes=2 << 20)
        run.work("gemm", start, end, launch=launched + 20)
    assert run.steps_found() == [(10, 50), (50, 130), (130, 180), (180, 230)]


def test_other_steps_are_left_out_in_place_of_the_hiccups_and_partial_ones_stay_out() -> None:
    recorded = [*named([10, 90, 10, 80, 10]).recorded]
    for index, why in ((0, "partial"), (1, "hiccup"), (3, "hiccup")):
        recorded[index] = drop(recorded[index], why)
    steps = leave_out_these(replace(named([]), recorded=tuple(recorded), slow=(1, 3)), frozenset({3, 4}))
    assert (steps.slow, steps.windows.pairs()) == ((3, 4), [[10_000, 10_090], [20_000, 20_010]])
    assert [(step.dropped or "used")[:7] for step in steps.recorded] == [
        "partial",
        "used",
        "used",
        "hiccup",
        "hiccup:",
    ]


@pytest.mark.parametrize(("until", "named"), [(51, ("cudaMalloc", 51_000)), (50, ("", 0))])
def test_a_single_call_that_takes_most_of_the_time_before_the_first_work_is_named(
    until: int, named: tuple[str, int]
) -> None:
    run = Run()
    run.call("malloc", 0, until)
    run.work("gemm", 100, 200)
    assert run.measured().steps.preparing == named
