"""Tests here ask the installed megatron-core; elsewhere they skip, unless it is said that it must be here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from diagnoser.megatron import check_with_megatron
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request

Ask = Callable[[Sequence[Request]], list[tuple[Answer, Answer]]]


@pytest.fixture(scope="session")
def ask(megatron: None) -> Ask:
    """Ask it, and insist on answers."""

    def asked(requests: Sequence[Request]) -> list[tuple[Answer, Answer]]:
        answers = check_with_megatron(requests)
        assert {config.answer for config, _ in answers} & {"not_checked"} == set()
        return answers

    return asked
