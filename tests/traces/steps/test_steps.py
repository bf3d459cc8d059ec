"""Steps and windows: what is taken for a step, and where it begins and ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import diagnoser
from bench.simulate.recording import Recording
from traces.errors import EmptySelection, UsageError
from traces.steps.found import Step, from_steps
from traces.steps.rules import alternate, leave_out_hiccups, leave_out_partial, leave_out_warm_up
from traces.steps.selection import parse_selection

Export = Callable[..., Path]
US = 1_000


def gemm(
    recording: Recording, start_us: int, end_us: int, launch_us: int, stream: int = 7, tid: int = 1000
) -> None:
    name = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
    recording.kernel(name, start_us * US, end_us * US, launch_ns=launch_us * US, stream=stream, tid=tid)


def three_steps(text: str = "iteration {}", tid: int | None = None) -> Recording:
    """Three steps of 100 us: launched at +0, kernels at +10..+60 and +70..+95."""
    recording = Recording()
    for step in range(3):
        begin = 1_000 + 100 * step
        recording.range(text.format(step), begin * US, (begin + 99) * US, tid=tid)
        gemm(recording, begin + 10, begin + 60, begin + 1)
        gemm(recording, begin + 70, begin + 95, begin + 2)
    return recording


def rank_of(path: Path, **selection: str | int) -> dict[str, object]:
    rank: dict[str, object] = diagnoser.analyze(path, **selection).to_dict()["ranks"][0]  # type: ignore[arg-type]
    return rank


def used(rank: dict[str, object]) -> list[list[int]]:
    steps = rank["steps"]
    assert isinstance(steps, dict)
    return [[step["start_ns"] // US, step["end_ns"] // US] for step in steps["used"]]


def test_a_step_begins_where_the_last_one_left_the_gpu_free(export: Export) -> None:
    rank = rank_of(export(three_steps()))
    assert rank["steps"]["source"] == "nvtx"  # type: ignore[index]
    # before the first step nothing was launched: it begins with its first kernel, the others with their wait
    assert used(rank) == [[1010, 1095], [1095, 1195], [1195, 1295]]
    assert rank["windows_ns"] == [[1010 * US, 1295 * US]]


def test_a_step_begins_with_its_own_kernel_where_older_work_still_runs(export: Export) -> None:
    recording = three_steps()
    # launched in step 0, ends within step 1
    recording.copy("d2h", 1050 * US, 1120 * US, size_bytes=8, launch_ns=1003 * US, stream=9)
    assert used(rank_of(export(recording)))[:2] == [[1010, 1110], [1110, 1195]]


def test_kernels_that_autograd_launches_within_the_range_belong_to_the_step(export: Export) -> None:
    recording = three_steps()
    for step in range(3):
        for part in range(5):
            at = 1_060 + 100 * step + 2 * part
            gemm(recording, at, at + 1, at - 30, tid=1001, stream=8)
    assert rank_of(export(recording))["steps"]["source"] == "nvtx"  # type: ignore[index]


def test_step_names_of_a_data_loader_are_no_steps(export: Export) -> None:
    recording = three_steps("loader step {}", tid=1777)
    assert rank_of(export(recording))["steps"]["source"] == "none"  # type: ignore[index]


def test_a_name_that_encloses_less_than_half_of_the_kernels_is_no_step(export: Export) -> None:
    recording = three_steps()
    for number in range(10):
        gemm(recording, 2_000 + 10 * number, 2_005 + 10 * number, 1_990 + 10 * number)
    assert rank_of(export(recording))["steps"]["source"] == "none"  # type: ignore[index]


def test_work_launched_between_two_ranges_is_part_of_no_step(export: Export) -> None:
    recording = Recording()
    for step in range(3):
        begin = 1_000 + 200 * step
        recording.range(f"iteration {step}", begin * US, (begin + 100) * US)
        gemm(recording, begin + 10, begin + 60, begin + 1)
        gemm(recording, begin + 70, begin + 90, begin + 2)
    gemm(recording, 1_120, 1_190, 1_110)  # an evaluation after step 0
    # step 0 ends with its last kernel; step 1 begins when the evaluation has left the GPU free
    assert used(rank_of(export(recording))) == [[1010, 1090], [1190, 1290], [1290, 1490]]


def test_registered_texts_give_the_same_steps(export: Export) -> None:
    recording = Recording()
    for step in range(2):
        begin = 1_000 + 100 * step
        recording.range(f"iteration {step}", begin * US, (begin + 99) * US, registered=True)
        gemm(recording, begin + 10, begin + 60, begin + 1)
    assert used(rank_of(export(recording))) == [[1010, 1060], [1060, 1160]]


def test_steps_from_a_to_b_leave_the_others_out_by_name(export: Export) -> None:
    rank = rank_of(export(three_steps()), steps="1:3")
    assert used(rank) == [[1095, 1195], [1195, 1295]]
    assert rank["steps"]["source"] == "user"  # type: ignore[index]
    assert [(step["index"], step["reason"]) for step in rank["steps"]["dropped"]] == [  # type: ignore[index]
        (0, "not in --steps 1:3")
    ]


def test_each_match_of_a_users_expression_is_a_step_and_nested_ones_are_not(export: Export) -> None:
    recording = three_steps("batch {}")
    recording.range("batch inner", 1_010 * US, 1_020 * US)
    assert used(rank_of(export(recording), nvtx="batch")) == [[1010, 1095], [1095, 1195], [1195, 1295]]


def test_times_cut_kernels_exactly(export: Export) -> None:
    rank = rank_of(export(three_steps()), start="1020us", end="1.080ms")
    assert rank["windows_ns"] == [[1020 * US, 1080 * US]]
    assert rank["budget_ns"]["compute"] == 50 * US  # type: ignore[index]
    assert rank["budget_ns"]["idle"] == 10 * US  # type: ignore[index]


def test_a_window_beyond_the_recording_is_warned_of(export: Export) -> None:
    path = export(three_steps())
    document = diagnoser.analyze(path, start="0.9ms", end="1.4ms").to_dict()
    assert document["ranks"][0]["budget_ns"]["window"] == 500 * US
    assert "215 us beyond" in document["warnings"][0]


@pytest.mark.parametrize(
    ("selection", "hint"),
    [
        ({"steps": "7:9"}, "Recorded are 0 to 2"),
        ({"nvtx": "iterations"}, "'iteration N'"),
        ({"start": "5s"}, "between 0.001010000s and 0.001295000s"),
        ({"gpu": 3}, "kernels ran on GPU 0"),
        ({"rank": 1}, "no rank is recorded"),
    ],
)
def test_an_empty_selection_names_the_nearest_there_is(
    export: Export, selection: dict[str, str | int], hint: str
) -> None:
    with pytest.raises(EmptySelection) as error:
        rank_of(export(three_steps()), **selection)
    assert hint in str(error.value)


@pytest.mark.parametrize(
    "words",
    [
        {"steps": "3"},
        {"steps": "4:2"},
        {"nvtx": "("},
        {"start": "soon"},
        {"start": "0.0000000001s"},
        {"start": "2s", "end": "1s"},
        {"start": "1s", "steps": "0:1"},
    ],
)
def test_a_selection_that_cannot_be_is_refused(words: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        parse_selection(**words)  # type: ignore[arg-type]


def steps_of(lengths: list[int]) -> list[Step]:
    return [Step(index, 1_000 * index, 1_000 * index + length) for index, length in enumerate(lengths)]


def test_of_few_named_steps_one_with_an_evaluation_in_it_is_a_hiccup() -> None:
    steps = leave_out_partial(steps_of([100, 300, 100]), [40, 120, 40])
    found = leave_out_hiccups(from_steps("nvtx", "", tuple(steps)))
    assert (found.slow, found.lengths_ns()) == ((1,), [100, 100])
    alike = leave_out_partial(steps_of([100, 300, 100]), [40, 40, 40])
    assert leave_out_hiccups(from_steps("nvtx", "", tuple(alike))).slow == ()


def test_a_step_with_fewer_kernels_is_partial_wherever_it_stands() -> None:
    steps = leave_out_partial(steps_of([100, 100, 50, 100]), [40, 40, 37, 40])
    assert [step.dropped for step in steps] == [
        None,
        None,
        "partial: 37 kernels where the others have 40",
        None,
    ]
    assert all(step.dropped is None for step in leave_out_partial(steps_of([100, 100]), [40, 39]))


def test_whole_steps_hold_no_more_than_the_others_because_the_last_one_was_cut() -> None:
    first, second, cut = leave_out_partial(steps_of([100, 110, 50]), [40, 40, 20])
    assert cut.dropped == "partial: 20 kernels where the others have 40"
    assert (first.has_more, second.has_more) == (False, False)


def test_one_hiccup_moves_nothing_but_its_own_line() -> None:
    usual, hiccup = [30_000_000] * 58, 69_600_000
    steps = [Step(i, i * 10**8, i * 10**8 + ns) for i, ns in enumerate([*usual[:20], hiccup, *usual[20:]])]
    found = leave_out_hiccups(from_steps("nvtx", "NVTX range", tuple(steps)))
    assert (found.lengths_ns(), found.windows.total_ns, found.slow) == (usual, 58 * 30_000_000, (20,))
    assert found.hiccups_ns == 39_600_000


def test_steps_that_alternate_have_neither_hiccup_nor_warm_up() -> None:
    lengths = [500, 100, 400, 100, 400, 100, 400, 100, 400]
    steps = tuple(Step(i, i * 1_000, i * 1_000 + ns) for i, ns in enumerate(lengths))
    assert leave_out_warm_up(list(steps), [0] * 9) == list(steps)
    assert leave_out_hiccups(from_steps("nvtx", "NVTX range", steps)).slow == ()


def test_a_first_step_far_beyond_a_rhythm_is_warm_up_as_a_first_batch_makes_it() -> None:
    lengths = [810, 100, 400, 100, 400, 100, 400, 100, 400]
    assert leave_out_warm_up(steps_of(lengths), [0] * 9)[0].dropped == "warm-up: 224 % slower than the rest"
    assert leave_out_warm_up(steps_of([800, *lengths[1:]]), [0] * 9)[0].dropped is None


@pytest.mark.parametrize(
    ("slow", "hiccups"),
    [
        ((5, 10, 15), ()),  # every fifth of 16: five workers load
        ((0, 7, 14), ()),  # of seven, the first round late already
        ((5, 10), (5, 10)),  # two at one distance may be chance
        ((2, 5, 8), (2, 5, 8)),  # at equal distances, but not to the end
        ((5, 10, 14), (5, 10, 14)),
    ],
)
def test_every_so_many_th_step_slow_from_end_to_end_is_a_rhythm(
    slow: tuple[int, ...], hiccups: tuple[int, ...]
) -> None:
    lengths = [300 if place in slow else 100 for place in range(16)]
    found = leave_out_hiccups(from_steps("nvtx", "NVTX range", tuple(steps_of(lengths))))
    assert found.slow == hiccups


def test_a_slow_first_step_is_warm_up_where_the_others_do_not_share_it() -> None:
    slow = [130, 100, 101, 99, 100, 100, 101, 99]
    assert leave_out_warm_up(steps_of(slow), [0] * 8)[0].dropped == "warm-up: 30 % slower than the rest"
    assert leave_out_warm_up(steps_of(slow[:7]), [0] * 7)[0].dropped is not None
    noisy = [130, 100, 140, 80, 120, 100, 135, 90]
    assert leave_out_warm_up(steps_of(noisy), [0] * 8)[0].dropped is None


@pytest.mark.parametrize(
    ("lengths", "initialising", "left_out"),
    [
        ([130, 100, 100], [0, 0, 0], True),  # two others are alike and do not share it
        ([130, 90, 110], [16, 0, 0], True),
        ([130, 90, 110], [15, 0, 0], False),  # half of what it takes more is not over half
        ([130, 90, 110], [26, 10, 10], True),
        ([130, 90, 110], [25, 10, 10], False),  # every step allocates as much
        ([130, 100, 131], [30, 0, 0], False),  # not the longest
        ([1_300, 900, 1_000, 1_100], [0, 0, 0, 0], False),  # others vary by a third of what it takes more
        ([130, 100], [30, 0], True),
        ([130, 100], [15, 0], False),
    ],
)
def test_a_slow_first_step_is_warm_up_where_others_are_alike_or_it_initialises(
    lengths: list[int], initialising: list[int], left_out: bool
) -> None:
    first = leave_out_warm_up(steps_of(lengths), initialising)[0]
    assert (first.dropped == "warm-up: 30 % slower than the rest") == left_out


def test_what_a_first_step_takes_more_may_be_so_much_that_the_others_are_alike_beside_it() -> None:
    """A benchmark's first call: quarters of the others lie 3 apart, and it takes over 580 more than they."""
    first = leave_out_warm_up(steps_of([614, 40, 32, 30, 33]), [0] * 5)[0]
    assert first.dropped == "warm-up: 1789 % slower than the rest"


