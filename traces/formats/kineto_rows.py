"""Events of a PyTorch profiler trace as typed rows, rows as columns: only what is read is kept."""

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from typing import Any, Final

import msgspec
import numpy as np

from traces.arrays import IntArray, ints
from traces.columns import NULL
from traces.formats import kineto_schema as schema
from traces.formats.kineto_problems import problem_text
from traces.formats.tables import Table, Texts, in_order, names
from traces.names.operators import operators

_LARGEST: Final = 2**61  # so that a start and a duration still add up in 64 bits


def whole(value: object, scale: int = 1) -> int:
    """A number, or a text that is one, times `scale` and rounded to an integer; NULL for all
    else.
    """
    if type(value) is int:
        scaled = value * scale
        if -_LARGEST < scaled < _LARGEST:
            return scaled
        return NULL
    if not isinstance(value, str):
        return NULL
    try:
        exact = Decimal(value)
    except InvalidOperation:
        return NULL
    limit = _LARGEST // scale
    if not exact.is_finite() or not -limit < exact < limit:
        return NULL
    return int((exact * scale).to_integral_value())


def column(values: Sequence[object], scale: int = 1) -> IntArray:
    """`whole` of each value, shape (n,). Integers and plain decimals, nearly all, are read
    together.
    """
    kinds = set(map(type, values))
    together = _integers(values, scale) if kinds <= {int} else None
    if together is None and kinds <= {int, str}:
        together = _decimals(values, scale)
    if together is not None:
        return together
    return ints([*map(whole, values, repeat(scale))])


def _integers(values: Sequence[object], scale: int) -> IntArray | None:
    try:
        numbers = ints(values)
    except OverflowError:
        return None
    limit = (_LARGEST - 1) // scale
    return np.where((numbers >= -limit) & (numbers <= limit), numbers * scale, NULL)


