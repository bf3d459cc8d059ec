"""Every pair of recordings of others: compared where a person would compare them, refused where not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

import diagnoser
from heuristics.comparison.comparable import judge_comparable
from heuristics.comparison.comparison import compare
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.witnesses import weigh
from heuristics.result.compared import Comparable
from heuristics.result.result import Result
from tests.doubles.comparison import read_back
from tests.recordings.renamed_kernels import CONTAINER, PRECISION, Change, with_kernels
from traces.errors import MoeDiagError
from traces.missing import gap
from traces.sections.rank import Rank

FOLDERS: Final = ("", "real", "bare", "added", "added/dlrm8")
FAMILIES: Final = (
    {"a100_llm_2_7B_clean", "a100_llm_2_7B_cudagraph", "a100_llm_2_7B_nvtx"},
    {"hackathon_mnist_0_baseline", "hackathon_mnist_1_nvtx", "hackathon_mnist_2_workers"},
    {"resnet50_workers0", "resnet50_workers4"},
    {"overlap-edges-43", "overlap-edges-44-nvtx"},
    {f"worker{rank}" for rank in range(8)},
)
"""Recordings of one program, by what their READMEs say; of two programs all others."""
_UNKNOWN: Final = gap("left out, so that work alone tells two programs apart", "none")


@pytest.fixture(scope="module")
def analyzed(recordings: Path) -> dict[str, Result]:
    return dict(_recordings(recordings))


def _recordings(folder: Path) -> Iterator[tuple[str, Result]]:
    for below in FOLDERS:
        for path in sorted((folder / below).iterdir()):
            if path.name.endswith((".sqlite", ".json.gz")):
                try:
                    yield path.name.split(".")[0], read_back(diagnoser.analyze(path))
                except MoeDiagError:
                    continue  # holds no kernels


def judged(base: Result, new: Result) -> Comparable:
    return judge_comparable(Subject(base, base.ranks[0]), Subject(new, new.ranks[0]))


def without_its_gpu(one: Result) -> Result:
    def hidden(rank: Rank) -> Rank:
        return replace(rank, gpu=_UNKNOWN, sm=replace(rank.sm, sm_count=_UNKNOWN))

    return replace(one, ranks=tuple(map(hidden, one.ranks)), given={})


def one_program(base: str, new: str) -> bool:
    return any({base, new} <= family for family in FAMILIES)


def wrong(sides: dict[str, Result]) -> list[tuple[str, str]]:
    """Pairs that are compared though they are of two programs, or refused though they are of one."""
    return [
        (base, new)
        for base, new in combinations(sides, 2)
        if (judged(sides[base], sides[new]).state != "no") != one_program(base, new)
    ]


def test_recordings_are_compared_where_they_are_of_one_program(analyzed: dict[str, Result]) -> None:
    assert wrong(analyzed) == []


def test_work_alone_tells_programs_apart_though_no_gpu_is_known(analyzed: dict[str, Result]) -> None:
    assert wrong({name: without_its_gpu(one) for name, one in analyzed.items()}) == []


def test_swapped_sides_are_weighed_the_same(analyzed: dict[str, Result]) -> None:
    sides = {name: Subject(one, one.ranks[0]) for name, one in analyzed.items()}
    for base, new in combinations(sides, 2):
        assert weigh(sides[base], sides[new]) == weigh(sides[new], sides[base]), (base, new)


def test_a_graph_recorded_whole_is_compared_by_the_length_of_a_block(analyzed: dict[str, Result]) -> None:
    """Ten blocks of 843 ms in kernels, then ten replays of 781 ms: 7.4 % less, by one cause."""
    found = compare(analyzed["a100_llm_2_7B_clean"], analyzed["a100_llm_2_7B_cudagraph"])
    assert found.verdict == "improvement"
    assert round(found.size.delta_frac, 3) == -0.074
    assert [one.row for one in found.attribution] == ["busy", "launch_latency.kernel_gap", "noise"]
    assert found.kernels == ()
    assert [one.id for one in found.suspects] == ["graphs_whole"]
    assert (found.base.steps.unit, found.new.steps.unit) == ("block", "replay")


def test_more_workers_of_a_loader_are_compared_though_copies_are_fewer(analyzed: dict[str, Result]) -> None:
    found = compare(analyzed["resnet50_workers0"], analyzed["resnet50_workers4"])
    assert (found.verdict, found.comparable.state) == ("improvement", "yes")
    assert found.attribution[0].row == "launch_starved.data"


@pytest.mark.parametrize("change", [CONTAINER, PRECISION])
def test_a_program_whose_kernels_were_renamed_is_the_same_program(
    analyzed: dict[str, Result], change: Change
) -> None:
    """Where a step tells its work: a window of a few kernels has nothing but their names."""
    wrong = []
    for name, one in analyzed.items():
        rank = one.ranks[0]
        renamed = replace(one, ranks=(with_kernels(rank, change), *one.ranks[1:]))
        found = judged(one, renamed)
        if rank.steps.found and rank.steps.unit != "replay" and found.state == "no":
            wrong.append((name, [(each.what, each.because) for each in found.differences]))
    assert wrong == []
