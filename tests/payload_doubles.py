"""NCCL's payloads as an export with blobs holds them."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from traces.formats.nccl_payloads import ENTRIES as ENTRIES_TABLE
from traces.formats.nccl_payloads import SCHEMAS as SIZES_TABLE

SEND, INIT = 16_777_225, 16_777_227
SIZES = [(1, SEND, 24), (1, INIT, 24)]
ENTRIES = [
    (1, SEND, 0, 18, "NCCL communicator ID", None),
    (1, SEND, 1, 22, "Message size [bytes]", 8),
    (1, SEND, 2, 5, "Peer rank", 16),
    (1, INIT, 0, 18, "NCCL communicator ID", None),
    (1, INIT, 1, 5, "No. of ranks", 8),
    (1, INIT, 2, 5, "Rank", 12),
    (1, INIT, 3, 5, "CUDA device", 16),
]


def header(schema: int = SEND, size: int = 24, offset: int = 32, domain: int = 1) -> bytes:
    return struct.pack("<4Q", domain, schema, size, offset)


def send(communicator: int, size_bytes: int, peer: int) -> bytes:
    return header() + struct.pack("<QQiI", communicator, size_bytes, peer, 0)


def init(communicator: int, ranks: int, rank: int = 0, device: int = 0) -> bytes:
    return header(INIT) + struct.pack("<QiiiI", communicator, ranks, rank, device, 0)


def with_payloads(path: Path, blob_at: Mapping[int, bytes]) -> Path:
    """The export with these blobs, by the start of their range, and with the tables of their layouts."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE {SIZES_TABLE} (domainId INTEGER, schemaId INTEGER, payloadSize INTEGER)")
        db.execute(
            f"CREATE TABLE {ENTRIES_TABLE} (domainId INTEGER, schemaId INTEGER, idx INTEGER, type INTEGER, "
            "name TEXT, offset INTEGER)"
        )
        db.executemany(f"INSERT INTO {SIZES_TABLE} VALUES (?, ?, ?)", SIZES)
        db.executemany(f"INSERT INTO {ENTRIES_TABLE} VALUES (?, ?, ?, ?, ?, ?)", ENTRIES)
        rows = [(blob, start_ns) for start_ns, blob in blob_at.items()]
        db.executemany("UPDATE NVTX_EVENTS SET binaryData = ? WHERE start = ?", rows)
        db.commit()
    return path
