"""The first screen: it fits, whatever recording and terminal, and answers five questions by itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from diagnoser.demo import RECORDINGS, SEVERAL
from heuristics.comparison.enough import enough_steps
from heuristics.result.result import Result
from reports.content.analysis import page
from reports.content.blocks import Command, Detail, Plan, View
from reports.result.codec import decode
from reports.result.read import of_one_run, typed
from reports.write.text import write_text
from tests.doubles.pages import first_screen, flat
from tests.recordings.simulated import scenario
from traces.errors import DamagedTrace, NothingToDiagnose
from traces.spelling import percent

WIDTHS = (60, 80, 120, 200)
LINES = 40
EARLY = 24
"""Lines by which headline, saving and the first thing to do stand."""
HEADLINES = (
    "SLOWED BY",
    "MAY BE SLOWED BY",
    "NO SINGLE CAUSE OF 10 %",
    "NO BOTTLENECK OF 10 % OR MORE",
    "NO BOTTLENECK FOUND SO FAR",
    "NOT A STEADY-STATE RECORDING",
    "NOT JUDGED",
)
SAVING = "Could save at most"
ACTIONS = ("DO THIS", "TO BE CONFIRMED", "STILL FASTER, though nothing is wrong", "WHAT TO DO")
OURS = ("bare", "second-simulator", "third-simulator")
"""Folders of simulated recordings."""
CODE = 7
"""Columns before a line to copy, which may be wider than the terminal: it is never broken."""


@cache
def documents(folder: Path) -> dict[str, dict[str, Any]]:
    """Every recording that needs no tool of its own, by its name, and eight ranks of one run together."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((*folder.rglob("*.sqlite"), *folder.rglob("*.json.gz"))):
        try:
            found[path.name.partition(".")[0]] = diagnoser.analyze(path).to_dict()
        except (NothingToDiagnose, DamagedTrace):  # two files hold no kernels, one nothing at all
            continue
    found["dlrm8"] = diagnoser.analyze(sorted((folder / "added" / "dlrm8").glob("*.gz"))).to_dict()
    return found


def check_fits(document: dict[str, Any], width: int) -> None:
    lines = first_screen(document, width).splitlines()
    assert len(lines) <= LINES
    early = lines[:EARLY]
    assert any(line.startswith(HEADLINES) for line in early)
    assert any(line.startswith(SAVING) for line in early)
    place = next(at for at, line in enumerate(lines, start=1) if line.startswith(ACTIONS))
    planned = bool(document["fixes"] or document["levers"])
    assert place + 1 <= EARLY
    has_step = lines[place].startswith("  1  ")
    assert has_step == (not lines[place - 1].startswith("WHAT TO DO"))
    assert has_step or not planned
    for line in lines[:-1]:
        assert len(line) <= width or line.startswith(" " * CODE) or " " not in line.strip()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_screen_of_every_recording_fits_and_says_what_matters_early(
    recordings: Path, width: int
) -> None:
    for document in documents(recordings).values():
        check_fits(document, width)


def test_no_recording_hears_of_no_bottleneck_while_a_tenth_of_its_time_is_no_compute(
    recordings: Path,
) -> None:
    for name, document in documents(recordings).items():
        window_ns = sum(rank["budget_ns"]["window"] for rank in document["ranks"])
        for bucket in ("exposed_comm", "exposed_copy", "idle"):
            unused_ns = sum(rank["budget_ns"][bucket] or 0 for rank in document["ranks"])
            if unused_ns >= 0.1 * window_ns:
                assert "NO BOTTLENECK" not in first_screen(document), name


def test_no_wall_of_a_recording_is_left_without_a_step_to_take(recordings: Path) -> None:
    for name, document in documents(recordings).items():
        if document["verdict"]["wall"] is not None:
            assert re.search(r"^  1  \w", first_screen(document), re.MULTILINE), name


def test_memory_is_judged_in_four_of_five_recordings_of_others(recordings: Path) -> None:
    """What is not judged holds too few kernels, graphs recorded whole, or no name that tells backward."""
    ours = {path.name.partition(".")[0] for folder in OURS for path in (recordings / folder).iterdir()}
    found = [
        next(wall["outcome"] for wall in document["walls"] if wall["id"] == "memory")
        for name, document in documents(recordings).items()
        if name not in ours
    ]
    assert sum(outcome != "unmeasurable" for outcome in found) >= 0.8 * len(found) > 20


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [name for name in RECORDINGS if name not in SEVERAL])
def test_the_first_screen_of_every_scenario_fits_and_says_what_matters_early(name: str, width: int) -> None:
    check_fits(scenario(name), width)


