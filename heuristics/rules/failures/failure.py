"""What a failure is, and the row of the table that explains it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from heuristics.result.configured import FailureState
from traces.settings.settings import Value


@dataclass(frozen=True, slots=True)
class Failure:
    """Something a log shows, explained.

    `text`: the likely cause. `confirm`: how to be sure. `fix`: what to do, in words; `knobs`: settings that
    do it, by the knob's id, where their values do not depend on the run. `fix_id`: the catalogue's, or
    `CFG-n` (mend the configuration), `ENV-n` (upgrade or environment), `CAP-n` (record again). `line`: of the
    log, None where only the configuration tells. No text holds anything of the log but our own words.
    """

    id: str
    text: str
    confirm: str
    fix: str
    fix_id: str
    line: int | None
    source: str
    state: FailureState
    knobs: Mapping[str, Value] = field(default_factory=dict)
    rule: str = ""
