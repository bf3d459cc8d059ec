"""Sentences about a comparison, unwrapped, for every format that people read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.comparison.figures import (
    capital,
    exact,
    grid,
    listed,
    per_step,
    signed,
    signed_percent,
    stopped,
    unsigned,
    value_words,
)
from reports.document import Document
from reports.words import milliseconds, printable, wall_words

_NAME: Final = 60
_LOGGED: Final = "The size is that of profiled steps, and the profiler slows steps"
_EFFECTS: Final = (
    ("count_ns", "more of them", "fewer of them"),
    ("duration_ns", "each longer", "each shorter"),
    ("overlap_ns", "less overlap", "more overlap"),
)
"""Parts of a row's difference, and how each is called where it lengthens and where it shortens the step."""
_GATE: Final = {
    "passed": "passed",
    "tripped": "TRIPPED (exit code 1)",
    "undecided": "CANNOT BE JUDGED (exit code 1)",
}
_BEFORE: Final = {
    "undecided": "Should the difference be real:",
    "no_change": "The step did not change, but rows of it did:",
    "not_comparable": "As far as these runs can be compared:",
}
"""What stands before suspects where no regression or improvement is shown."""
_CHANGES: Final = {
    "more": "more of them",
    "fewer": "fewer of them",
    "new": "only in new",
    "gone": "only in base",
    "grid": "another grid",
}


def headline(document: Document) -> str:
    """The verdict in one sentence with the figures it rests on."""
    size, verdict = document["size"], document["verdict"]
    figures = "; ".join((signed_percent(size["delta_frac"]), _interval(size), _counts(document)))
    length_ms = unsigned(abs(size["delta_ns"]))
    if verdict == "regression":
        return f"REGRESSION: {_one(document)} takes {length_ms} ms longer ({figures})."
    if verdict == "improvement":
        return f"IMPROVEMENT: {_one(document)} takes {length_ms} ms less ({figures})."
    if verdict == "no_change":
        return f"NO CHANGE: {_one(document)} differs by {signed(size['delta_ns'])} ms ({figures})."
    if verdict == "undecided":
        moved = f"{_one(document)} differs by {signed(size['delta_ns'])} ms"
        return f"UNDECIDED: {moved} ({figures}), which may be chance."
    reasons = [one for one in document["comparable"]["differences"] if one["state"] == "no"]
    what = ", ".join(one["what"] for one in reasons) or "what was recorded"
    return f"NOT COMPARABLE: the two runs differ in {what}, so their difference says nothing of a cause."


def _one(document: Document) -> str:
    if document["size"]["source"] == "log":
        return "an iteration"
    return "a step" if has_steps(document) else "the recorded window"


def per(document: Document) -> str:
    """What the figures of rows are."""
    return "ms per step" if has_steps(document) else "ms of the window"


def has_steps(document: Document) -> bool:
    """Whether steps are compared, not windows."""
    return all(document[side]["steps"]["count"] > 0 for side in ("base", "new"))


def _interval(size: Document) -> str:
    if size["low_ns"] is None:
        return "no interval"
    ends = f"{signed(size['low_ns'])} to {signed(size['high_ns'])} ms"
    return f"{size['level_frac'] * 100:g} % interval {ends}"


def _counts(document: Document) -> str:
    size = document["size"]
    if size["source"] == "trace" and not has_steps(document):
        return "no steps found"
    base, new = size["base_count"], size["new_count"]
    of = "iterations of the logs" if size["source"] == "log" else "steps"
    return f"{base:,} {of} a side" if base == new else f"{base:,} {of} in base, {new:,} in new"


def verdict_sentences(document: Document) -> Iterator[str]:
    """What the verdict rests on: reasons, lengths, the traces beside logs, comparability, walls, gate."""
    said_below = [one["because"] for one in document["comparable"]["differences"]]
    yield from (capital(said) for said in document["because"] if said not in said_below)
    if document["size"]["source"] == "log":
        traced = f"{signed(document['step_delta_ns'])} ms per step{_of_base(document)}"
        yield f"In the traces it is {traced}; the rows below explain that."
    if document["verdict"] != "not_comparable":
        yield _comparable(document["comparable"])
    yield _walls(document["base"], document["new"])
    if gate := document["gate"]:
        limit = signed_percent(gate["limit_frac"])
        yield f"Gate of {limit}: {_GATE[gate['state']]}. {capital(gate['because'])}"


