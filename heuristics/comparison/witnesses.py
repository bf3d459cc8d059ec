"""Do two ranks do the same work in a step? By what stays when kernels change, weighed by `witnesses.toml`.

Each witness agrees, contradicts or is silent. None decides alone: another precision renames kernels,
recompute runs some twice, a loader copies otherwise; another model, batch or number of steps contradicts in
most.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from math import comb
from typing import Final

from msgspec import Struct, UnsetType

from heuristics.comparison.difference.subject import Subject, same_count
from heuristics.comparison.same_work import NEAR, per_step, same_amount, shared_work_frac
from traces.limits import FEWEST, MOST, NEARLY_ALL, QUARTER, Limit
from traces.missing import known
from traces.names.kernels import classify_kernel, is_matrix_work, is_one_of_a_pass
from traces.names.ranges import is_backward_name
from traces.patterns import compiled
from traces.sections.rank import Rank
from traces.sections.tables import Kernel
from traces.sections.work import Work
from traces.statistics.interval import LEVEL
from traces.toml_tables import read_table

LEAST_BYTES: Final = Limit(
    1_000, "bytes a step", "ours: 250 tokens; a learning rate or a seed is copied in any program"
)
BODY: Final = Limit(8, "launches a step", "ours: one layer of a transformer multiplies six times")
FORMATS: Final = frozenset(map(Fraction, ("1/8", "1/4", "1/2", "1", "2", "4", "8")))
"""By what a tensor grows or shrinks in another format, of 8 to 64 bits a number."""

_TYPES: Final = compiled(
    r"\b(?:c10|__half|__nv_bfloat16|[bB][fF]loat16|[hH]alf|float|double|unsigned|int|long|bool|char|short|void"
    r"|opmath_t|bf16|fp16|fp32|f16|f32)\b|\d+"
)
_BRACKET: Final = compiled(r"([()])")
_MARKS: Final = compiled(r"[^A-Za-z_]+")
_RENAMED: Final = frozenset(
    {"optimizer", "convolution", "gemm", "attention", "layout", "quantize", "memory", "comm"}
)
"""Classes whose kernels another precision, library or fusion exchanges for others."""
_ROUTED: Final = frozenset({"permute", "router", "grouped_gemm", "activation", "quantize"})
"""Classes whose grids follow the tokens that a rank's experts get."""
_ONE_BLOCK: Final = (1, 1, 1)

Heard = bool | None
"""Whether a witness agrees; None where it is silent."""


