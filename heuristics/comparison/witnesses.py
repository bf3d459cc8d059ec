"""Do two ranks do the same work in a step? By what stays when kernels change, weighed by
`witnesses.toml`.

Each witness agrees, contradicts or is silent. None decides alone: another precision renames
kernels, recompute runs some twice, a loader copies otherwise; another model, batch or number of
steps contradicts in most.
"""

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, gcd
from operator import attrgetter
from typing import Final

from msgspec import Struct

from heuristics.comparison.covered import BODY, covered_frac, in_pieces
from heuristics.comparison.difference.places import without_arguments
from heuristics.comparison.difference.subject import Subject, same_count, same_recorder
from heuristics.comparison.same_work import (
    NEAR,
    counts_of,
    same_amount,
    same_counts,
    shared_work_frac,
)
from traces.limits import FEWEST, MOST, NEARLY_ALL, QUARTER, Limit
from traces.missing import known
from traces.names.kernels import classify_kernel, is_matrix_work, is_one_of_a_pass
from traces.names.ranges import is_backward_name
from traces.patterns import compiled
from traces.sections.rank import Rank
from traces.sections.tables import Kernel
from traces.sections.work import HostCopies
from traces.statistics.interval import LEVEL
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

LEAST_BYTES: Final = Limit(
    1_000, "bytes a step", "ours: 250 tokens; a learning rate or a seed is copied in any program"
)
FORMATS: Final = frozenset(map(Fraction, ("1/8", "1/4", "1/2", "1", "2", "4", "8")))
"""By what a tensor grows or shrinks in another format, of 8 to 64 bits a number."""

_TYPES: Final = compiled(
    r"\b(?:c10|__half|__nv_bfloat16|[bB][fF]loat16|[hH]alf|float|double|unsigned|int|long|bool|char|short|void"
    r"|opmath_t|bf16|fp16|fp32|f16|f32)\b|(?:std::array|at::detail::Array)(?:<[^<>]*>)?|\.{3}#\w+$|\d+"
)
_MARKS: Final = compiled(r"[^A-Za-z_]+")
_RENAMED: Final = frozenset(
    {"optimizer", "convolution", "gemm", "attention", "layout", "quantize", "memory", "comm"}
)
"""Classes whose kernels another precision, library or fusion exchanges for others."""
HALF: Final = Fraction(1, 2)
"""The chance of the sign test."""

Heard = bool | None
"""Whether a witness agrees; None where it is silent."""


class Witness(TableRow, kw_only=True):
    """A row of the table, which says what its fields are."""

    figure: str
    what: str
    because: str
    amount: tuple[int, int] = (0, 0)
    size: tuple[int, int] = (0, 0)


class Weighed(Struct, frozen=True):
    """Whether the work is the same, None where nothing tells; who agrees, and who contradicts."""

    same: bool | None
    agree: Texts
    contradict: Texts


@cache
def table() -> tuple[Witness, ...]:
    return read_table("heuristics.comparison", "witnesses.toml", dict[str, tuple[Witness, ...]])[
        "witnesses"
    ]


def weigh(base: Subject, new: Subject) -> Weighed:
    """Hear all witnesses. Swapped sides are weighed the same. Other counts are no other amount
    where one side works in pieces.
    """
    in_one = not in_pieces(base.rank, new.rank)
    agree, contradict = list[str](), list[str]()
    amount, size = list[int](), list[int]()
    for witness in table():
        heard = HEARD[witness.figure](base, new)
        if heard is True:
            agree.append(witness.what)
            amount.append(witness.amount[0])
            size.append(witness.size[0])
        elif heard is False and (in_one or not witness.amount[1]):
            contradict.append(witness.what)
            amount.append(-witness.amount[1])
            size.append(-witness.size[1])
    same = _answer(amount)
    if _answer(size) is False:
        same = False
    return Weighed(same, tuple(agree), tuple(contradict))


def _answer(votes: list[int]) -> bool | None:
    if sum(votes) > 0:
        return True
    if any(votes):
        return False
    return None


def _input_bytes(base: Subject, new: Subject) -> Heard:
    """To the byte; silent where some tensors are in another format, and the others as large as
    before, and where all copies to the GPU together are as many bytes.
    """
    before, after = _copied_bytes(base.rank), _copied_bytes(new.rank)
    if min(sum(before), sum(after)) < LEAST_BYTES.value:
        return None
    if sum(before) == sum(after):
        return True
    factors = _factors(before, after)
    if 1 in factors and not factors - FORMATS:
        return None
    mine, theirs = (_copies(side.rank, "to_gpu") for side in (base, new))
    return None if mine and mine == theirs else False


