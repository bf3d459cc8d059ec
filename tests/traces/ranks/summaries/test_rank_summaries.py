"""Summaries as bytes: small, exact where they can be, and harmless whatever they are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings.ranks import Part, Work, array, summary_of, together
from traces.errors import DamagedTrace, InputError, NotATrace
from traces.ranks.summaries import codec
from traces.ranks.summaries.codec import encode, is_summary
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.identity import fingerprint_of_columns
from traces.ranks.summaries.summary import (
    UNKNOWN,
    ExpertWork,
    Group,
    GroupSource,
    Messages,
    Peers,
    RankSummary,
)

GROUP = Group(GroupSource.PROCESS_GROUP, -(1 << 62), 3, (0, 2, 4), 1, 2)


def same(one: RankSummary, other: RankSummary) -> bool:
    tables = ("steps", "instances", "kernels", "messages", "peers", "experts")
    equal = all(
        np.array_equal(getattr(getattr(one, table), each.name), getattr(getattr(other, table), each.name))
        for table in tables
        for each in fields(getattr(one, table))
    )
    rest = ("identity", "fingerprint", "groups", "first_step")
    return equal and all(getattr(one, name) == getattr(other, name) for name in rest)


def test_a_summary_comes_back_as_it_was() -> None:
    parts = [Part(0, 5, 100, 200, before={"compute": 30.5}), Part(0, 6, 250, 251), Part(0, 1 << 40, 260, 300)]
    steps = [{"start": 90, "end": 240, "compute": 30}, {"start": 240, "end": 300, "loader": 5}]
    given = replace(
        summary_of(3, parts, [GROUP], steps=steps, kernels_us=[7]),
        messages=Messages(array([1, 0, 2]), array([0, 1, 2]), array([-1, 5, 1 << 40])),
        peers=Peers(*(array([value]) for value in (8, -(1 << 62), -1, 3, 1 << 41, 0))),
        experts=ExpertWork(array([0, 1]), array([0, 60]), array([1_000, 1 << 33])),
    )
    given = replace(given, first_step=type(given.first_step).LONGER)
    assert same(decode(encode(given), "a"), given)


@pytest.mark.parametrize(("given", "told"), [
    ("run.toml:7", "run.toml:7"), ("given", "given"), ("a\x1b[31m:7", "WITHHELD[31m:7"), ("run.toml:x", "x"),
    (None, None),
])  # fmt: skip
def test_where_the_size_was_given_is_told_by_file_and_line_without_what_a_terminal_obeys(
    given: str | None, told: str | None
) -> None:
    one = summary_of(0, [])
    one = replace(one, identity=replace(one.identity, world_size_from=given))
    assert decode(encode(one), "a").identity.world_size_from == told


def test_a_step_of_two_hundred_collectives_takes_three_thousand_bytes_at_most() -> None:
    (given, *_) = together([[Work(compute=97.123 + number % 13) for number in range(800)]] * 2, per_step=200)
    assert len(encode(given)) <= 4 * 3_000


def test_times_are_as_fine_as_the_goal_allows_and_no_finer_than_they_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (one, *_) = together([[Work(compute=9.5)] * 300] * 2, per_step=100)
    times = np.random.default_rng(1).integers(0, 1 << 30, 300)
    one = replace(one, instances=replace(one.instances, host_ns=times, step=np.full(300, -1)))
    for count, ns in product((0, 3), (1, 16, 128, 1024)):
        given = replace(one, steps=one.steps.take(np.arange(count)))
        size = len(codec._bytes_of(given, ns))
        monkeypatch.setattr(codec, "GOAL", replace(codec.GOAL, value=size / max(1, count)))
        read = decode(encode(given), "a")
        assert (read.dropped.resolution_ns, len(read.instances)) == (ns, 300)
        assert same(decode(codec._bytes_of(read, 1), "a"), read)
        assert (read.instances.host_ns == times // ns * ns).all()
        assert (read.instances.compute_ns == UNKNOWN).sum() == 1
    for goal, most, left in ((size, size, 300), (1, size, 300), (size, size - 1, 150)):
        monkeypatch.setattr(codec, "GOAL", replace(codec.GOAL, value=goal))
        monkeypatch.setattr(codec, "MOST", replace(codec.MOST, value=most))
        assert len(decode(encode(given), "a").instances) == left


def test_of_more_steps_than_there_is_room_for_the_last_are_told() -> None:
    parts = [Part(0, n, n, n + 0.5, step=step) for n, step in enumerate((-1, 0, 3_976, 4_999))]
    given = summary_of(0, parts, steps=[{"start": n, "end": n + 1} for n in range(5_000)])
    given = replace(given, experts=ExpertWork(*[array([3_975, 3_976])] * 3))
    longer = type(given.first_step).LONGER
    given = replace(given, dropped=replace(given.dropped, steps=1), first_step=longer)
    read = decode(encode(given), "a")
    assert read.steps.start_ns.tolist() == given.steps.start_ns[3_976:].tolist()
    assert (read.instances.step.tolist(), read.dropped.steps) == ([-1, -1, 0, 1_023], 1 + 3_976)
    assert (read.experts.step.tolist(), read.experts.layer.tolist()) == ([0], [3_976])
    assert read.first_step.name == "USUAL"


@pytest.mark.parametrize(("steps", "left", "gone"), [
    ([-1] * 9, [0, 1, 7, 8], 0), ([0] * 4 + [1] * 4, [0, 1, 6, 7], 0),
    (sorted([*range(8)] * 3), [0, 1, 2, 21, 22, 23], 6), ([0, 1] + [2] * 10 + [3] * 4, [0, 1], 2),
])  # fmt: skip
def test_of_a_summary_the_outer_quarters_stay_without_steps_that_are_cut(
    steps: list[int], left: list[int], gone: int
) -> None:
    given = summary_of(0, [Part(0, n, n, n + 0.5, step=step) for n, step in enumerate(steps)])
    turns = Messages(*[np.arange(len(steps))] * 3)
    given = replace(given, messages=turns, experts=ExpertWork(*[array(sorted({*steps} - {-1}))] * 3))
    found = codec._without_middle(replace(given, dropped=replace(given.dropped, instances=5, steps=7)))
    assert found.instances.sequence.tolist() == found.messages.sends.tolist() == left
    assert (found.dropped.instances, found.dropped.steps) == (5 + len(steps) - len(left), 7 + gone)
    assert {*found.experts.step.tolist()} == {steps[n] for n in left} - {-1}


def test_a_table_is_known_by_its_length_and_its_first_rows() -> None:
    early, rows, late = (np.arange(5_000) * (np.arange(5_000) != one) for one in (4_095, 0, 4_096))
    known = fingerprint_of_columns(rows)
    assert fingerprint_of_columns(late) == known
    assert known not in {fingerprint_of_columns(early), fingerprint_of_columns(rows[:-1])}


def test_other_files_other_versions_and_broken_ones_are_told_apart() -> None:
    blob = encode(summary_of(0, [Part(0, 0, 1, 2, step=-1)]))
    assert is_summary(blob)
    assert len(decode(blob, "a.rank").instances) == 1
    assert not is_summary(b"SQLite format 3")
    with pytest.raises(NotATrace, match="no summary"):
        decode(b"SQLite format 3", "a.rank")
    mark = blob.index(b"\x00") + 1
    with pytest.raises(NotATrace, match="version 9"):
        decode(blob[:mark] + b"\x09" + blob[mark + 1 :], "a.rank")
    with pytest.raises(NotATrace, match="version None"):
        decode(blob[:mark], "a.rank")
    for bent in (blob[:-3], blob + b"x", blob[: mark + 1]):
        with pytest.raises(DamagedTrace, match=r"^a\.rank is a damaged summary"):
            decode(bent, "a.rank")


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 400))
def test_no_bytes_bring_the_reader_down(junk: bytes, at: int, until: int) -> None:
    blob = encode(summary_of(0, [Part(0, number, number, number + 0.5, step=-1) for number in range(9)]))
    for bent in (junk, blob[:at] + junk + blob[until:], blob[:15] + junk):
        with suppress(InputError):
            assert isinstance(decode(bent, "a"), RankSummary)
