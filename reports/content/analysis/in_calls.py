"""What to change where calls or ranges that were recorded say what the host is in while the GPU
waits for it: rows of `call` in words.toml, the first that fits a name.
"""

from collections import Counter

from heuristics.result.result import Result
from reports.content.analysis.times import telling_rank
from reports.content.blocks import Code, Step, Words, filled, words
from reports.measures import words_of
from traces.limits import MOST, WALL
from traces.missing import known
from traces.patterns import compiled
from traces.sections.addresses import Address, HostCall
from traces.spelling import percent


def called_step(result: Result, acts: str, *, of_copies: bool) -> Step | None:
    """For the kind of call under which the GPU waits for the host for longest, or `of_copies` for
    calls that copy; None where it takes no tenth of the windows, and copies are not mostly of
    pageable memory. Other calls only wait for copies.
    """
    if not result.ranks:
        return None
    rank = telling_rank(result)
    addresses, window_ns = known(rank.addresses), rank.budget_ns.window
    if addresses is None:
        return None
    times_ns, longest = Counter[str](), dict[str, tuple[int, str]]()
    callers: list[Address | HostCall] = [*(known(addresses.calls) or ()), *addresses.hosts]
    for caller in callers:
        time_ns = caller.blocking_ns if of_copies else caller.starved_ns
        kind = kind_of_call(caller.name)
        if kind and (kind == "copy" or not of_copies):
            times_ns[kind] += time_ns
            longest[kind] = max(longest.get(kind, (0, "")), (time_ns, caller.name))
    pageable_frac = rank.work.pageable_frac if rank.work else None
    if pageable_frac == 0:
        del times_ns["copy"]  # what is copied is pinned already
    for kind, time_ns in times_ns.most_common(1):
        if time_ns >= WALL.value * window_ns:
            most_ns, name = longest[kind]
            longest_in = words("Longest in ", Code(name), f": {percent(most_ns / window_ns)}.")
            return _step(kind, acts, longest_in)
    if of_copies and (pageable_frac or 0.0) > MOST.value:
        return _step("copy", acts)
    return None


def _step(kind: str, acts: str, *notes: Words) -> Step:
    how = filled((words_of("call_how")[kind], *notes))
    return Step("", words(words_of("call_title")[kind]), acts, (), how)


def kind_of_call(name: str) -> str | None:
    """The row of `call` that a name belongs to."""
    patterns = words_of("call").items()
    return next((kind for kind, pattern in patterns if compiled(pattern).search(name)), None)
