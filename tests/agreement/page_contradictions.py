"""What no page may say at once of a run and of its steps; `contradictions.py` beside it has the rest."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, Final

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.result.result import Result
from reports.content.analysis.headline import headline
from reports.result.codec import Document, decode
from tests.doubles.pages import first_screen, flat
from traces.account.pieces import CAUSES
from traces.limits import WALL
from traces.spelling import rounded

WIDE: Final = 200
"""Columns of a screen on which no line of a plan breaks."""
KINDS: Final = frozenset(kind for fix in CATALOGUE.values() for kind in fix.kinds)
"""Of costs that some fix acts on."""
WITNESS: Final[Mapping[str, str]] = {"CMP-9": "tensor_cores", "HST-1": "graph_share", "HST-3": "graph_share"}
"""What a trace shows of a run that has a fix already."""
MOST: Final = 0.5
FIRST_STEP: Final = re.compile(r"^  1  .*\[(?P<id>[A-Z]+-\d+)\]", re.MULTILINE)
MOST_OFF: Final = 0.01
HEADER: Final = re.compile(r"steps of (?P<mean>[\d.,]+) (?P<unit>us|ms|s)\b")
UNITS_NS: Final = {"us": 1e3, "ms": 1e6, "s": 1e9}


def no_step_is_what_the_run_shows_already(document: Document) -> Iterator[str]:
    """Every line of it is in the configuration, or the trace shows what it would bring."""
    configuration = document["configuration"] or {"settings": []}
    said = {one["knob"]: str(one["value"]).lower() for one in configuration["settings"]}
    ranks = document["ranks"]
    graphed = ranks and all((rank["detected"]["graph_share_frac"] or 0) >= MOST for rank in ranks)
    on_cores = ranks and all(_is_on_tensor_cores(rank) for rank in ranks)
    for fix in (*document["fixes"], *document["levers"]):
        lines = [line.partition("=") for line in fix["knobs"]["megatron_bridge"]]
        if lines and all(said.get(key.removeprefix("model.")) == value.lower() for key, _, value in lines):
            yield f"{fix['id']} sets {fix['knobs']['megatron_bridge']}, as they are"
        if graphed and WITNESS.get(fix["id"]) == "graph_share":
            yield f"{fix['id']} beside graphs that hold most kernels"
        if on_cores and WITNESS.get(fix["id"]) == "tensor_cores":
            yield f"{fix['id']} beside matrix work that is all on tensor cores in half precision"


def no_step_is_refused_on_its_own_page(document: Document) -> Iterator[str]:
    refused = {(one["id"], one["wall"]) for one in document["refused"]}
    for fix in (*document["fixes"], *document["levers"]):
        if (fix["id"], fix["wall"]) in refused:
            yield f"{fix['id']} is refused as well"
        yield from (f"{fix['id']}: {one['answer']}" for one in fix["checked"] if one["answer"] == "rejected")


def a_step_is_for_its_own_wall(document: Document) -> Iterator[str]:
    for fix in document["fixes"]:
        own = CATALOGUE.get(fix["id"])
        if own is not None and own.wall != fix["wall"]:
            yield f"{fix['id']} for {fix['wall']}"


def the_first_step_is_of_the_kind_in_the_headline(document: Document) -> Iterator[str]:
    """Or of other kinds that cost more together. A step without an id says how to learn more."""
    verdict, fixes = document["verdict"], document["fixes"]
    named = FIRST_STEP.search(first_screen(document, width=WIDE))
    first = next((fix for fix in fixes if named and fix["id"] == named["id"]), None)
    if first is None or verdict["tied_with"] or first["wall"] != verdict["wall"]:
        return
    own = CATALOGUE.get(first["id"])
    plain = own.pytorch if own and document["framework"] == "pytorch" else None
    kinds = (plain and plain.kinds) or (own.kinds if own else ())
    cost_ns = _wall(document, verdict["wall"])["cost_by_kind_ns"] or {}
    acted_on_ns = sum(cost_ns.get(kind, 0) for kind in kinds)
    if kinds and verdict["kind"] in KINDS - {*kinds} and acted_on_ns <= cost_ns.get(verdict["kind"], 0):
        yield f"{first['id']} first, against {verdict['kind']}"


def what_no_rule_knows_is_not_called_no_bottleneck(document: Document) -> Iterator[str]:
    label = headline(decode(document, Result)).label
    for rank in document["ranks"]:
        unknown_frac = sum(kernel["frac"] for kernel in rank["unknown_kernels"])
        if label.startswith("NO BOTTLENECK OF") and unknown_frac >= WALL.value:
            yield f"{label} beside {unknown_frac:.0%} that no rule knows"


def a_page_has_one_length_of_a_step(document: Document) -> Iterator[str]:
    """The mean of the steps, in the first screen's first line and in the document."""
    said = HEADER.search(flat(first_screen(document, width=WIDE)))
    for rank in document["ranks"]:
        steps_ns = [one["end_ns"] - one["start_ns"] for one in rank["steps"]["used"]]
        mean_ns = sum(steps_ns) / len(steps_ns) if steps_ns else None
        if mean_ns is not None and abs(mean_ns - rank["steps"]["mean_ns"]) > 1:
            yield f"{rank['steps']['mean_ns']} of steps of {mean_ns} ns"
        elif mean_ns and said and len(document["ranks"]) == 1:
            shown = rounded(mean_ns / UNITS_NS[said["unit"]])
            yield from (f"{said[0]} of {shown}" for _ in range(shown != said["mean"]))


def the_account_and_the_wall_name_one_cause(document: Document) -> Iterator[str]:
    """A cause that costs in one of them has time in the other."""
    causes: Counter[str] = Counter()
    for rank in document["ranks"]:
        causes.update((rank["absent_ns"] or {}).get("launch_starved", {}))
    cost_ns = _wall(document, "host_overhead")["cost_by_kind_ns"] or {}
    window_ns = sum(rank["budget_ns"]["window"] for rank in document["ranks"])
    for cause, ns in cost_ns.items():
        if cause in CAUSES and ns > MOST_OFF * window_ns and not causes[cause]:
            yield f"{cause} costs {ns}, and has no time in the account"


def rules_of(module: str, *, but: Callable[..., object]) -> tuple[Callable[[Document], Iterator[str]], ...]:
    """What a module offers, in its order: each function is a rule."""
    own = (one for one in vars(sys.modules[module]).values() if isinstance(one, FunctionType))
    return tuple(one for one in own if one.__module__ == module and one is not but and one.__name__[0] != "_")


PAGE_RULES: Final = rules_of(__name__, but=rules_of)


def _wall(document: Document, name: str) -> dict[str, Any]:
    return next(dict(wall) for wall in document["walls"] if wall["id"] == name)


def _is_on_tensor_cores(rank: dict[str, Any]) -> bool:
    found = rank["tensor_cores"]
    return bool(found and found["half"] and not found["simt_ns"] and not found["wide_ns"])
