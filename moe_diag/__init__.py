"""moe-diag as a library, for notebooks and scripts.

    import moe_diag
    run = moe_diag.analyze("run.nsys-rep", config="run.yaml")
    run                     # in a notebook: the page
    run.walls, run.kernels, run.steps, run.ranks, run.timeline    # pandas frames
    run.save("run.html")    # and .json, .md, .csv, .png, ...
    moe_diag.compare("before.json", run).text()
    moe_diag.load("run.json") == run

What is not known is a `Missing`, with its reason and its cure: <NA> in frames, and no number to
compute with.
"""

from diagnoser import (
    InputError,
    MoeDiagError,
    NothingToDiagnose,
    UsageError,
    __version__,
    analyze,
    check_config,
    compare,
    compare_files,
    explain,
    load,
    merge,
    plan,
)
from diagnoser.diagnosis import ComparisonResult as Comparison
from diagnoser.diagnosis import Diagnosis
from diagnoser.diagnosis import FilesResult as FilesComparison
from diagnoser.diagnosis import LayoutsResult as Layouts
from traces.missing import Missing

__all__ = [
    "Comparison",
    "Diagnosis",
    "FilesComparison",
    "InputError",
    "Layouts",
    "Missing",
    "MoeDiagError",
    "NothingToDiagnose",
    "UsageError",
    "__version__",
    "analyze",
    "check_config",
    "compare",
    "compare_files",
    "explain",
    "load",
    "merge",
    "plan",
]
