"""Summaries as bytes: small, exact where they can be, and harmless whatever they are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings.ranks import Part, Work, array, summary_of, together
from traces.errors import DamagedTrace, InputError, NotATrace
from traces.ranks.summaries import codec
from traces.ranks.summaries.codec import encode, is_summary
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.summary import ExpertWork, Group, GroupSource, Messages, Peers, RankSummary

GROUP = Group(GroupSource.PROCESS_GROUP, -(1 << 62), 3, (0, 2, 4), 1, 2)


def same(one: RankSummary, other: RankSummary) -> bool:
    tables = ("steps", "instances", "kernels", "messages", "peers", "experts")
    equal = all(
        np.array_equal(getattr(getattr(one, table), each.name), getattr(getattr(other, table), each.name))
        for table in tables
        for each in fields(getattr(one, table))
    )
    rest = (one.identity, one.fingerprint, one.groups) == (other.identity, other.fingerprint, other.groups)
    return equal and rest


def test_a_summary_comes_back_as_it_was() -> None:
    parts = [Part(0, 5, 100, 200, before={"compute": 30.5}), Part(0, 6, 250, 251), Part(0, 1 << 40, 260, 300)]
    steps = [{"start": 90, "end": 240, "compute": 30}, {"start": 240, "end": 300, "loader": 5}]
    given = replace(
        summary_of(3, parts, [GROUP], steps=steps, kernels_us=[7]),
        messages=Messages(array([1, 0, 2]), array([0, 1, 2]), array([-1, 5, 1 << 40])),
        peers=Peers(*(array([value]) for value in (8, -(1 << 62), -1, 3, 1 << 41, 0))),
        experts=ExpertWork(array([0, 1]), array([0, 60]), array([1_000, 1 << 33])),
    )
    assert same(decode(encode(given), "a"), given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("run.toml:7", "run.toml:7"),
        ("given", "given"),
        ("a\x1b[31m:7", "WITHHELD[31m:7"),
        ("run.toml:x", "x"),
        (None, None),
    ],
)
def test_where_the_size_was_given_is_told_by_file_and_line_without_what_a_terminal_obeys(
    given: str | None, told: str | None
) -> None:
    one = summary_of(0, [])
    one = replace(one, identity=replace(one.identity, world_size_from=given))
    assert decode(encode(one), "a").identity.world_size_from == told


def test_a_step_of_two_hundred_collectives_takes_three_thousand_bytes_at_most() -> None:
    (given, *_) = together([[Work(compute=97.123 + number % 13) for number in range(800)]] * 2, per_step=200)
    assert len(encode(given)) <= 4 * 3_000


def test_what_does_not_fit_is_rounded_then_left_out_from_the_middle_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec, "MOST", replace(codec.MOST, value=16_384))
    rng = np.random.default_rng(3)
    rows = together([[Work(compute=float(us)) for us in rng.integers(1, 10**6, 2_250)]] * 2, per_step=225)
    noisy = replace(rows[0].instances, host_ns=rng.integers(0, 1 << 40, 2_250))
    turns = Messages(*(np.arange(2_250) for _ in range(3)))
    cells = ExpertWork(
        np.repeat(np.arange(10), 60), np.tile(np.arange(60), 10), rng.integers(0, 1 << 40, 600)
    )
    given = replace(rows[0], instances=noisy, messages=turns, experts=cells)
    blob = encode(given)
    read = decode(blob, "a")
    assert len(blob) <= codec.MOST.value
    assert read.dropped.resolution_ns == 1024
    assert len(read.instances) + read.dropped.instances == 2_250
    assert read.dropped.steps == 10 - len(set(read.instances.step.tolist())) > 0
    assert {0, 9} <= set(read.instances.step.tolist())
    assert len(read.steps) == 10
    assert given.instances.step[read.messages.sends].tolist() == read.instances.step.tolist()
    assert set(read.experts.step.tolist()) == set(read.instances.step.tolist())


def test_times_are_rounded_down_to_the_resolution_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_ROUNDINGS_NS", (16,))
    (given, *_) = together([[Work(compute=1.001)] * 3] * 2, per_step=3)
    read = decode(encode(given), "a")
    assert read.dropped.resolution_ns == 16
    assert (given.instances.start_ns - read.instances.start_ns).max() < 16
    assert read.instances.compute_ns.tolist() == [-1, 992, 992]


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
    for bent in (blob[:-3], blob + b"x"):
        with pytest.raises(DamagedTrace, match=r"^a\.rank is a damaged summary"):
            decode(bent, "a.rank")


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 400))
def test_no_bytes_bring_the_reader_down(junk: bytes, at: int, until: int) -> None:
    blob = encode(summary_of(0, [Part(0, number, number, number + 0.5, step=-1) for number in range(9)]))
    for bent in (junk, blob[:at] + junk + blob[until:], blob[:15] + junk):
        with suppress(InputError):
            assert isinstance(decode(bent, "a"), RankSummary)


def test_an_end_before_its_start_is_damage() -> None:
    given = summary_of(0, [Part(0, 0, 1, 2, step=-1)])
    late = replace(given.instances, end_ns=given.instances.start_ns - 1)
    with pytest.raises(DamagedTrace, match=r"^a\.rank is a damaged summary"):
        decode(codec._bytes_of(replace(given, instances=late), 1), "a.rank")
