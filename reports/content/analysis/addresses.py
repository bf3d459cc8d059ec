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
    found, window_ns = rank.addresses, rank.budget_ns.window
    if not found:
        return
    addresses = [(_short(one), one.starved_ns) for one in found.hosts if one.name]
    calls = found.calls or ()
    yield _mostly("Late launches are mostly in ", addresses, window_ns)
    in_calls = [(one.name, one.starved_ns) for one in calls]
    yield _mostly("Late launches by call: ", in_calls, window_ns)
    waits = [(one.name, one.blocking_ns) for one in calls]
    yield _mostly("The host waits for the GPU mostly in ", waits, window_ns)


def _mostly(before: str, named_ns: list[tuple[str, int]], window_ns: int) -> Words:
    """What takes half a wall or more, the longest first."""
    most = []
    for name, length_ns in sorted(named_ns, key=lambda one: -one[1])[:_NAMED]:
        if length_ns >= HALF_A_WALL.value * window_ns:
            most.append(words(Code(name), f" ({percent(length_ns / window_ns)})"))
    return around(before, joined(most), ".")


def _short(one: Address) -> str:
    name = one.name
    if one.kind == "function" and "::" not in name:
        name = ".".join(name.split(".")[-_PARTS:])
    for before in _BEFORE:
        name = name.removeprefix(before)
    return printable(name, _SHORT)


def address_blocks(rank: Rank) -> Blocks:
    """Host time by address, and why functions are unknown where they are."""
    found, scale = rank.addresses, scale_of(rank)
    if not found or not found.hosts:
        return
    rows = []
    for one in found.hosts:
        times = (scale.ms(one.starved_ns), scale.ms(one.blocking_ns))
        rows.append((*_named(one), *times, scale.share(one.total_ns, Hue.HOST)))
    yield shaped("hosts", rows, found.hosts_left_out.rows, unit=scale.unit)
    calls = []
    for call in found.calls or ():
        calls.append((Code(call.name), f"{call.count:,}", scale.ms(call.took_ns)))
    if calls:
        yield shaped("host_calls", calls, unit=scale.unit)
    if isinstance(why := found.by_function_frac, Missing):
        yield statement(unknown_words(why), "Functions")


def _named(one: Address | GpuAddress) -> tuple[Span, Term]:
    name = Code(printable(one.name, _WIDTH)) if one.name else "no frame recorded"
    return name, Term(one.kind)


def gpu_blocks(rank: Rank) -> Blocks:
    """Kernel work by what it was launched in, where anything is known of that."""
    found, scale = rank.addresses, scale_of(rank)
    if not found or not any(each(found.gpu_addresses, "name")):
        return
    rows = ((*_named(one), *scale.work(one)) for one in found.gpu_addresses)
    yield shaped("gpu_addresses", rows, found.gpu_addresses_left_out.rows, unit=scale.unit)
