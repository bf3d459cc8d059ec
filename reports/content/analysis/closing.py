"""The end of the first screen: kernels, unknown ones, warnings, where to read more, what to type next."""

import shlex
from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.blocks import Code, Command, Sentence, Span, Tone, words
from reports.content.names import kernel_name, name_of
from reports.result.left_out import left_out
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import percent

_TOP: Final = 3
_WORTH: Final = 0.01
_LATER: Final = {
    "kineto": "torch.profiler.schedule(wait=20, warmup=2, active=5)",
    "nsys": "moe-diag capture --for walls",
}
"""How to record a steady state, by recorder; of nsys, what prints the line."""


def top_kernels(rank: Rank) -> Sentence | None:
    """The kernels with the most work, by short name."""
    window_ns = rank.budget_ns.window
    by_name: dict[tuple[str, str], int] = {}
    for row in rank.kernel_table.rows:
        named = (kernel_name(row.name), row.key)
        by_name[named] = by_name.get(named, 0) + row.work_ns
    first = sorted(by_name.items(), key=lambda one: -one[1])[:_TOP]
    spans: list[Span] = []
    for (name, key), work_ns in first:
        if work_ns >= _WORTH * window_ns:
            spans += ["; " if spans else "", Code(name), f" {percent(work_ns / window_ns)} ({name_of(key)})"]
    return Sentence(words(*spans), "Top kernels") if spans else None


def unknown_kernels(result: Result) -> Iterator[Sentence]:
    """The largest kernel that no rule names, where it fills enough of a window, and how many more."""
    found = [one for rank in result.ranks for one in rank.unknown_kernels if one.finding]
    if found:
        first = max(found, key=lambda one: one.frac)
        names = {one.name for one in found}
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        said = f" {percent(first.frac)}{more}: counted as compute, purpose unknown."
        yield Sentence(words(Code(kernel_name(first.name)), said), "Unknown kernel", Tone.NOTICE)


def layout_changes(result: Result) -> Iterator[Sentence]:
    """How much time goes into copies between memory layouts, where it is worth another layout."""
    compute = next((wall for wall in result.walls if wall.id == "compute"), None)
    for one in compute.evidence if compute else ():
        if one.measure == "layout_frac":
            said = f"{percent(one.value)} of the time: tensors go from NCHW to NHWC and back. "
            yield Sentence(
                words(said, "Channels last throughout avoids it [CMP-10]."), "Layout changes", Tone.NOTICE
            )


def warnings(result: Result) -> Iterator[Sentence]:
    """The first warning that no other line holds already, and how many more there are."""
    elsewhere = left_out(result.run)
    found = [one for one in result.warnings if one not in elsewhere]
    if found and not result.verdict.startup_ns:
        more = f" (first of {len(found)})" if len(found) > 1 else ""
        yield Sentence(words(f"{found[0]}.{more}"), "Warning", Tone.NOTICE)


def more(result: Result) -> str:
    """What `--full` has beyond the first screen."""
    refused = f", with {len(result.refused)} refused" if result.refused else ""
    checks = " | --config FILE checks flags" if _unchecked(result) else ""
    return f"--full{refused} | -o page.html{checks}"


def _unchecked(result: Result) -> bool:
    """Whether flags are advised that no configuration was held against."""
    planned = bool(result.fixes or result.levers)
    return planned and result.framework == "megatron" and known(result.configuration) is None


def next_command(result: Result) -> Command:
    """What to type next: compare after a change, or record again where this recording says too little."""
    trace = result.traces[0]
    path = trace.name if trace.path is UNSET else trace.path
    blind = all(wall.outcome == "unmeasurable" for wall in result.walls)
    if result.verdict.startup_ns or blind:
        recorder = "kineto" if trace.kind == "kineto" else "nsys"
        return Command(words("Record again:"), _LATER[recorder])
    if result.fixes or result.levers:
        sides = "BEFORE/ AFTER/" if len(result.traces) > 1 else f"{shlex.quote(path)} AFTER"
        return Command(words("Did it help?"), f"moe-diag compare {sides}")
    return Command(words("What this recording is enough for:"), f"moe-diag doctor {shlex.quote(path)}")