class Witness(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the table, which says what its fields are."""

    figure: str
    what: str
    because: str
    amount: tuple[int, int] = (0, 0)
    size: tuple[int, int] = (0, 0)


class Weighed(Struct, frozen=True):
    """Whether the work is the same, None where nothing tells; who agrees, and who contradicts."""

    same: bool | None
    agree: tuple[str, ...]
    contradict: tuple[str, ...]


@cache
def table() -> tuple[Witness, ...]:
    return read_table("heuristics.comparison", "witnesses.toml", dict[str, tuple[Witness, ...]])["witnesses"]


def weigh(base: Subject, new: Subject) -> Weighed:
    """Hear all witnesses. Swapped sides are weighed the same."""
    heard = [(one, HEARD[one.figure](base, new)) for one in table()]
    told = [(one, agrees) for one, agrees in heard if agrees is not None]
    answers = [
        _answer([weights[0] if agrees else -weights[1] for weights, agrees in votes])
        for votes in (
            [(one.amount, agrees) for one, agrees in told],
            [(one.size, agrees) for one, agrees in told],
        )
    ]
    same = False if False in answers else True if answers[0] else None
    return Weighed(
        same,
        tuple(one.what for one, agrees in told if agrees),
        tuple(one.what for one, agrees in told if not agrees),
    )


def _answer(votes: list[int]) -> bool | None:
    total = sum(votes)
    return total > 0 if total else False if any(vote < 0 for vote in votes) else None


def _input_bytes(base: Subject, new: Subject) -> Heard:
    """To the byte; silent where some tensors are in another format, and the others as large as before."""
    totals = [sum(size * count for size, count in copied(side.rank).items()) for side in (base, new)]
    if min(totals) < LEAST_BYTES.value:
        return None
    if totals[0] == totals[1]:
        return True
    factors = _factors(base.rank, new.rank)
    return None if 1 in factors and factors <= FORMATS else False


def _batch(base: Subject, new: Subject) -> Heard:
    """Whether not all of several input copies are larger by one factor."""
    if _input_bytes(base, new) is not False or len(copied(base.rank)) < 2:
        return None
    return False if len(_factors(base.rank, new.rank)) == 1 else None


def _factors(base: Rank, new: Rank) -> frozenset[Fraction]:
    """By what the bytes of each input copy grew, the largest beside the largest; none: others are copied."""
    one, other = ([size * number for size, number in copied(side).items()] for side in (base, new))
    if len(one) != len(other):
        return frozenset()
    return frozenset(Fraction(more, size) for size, more in zip(one, other, strict=True))


def copied(rank: Rank) -> dict[int, int]:
    """How often a typical step copies input of each size, largest first; empty where that is unknown."""
    steps, work = len(rank.lengths_ns), rank.work
    copies = () if isinstance(work, UnsetType) else work.input_sizes
    numbers = {one.size_bytes: round(one.count / steps) for one in copies}
    return {size: number for size, number in numbers.items() if number}


def _ranges(base: Subject, new: Subject) -> Heard:
    """By the families of backward where both have some: forward may run a second time."""
    works = base.rank.work, new.rank.work
    if not isinstance(works[0], Work) or not isinstance(works[1], Work):
        return None
    one, other = works[0].ranges, works[1].ranges
    shared = _often(one, other)
    backward = [name for name in shared if is_backward_name(name)]
    names = backward if beyond_chance(len(backward), len(backward)) else shared
    return _alike([same_count(one[name], other[name]) for name in names])


def _often(one: Mapping[str, float], other: Mapping[str, float]) -> list[str]:
    """Families that both have, of which a side has enough that as many are no chance."""
    return [name for name in one.keys() & other.keys() if max(one[name], other[name]) >= FEWEST.value]


def _alike(same: list[bool]) -> Heard:
    """Whether most are, beyond chance; silent where even all of so few would not be."""
    if not beyond_chance(len(same), len(same)):
        return None
    if beyond_chance(sum(same), len(same)):
        return True
    return False if sum(same) < MOST.value * len(same) else None


def beyond_chance(alike: int, count: int) -> bool:
    """Whether so many of `count` are alike by chance in under 5 % of cases: the sign test."""
    ways = sum(comb(count, number) for number in range(alike, count + 1))
    return count > 0 and ways <= (1 - LEVEL) * 2**count


def _kinds(base: Subject, new: Subject) -> Heard:
    one, other = (
        {name: float(n) for name, (n, _) in per_step(side.rank, _kind).items()} for side in (base, new)
    )
    return _alike([same_count(one[name], other[name]) for name in _often(one, other)])


def _kind(kernel: Kernel) -> str | None:
    """The family of a compute kernel that no precision or library exchanges, by its name without types."""
    if not kernel.key.startswith("compute.") or classify_kernel(kernel.name).class_ in _RENAMED:
        return None
    return family_of(kernel.name)


@cache
def family_of(name: str) -> str:
    """A kernel's name without number formats, numbers and arguments, as any recorder spells it."""
    bare = name.replace("(anonymous namespace)", "anonymous").replace("<unnamed>", "anonymous")
    return _MARKS.sub(" ", _TYPES.sub("", _without_arguments(bare))).strip()


def _without_arguments(name: str) -> str:
    """A name without what stands between brackets that belong together."""
    kept, opened = list[str](), list[int]()
    for piece in _BRACKET.split(name):
        if piece == ")" and opened:
            del kept[opened.pop() :]
            continue
        if piece == "(":
            opened.append(len(kept))
        kept.append(piece)
    return "".join(kept)


def _products(base: Subject, new: Subject) -> Heard:
    """Whether each class multiplies as often; attention that was fused is another class, and silent."""
    one, other = (
        {name: float(number) for name, (number, _) in per_step(side.rank, _product).items()}
        for side in (base, new)
    )
    few, many = sorted((sum(one.values()), sum(other.values())))
    if few < BODY.value:
        return None
    if one.keys() == other.keys() and all(same_count(one[name], other[name]) for name in one):
        return True
    return False if many > NEAR.value * few else None


def _product(kernel: Kernel) -> str | None:
    """Products of matrices; of attention the one kernel of a pass, whatever runs before and after it."""
    kind = classify_kernel(kernel.name)
    one = is_one_of_a_pass(kernel.name) if kind.class_ == "attention" else is_matrix_work(kernel.name, kind)
    return kind.class_ if one else None


def _names(base: Subject, new: Subject) -> Heard:
    """Two recorders spell one name differently: then by family."""
    kinds = {side.trace.kind for side in (base, new) if side.trace}
    shared = shared_work_frac(base.rank, new.rank)
    if len(kinds) > 1:
        shared = shared_work_frac(base.rank, new.rank, named=lambda kernel: family_of(kernel.name))
    if shared is None:
        return None
    return True if shared >= NEARLY_ALL.value else False if shared < QUARTER.value else None


def _grids(base: Subject, new: Subject) -> Heard:
    """By kernels of one name that both launch as often, with grids that come again in each step."""
    one, other = _steady_grids(base.rank), _steady_grids(new.rank)
    shared = [
        name
        for name in one.keys() & other.keys()
        if same_count(float(sum(one[name].values())), float(sum(other[name].values())))
    ]
    launches = float(sum(sum(one[name].values()) for name in shared))
    if launches < BODY.value:
        return None
    same = sum(
        min(number, other[name].get(grid, Fraction(0)))
        for name in shared
        for grid, number in one[name].items()
    )
    part = float(same) / launches
    return True if part >= MOST.value else False if part < QUARTER.value else None


def _steady_grids(rank: Rank) -> dict[str, dict[tuple[int, ...], Fraction]]:
    """Launches a step of each compute kernel but matrix products, by grid.

    Those whose grids follow the data are left out, and grids of one block, which cover anything.
    """
    found: dict[str, dict[tuple[int, ...], Fraction]] = defaultdict(dict)
    unsteady, steps = set[str](), len(rank.lengths_ns)
    for kernel in rank.kernel_table.rows:
        kind, grid = classify_kernel(kernel.name), known(kernel.grid)
        class_ = kernel.key.removeprefix("compute.")
        if class_ == kernel.key or class_ in _ROUTED or is_matrix_work(kernel.name, kind):
            continue
        if grid == _ONE_BLOCK:
            continue
        number = Fraction(kernel.count, steps)
        if grid is None or number < Fraction(str(NEARLY_ALL.value)):
            unsteady.add(kernel.name)
        else:
            found[kernel.name][grid] = found[kernel.name].get(grid, Fraction(0)) + number
    return {name: grids for name, grids in found.items() if name not in unsteady}


HEARD: Final[Mapping[str, Callable[[Subject, Subject], Heard]]] = {
    "passes": lambda base, new: same_amount(base.rank, new.rank),
    "input_bytes": _input_bytes,
    "batch": _batch,
    "ranges": _ranges,
    "kinds": _kinds,
    "products": _products,
    "names": _names,
    "grids": _grids,
}
"""What each witness says of two sides, by its `figure` in the table."""
