"""Names for people on the page of a comparison: of tables, of reasons, of keys within sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from reports.content.blocks import (
    Block,
    Code,
    Detail,
    Fold,
    Items,
    Quantity,
    Sentence,
    Table,
    Term,
    Words,
    words,
)
from reports.content.comparison import page
from reports.content.comparison.changed import TABLES
from reports.content.names import keyed, plain
from tests.doubles.compared import Make, compared
from tests.doubles.comparison_document import by_logs, not_comparable, regression, unchanged, undecided
from traces.formats import kineto_schema, nsys_schema

ALL = (regression, undecided, not_comparable, unchanged, by_logs)
RAW = re.compile(r"\b[a-z]+(?:_[a-z]+)*\.[a-z]+(?:_[a-z]+)*\b|\b[a-z]+(?:_[a-z]+)+\b|\b[A-Z]+(?:_[A-Z]+)+\b")
"""What only a program is called: `launch_starved.data`, `kernel_gap`, `NVTX_EVENTS`."""


def texts(blocks: tuple[Block, ...]) -> Iterator[Words]:
    for block in blocks:
        match block:
            case Table():
                for row in (*block.rows, *((block.total,) if block.total else ())):
                    yield from ((one.text,) if isinstance(one, Quantity) else one for one in row.cells)
            case Items():
                yield from block.items
            case Sentence():
                yield block.said
            case Fold():
                yield from texts(block.blocks)


@pytest.mark.parametrize("make", ALL)
def test_no_row_and_no_sentence_has_a_key_in_place_of_a_name(make: Make) -> None:
    """But for settings and names of kernels, which are code, and sources, which are files."""
    for said in texts(page(compared(make), Detail.FULL).blocks):
        bare = plain(tuple(one for one in said if not isinstance(one, Code)))
        if not bare.startswith(("Source", "To be sure")):
            named = re.sub(r"--\S+|\S+\.sqlite|\S+\.log|: \S+ -> \S+", "", bare)
            assert RAW.findall(named) == []


def test_keys_within_a_sentence_are_terms_and_what_looks_like_them_is_not() -> None:
    assert keyed("launch_starved.data a step: 1 -> 2 ms") == (
        Term("launch_starved.data"),
        " a step: 1 -> 2 ms",
    )
    assert keyed("run cuda_graph_impl of base") == ("run ", Code("cuda_graph_impl"), " of base")
    assert plain(keyed("by compute.gemm, then exposed_comm.ep_dispatch")) == "by GEMMs, then expert dispatch"
    for text in (
        "docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8",
        "megatron/core/transformer/moe/README.md",
        "one ampere_sgemm_128x64_tn: 2.32 ms",
        "at::native::elementwise_kernel.gemm",
        "",
    ):
        assert keyed(text) == words(text)


@pytest.mark.parametrize("schema", [nsys_schema, kineto_schema])
def test_every_table_that_a_recording_may_lack_has_a_name(schema: object) -> None:
    assert set(schema.USED_TABLES) <= set(TABLES)  # type: ignore[attr-defined]
