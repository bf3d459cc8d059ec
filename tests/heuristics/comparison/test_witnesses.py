"""Each witness of the same work agrees, contradicts or is silent; none decides alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from heuristics.comparison import witnesses
from heuristics.comparison.alike import Sides
from heuristics.comparison.covered import Threads, covered_frac, in_pieces
from heuristics.comparison.difference.subject import Subject, same_count
from heuristics.comparison.witnesses import HEARD, family_of, weigh
from heuristics.result.result import Result
from tests.doubles.comparison import kernel, rank, result, row, trace
from traces.sections.rank import Rank
from traces.sections.steps import StepSource
from traces.sections.tables import Kernel
from traces.sections.work import HostCopies, InputCopies, Work

IMAGES, LABELS = 200_000, 500


def work(*sizes: tuple[int, int], **ranges: float) -> Work:
    """Input copies over two steps, by size and number a step; ranges a step."""
    copies = tuple(InputCopies(size, 2 * number) for size, number in sizes)
    return Work(copies, {name.replace("__", "::"): number for name, number in ranges.items()})


def heard(figure: str, base: Rank, new: Rank) -> bool | None:
    one, other = (Subject(found := result(side), found.ranks[0]) for side in (base, new))
    answer = HEARD[figure](one, other)
    assert HEARD[figure](other, one) == answer
    return answer


def weighed(base: Rank, new: Rank) -> Any:
    return weigh(*(Subject(found := result(side), found.ranks[0]) for side in (base, new)))


def test_a_batch_is_as_many_bytes_to_the_byte() -> None:
    base = rank(work=work((IMAGES, 1), (LABELS, 1)))
    assert heard("input_bytes", base, rank(work=work((IMAGES, 1), (LABELS, 1)))) is True
    assert heard("input_bytes", base, rank(work=work((IMAGES, 1), (LABELS + 8, 1)))) is False
    assert heard("input_bytes", base, rank()) is None  # a result of an earlier release
    assert heard("input_bytes", rank(work=work((2_000, 1))), rank(work=work((1_000, 2)))) is True


def test_images_in_another_format_beside_the_same_labels_tell_nothing_of_the_batch() -> None:
    base = rank(work=work((IMAGES, 1), (LABELS * 8, 1)))
    assert heard("input_bytes", base, rank(work=work((IMAGES // 2, 1), (LABELS * 8, 1)))) is None
    assert heard("input_bytes", base, rank(work=work((IMAGES * 3, 1), (LABELS * 8, 1)))) is False


def test_as_many_bytes_in_all_are_no_other_input_whichever_of_them_recur() -> None:
    copies = (work((IMAGES, often)).input_sizes for often in (1, 2))
    sides = [rank(work=Work(recurring, {}, HostCopies(9, IMAGES, 0))) for recurring in copies]
    assert heard("input_bytes", *sides) is None


def test_all_copies_twice_as_large_are_twice_the_samples_and_one_of_them_another_format() -> None:
    base = rank(work=work((IMAGES, 1), (LABELS, 1)))
    assert heard("batch", base, rank(work=work((2 * IMAGES, 1), (2 * LABELS, 1)))) is False
    for images in (IMAGES, IMAGES // 2, 3 * IMAGES):  # the same batch, another format, and other input
        assert heard("batch", base, rank(work=work((images, 1), (LABELS, 1)))) is None


OPERATORS = {**{"aten__mm": 12.0, "aten__add": 30.0, "aten__relu": 8.0, "aten__view": 40.0, "aten__sum": 3.0},
    **dict.fromkeys(("aten__mul", "aten__cat", "aten__exp"), 6.0)}  # fmt: skip


def test_operators_are_as_many_but_for_casts() -> None:
    base = rank(work=work(**OPERATORS))
    cast = {**OPERATORS, "aten__view": 55.0, "aten__to": 20.0}
    assert heard("ranges", base, rank(work=work(**cast))) is True
    deeper = {name: 2 * number for name, number in OPERATORS.items()}
    assert heard("ranges", base, rank(work=work(**deeper))) is False
    assert heard("ranges", base, rank(work=work(aten__mm=12.0))) is None


def test_operators_of_backward_tell_where_forward_runs_again() -> None:
    backward = {f"{name}Backward0": 4.0 for name in ("Mm", "Add", "Relu", "View", "Sum")}
    again = {name: 2 * number for name, number in OPERATORS.items()}
    once, twice = rank(work=work(**OPERATORS, **backward)), rank(work=work(**again, **backward))
    assert heard("ranges", once, twice) is True
    assert [same_count(*pair) for pair in ((49, 50), (50, 49), (48, 49), (0, 0))] == [True, True, False, True]


def test_a_family_has_no_number_format_and_is_spelled_alike_by_each_recorder() -> None:
    names = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int, float)",
        "void at::native::vectorized_elementwise_kernel<(int)8, at::native::AddFunctor<c10::BFloat16>>(int)",
    )
    assert len({family_of(name) for name in names}) == 1
    others = ("void f(int (*)(long))(x) more", "a) b", "f<g, std::array<char*, 2ul> >(g, at::Ten...#f7bf")
    assert [*map(family_of, others)] == ["f more", "a b", "f g"]
    one, other, more = (
        rank(kernels=(kernel(name, 10, count=count),))
        for name, count in zip((*names, names[1]), (1, 1, 2), strict=True)
    )
    assert heard("names", one, other) is True  # as many of one family
    assert heard("names", one, more) is None
    assert heard("names", one, rank(kernels=(kernel("sort", 10),))) is False
    kineto = Subject(result(other, traces=(trace(kind="kineto"),)), other)
    assert HEARD["names"](Subject(result(one), one), kineto) is True


def grids(*widths: int, count: int = 10) -> Rank:
    """Three norms, each in one grid; two steps."""
    return rank(
        kernels=tuple(
            kernel(f"norm {place}", 10, count=2 * count, grid=(width, 1, 1), key="compute.norm")
            for place, width in enumerate(widths)
        )
    )


def norms(block: Threads | None, *launches: tuple[Threads, int]) -> Rank:
    """One norm in several grids, each so often a step; two steps."""
    rows = [kernel("norm", 10, count=2 * often, grid=grid, key="compute.norm", block=block)
        for grid, often in launches]  # fmt: skip
    return rank(kernels=(*rows,))


def blocks(width: int, block: int | None, count: int = 20) -> Rank:
    """One norm over some rows, so many threads a block."""
    return norms((block, 1, 1) if block else None, ((width, 1, 1), count // 2))


def test_blocks_of_another_size_cover_as_much_where_the_last_of_them_may_be_part_full() -> None:
    assert heard("grids", blocks(4, 256), blocks(15, 64)) is True  # 769 to 1,024 and 897 to 960 elements
    assert heard("grids", blocks(4, 256), blocks(769, 1)) is True
    assert heard("grids", blocks(4, 256), blocks(12, 64)) is False  # 705 to 768
    assert heard("grids", blocks(4, 256), blocks(17, 64)) is False  # 1,025 to 1,088
    assert heard("grids", blocks(4, 256), blocks(15, None)) is False
    assert heard("grids", blocks(4, 256), blocks(4, 64)) is True  # it strides over its data


def test_grids_of_both_sides_are_a_part_of_the_launches_and_of_the_size_whichever_is_less() -> None:
    """Six times 2 blocks and twice 30 are 72; in another grid as many blocks are none of them."""
    base = norms(None, ((2, 1, 1), 6), ((30, 1, 1), 2))
    cases = [(((2, 1, 1), 6), ((1, 30, 1), 2), 1 / 6), (((1, 2, 1), 6), ((30, 1, 1), 2), 1 / 4),
        (((2, 1, 1), 2), ((30, 1, 1), 6), 1 / 2)]  # fmt: skip
    for small, large, part in cases:
        assert covered_frac(base, norms(None, small, large)) == part
    often, less = norms(None, ((2, 1, 1), 100)), norms(None, ((2, 1, 1), 99))  # nearly as often
    assert covered_frac(often, less) == covered_frac(less, often) == 396 / 398  # 198 of 199 blocks on a side
    assert covered_frac(base, norms(None, ((2, 1, 1), 12), ((30, 1, 1), 4))) is None  # other microbatches
    rows = [norms((4, 4, 1), (grid, 8)) for grid in ((2, 2, 1), (3, 1, 1))]  # 25 to 64 elements, and 36 to 48
    assert covered_frac(*rows) == 0  # in blocks of one size


def test_a_kernel_in_pieces_has_as_many_threads() -> None:
    whole, pieces = blocks(1_000, 256, count=2), blocks(10, 256, count=200)
    for count, as_many in ((159, False), (160, True)):  # of unknown threads; 200 are 1.25 times 160
        assert heard("passes", rank(kernels=(kernel("norm", 100, count=count),)), pieces) is as_many
    for count, as_many in ((200, True), (400, False)):  # that take longer
        longer = structs.replace(pieces.kernel_table.rows[0], count=count, work_ns=100)
        assert heard("passes", whole, rank(kernels=(longer,))) is as_many


@pytest.mark.parametrize(("grid", "count", "is_cut"), [(5, 20, True), (10, 20, False), (5, 21, False)])
def test_twice_the_kernels_on_half_of_the_rows_are_a_batch_cut(grid: int, count: int, is_cut: bool) -> None:
    """Matrix products run twice as often in all cases; blocks as large are more work."""
    base, new = (rank(source="none", kernels=(*gemms(often), *blocks(width, 256, often).kernel_table.rows))
        for width, often in ((10, 10), (grid, count)))  # fmt: skip
    assert in_pieces(base, new) is in_pieces(new, base) is (weighed(base, new).same is True) is is_cut


def runs(own: str, *counts: int, source: StepSource = "none") -> Rank:
    shared = tuple(kernel("k" * place, 1, count=count) for place, count in enumerate(counts, 1))
    return rank(source=source, kernels=(kernel(own, 1_000, count=5), *shared))


def test_as_many_equal_units_and_common_kernels_as_often_are_as_much_whatever_others_do_it() -> None:
    """Not of steps, and not where units or as many kernels may be chance."""
    for other, answer in ((runs("b", 20), True), (runs("b"), None), (runs("b", 6), None),
        (runs("b", 20, source="nvtx"), None)):  # fmt: skip
        assert heard("repeats", runs("a", 60, 55), other) is answer
    for last, passes in (((18, 22), True), ((36, 44), None)):
        assert heard("passes", runs("a", 6, 10, 14, 18, 22), runs("b", 6, 10, 14, *last)) is passes


def gives_back(count: int, size_bytes: int | None) -> Rank:
    """Copies to the host over two steps."""
    return rank(work=Work((), {}, None, HostCopies(count, size_bytes, 0)))


def test_what_goes_back_to_the_host_is_as_many_bytes_in_as_many_copies_or_more() -> None:
    image = gives_back(2, 12_000)
    answers = {(2, 12_000): True, (200, 12_000): True, (2, 12_002): False, (4, 48_016): None,
        (2, 6_000): None, (2, 4_000): False, (2, None): None}  # fmt: skip
    for copies, answer in answers.items():
        assert heard("output", image, gives_back(*copies)) is answer, copies
    assert heard("output", gives_back(2, 2_000), gives_back(2, 2_000)) is True
    assert heard("output", gives_back(2, 1_998), gives_back(2, 1_998)) is None  # a loss
    assert heard("output", image, rank(work=Work((), {}))) is None
    back = HostCopies(2, 12_000, 0)
    fed = [rank(work=Work((InputCopies(size, 2),), {}, HostCopies(2, 2 * size, 0), back))
            for size in (5_000, 6_000)]  # fmt: skip
    assert heard("output", *fed) is None  # other input


def entire(of: Result) -> Result:
    """The same of a program that begins and ends in the recording."""
    mine = structs.replace(of.ranks[0], steps=structs.replace(of.ranks[0].steps, whole=True))
    return structs.replace(of, ranks=(mine,))


def test_the_table_of_what_differs_is_told_of_both_sides_what_it_asks() -> None:
    replay, lacks = "compute.graph_replay", {"stack_unknown": "routing mode, PP, container"}
    image, larger, cut, gemm, whole, ours, theirs = map(result, (
        gives_back(2, 12_000), gives_back(2, 12_002), rank(kernels=(kernel("a", 9),)),
        rank(row("compute.gemm", 9), kernels=(kernel("a", 9),)),
        rank(row(replay, 9), kernels=(kernel("1", 9, key=replay),), source="none"),
        rank(gpu="H100", kernels=(kernel("a", 9),)), rank(gpu="H200", kernels=(kernel("b", 9),)),
    ))  # fmt: skip
    kineto = structs.replace(theirs, traces=(trace(kind="kineto", exporter_version=None, schema=""),))
    others = {"base.gpu": "H100", "new.gpu": "H200", "base.step": "by nvtx", "base.unrecorded": "nothing"}
    cases: list[tuple[Result, Result, Mapping[str, object]]] = [
        (image, image, {"whole_work": True}), (image, larger, {"whole_work": False}),
        (cut, cut, {"whole_work": False}), (entire(cut), entire(cut), {"whole_work": True}),
        (entire(ours), entire(theirs), {"whole_work": False}),
        (gemm, gemm, {"classes_alike": True, "new.ledger": "known", "new.release": "2026.2"}),
        (gemm, whole, {"classes_alike": None, "new.step": "one window"}),
        (ours, theirs, {**others, "other_programs": True}),
        (ours, kineto, {"other_programs": False, "new.release": None, "new.schema": None}),
        (result(given={"pp": 1}), image, lacks), (image, result(given={"pp": 1}), lacks),
    ]  # fmt: skip
    for base, new, told in cases:
        sides = Sides(Subject(base, base.ranks[0]), Subject(new, new.ranks[0]), False, ())
        assert {name: sides.tells(name) for name in told} == told


def test_one_kernel_in_more_blocks_that_takes_longer_is_other_work() -> None:
    """100 blocks are more than 1.25 times 64, and 20 ns than 10; as long, it may be the same work."""
    base, alike, larger = (kernel("norm", ns, grid=(blocks, 1, 1), key="compute.norm", count=2)
        for ns, blocks in ((10, 64), (10, 100), (20, 100)))  # fmt: skip
    assert heard("grids", rank(kernels=(base,)), rank(kernels=(larger,))) is False
    for other in (alike, structs.replace(larger, grid=(70, 1, 1))):
        assert heard("grids", rank(kernels=(base,)), rank(kernels=(other,))) is None


def test_grids_that_follow_the_data_tell_nothing() -> None:
    wanders = rank(
        kernels=tuple(kernel("norm", 1, grid=(place, 1, 1), key="compute.norm") for place in range(2, 40))
    )
    assert heard("grids", wanders, wanders) is None
    for launches, agrees in ((9, True), (8, None)):  # of ten steps
        norms = (kernel(f"norm {place}", 1, count=launches, key="compute.norm") for place in range(9))
        steady = rank(lengths_ns=(10,) * 10, kernels=tuple(norms))
        assert heard("grids", steady, steady) is agrees
    norm = partial(kernel, "norm", 9, count=20)
    for one in (kernel("sgemm", 9, count=20), norm(key="compute.permute"), norm(key="comm.tp"),
        norm(key="compute.norm", grid=(1, 1, 1)), norm(key="compute.norm", grid=None)):  # fmt: skip
        side = rank(kernels=(one,))
        assert heard("grids", side, side) is None


def gemms(count: int, name: str = "ampere_sgemm_128x64_tn") -> tuple[Kernel, ...]:
    return (kernel(name, 10 * count, count=2 * count),)


def names(alike: int, all_: int, often: int = 3) -> tuple[Rank, Rank]:
    """Ranges of so many names, of which so many are as often on both sides."""
    one = {f"range{place}": float(often) for place in range(all_)}
    other = {
        name: number if place < alike else 9 * number for place, (name, number) in enumerate(one.items())
    }
    return rank(work=work(**one)), rank(work=work(**other))


def shared(ns: int) -> tuple[Rank, Rank]:
    """Kernels of 100 ns, so much of it by a name that both have."""
    sides = ((kernel("both", ns), kernel(f"only {side}", 100 - ns)) for side in "ab")
    one, other = (rank(kernels=kernels) for kernels in sides)
    return one, other


def in_grids(same: int, other: int, count: int = 4) -> tuple[Rank, Rank]:
    """Two kernels, so often a step: one in as many blocks on both sides, one not."""
    return grids(same, other - 1, count=count), grids(same, other + 1, count=count)


def kinds(*often: int) -> Rank:
    """Kernels of these names, so often a step; two steps."""
    return rank(kernels=tuple(
        kernel(name, 10, count=2 * count, key=key) for (name, key), count in zip(FAMILIES, often, strict=True)
    ))  # fmt: skip


FAMILIES = [(name, "compute.other") for name in ("alpha", "beta", "gamma", "delta", "theta")]
FAMILIES += [("ring", "comm.tp"), ("tree", "comm.dp"), ("sgemm", "compute.gemm"), ("hgemm", "compute.gemm")]
"""Five families that no library exchanges, and four that are not counted."""


def test_of_families_with_counts_of_their_own_four_of_five_are_beyond_chance() -> None:
    """Of five counts two are the same by chance in a fifth of the pairs; of one count in all."""
    others = (3, 6, 9, 12)
    assert heard("kinds", kinds(10, 20, 40, 80, 160, *others), kinds(10, 20, 40, 80, 500, *(1,) * 4)) is True
    assert heard("kinds", kinds(*[10] * 5, *others), kinds(*[10] * 4, 20, *others)) is None


def bytes_of(number: int) -> tuple[Rank, Rank]:
    return rank(work=work((number, 1))), rank(work=work((number, 1)))


TF = "nvjet_sm90_tst_128x128_TNT"


def test_a_witness_is_silent_between_its_limits() -> None:
    cases: list[tuple[str, tuple[Rank, Rank], bool | None]] = [
        ("input_bytes", bytes_of(999), None), ("input_bytes", bytes_of(1_000), True),
        ("input_bytes", (bytes_of(999)[0], bytes_of(2_000)[0]), None),
        ("batch", (bytes_of(2_000)[0], bytes_of(4_000)[0]), None),  # of one copy it may be another format
        ("ranges", names(4, 4), None), ("ranges", names(1, 4), None), ("ranges", names(5, 5), True),
        ("ranges", names(5, 5, often=2), None), ("ranges", names(9, 10), True),
        ("ranges", names(8, 10), None), ("ranges", names(5, 10), None), ("ranges", names(4, 10), False),
        ("ranges", (rank(), names(5, 5)[0]), None), ("names", shared(90), True), ("names", shared(25), None),
        ("names", shared(24), False), ("grids", in_grids(5, 5, 3), None), ("grids", in_grids(5, 5), True),
        ("grids", in_grids(5, 6), None), ("grids", in_grids(5, 15), None), ("grids", in_grids(5, 16), False),
        ("products", (rank(kernels=gemms(7)), rank(kernels=gemms(7))), None),
        ("products", (rank(kernels=gemms(8)), rank(kernels=gemms(8))), True),
        ("products", (rank(kernels=gemms(100)), rank(kernels=gemms(100, TF))), True),
        ("products", (rank(kernels=gemms(9, "flash_fwd_kernel")),
                      rank(kernels=gemms(9, "flash_bwd_kernel") + gemms(9, "flash_bwd_preprocess"))), True),
        ("products", (rank(kernels=gemms(100)), rank(kernels=gemms(125))), None),
        ("products", (rank(kernels=gemms(100)), rank(kernels=gemms(126))), False),
    ]  # fmt: skip
    for figure, sides, agrees in cases:
        assert heard(figure, *sides) is agrees


WEIGHED = """
input_bytes - products, grids - input_bytes, kinds - products, products - names, products - kinds,
passes - kinds, ranges names - passes, input_bytes - ranges batch: True; kinds - products names,
passes - ranges, ranges - passes, names - kinds, grids - names, input_bytes - passes, input_bytes - grids,
grids passes - batch, - grids, - batch: False; -, batch -: None
"""
"""Who agrees and who contradicts, and whether it is the same work: as many, and as large."""


def test_witnesses_are_weighed_and_as_many_against_as_for_are_no(monkeypatch: pytest.MonkeyPatch) -> None:
    for cases, _, same in (one.partition(": ") for one in WEIGHED.strip().replace("\n", " ").split("; ")):
        for agree, contradict in (one.split("-") for one in cases.split(", ")):
            said = {**dict.fromkeys(agree.split(), True), **dict.fromkeys(contradict.split(), False)}
            heard_ = {figure: partial(lambda told, *_: told, said.get(figure)) for figure in HEARD}
            monkeypatch.setattr(witnesses, "HEARD", heard_)
            assert (said, str(weighed(rank(), rank()).same)) == (said, same)


def test_all_kernels_renamed_and_as_many_bytes_are_the_same_work() -> None:
    base = rank(kernels=gemms(100), work=work((IMAGES, 1)))
    new = rank(kernels=gemms(100, "nvjet_sm90_tst_128x128_TNT"), work=work((IMAGES, 1)))
    found = weighed(base, new)
    assert found.same is True
    assert found.agree == ("bytes of input copies", "matrix products")
    assert found.contradict == ("names of kernels",)
