"""From a finding to its moment in a timeline (`open`)."""

from pathlib import Path

import diagnoser
from diagnoser.options import Place
from diagnoser.options.command import command
from diagnoser.options.requests import path_of
from diagnoser.output import base_name, say, show
from diagnoser.output.progress import progress_display
from diagnoser.output.results import saved_result
from heuristics.result.exits import Exit
from heuristics.result.result import Result
from reports.result.read import is_result
from traces.errors import NothingToDiagnose, UsageError


@command()
def open(
    source: Path,
    at: str = "",
    ui: str = "https://ui.perfetto.dev",
    browser: bool = True,
    nsys: str | None = None,
    cache_dir: Place | None = None,
    redact: bool = True,
) -> int:
    """Open a finding's moment in Perfetto's timeline.

    Prints the time as nsys' GUI counts it. The trace is served on 127.0.0.1 alone, and given once,
    to the browser's tab; the browser loads Perfetto's page from the network, the trace goes
    nowhere. Ctrl-C ends it.

    \b
    moe-diag open run.sqlite                          the wall of the verdict
    moe-diag open run.sqlite --at host_overhead       another wall
    moe-diag open run.json --at COM-2                 what a fix acts on
    moe-diag open run.sqlite --at communication:2     the second evidence of a wall
    """
    import webbrowser
    from contextlib import ExitStack

    from diagnoser.output.handover import Handover, hand_over, leading_to
    from reports.content.moments import first_step, moment_of
    from reports.content.page import Detail
    from reports.write.perfetto.analysis import write_perfetto
    from reports.write.perfetto.place import place_in
    from traces.files.cache_folder import default_cache_dir
    from traces.recording.recorder import NSYS, recorded_by
    from traces.steps.selection import seconds

    result = _result(source, redact, nsys, cache_dir)
    finding = at or result.verdict.wall
    event = moment_of(result, finding) if finding else first_step(result)
    written = write_perfetto(result, Detail.FIRST)
    start_ns, end_ns = place_in(written, result, event)
    rank = result.ranks[event.place]
    where = f"{rank.trace}, GPU {rank.device}"
    title = f"{base_name(source)}: {event.said}"
    handover = Handover(written, title, f"{event.said} ({where})", start_ns, end_ns, ui)
    handover.page()  # what is wrong with it is said before anything opens
    is_nsys = any(one.name == rank.trace and recorded_by(one.kind) is NSYS for one in result.traces)
    clock = "as nsys' GUI counts it" if is_nsys else "on the recording's own clock"
    show(f"{event.said}\n{where}: {seconds(event.start_ns)} to {seconds(event.end_ns)}, {clock}\n")
    say(
        f"your browser loads Perfetto's page from {ui}. The trace is served on 127.0.0.1 and stays "
        f"here."
    )

    until_taken = ExitStack()

    def opened(address: str) -> None:
        show(f"{address}\n")
        if not browser:
            return
        leads = until_taken.enter_context(
            leading_to(address, path_of(cache_dir) or default_cache_dir())
        )
        if not webbrowser.open(leads):
            say("no browser could be started here. Open the address above in one.")

    with until_taken:
        is_taken = hand_over(handover, opened)
    if not is_taken:
        say("nobody opened the timeline; the trace is no longer served. Type the command again.")
        return Exit.NO
    return Exit.DONE


def _result(source: Path, redact: bool, nsys: str | None, cache_dir: Place | None) -> Result:
    """The diagnosis of a recording, or an earlier one. Raises `UsageError` for a result of another
    kind.
    """
    if source.is_file() and is_result(source):
        saved = saved_result(source, redact)
        if not isinstance(saved, Result):
            raise UsageError(
                f"{source} is no diagnosis of a run. Give a recording, or what analyze made of one."
            )
        result = saved
    else:
        with progress_display() as progress:
            result = diagnoser.analyze(
                source, nsys=nsys, cache_dir=cache_dir, redact=redact, progress=progress
            ).result
    if not result.ranks:
        raise NothingToDiagnose(f"{source} has no recording in it, so there is no timeline.")
    return result
