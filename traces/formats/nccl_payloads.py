"""What NCCL wrote beside its NVTX ranges: communicator, bytes and peer of each call.

An export made with `--include-blobs=true` holds them in NVTX_EVENTS.binaryData: four little-endian
64-bit numbers (domain, schema, size of the payload, where it begins), then the payload, laid out as
the tables NVTX_PAYLOAD_SCHEMAS and NVTX_PAYLOAD_SCHEMA_ENTRIES say. NCCL changes schema ids between
versions, so fields are known by their names (NVIDIA/nccl, src/include/nvtx_payload_schemas.h);
communicators are there from 2.25.1, sizes and peers from 2.16.2.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.arrays import IntArray, ints
from traces.columns import NULL, NcclCalls, Payloads
from traces.formats.nsys_columns import named
from traces.formats.nsys_schema import NVTX
from traces.formats.sqlite_tables import SqliteTables
from traces.frozen import frozen

SCHEMAS: Final = "NVTX_PAYLOAD_SCHEMAS"
ENTRIES: Final = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_SIZES: Final = ("domainId", "schemaId", "payloadSize")
_PLACES: Final = ("domainId", "schemaId", "idx", "type", "name", "offset")

FIELDS: Final = {
    "NCCL communicator ID": "communicator",
    "Message size [bytes]": "size_bytes",
    "Peer rank": "peer",
    "Root": "root",
    "No. of ranks": "rank_count",
    "Rank": "rank",
    "CUDA device": "cuda_device",
}
"""Name of a schema's entry -> our field."""

_NUMBERS: Final = {
    5: "<i4",  # int
    6: "<u4",
    9: "<i8",
    10: "<u8",
    15: "<i4",
    16: "<u4",
    17: "<i8",
    18: "<u8",  # uint64
    22: "<u8",  # size_t of a 64-bit process
}
"""NVTX payload entry type (nvToolsExtPayload.h) -> numpy type. Others are never one of `FIELDS`."""
_HEADER_BYTES: Final = 32


@frozen
class PayloadField:
    """A number in a payload: which of our fields, its numpy type, its place in bytes."""

    name: str
    number: str
    offset: int


@frozen
class PayloadSchema:
    """One layout of a payload; `size` in bytes, None where the export does not say."""

    size: int | None
    fields: tuple[PayloadField, ...]


SchemaTable = Mapping[tuple[int, int], tuple[PayloadSchema, ...]]
"""(domain, schema) -> its distinct layouts. Each process defines its own, mostly alike."""


def read_nccl_calls(tables: SqliteTables) -> NcclCalls | None:
    """NCCL calls with what their payloads say; None where the export holds no blobs of a known
    schema.

    Raises `DamagedTrace` where a table cannot be read.
    """
    columns = ("start", "end", "globalTid", "textId")
    if "binaryData" not in tables.columns_of(NVTX) or not tables.columns_of(ENTRIES):
        return None
    schemas = build_schemas(
        tables.typed(SCHEMAS, dict.fromkeys(_SIZES, object)),
        tables.typed(ENTRIES, dict.fromkeys(_PLACES, object)),
    )
    rows, blobs = tables.blobs(NVTX, columns, "binaryData")
    if not blobs or not schemas:
        return None
    name, names = named(tables, [rows[:, 3]])
    return NcclCalls(
        rows[:, 0], rows[:, 1], rows[:, 2], name, names, decode_payloads(blobs, schemas)
    )


def build_schemas(
    sizes: Iterable[Sequence[object]], entries: Iterable[Sequence[object]]
) -> SchemaTable:
    """Layouts from rows (domain, schema, size) and (domain, schema, place, type, name, offset).

    A definition begins again where places do not rise. A NULL offset is the beginning of the
    payload.
    """
    size_of = defaultdict[tuple[int, int], list[int | None]](list)
    for domain, schema, size in sizes:
        size_of[_number(domain), _number(schema)].append(None if size is None else _number(size))
    fields_of = defaultdict[tuple[int, int], list[list[PayloadField]]](list)
    last = dict[tuple[int, int], int]()
    for domain, schema, place, kind, name, offset in entries:
        key, place = (_number(domain), _number(schema)), _number(place)
        if key not in last or place <= last[key]:
            fields_of[key].append([])
        last[key] = place
        if str(name) in FIELDS and _number(kind) in _NUMBERS:
            at = 0 if offset is None else _number(offset)
            fields_of[key][-1].append(PayloadField(FIELDS[str(name)], _NUMBERS[_number(kind)], at))
    table = {}
    for key, fields in fields_of.items():
        sized = zip(chain(size_of[key], repeat(None)), fields, strict=False)
        table[key] = tuple(dict.fromkeys(PayloadSchema(size, tuple(each)) for size, each in sized))
    return table


def decode_payloads(blobs: Sequence[bytes], schemas: SchemaTable) -> Payloads:
    """Decode blobs; only the first payload of each. What cannot be decoded is NULL, never an
    error.
    """
    numbers = {field: np.full(len(blobs), NULL) for field in FIELDS.values()}
    by_length = defaultdict(list)
    for place, blob in enumerate(blobs):
        if len(blob) >= _HEADER_BYTES:
            by_length[len(blob)].append(place)
    for length, members in by_length.items():
        places = ints(members)
        whole = b"".join(blobs[row] for row in members)
        raw = np.frombuffer(whole, dtype=np.uint8).reshape(-1, length)
        headers = np.ascontiguousarray(raw[:, :_HEADER_BYTES]).view("<u8")
        for header in dict.fromkeys(map(tuple, headers.tolist())):
            domain, schema, size, begin = header
            fit = [form for form in schemas.get((domain, schema), ()) if form.size in (None, size)]
            if len(fit) == 1 and begin <= length:
                mine = (headers == np.array(header, dtype=np.uint64)).all(axis=1)
                end = min(size, length - begin)
                _decode(raw[mine, begin : begin + end], fit[0], places[mine], numbers)
    return Payloads(**numbers)


def _decode(
    payload: NDArray[np.uint8], layout: PayloadSchema, places: IntArray, into: dict[str, IntArray]
) -> None:
    """Fields that lie wholly within the payloads, shape (m, bytes)."""
    for field in layout.fields:
        end = field.offset + np.dtype(field.number).itemsize
        if field.offset >= 0 and end <= payload.shape[1]:
            number = np.ascontiguousarray(payload[:, field.offset : end]).view(field.number)[:, 0]
            into[field.name][places] = ints(number)  # a hash above 2**63 wraps


def _number(value: object) -> int:
    if isinstance(value, int):
        return value
    return NULL