def _passes(base: Subject, new: Subject) -> Heard:
    """By layers and microbatches, or pieces of them; of programs that share few kernels by how
    often they run those, which only agrees.
    """
    heard = in_pieces(base.rank, new.rank) or same_amount(base.rank, new.rank)
    if heard is None:
        counts = _often(counts_of(base.rank), counts_of(new.rank))
        heard = _alike(counts.values()) or None
    return heard


def repeats(base: Subject, new: Subject) -> Heard:
    """Whether both windows hold as many equal units, at least two: each kernel runs a whole number
    of times in a unit, beyond chance; silent of steps, which are units.
    """
    if base.rank.steps.found or new.rank.steps.found:
        return None
    units = {_units(base.rank), _units(new.rank)}
    return (len(units) == 1 and units != {1}) or None


def _units(rank: Rank) -> int:
    """Into how many equal units a window can be cut by how often it runs each kernel; 1 where that
    may be chance.
    """
    counts = [round(count) for count in counts_of(rank).values()]
    units = gcd(*counts)
    return units if units ** -len(counts) <= 1 - LEVEL else 1


def _batch(base: Subject, new: Subject) -> Heard:
    """Whether not all of several input copies are larger by one factor."""
    before, after = _copied_bytes(base.rank), _copied_bytes(new.rank)
    is_other = len(before) > 1 and _input_bytes(base, new) is False
    if is_other and len(_factors(before, after)) == 1:
        return False
    return None


def _copied_bytes(rank: Rank) -> list[int]:
    """Bytes of each input copy of a typical step, the largest first."""
    return [size * number for size, number in copied(rank).items()]


def _factors(before: list[int], after: list[int]) -> frozenset[Fraction]:
    """By what the bytes of each input copy grew, the largest beside the largest; none: others are
    copied.
    """
    if len(before) != len(after):
        return frozenset()
    return frozenset(map(Fraction, after, before))


def copied(rank: Rank) -> dict[int, int]:
    """How often a typical step copies input of each size, largest first; empty where that is
    unknown.
    """
    if not rank.work:
        return {}
    return {
        copy.size_bytes: number
        for copy in rank.work.input_sizes
        if (number := round(copy.count / len(rank.lengths_ns)))
    }


def _ranges(base: Subject, new: Subject) -> Heard:
    """By the families of backward where both have some: forward may run a second time."""
    mine, theirs = base.rank.work, new.rank.work
    if not mine or not theirs:
        return None
    counts = _often(mine.ranges, theirs.ranges)
    backward = [pair for name, pair in counts.items() if is_backward_name(name)]
    if beyond_chance(len(backward), len(backward)):
        return _alike(backward)
    return _alike(counts.values())


