"""`moe-diag merge`: kept summaries of ranks, put together."""

from diagnoser.bounds import with_bounds
from diagnoser.options import Force, MergeForm, MergeForms, OutputPlace, Summaries
from diagnoser.output import plan_targets, say_skipped, write


@with_bounds
def merge(
    summaries: Summaries,
    form: MergeForms = None,
    output: OutputPlace = "-",
    force_overwrite: Force = False,
) -> None:
    """Put kept summaries of ranks together: who makes whom wait.

    Reads no trace: analyze --summary has kept of each rank what a run needs, at most 64 kB. Ranks may have
    been measured one after the other, on several machines, in any order. What does not belong to the run is
    named and left out, and so is a file that is damaged or no summary.

    \b
    moe-diag analyze rank0.nsys-rep --summary kept    on one machine
    moe-diag analyze rank1.nsys-rep --summary kept    on another
    moe-diag merge kept                               all of them
    moe-diag merge kept -o run.json                   as a JSON document

    Exit code 0: at least one summary was read; 2: usage; 3: none could be read.
    """
    from diagnoser.merging import merge_summaries
    from diagnoser.screen import screen

    named = MergeForm.JSON if output.endswith(".json") else MergeForm.TEXT
    forms = form or [named]
    targets = plan_targets(forms, output, summaries, _EXTENSIONS, force_overwrite, "_run")
    run = merge_summaries(summaries)
    for target in targets:
        if target.form == MergeForm.JSON:
            from reports.result.json_text import render_json

            text = render_json(run.to_dict())
        else:
            from reports.content.merged import page
            from reports.write.text import write_text

            text = write_text(page(run.result), screen())
        write(target, text, force_overwrite)
    say_skipped(run.skipped)


_EXTENSIONS = {"text": "txt", "json": "json"}
