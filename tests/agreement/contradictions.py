"""What no document may say at once: rules by name, each giving what contradicts it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from heuristics.figures.figures import EXPERT_CLASSES
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.graphs import WHOLE
from heuristics.result.result import Result
from heuristics.walls.verdict import NEAR
from reports.content.analysis.headline import headline
from reports.content.names import capital, name_of
from reports.result.codec import Document, decode
from tests.agreement.page_contradictions import PAGE_RULES, rules_of
from tests.doubles.pages import first_screen, flat
from traces.limits import HALF_A_WALL, LITTLE, MOST, QUARTER, WALL

Rule = Callable[[Document], Iterator[str]]
ROUNDING: Final = 1e-9
WIDE: Final = 200
"""Columns of a screen on which no line of a plan breaks."""
SIGNS: Final = {"HST-10": "data", "HST-2": "gc"}
"""Fixes that need a sign of their cause -> the kind of cost that is one."""
OPEN: Final = re.compile(r"(?<![A-Za-z])2?N(?![A-Za-z])|LAYOUT|TP/2|COMMAND")
"""What stands for a value that only the user knows."""
ACROSS: Final = ("CMP-1",)
"""Fixes that act on several walls at once, so that they may give more than each, or all, of them alone."""


def contradictions(document: Document) -> list[str]:
    """Every contradiction of a diagnosis, with the rule that names it."""
    return [f"{rule.__name__}: {said}" for rule in RULES for said in rule(document)]


def the_verdict_is_a_finding(document: Document) -> Iterator[str]:
    verdict, walls = document["verdict"], _walls(document)
    if verdict["wall"] is not None and walls[verdict["wall"]]["outcome"] != "finding":
        yield f"{verdict['wall']} is {walls[verdict['wall']]['outcome']}"
    if verdict["wall"] is None and any(wall["outcome"] == "finding" for wall in walls.values()):
        yield "a finding, and no verdict"
    if (verdict["confidence"] is None) != (verdict["wall"] is None):
        yield f"confidence {verdict['confidence']} in {verdict['wall']}"
    yield from (f"tied with {wall}" for wall in verdict["tied_with"] if walls[wall]["outcome"] != "finding")


def a_finding_costs_a_tenth_or_memory_does_not_fit(document: Document) -> Iterator[str]:
    for wall in document["walls"]:
        if wall["outcome"] == "finding" and not _does_not_fit(wall) and wall["cost_frac"] < WALL.value:
            yield f"{wall['id']} costs {wall['cost_frac']}"


def what_is_clear_costs_less_than_a_tenth(document: Document) -> Iterator[str]:
    for wall in document["walls"]:
        if wall["outcome"] == "clear" and max(wall["cost_frac"], wall["at_most_frac"]) >= WALL.value:
            yield f"{wall['id']} costs {wall['cost_frac']}, at most {wall['at_most_frac']}"


def costs_lie_in_their_bounds(document: Document) -> Iterator[str]:
    for wall in document["walls"]:
        cost_ns, frac, most = wall["cost_ns"], wall["cost_frac"], wall["at_most_frac"]
        if cost_ns is not None and frac is not None:
            if not 0 <= frac <= most + ROUNDING or most > 1:
                yield f"{wall['id']}: {frac} of at most {most}"
            if over := {kind: ns for kind, ns in wall["cost_by_kind_ns"].items() if ns > cost_ns}:
                yield f"{wall['id']} costs {cost_ns}, of it {over}"


def what_could_not_be_judged_says_why(document: Document) -> Iterator[str]:
    paths = {gap["path"] for gap in document["missing"]}
    for place, wall in enumerate(document["walls"]):
        if wall["outcome"] == "unmeasurable" and not (wall["missing"] and f"walls[{place}].cost_ns" in paths):
            yield wall["id"]


def the_next_in_cost_costs_no_more_than_the_verdict(document: Document) -> Iterator[str]:
    verdict, walls = document["verdict"], _walls(document)
    first, next_ = verdict["wall"], verdict["runner_up"]
    if first is None or next_ is None or _does_not_fit(walls[first]):
        return
    if first == next_ or walls[next_]["cost_frac"] > walls[first]["cost_frac"]:
        yield f"{next_} beside {first}"


def what_comes_next_is_another_wall(document: Document) -> Iterator[str]:
    verdict = document["verdict"]
    next_, frac = verdict["next_wall"], verdict["next_wall_frac"]
    if (next_ is None) != (frac is None):
        yield f"{next_} with {frac}"
    if next_ is not None and (next_ == verdict["wall"] or not WALL.value <= frac <= 1):
        yield f"{next_} after {verdict['wall']} with {frac}"


def what_bounds_a_run_is_not_clear(document: Document) -> Iterator[str]:
    """Compute bounds a run that has no wall; time that goes to anything else could be saved."""
    bound = document["verdict"]["bound"]
    if bound in ("memory", "host_overhead"):
        wall = _walls(document)[bound]
        if wall["outcome"] == "clear":
            yield f"bound by {bound}, which costs {wall['cost_frac']}"


def fixes_are_for_findings_that_cost_something(document: Document) -> Iterator[str]:
    walls = _walls(document)
    if document["fixes"] and (document["levers"] or document["verdict"]["wall"] is None):
        yield "fixes beside levers, or without a wall"
    for fix in document["fixes"]:
        wall = walls[fix["wall"]]
        if (fix["id"] in CATALOGUE and CATALOGUE[fix["id"]].aside) or _does_not_fit(wall):
            continue
        if wall["outcome"] != "finding" or (wall["cost_frac"] or 0) < LITTLE.value:
            yield f"{fix['id']} for {wall['id']}, {wall['outcome']}, {wall['cost_frac']}"


def no_gain_is_above_what_it_can_be(document: Document) -> Iterator[str]:
    walls = _walls(document)
    for fix in document["fixes"]:
        if fix["gain_frac"] is not None:
            low, high = fix["gain_frac"]
            most = 1.0 if fix["id"] in ACROSS else walls[fix["wall"]]["cost_frac"] or 0
            if (low is not None and low > high) or not 0 <= high <= most + ROUNDING:
                yield f"{fix['id']} gains {fix['gain_frac']} of {most}"


def no_fix_of_little_comes_before_a_better_one(document: Document) -> Iterator[str]:
    """What gains at most so much is not before what gains more at least."""
    for first, later in _in_order(document):
        low = later["gain_frac"][0]
        if low is not None and first["gain_frac"][1] < low:
            yield f"{first['id']} {first['gain_frac']} before {later['id']} {later['gain_frac']}"


def no_fix_of_next_to_nothing_comes_before_one_that_may_gain_more(document: Document) -> Iterator[str]:
    for first, later in _in_order(document, of_one_wall=False):
        if first["gain_frac"][1] < LITTLE.value <= later["gain_frac"][1]:
            yield f"{first['id']} {first['gain_frac']} before {later['id']} {later['gain_frac']}"


def time_adds_up(document: Document) -> Iterator[str]:
    for rank in document["ranks"]:
        budget = rank["budget_ns"]
        window_ns = budget["window"]
        buckets = [ns for key, ns in budget.items() if key != "window"]
        if None not in buckets and sum(buckets) != window_ns:
            yield f"buckets {sum(buckets)} of {window_ns}"
        if (absent := rank["absent_ns"]) is not None:
            whole = sum(sum(one.values()) if isinstance(one, dict) else one for one in absent.values())
            if whole != window_ns - budget["compute"]:
                yield f"absent {whole} of {window_ns - budget['compute']}"
        if rank["hidden_comm_ns"] is not None and rank["hidden_comm_ns"] > budget["compute"]:
            yield f"hidden {rank['hidden_comm_ns']} under {budget['compute']}"


def an_unknown_kernel_of_over_a_twentieth_is_a_finding(document: Document) -> Iterator[str]:
    for rank in document["ranks"]:
        for kernel in rank["unknown_kernels"]:
            if kernel["finding"] != (kernel["frac"] > HALF_A_WALL.value) or kernel["frac"] > 1:
                yield f"{kernel['name']} {kernel['frac']}"


def a_saving_without_a_replay_has_no_lower_end(document: Document) -> Iterator[str]:
    """It is only the time that the change acts on, and the plan says so."""
    said = first_screen(document, width=WIDE)
    for fix in document["fixes"]:
        if fix["gain_replayed"] or fix["gain_frac"] is None:
            continue
        if fix["gain_frac"][0] is not None:
            yield f"{fix['id']} saves at least {fix['gain_frac'][0]}, and was not replayed"
        if re.search(rf"saves .*\[{fix['id']}\]", said):
            yield f"{fix['id']} is said to save what it acts on"


def nothing_is_called_no_bottleneck_beside_a_tenth_without_compute(document: Document) -> Iterator[str]:
    label = headline(decode(document, Result)).label
    for bucket in ("exposed_comm", "exposed_copy", "idle"):
        shares = [rank["budget_frac"][bucket] or 0.0 for rank in document["ranks"]]
        if label.startswith("NO BOTTLENECK") and shares and min(shares) >= WALL.value:
            yield f"{label} with {min(shares):.0%} {bucket}"


def what_could_not_be_judged_is_not_shown_as_nothing(document: Document) -> Iterator[str]:
    said = first_screen(document, width=WIDE)
    for wall in document["walls"]:
        if wall["outcome"] != "unmeasurable":
            continue
        row = re.search(rf"^  {re.escape(capital(name_of(wall['id'])))} .* 0 %", said, re.MULTILINE)
        if row:
            yield f"{wall['id']}: {row[0]}"


def no_wall_below_a_hundredth_is_named_as_the_closest(document: Document) -> Iterator[str]:
    for said in (flat(first_screen(document)), *document["verdict"]["because"]):
        if found := re.search(r"[Cc]losest(:| is) [^.;]*, (at most )?<?0(\.\d+)? %", said):
            yield found[0]


def advice_is_for_the_framework_that_was_seen(document: Document) -> Iterator[str]:
    for fix in (*document["fixes"], *document["levers"]):
        if document["framework"] != "megatron" and (fix["knobs"]["megatron_lm"] or "router" in fix["title"]):
            yield f"{fix['id']} {fix['title']} for {document['framework']}"


def loading_and_collection_are_advised_on_a_sign_of_them(document: Document) -> Iterator[str]:
    kinds = _walls(document)["host_overhead"]["cost_by_kind_ns"] or {}
    for fix in document["fixes"]:
        if fix["id"] in SIGNS and not kinds.get(SIGNS[fix["id"]]):
            yield f"{fix['id']} without {SIGNS[fix['id']]}"
    for rank in document["ranks"]:
        if rank["data_loading"]["workers"] is not None and not rank["data_loading"]["waiting_steps"]:
            yield f"{rank['data_loading']['workers']} workers, and no step waits"


def a_tie_is_of_costs_that_are_near(document: Document) -> Iterator[str]:
    """Nearer than 3 points, or than what a replay misses its window by: 27 against 11 % is decided."""
    walls, verdict = _walls(document), document["verdict"]
    missed = [(rank["replay"] or {}).get("residual_free_error_frac") or 0.0 for rank in document["ranks"]]
    for other in verdict["tied_with"]:
        apart = abs(walls[verdict["wall"]]["cost_frac"] - walls[other]["cost_frac"])
        if apart >= max(NEAR.value, *missed):
            yield f"{verdict['wall']} and {other}, {apart} apart"


def no_headline_is_of_less_than_a_hundredth(document: Document) -> Iterator[str]:
    for wall in document["walls"]:
        if wall["outcome"] == "finding" and (wall["cost_frac"] or 1.0) < LITTLE.value:
            yield f"{wall['id']} at {wall['cost_frac']}"


def the_first_step_is_for_the_wall_of_the_headline(document: Document) -> Iterator[str]:
    """Unless a late rank leads the page, or something that is set wrongly is corrected first."""
    late = (document.get("run") or {}).get("late") or {}
    wall = document["verdict"]["wall"]
    mine = [fix for fix in document["fixes"] if fix["wall"] == wall and _is_worth(fix)]
    first = next(iter(document["fixes"]), None)
    if not first or not mine or first["wall"] == wall or late.get("repair_first"):
        return
    if not first["first_because"] and first["id"] not in mine[0]["after"]:
        yield f"{first['id']} for {first['wall']}, headline {wall}"


def nothing_is_advised_that_runs_already(document: Document) -> Iterator[str]:
    """By what the ranks show, told apart from how a plan asks for it."""
    planned = {fix["id"] for fix in (*document["fixes"], *document["levers"])}
    shown = [rank["detected"] for rank in document["ranks"]]
    graphed = max((one["graph_share_frac"] or 0.0 for one in shown), default=0.0)
    uses = {name for one in shown for name in one.get("in_use") or ()}
    decodes = any((rank["compute_by_class_ns"] or {}).get("decode") for rank in document["ranks"])
    runs = {
        "HST-3": graphed > (QUARTER.value if document["framework"] == "megatron" else 0.0),
        "HST-7": graphed > WHOLE.value,
        "HST-10": bool(uses & {"dali", "ffcv", "tf_data"}) or decodes,
        "HST-4": "compiled" in uses and document["framework"] == "pytorch",
        "CMP-9": any("fp8" in str(one["precision"]) or "fp4" in str(one["precision"]) for one in shown),
        "COM-1": any(one["ep_overlap"] for one in shown),
    }
    yield from (f"{number}, which runs" for number in sorted(planned) if runs.get(number))
    if "CMP-9" in planned and not any(rank["tensor_cores"]["wide_ns"] for rank in document["ranks"]):
        yield "CMP-9, and no matrix work is wide"


def nothing_is_advised_that_the_run_cannot_have(document: Document) -> Iterator[str]:
    """A dispatcher without experts; a setting of the caching allocator where another frees, or on ROCm."""
    planned = {fix["id"] for fix in (*document["fixes"], *document["levers"])}
    ranks = document["ranks"]
    kinds = {kind for rank in ranks for kind in rank["exposed_comm_by_kind_ns"] or ()}
    kinds |= {kind for wall in document["walls"] for kind in wall["cost_by_kind_ns"] or ()}
    classes = {name for rank in ranks for name in rank["compute_by_class_ns"] or ()}
    if not classes & EXPERT_CLASSES and not any(kind.startswith("ep_") for kind in kinds):
        yield from (f"{number} without experts" for number in sorted(planned & {"COM-2", "MEM-5"}))
    uses = {name for rank in ranks for name in rank["detected"].get("in_use") or ()}
    foreign = max((rank["memory"].get("foreign_frees_frac") or 0.0 for rank in ranks), default=0.0)
    if "MEM-1" in planned and (uses & {"rocm", "rollout_engine"} or foreign >= MOST.value):
        yield f"MEM-1 beside {sorted(uses)}, {foreign} of the frees beside the cache"


def no_line_has_a_value_to_fill_in(document: Document) -> Iterator[str]:
    for fix in (*document["fixes"], *document["levers"]):
        several = (fix["knobs"], *(arm["knobs"] for arm in fix["arms"]))
        lines = [line for one in several for spelled in one.values() for line in spelled]
        yield from (line for line in lines if OPEN.search(line))


def _is_worth(fix: dict[str, Any]) -> bool:
    gain = fix["gain_frac"]
    return gain is None or gain[1] >= LITTLE.value


RULES: Final[tuple[Rule, ...]] = (*rules_of(__name__, but=contradictions), *PAGE_RULES)


def _walls(document: Document) -> Mapping[str, dict[str, Any]]:
    return {wall["id"]: wall for wall in document["walls"]}


def _does_not_fit(wall: dict[str, Any]) -> bool:
    retried = [one["value"] for one in wall["evidence"] if one["measure"] == "allocator_retry_frac"]
    return wall["id"] == "memory" and max(retried, default=0.0) > MOST.value


def _in_order(
    document: Document, *, of_one_wall: bool = True
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of fixes of known gain, of one wall or any, of which the later does not need the earlier.

    Not of a memory that does not fit: there room comes first, not time.
    """
    walls = _walls(document)
    told = [fix for fix in document["fixes"] if fix["gain_frac"] is not None]
    for first, later in combinations(told, 2):
        alike = first["wall"] == later["wall"] or not of_one_wall
        alike &= not _does_not_fit(walls[first["wall"] if of_one_wall else "memory"])
        if alike and not _needs(later, first):
            yield first, later


def _needs(later: dict[str, Any], first: dict[str, Any]) -> bool:
    cures = [one["cure"] for one in later["preconditions"] if one["state"] != "met"]
    return first["id"] in (*later["after"], *cures)