def test_one_step_that_is_far_from_the_others_is_no_rhythm() -> None:
    assert not alternate([100, 100, 140])
    assert alternate([100, 140, 100, 140, 100])


def test_what_more_than_one_step_in_five_does_is_no_hiccup() -> None:
    def slow_of(lengths: list[int]) -> tuple[int, ...]:
        return leave_out_hiccups(from_steps("nvtx", "NVTX range", tuple(steps_of(lengths)))).slow

    assert slow_of([100] * 8 + [115, 115]) == (8, 9)
    assert slow_of([100] * 7 + [115, 115, 115]) == ()


def test_time_of_the_recording_outside_its_steps_is_said_by_place(export: Export) -> None:
    """Steps from 1,010 to 1,295 us; a call at 300 us before, a kernel of an evaluation to 1,600 after."""
    recording = three_steps()
    recording.call("cudaMalloc", 300 * US, 310 * US)
    recording.kernel("gemm", 1_500 * US, 1_600 * US, launch_ns=1_490 * US)
    found = rank_of(export(recording))["steps"]["outside_ns"]  # type: ignore[index]
    assert found == {"before_ns": 710 * US, "between_ns": 0, "after_ns": 305 * US}


def test_communication_without_compute_keeps_its_window(export: Export) -> None:
    recording = Recording()
    for step in range(3):
        begin = 1_000 + 100 * step
        recording.range(f"iteration {step}", begin * US, (begin + 99) * US)
        recording.kernel(
            "ncclDevKernel_SendRecv(int)", (begin + 10) * US, (begin + 60) * US, launch_ns=begin * US
        )
    rank = rank_of(export(recording))
    assert rank["budget_ns"]["window"] > 0  # type: ignore[index]
    assert rank["budget_ns"]["idle"] >= 0  # type: ignore[index]
    assert all(start < end for start, end in used(rank))


