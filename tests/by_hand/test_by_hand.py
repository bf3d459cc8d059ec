"""A hand-made run of uneven ranks, the words of hand-made runs, and the example of how to add one."""

from __future__ import annotations

from collections.abc import Callable

from tests.by_hand.names import KERNELS
from tests.by_hand.run import ranks
from tests.places import ROOT
from traces.names.kernels import classify_kernel


def test_of_uneven_ranks_the_one_that_computes_longer_makes_the_other_wait() -> None:
    run = ranks(2)
    for rank, compute in zip(run, (90, 50), strict=True):
        for step in rank.steps(8, every=100):
            step.work("gemm", 0, compute)
            step.work("all_reduce", compute, 100, stream=20)
    assert [rank.budget()["exposed_comm.all_reduce"] for rank in run] == [8 * 10, 8 * 50]
    found = run[0].document(run[1])["run"]
    assert (found["late"]["rank"], found["late"]["cost_ns"]) == (0, 40_000)
    assert [one["waited_ns"] for one in found["ranks"]] == [0, 40_000]  # in a step, as the median


def test_every_word_is_a_kernel_that_rules_name() -> None:
    classes = {word: classify_kernel(name).class_ for word, name in KERNELS.items()}
    assert "other" not in classes.values()
    moves = {"all_reduce", "all_gather", "reduce_scatter", "send_recv", "dispatch", "combine"}
    assert {word for word, one in classes.items() if one == "comm"} == moves | {"layout", "token_counts"}


def test_the_example_of_contributing_holds_as_it_is_written() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Add a hand-made run")[2]
    names: dict[str, Callable[[], None]] = {}
    exec(section.split("```")[1].removeprefix("python"), names)  # our own text
    (example,) = (name for name in names if name.startswith("test_"))
    names[example]()