@pytest.mark.parametrize("rows", [40, 60, 100])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [name for name in RECORDINGS if name not in SEVERAL])
def test_what_is_to_be_typed_is_whole_in_a_terminal_of_any_size(name: str, width: int, rows: int) -> None:
    shown = page(decode(scenario(name), Result), Detail.FIRST, rows)
    text = flat(write_text(shown, View(width, rows)).replace("\\\n", ""))
    (plan,) = (block for block in shown.blocks if isinstance(block, Plan))
    (command,) = (block for block in shown.blocks if isinstance(block, Command))
    assert flat(command.line) in text
    for step in plan.steps:
        if f"[{step.id}]" in text:
            assert all(flat(line) in text for one in step.in_use for line in one.code.lines)


def test_where_all_walls_are_clear_nothing_is_to_be_done(recordings: Path) -> None:
    text = flat(first_screen(documents(recordings)["nsysai_mfu_2gpu_before"], 80))
    assert "WHAT TO DO Nothing in this recording calls for a change." in text


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_last_line_is_the_next_command(name: str) -> None:
    """Where no change is planned, here for pauses whose cause nothing shows, there is none to compare.

    Where steps are too few or vary too much for a comparison, more are recorded first, unless only logs hold
    enough.
    """
    document = scenario(name)
    found = enough_steps(of_one_run(typed(document)))
    command = (
        ("compare" if found.decides or found.record is None else "capture")
        if document["fixes"] or document["levers"]
        else "doctor"
    )
    assert f"moe-diag {command}" in flat(first_screen(document))[-120:]


@dataclass(frozen=True)
class Answers:
    """Five questions of one recording, each answered by a phrase that can be argued without this program."""

    slow: str
    much: str
    sure: str
    do: str
    not_obvious: str


