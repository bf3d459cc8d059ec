"""What is read of many rows at once is what a walk over them, one by one, finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from traces.columns import NULL, Ranges
from traces.resolve.communicators import Parts
from traces.resolve.nccl_calls import ALL_TO_ALL, EITHER, POINT_TO_POINT, UNKNOWN, Groups, groups_of

TEXTS = ("ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv", "ncclAlltoAll", "ncclAllGather")
START, END, SEND, RECEIVE, EXCHANGE, GATHER = range(6)


class Call(NamedTuple):
    """`name`: of its communicator. What its payload does not say is NULL."""

    thread: int
    start: int
    end: int
    text: int
    name: int
    peer: int


def drawn(chance: Random, thread: int) -> list[Call]:
    """Calls every 10, some of which touch or overlap the next."""
    several = []
    for at in range(0, 10 * chance.randint(0, 9), 10):
        (text,) = chance.choices(range(6), (3, 3, 4, 4, 1, 1))
        payload = chance.choice((70, 70, 70, 70, 50, NULL)), chance.choice((0, 1, 1, 1, NULL))
        several.append(Call(thread, at, at + chance.choice((0, 5, 10, 15)), text, *payload))
    return several


def one(several: Iterable[int]) -> int:
    found = {*several}
    return found.pop() if len(found) == 1 else -1


def behind(calls: Sequence[Call], time: int, names: Sequence[int]) -> list[int]:
    """Sends, receives, all-to-alls, communicator, peers of sends and of receives, the one peer."""
    inside: list[Call] = []
    launching: list[Call] | None = None
    depth = until = 0
    for call in (one for one in calls if one.start <= time):
        launching, until = None, call.end
        if call.text == START:
            inside, depth = inside if depth else [], depth + 1
        elif call.text == END and depth:
            depth -= 1
            launching = None if depth else inside
        elif call.text != END and depth:
            inside.append(call)
        elif call.text != END:
            launching = [call]
    if launching is None or time > until:
        return [-1] * 7
    communicator = one(-1 if call.name == NULL else names.index(call.name) for call in launching)
    if launching is not inside and launching[0].text == GATHER:
        return [-1, -1, -1, communicator, -1, -1, -1]
    counts = [sum(call.text == text for call in launching) for text in (SEND, RECEIVE, EXCHANGE)]
    sent, received = (
        [max(one.peer, -1) for one in launching if one.text == text] for text in (SEND, RECEIVE)
    )
    told = [*(-1 if -1 in mine else len({*mine}) for mine in (sent, received)), one([*sent, *received])]
    return [*counts, communicator, *(told if communicator >= 0 else [-1] * 3)]


class Launches(list[tuple[int, int]]):
    """Thread and time of each, as `groups_of` asks for them."""

    def __init__(self, of: list[tuple[int, int]], calls: list[Call]) -> None:
        super().__init__(of)
        thread, start, end, text, name, peer = np.array(calls, dtype=np.int64).reshape(-1, 6).T
        at = {"thread_gid": thread, "start_ns": start, "end_ns": end, "name": text}
        untold = dict.fromkeys(("size_bytes", "rank_count", "rank"), np.full(len(calls), NULL))
        rows = SimpleNamespace(
            **at, names=TEXTS, payloads=SimpleNamespace(communicator=name, peer=peer, **untold)
        )
        ranges = Ranges(start, end, thread, text)
        columns = SimpleNamespace(range_texts=TEXTS, ranges=ranges, nccl_calls=rows)
        self.rank = SimpleNamespace(columns=columns, process_gid=NULL)
        thread, launch = np.array(of).T
        self.rows = SimpleNamespace(launching_threads=[1, 2, 3], launch_thread=thread, launch_ns=launch)


def test_the_group_behind_a_launch_is_that_of_a_walk_over_the_calls_of_its_thread() -> None:
    chance, times = Random(1), [(thread, time) for thread in (1, 2, 3) for time in range(-5, 105, 5)]
    for _ in range(80):
        calls = [*drawn(chance, 1), *drawn(chance, 2)]
        names = sorted({call.name for call in calls} - {NULL})
        expected = [behind([one for one in calls if one.thread == thread], at, names) for thread, at in times]
        chance.shuffle(calls)
        launches: Any = Launches(times, calls)
        found = groups_of(launches)
        counts = (found.send_count, found.receive_count, found.all_to_all_count, found.communicator)
        peers = (found.send_peer_count, found.receive_peer_count, found.peer)
        assert np.array([*counts, *peers]).T.tolist() == expected


def test_who_exchanges_with_three_or_with_all_is_no_neighbour() -> None:
    rows = [*product(range(4), range(4), range(2), range(-1, 4), range(-1, 4), (7,), (-1, 1, 2), (7,))]
    expected = []
    for sends, receives, exchanges, sent_to, received_from, _, ranks, _ in rows:
        least, most = sorted(
            (sends, receives)[place] if told < 0 else told
            for place, told in enumerate((sent_to, received_from))
        )
        is_all = exchanges or most > 2 or (most == ranks and -1 not in (sent_to, received_from))
        few = EITHER if least == 2 else POINT_TO_POINT if most else UNKNOWN
        expected.append(ALL_TO_ALL if is_all else few)
    assert Groups(*np.array(rows).T).shape().tolist() == expected


def test_what_parts_share_and_agree_on_is_counted_row_by_row() -> None:
    chance = Random(2)
    for _ in range(100):
        rows = [
            (chance.randrange(3), *chance.choices((0, 1), k=2), chance.randint(-1, 1))
            for _ in range(chance.randint(1, 9))
        ]
        own = chance.choices((True, False), k=3)
        part, mask, among, value = np.array(rows).T
        parts = Parts(part, np.arange(3), np.array(own))
        shared, has, agreed = [], [], []
        for mine, _, is_asked, _ in rows:
            beside = [row[1:] for row in rows if row[0] == mine]
            asked = [one[2] for one in beside if one[1]]
            told = [one for one in asked if one >= 0]
            shared.append(sum(one[0] and one[1] for one in beside))
            has.append(own[mine] and any(one[0] for one in beside))
            agreed.append(one(told) if is_asked and own[mine] and 2 * len(told) >= len(asked) else -1)
        assert parts.share(mask > 0, among > 0).tolist() == shared
        assert parts.any_of(mask > 0).tolist() == has
        assert parts.agreed(value, among > 0).tolist() == agreed
