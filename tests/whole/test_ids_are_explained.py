"""No output prints an id that `explain` does not know, nor one advice twice: over all golden cases."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import pytest

from heuristics.config.about import Given
from heuristics.evidence.symptoms import Symptoms, observed_from
from heuristics.judging.judgement import FilesRead, judge_observed
from reports.content.analysis.check import page
from reports.content.blocks import Block, Code, Fold, Items, Part, Words
from reports.content.explain.page import explain_page
from reports.content.page import Detail
from reports.result.codec import encode
from tests.configurations.golden import Case, cases, of_case
from tests.doubles.runs import BOTH
from tests.read_back.plain_page import plain
from traces.errors import UsageError

CASES = [case for case in cases() if "error" not in case.expected]
KEYS = {"id", "rule", "other_rule", "fix", "fix_id", "same_as", "before", "shares_with", "after", "ids"}
"""Keys of the document that hold ids."""
NUMBERED = re.compile(r"\b(?:CFG|ENV|MEM|COM|HST|CMP)-[A-Za-z0-9][A-Za-z0-9-]*")
WORD = re.compile(r"[A-Za-z][\w-]*")


@cache
def explained(name: str) -> bool:
    try:
        explain_page(name)
    except UsageError:
        return False
    return True


def ids_of(found: object, key: str = "") -> Iterator[str]:
    """Every id in a document: what stands under a key of ids, as one word."""
    if isinstance(found, Mapping):
        for name, value in found.items():
            yield from ids_of(value, str(name))
    elif isinstance(found, Sequence) and not isinstance(found, str):
        for value in found:
            yield from ids_of(value, key)
    elif key in KEYS and isinstance(found, str) and WORD.fullmatch(found):
        yield found


def advice(blocks: Sequence[Block]) -> Iterator[str]:
    """Every entry of every list of a page."""
    for block in blocks:
        if isinstance(block, Items):
            yield from map(text_of, block.items)
        elif isinstance(block, Part | Fold):
            yield from advice(block.blocks)


def text_of(entry: Words) -> str:
    return "".join(one.text if isinstance(one, Code) else str(one) for one in entry)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}")
def test_every_id_of_an_output_is_explained_and_no_advice_stands_twice(case: Case) -> None:
    result = of_case(case)
    whole = page(result, Detail.FULL)
    named = {*ids_of(encode(result)), *NUMBERED.findall(plain(whole))}
    assert {one for one in named if not explained(one)} == set()
    assert [text for text, count in Counter(advice(whole.blocks)).items() if count > 1] == []


@pytest.mark.parametrize("edition", BOTH)
@pytest.mark.parametrize("gpu", [None, "A100", "H100", "B200", "GB200"])
def test_every_rule_that_chooses_is_explained(gpu: str | None, edition: str) -> None:
    for family in (None, "dsv3", "qwen3_235b", "qwen3_30b", "qwen3_next", "vlm"):
        for ep in (None, 4, 16, 64):
            given = Given(gpu=gpu, ep=ep, family=family, guidance=edition, memory_tight=True)  # type: ignore[arg-type]
            for choice in judge_observed(observed_from(Symptoms()), given, FilesRead()).choices:
                assert explained(choice.rule)
                assert not choice.other_rule or explained(choice.other_rule)
