"""Whose time it is: the functions, operators and ranges that the GPU waits for, and those it works for."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from reports.content.analysis.times import Scale, scale_of
from reports.content.blocks import (
    Block,
    Code,
    Entry,
    Hue,
    Quantity,
    Sentence,
    Span,
    Term,
    Words,
    table,
    words,
)
from reports.content.names import ended, how_to_learn, joined
from traces.limits import HALF_A_WALL
from traces.missing import Missing, known
from traces.sections.addresses import Address, Addresses, GpuAddress
from traces.sections.rank import Rank
from traces.spelling import percent, printable

_NAMED: Final = 2
_WIDTH: Final = 60
_SHORT: Final = 44
_PARTS: Final = 2
"""Of a function's package, the parts that a line has: its file and itself."""
_BEFORE: Final = ("enumerate(DataLoader)#", "autograd::engine::evaluate_function: ")
"""What a range says before the name that matters."""


def _addresses(rank: Rank) -> Addresses | None:
    return None if rank.addresses is UNSET else known(rank.addresses)


def address_words(rank: Rank) -> Words:
    """One sentence: under which addresses the GPU waits for late launches most; empty where none is known."""
    found, window_ns = _addresses(rank), rank.budget_ns.window
    late = sorted(found.hosts if found else (), key=lambda one: -one.starved_ns)
    named = [
        words(Code(_short(one)), f" ({percent(one.starved_ns / window_ns)})")
        for one in late
        if one.name and one.starved_ns >= HALF_A_WALL.value * window_ns
    ]
    return words("Late launches are mostly in ", joined(named[:_NAMED], ", "), ".") if named else ()


def _short(one: Address) -> str:
    name = one.name
    if one.kind == "function" and "::" not in name:
        name = ".".join(name.split(".")[-_PARTS:])
    for before in _BEFORE:
        name = name.removeprefix(before)
    return printable(name, _SHORT)


def address_blocks(rank: Rank) -> Iterator[Block]:
    """Host time by address, and why functions are unknown where they are."""
    found, scale = _addresses(rank), scale_of(rank)
    if found is None or not found.hosts:
        return
    heads = ("address", "kind", f"late, {scale.unit}", f"blocking, {scale.unit}", "share")
    rows = (_row(one, scale) for one in found.hosts)
    note = (
        "Late launches and blocking waits, each nanosecond under one address: the innermost function that is "
        "no plumbing, else operator, module, range or OS call."
    )
    left = found.hosts_left_out.rows
    yield table("Whose time it is", heads, rows, range(2, 5), note, left)
    if isinstance(why := found.by_function_frac, Missing):
        yield Sentence(words(f"unknown: {ended(why.reason)}{how_to_learn(why.cure)}"), "Functions")


def _row(one: Address, scale: Scale) -> tuple[Entry, ...]:
    share = one.total_ns / scale.rank.budget_ns.window
    figures = (scale.ms(one.starved_ns), scale.ms(one.blocking_ns), Quantity(percent(share), share, Hue.HOST))
    return _name(one.name), Term(one.kind), *figures


def _name(name: str) -> Span:
    return Code(printable(name, 2 * _WIDTH)) if name else "no frame recorded"


def gpu_blocks(rank: Rank) -> Iterator[Block]:
    """Kernel work by what it was launched in, where anything is known of that."""
    found, scale = _addresses(rank), scale_of(rank)
    if found is None or all(not one.name for one in found.gpu_addresses):
        return
    heads = ("launched in", "kind", "count", scale.unit, "share")
    rows = (_gpu_row(one, scale) for one in found.gpu_addresses)
    left = found.gpu_addresses_left_out.rows
    yield table("Kernel work by module, range or operator", heads, rows, range(2, 5), left_out=left)


def _gpu_row(one: GpuAddress, scale: Scale) -> tuple[Entry, ...]:
    share = one.work_ns / scale.rank.budget_ns.window
    figures = (f"{one.count:,}", scale.ms(one.work_ns), Quantity(percent(share), share, Hue.COMPUTE))
    return _name(one.name), Term(one.kind), *figures
