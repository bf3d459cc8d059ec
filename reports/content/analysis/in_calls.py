"""What to change where calls or ranges that were recorded say what the host is in while the GPU
waits for it: rows of `call` in words.toml, the first that fits a name.
"""

from collections import Counter

from heuristics.result.result import Result
from reports.content.analysis.times import scale_of, telling_rank
from reports.content.blocks import Code, Step, Words, filled, words
from reports.content.names import when
from reports.measures import words_of
from reports.rows import each
from traces.account.waits import TOKEN_COUNT
from traces.limits import MOST, WALL
from traces.missing import known
from traces.patterns import compiled
from traces.sections.addresses import Address, HostCall
from traces.sections.rank import Rank
from traces.spelling import counted, percent, sized


def called_step(result: Result, acts: str, wall: str) -> Step | None:
    """For the kind of call under which the GPU waits for the host for longest, then for others;
    None where none takes a tenth of the windows, or it waits mostly outside of such calls. What the
    host waited for before it launched more is a call that waits, wherever it has been since. Of the
    wall of memory for those that take memory or give it back.
    """
    if not result.ranks:
        return None
    rank = telling_rank(result)
    if wall != "memory" and (waited := _waited_step(rank, acts)):
        return waited
    addresses, window_ns = rank.addresses, rank.budget_ns.window
    if not addresses:
        return None
    times_ns, longest = Counter[str](), dict[str, tuple[int, str]]()
    callers: list[Address | HostCall] = [*(addresses.calls or ()), *addresses.hosts]
    for caller in callers:
        if kind := kind_of_call(caller.name):
            times_ns[kind] += caller.starved_ns
            longest[kind] = max(longest.get(kind, (0, "")), (caller.starved_ns, caller.name))
    kinds = [kind for kind, ns in times_ns.most_common() if ns >= WALL.value * window_ns]
    late_ns = sum(rank.absent_ns.launch_starved.values()) if rank.absent_ns else 0
    if wall == "memory":
        kinds = [kind for kind in kinds if kind == "allocate"]
    elif sum(times_ns[kind] for kind in kinds) < MOST.value * late_ns:
        return None
    notes = list[Words]()
    for kind in kinds:
        most_ns, name = longest[kind]
        then = when(notes, f"{words_of('call_title')[kind]}. ")
        notes.append(words(f"{then}Longest in ", Code(name), f": {percent(most_ns / window_ns)}."))
    return _step(kinds[0], acts, *notes) if kinds else None


def _waited_step(rank: Rank, acts: str) -> Step | None:
    """Where most late launches follow a wait for the GPU, and small copies come back."""
    late_ns = rank.absent_ns.launch_starved if rank.absent_ns else {}
    waited_ns = late_ns.get("sync", 0) + late_ns.get("token_count_sync", 0)
    back, scale = rank.work and rank.work.to_host, scale_of(rank)
    size_bytes = known(back.size_bytes) if back else None
    if not back or not size_bytes or size_bytes > TOKEN_COUNT.value * back.count:
        return None
    least_ns = max(WALL.value * rank.budget_ns.window, MOST.value * sum(late_ns.values()))
    copies = round(back.count / max(1, scale.step_count))
    if waited_ns < least_ns or not copies:
        return None
    of_each = f"of {sized(size_bytes / back.count)} back to the host in each {scale.whole}"
    return _step("read_back", acts, words(f"{counted(copies, 'copy', 'copies')} {of_each}."))


def copied_step(result: Result, acts: str) -> Step | None:
    """For copies that run alone; None where they mostly stay on the GPU. Calls that wait for copies
    are no cause of them.
    """
    pageable, copied_ns = False, Counter[str]()
    for rank in result.ranks:
        if rank.work and (rank.work.pageable_frac or 0.0) > MOST.value:
            pageable = True
        copied_ns.update(rank.exposed_copy_by_kind_ns)
    ways = copied_ns["memcpy_h2d"], copied_ns["memcpy_d2h"]
    if sum(ways) <= MOST.value * copied_ns.total():
        return None
    if any(each(result.ranks, "steps.found")) and min(ways) >= WALL.value * sum(ways):
        return _step("resident", acts)
    return _step("pin" if pageable else "ahead", acts)


def _step(kind: str, acts: str, *notes: Words) -> Step:
    how = filled((words_of("call_how")[kind], *notes))
    return Step("", words(words_of("call_title")[kind]), acts, (), how)


def kind_of_call(name: str) -> str | None:
    """The row of `call` that a name belongs to."""
    patterns = words_of("call").items()
    return next((kind for kind, pattern in patterns if compiled(pattern).search(name)), None)
