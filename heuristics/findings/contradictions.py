"""Every contradiction of a run, in a fixed order, by `findings.toml` and by code; and what is misspelled."""

from collections.abc import Iterable
from functools import partial
from itertools import groupby
from typing import Final

from msgspec import Struct

from heuristics.findings import memory_estimate, overlaps, recorded
from heuristics.findings.facts import CASES
from heuristics.findings.finding import Case, Detector, Recognised, case_of
from heuristics.result.configured import ConfigFinding, FindingState
from heuristics.rules.condition import Condition
from heuristics.run.run import Run
from traces.settings.settings import Problem
from traces.toml_tables import read_table


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """A finding as its table has it, of a case where `when` holds."""

    id: str
    state: FindingState
    when: Condition
    text: str
    evidence: str
    fix: str


TABLE: Final = read_table("heuristics.findings", "findings.toml", dict[str, tuple[Row, ...]], CASES.readers)


def _of(subject: str) -> list[Detector]:
    """A detector for each finding of a subject of the table."""
    return [partial(_detect, [*rows]) for _, rows in groupby(TABLE[subject], lambda row: row.id)]


def _detect(rows: list[Row], case: Case) -> ConfigFinding | None:
    row = next((one for one in rows if one.when.holds(case)), None)
    if row is None:
        return None
    text, evidence, fix = (CASES.filled(one, case) for one in (row.text, row.evidence, row.fix))
    return ConfigFinding(row.id, row.state, text, evidence, fix)


DETECTORS: Final[tuple[Detector, ...]] = (
    *recorded.COUNTED,
    *_of("dispatcher"),
    *overlaps.OVERWRITTEN_ONES,
    *_of("overlap"),
    *overlaps.IDLE,
    *_of("graphs"),
    *_of("compute"),
    *_of("memory"),
    *memory_estimate.DETECTORS,
    *_of("host"),
    *recorded.LOGGED,
)


def find_contradictions(
    run: Run, failures: Iterable[Recognised] = (), problems: Iterable[Problem] = ()
) -> tuple[ConfigFinding, ...]:
    """Where configuration, log and trace disagree: not of one run first, then what is misspelled.

    The run's settings are those that were written, and what it shows is what its trace shows, neither filled
    in from the other. What one of them cannot tell makes no contradiction.
    """
    case = case_of(run, failures)
    found = [one for detect in DETECTORS if (one := detect(case)) is not None]
    differ = [one for one in found if one.state == "counted_otherwise"]
    return (*differ, *misspelled(problems), *(one for one in found if one not in differ))


def misspelled(problems: Iterable[Problem]) -> tuple[ConfigFinding, ...]:
    """A finding for each problem that has a right spelling, numbered in the order of the file.

    An older name that the release takes is none; a flag of a later release is named by its knob, so that a
    rule can tell the same. At what Megatron-LM's parser stops, training does not start
    (training/arguments.py, parse_args: unknown arguments are errors unless ignore_unknown_args).
    """
    mended = [problem for problem in problems if problem.instead and problem.effect != "older_name"]
    return tuple(
        ConfigFinding(
            f"CFG-newer-{one.newer.replace('_', '-')}" if one.newer else f"CFG-misspelled-{number}",
            "illegal" if one.effect == "stops" else "misspelled",
            one.text,
            f"in {one.where}",
            one.instead,
        )
        for number, one in enumerate(mended, 1)
    )
