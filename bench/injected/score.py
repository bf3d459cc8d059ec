"""What does the product say of the pairs? Its printed results against their truth, as a table."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

import diagnoser
from bench.injected.truth import HARMLESS
from diagnoser.diagnosis import Diagnosis

Told = Mapping[str, Any]

SIZE_FRAC: Final = 0.01
COST_POINTS: Final = 0.015
FEWEST_STEPS: Final = 4
CLEAR: Final = 3.0
"""Standard errors: ours. A change of fewer, or of fewer steps, need not be decided."""
HOST: Final = "launch_starved.(python|os_wait)"
MORE: Final = "compute[.].*|launch_starved.(launch|python)"
"""More launches: where the host is late, its time grows first."""
EXPECTED: Final = {
    "python": (HOST, "host_slower|gc_pauses"),
    "pause": (HOST, "gc_pauses|host_slower"),
    "launch": ("launch_starved.launch", "host_slower"),
    "data": ("launch_starved.(data|python|os_wait)", "data_loader|loader_workers"),
    "sync": ("launch_(starved|latency)[.].*", "waits_added|host_syncs|token_count_syncs"),
    "allocator": ("launch_starved.allocator", "allocator"),
    "clocks": ("compute[.].*", "gpu_slower"),
    "class": ("compute[.].*", "kernels_slower[.].*"),
    "split": (MORE, "kernels_(number|more|blocks|exchanged)[.].*|fusion_lost"),
    "recompute": (MORE, "recompute_more"),
    "copies_pageable": ("exposed_copy.memcpy_h2d", "input_pageable"),
    "comm_longer": ("exposed_comm[.].*", "comm_slower[.].*|late_rank|arrival_wait"),
    "comm_added": ("exposed_comm[.].*", "comm_more[.].*|collective_added"),
    "overlap_lost": ("exposed_comm[.].*", "overlap_lost[.].*"),
}
"""Of each kind the first row of the difference and the right causes: ids of heuristics' causes.toml."""


def can_be_decided(pair: Told) -> bool:
    """Is the change clear in the true steps?"""
    before, after = pair["base_steps"], pair["new_steps"]
    if len(before) < FEWEST_STEPS:
        return False
    error = ((stdev(before) ** 2 + stdev(after) ** 2) / len(before)) ** 0.5
    return bool(abs(fmean(after) - fmean(before)) > CLEAR * error)


@lru_cache(maxsize=2)
def _analyzed(path: str) -> Diagnosis:
    return diagnoser.analyze(path)


def judge(pair: Told, out: Path) -> dict[str, Any]:
    """One pair, asked: True, False, or None for what does not apply."""
    base, new = _analyzed(pair["base"]), diagnoser.analyze(str(out / pair["file"]))
    said = diagnoser.compare(base, new).to_dict()
    size, verdict = said.get("step_delta_ns"), said["verdict"]
    row = next((one["row"] for one in said["attribution"]), "")
    suspect = next((one["id"] for one in said["suspects"]), "")
    answer: dict[str, Any] = {"file": pair["file"], "kind": pair["kind"], "verdict": verdict}
    answer |= {"said_ns": size, "true_ns": pair["delta_ns"], "row": row, "suspect": suspect}
    if pair["kind"] in HARMLESS:
        return answer | {"alarm": verdict in ("regression", "improvement")}
    sign = "regression" if pair["delta_ns"] > 0 else "improvement"
    decided = verdict == sign
    rows, causes = EXPECTED[pair["kind"]]
    counted = min(said["size"]["base_count"], said["size"]["new_count"]) if said.get("size") else 0
    true = _sizes(pair["change"], counted)
    return answer | {
        "can": can_be_decided(pair),
        "decided": decided,
        "wrong": verdict in ("regression", "improvement") and not decided,
        "size": size is not None and any(abs(size - one) <= SIZE_FRAC * abs(one) for one in true),
        "first_row": bool(re.fullmatch(rows, row)) if decided else None,
        "first_suspect": bool(re.fullmatch(causes, suspect)) if decided else None,
        "cost": _cost(pair, base.to_dict(), new.to_dict()),
    }


def _sizes(change: list[int], counted: int) -> list[float]:
    """The true size; where fewer steps were counted, that of so many neighbours, wherever they begin."""
    some = counted if 0 < counted < len(change) else len(change)
    return [fmean(change[first : first + some]) for first in range(len(change) - some + 1)]


def _cost(pair: Told, base: Told, new: Told) -> bool | None:
    """Has the cost of the wall risen by what was added, in points of the new step?"""
    costs = [_told_cost(one, pair["wall"]) for one in (base, new)]
    if pair["wall"] == "compute" or None in costs:
        return None
    steps = [fmean(pair["base_steps"]), fmean(pair["new_steps"])]
    risen = (costs[1] or 0) * steps[1] - (costs[0] or 0) * steps[0]
    return bool(abs(risen - pair["delta_ns"]) <= COST_POINTS * steps[1])


def _told_cost(document: Told, wall: str) -> float | None:
    cost = next((one.get("cost_frac") for one in document["walls"] if one["id"] == wall), None)
    return cost if isinstance(cost, int | float) else None


def score(out: Path, kinds: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Judge the pairs of a folder, and keep what was said beside them, as JSON lines."""
    pairs = json.loads((out / "truth.json").read_text(encoding="utf-8"))
    wanted = set(kinds)
    with (out / "score.jsonl").open("w", encoding="utf-8") as kept:
        for pair in pairs:
            if wanted and pair["kind"] not in wanted:
                continue
            try:
                answer = judge(pair, out)
            except diagnoser.MoeDiagError as why:
                answer = {"file": pair["file"], "kind": pair["kind"], "verdict": f"refused: {why}"}
            kept.write(json.dumps(answer) + "\n")
            kept.flush()
            yield answer


def table(answers: Iterable[Told]) -> str:
    """A row a kind: of how many pairs each answer is right."""
    kinds: dict[str, list[Told]] = defaultdict(list)
    for one in answers:
        kinds[one["kind"]].append(one)
    lines = [
        "| kind | pairs | refused | decided, if clear | wrong sign | size | row | suspect | cost |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, rows in kinds.items():
        asked = [one for one in rows if "size" in one]
        if kind in HARMLESS:
            lines.append(
                f"| {kind} | {len(rows)} | | false alarms: {sum(one.get('alarm', False) for one in rows)} |"
            )
            continue
        can = [one for one in asked if one["can"]]
        shown = [_share(asked, key) for key in ("size", "first_row", "first_suspect", "cost")]
        wrong = sum(one["wrong"] for one in asked)
        cells = [kind, len(rows), len(rows) - len(asked), _share(can, "decided"), wrong, *shown]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _share(rows: list[Told], key: str) -> str:
    known = [one[key] for one in rows if one[key] is not None]
    return f"{sum(known)} of {len(known)}"
