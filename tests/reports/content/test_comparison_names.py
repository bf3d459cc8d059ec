"""Names for people on the page of a comparison: keys within sentences."""

from __future__ import annotations

from reports.content.blocks import Code, Term, words
from reports.content.names import keyed, plain


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
