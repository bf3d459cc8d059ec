"""`moe-diag doctor`: is a recording good enough."""

from diagnoser.bounds import with_bounds
from diagnoser.options import CacheDir, NsysPath, OneTrace
from diagnoser.output import Target, write
from diagnoser.progress import progress_display


@with_bounds
def doctor(
    trace: OneTrace,
    nsys: NsysPath = None,
    cache_dir: CacheDir = None,
) -> None:
    """Is this recording good enough, for which wall.

    Names no bottleneck. Lists what is missing and what that makes impossible, how the recording or its export
    went wrong, whether host and GPU clocks agree, what the profiler itself noted, whether the recording is
    good, usable or useless for each wall, and the line that records what is missing, as capture prints it.
    """
    from diagnoser.examined import examined
    from diagnoser.screen import screen
    from reports.write.text import write_text
    from traces.formats.open import ReadOptions

    with progress_display() as progress:
        found = examined(trace, ReadOptions(nsys=nsys, cache_dir=cache_dir), progress)
    write(Target("text", None), write_text(found, screen()), force=False)
