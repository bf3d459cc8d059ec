"""A symptoms file -> Symptoms: the contract's names, as parts of the window or in ns, or an earlier result.

A file says a run flat, or rank by rank under `ranks`. Beside the contract's own keys it may say `kernels`,
`capture` and `log`. A key that we do not know is noted and not read: the contract may grow. Only where parts
are named (kinds, causes, classes) it is an error, as leaving one out would change the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, get_args

from heuristics.evidence.symptoms.earlier import read_verdict, read_walls
from heuristics.evidence.symptoms.fields import Fields, parse_object
from heuristics.evidence.symptoms.rank import RANK_KEYS, read_rank
from heuristics.evidence.symptoms.symptoms import Capture, Late, RankSymptoms, Symptoms
from traces.errors import InputError
from traces.training_log.log import Stage

CAUSES: Final = (
    "slow_device",
    "slow_host",
    "slow_link",
    "routing_imbalance",
    "rotating_jitter",
    "data_loader",
    "pipeline_imbalance",
    "none",
)
"""Why one rank is late, as the contract's `run.late` says it."""

UNREAD: Final = 20
"""Sentences of unknown keys that are kept: enough to see what a file speaks of."""

_RUN_KEYS: Final = ("capture", "run", "log", "ranks", "walls", "verdict")
_UNREAD_KEYS: Final = (
    *("schema_version", "tool", "warnings", "missing", "redacted", "traces", "throughput", "given"),
    *("fixes", "levers", "refused", "config_findings", "choices"),
)
_CAPTURE_KEYS: Final = (
    *("perturbation_frac", "missing_events", "ranks_seen", "world_size"),
    *("correlation_frac", "diagnostics"),
)
_RUN_SECTION: Final = ("ranks_seen", "world_size", "groups", "late", "clocks")
_LATE_KEYS: Final = ("index", "rank", "cause", "wait_frac", "wait_ns")


def read_symptoms(text: str, name: str) -> Symptoms:
    """Symptoms of a JSON text; `name` is the file's, for messages.

    Raises InputError: no JSON, an unknown part, a wrong type or value, parts that add up to more than the
    whole, or nothing said that we know.
    """
    return _symptoms(parse_object(text, name))


def symptoms_of(document: Mapping[str, object]) -> Symptoms:
    """Symptoms of an earlier result, which keeps the contract."""
    return _symptoms(Fields("the result", "", document))


def _symptoms(document: Fields) -> Symptoms:
    earlier = "schema_version" in document
    if earlier:
        version = document.text("schema_version") or ""
        if not version.startswith("1."):
            document.refuse("schema_version", "is no version of ours; results of 1.0 can be read")
    else:
        document.note({*_RUN_KEYS, *_UNREAD_KEYS, *RANK_KEYS})
    ranks = _ranks(document, strict=not earlier)
    walls = read_walls(document)
    found = Symptoms(
        ranks=ranks,
        capture=_capture(document, strict=not earlier),
        late=_late(document.under("run"), ranks),
        out_of_memory=_out_of_memory(document.under("log")),
        walls=walls,
        earlier=read_verdict(document.under("verdict")) if walls and "verdict" in document else None,
    )
    if found == Symptoms(ranks=(RankSymptoms(),)):
        raise InputError(f"{document.source}: {_nothing(document.unread)}")
    return replace(found, unread=tuple(document.unread[:UNREAD]))


def _nothing(unread: list[str]) -> str:
    if unread:
        return f"no known symptom is given; {unread[0]}"
    return "nothing is given; give budget_frac, exposed_comm_by_kind_frac and absent_frac"


def _ranks(document: Fields, strict: bool) -> tuple[RankSymptoms, ...]:
    if "ranks" not in document:
        return (read_rank(document, strict),)
    flat = sorted(set(document.values) & set(RANK_KEYS) - {"rank"})
    if flat and strict:
        document.refuse(flat[0], "is given beside ranks; give it for each of them")
    listed = document.each("ranks")
    if strict:
        for one in listed:
            one.note(RANK_KEYS)
    return tuple(read_rank(one, strict) for one in listed)


def _capture(document: Fields, strict: bool) -> Capture:
    """Of `capture`, of the earlier result's traces, and of `run`, where the contract has the counts."""
    own, run = document.under("capture"), document.under("run")
    if strict:
        own.note(_CAPTURE_KEYS)
        run.note(_RUN_SECTION)
    traces = [one.under("capture") for one in document.each("traces")]
    perturbed = [one.number("perturbation_frac", least=-1.0, most=math.inf) for one in (own, *traces)]
    seen, world = own.count("ranks_seen"), own.count("world_size")
    seen = run.count("ranks_seen") if seen is None else seen
    world = run.count("world_size") if world is None else world
    if seen is not None and world is not None and seen > world:
        own.refuse("ranks_seen", "is more than world_size")
    return Capture(
        max((one for one in perturbed if one is not None), default=None),
        own.flag("missing_events"),
        seen,
        world,
    )


def _late(run: Fields, ranks: tuple[RankSymptoms, ...]) -> Late | None:
    if "late" not in run:
        return None
    fields = run.under("late")
    fields.note(_LATE_KEYS)
    windows = [rank.window_ns for rank in ranks if rank.window_ns]
    timed = fields.timed(max(windows, default=None))
    number, place = fields.count("rank"), fields.count("index")
    if number is None and place is not None and place < len(ranks):
        number = ranks[place].rank
    cause = fields.text("cause", CAUSES) or "none"
    return Late(cause, number, timed.time("wait"))


def _out_of_memory(log: Fields) -> Stage | None:
    log.note(("out_of_memory",))
    told = log.text("out_of_memory", get_args(Stage))
    return next((stage for stage in get_args(Stage) if stage == told), None)
