"""`moe-diag explain`: what a word of a report means."""

from diagnoser.options import Word
from diagnoser.output import Target, write


def explain(
    word: Word = "",
) -> None:
    """What a word of a report means: wall, fix, measure, rule.

    \b
    moe-diag explain COM-2                       a fix: its settings, needs, side effects
    moe-diag explain "read of token counts"      a measure by its name, or by its key: token_count_sync
    moe-diag explain CFG-flex-type               a finding, or what a correction such as CFG-18 does
    moe-diag explain ep-overlap-full-recompute   a rule of a release or of the workflow
    moe-diag explain moe_grouped_gemm            a setting; -- --moe-grouped-gemm by its flag
    """
    from diagnoser.screen import screen
    from reports.content.explain.page import explain_page
    from reports.write.text import write_text

    write(Target("text", None), write_text(explain_page(word), screen()), force=False)
