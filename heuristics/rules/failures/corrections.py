"""The corrections that rules and failures of a log ask for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from heuristics.rules.failures.row import failures
from heuristics.rules.rules import rules

CORRECTION: Final = re.compile(r"(?:CFG|ENV|CAP)-[1-9][0-9]?")
"""What is corrected in the configuration, the environment or the recording, and is no fix."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """What a correction is for: a rule or a failure, and its cure."""

    id: str
    text: str
    cure: str


@cache
def corrections() -> Mapping[str, tuple[Corrected, ...]]:
    """What rules and failures ask for beside fixes, by id in order, with all that it is for."""
    found = [(rule.fix, Corrected(rule.id, rule.text, rule.cure)) for rule in rules().values()]
    found += [(row.fix, Corrected(row.id, row.text, row.cure)) for row in failures().values()]
    ids = sorted({id for id, _ in found if CORRECTION.fullmatch(id)}, key=lambda id: (id[:3], int(id[4:])))
    return {id: tuple(one for of, one in found if of == id) for id in ids}
