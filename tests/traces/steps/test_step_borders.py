"""Where steps begin and end, what is taken for them, and which of a long run are replayed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.by_hand.run import Run
from tests.doubles.opinions import steps_of as lasting
from traces.errors import EmptySelection, UsageError
from traces.steps.found import Steps, from_steps, one_window
from traces.steps.sample import STEPS, WHOLE, sample_of
from traces.steps.selection import parse_selection

US = 1_000
DALI = "void dali::kernels::transforms::SliceFlipNormalizePermutePadKernel<float, unsigned char, 3>()"


def three(text: str = "iteration {}", clock: float = 0, **where: int) -> Run:
    """Ranges at 0-99, 100-199, 200-299 of the host; kernels launched at +1 and +2 run +10..+60, +70..+95."""
    run = Run(clock=clock)
    for number in range(3):
        step = run.at(100 * number)
        step.range(text.format(number), 0, 99, **where)
        step.work("gemm", 10, 60, launch=1)
        step.work("gemm", 70, 95, launch=2)
    return run


FOUND = [(10, 95), (95, 195), (195, 295)]


def test_ranges_of_another_process_are_no_steps_of_this_one() -> None:
    run = three(process=1)
    run.process(1, device=0).work("gemm", 0, 5, launch=-5)
    assert run.measured(0).steps.source == "none"


def test_a_helpers_work_makes_no_border_and_begins_no_step() -> None:
    run = three()
    run.work(DALI, 96, 150, launch=50, thread=9, stream=30)
    run.work(DALI, 2, 5, launch=0.5, thread=9, stream=30)
    assert run.steps_found() == FOUND


@pytest.mark.parametrize(("kernels", "source"), [(6, "nvtx"), (7, "none")])
def test_step_ranges_hold_at_least_half_of_the_kernels(kernels: int, source: str) -> None:
    run = three()
    for number in range(kernels):
        run.work("norm", 1_000 + 50 * number, 1_010 + 50 * number)
    run.work("h2d", 5_000, 5_010)  # copies are not counted
    assert run.measured().steps.source == source


def test_of_two_names_the_one_that_repeats_counts_and_one_alone_is_a_step() -> None:
    run = Run()
    run.range("step 7", -15, 99)
    run.work("gemm", 10, 60, launch=1)
    run.work("gemm", 70, 95, launch=2)
    assert (run.measured().steps.source, run.steps_found()) == ("nvtx", [(10, 95)])
    run.call("cudaStreamBeginCapture_v10000", 5, 6)
    assert run.measured().steps.source == "none"  # where the only one is left out
    run = three()
    run.range("train_step", -10, 310)
    for step in map(run.at, (0, 100, 200)):  # of as much work the fewer ranges
        step.range("step", 0, 1.5)
        step.range("step", 1.5, 98)
    assert run.steps_found() == FOUND


@pytest.mark.parametrize(("updates", "source"), [(2, "optimizer"), (1, "nvtx")])
def test_of_one_range_in_which_an_optimizer_steps_often_its_steps_count(updates: int, source: str) -> None:
    run = Run()
    run.range("ProfilerStep#3", -20, 400)
    run.work("adam", -10, 0, launched=False)
    for number in range(updates):
        run.work("gemm", 100 * number, 100 * number + 80)
        run.work("adam", 100 * number + 80, 100 * number + 90)
    assert run.measured().steps.source == source
    run.range("ProfilerStep#4", 400, 500)
    assert run.measured().steps.source == "nvtx"  # of two recorded


def test_ranges_that_launch_nothing_themselves_are_no_steps_but_where_no_launch_was_recorded() -> None:
    assert three(thread=5).measured().steps.source == "none"
    run = Run()
    for number in range(3):
        run.range(f"iteration {number}", 100 * number, 100 * number + 99, thread=1)
        run.work("gemm", 100 * number + 10, 100 * number + 60, launched=False)
    run.range("iteration 0", 0, 300)  # of a thread that has fewer of them
    assert run.steps_found() == [(10, 60), (60, 160), (160, 260)]
    for number in range(3):
        run.work("adam", 100 * number + 60, 100 * number + 70, launched=False)
    assert run.measured().steps.source == "optimizer"  # a range lies ahead of its work


def test_a_range_within_another_of_its_name_is_no_step_of_its_own() -> None:
    run = three()
    run.range("iteration 0", 20, 30)
    run.range("iteration 1", 101.5, 150)
    run.range("of no text", -5, 150)
    run.recording.rows["NVTX_EVENTS"][-1]["text"] = None
    run.range("iteration 9", 99, 100)  # between two, and begins as the one before ends
    assert run.steps_found() == [(10, 95), (95, 195), (195, 295)]


@pytest.mark.parametrize(
    ("selection", "window"),
    [
        *(({"start": "20us", "end": "80us"}, (20, 80)), ({"start": "0.1ms"}, (100, 295))),
        *(({"end": "100000ns"}, (10, 100)), ({"start": "-0.000275", "end": "295us"}, (-275, 295))),
        ({"start": "10us", "end": "580us"}, (10, 580)),  # half of it was not recorded, and no more
    ],
)
def test_times_given_are_the_window(selection: dict[str, Any], window: tuple[int, int]) -> None:
    steps = three().measured(**selection).steps
    assert steps.windows.pairs() == [[US * time for time in window]]
    assert (steps.source, steps.unit, steps.recorded) == ("user", "window", ())


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ({"start": "295us"}, "where nothing ran. GPU activity lies between 0.000010000s and 0.000295000s"),
        ({"start": "-276us", "end": "295us"}, "choose -0.000276000s to 0.000295000s, most of it"),
        *(({"end": "10us"}, "nothing ran"), ({"start": "0", "end": "5"}, "to 5.000000000s, most of it")),
        *(({"nvtx": "iter", "steps": "3:"}, "Recorded are 0 to 2"), ({"steps": "5:9"}, "usable are 0 to 2")),
        *(({"nvtx": "itteration"}, "'iteration'"), ({"nvtx": "qqq"}, "'iteration'")),
    ],
)
def test_what_holds_nothing_is_refused_with_what_there_is(selection: dict[str, Any], words: str) -> None:
    with pytest.raises(EmptySelection) as error:
        three("iteration").measured(**selection)
    assert words in str(error.value)


def test_of_many_ranges_those_of_like_names_are_said_not_the_most_common() -> None:
    run = three("iteration")
    for place in range(12):
        run.range(f"other {'abc'[place % 3]}", 300 + place, 301 + place)
    with pytest.raises(EmptySelection, match="The nearest there are: 'iteration'\\."):
        run.measured(nvtx="itteration")


def test_a_recording_without_ranges_or_steps_says_so() -> None:
    run = Run()
    run.work("gemm", 0, 10)
    run.range("of no text", 0, 5)
    run.recording.rows["NVTX_EVENTS"][0]["text"] = None
    with pytest.raises(EmptySelection, match="The trace has no ranges: "):
        run.measured(nvtx="x")
    with pytest.raises(EmptySelection, match="--steps needs recorded steps"):
        run.measured(steps="0:1")


@pytest.mark.parametrize(("steps", "used", "dropped"), [
    ("1:2", [1], {0: "not in --steps 1:2", 2: "not in --steps 1:2"}),
    (":2", [0, 1], {2: "not in --steps 0:2"}), ("1:", [1, 2], {0: "not in --steps 1:3"}),
    (" 0 : 9 ", [0, 1, 2], {}),
])  # fmt: skip
def test_steps_from_a_up_to_b_are_used(steps: str, used: list[int], dropped: dict[int, str]) -> None:
    found = three().measured(steps=steps).steps
    assert (found.source, found.unit, [step.index for step in found.used]) == ("user", "step", used)
    assert {step.index: step.dropped for step in found.dropped} == dropped


def test_chosen_steps_keep_their_unit_their_hiccups_and_what_other_ways_say() -> None:
    run = Run()
    lengths = [100] * 9
    lengths[5] = 200
    at = 0
    for length in lengths:
        run.step(at, at + length).work("gemm", 0, length - 10)
        at += length
    assert run.measured().steps.slow == (5,)
    assert run.measured(steps="0:6").steps.slow == (5,)
    assert run.measured(steps="6:9").steps.slow == ()
    assert run.measured(steps="0:5").steps.slow == ()


def test_the_extent_and_the_calls_up_to_the_first_kernel_are_of_the_ranks_own_process() -> None:
    run = three()
    run.call("malloc", -300, -290)
    run.range("setup", -350, -340)
    run.process(1).call("malloc", -900, -890)
    run.process(1).range("setup", -950, -940)
    run.call("malloc", 800, 810)  # what the host does when its GPU is done is no part of the run
    run.call("sync", 5, 40)
    run.work("h2d", 6, 9, launch=-295)
    steps = run.measured().steps
    assert steps.extent_ns == (-350 * US, 295 * US)
    assert steps.starting_ns == (10 + 3 + 5) * US  # of memory, of two launches, and up to the kernel
    other = three()
    other.process(1).call("malloc", -300, -290)
    other.call("cudaMallocHost_v3020", -300, -290)
    other.call("malloc", 10, 20)  # as the first kernel begins
    assert other.measured().steps.starting_ns is None


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2", 2_000_000_000), ("1.5s", 1_500_000_000), ("1.5 MS", 1_500_000), ("3us", 3_000), ("7ns", 7),
        ("1e-3", 1_000_000), ("-4us", -4_000), ("+4us", 4_000), ("0.000000001", 1),
    ],
)  # fmt: skip
def test_a_time_is_seconds_or_in_the_unit_that_is_given(text: str, ns: int) -> None:
    assert parse_selection(start=text).start_ns == ns
    assert parse_selection(end=text).end_ns == ns


@pytest.mark.parametrize(
    "given",
    [
        {"start": "0.5ns"}, {"start": "1.2.3"}, {"start": "1h"}, {"start": "."},
        {"steps": "2:2"}, {"steps": "3:2"}, {"steps": ":0"}, {"steps": "-1:2"}, {"steps": "a:b"},
        {"nvtx": "("}, {"start": "4611686018427387904ns"},
        {"steps": "3"}, {"start": "2s", "end": "1s"}, {"start": "2s", "end": "2s"},
        {"end": "1s", "nvtx": "x"}, {"start": "1s", "steps": "0:1"}, {"start": "1s", "steps": "none"},
    ],
)  # fmt: skip
def test_a_choice_that_cannot_be_is_refused_at_once(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        parse_selection(**given)


def test_no_steps_can_be_chosen_and_all_that_was_recorded_is_one_window() -> None:
    run = Run()
    for step in run.steps(3, every=100):
        step.work("gemm", 50, 90)
    assert (len(run.steps_found()), run.steps_found(steps="none")) == (3, [])
    assert run.measured(steps="none").steps.windows.total_ns == run.ns(290) - run.ns(50)


def test_a_long_window_without_steps_is_replayed_in_slices() -> None:
    """Twice as many activities as are replayed whole: 25 in the middle of each of 32 parts, after 25."""
    whole = one_window("none", "", 1_000, 1_000 + 3_200)
    found = sample_of(whole, 2 * int(WHOLE.value))
    assert found.steps == ()
    assert len(found.pairs_ns) == STEPS.value
    assert found.pairs_ns[:2] == ((1_050, 1_075), (1_150, 1_175))
    assert found.stretches.pairs()[:2] == [[1_025, 1_075], [1_125, 1_175]]
    assert set(found.stand_for_ns) == {100}
    assert sample_of(whole, int(WHOLE.value)).pairs_ns == ((1_000, 4_200),)
    four = sample_of(whole, 4 * int(WHOLE.value))
    assert (four.pairs_ns[0], four.stretches.pairs()[0]) == ((1_050, 1_062), [1_038, 1_062])


def long_run(count: int) -> Steps:
    return lasting(*(1_000 + one for one in range(count)))


def test_one_step_more_than_the_limit_makes_a_sample() -> None:
    most = int(STEPS.value)
    few, many = sample_of(long_run(most), 10**9), sample_of(long_run(most + 1), 10**9)
    assert (len(few.steps), len(many.steps)) == (most, most)
    assert few.stand_for_ns == tuple(range(1_000, 1_000 + most))
    # the first group holds two steps, of which the longer stands for both
    assert many.steps[0].index == 1
    assert many.stand_for_ns[0] == 1_000 + 1_001
    assert many.stand_for_ns[1:] == tuple(range(1_002, 1_001 + most))


def test_gaps_between_few_steps_are_replayed_too() -> None:
    steps = lasting(*[100] * (int(STEPS.value) + 1))
    found = sample_of(from_steps("nvtx", "ranges", (steps.recorded[0], *steps.recorded[2:])))
    assert (len(found.steps), found.pairs_ns[:2]) == (STEPS.value, ((0, 100), (200, 300)))
    assert found.stretches.pairs() == [[0, steps.recorded[-1].end_ns]]


def test_the_others_are_spread_over_the_lengths_and_hold_the_median() -> None:
    indexes = [step.index for step in sample_of(long_run(100)).steps]
    assert max(after - before for before, after in pairwise(indexes)) <= 4
    assert any(abs(index - 50) <= 2 for index in indexes)
    assert (indexes[0], indexes[-1]) <= (4, 99)


def test_each_is_replayed_after_the_step_before_it_where_there_is_one() -> None:
    found = sample_of(long_run(100))
    starts = [step.start_ns for step in long_run(100).recorded]
    for step in found.steps:
        before = starts[max(0, step.index - 1)]
        assert any(start <= before and step.end_ns <= end for start, end in found.stretches.pairs())
    (between, *_), (first, second, *_) = found.apart_ns, found.stretches.pairs()
    assert first[1] < between < second[0]


def test_a_gap_before_a_step_is_not_replayed() -> None:
    steps = long_run(100)
    apart = tuple(
        replace(one, start_ns=one.start_ns + 10_000 * one.index, end_ns=one.end_ns + 10_000 * one.index)
        for one in steps.recorded
    )
    found = sample_of(from_steps("nvtx", "ranges", apart))
    assert [tuple(pair) for pair in found.stretches.pairs()] == list(found.pairs_ns)


def test_a_window_beyond_the_recording_is_warned_of() -> None:
    document = three().document(start="0", end="0.5ms")
    assert document["ranks"][0]["budget_ns"]["window"] == 500_000
    assert "215 us beyond" in document["warnings"][0]


def test_a_range_that_was_never_closed_ends_where_the_next_begins() -> None:
    run = three()
    run.recording.rows["NVTX_EVENTS"][1]["end"] = run.ns(5_000)  # as exported: the end of the capture
    assert run.steps_found() == FOUND
    run.range("iteration 9", 100, 101.5)  # begins with it: one within it, and not the next
    assert run.steps_found() == FOUND


def test_ranges_without_gpu_work_are_an_empty_selection() -> None:
    run = three()
    run.range("tail", 9_000, 9_100)
    with pytest.raises(EmptySelection, match="no GPU work was launched in them"):
        run.measured(nvtx="tail")
