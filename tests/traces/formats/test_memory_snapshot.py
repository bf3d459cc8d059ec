"""Memory snapshots: what is in use when, what it is for; and nothing of a hostile file is ever run."""

from __future__ import annotations

import json
import pickle
import pickletools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.recordings.memory_snapshot import MIB, Runs, block, entry, one_step
from traces.errors import NotASnapshot
from traces.formats.memory_snapshot import read_memory_snapshot
from traces.measure.memory_snapshot import snapshot_of
from traces.sections.memory_snapshot import SnapshotDevice


def device_of(
    path: Path, document: object, write: Callable[[object], bytes] = pickle.dumps
) -> SnapshotDevice:
    path.write_bytes(write(document))
    (device,) = snapshot_of(read_memory_snapshot(path)).devices
    return device


def as_json(document: object) -> bytes:
    return json.dumps(document).encode()


@pytest.mark.parametrize("write", [pickle.dumps, as_json])
def test_the_peak_is_split_by_what_memory_is_for(tmp_path: Path, write: Callable[[object], bytes]) -> None:
    found = device_of(tmp_path / "snapshot.pickle", one_step(), write)
    assert (found.used_bytes, found.reserved_bytes) == (73 * MIB, 100 * MIB)
    assert (found.unused_reserved_bytes, found.before_recording_bytes) == (27 * MIB, 10 * MIB)
    assert found.peak_bytes == 73 * MIB
    assert found.at_peak_bytes == {
        "optimizer": 40 * MIB,
        "parameters": 20 * MIB,
        "before_recording": 10 * MIB,
        "gradients": 3 * MIB,
    }
    assert found.out_of_memory == 1
    assert found.curve.used_bytes == tuple(n * MIB for n in (10, 30, 35, 38, 45, 45, 38, 33, 73, 73))


def test_stacks_show_frames_of_known_packages_alone(tmp_path: Path) -> None:
    found = device_of(tmp_path / "snapshot.pickle", one_step())
    assert found.stacks_at_peak[0].frames == ("torch/optim/adam.py: _init_group", "(own code)")
    assert "someone" not in repr(found)
    assert "secret" not in repr(found)


HEAD = b"\x80\x04"
CALLS = (
    b"cposix\nsystem\n(S'mkdir ran'\ntR.", b"(S'mkdir ran'\niposix\nsystem\n.",
    b"(cposix\nsystem\nS'mkdir ran'\no.", b"\x8c\x05posix\x8c\x06system\x93\x8c\x09mkdir ran\x85R.",
    b"\x82\x01.", b"\x83\x01\x00.", b"\x84\x01\x00\x00\x00.", b"cbuiltins\neval\n)\x81.",
    b"cbuiltins\neval\n)}\x92.", b"}}b.", b"P1\n.", b"K\x01Q.",
)  # fmt: skip


def hostile() -> list[bytes]:
    """300 of them: calls in every protocol, within plain values or not, bombs, and spoiled honest ones."""
    honest, chance = pickle.dumps(one_step()), random.Random(36)
    wrong = [HEAD + call for call in CALLS]
    wrong += [HEAD + b"}\x8c\x08segments" + call[:-1] + b"s." for call in CALLS]
    for protocol in range(2, 6):
        wrong.append(pickle.dumps(Runs(Path("ran")), protocol))
        wrong.append(pickle.dumps({"segments": [Runs(Path("ran"))]}, protocol))
    wrong += [HEAD + b"(" * depth + b"t" * depth + b"." for depth in (1, 1_000, 100_000)]
    wrong += [HEAD + b"]" * depth + b"a" * (depth - 1) + b"." for depth in (2, 1_000, 100_000)]
    wrong += [
        HEAD + code + b"\xff" * 8 + b"x."
        for code in (b"X", b"\x8c", b"\x8d", b"\x8a", b"\x8b", b"B", b"\x8e")
    ]
    wrong += [_shared(levels, "blocks") for levels in (10, 30, 60)]
    wrong += [_shared(levels, "state") for levels in (10, 30, 60)]
    wrong += [
        HEAD + b"]\x94h\x00a.", HEAD + b"}\x94\x8c\x08segmentsh\x00s.", b"\x80", b"", b"{}", b"[]", b"\xff",
    ]  # fmt: skip
    while len(wrong) < 200:
        wrong.append(honest[: chance.randrange(len(honest) - 1)])
    codes = [op.code.encode("latin-1") for op in pickletools.opcodes if op.name in _ASK]
    while len(wrong) < 300:
        at = chance.randrange(2, len(honest))
        wrong.append(honest[:2] + chance.choice(codes) + honest[at:])
    return wrong


_ASK = (
    "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4",
    "BINPERSID",
)  # fmt: skip


def _shared(levels: int, key: str) -> bytes:
    """A list of the same list, twice, and so on: 2 ** levels parts, were they ever counted one by one."""
    part: Any = {"size": "large"}
    for _ in range(levels):
        part = [part, part]
    within = {"device": 0, "address": 0, "total_size": 1, "blocks": [{"size": -1, "state": part}]}
    return pickle.dumps({"segments": [within | ({key: part} if key == "blocks" else {})]})


@pytest.mark.parametrize("part", range(10))
def test_hostile_files_are_refused_with_one_line_and_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.chdir(tmp_path)
    files = hostile()
    assert len(files) == 300
    for number, data in enumerate(files[part * 30 : part * 30 + 30]):
        path = tmp_path / f"{number}.pickle"
        path.write_bytes(data)
        with pytest.raises(NotASnapshot) as refused:
            read_memory_snapshot(path)
        assert "\n" not in str(refused.value)
        path.unlink()
    assert list(tmp_path.iterdir()) == []


def test_sizes_that_no_gpu_has_are_refused(tmp_path: Path) -> None:
    document = one_step()
    document["device_traces"][0] += [entry("alloc", 7, 1 << 29), entry("free_completed", 7, 1 << 29)] * 10_000
    path = tmp_path / "large.pickle"
    path.write_bytes(pickle.dumps(document))
    with pytest.raises(NotASnapshot, match="more than any run takes"):
        read_memory_snapshot(path)


def test_a_list_named_again_and_again_is_counted_each_time(tmp_path: Path) -> None:
    blocks = [block(0, 1, "inactive")] * 3_000
    segment = {"device": 0, "address": 0, "total_size": MIB, "blocks": blocks}
    path = tmp_path / "bomb.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment] * 3_000}))
    with pytest.raises(NotASnapshot, match="again and again"):
        read_memory_snapshot(path)


def test_activations_and_temporary_memory_stand_at_a_peak_within_the_step(tmp_path: Path) -> None:
    document = one_step()
    del document["device_traces"][0][7], document["segments"][0]["blocks"][3]
    found = device_of(tmp_path / "snapshot.pickle", document)
    assert found.peak_bytes == 45 * MIB
    assert found.at_peak_bytes == {
        "parameters": 20 * MIB,
        "before_recording": 10 * MIB,
        "temporary": 7 * MIB,
        "activations": 5 * MIB,
        "gradients": 3 * MIB,
    }