ASKED = {
    # 91 % of the three passes after warm-up are ampere_sgemm kernels: FP32 on an A100, whose TF32 peak is 8
    # times as high (156 / 19.5 TFLOP/s), so 7/8 of it could go. Nothing shows that a pass is a step.
    "a100_llm_2_7B_nvtx": Answers(
        "SLOWED BY GEMMs without tensor cores", "80 %", "Confidence medium",
        'set_float32_matmul_precision("high")', "Host overhead 0.485 0.1 %",
    ),
    # 275 of 873 ms are rows of the profiler's overhead, 34 ms first launches and loads; no range names steps.
    "h100_llm_1rank": Answers(
        "NOT A STEADY-STATE RECORDING", "take 309 ms (35 %) of 873 ms", "Confidence low",
        "moe-diag capture --for walls", "GEMMs without tensor cores (35 %)",
    ),
    # Copies to the GPU run 921 of 969 ms on each of two GPUs, compute 22 ms.
    "nsysai_h100_2gpu_1s": Answers(
        "SLOWED BY copies from host memory", "91 %", "Confidence medium: no steps were found",
        "cpu_offload=None", "Host overhead 1.67 0.2 %",
    ),
    # One long compilation and pauses around a forward pass: no backward kernel, so no plan for training.
    "fuser_h200_2025": Answers(
        "NOT A STEADY-STATE RECORDING", "872 ms (27 %)", "Confidence low", "Record again:",
        "Not a training step",
    ),
    # Four kernels, copies of 92 ms in all, and 20 ms of the profiler and of start-up.
    "edge_2026_tiny": Answers(
        "NOT A STEADY-STATE RECORDING", "20.3 ms (20 %) of 102 ms", "4 kernels and no step: too few",
        "Record whole steps of the run", "copies 91.7",
    ),
    # Kernels run 18 % of three steps; the launching thread is in no CUDA call for most of the rest. The
    # all-reduce, first of the kernels, costs nothing: compute never waits for it. Memory is judged: backward
    # kernels (`bn_bw`, `wgrad`) are no second forward.
    "hta_nccl_parser_config_nccl_data": Answers(
        "SLOWED BY host overhead, mostly Python and host code", "81 %", "Confidence high",
        'torch.compile(model, mode="reduce-overhead")', "Communication 0 0 %",
    ),
    # By the simulator's re-execution: communication 32.4 %, next compute 4.6 %; five steps.
    "plain_02": Answers(
        "SLOWED BY expert all-to-all", "32 %", "Confidence medium", "--moe-token-dispatcher-type flex",
        "Compute 0.362 4.6 %",
    ),
    # By re-execution: memory 31.7 % (cudaFree and cudaMalloc in every step), host 19.0 %; two steps.
    "allocator_02": Answers(
        "SLOWED BY allocator calls (32 %)", "32 %", "only 2 steps",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "host code (19 %)",
    ),
    # By re-execution: compute 55.0 % (GEMMs with fewer blocks than SMs), communication 26.7 %.
    "exposed_gather_05": Answers(
        "SLOWED BY GEMMs too small to fill the GPU (55 %)", "82.4 55 %", "Confidence high",
        "Use larger GEMM shapes", "data parallelism (27 %)",
    ),
    # By re-execution: communication 25.1 %, half of it experts', half the gather; memory 20.4 %; two steps.
    "far_ahead_01": Answers(
        "SLOWED BY communication, mostly expert all-to-all (25 %)", "memory, mostly recompute (20 %)",
        "Confidence low: only 2 steps", "saves", "expert all-to-all, data parallelism",
    ),
    # By re-execution: communication 8.2 % at most, all other walls under 3 %, of three steps; the first is
    # 10 % slower than the two others, which are alike.
    "plain_05": Answers(
        "NO BOTTLENECK OF 10 % OR MORE", "at most 8.7 %", "Memory 0 0 %",
        "Use larger GEMM shapes", "Largest part: compute, 89 %",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_five_questions_are_answered_from_the_first_screen_alone(recordings: Path, name: str) -> None:
    """What is slow, how much, how sure, what to do, and why not the obvious."""
    text, asked = flat(first_screen(documents(recordings)[name])), ASKED[name]
    bare = " ".join(word for word in text.split() if set(word) != {"#"})
    for phrase in (asked.slow, asked.much, asked.sure, asked.do, asked.not_obvious):
        assert phrase in bare


def test_the_simulators_truth_is_what_the_screen_says(recordings: Path) -> None:
    """Shares of the headline against the re-execution of the same program without the handicap."""
    truth = json.loads((recordings / "second-simulator" / "truth.json").read_text(encoding="utf-8"))
    for name in ("plain_02", "allocator_02", "exposed_gather_05"):
        true = truth[f"{name}.sqlite"]
        assert f"({percent(true['saving_frac'][true['wall']])})" in first_screen(documents(recordings)[name])


def test_routing_that_is_forced_even_is_said_with_what_it_hides() -> None:
    document = {**scenario("healthy"), "given": {"routing": "force_balance"}}
    text = flat(first_screen(document))
    assert "Routing is forced to balance" in text
    assert "32 % MFU balanced, 15 % with its learned router (marin#7668)" in text
    assert "Routing is forced" not in first_screen(scenario("healthy"))


def apart(document: dict[str, Any]) -> dict[str, Any]:
    """With fixes of which each acts on a kind of its own, so that each is a step."""
    return {**document, "fixes": [{**fix, "acts_on": {}} for fix in document["fixes"]]}


def test_listed_steps_have_one_replayed_figure_together_and_never_a_sum() -> None:
    document = apart(scenario("memory"))
    ids = [fix["id"] for fix in document["fixes"][:3]]
    combined = {**document, "combined": [{"ids": ids, "gain_frac": [0.1, 0.25]}]}
    assert "All three together save 10-25 %." in first_screen(combined)
    assert "together" not in first_screen(document).partition("DO THIS")[2]


def test_where_only_pairs_were_replayed_the_best_pair_of_the_listed_steps_is_said() -> None:
    document = apart(scenario("memory"))
    first, second, third, fourth, *_ = [fix["id"] for fix in document["fixes"]]
    pairs = [
        {"ids": [first, second], "gain_frac": [0.1, 0.25]},
        {"ids": [third, first], "gain_frac": [0.2, 0.3]},
        {"ids": [first, fourth], "gain_frac": [0.4, 0.5]},
    ]
    text = flat(first_screen({**document, "combined": pairs}))
    assert "1 and 3 together save 20-30 %; savings overlap." in text


def test_a_precondition_that_breaks_the_change_stands_before_one_that_only_wins_nothing() -> None:
    document = scenario("communication")
    fix = document["fixes"][0]
    unset = {"text": "it is off so far", "state": "unknown", "cure": "the configuration"}
    old = {"text": "Megatron-Core >= 0.14.0", "state": "unknown", "cure": "--core-version"}
    unmet = {"text": "experts are spread", "state": "unmet", "cure": ""}
    for needs, said in (([unset, old], "Check: Megatron-Core >= 0.14.0"), ([old, unmet], "Needs: experts")):
        changed = {**fix, "after": [], "preconditions": needs}
        assert said in first_screen({**document, "fixes": [changed]})


def test_what_no_reason_lowers_is_sure_without_an_excuse() -> None:
    assert "Confidence high.\n" in first_screen(scenario("compute"))


def test_shares_of_what_start_up_leaves_are_named_so(recordings: Path) -> None:
    text = first_screen(documents(recordings)["h100_llm_1rank"])
    assert "of rest" in text
    assert "Confidence low: start-up is part of it, and no steps were found" in text


def test_a_wall_without_a_cost_is_nothing_where_its_bound_is_nothing() -> None:
    assert "Memory 0 0 %" in flat(first_screen(scenario("healthy")))


def test_several_ranks_are_one_line_with_their_spread(recordings: Path) -> None:
    lines = first_screen(documents(recordings)["dlrm8"]).splitlines()
    (line,) = [line for line in lines if line.startswith("8 of 8 ranks")]
    assert "steps of 11.0 to 18.6 ms" in line  # each rank has one ProfilerStep, which is a step
    assert "96 % of communication time is waiting" in line