def _often(
    mine: Mapping[str, float], theirs: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """How often each side has the families that both have, of which one has some a step."""
    return {
        name: (mine[name], theirs[name])
        for name in mine.keys() & theirs.keys()
        if max(mine[name], theirs[name]) >= FEWEST.value
    }


def _alike(counts: Collection[tuple[float, float]], chance: Fraction = HALF) -> Heard:
    """Whether most of the families are as many on both sides, beyond chance; silent where even all
    of so few would not be.
    """
    same = sum(same_count(*pair) for pair in counts)
    if not beyond_chance(len(counts), len(counts)):
        return None
    if beyond_chance(same, len(counts), chance):
        return True
    if same < MOST.value * len(counts):
        return False
    return None


def _by_chance(counts: Collection[tuple[float, float]]) -> Fraction:
    """How probably a family is as many on both sides where counts are dealt out anew; a half where
    that is more, since layers give many families one count, or where there is none.
    """
    if not counts:
        return HALF
    same = sum(same_count(*pair) for pair in product(*zip(*counts, strict=True)))
    return min(HALF, Fraction(same, len(counts) ** 2))


def beyond_chance(alike: int, count: int, chance: Fraction = HALF) -> bool:
    """Whether so many of `count` or more are alike by chance in under 5 % of cases."""
    tail = Fraction(0)
    for number in range(alike, count + 1):
        tail += comb(count, number) * chance**number * (1 - chance) ** (count - number)
    return tail <= 1 - LEVEL


def _kinds(base: Subject, new: Subject) -> Heard:
    base_kinds, new_kinds = counts_of(base.rank, _kind), counts_of(new.rank, _kind)
    counts = _often(base_kinds, new_kinds).values()
    return _alike(counts, _by_chance(counts))


def _kind(kernel: Kernel) -> str | None:
    """The family of a compute kernel that no precision or library exchanges, by its name without
    types.
    """
    if not kernel.key.startswith("compute.") or classify_kernel(kernel.name).class_ in _RENAMED:
        return None
    return family_of(kernel.name)


@cache
def family_of(name: str) -> str:
    """A kernel's name without number formats, numbers, arguments and what holds these in a
    release, as any recorder spells it.
    """
    bare = name.replace("(anonymous namespace)", "anonymous").replace("<unnamed>", "anonymous")
    return _MARKS.sub(" ", _TYPES.sub("", without_arguments(bare))).strip()


def _products(base: Subject, new: Subject) -> Heard:
    """Whether each class multiplies as often; attention that was fused is another class, and
    silent.
    """
    base_products, new_products = counts_of(base.rank, _product), counts_of(new.rank, _product)
    few, many = sorted((sum(base_products.values()), sum(new_products.values())))
    if few < BODY.value:
        return None
    if same_counts(base_products, new_products):
        return True
    if many > NEAR.value * few:
        return False
    return None


def _product(kernel: Kernel) -> str | None:
    """Products of matrices; of attention the one kernel of a pass, whatever runs before and after
    it.
    """
    kind = classify_kernel(kernel.name)
    counts = (
        is_one_of_a_pass(kernel.name)
        if kind.class_ == "attention"
        else is_matrix_work(kernel.name, kind)
    )
    if counts:
        return kind.class_
    return None


def _names(base: Subject, new: Subject) -> Heard:
    """Two recorders spell one name differently, and a name holds the line, tile or type that it was
    made for: what no name shows, families may.
    """
    named = attrgetter("name") if same_recorder(base, new) else _family
    heard = _by_part(shared_work_frac(base.rank, new.rank, named=named), NEARLY_ALL)
    if heard is not False:
        return heard
    if same_counts(counts_of(base.rank, _family), counts_of(new.rank, _family)):
        return True
    if shares_families(base.rank, new.rank):
        return None
    return False


def _family(kernel: Kernel) -> str:
    return family_of(kernel.name)


def shares_families(base: Rank, new: Rank) -> bool:
    """Whether a quarter of the work is by kernels whose names differ in numbers and types alone."""
    return (shared_work_frac(base, new, named=_family) or 0.0) >= QUARTER.value


def output(base: Subject, new: Subject) -> Heard:
    """Whether as many bytes go back to the host; silent of a loss or a flag, of more or fewer
    copies, where the same numbers are in another format, and where other input goes in.
    """
    mine, theirs = (_copies(side.rank, "to_host") for side in (base, new))
    if mine is None or theirs is None or min(mine[1], theirs[1]) < LEAST_BYTES.value:
        return None
    if mine[1] == theirs[1]:
        return None if _input_bytes(base, new) is False else True
    if mine[0] != theirs[0] or mine[1] / theirs[1] in FORMATS:
        return None
    return False


def _copies(rank: Rank, way: str) -> tuple[Fraction, Fraction] | None:
    """Copies of one way a step, and their bytes."""
    copies: HostCopies | None = getattr(rank.work, way, None)
    size_bytes = known(copies.size_bytes) if copies else None
    if copies is None or size_bytes is None:
        return None
    steps = len(rank.lengths_ns)
    return Fraction(copies.count, steps), Fraction(size_bytes, steps)


def _by_part(part: float | None, enough: Limit) -> Heard:
    """Whether a part is enough of the whole, or far too little."""
    if part is None or QUARTER.value <= part < enough.value:
        return None
    return part >= enough.value


def _grids(base: Subject, new: Subject) -> Heard:
    return _by_part(covered_frac(base.rank, new.rank), MOST)


HEARD: Final[Mapping[str, Callable[[Subject, Subject], Heard]]] = {
    "passes": _passes,
    "repeats": repeats,
    "input_bytes": _input_bytes,
    "output": output,
    "batch": _batch,
    "ranges": _ranges,
    "kinds": _kinds,
    "products": _products,
    "names": _names,
    "grids": _grids,
}
"""What each witness says of two sides, by its `figure` in the table."""
