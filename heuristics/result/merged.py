"""A run put together from kept summaries of its ranks: the second document of a run, without any trace."""

from typing import Literal

from heuristics.result.tool import SchemaVersion, Tool
from traces.missing import Missing
from traces.sections.run import Run
from traces.sections.section import Section


class Merged(Section, frozen=True, kw_only=True):
    """What `moe-diag merge` writes, version 1.x: keys may be added, none may change.

    `traces`: of each rank the name of its recording. Where `run` names a place in `ranks[]`, it is a place in
    this list and in `run.ranks`.
    """

    schema_version: SchemaVersion
    kind: Literal["run"]
    tool: Tool
    redacted: Literal[True]
    warnings: tuple[str, ...]
    missing: tuple[Missing, ...]
    traces: tuple[str, ...]
    run: Run
