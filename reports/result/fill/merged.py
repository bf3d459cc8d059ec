"""A run put together from summaries, as it is written down."""

from collections.abc import Sequence

from heuristics.result.merged import Merged
from heuristics.result.tool import SCHEMA_VERSION, Tool
from reports.result.fill.run import run
from traces.ranks.run import RunAnalysis


def merged(version: str, found: RunAnalysis, names: Sequence[str], warnings: Sequence[str]) -> Merged:
    """The document. `names`: of the recordings, as their summaries were given to the analysis."""
    return Merged(
        schema_version=SCHEMA_VERSION,
        kind="run",
        tool=Tool("moe-diag", version, None),
        redacted=True,
        warnings=tuple(warnings),
        missing=(),
        traces=tuple(names[one.index] for one in found.ranks),
        run=run(found, names),
    )