def _of_base(document: Document) -> str:
    frac = document["step_delta_frac"]
    return "" if frac is None else f" ({signed_percent(frac)})"


def _comparable(comparable: Document) -> str:
    names = ", ".join(one["what"] for one in comparable["differences"])
    if comparable["state"] == "yes":
        return f"Comparable: yes{f', though these differ: {names}' if names else ''}."
    return f"Comparable: {'with differences' if comparable['state'] != 'no' else 'no'} ({names}); see Limits."


def _walls(base: Document, new: Document) -> str:
    one, other = map(_wall, (base, new))
    both = f"{one} in both" if one == other else f"{one} in base, {other} in new"
    return f"Wall of each run alone: {both}."


def _wall(side: Document) -> str:
    if side["wall"]:
        return wall_words(side["wall"])
    return "none" if side.get("walls_told", True) else "not measurable"


def side_sentence(side: Document) -> str:
    """A side: which rank of which trace, its steps, its log."""
    number = "" if side["rank"] is None else f"rank {side['rank']}, "
    where = f"{number}GPU {side['device']} ({side['gpu'] or 'model not recorded'})"
    said = f"{where}, {_steps(side)}"
    if log := side["log"]:
        figures = f", mean {unsigned(log['mean_ns'])}, median {unsigned(log['median_ns'])} ms"
        said += f"; log {printable(log['name'], _NAME)}: {log['count']:,} iterations after its start"
        said += figures if log["count"] else ""
    return said


def _steps(side: Document) -> str:
    steps = side["steps"]
    if not steps["count"]:
        return f"one window of {unsigned(side['step_ns'])} ms, no steps found"
    left_out = f", {len(steps['dropped'])} left out" if steps["dropped"] else ""
    middle = f"mean {unsigned(steps['mean_ns'])}, median {unsigned(steps['median_ns'])}"
    spread = f"{unsigned(steps['min_ns'])} to {unsigned(steps['max_ns'])} ms"
    count = f"{steps['count']} step{'s' if steps['count'] > 1 else ''}"
    return f"{count} (by {steps['source']}){left_out}: {middle}, {spread}"


def suspect_sentence(document: Document, suspect: Document) -> str:
    """How much a suspect explains, never more than the whole; how sure that is, and through which rows."""
    explains_ns, delta_ns = suspect["explains_ns"], document["step_delta_ns"]
    rows = f", by {listed(suspect['rows'])}" if suspect["rows"] else ""
    if explains_ns * delta_ns < 0:
        said = f"Works the other way: {signed(explains_ns)} ms a step"
    elif abs(explains_ns) > abs(delta_ns):
        rest = f"all others {signed(delta_ns - explains_ns)}, together {signed(delta_ns)}"
        said = f"Its rows moved {signed(explains_ns)} ms a step, {rest}"
    else:
        said = f"Explains {signed(explains_ns)} of {signed(delta_ns)} ms a step"
    return f"{said}{rows}. Confidence {suspect['confidence']}."


def before_suspects(document: Document) -> str:
    """What suspects hang on; empty where a difference was shown."""
    return _BEFORE.get(document["verdict"], "") if document["suspects"] else ""


def sharing_sentence(suspects: list[Document]) -> str:
    """Which suspects explain the same rows, so that one of them may be enough; empty where none do."""
    numbered = list(enumerate(suspects, start=1))
    alike = [
        str(place)
        for place, one in numbered
        if any(other is not one and {*one["rows"]} & {*other["rows"]} for other in suspects)
    ]
    named = f"{', '.join(alike[:-1])} and {alike[-1]}" if alike else ""
    return f"{named} explain the same rows: one of them may be enough." if alike else ""


def no_suspect(document: Document) -> str:
    """Why no cause is named."""
    if document["verdict"] == "no_change":
        return "Nothing to explain: the difference is within the noise."
    if document["verdict"] == "not_comparable":
        return "No cause is named: the runs are not comparable."
    return "No cause is known: nothing that is known to have changed can move the rows that moved."


