"""Names for people on the page of a comparison: keys within sentences."""

from __future__ import annotations

from msgspec.structs import replace

from reports.content.blocks import Code, Term, words
from reports.content.comparison.moves import moves_of
from reports.content.names import keyed, plain
from tests.doubles.comparison_document import MS, moved, regression


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


def test_bars_are_of_the_parts_that_the_table_names_those_that_scatter_too() -> None:
    """Of the step's 4 ms: +4, -2 and +1 by its rows, and -3 by one that scatters, which comes second."""
    one = replace(regression(), scattered=(moved("compute.norm", 9, 6),))
    *bars, others, whole = moves_of(one, 4)
    assert [bar.to_ns - bar.from_ns for bar in bars] == [4 * MS, -3 * MS, -2 * MS, 1 * MS]
    assert (others.to_ns - others.from_ns, whole.to_ns) == (4 * MS, 4 * MS)
