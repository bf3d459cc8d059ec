"""What was found earlier: in any format (`report`), of many ranks (`merge`), its words
(`explain`).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from diagnoser.options import Edition
from diagnoser.options.command import command
from diagnoser.output import say_skipped, show_page
from diagnoser.output.results import Output, plan_results, saved_result, write_results
from heuristics.config.about import NEWEST, Guidance
from heuristics.result.exits import Exit
from reports.formats import ResultKind, kind_of
from traces.errors import NotAResult

_NEWEST: Final = Edition(NEWEST)
_DAMAGE: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError)
"""What a renderer runs into where a file keeps the contract's shape, but not its sense."""


@command(lacks=("emit_config",))
def report(result: Path, wanted: partial[Output], redact: bool = True) -> int:
    """Write an earlier result in any other format.

    Needs no trace and measures nothing: what the JSON says is what is shown. The same result gives
    the same bytes.

    \b
    moe-diag analyze run.nsys-rep -o run.json         the one to keep
    moe-diag report run.json                          the text
    moe-diag report run.json -o run.html              one page, opens anywhere
    moe-diag report run.json -f markdown --flavor jira
    moe-diag report run.json -f png -f pdf -o .       pictures, beside it
    moe-diag report run.json -o run.perfetto.json     for ui.perfetto.dev
    moe-diag report run.json --ticket perf-1234       all a ticket needs

    A configuration that was judged without a trace has text, markdown, html and json. What was made
    with --no-redact holds paths, and is rendered with --no-redact only.

    Exit code 0: rendered; 2: usage; 3: the file is no result of ours, or of a newer moe-diag.
    """
    want, saved = wanted(), saved_result(result, redact)
    plan = plan_results(kind_of(saved), want, [result])
    try:
        write_results(saved, plan)
    except _DAMAGE as error:
        lacks = f"it does not hold what this format shows ({type(error).__name__})"
        raise NotAResult(f"{result}: {lacks}. Make the result again") from error
    return Exit.DONE


@command(
    of=ResultKind.RUN, lacks=("flavor", "ticket", "title", "note", "full", "keys", "emit_config")
)
def merge(
    wanted: partial[Output], summaries: list[Path] | None = None, witness: Sequence[Any] = ()
) -> None:
    """Put kept summaries of ranks together: who makes whom wait.

    Reads no trace: analyze --summary has kept of each rank what a run needs, at most 64 kB. Ranks
    may have been measured one after the other, on several machines, in any order. What does not
    belong to the run is named and left out, and so is a file that is damaged or no summary.

    With --witness, also where the run hangs, and what ranks show that were not profiled; no summary
    is needed then.

    \b
    moe-diag analyze rank0.nsys-rep --summary kept    on one machine
    moe-diag analyze rank1.nsys-rep --summary kept    on another
    moe-diag merge kept                               all of them
    moe-diag merge kept -o run.html                   as a page; -o run.png as a picture
    moe-diag merge kept -f json --brief               a short result for programs
    moe-diag merge --witness dumps/                   where does it hang

    Exit code 0: at least one file was read; 2: usage; 3: none could be read.
    """
    from diagnoser.running.merging import merge_summaries

    want, inputs = wanted(), [*(summaries or ()), *witness]
    plan = plan_results(ResultKind.RUN, want, inputs or [Path("run")])
    run = merge_summaries(summaries or (), witness)
    write_results(run.result, plan)
    say_skipped(run.skipped)


@command()
def explain(word: str = "", guidance: Edition = _NEWEST, full: bool = False) -> None:
    """What a word of a report means: wall, fix, measure, rule.

    \b
    moe-diag explain COM-2                      a fix: its settings, needs, side effects
    moe-diag explain "read of token counts"     a measure by its name, or its key: token_count_sync
    moe-diag explain CFG-flex-type              a finding, or what a correction such as CFG-18 does
    moe-diag explain ep-overlap-full-recompute  a rule of a release or of the workflow
    moe-diag explain moe_grouped_gemm           a setting; -- --moe-grouped-gemm by its flag
    """
    from reports.content.explain.page import explain_page
    from reports.content.page import Detail

    show_page(
        explain_page(word, cast("Guidance", guidance.value), Detail.FULL if full else Detail.FIRST)
    )
