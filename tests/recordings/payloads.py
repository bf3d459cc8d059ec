"""NCCL's payloads as an export with blobs holds them."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from traces.formats.nccl_payloads import ENTRIES as ENTRIES_TABLE
from traces.formats.nccl_payloads import SCHEMAS as SIZES_TABLE

SEND, INIT, COLLECTIVE = 16_777_225, 16_777_227, 16_777_220
SIZES = [(1, SEND, 24), (1, INIT, 24), (1, COLLECTIVE, 16)]
ENTRIES = [
    (1, SEND, 0, 18, "NCCL communicator ID", None), (1, SEND, 1, 22, "Message size [bytes]", 8),
    (1, SEND, 2, 5, "Peer rank", 16), (1, INIT, 0, 18, "NCCL communicator ID", None),
    (1, INIT, 1, 5, "No. of ranks", 8), (1, INIT, 2, 5, "Rank", 12), (1, INIT, 3, 5, "CUDA device", 16),
    (1, COLLECTIVE, 0, 18, "NCCL communicator ID", None), (1, COLLECTIVE, 1, 22, "Message size [bytes]", 8),
]  # fmt: skip


def header(schema: int = SEND, size: int = 24, offset: int = 32, domain: int = 1) -> bytes:
    return struct.pack("<4Q", domain, schema, size, offset)


def send(communicator: int, size_bytes: int, peer: int) -> bytes:
    return header() + struct.pack("<QQiI", communicator, size_bytes, peer, 0)


def collective(communicator: int, size_bytes: int) -> bytes:
    return header(COLLECTIVE, 16) + struct.pack("<QQ", communicator, size_bytes)


def init(communicator: int, ranks: int, rank: int = 0, device: int = 0) -> bytes:
    return header(INIT) + struct.pack("<QiiiI", communicator, ranks, rank, device, 0)


def with_payloads(path: Path, blob_at: Mapping[int, bytes]) -> Path:
    """The export with these blobs, by the start of their range, and with the tables of their layouts."""
    with closing(sqlite3.connect(path)) as db:
        _add_layouts(db)
        rows = [(blob, start_ns) for start_ns, blob in blob_at.items()]
        db.executemany("UPDATE NVTX_EVENTS SET binaryData = ? WHERE start = ?", rows)
        db.commit()
    return path


def with_payloads_of_rows(path: Path, blob_of: Mapping[int, bytes]) -> Path:
    """The same by the place of their row in NVTX_EVENTS, from 0 on."""
    with closing(sqlite3.connect(path)) as db:
        _add_layouts(db)
        rows = [(blob, place + 1) for place, blob in blob_of.items()]
        db.executemany("UPDATE NVTX_EVENTS SET binaryData = ? WHERE rowid = ?", rows)
        db.commit()
    return path


def _add_layouts(db: sqlite3.Connection) -> None:
    db.execute(f"CREATE TABLE {SIZES_TABLE} (domainId INTEGER, schemaId INTEGER, payloadSize INTEGER)")
    db.execute(
        f"CREATE TABLE {ENTRIES_TABLE} (domainId INTEGER, schemaId INTEGER, idx INTEGER, type INTEGER, "
        "name TEXT, offset INTEGER)"
    )
    db.executemany(f"INSERT INTO {SIZES_TABLE} VALUES (?, ?, ?)", SIZES)
    db.executemany(f"INSERT INTO {ENTRIES_TABLE} VALUES (?, ?, ?, ?, ?, ?)", ENTRIES)
