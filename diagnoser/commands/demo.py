"""`moe-diag demo`: a simulated run with a known wall."""

from pathlib import Path
from typing import Annotated

import typer

from diagnoser.completion import scenarios
from diagnoser.options import Brief, Force, Forms, Full, Keys, MarkdownFlavor, OutputPlace
from diagnoser.output import Target, write
from diagnoser.results import output_of, plan_results, write_results
from reports.write.formats import Kind


def demo(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="[SCENARIO]",
            show_default=False,
            autocompletion=scenarios,
            help="The simulated run; list: names.",
        ),
    ] = "communication",
    form: Forms = None,
    flavor: MarkdownFlavor = None,
    output: OutputPlace = "-",
    force_overwrite: Force = False,
    full: Full = False,
    brief: Brief = False,
    keys: Keys = False,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep the simulated export here, to analyze it yourself."),
    ] = None,
) -> int:
    """Diagnose a simulated run with a known wall.

    \b
    moe-diag demo                  expert all-to-all across nodes, nothing beside it
    moe-diag demo host_overhead    a host that launches too slowly
    moe-diag demo list             all scenarios
    moe-diag demo -o demo.html     the page that analyze -o report.html makes
    """
    import tempfile

    from diagnoser.command_line import command_line
    from diagnoser.demo.recordings import listed, unpack
    from diagnoser.pipeline import diagnose

    if scenario == "list":
        write(Target("text", None), f"{listed()}\n", force=False)
        return 0
    wanted = output_of(form, output, force=force_overwrite, full=full, keys=keys, flavor=flavor, brief=brief)
    plan = plan_results(Kind.ANALYSIS, wanted, [keep or Path(f"{scenario}.sqlite")])
    with tempfile.TemporaryDirectory(prefix="moe-diag-") as folder:
        path = keep or Path(folder) / f"{scenario}.sqlite"
        unpack(path, scenario)
        diagnosis = diagnose([path], command=command_line("demo", [Path(scenario)], {}))
    write_results(diagnosis.result, plan, wanted)
    return 0
