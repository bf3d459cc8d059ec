"""Rounds, each of which ends as the host reads a result: a token that is sampled, a residual."""

from __future__ import annotations

import pytest

from tests.traces.steps.test_steps_without_nvtx import US, Train
from traces.steps.found import Steps

TOKEN = ("gemm", "attention", "gemm", "add") * 5


def read(*rounds: tuple[str, ...]) -> Steps:
    """Rounds of kernels of 10 us, with as much for the read at the end of each."""
    train = Train()
    for kernels in rounds:
        train.run(*kernels, "d2h")
    train.run("add")
    return train.steps()


def test_what_the_host_reads_once_a_token_cuts_tokens_after_a_longer_prompt() -> None:
    steps = read(TOKEN * 3, TOKEN, (*TOKEN, "add"), TOKEN, TOKEN)
    assert (steps.source, steps.unit) == ("period", "block")
    assert steps.what == "20 kernels, from one read of results by the host to the next"
    assert [step.length_ns // US for step in steps.used] == [210, 220, 210, 210]
    assert [step.dropped for step in steps.dropped] == [
        "other work: 33 % of its kernels are as in the others"
    ]


def test_reads_that_take_turns_are_of_one_round() -> None:
    steps = read(*(TOKEN, ("add",), ("gemm", "gemm")) * 6)
    assert [step.length_ns // US for step in steps.used] == [260] * 6  # 23 kernels and 3 reads


@pytest.mark.parametrize(
    "rounds",
    [
        (TOKEN, TOKEN[:13]),  # two are no round
        (TOKEN, ("add",) * 20, ("attention",) * 20, TOKEN),  # of unlike work
        (("gemm", "attention", "gemm", "add"),) * 5,  # maybe layers that read their counts of tokens
        (("gemm",), (), ("attention", "add"), ("gemm", "gemm", "add")),  # too few
    ],
)
def test_other_reads_cut_nothing(rounds: tuple[tuple[str, ...], ...]) -> None:
    assert not read(*rounds).used