def effect_sentence(row: Document) -> str:
    """The three parts of a row's difference, those that are not zero; empty where none is told."""
    if row["count_ns"] is None:
        return ""
    said = [f"{up if row[key] > 0 else down} {exact(row[key])}" for key, up, down in _EFFECTS if row[key]]
    base, new = per_step(row["base_count"]), per_step(row["new_count"])
    counts = f"{base} a step" if base == new else f"{base} -> {new} a step"
    return f"{', '.join(said)} ({counts})" if said else ""


def noise_sentence(row: Document) -> str:
    """What the row of noise holds."""
    count = len(row["parts"])
    rows = f"{count} rows that differ" if count != 1 else "1 row that differs"
    return f"noise: {rows} by no more than steps scatter, and rounding"


def kernel_sentence(kernel: Document) -> str:
    """What of a kernel differs: how often, how long, with which grid."""
    base, new = per_step(kernel["base_count"]), per_step(kernel["new_count"])
    said = [f"{base} a step" if base == new else f"{base} -> {new} a step"]
    each = [kernel[key] for key in ("base_each_ns", "new_each_ns") if kernel[key] is not None]
    if each:
        said.append(f"each {' -> '.join(map(milliseconds, each))} ms")
    if kernel["change"] == "grid":
        said.append(f"grid {grid(kernel['base_grid'])} -> {grid(kernel['new_grid'])}")
    change = _CHANGES.get(kernel["change"], kernel["change"])
    return f"{change} ({printable(kernel['key'], 40)}): {', '.join(said)}"


def layer_sentence(layers: list[Document]) -> str:
    """MoE layers that moved most, each with the module that did."""
    said = [
        f"{one['layer']} {signed(one['delta_ns'])} ({one['module']} {signed(one['module_delta_ns'])})"
        for one in layers
    ]
    return f"MoE layers that moved most, ms of wall time per step: {'; '.join(said)}."


def pair_sentence(pairs: list[Document]) -> str:
    """How the step moved on every pair of ranks."""
    said = []
    for pair in pairs:
        number = pair["base"]["rank"]
        name = f"GPU {pair['base']['device']}" if number is None else f"rank {number}"
        moved = pair["step_delta_ns"]
        said.append(f"{name} {'not told' if moved is None else signed(moved)}")
    return f"All pairs of ranks (by {pairs[0]['by']}), ms per step: {', '.join(said)}."


def changed_sentence(one: Document) -> str:
    """One thing that differs: both values, where they are from, what it can explain."""
    rows = listed(one["can_explain"])
    can = f"can explain {rows}" if rows else "explains no row that moved"
    return f"{one['what']}: {change_words(one)} ({one['source']}); {can}"


def change_words(one: Document) -> str:
    """Both values of what differs."""
    if one["withheld"]:
        return "differs, its texts are not shown"
    values = (value_words(one["what"], one[side], one[f"said_{side}"]) for side in ("base", "new"))
    return " -> ".join(printable(value, _NAME) for value in values)


def difference_sentence(one: Document) -> str:
    """One reason that limits or forbids the comparison."""
    values = "" if one["base"] == one["new"] else f": {one['base']} -> {one['new']}"
    return f"{one['what']}{values}. {capital(one['because'])}"


def next_sentences(document: Document, shown: int) -> Iterator[str]:
    """What to do to be sure: of the first suspects, then what to record or give."""
    for place, one in enumerate(document["suspects"][:shown], start=1):
        if one["next"]:
            yield stopped(f"To be sure of {place}: {one['next']}")
    if document["record"]:
        yield stopped(f"To decide: {document['record']}")
    if document["size"]["source"] == "trace" and document["verdict"] in ("regression", "improvement"):
        yield f"{_LOGGED}: for the true size give --base-log and --new-log."


def gap_sentence(gap: dict[str, Any]) -> str:
    """One thing that could not be told."""
    return f"{gap['path']}: {gap['reason']}. To tell: {gap['cure']}."