def test_of_two_threads_with_step_names_the_one_that_launches_the_kernels_decides(export: Export) -> None:
    recording = three_steps("train_step_{}")
    for step in range(4):
        begin = 950 + 100 * step
        recording.range(f"step {step}", begin * US, (begin + 100) * US, tid=1777)
        recording.copy("h2d", begin * US, (begin + 1) * US, size_bytes=8, launch_ns=begin * US, tid=1777)
    steps = rank_of(export(recording))["steps"]
    assert steps["what"] == 'NVTX range "train_step_N"'  # type: ignore[index]


def test_a_range_that_was_never_closed_ends_where_the_next_begins(export: Export) -> None:
    recording = three_steps()
    recording.rows["NVTX_EVENTS"][0]["end"] = 5_000 * US  # as exported: the end of the capture
    assert used(rank_of(export(recording))) == [[1010, 1095], [1095, 1195], [1195, 1295]]


def test_ranges_without_gpu_work_are_an_empty_selection(export: Export) -> None:
    recording = three_steps()
    recording.range("tail", 9_000 * US, 9_100 * US)
    with pytest.raises(EmptySelection, match="no GPU work was launched in them"):
        rank_of(export(recording), nvtx="tail")


def test_a_window_that_is_mostly_unrecorded_is_refused(export: Export) -> None:
    with pytest.raises(EmptySelection, match="a number without unit is seconds"):
        rank_of(export(three_steps()), start="0", end="5")
