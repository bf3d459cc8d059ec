"""Whose time it is: the functions, operators and ranges that the GPU waits for, and those it works
for.
"""

from collections.abc import Iterator
from typing import Final

from reports.content.analysis.times import scale_of
from reports.content.blocks import (
    Blocks,
    Code,
    Hue,
    Span,
    Term,
    Words,
    words,
)
from reports.content.names import around, joined, statement, unknown_words
from reports.content.tables import shaped
from reports.rows import each
from traces.limits import HALF_A_WALL
from traces.missing import Missing
from traces.sections.addresses import Address, GpuAddress
from traces.sections.rank import Rank
from traces.spelling import percent, printable

_NAMED: Final = 2
_WIDTH: Final = 120
_SHORT: Final = 44
_PARTS: Final = 2
"""Of a function's package, the parts that a line has: its file and itself."""
_BEFORE: Final = ("enumerate(DataLoader)#", "autograd::engine::evaluate_function: ")
"""What a range says before the name that matters."""


def address_words(rank: Rank) -> Iterator[Words]:
    """Sentences: under which addresses and in which calls the GPU waits for late launches most, and
    in which calls the host waits for the GPU; each empty where nothing is known.
    """
    by_place, window_ns = rank.addresses, rank.budget_ns.window
    if not by_place:
        return
    addresses = [(_short(spot), spot.starved_ns) for spot in by_place.hosts if spot.name]
    calls = by_place.calls or ()
    yield _mostly("Late launches by place: ", addresses, window_ns)
    in_calls = [(call.name, call.starved_ns) for call in calls]
    yield _mostly("Late launches by call: ", in_calls, window_ns)
    waits = [(call.name, call.blocking_ns) for call in calls]
    yield _mostly("Waits for the GPU by call: ", waits, window_ns)


def _mostly(before: str, named_ns: list[tuple[str, int]], window_ns: int) -> Words:
    """What takes half a wall or more, the longest first."""
    long_ones = [
        words(Code(name), f" ({percent(length_ns / window_ns)})")
        for name, length_ns in sorted(named_ns, key=lambda named_time: -named_time[1])[:_NAMED]
        if length_ns >= HALF_A_WALL.value * window_ns
    ]
    return around(before, joined(long_ones), ".")


def _short(address: Address) -> str:
    name = address.name
    if address.kind == "function" and "::" not in name:
        name = ".".join(name.split(".")[-_PARTS:])
    for before in _BEFORE:
        name = name.removeprefix(before)
    return printable(name, _SHORT)


def address_blocks(rank: Rank) -> Blocks:
    """Host time by address, and why functions are unknown where they are."""
    addresses, scale = rank.addresses, scale_of(rank)
    if not addresses or not addresses.hosts:
        return
    rows = []
    for address in addresses.hosts:
        times = scale.ms(address.starved_ns), scale.ms(address.blocking_ns)
        rows.append((*_named(address), *times, scale.share(address.total_ns, Hue.HOST)))
    yield shaped("hosts", rows, addresses.hosts_left_out.rows, unit=scale.unit)
    calls = [
        (Code(call.name), f"{call.count:,}", scale.ms(call.took_ns))
        for call in addresses.calls or ()
    ]
    if calls:
        yield shaped("host_calls", calls, unit=scale.unit)
    if isinstance(why := addresses.by_function_frac, Missing):
        yield statement(unknown_words(why), "Functions")


def _named(address: Address | GpuAddress) -> tuple[Span, Term]:
    name = Code(printable(address.name, _WIDTH)) if address.name else "no frame recorded"
    return name, Term(address.kind)


def gpu_blocks(rank: Rank) -> Blocks:
    """Kernel work by what it was launched in, where anything is known of that."""
    addresses, scale = rank.addresses, scale_of(rank)
    if not addresses or not any(each(addresses.gpu_addresses, "name")):
        return
    rows = ((*_named(address), *scale.work(address)) for address in addresses.gpu_addresses)
    yield shaped("gpu_addresses", rows, addresses.gpu_addresses_left_out.rows, unit=scale.unit)
