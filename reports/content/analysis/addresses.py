"""Whose time it is: the functions, operators and ranges that the GPU waits for, and those it works
for.
"""

from collections import Counter
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
from traces.missing import Missing, known
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
    """Two sentences: under which addresses the GPU waits for late launches most, and in which calls
    the host waits for the GPU; empty where none is known.
    """
    found, window_ns = known(rank.addresses), rank.budget_ns.window
    if found is None:
        return
    late_ns, waits_ns = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in found.hosts:
        late_ns[_short(one), one.call or ""] += one.starved_ns
        waits_ns["", one.call or ""] += one.blocking_ns
    yield _mostly("Late launches are mostly in ", late_ns, window_ns)
    yield _mostly("The host waits for the GPU mostly in ", waits_ns, window_ns)


def _mostly(before: str, of_ns: Counter[tuple[str, str]], window_ns: int) -> Words:
    """Addresses and calls that take half a wall or more, the longest first."""
    most = []
    for (address, call), length_ns in of_ns.most_common():
        names = joined(map(Code, filter(None, (address, call))), " in ")
        if names and length_ns >= HALF_A_WALL.value * window_ns:
            most.append(words(names, f" ({percent(length_ns / window_ns)})"))
    return around(before, joined(most[:_NAMED]), ".")


def _short(one: Address) -> str:
    name = one.name
    if one.kind == "function" and "::" not in name:
        name = ".".join(name.split(".")[-_PARTS:])
    for before in _BEFORE:
        name = name.removeprefix(before)
    return printable(name, _SHORT)


def address_blocks(rank: Rank) -> Blocks:
    """Host time by address, and why functions are unknown where they are."""
    found, scale = known(rank.addresses), scale_of(rank)
    if found is None or not found.hosts:
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
    found, scale = known(rank.addresses), scale_of(rank)
    if found is None or not any(each(found.gpu_addresses, "name")):
        return
    rows = ((*_named(one), *scale.work(one)) for one in found.gpu_addresses)
    yield shaped("gpu_addresses", rows, found.gpu_addresses_left_out.rows, unit=scale.unit)
