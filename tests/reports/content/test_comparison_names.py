"""Names for people on the page of a comparison: of tables, of reasons, of keys within sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from msgspec.structs import replace

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
from reports.content.comparison.changed import TABLES, reasons
from reports.content.comparison.moves import moves_of, reach
from reports.content.names import keyed, name_of, plain
from tests.doubles.compared import Make, compared, many_rows
from tests.doubles.comparison_document import (
    MS,
    by_logs,
    moved,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
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


def test_what_is_known_by_its_family_alone_has_a_name() -> None:
    assert [name_of(key) for key in ("comm", "copy", "noise")] == ["communication", "copies", "noise"]


def test_steps_left_out_are_counted_by_their_reason() -> None:
    dropped = ("hiccup: 16 % longer", "partial: it ends", "hiccup: 26 % longer")
    assert reasons(dropped) == "2 hiccups, 1 partial"
    assert reasons(()) == "none"


def test_a_key_of_what_is_missing_has_the_name_of_its_last_part() -> None:
    assert name_of("attribution[*].count_ns") == name_of("count_ns")
    assert "_" not in name_of("attribution[*].count_ns")


@pytest.mark.parametrize("make", [*ALL, many_rows])
@pytest.mark.parametrize("named", [0, 1, 3, 6])
def test_bars_of_a_waterfall_join_and_end_where_the_whole_does(make: Make, named: int) -> None:
    one = compared(make)
    *parts, whole = moves_of(one, named)
    assert parts[0].from_ns == whole.from_ns == 0
    assert all(before.to_ns == after.from_ns for before, after in pairwise(parts))
    assert parts[-1].to_ns == whole.to_ns == one.step_delta_ns
    least, most = reach([*parts, whole])
    assert least <= 0 <= most
    assert {least, most} <= {0, *(move.to_ns for move in parts)}


def test_bars_are_of_the_parts_that_the_table_names_those_that_scatter_too() -> None:
    """Of the step's 4 ms: +4, -2 and +1 by its rows, and -3 by one that scatters, which comes second."""
    one = replace(regression(), scattered=(moved("compute.norm", 9, 6),))
    *bars, others, whole = moves_of(one, 4)
    assert [bar.to_ns - bar.from_ns for bar in bars] == [4 * MS, -3 * MS, -2 * MS, 1 * MS]
    assert (others.to_ns - others.from_ns, whole.to_ns) == (4 * MS, 4 * MS)
