"""A symptoms file -> Symptoms: the contract's names, as parts of the window or in ns, or an earlier result.

A file tells of a run flat, or rank by rank under `ranks`. Beside the contract's own keys it may have
`kernels`, `capture` and `log`. A key that we do not know is noted and not read: the contract may grow. Only
where parts are named (kinds, causes, classes) it is an error, as leaving one out would change the whole.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, get_args

from heuristics.evidence.symptoms.earlier import read_verdict, read_walls
from heuristics.evidence.symptoms.fields import Fields, parse_object
from heuristics.evidence.symptoms.rank import NOTHING, read_rank
from heuristics.evidence.symptoms.symptoms import Capture, Late, Symptoms
from heuristics.figures.figures import Figures
from heuristics.result.result import Result
from traces.errors import InputError
from traces.training_log.log import Stage

CAUSES: Final = (
    *("slow_device", "slow_host", "slow_link", "routing_imbalance"),
    *("rotating_jitter", "data_loader", "pipeline_imbalance", "none"),
)
"""Why one rank is late, as the contract's `run.late` tells it."""

UNREAD: Final = 20
"""Sentences of unknown keys that are kept: enough to see what a file speaks of."""
_RUN: Final = ("ranks_seen", "world_size", "groups", "late", "clocks")
_RUN_KEYS: Final = (*Result.__struct_fields__, "ranks", "throughput")


def read_symptoms(text: str, name: str) -> Symptoms:
    """Symptoms of a JSON text; `name` is the file's, for messages.

    Raises InputError: no JSON, an unknown part, a wrong type or value, parts that add up to more than the
    whole, or nothing given that we know.
    """
    return _symptoms(parse_object(text, name))


def symptoms_of(document: Mapping[str, object]) -> Symptoms:
    """Symptoms of an earlier result, which keeps the contract."""
    return _symptoms(Fields("the result", "", document))


def _symptoms(document: Fields) -> Symptoms:
    document.known |= {*_RUN_KEYS}
    version = document.text("schema_version")
    if version is not None and not version.startswith("1."):
        document.refuse("schema_version", "is no version of ours; results of 1.0 can be read")
    told = document.each("ranks") if "ranks" in document else [document]
    ranks = tuple(map(read_rank, told))
    if "ranks" in document and told and version is None:
        flat = sorted({*document.values} & told[0].known - {*_RUN_KEYS, "rank"})
        if flat:
            document.refuse(flat[0], "stands beside ranks; give it for each of them")
    walls = read_walls(document)
    found = Symptoms(
        ranks=ranks,
        capture=_capture(document),
        late=_late(document.under("run"), ranks, told),
        out_of_memory=_out_of_memory(document.under("log")),
        only_sums=any(one.under("kernels").under("sum_by_class_frac").values for one in told),
        walls=walls,
        verdict=read_verdict(document) if walls else None,
    )
    unread = () if version is not None else tuple(islice(document.unread(), UNREAD))
    if found == Symptoms(ranks=(NOTHING,)):
        hint = unread[0] if unread else "give budget_frac, exposed_comm_by_kind_frac and absent_frac"
        raise InputError(f"{document.source}: nothing is given that we know; {hint}")
    return replace(found, unread=unread)


def _capture(document: Fields) -> Capture:
    """Of `capture`, of the earlier result's traces, and of `run`, where the contract has the counts."""
    own, run = document.under("capture", ("correlation_frac", "diagnostics")), document.under("run", _RUN)
    traces = [one.under("capture") for one in document.each("traces")]
    perturbed = [one.number("perturbation_frac", least=-1.0, most=math.inf) for one in (own, *traces)]
    seen, world = (
        next((count for one in (own, run) if (count := one.count(key)) is not None), None)
        for key in ("ranks_seen", "world_size")
    )
    if seen is not None and world is not None and seen > world:
        own.refuse("ranks_seen", "is more than world_size")
    longest = max((one for one in perturbed if one is not None), default=None)
    return Capture(longest, own.flag("missing_events"), seen, world)


def _late(run: Fields, ranks: Sequence[Figures], told: Sequence[Fields]) -> Late | None:
    if "late" not in run:
        return None
    fields = run.under("late")
    fields.window_ns = max((one.window_ns for one in told if one.window_ns), default=None)
    number, place = fields.count("rank"), fields.count("index")
    if number is None and place is not None and place < len(ranks):
        number = ranks[place].rank
    return Late(fields.text("cause", CAUSES) or "none", number, fields.time("wait") or 0)


def _out_of_memory(log: Fields) -> Stage | None:
    found = log.text("out_of_memory", get_args(Stage))
    return next((stage for stage in get_args(Stage) if stage == found), None)
