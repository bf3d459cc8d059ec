"""NCCL's payloads: blobs decoded by the layouts the export defines."""

from __future__ import annotations

import pytest

from tests.recordings.payloads import ENTRIES, SEND, SIZES, header, init, send
from traces.columns import NULL
from traces.formats.nccl_payloads import PayloadSchema, build_schemas, decode_payloads

SCHEMAS = build_schemas(SIZES, ENTRIES)


def test_each_send_gives_its_communicator_bytes_and_peer() -> None:
    found = decode_payloads([send(7, 1_000, 3), send(8, 2_000, 0)], SCHEMAS)
    assert found.communicator.tolist() == [7, 8]
    assert found.size_bytes.tolist() == [1_000, 2_000]
    assert found.peer.tolist() == [3, 0]
    assert found.rank_count.tolist() == [NULL, NULL]


def test_an_init_gives_the_ranks_of_its_communicator_and_kinds_keep_their_rows() -> None:
    found = decode_payloads([send(7, 10, 1), init(7, 8, rank=5, device=2), send(7, 20, 2)], SCHEMAS)
    assert found.rank_count.tolist() == [NULL, 8, NULL]
    assert found.rank.tolist() == [NULL, 5, NULL]
    assert found.cuda_device.tolist() == [NULL, 2, NULL]
    assert found.size_bytes.tolist() == [10, NULL, 20]


def test_a_hash_above_2_63_wraps_to_the_signed_number_of_the_same_bits() -> None:
    assert decode_payloads([send(2**64 - 1, 1, 0)], SCHEMAS).communicator.tolist() == [-1]


def test_definitions_that_disagree_are_told_apart_by_size_or_not_decoded() -> None:
    old = [(1, SEND, 0, 22, "Message size [bytes]", None), (1, SEND, 1, 5, "Peer rank", 8)]
    shorter = build_schemas([(1, SEND, 16), (1, SEND, 24)], old + ENTRIES[:3])
    assert decode_payloads([send(7, 10, 1)], shorter).size_bytes.tolist() == [10]
    same_size = build_schemas([(1, SEND, 24), (1, SEND, 24)], old + ENTRIES[:3])
    found = decode_payloads([send(7, 10, 1)], same_size)
    assert found.size_bytes.tolist() == [NULL]


def test_a_truncated_blob_gives_what_it_holds() -> None:
    found = decode_payloads([send(7, 10, 1)[:48], b"short", b"", send(7, 20, 2)], SCHEMAS)
    assert found.size_bytes.tolist() == [10, NULL, NULL, 20]
    assert found.peer.tolist() == [NULL, NULL, NULL, 2]


@pytest.mark.parametrize("odd", [header(schema=5) + bytes(24), header(domain=9) + bytes(24), bytes(56)])
def test_an_unknown_schema_gives_nothing(odd: bytes) -> None:
    found = decode_payloads([odd, send(7, 20, 2)], SCHEMAS)
    assert found.size_bytes.tolist() == [NULL, 20]


@pytest.mark.parametrize("offset", [2**64 - 1, 2**40, 57])
def test_an_absurd_offset_is_truncation(offset: int) -> None:
    found = decode_payloads([header(offset=offset) + bytes(24)], SCHEMAS)
    assert found.size_bytes.tolist() == [NULL]


def test_an_enumeration_of_unknown_type_is_passed_over() -> None:
    reduce = [*ENTRIES[:2], (1, SEND, 2, 16_777_232, "Reduction operation", 16)]
    schemas = build_schemas(SIZES[:1], reduce)
    assert schemas[1, SEND] == (PayloadSchema(24, schemas[1, SEND][0].fields),)
    assert len(schemas[1, SEND][0].fields) == 2
    assert decode_payloads([send(7, 10, 1)], schemas).size_bytes.tolist() == [10]
