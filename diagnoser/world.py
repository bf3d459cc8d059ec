"""How many ranks a run has by what is said of it beside its recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traces.missing import known

if TYPE_CHECKING:
    from heuristics.judging.judgement import Configured
    from heuristics.run.given import Given
    from traces.ranks.identity import WorldSize
    from traces.sections.run import Run

_WORLD: Final = "world_size"


def configured_world(given: Given | None, configured: Configured | None) -> WorldSize | None:
    """The world size by option, configuration or log, in this order of trust, and where it is from."""
    from heuristics.judging.judgement import Configured
    from heuristics.run.given import Given
    from heuristics.run.run import Run
    from traces.ranks.identity import WorldSize

    files = configured or Configured()
    config = Run(given=given or Given(), settings=files.files, log=files.log).config
    size = config.positive(_WORLD)
    return None if size is None else WorldSize(size, config.written.said(_WORLD) or "the configuration")


def other_world(given: WorldSize | None, found: Run) -> list[str]:
    """What to warn of where a run has another number of ranks than is said of it."""
    size = known(found.world_size)
    if given is None or given.ranks == size:
        return []
    if size is not None:
        had = f"{size} ranks by {found.world_size_from or 'its recordings'}"
        return [f"the run has {had}; {given.said} has {given.ranks}, which is not used"]
    return [f"{given.said} has {given.ranks} ranks, fewer than were recorded; it is not used"]
