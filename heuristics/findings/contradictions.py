"""Every contradiction of a run, in a fixed order, by `findings.toml`; and what is misspelled."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import methodcaller
from typing import Final

from heuristics.config.view import Config
from heuristics.findings import dispatchers
from heuristics.findings.case import Case
from heuristics.findings.computed import COMPUTED
from heuristics.guides.situation import log_lines
from heuristics.result.configured import ConfigFinding, FindingState
from heuristics.rules.condition import Condition, Language
from heuristics.rules.failures import Failure
from heuristics.run.run import Run
from traces.settings.settings import FileProblem
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

ROOMS: Final = (dispatchers,)
"""Where facts of a case stand beside those of case.py."""
CASES: Final = Language(Case, {Run: "run", Config: "files"})
"""Conditions and texts of findings: of a case, whose configuration is what files alone ask for."""


class FindingRow(TableRow):
    """A finding as its table has it, of a case where `when` holds.

    Texts that it leaves out are those of its id's first row. `same`: steps of the workflow that
    tell the same, where no rule does.
    """

    state: FindingState
    text: str = ""
    evidence: str = ""
    fix: str = ""
    when: Condition = CASES.condition("True")
    same: Texts = ()


TABLE: Final = read_table(
    "heuristics.findings", "findings.toml", dict[str, tuple[FindingRow, ...]], CASES.readers
)
"""Rows of each id; of several the first that holds."""


def find_contradictions(
    run: Run,
    failures: Iterable[Failure] = (),
    problems: Iterable[FileProblem] = (),
    perturbation_frac: float | None = None,
) -> tuple[ConfigFinding, ...]:
    """Where configuration, log and trace disagree: not of one run first, then what is misspelled.

    The run's settings are those that were written, and what it shows is what its trace shows,
    neither filled in from the other. What one of them cannot tell makes no contradiction.
    `perturbation_frac`: how much longer the profiled step is than the log's.
    """
    case = Case(run, log_lines(run).union(failure.id for failure in failures), perturbation_frac)
    findings = [*misspelled(problems)]
    for id, rows in TABLE.items():
        findings += _of(id, rows, case)
    return tuple(sorted(findings, key=lambda finding: finding.state != "counted_otherwise"))


def _of(id: str, rows: tuple[FindingRow, ...], case: Case) -> Iterator[ConfigFinding]:
    row = next((entry for entry in rows if entry.when.holds(case)), None)
    if row is None:
        return
    first = rows[0]
    texts = id, row.text or first.text, row.evidence or first.evidence, row.fix or first.fix
    every: Iterable[Callable[[str], str]] = (partial(CASES.filled, of=case),)
    if id in COMPUTED:
        every = map(partial(methodcaller, "format_map"), COMPUTED[id](case))
    for filled in every:
        name, *sentences = map(filled, texts)
        yield ConfigFinding(name, row.state, *sentences)


def misspelled(problems: Iterable[FileProblem]) -> Iterator[ConfigFinding]:
    """A finding for each problem that has a right spelling, numbered in the order of the file.

    An older name that the release takes is none; a flag of a later release is named by its knob, so
    that a rule can tell the same. At what Megatron-LM's parser stops, training does not start
    (training/arguments.py, parse_args: unknown arguments are errors unless ignore_unknown_args).
    """
    number = 0
    for key in problems:
        if not key.instead or key.effect == "older_name":
            continue
        number += 1
        id = f"CFG-newer-{key.newer.replace('_', '-')}" if key.newer else f"CFG-misspelled-{number}"
        state: FindingState = "illegal" if key.effect == "stops" else "misspelled"
        yield ConfigFinding(id, state, key.text, f"in {key.where}", key.instead)