def _decimals(values: Sequence[object], scale: int) -> IntArray | None:
    """Digits with at most so many decimals that `scale` leaves none; None where a value is anything
    else.
    """
    text = " ".join(map(str, values)) + " "
    if not text.isascii():
        return None
    letters = np.frombuffer(text.encode(), dtype=np.uint8)
    ends, points = np.flatnonzero(letters == ord(" ")), np.flatnonzero(letters == ord("."))
    digits = np.count_nonzero((letters >= ord("0")) & (letters <= ord("9")))
    if len(ends) != len(values) or digits + len(ends) + len(points) != len(letters):
        return None
    with_point = np.searchsorted(ends, points)
    before, after = points - np.append(-1, ends)[with_point] - 1, ends[with_point] - points - 1
    places = np.full(len(ends), len(str(scale)) - 1)
    places[with_point] -= after
    if (np.diff(ends, prepend=-1) < 2).any() or (np.diff(with_point) == 0).any():
        return None
    if (before < 1).any() or (after < 1).any() or (places < 0).any():
        return None
    integers, power = np.fromstring(text.replace(".", ""), dtype=np.int64, sep=" "), 10**places
    if (integers < _LARGEST // scale * scale // power).all():
        return integers * power
    return None


_SPELLED: Final = {
    "shared_memory": "shared memory",
    "warps_per_sm": "warps per SM",
    "registers_per_thread": "registers per thread",
    "graph_node_id": "graph node id",
    "in_device": "inDevice",
    "memory_device": "Device Id",
    "memory_device_type": "Device Type",
    "total_reserved": "Total Reserved",
    "collective": "Collective name",
    "group": "Process Group Name",
    "description": "Process Group Description",
    "members": "Process Group Ranks",
    "sequence": "Seq",
    "elements": "In msg nelems",
    "group_size": "Group size",
    "input_dims": "Input Dims",
    "input_types": "Input type",
    "input_values": "Concrete Inputs",
}


_ON_GPU: Final = ("device", "in_device", "stream", "correlation")
_NUMBERS: Final = {
    schema.KERNELS: (
        *_ON_GPU,
        "registers_per_thread",
        "shared_memory",
        "graph_node_id",
        "sequence",
        "elements",
        "group_size",
    ),
    schema.MEMCPY: (*_ON_GPU, "bytes"),
    schema.MEMSET: (*_ON_GPU, "bytes"),
    schema.CALLS: ("correlation",),
    schema.EVENTS: ("context", "stream", "event_id", "correlation"),
    schema.SYNCS: (
        "context",
        "stream",
        "correlation",
        "wait_on_stream",
        "wait_on_cuda_event_id",
        "wait_on_cuda_event_record_corr_id",
    ),
    schema.MEMORY: ("memory_device", "memory_device_type", "total_reserved"),
}
_NAMES: Final = ("collective", "group", "description", "dtype")
_TEXTS: Final = (*_NAMES, "members")
_NOT_WRITTEN: Final = msgspec.Raw(b"null")
_OF_OPERATORS: Final = ("input_dims", "input_types", "input_values")
_OF_KERNELS: Final = ("grid", "block", "warps_per_sm")
_ALL_NUMBERS: Final = (*_OF_KERNELS, *chain.from_iterable(_NUMBERS.values()))

Numbers: Final = msgspec.defstruct(
    "Numbers",
    [(name, Any, NULL) for name in dict.fromkeys(_ALL_NUMBERS)],
    rename=_SPELLED,
    gc=False,
)
"""What an event's arguments say in numbers; values are of any type."""
Arguments: Final = msgspec.defstruct(
    "Arguments",
    [(name, Any, None) for name in _TEXTS]
    + [(name, msgspec.Raw, _NOT_WRITTEN) for name in _OF_OPERATORS],
    bases=(Numbers,),
    rename=_SPELLED,
    gc=False,
)
"""All that is read of an event's arguments."""


class EventRow(msgspec.Struct, gc=False):
    """One event; JSON's fractions are texts, so that times stay exact."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = NULL
    tid: Any = NULL
    ts: Any = NULL
    dur: Any = NULL
    args: Arguments | None = None  # type: ignore[valid-type]

    @property
    def table(self) -> str | None:
        """Name of a complete event's category, if we know it, or of memory events; None for all
        else.
        """
        if self.ph == "X":
            if isinstance(self.cat, str):
                return schema.TABLE_OF.get(self.cat)
            return None
        if self.ph == "i" and self.name == schema.MEMORY_EVENT:
            return schema.MEMORY
        return None


_NO_ARGUMENTS: Final = Arguments()
_NO_SHAPE: Final = (NULL, NULL, NULL)
_NS_PER_US: Final = 1000


def table(rows: Sequence[EventRow], name: str) -> Table:
    """Rows of one category as columns."""
    arguments = [row.args or _NO_ARGUMENTS for row in rows]
    start_ns = column(_values(rows, "ts"), _NS_PER_US)
    length_ns = column(_values(rows, "dur"), _NS_PER_US)
    timed = (start_ns != NULL) & (length_ns != NULL)
    tids = _values(rows, "tid")
    texts = {"name": _named(_values(rows, "name"))}
    numbers = {
        "pid": column(_values(rows, "pid")),
        "start_ns": start_ns,
        "end_ns": np.where(timed, start_ns + np.where(timed, length_ns, 0), NULL),
    }
    for field in _NUMBERS.get(name, ()):
        numbers[field] = column(_values(arguments, field))
    # the first releases wrote "stream 7"
    if name in (schema.KERNELS, schema.MEMCPY, schema.MEMSET):
        tids = [tid.removeprefix("stream ") if isinstance(tid, str) else tid for tid in tids]
    if name == schema.KERNELS:
        numbers["grid"] = _shapes(_values(arguments, "grid"))
        numbers["block"] = _shapes(_values(arguments, "block"))
        numbers["warps_per_1e6_sms"] = column(_values(arguments, "warps_per_sm"), 1_000_000)
        for field in _NAMES:
            texts[field] = _named(_values(arguments, field))
        texts["members"] = _coded(_values(arguments, "members"))
    if name == schema.OPERATORS:
        texts["problem"] = _coded(map(_problem, rows))
    return Table(numbers | {"tid": column(tids)}, texts)


def _values(rows: Sequence[object], field: str) -> list[object]:
    return [*map(attrgetter(field), rows)]


def _problem(row: EventRow) -> str | None:
    """The operator and its arguments as one text, where it multiplies and its shapes are there."""
    if not row.args or not isinstance(row.name, str) or row.name not in operators():
        return None
    return problem_text(row.name, *map(_decoded, attrgetter(*_OF_OPERATORS)(row.args)))


def _decoded(raw: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def joined(tables: Sequence[Table]) -> Table:
    """Rows of several tables one after the other, with the columns of the first."""
    numbers, texts = {}, {}
    for name in tables[0].integers:
        numbers[name] = np.concatenate([*map(itemgetter(name), tables)])
    for name in tables[0].texts:
        codes, values = [], list[str]()
        for part in tables:
            code, own = part.texts[name]
            codes.append(np.where(code < 0, -1, code + len(values)))
            values += own
        texts[name] = in_order(np.concatenate(codes), tuple(values))
    return Table(numbers, texts)


def objects(given: object) -> list[dict[str, Any]]:
    """The objects of a list of JSON; none of what is no list."""
    if isinstance(given, list):
        return [item for item in given if isinstance(item, dict)]
    return []


def rows_of(events: object) -> list[EventRow]:
    """Events as the standard library reads them, as rows; arguments that are no object are none."""
    return [
        msgspec.convert({**event, "args": _arguments(event.get("args"))}, EventRow)
        for event in objects(events)
    ]


def _arguments(recorded: object) -> object:
    """Arguments whose shapes are as a part has them: not decoded, as few are ever asked for."""
    if not isinstance(recorded, dict):
        return None
    arguments = dict(recorded)
    for name in map(_SPELLED.get, _OF_OPERATORS):
        if name in recorded:
            arguments[name] = _encoded(recorded[name])
    return arguments


def _encoded(value: object) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError):  # half of a character, too large a number
        return _NOT_WRITTEN


def _coded(texts: Iterable[object]) -> Texts:
    codes = dict[str, int]()
    code = [codes.setdefault(text, len(codes)) if isinstance(text, str) else -1 for text in texts]
    return Texts(ints(code), tuple(codes))


def _named(texts: Iterable[object]) -> Texts:
    return names(*_coded(texts))


def _shapes(values: Sequence[object]) -> IntArray:
    triples = [
        value if isinstance(value, list) and len(value) == 3 else _NO_SHAPE for value in values
    ]
    return column(list(chain.from_iterable(triples))).reshape(-1, 3)
