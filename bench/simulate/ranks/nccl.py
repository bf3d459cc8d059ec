"""NCCL's own ranges around the calls that launch its kernels, with or without what its payloads say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from bench.simulate.happened import Activity
from bench.simulate.ranks.described import RanksRun
from bench.simulate.ranks.layout import Group
from bench.simulate.ranks.routing import tokens
from bench.simulate.recorded import START_NS, Process, View, recorded_ns
from bench.simulate.recording import Recording
from bench.simulate.run import Run
from tests.recordings.payloads import collective, init, send

_CALLS: Final[Mapping[str, str]] = {
    "nccl_all_gather": "ncclAllGather",
    "nccl_reduce_scatter": "ncclReduceScatter",
    "nccl_all_reduce": "ncclAllReduce",
}
_EXCHANGE: Final = "nccl_send_recv"
_TOKENS_OUT: Final = ("dispatch", "combine_bwd")
"""Passes that bring tokens to their experts; the others bring them back."""
_INIT_BEFORE_NS: Final = 100_000_000
_EVERY_INIT_NS: Final = 2_000_000
_INIT_NS: Final = 1_000_000
_CALL_EVERY_NS, _CALL_NS, _END_NS = 4, 2, 40
"""Ranges of a group lie one behind the other just before the call that launches its kernel."""


def communicator(run: RanksRun, kind: Group, rank: int) -> int:
    """The hash of the communicator of a rank's group: 64 bits, the same on all of its ranks."""
    name = f"{run.seed}/{kind.value}/{run.layout.group(kind, rank)}"
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def communicators(run: RanksRun, done: Run, rank: int) -> list[Group]:
    """The groups of a rank that have NCCL kernels, in order of first use."""
    used = [
        Group(one.collective.name)
        for one in done.activities
        if one.collective is not None and one.work.kernel.startswith("nccl_")
    ]
    return list(dict.fromkeys(used))


@dataclass(slots=True)
class NcclRanges:
    """Adds the ranges of one rank to its recording. `payloads`: by the place of the range's row."""

    run: RanksRun
    rank: int
    recording: Recording
    process: Process
    payloads: dict[int, bytes] = field(default_factory=dict)

    def add(self, done: Run, view: View, *, inits: bool) -> None:
        """Ranges of all calls that the view shows; `inits`: those that made the communicators as well."""
        if inits and not view.begin_frac:
            self._inits(done)
        begin_ns, end_ns = recorded_ns(done, view)
        for activity in done.activities:
            call = done.executed.calls[activity.call]
            if activity.collective is None or not begin_ns <= call.start_ns < end_ns:
                continue
            tid, span = self.process.tid(call.thread), (START_NS + call.start_ns, START_NS + call.end_ns)
            if activity.work.kernel == _EXCHANGE:
                self._group(activity, tid, *span)
            elif activity.work.kernel in _CALLS:
                payload = collective(self._communicator(activity), activity.work.size_bytes)
                name = _CALLS[activity.work.kernel]
                self._range(name, span[0] - _CALL_EVERY_NS, span[1] + _END_NS, tid, payload)

    def _inits(self, done: Run) -> None:
        begin_ns, tid = START_NS - _INIT_BEFORE_NS, self.process.pid
        for kind in communicators(self.run, done, self.rank):
            group = self.run.layout.group(kind, self.rank)
            hashed = communicator(self.run, kind, self.rank)
            payload = init(hashed, len(group), group.index(self.rank), self.process.device)
            self._range("ncclCommInitRankConfig", begin_ns, begin_ns + _INIT_NS, tid, payload)
            begin_ns += _EVERY_INIT_NS

    def _communicator(self, activity: Activity) -> int:
        assert activity.collective is not None
        return communicator(self.run, Group(activity.collective.name), self.rank)

    def _group(self, activity: Activity, tid: int, start_ns: int, end_ns: int) -> None:
        """Sends and receives between the start of a group and its end, which launches the kernel."""
        hashed, messages = self._communicator(activity), self._messages(activity)
        at_ns = start_ns - _CALL_EVERY_NS * (len(messages) + 2)
        self._range("ncclGroupStart", at_ns, at_ns + _CALL_NS, tid, None)
        for name, peer, size_bytes in messages:
            at_ns += _CALL_EVERY_NS
            self._range(name, at_ns, at_ns + _CALL_NS, tid, send(hashed, size_bytes, peer))
        self._range("ncclGroupEnd", at_ns + _CALL_EVERY_NS, end_ns + _END_NS, tid, None)

    def _messages(self, activity: Activity) -> list[tuple[str, int, int]]:
        """Name of the call, peer within the communicator, and bytes."""
        work, place = activity.work, activity.work.place
        assert activity.collective is not None
        if activity.collective.name == Group.PIPELINE.value:
            (other,) = (rank for rank in activity.collective.group if rank != self.rank)
            peer = self.run.layout.group(Group.PIPELINE, self.rank).index(other)
            calls = [
                call
                for word, call in (("send", "ncclSend"), ("receive", "ncclRecv"))
                if word in place.operation
            ]
            return [(call, peer, work.size_bytes) for call in calls]
        group = activity.collective.group
        gets = [tokens(self.run, rank, place.step, place.microbatch, place.layer) for rank in group]
        mine, size_bytes = gets[group.index(self.rank)], work.size_bytes / len(group)
        out = place.operation.split()[0] in _TOKENS_OUT
        messages = []
        for peer, theirs in enumerate(gets):
            sent, received = (theirs, mine) if out else (mine, theirs)
            messages.append(("ncclSend", peer, round(size_bytes * sent)))
            messages.append(("ncclRecv", peer, round(size_bytes * received)))
        return messages

    def _range(self, name: str, start_ns: int, end_ns: int, tid: int, payload: bytes | None) -> None:
        self.recording.range(name, start_ns, end_ns, pid=self.process.pid, tid=tid, registered=True, domain=1)
        if payload is not None:
            self.payloads[len(self.recording.rows["NVTX_EVENTS"]) - 1] = payload
