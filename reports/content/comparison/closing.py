"""The end of the first screen: what to record to decide, warnings, and what to type next."""

import shlex
from collections.abc import Iterator

from heuristics.result.compared import Compared
from reports.content.blocks import Block, Command, Sentence, Tone
from reports.content.wording import sentence


def closing(compared: Compared) -> Iterator[Block]:
    """Warnings, what decides, the true size, the next command."""
    if compared.warnings:
        more = f" ({len(compared.warnings) - 1} more in --full)" if len(compared.warnings) > 1 else ""
        yield Sentence((f"{sentence(compared.warnings[0])}{more}",), "Warning", Tone.NOTICE)
    if compared.record:
        yield Sentence((sentence(compared.record),), "To decide")
    elif compared.size.source == "trace" and compared.verdict in ("regression", "improvement"):
        yield Sentence(
            ("Profiling lengthens steps. For the size without it: --base-log, --new-log.",), "Note"
        )
    name = "NEW/" if len(compared.new.traces) > 1 else shlex.quote(compared.new.traces[0])
    yield Command(("What slows the new run:",), f"moe-diag analyze {name}")
